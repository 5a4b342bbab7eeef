"""Latency of PTX instructions of which ptxas makes several: divisions, remainders, reciprocals, square roots.

A chain through the dividend leaves the divisor alone, and ptxas computes its reciprocal once; a chain through the divisor
has all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, Reg

LENGTHS: Final = (4, 12)
KEEP_LARGE: Final = 0x7000
"""Added to quotients, so that the next one is none of zero."""
X, Y = 1000003, 7


@dataclass(frozen=True, slots=True)
class Sequence:
    """One instruction.

    Args:
        opcode: of PTX.
        kind: of its operands: `s32`, `u32`, `s64`, `u64`, `f32`, `f64`.
        operands: one or two.
    """

    opcode: str
    kind: str
    operands: int = 2

    @property
    def name(self) -> str:
        """Opcode with underscores."""
        return self.opcode.replace(".", "_")

    @property
    def register(self) -> str:
        """Type of its registers."""
        return ".b64" if self.kind.endswith("64") else ".b32"

    @property
    def addition(self) -> str:
        """What is added to an integer result, with its latency; none for floating point."""
        return "" if self.kind.startswith("f") else f"add.{self.kind}"


SEQUENCES: Final = (
    Sequence("div.s32", "s32"), Sequence("div.u32", "u32"), Sequence("rem.s32", "s32"), Sequence("rem.u32", "u32"),
    Sequence("div.s64", "s64"), Sequence("rem.u64", "u64"), Sequence("div.rn.f32", "f32"),
    Sequence("div.full.f32", "f32"), Sequence("rcp.rn.f32", "f32", 1), Sequence("sqrt.rn.f32", "f32", 1),
    Sequence("sqrt.approx.f32", "f32", 1), Sequence("div.rn.f64", "f64"),
    Sequence("rsqrt.approx.f32", "f32", 1), Sequence("rcp.approx.f32", "f32", 1), Sequence("ex2.approx.f32", "f32", 1),
    Sequence("lg2.approx.f32", "f32", 1), Sequence("sin.approx.f32", "f32", 1),
)  # fmt: skip


def chain(one: Sequence) -> Benchmark:
    """Dependent chains of one of them, by one warp."""
    c = Clocked(f"sequence_{one.name}", [Param("x", ".u32"), Param("y", ".u32")])
    x, y = (_operand(c, c.load(name), one.kind) for name in ("x", "y"))

    def step(value: Reg, through_divisor: bool) -> Reg:
        result = c.k.reg(one.register, "d")
        if one.operands == 1:
            c.k.emit(one.opcode, result, value)
        elif through_divisor:
            c.k.emit(one.opcode, result, x, value)
        else:
            c.k.emit(one.opcode, result, value, y)
        if one.addition:
            c.k.emit(one.addition, result, result, KEEP_LARGE)
        return result

    more = ", " + one.addition if one.addition else ""
    ways = {f"{one.opcode}{more}": False}
    if one.operands == 2:
        ways |= {f"{one.opcode}{more}, through the divisor": True}
    # One chain goes on through all of them: ptxas would compute what two have in common once.
    value = x
    for label, through_divisor in ways.items():
        for length in LENGTHS:

            def run(length: int = length, through_divisor: bool = through_divisor) -> Reg:
                nonlocal value
                for _ in range(length):
                    value = step(value, through_divisor)
                if one.register == ".b32":
                    return value
                return c.k.let(".b32", "low", "cvt.u32.u64", value)

            c.measure(f"{label} x{length}", run)

    def numbers(gpu: Any) -> list[Any]:
        del gpu
        return [np.uint32(X), np.uint32(Y)]

    return c.benchmark(f"latency of dependent {one.opcode}, one warp", arguments=numbers)


def _operand(c: Clocked, value: Reg, kind: str) -> Reg:
    """Return a number of 32 bits in the type of the instruction."""
    if kind in ("s32", "u32"):
        return value
    if kind in ("s64", "u64"):
        return c.k.let(".b64", "wide", "cvt.u64.u32", value)
    register = c.k.let(f".{kind}", "number", f"cvt.rn.{kind}.u32", value)
    width = kind.removeprefix("f")
    return c.k.let(f".b{width}", "bits", f"mov.b{width}", register)


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [chain(one) for one in SEQUENCES]

"""Latency of PTX instructions of which ptxas makes several: divisions, square roots, integers of 64 bits, fields of bits.

A chain through the dividend leaves the divisor alone, and ptxas computes its reciprocal once; a chain through the divisor
has all of it.  A division of zero, a reciprocal of zero or infinity and a root of zero take the slow way: a routine that is
called where one lane at least has a number whose exponent is out of the ordinary.
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
        operands: one to four; the chain goes through the first.
        of_zero: whether it begins with zero, and takes the slow way.
    """

    opcode: str
    kind: str
    operands: int = 2
    of_zero: bool = False

    @property
    def name(self) -> str:
        """Opcode with underscores."""
        return self.opcode.replace(".", "_") + ("_of_zero" if self.of_zero else "")

    @property
    def divides(self) -> bool:
        """Whether a chain through its second operand is measured too."""
        return self.opcode.startswith(("div", "rem")) and not self.of_zero

    def is_place(self, place: int) -> bool:
        """Whether an operand is a position or a length, of 32 bits whatever the type."""
        return self.opcode.startswith("bfe") or (self.opcode.startswith("bfi") and place > 1)

    @property
    def register(self) -> str:
        """Type of its registers."""
        return ".b64" if self.kind.endswith("64") else ".b32"

    @property
    def addition(self) -> str:
        """What is added to an integer result, with its latency, so that ptxas sees each; none for floating point."""
        return "" if self.kind.startswith("f") else f"add.{self.kind}"


SEQUENCES: Final = (
    Sequence("div.s32", "s32"), Sequence("div.u32", "u32"), Sequence("rem.s32", "s32"), Sequence("rem.u32", "u32"),
    Sequence("div.s64", "s64"), Sequence("rem.u64", "u64"), Sequence("div.rn.f32", "f32"),
    Sequence("div.full.f32", "f32"), Sequence("rcp.rn.f32", "f32", 1), Sequence("sqrt.rn.f32", "f32", 1),
    Sequence("sqrt.approx.f32", "f32", 1), Sequence("div.rn.f64", "f64"),
    Sequence("rsqrt.approx.f32", "f32", 1), Sequence("rcp.approx.f32", "f32", 1), Sequence("ex2.approx.f32", "f32", 1),
    Sequence("lg2.approx.f32", "f32", 1), Sequence("sin.approx.f32", "f32", 1),
    Sequence("div.full.ftz.f32", "f32"), Sequence("div.approx.ftz.f32", "f32"),
    Sequence("sqrt.rn.f64", "f64", 1), Sequence("rcp.rn.f64", "f64", 1), Sequence("rsqrt.approx.f64", "f64", 1),
    Sequence("min.f64", "f64"), Sequence("max.f64", "f64"),
    Sequence("mul.lo.s64", "s64"), Sequence("mul.hi.s64", "s64"), Sequence("mul.hi.u64", "u64"),
    Sequence("abs.s64", "s64", 1), Sequence("bfe.u64", "u64", 3), Sequence("bfe.s64", "s64", 3),
    Sequence("bfi.b64", "u64", 4), Sequence("brev.b64", "u64", 1), Sequence("cnot.b32", "u32", 1),
    Sequence("clz.b32", "u32", 1), Sequence("fns.b32", "u32", 3), Sequence("set.lt.f32.f32", "f32"),
    Sequence("vabsdiff4.s32.s32.s32", "s32", 3),
    Sequence("vabsdiff2.u32.u32.u32", "u32", 3),
    Sequence("cvt.rna.tf32.f32", "f32", 1), Sequence("ex2.approx.f16x2", "u32", 1),
    Sequence("tanh.approx.f16x2", "u32", 1),
    Sequence("div.rn.f32", "f32", of_zero=True), Sequence("rcp.rn.f32", "f32", 1, of_zero=True),
    Sequence("sqrt.rn.f32", "f32", 1, of_zero=True), Sequence("div.rn.f64", "f64", of_zero=True),
    Sequence("rcp.rn.f64", "f64", 1, of_zero=True), Sequence("sqrt.rn.f64", "f64", 1, of_zero=True),
)  # fmt: skip


def chain(one: Sequence) -> Benchmark:
    """Dependent chains of one of them, by one warp."""
    c = Clocked(f"sequence_{one.name}", [Param("x", ".u32"), Param("y", ".u32")])
    x = _operand(c, c.load("x"), one.kind)
    low = c.load("y")
    y = _operand(c, low, one.kind)

    def step(value: Reg, through_divisor: bool) -> Reg:
        result = c.k.reg(one.register, "d")
        if through_divisor:
            c.k.emit(one.opcode, result, x, value)
        else:
            places = [low if one.is_place(place) else y for place in range(1, one.operands)]
            c.k.emit(one.opcode, result, value, *places)
        if one.addition:
            c.k.emit(one.addition, result, result, KEEP_LARGE)
        return result

    more = ", " + one.addition if one.addition else ""
    ways = {f"{one.opcode}{more}": False}
    if one.divides:
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
                if not one.divides and one.addition:
                    # Only the upper half needs all of a product.
                    upper = c.k.let(".b64", "upper", "shr.u64", value, 32)
                    return c.k.let(".b32", "low", "cvt.u32.u64", upper)
                return c.k.let(".b32", "low", "cvt.u32.u64", value)

            c.measure(f"{label} x{length}", run)

    def numbers(gpu: Any) -> list[Any]:
        del gpu
        return [np.uint32(0 if one.of_zero else X), np.uint32(Y)]

    zero = " of zero, which take the slow way" if one.of_zero else ""
    return c.benchmark(f"latency of dependent {one.opcode}{zero}, one warp", arguments=numbers)


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

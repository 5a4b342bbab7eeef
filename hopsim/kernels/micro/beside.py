"""Arithmetic of one warpgroup while another keeps the tensor cores busy, whose sums pass the same registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.micro.tensor import A_BYTES, multiply, operands
from hopsim.kernels.ptx.text import Param, Reg, vector

COLUMNS: Final = (64, 128, 256)
TURNS: Final = (4, 20)
"""Of a loop, which stays in the nearest cache of instructions."""
ROUNDS: Final = 16
CHAINS: Final = 8
WARPGROUP: Final = 128
PRODUCTS: Final = 8
"""Of a turn of the warpgroup with products."""
BUSY_CYCLES: Final = 180_000
"""More than all measurements take."""
SETTLE_CYCLES: Final = 2_000
_MEET: Final = 1
FMA, MAX, EX2 = (
    "fma.rn.f32 {s}, {s}, {y}, {z}",
    "max.f32 {s}, {s}, {o}",
    "ex2.approx.ftz.f32 {s}, {s}",
)
ARITHMETIC: Final = {
    "fma.rn.f32": (FMA,),
    "mul.rn.f32": ("mul.rn.f32 {s}, {s}, {y}",),
    "max.f32": (MAX,),
    "cvt.rn.bf16x2.f32": ("cvt.rn.bf16x2.f32 {s}, {s}, {o}",),
    "ex2.approx.ftz.f32": (EX2,),
    "mad.lo.s32": ("mad.lo.s32 {s}, {s}, {y}, {z}",),
    "fma, max": (FMA, MAX),
    "fma, ex2, fma, max": (FMA, EX2, FMA, MAX),
}
"""What the chains do in turns."""
ADDRESSES: Final = {
    "add.s32": ("add.s32 {s}, {s}, {o}",),
    "add.s64": ("add.s64 {w}, {w}, {v}",),
    "mul.wide.u32": ("mul.wide.u32 {w}, {h}, {g}",),
    "mad.wide.u32": ("mad.wide.u32 {w}, {h}, {g}, {c}",),
    "mad.wide.u32, max.s32": ("mad.wide.u32 {w}, {h}, {g}, {c}", "max.s32 {s}, {s}, {o}"),
    "lop3.b32": ("lop3.b32 {s}, {s}, {o}, {z}, 0x6a",),
    "mad.lo.s32, max.s32": ("mad.lo.s32 {s}, {s}, {y}, {z}", "max.s32 {s}, {s}, {o}"),
    "setp, selp": ("setp.lt.s32 {p}, {s}, {o}", "selp.b32 {s}, {y}, {s}, {p}"),
}
"""What is done where threads work out addresses; 64-bit chains too."""
EX2_FULL: Final = "ex2.approx.f32 {s}, {s}"
"""Four machine instructions: a test, and products before and after that only small operands need."""
SOFTMAX: Final = {
    "ex2.approx.f32": (EX2_FULL,),
    "fma, ex2, add": (FMA, EX2, "add.rn.f32 {s}, {s}, {y}"),
    "fma, ex2.approx.f32, add": (FMA, EX2_FULL, "add.rn.f32 {s}, {s}, {y}"),
}
"""What attention does with its scores."""
SETS: Final = {"": ARITHMETIC, "addresses": ADDRESSES, "softmax": SOFTMAX}


@dataclass(frozen=True, slots=True)
class Registers:
    """What arithmetic works on: 32-bit and 64-bit chains, halves of these, predicates; and what no chain changes.

    Args:
        chains, wide, half, high, chosen: one a chain.
        y, z: 32 bits.  fixed: 64 bits.
    """

    chains: Sequence[Reg]
    wide: Sequence[Reg]
    half: Sequence[Reg]
    high: Sequence[Reg]
    chosen: Sequence[Reg]
    y: Reg
    z: Reg
    fixed: Reg

    def rounds(self, c: Clocked, texts: Sequence[str]) -> None:
        """Write some rounds, an instruction of each chain in each, by `texts` in turns."""
        for number in range(ROUNDS):
            text = texts[number % len(texts)]
            for index in range(CHAINS):
                other = (index + 1) % CHAINS
                if "{h}" in text:
                    parts = f"{{{self.half[index]}, {self.high[index]}}}"
                    c.k.emit("mov.b64", parts, self.wide[index])
                opcode, _, rest = text.format(
                    s=self.chains[index], o=self.chains[other], y=self.y, z=self.z, w=self.wide[index],
                    v=self.wide[other], h=self.half[index], g=self.high[index], c=self.fixed, p=self.chosen[index],
                ).partition(" ")  # fmt: skip
                c.k.emit(opcode, rest)


def beside(n: int, from_registers: bool = False, warps: int = 4, kind: str = "") -> Benchmark:
    """Eight independent chains a warp; a slope is cycles for a turn of 128 instructions of each warp.

    Args:
        n: columns of the products beside it; 0: none.
        from_registers: whether A of the products lies in registers.
        warps: that do arithmetic.
        kind: of `SETS`.
    """
    addresses = kind == "addresses"
    source = "RS" if from_registers else "SS"
    what = f"n{n}_{source}" if n else "none"
    # Numbers of turns that ptxas knew would be unrolled.
    names = ("x", "y", "z", "busy", *(f"turns_{turns}" for turns in TURNS))
    c = Clocked(
        f"beside_wgmma_{what}_w{warps}{f'_{kind}' if kind else ''}",
        [Param(name, ".u32") for name in names],
        [f".reqntid {WARPGROUP + 32 * warps}"],
    )
    k = c.k
    x, y, z = (c.load(name) for name in ("x", "y", "z"))
    multiplies = k.let(".pred", "multiplies", "setp.lt.u32", c.thread, WARPGROUP)
    end = k.label("$end")
    counts = k.label("$counts")
    k.emit("bra", counts, unless=multiplies)
    if n:
        _multiply(c, n, from_registers)
    k.emit("bra", end)

    k.place(counts)
    # Thread 0 multiplies: another one stores what was measured.
    k.emit("setp.eq.u32", c.first, c.thread, WARPGROUP)
    _wait(c, SETTLE_CYCLES)
    chains = [k.let(".b32", "s", "add.u32", x, index) for index in range(CHAINS)]
    wide = half = high = chosen = chains
    fixed = x
    if addresses:
        fixed = k.let(".b64", "fixed", "mul.wide.u32", z, y)
        wide = [k.let(".b64", "w", "mul.wide.u32", one, y) for one in chains]
        half, high = k.regs(".b32", "half", CHAINS), k.regs(".b32", "high", CHAINS)
    if kind:
        chosen = k.regs(".pred", "chosen", CHAINS)
    registers = Registers(chains, wide, half, high, chosen, y, z, fixed)
    threads = 32 * warps
    for label, texts in SETS[kind].items():
        for turns in TURNS:

            def body(texts: tuple[str, ...] = texts, turns: int = turns) -> None:
                k.emit("bar.sync", _MEET, threads)
                left, more = c.load(f"turns_{turns}"), k.reg(".pred", "more")
                with k.loop(left, more, "$turn"):
                    registers.rounds(c, texts)
                for one, both in zip(chains, wide, strict=True):
                    c.keep(one)
                    if addresses:
                        keep_halves(c, both)
                k.emit("bar.sync", _MEET, threads)

            c.measure_one(f"{label} x{turns}", body)
    k.place(end)

    def numbers(gpu: Any) -> list[Any]:
        del gpu
        cycles = 4 * BUSY_CYCLES if kind else BUSY_CYCLES
        busy = cycles // (PRODUCTS * n // 2) if n else 0
        return [np.uint32(one) for one in (0x3F800001, 0x3F800003, 0x00010203, busy, *TURNS)]

    other = f"products of {n} columns, {source}" if n else "nothing"
    return c.benchmark(
        f"rate of arithmetic, {warps} warps, eight independent chains each, beside {other}",
        block=WARPGROUP + threads, arguments=numbers, shared_bytes=A_BYTES + 256 * 128,
    )  # fmt: skip


def keep_halves(c: Clocked, value: Reg) -> None:
    """Keep a value of 64 bits: ptxas may not drop what makes it."""
    first, second = c.k.regs(".b32", "part", 2)
    c.k.emit("mov.b64", f"{{{first}, {second}}}", value)
    c.keep(first)
    c.keep(second)


def _wait(c: Clocked, cycles: int) -> None:
    start, again = c.clock(), c.k.label("$settle")
    c.k.place(again)
    now = c.clock()
    gone = c.k.let(".b64", "gone", "sub.u64", now, start)
    early = c.k.let(".pred", "early", "setp.lt.u64", gone, cycles)
    c.k.emit("bra", again, guard=early)


def _multiply(c: Clocked, n: int, from_registers: bool) -> None:
    """Write products of zeros without a pause, for longer than everything else takes."""
    k = c.k
    sums = k.regs(".b32", "acc", n // 2)
    a_registers = k.regs(".b32", "ra", 4)
    for register in (*sums, *a_registers):
        k.emit("mov.b32", register, 0)
    a, b, yes = operands(c)
    scales = (1, 1, 0) if from_registers else (1, 1, 0, 0)
    left = c.load("busy")
    more = k.reg(".pred", "more")
    with k.loop(left, more, "$products"):
        left_operand = vector(a_registers) if from_registers else a
        multiply(c, PRODUCTS, sums, left_operand, b, yes, *scales)
    for register in sums:
        c.keep(register)


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [beside(0), beside(0, warps=8)]
    found += [beside(n, rs) for n in COLUMNS for rs in (False, True)]
    found += [beside(128, warps=8), beside(256, warps=8)]
    for n in (0, 128, 256):
        found += [beside(n, warps=warps, kind="addresses") for warps in (4, 8)]
        # Sums of 256 columns leave no registers for more.
        most = 8 if n == max(COLUMNS) else 12
        found += [beside(n, warps=warps, kind="softmax") for warps in range(4, most + 1, 4)]
    return found

"""Rates of mma.sync whose operands come out of shared memory, and of the instructions that ptxas makes of fp8 ones.

Everything runs in loops, and each turn's operands are read anew, so that nothing is left out or moved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, Reg, address, vector

WARPS: Final = (1, 4, 8, 16)
PRODUCT_REGISTERS, REGISTERS = 32 * 224, 65536
"""Of a warp of products, and of an SM."""
TURNS: Final = (16, 48)
CHAINS: Final = 8
INPUTS: Final = ("x", "y", "z")
_OF_FLOATS: Final = {
    "add.f32": "add.f32 {s}, {s}, {y}",
    "fma.rn.f32": "fma.rn.f32 {s}, {s}, {y}, {z}",
    "add.f16x2": "add.rn.f16x2 {s}, {s}, {y}",
}
ARITHMETIC: Final = {**_OF_FLOATS, "lop3.b32": "lop3.b32 {s}, {s}, {y}, {z}, 0x96"}
AMONG: Final = {
    **_OF_FLOATS,
    "mad.lo.s32": "mad.lo.s32 {s}, {s}, {y}, {z}",
    "add.s32": "add.s32 {s}, {s}, {o}",
    "lop3.b32": "lop3.b32 {s}, {s}, {o}, {z}, 0x6a",
    "cvt.rn.bf16x2.f32": "cvt.rn.bf16x2.f32 {s}, {s}, {o}",
    "prmt.b32": "prmt.b32 {s}, {s}, {o}, {z}",
}
AMONG_COUNTS: Final = (2, 6)
AMONG_WARPS: Final = (4, 8)
AMONG_TYPES: Final = {"f16": "m16n8k16 f16", "e4m3": "m16n8k32 e4m3"}
ALONG_M, ALONG_N = 4, 8
MMA: Final = {
    "m16n8k16 bf16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "m16n8k16 f16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "m16n8k8 tf32": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "m16n8k32 e4m3": "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
    "m16n8k32 e5m2": "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
    "m16n8k32 s8": "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
}


def folded(c: Clocked, kept: list[Reg]) -> Reg:
    """Return a 32-bit register that depends on all of some."""
    total = c.k.let(".b32", "total", "mov.b32", kept[0])
    for one in kept[1:]:
        c.k.emit("xor.b32", total, total, one)
    return total


def in_loops(
    c: Clocked,
    label: str,
    body: Callable[[], None],
    kept: list[Reg],
    fold: Callable[[Clocked, list[Reg]], Reg] = folded,
) -> None:
    """Measure `body` in loops of two lengths.

    Args:
        kept: registers whose values `fold` makes one of, which is kept.
    """
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    for turns in TURNS:

        def run(turns: int = turns) -> None:
            c.k.emit("mov.u32", left, turns)
            with c.k.loop(left, more, "$turn"):
                body()
            c.keep(fold(c, kept))

        c.measure(f"{label} x{turns}", run, whole_cta=True)


def nothing_given(gpu: Any) -> list[Any]:
    """Return the argument of a benchmark that takes a zero."""
    del gpu
    return [np.uint32(0)]


def _numbers(gpu: Any) -> list[Any]:
    """Return what `INPUTS` are."""
    del gpu
    return [np.uint32(0x3F800001), np.uint32(0x3F800003), np.uint32(0x00010203)]


def _nothing_and_numbers(gpu: Any) -> list[Any]:
    return [*nothing_given(gpu), *_numbers(gpu)]


def _emit(c: Clocked, text: str, **registers: Reg) -> None:
    opcode, _, rest = text.format(**registers).partition(" ")
    c.k.emit(opcode, rest)


def arithmetic(warps: int) -> Benchmark:
    """Eight independent chains a warp; a slope is cycles for eight instructions of each warp, and for the loop."""
    c = Clocked(f"loop_rate_w{warps}", [Param(name, ".u32") for name in INPUTS])
    x, y, z = (c.load(name) for name in INPUTS)
    chains = [c.k.let(".b32", "s", "add.u32", x, index) for index in range(CHAINS)]

    def turn(text: str) -> None:
        for one in chains:
            _emit(c, text, s=one, y=y, z=z)

    def convert() -> None:
        for one in chains:
            low, high = c.k.reg(".b16", "low"), c.k.reg(".b16", "high")
            c.k.emit("mov.b32", f"{{{low}, {high}}}", one)
            c.k.emit("cvt.rn.f16x2.e4m3x2", one, low)

    for label, text in ARITHMETIC.items():
        in_loops(c, label, lambda text=text: turn(text), chains)
    in_loops(c, "cvt.rn.f16x2.e4m3x2", convert, chains)

    return c.benchmark(
        f"rate of arithmetic in a loop, {warps} warps, {CHAINS} independent chains each",
        block=32 * warps, arguments=_numbers,
    )  # fmt: skip


def _multiply(
    c: Clocked,
    at: Reg,
    nothing: Reg,
    sums: list[list[Reg]],
    opcode: str,
    beside: Callable[[int], None],
) -> None:
    """Read the operands of a turn and multiply them; `beside` is put after each product."""

    def read(index: int) -> list[Reg]:
        return c.matrices(address(at, 512 * index))

    c.k.emit("xor.b32", at, at, nothing)  # the same place, for all that ptxas knows
    a = [read(index) for index in range(ALONG_M)]
    pairs = [read(ALONG_M + index) for index in range(ALONG_N // 2)]
    b = [half for four in pairs for half in (four[:2], four[2:])]
    for m, of_a in enumerate(a):
        for n, of_b in enumerate(b):
            number = m * ALONG_N + n
            d = vector(sums[number])
            c.k.emit(opcode, d, vector(of_a), vector(of_b), d)
            beside(number)


def _alone(number: int) -> None:
    del number


def _begin(c: Clocked) -> tuple[Reg, Reg, list[list[Reg]]]:
    """Return the address of a lane's first operands, a zero that ptxas does not know, and the sums."""
    nothing = c.load("nothing")
    c.fill_shared(1024, 0)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    at = c.k.let(".b32", "at", "mad.lo.u32", lane, 16, c.shared)
    return at, nothing, [c.k.regs(".b32", "d", 4) for _ in range(ALONG_M * ALONG_N)]


def _clear(c: Clocked, sums: list[list[Reg]]) -> list[Reg]:
    flat = [one for four in sums for one in four]
    for one in flat:
        c.k.emit("mov.b32", one, 0)
    return flat


def products(warps: int) -> Benchmark:
    """A slope is cycles of 8 ldmatrix.x4 and 32 mma.sync of each warp."""
    c = Clocked(f"mma_loop_w{warps}", [Param("nothing", ".u32")])
    at, nothing, sums = _begin(c)
    for label, opcode in MMA.items():
        flat = _clear(c, sums)
        in_loops(c, label, partial(_multiply, c, at, nothing, sums, opcode, _alone), flat)
    return c.benchmark(
        f"{ALONG_M * ALONG_N} mma.sync with operands from {ALONG_M + ALONG_N // 2} ldmatrix, in a loop, {warps} warps",
        block=32 * warps, shared_bytes=8192, arguments=nothing_given,
    )  # fmt: skip


def among(kind: str, warps: int) -> Benchmark:
    """As `products`, with some independent instructions after each mma.sync, one kind at a time.

    Args:
        kind: of `AMONG_TYPES`.
    """
    c = Clocked(
        f"mma_among_{kind}_w{warps}", [Param(name, ".u32") for name in ("nothing", *INPUTS)],
        [f".reqntid {32 * warps}"],
    )  # fmt: skip
    at, nothing, sums = _begin(c)
    x, y, z = (c.load(name) for name in INPUTS)
    chains = [c.k.let(".b32", "s", "add.u32", x, index) for index in range(CHAINS)]
    for label, text in AMONG.items():
        for count in AMONG_COUNTS:

            def beside(number: int, text: str = text, count: int = count) -> None:
                for index in range(count):
                    at_chain = number * count + index
                    one, other = chains[at_chain % CHAINS], chains[(at_chain + 1) % CHAINS]
                    _emit(c, text, s=one, o=other, y=y, z=z)

            flat = _clear(c, sums)
            body = partial(_multiply, c, at, nothing, sums, MMA[AMONG_TYPES[kind]], beside)
            in_loops(c, f"{count} {label}", body, [*flat, *chains])

    return c.benchmark(
        f"as mma_loop, {AMONG_TYPES[kind]}, with other instructions after each mma.sync, {warps} warps",
        block=32 * warps, shared_bytes=8192, arguments=_nothing_and_numbers,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    made = [arithmetic(warps) for warps in WARPS]
    made += [products(warps) for warps in WARPS if warps * PRODUCT_REGISTERS <= REGISTERS]
    return made + [among(kind, warps) for kind in AMONG_TYPES for warps in AMONG_WARPS]

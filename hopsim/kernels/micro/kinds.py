"""Latency and rate of products that few programs use: f64, integers of 4 bits and 1, and those with a sparse A.

mma.sync runs in loops, and each turn's operands are read anew out of shared memory, so that what ptxas makes of it stays.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.micro.products import folded, in_loops, nothing_given
from hopsim.kernels.micro.tensor import PAIRS, wgmma
from hopsim.kernels.ptx.text import Param, Reg, address, vector

WARPS: Final = (1, 4, 8, 16)
CHAINS: Final = (1, 4)
PRODUCTS_OF_A_TURN: Final = 16


class Kind(NamedTuple):
    """One product: what follows `mma` in its opcode, and its registers of A, B and C."""

    opcode: str
    counts: tuple[int, int, int]
    bits: int = 32
    is_sparse: bool = False


def _sparse(shape: str, d: str, kind: str, a: int, b: int) -> Kind:
    return Kind(
        f".sp::ordered_metadata.sync.aligned.{shape}.row.col.{d}.{kind}.{kind}.{d}",
        (a, b, 4),
        is_sparse=True,
    )


def _double(shape: str, a: int, b: int, c: int) -> Kind:
    return Kind(f".sync.aligned.{shape}.row.col.f64.f64.f64.f64", (a, b, c), 64)


def _integer(shape: str, kind: str, a: int, b: int, c: int, after: str = "") -> Kind:
    return Kind(f".sync.aligned.{shape}.row.col.s32.{kind}.{kind}.s32{after}", (a, b, c))


KINDS: Final = {
    "m8n8k4 f64": _double("m8n8k4", 1, 1, 2),
    "m16n8k4 f64": _double("m16n8k4", 2, 1, 4),
    "m16n8k8 f64": _double("m16n8k8", 4, 2, 4),
    "m16n8k16 f64": _double("m16n8k16", 8, 4, 4),
    "m8n8k16 s8": _integer("m8n8k16", "s8", 1, 1, 2),
    "m16n8k16 s8": _integer("m16n8k16", "s8", 2, 1, 4),
    "m8n8k32 s4": _integer("m8n8k32", "s4", 1, 1, 2),
    "m16n8k64 s4": _integer("m16n8k64", "s4", 4, 2, 4),
    "m16n8k64 u4": _integer("m16n8k64", "u4", 4, 2, 4),
    "m16n8k128 b1 and": _integer("m16n8k128", "b1", 2, 1, 4, ".and.popc"),
    "m16n8k256 b1 and": _integer("m16n8k256", "b1", 4, 2, 4, ".and.popc"),
    "m16n8k256 b1 xor": _integer("m16n8k256", "b1", 4, 2, 4, ".xor.popc"),
    "sparse m16n8k16 bf16": _sparse("m16n8k16", "f32", "bf16", 2, 2),
    "sparse m16n8k32 bf16": _sparse("m16n8k32", "f32", "bf16", 4, 4),
    "sparse m16n8k16 tf32": _sparse("m16n8k16", "f32", "tf32", 4, 4),
    "sparse m16n8k64 s8": _sparse("m16n8k64", "s32", "s8", 4, 4),
    "sparse m16n8k64 e4m3": _sparse("m16n8k64", "f32", "e4m3", 4, 4),
    "sparse m16n8k128 s4": _sparse("m16n8k128", "s32", "s4", 4, 4),
    "sparse m16n8k128 u4": _sparse("m16n8k128", "s32", "u4", 4, 4),
}
MANY_REGISTERS: Final = ("m16n8k16 f64", "sparse m16n8k64 e4m3")
"""Too many for sixteen warps."""
WGMMA: Final = (
    *(("bf16", n, warpgroups, False) for n in (8, 64, 128, 192, 256) for warpgroups in (1, 2)),
    *(("bf16", n, 1, True) for n in (64, 128, 256)),
    *((kind, n, 1, False) for kind in ("tf32", "e4m3", "s8") for n in (64, 256)),
)
"""Type, N, warpgroups, and whether A comes from registers."""


def _multiply(c: Clocked, kind: Kind, at: Reg, nothing: Reg, sums: list[list[Reg]]) -> None:
    """Read operands and multiply them into the sums in turn."""
    k = c.k
    register, size = (".f64", 8) if kind.bits == 64 else (".b32", 4)
    k.emit("xor.b32", at, at, nothing)  # the same place, for all that ptxas knows
    a, b = k.regs(register, "a", kind.counts[0]), k.regs(register, "b", kind.counts[1])
    for index, one in enumerate((*a, *b)):
        k.emit(f"ld.shared{register}", one, address(at, 32 * size * index))
    metadata = [k.let(".b32", "metadata", "mov.b32", PAIRS), 0] if kind.is_sparse else []
    for number in range(PRODUCTS_OF_A_TURN):
        d = vector(sums[number % len(sums)])
        k.emit(f"mma{kind.opcode}", d, vector(a), vector(b), d, *metadata)


def _doubles_folded(c: Clocked, kept: list[Reg]) -> Reg:
    total = c.k.let(".f64", "total", "mov.f64", kept[0])
    for one in kept[1:]:
        c.k.emit("add.f64", total, total, one)
    low, high = c.k.regs(".b32", "half", 2)
    c.k.emit("mov.b64", f"{{{low}, {high}}}", total)
    c.k.emit("xor.b32", low, low, high)
    return low


def products(label: str, warps: int) -> Benchmark:
    """One chain of products, and four; a slope is cycles of 16 products of each warp, and of reading their operands."""
    kind = KINDS[label]
    name = label.replace(" ", "_")
    c = Clocked(f"mma_kind_{name}_w{warps}", [Param("nothing", ".u32")])
    nothing = c.load("nothing")
    c.fill_shared(1024, 0)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    at = c.k.let(".b32", "at", "mad.lo.u32", lane, kind.bits // 8, c.shared)
    for chains in CHAINS:
        register = ".f64" if kind.bits == 64 else ".b32"
        sums = [c.k.regs(register, "d", kind.counts[2]) for _ in range(chains)]
        for one in (one for sum_ in sums for one in sum_):
            c.k.emit(
                *(
                    ("mov.f64", one, "0d0000000000000000")
                    if kind.bits == 64
                    else ("mov.b32", one, 0)
                )
            )
        kept = [one for sum_ in sums for one in sum_]
        body = partial(_multiply, c, kind, at, nothing, sums)
        in_loops(c, f"{chains} chains", body, kept, _doubles_folded if kind.bits == 64 else folded)
    return c.benchmark(
        f"mma.sync {label}, one chain and four, in a loop, {warps} warps",
        block=32 * warps, shared_bytes=8192, arguments=nothing_given,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        products(label, warps)
        for label in KINDS
        for warps in WARPS
        if warps < WARPS[-1] or label not in MANY_REGISTERS
    ]
    return [*found, *(wgmma(*one, is_sparse=True) for one in WGMMA)]

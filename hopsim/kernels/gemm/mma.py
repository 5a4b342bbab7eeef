"""What the `mma.sync` schedules share: threads and values of the tile, products, who stores what.

Four warps tile C as CuTe's TiledMMA does with an atom layout of 2x2 and a value tile of 1x2: together
they cover 32 x 32 of C, two atoms m16n8 a warp along N, and repeat over the tile.

| | rows | columns |
|---|---|---|
| warp w | 16 (w mod 2), every 32 rows | 8 (w div 2), every 16 columns |
| lane l, value v | l div 4, 8 more for v = 2, 3 | 2 (l mod 4) + v mod 2 |
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.frame import POINTERS, SHARED_SYMBOL, SIZES, Place
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.ptx.pipeline import emit_ceil_div
from hopsim.kernels.ptx.text import PtxEntry, Reg, address, vector
from hopsim.layout.operand_tile import ATOM_K_BYTES

MMA_PARAMS = POINTERS + SIZES
WARPS = 4
ROWS, COLUMNS = 32, 16
"""Of C after which a warp's atoms repeat."""

_ATOM_M, _ATOM_N = 16, 8
_PACKED = {"bf16": "cvt.rn.bf16x2.f32", "fp16": "cvt.rn.f16x2.f32"}


@dataclass(frozen=True, slots=True)
class Threads:
    """This thread's place in the tile.

    Args:
        row, column: first row and column of its warp.
        group: row of its lane in an atom.  quad: lane among the four that share a row.
    """

    row: Reg
    column: Reg
    group: Reg
    quad: Reg


def emit_place_and_threads(b: PtxEntry, plan: GemmPlan) -> tuple[Place, Threads]:
    """Write the start of the kernel."""
    b.comment("who am I")
    smem = b.let(".b32", "smem", "mov.b32", SHARED_SYMBOL)
    thread = b.let(".b32", "thread", "mov.u32", "%tid.x")
    lane = b.let(".b32", "lane", "and.b32", thread, 31)
    warp = b.let(".b32", "warp", "shr.u32", thread, 5)
    warp_m = b.let(".b32", "warp_m", "and.b32", warp, 1)
    warp_n = b.let(".b32", "warp_n", "shr.u32", warp, 1)
    threads = Threads(
        row=b.let(".b32", "warp_row", "mul.lo.s32", warp_m, _ATOM_M),
        column=b.let(".b32", "warp_column", "mul.lo.s32", warp_n, _ATOM_N),
        group=b.let(".b32", "group_row", "shr.u32", lane, 2),
        quad=b.let(".b32", "quad", "and.b32", lane, 3),
    )
    b.comment("parameters")
    m, n, k = (b.let(".b32", name, "ld.param.u32", address(name)) for name in ("m", "n", "k"))
    k_blocks = emit_ceil_div(b, "k_blocks", k, plan.tile.k)
    index = b.let(".b32", "cta", "mov.u32", "%ctaid.x")
    place = Place(
        smem=smem, thread=thread, warp=warp, lane=lane, m=m, n=n, k=k, k_blocks=k_blocks,
        rank_m=None, rank_n=None, index=index,
    )  # fmt: skip
    return place, threads


def emit_pointer(b: PtxEntry, name: str) -> Reg:
    """Write the global address in parameter `name`."""
    generic = b.let(".b64", f"{name}_param", "ld.param.u64", address(name))
    return b.let(".b64", f"{name}_global", "cvta.to.global.u64", generic)


def emit_row_address(
    b: PtxEntry, name: str, base: Reg, row: Reg, rows: Reg, pitch_bytes: Reg, along: Reg
) -> Reg:
    """Write the address of byte `along` of a row; a row outside is taken for the last one."""
    last = b.let(".b32", f"{name}_last", "sub.s32", rows, 1)
    inside = b.let(".b32", f"{name}_inside", "min.s32", row, last)
    offset = b.let(".b64", f"{name}_offset", "mul.wide.u32", inside, pitch_bytes)
    wide = b.let(".b64", f"{name}_along", "cvt.u64.u32", along)
    at_row = b.let(".b64", f"{name}_row_addr", "add.s64", base, offset)
    return b.let(".b64", f"{name}_addr", "add.s64", at_row, wide)


def emit_accumulators(b: PtxEntry, plan: GemmPlan) -> list[list[list[Reg]]]:
    """Write zeroed accumulators: for each atom along M and each along N of a warp, four registers."""
    along_m, along_n = plan.tile.m // ROWS, plan.tile.n // COLUMNS
    kind, zero = (".f32", "0f00000000") if plan.dtype.sum_ptx == "f32" else (".b32", "0")
    flat = b.regs(kind, "acc", along_m * along_n * 4)
    for register in flat:
        b.emit(f"mov{kind}", register, zero)
    quads = [flat[i : i + 4] for i in range(0, len(flat), 4)]
    return [quads[i * along_n : (i + 1) * along_n] for i in range(along_m)]


def emit_products(
    b: PtxEntry,
    plan: GemmPlan,
    accumulators: list[list[list[Reg]]],
    a: list[list[Reg]],
    b_fragments: list[list[Reg]],
) -> None:
    """Write the products of one slice of K.

    Args:
        a: for each atom along M its four registers.  b_fragments: for each along N its two.
    """
    kind, k = plan.dtype.ptx, ATOM_K_BYTES // plan.dtype.size
    sums = plan.dtype.sum_ptx
    form = f"mma.sync.aligned.m16n8k{k}.row.col.{sums}.{kind}.{kind}.{sums}"
    for a_registers, row in zip(a, accumulators, strict=True):
        for b_registers, fragment in zip(b_fragments, row, strict=True):
            b.emit(
                form, vector(fragment), vector(a_registers), vector(b_registers), vector(fragment)
            )


def emit_store_pair(
    b: PtxEntry, plan: GemmPlan, space: str, to: str, pair: list[Reg], guard: Reg | None = None
) -> None:
    """Write the store of two neighbouring elements of C, converted to its type."""
    if plan.out_dtype.size == 4:
        b.emit(f"st.{space}.v2.f32", to, vector(pair), guard=guard)
        return
    packed = b.let(".b32", "packed", _PACKED[plan.out_dtype.name], pair[1], pair[0])
    b.emit(f"st.{space}.b32", to, packed, guard=guard)

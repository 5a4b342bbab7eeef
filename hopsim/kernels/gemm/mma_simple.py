"""Schedule `mma-simple`: global memory to registers, `mma.sync`, registers to global memory.

The Ampere way in its simplest form: K in slices of one atom, every lane loads the words of its own
fragments, nothing is shared and nothing is ahead.  What a row of A or B costs is paid by every warp that
needs it.
"""

from __future__ import annotations

from hopsim.kernels.gemm.frame import Place, new_entry
from hopsim.kernels.gemm.mma import (
    COLUMNS,
    MMA_PARAMS,
    ROWS,
    Threads,
    emit_accumulators,
    emit_place_and_threads,
    emit_pointer,
    emit_products,
    emit_row_address,
    emit_store_pair,
)
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.scheduler import emit_origin, emit_walk
from hopsim.kernels.ptx.text import PtxEntry, Reg, address
from hopsim.layout.operand_tile import ATOM_K_BYTES

_HALF_BYTES = ATOM_K_BYTES // 2


def emit_mma_simple(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    b = new_entry(name, plan, MMA_PARAMS)
    place, threads = emit_place_and_threads(b, plan)
    b.comment("the tile of this CTA")
    row, col = emit_origin(b, plan, place, emit_walk(b, plan, place), place.index)
    b.comment("rows of A and B that this lane loads")
    pitch = b.let(".b32", "pitch", "mul.lo.s32", place.k, plan.dtype.size)
    word = b.let(".b32", "word", "shl.b32", threads.quad, 2)
    a_rows = _emit_rows(
        b, "a", row, threads.row, threads.group, plan.tile.m, 8, place.m, pitch, word
    )
    b_rows = _emit_rows(
        b, "b", col, threads.column, threads.group, plan.tile.n, COLUMNS, place.n, pitch, word
    )
    accumulators = emit_accumulators(b, plan)

    b.comment("slices of K")
    k_bytes = b.let(".b32", "k_bytes", "mov.b32", 0)
    loop = b.label("K_LOOP")
    b.place(loop)
    for _ in range(plan.k_steps):
        halves = [_emit_inside(b, k_bytes, half * _HALF_BYTES, pitch) for half in range(2)]
        low_high = [_emit_words(b, "a", address_of, halves) for address_of in a_rows]
        # an atom's rows: g, then g + 8; its registers: both rows of the low half, then of the high
        a = [
            [upper[0], lower[0], upper[1], lower[1]]
            for upper, lower in zip(low_high[::2], low_high[1::2], strict=True)
        ]
        b_fragments = [_emit_words(b, "b", address_of, halves) for address_of in b_rows]
        emit_products(b, plan, accumulators, a, b_fragments)
        for address_of in a_rows + b_rows:
            b.emit("add.s64", address_of, address_of, ATOM_K_BYTES)
        b.emit("add.s32", k_bytes, k_bytes, ATOM_K_BYTES)
    more = b.let(".pred", "more_k", "setp.lt.s32", k_bytes, pitch)
    b.emit("bra", loop, guard=more)
    _emit_store(b, plan, place, threads, row, col, accumulators)
    b.emit("ret")
    return b


def _emit_rows(
    b: PtxEntry,
    name: str,
    first: Reg,
    warp_first: Reg,
    group: Reg,
    extent: int,
    step: int,
    rows: Reg,
    pitch: Reg,
    word: Reg,
) -> list[Reg]:
    """Write the addresses of the rows of this lane: for A, 8 apart in pairs that repeat with the warps."""
    base = emit_pointer(b, name)
    in_warp = b.let(".b32", f"{name}_first", "add.s32", first, warp_first)
    own = b.let(".b32", f"{name}_own", "add.s32", in_warp, group)
    offsets = (
        [i + half for i in range(0, extent, ROWS) for half in (0, 8)]
        if name == "a"
        else list(range(0, extent, step))
    )
    addresses: list[Reg] = []
    for offset in offsets:
        row = b.let(".b32", f"{name}_row", "add.s32", own, offset)
        addresses.append(emit_row_address(b, name, base, row, rows, pitch, word))
    return addresses


def _emit_inside(b: PtxEntry, k_bytes: Reg, offset: int, pitch: Reg) -> Reg:
    """Write whether 16 bytes of each row at `k_bytes + offset` lie inside K (all do or none does)."""
    at = b.let(".b32", "k_half", "add.s32", k_bytes, offset)
    return b.let(".pred", "in_k", "setp.lt.s32", at, pitch)


def _emit_words(b: PtxEntry, name: str, row_address: Reg, halves: list[Reg]) -> list[Reg]:
    """Write the loads of this lane's words of a row: one of each half of the slice, 0 outside K."""
    words = b.regs(".b32", f"{name}_words", 2)
    for half, word in enumerate(words):
        b.emit("mov.b32", word, 0)
        at = address(row_address, half * _HALF_BYTES)
        b.emit("ld.global.b32", word, at, guard=halves[half])
    return words


def _emit_store(
    b: PtxEntry,
    plan: GemmPlan,
    place: Place,
    threads: Threads,
    row: Reg,
    col: Reg,
    accumulators: list[list[list[Reg]]],
) -> None:
    b.comment("epilogue")
    size = plan.out_dtype.size
    c = emit_pointer(b, "c")
    pitch = b.let(".b32", "c_pitch", "mul.lo.s32", place.n, size)
    warp_row = b.let(".b32", "c_first_row", "add.s32", row, threads.row)
    own_row = b.let(".b32", "c_own_row", "add.s32", warp_row, threads.group)
    warp_col = b.let(".b32", "c_first_col", "add.s32", col, threads.column)
    own_col = b.let(".b32", "c_own_col", "mad.lo.s32", threads.quad, 2, warp_col)
    in_columns: list[Reg] = []
    for j in range(plan.tile.n // COLUMNS):
        at_col = b.let(".b32", "c_col", "add.s32", own_col, j * COLUMNS)
        in_columns.append(b.let(".pred", "in_n", "setp.lt.s32", at_col, place.n))
    along = b.let(".b32", "c_along", "mul.lo.s32", own_col, size)
    for i, atoms in enumerate(accumulators):
        for half in range(2):
            at_row = b.let(".b32", "c_row", "add.s32", own_row, i * ROWS + half * 8)
            in_m = b.let(".pred", "in_m", "setp.lt.s32", at_row, place.m)
            start = emit_row_address(b, "c", c, at_row, place.m, pitch, along)
            for j, fragment in enumerate(atoms):
                inside = b.let(".pred", "inside", "and.pred", in_m, in_columns[j])
                to = address(start, j * COLUMNS * size)
                pair = fragment[2 * half : 2 * half + 2]
                emit_store_pair(b, plan, "global", to, pair, guard=inside)

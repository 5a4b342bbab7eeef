"""Schedule `mma-multistage`: `cp.async` into a ring of swizzled stages, `ldmatrix`, `mma.sync`.

The Ampere way as it is written for speed: 16 bytes a copy, `stages - 1` k-blocks ahead, one barrier a
k-block, and an epilogue through shared memory that writes whole rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.frame import Place, new_entry
from hopsim.kernels.gemm.mma import (
    COLUMNS,
    MMA_PARAMS,
    ROWS,
    WARPS,
    Threads,
    emit_accumulators,
    emit_place_and_threads,
    emit_pointer,
    emit_products,
    emit_row_address,
    emit_store_pair,
)
from hopsim.kernels.gemm.place import emit_place
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.scheduler import emit_origin, emit_walk
from hopsim.kernels.ptx.text import PtxEntry, Reg, address, vector
from hopsim.layout.operand_tile import ATOM_K_BYTES, OperandTile

_CHUNK_BYTES = 16
_THREADS = 32 * WARPS


def staging_pitch(plan: GemmPlan) -> int:
    """Return the bytes between rows of C in the staging: 16 more than a row, so that 8 rows meet 32 banks."""
    return plan.tile.n * plan.out_dtype.size + _CHUNK_BYTES


def shared_bytes(plan: GemmPlan) -> int:
    """Return the shared memory of the ring, which the staging of C uses again."""
    return max(plan.stages * plan.stage_bytes, ROWS * staging_pitch(plan))


@dataclass(frozen=True, slots=True)
class _Copies:
    """What this thread copies of one operand in each stage: 16 bytes of every `rows_apart`-th row.

    Args:
        sources: global address of each, moved on with K.
        place: shared address of the first in slot 0.
        rows_apart: rows between one and the next.
        in_rows: of each, whether its row is loaded, else it is zeros; None: it always is.
    """

    sources: list[Reg]
    place: Reg
    rows_apart: int
    in_rows: list[Reg | None]


def emit_mma_multistage(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule.

    Raises: LaunchError: K of the tile is not 64, 128 or 256 bytes.
    """
    b = new_entry(name, plan, MMA_PARAMS)
    place, threads = emit_place_and_threads(b, plan)
    b.comment("the tile of this CTA")
    row, col = emit_origin(b, plan, place, emit_walk(b, plan, place), place.index)

    b.comment("what this thread copies")
    chunks = plan.tile.k * plan.dtype.size // _CHUNK_BYTES
    if chunks not in (4, 8, 16):
        raise LaunchError(
            f"tile k must be 64, 128 or 256 bytes in schedule mma-multistage, got {plan.tile.k} "
            f"{plan.dtype.name}",
            where="gemm",
        )
    chunk = b.let(".b32", "chunk", "and.b32", place.thread, chunks - 1)
    along = b.let(".b32", "along", "shl.b32", chunk, 4)
    own_row = b.let(".b32", "copy_row", "shr.u32", place.thread, chunks.bit_length() - 1)
    pitch = b.let(".b32", "pitch", "mul.lo.s32", place.k, plan.dtype.size)
    a_copies = _emit_copies(b, "a", plan.a, place.smem, row, place.m, own_row, pitch, along)
    b_smem = b.let(".b32", "b_smem", "add.s32", place.smem, plan.b_offset)
    b_copies = _emit_copies(b, "b", plan.b, b_smem, col, place.n, own_row, pitch, along)
    k_bytes = b.let(".b32", "k_bytes", "mov.b32", along, note="of the next copy")

    b.comment("what this lane reads")
    a_place, b_place = _emit_reads(b, plan, place, threads, b_smem)

    b.comment("fill the ring but for one slot")
    fill = b.let(".b32", "fill_slot", "mov.b32", 0)
    for _ in range(plan.stages - 1):
        _emit_copy_stage(b, plan, a_copies, b_copies, fill, k_bytes, pitch)
        b.emit("add.s32", fill, fill, plan.stage_bytes)
    accumulators = emit_accumulators(b, plan)

    b.comment("k-blocks")
    slot = b.let(".b32", "slot", "mov.b32", 0)
    remaining = b.let(".b32", "remaining", "mov.b32", place.k_blocks)
    loop = b.label("K_LOOP")
    b.place(loop)
    b.emit("cp.async.wait_group", plan.stages - 2, note="this thread's copies of the slot")
    b.emit("bar.sync", 0, note="all copies of it; and the slot before is read")
    _emit_copy_stage(b, plan, a_copies, b_copies, fill, k_bytes, pitch)
    _emit_next_slot(b, plan, fill)
    _emit_multiply_stage(b, plan, accumulators, a_place, b_place, slot)
    _emit_next_slot(b, plan, slot)
    b.emit("sub.s32", remaining, remaining, 1)
    more = b.let(".pred", "more", "setp.ne.s32", remaining, 0)
    b.emit("bra", loop, guard=more)
    b.emit("cp.async.wait_all", note="copies beyond K write zeros")

    _emit_epilogue(b, plan, place, threads, row, col, accumulators)
    b.emit("ret")
    return b


def _emit_copies(
    b: PtxEntry,
    name: str,
    operand: OperandTile,
    smem: Reg,
    first: Reg,
    rows: Reg,
    own_row: Reg,
    pitch: Reg,
    along: Reg,
) -> _Copies:
    base = emit_pointer(b, name)
    chunks = operand.k * operand.element_bytes // _CHUNK_BYTES
    rows_apart = _THREADS // chunks
    at_row = b.let(".b32", f"{name}_copy_row", "add.s32", first, own_row)
    sources: list[Reg] = []
    in_rows: list[Reg | None] = []
    for offset in range(0, _rows_in_atoms(operand), rows_apart):
        row = b.let(".b32", f"{name}_row", "add.s32", at_row, offset)
        sources.append(emit_row_address(b, name, base, row, rows, pitch, along))
        left = (operand.loaded_rows or operand.rows) - offset
        always = left >= rows_apart
        in_rows.append(None if always else b.let(".pred", "in_rows", "setp.lt.s32", own_row, left))
    return _Copies(
        sources, emit_place(b, name, operand, smem, own_row, along), rows_apart, in_rows
    )  # fmt: skip


def _rows_in_atoms(operand: OperandTile) -> int:
    """Return the rows of the atoms that have rows which are loaded."""
    return -(-(operand.loaded_rows or operand.rows) // ROWS) * ROWS


def _emit_reads(
    b: PtxEntry, plan: GemmPlan, place: Place, threads: Threads, b_smem: Reg
) -> tuple[Reg, Reg]:
    """Write this lane's ldmatrix addresses in slot 0: of A for one atom, of B for two side by side."""
    low = b.let(".b32", "lane_low", "and.b32", place.lane, 7)
    bit_3 = b.let(".b32", "lane_bit_3", "bfe.u32", place.lane, 3, 1)
    bit_4 = b.let(".b32", "lane_bit_4", "shr.u32", place.lane, 4)
    a_eight = b.let(".b32", "a_read_row", "mad.lo.s32", bit_3, 8, low)
    a_row = b.let(".b32", "a_read_row", "add.s32", a_eight, threads.row)
    a_along = b.let(".b32", "a_read_along", "shl.b32", bit_4, 4)
    b_sixteen = b.let(".b32", "b_read_row", "mad.lo.s32", bit_4, COLUMNS, low)
    b_row = b.let(".b32", "b_read_row", "add.s32", b_sixteen, threads.column)
    b_along = b.let(".b32", "b_read_along", "shl.b32", bit_3, 4)
    return (
        emit_place(b, "a_read", plan.a, place.smem, a_row, a_along),
        emit_place(b, "b_read", plan.b, b_smem, b_row, b_along),
    )


def _emit_copy_stage(
    b: PtxEntry, plan: GemmPlan, a: _Copies, b_copies: _Copies, slot: Reg, k_bytes: Reg, pitch: Reg
) -> None:
    """Write this thread's copies of the next k-block into `slot` as one group; zeros beyond K."""
    inside = b.let(".pred", "in_k", "setp.lt.s32", k_bytes, pitch)
    count = b.let(".b32", "copy_bytes", "selp.b32", _CHUNK_BYTES, 0, inside)
    for copies, operand in ((a, plan.a), (b_copies, plan.b)):
        to = b.let(".b32", "copy_to", "add.s32", copies.place, slot)
        for i, (source, in_row) in enumerate(zip(copies.sources, copies.in_rows, strict=True)):
            offset = i * copies.rows_apart * operand.swizzle.width_bytes
            own = count
            if in_row is not None:
                own = b.let(".b32", "own_bytes", "selp.b32", count, 0, in_row)
            b.emit(
                "cp.async.cg.shared.global", address(to, offset), address(source), _CHUNK_BYTES, own
            )  # fmt: skip
            b.emit("add.s64", source, source, plan.tile.k * plan.dtype.size)
    b.emit("cp.async.commit_group")
    b.emit("add.s32", k_bytes, k_bytes, plan.tile.k * plan.dtype.size)


def _emit_next_slot(b: PtxEntry, plan: GemmPlan, slot: Reg) -> None:
    b.emit("add.s32", slot, slot, plan.stage_bytes)
    wraps = b.let(".pred", "wraps", "setp.eq.s32", slot, plan.stages * plan.stage_bytes)
    b.emit("selp.b32", slot, 0, slot, wraps)


def _emit_multiply_stage(
    b: PtxEntry,
    plan: GemmPlan,
    accumulators: list[list[list[Reg]]],
    a_place: Reg,
    b_place: Reg,
    slot: Reg,
) -> None:
    a_slot = b.let(".b32", "a_slot", "add.s32", a_place, slot)
    b_slot = b.let(".b32", "b_slot", "add.s32", b_place, slot)
    for step in range(plan.k_steps):
        a = [
            _emit_ldmatrix(b, "a", plan.a, a_slot, step, row)
            for row in range(0, _rows_in_atoms(plan.a), ROWS)
        ]
        b_fragments: list[list[Reg]] = []
        for j in range(0, plan.tile.n, 2 * COLUMNS):
            both = _emit_ldmatrix(b, "b", plan.b, b_slot, step, j)
            b_fragments += [both[:2], both[2:]]
        emit_products(b, plan, accumulators[: len(a)], a, b_fragments)


def _emit_ldmatrix(
    b: PtxEntry, name: str, operand: OperandTile, base: Reg, step: int, row: int
) -> list[Reg]:
    """Write the read of four matrices, `row` rows further and `step` steps along K."""
    within = step * ATOM_K_BYTES % operand.swizzle.width_bytes
    place = b.let(".b32", f"{name}_step", "xor.b32", base, within) if within else base
    registers = b.regs(".b32", f"{name}_frag", 4)
    offset = operand.step_offset(step) - within + operand.row_offset(row)
    b.emit(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16", vector(registers), address(place, offset)
    )  # fmt: skip
    return registers


def _emit_epilogue(
    b: PtxEntry,
    plan: GemmPlan,
    place: Place,
    threads: Threads,
    row: Reg,
    col: Reg,
    accumulators: list[list[list[Reg]]],
) -> None:
    """Write 32 rows at a time to shared memory, and from there to C, 16 bytes a thread."""
    b.comment("epilogue")
    size, pitch = plan.out_dtype.size, staging_pitch(plan)
    own_row = b.let(".b32", "stage_row", "add.s32", threads.row, threads.group)
    own_col = b.let(".b32", "stage_col", "mad.lo.s32", threads.quad, 2, threads.column)
    at_row = b.let(".b32", "stage_at", "mad.lo.s32", own_row, pitch, place.smem)
    write = b.let(".b32", "stage_write", "mad.lo.s32", own_col, size, at_row)

    chunks = plan.tile.n * size // _CHUNK_BYTES
    c = emit_pointer(b, "c")
    c_pitch = b.let(".b32", "c_pitch", "mul.lo.s32", place.n, size)
    reads: list[tuple[Reg, Reg, Reg, Reg]] = []
    for first in range(0, ROWS * chunks, _THREADS):
        item = b.let(".b32", "item", "add.s32", place.thread, first)
        item_row = b.let(".b32", "item_row", "div.u32", item, chunks)
        item_chunk = b.let(".b32", "item_chunk", "rem.u32", item, chunks)
        shift = b.let(".b32", "item_along", "shl.b32", item_chunk, 4)
        line = b.let(".b32", "item_line", "mad.lo.s32", item_row, pitch, place.smem)
        read = b.let(".b32", "item_read", "add.s32", line, shift)
        item_col = b.let(".b32", "item_col", "mad.lo.s32", item_chunk, _CHUNK_BYTES // size, col)
        in_n = b.let(".pred", "in_n", "setp.lt.s32", item_col, place.n)
        along = b.let(".b32", "c_along", "mul.lo.s32", item_col, size)
        first_row = b.let(".b32", "c_first_row", "add.s32", item_row, row)
        reads.append((read, first_row, in_n, along))

    for i, atoms in enumerate(accumulators):
        b.emit("bar.sync", 0, note="the memory is free")
        for j, fragment in enumerate(atoms):
            for half in range(2):
                to = address(write, half * 8 * pitch + j * COLUMNS * size)
                emit_store_pair(b, plan, "shared", to, fragment[2 * half : 2 * half + 2])
        b.emit("bar.sync", 0)
        for read, first_row, in_n, along in reads:
            words = b.regs(".b32", "c_words", 4)
            b.emit("ld.shared.v4.b32", vector(words), address(read))
            c_row = b.let(".b32", "c_row", "add.s32", first_row, i * ROWS)
            in_m = b.let(".pred", "in_m", "setp.lt.s32", c_row, place.m)
            inside = b.let(".pred", "inside", "and.pred", in_m, in_n)
            to_row = emit_row_address(b, "c", c, c_row, place.m, c_pitch, along)
            b.emit("st.global.v4.b32", address(to_row), vector(words), guard=inside)

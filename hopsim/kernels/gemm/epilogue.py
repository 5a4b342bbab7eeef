"""The way of a tile out: registers -> swizzled shared memory -> TMA store, one box at a time.

Each warpgroup stages and stores its own rows, so its 128 threads are all that must meet.  Boxes
rotate through `store_buffers` buffers; before the barrier that publishes a box, the issuing
thread makes sure that the buffer of the next box has been read by its last store.

TMA clips what lies outside C.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.plan import WARPGROUP_THREADS, GemmPlan
from hopsim.kernels.gemm.tile import ATOM_M
from hopsim.kernels.ptx.text import PtxEntry, Reg, address, vector
from hopsim.layout.swizzle import Swizzle

_UNIT_BYTES = 32
"""Bytes of a row that one `stmatrix.x4` (16 columns) or a pair of f32 stores (8 columns) writes."""

_WARP_ROWS = 16
_STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
_REDUCE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
_PACKED = {"bf16": "cvt.rn.bf16x2.f32", "fp16": "cvt.rn.f16x2.f32"}


@dataclass(frozen=True, slots=True)
class Staging:
    """A warpgroup's way out.

    Args:
        base: shared address of its staging buffers.
        writes: for each 32-byte unit of a staged row, where this thread writes in buffer 0; without
            a swizzle for the first one only.
        barrier: id of the warpgroup's named barrier.
        issuer: predicate, true in the thread that issues its stores.
        row_offset: first row of the warpgroup in the tile; None for the first of one.
    """

    base: Reg
    writes: list[Reg]
    barrier: Reg | int
    issuer: Reg
    row_offset: Reg | None


def emit_staging(
    b: PtxEntry, plan: GemmPlan, frame: Frame, warpgroup: Reg | None, own_warp: Reg
) -> Staging:
    """Write the addresses of the epilogue.

    Args:
        warpgroup: index of the computing warpgroup, None when there is one.
        own_warp: warp of the warpgroup, 0 to 3.
    """
    b.comment("staging of C")
    base = b.let(".b32", "staging", "add.s32", frame.smem, plan.staging_offset)
    row_offset, barrier = None, 1
    if warpgroup is not None:
        base = b.let(".b32", "staging", "mad.lo.s32", warpgroup, plan.staging_bytes, base)
        if not plan.takes_turns:
            row_offset = b.let(".b32", "warpgroup_row", "mul.lo.s32", warpgroup, plan.warpgroup_m)
        barrier = b.let(".b32", "barrier", "add.s32", warpgroup, 1)
    in_first = b.let(".pred", "in_first_warp", "setp.eq.s32", own_warp, 0)
    issuer = b.let(".pred", "issuer", "and.pred", frame.elected, in_first)

    if plan.out_dtype.size == 2:
        lane_row = b.let(".b32", "lane_row", "and.b32", frame.lane, _WARP_ROWS - 1)
        half = b.let(".b32", "half", "shr.u32", frame.lane, 4)
        lane_byte = b.let(".b32", "lane_byte", "shl.b32", half, 4)
    else:
        lane_row = b.let(".b32", "lane_row", "shr.u32", frame.lane, 2)
        quarter = b.let(".b32", "quarter", "and.b32", frame.lane, 3)
        lane_byte = b.let(".b32", "lane_byte", "shl.b32", quarter, 3)
    row = b.let(".b32", "staged_row", "mad.lo.s32", own_warp, _WARP_ROWS, lane_row)
    pitch = plan.c_box[0] * plan.out_dtype.size
    at_row = b.let(".b32", "row_addr", "mad.lo.s32", row, pitch, base)
    linear = b.let(".b32", "linear", "add.s32", at_row, lane_byte)
    if plan.c_swizzle is Swizzle.NONE:
        return Staging(base, [linear], barrier, issuer, row_offset)
    moved = b.let(".b32", "row_bits", "shr.u32", linear, 3)
    chunk = b.let(".b32", "chunk_bits", "and.b32", moved, plan.c_swizzle.chunk_mask)
    writes = [b.let(".b32", "write", "xor.b32", linear, chunk, note=plan.c_swizzle.name)]
    for unit in range(1, plan.c_swizzle.width_bytes // _UNIT_BYTES):
        writes.append(b.let(".b32", "write", "xor.b32", writes[0], unit * _UNIT_BYTES))
    return Staging(base, writes, barrier, issuer, row_offset)


def emit_epilogue(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    staging: Staging,
    accumulators: list[list[Reg]],
    row: Reg,
    col: Reg,
) -> None:
    """Write the store of the tile at `row`, `col`; it does not wait for the last stores."""
    b.comment("epilogue")
    if staging.row_offset is not None:
        row = b.let(".b32", "c_row", "add.s32", row, staging.row_offset)
    if plan.persistent:
        b.emit("cp.async.bulk.wait_group.read", 0, guard=staging.issuer, note="the last tile's")
        b.emit("bar.sync", staging.barrier, WARPGROUP_THREADS)
    packed = b.regs(".b32", "packed", 4) if plan.out_dtype.size == 2 else []
    columns = plan.c_box[0]
    along_n = plan.c_columns // columns
    store = _REDUCE if plan.adds_to_c else _STORE
    for box in range(plan.c_boxes):
        atom, across = divmod(box, along_n)
        fragment = accumulators[atom][across * columns // 2 : (across + 1) * columns // 2]
        offset = box % plan.store_buffers * plan.c_box_bytes
        _emit_stage_box(b, plan, staging, fragment, packed, offset)
        b.emit("fence.proxy.async.shared::cta", note="stores above, TMA below")
        if plan.store_buffers < plan.c_boxes and plan.store_buffers - 1 <= box < plan.c_boxes - 1:
            b.emit(
                "cp.async.bulk.wait_group.read", plan.store_buffers - 2, guard=staging.issuer,
                note="the next buffer is free",
            )  # fmt: skip
        b.emit("bar.sync", staging.barrier, WARPGROUP_THREADS)
        at_col = b.let(".b32", "c_col", "add.s32", col, across * columns) if across else col
        at_row = b.let(".b32", "c_row", "add.s32", row, atom * ATOM_M) if atom else row
        b.emit(
            store,
            f"[{frame.map_c}, {vector((at_col, at_row))}]",
            address(staging.base, offset),
            guard=staging.issuer,
        )
        b.emit("cp.async.bulk.commit_group", guard=staging.issuer)


def emit_stores_done(b: PtxEntry, staging: Staging) -> None:
    """Write the wait for all stores, for the end of the kernel."""
    b.emit("cp.async.bulk.wait_group", 0, guard=staging.issuer, note="all of C is written")


def _emit_stage_box(
    b: PtxEntry,
    plan: GemmPlan,
    staging: Staging,
    fragment: list[Reg],
    packed: list[Reg],
    offset: int,
) -> None:
    """Write one box to shared memory; `fragment` is in wgmma's order, 4 registers an 8 columns."""
    if plan.out_dtype.size == 2:
        convert = _PACKED[plan.out_dtype.name]
        for unit, start in enumerate(range(0, len(fragment), 8)):
            pairs = packed[: len(fragment[start : start + 8]) // 2]
            for i, target in enumerate(pairs):
                low, high = fragment[start + 2 * i], fragment[start + 2 * i + 1]
                b.emit(convert, target, high, low)
            if plan.c_swizzle is Swizzle.NONE:
                to = address(staging.writes[0], offset + unit * _UNIT_BYTES)
            else:
                to = address(staging.writes[unit], offset)
            b.emit(f"stmatrix.sync.aligned.m8n8.x{len(pairs)}.shared.b16", to, vector(pairs))
        return
    rows_below = 8 * plan.c_swizzle.width_bytes
    for unit, start in enumerate(range(0, len(fragment), 4)):
        for i in range(2):
            pair = fragment[start + 2 * i : start + 2 * i + 2]
            b.emit(
                "st.shared.v2.f32",
                address(staging.writes[unit], offset + i * rows_below), vector(pair),
            )  # fmt: skip

"""TMA loads of one stage, with multicast where the cluster shares operands.

The CTAs of a cluster row (same rows of C) need the same A, those of a column the same B.  Each
brings its share of the tile and multicasts it to the row or column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.ptx.text import Operand, PtxEntry, Reg, address, vector
from hopsim.layout.operand_tile import OperandTile

_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"


@dataclass(frozen=True, slots=True)
class Share:
    """What this CTA brings of one operand.

    Args:
        row_offset: rows to skip in the tile; None without multicast.
        byte_offset: the same in bytes of the tile.
        mask: CTAs that receive it.
    """

    row_offset: Reg
    byte_offset: Reg
    mask: Reg


@dataclass(frozen=True, slots=True)
class Loads:
    """The shares of A and B; None where the CTA loads the whole tile for itself."""

    a: Share | None
    b: Share | None


def emit_shares(b: PtxEntry, plan: GemmPlan, frame: Frame) -> Loads:
    """Write what this CTA brings, and to whom."""
    along_m, along_n = plan.cluster
    a_share = b_share = None
    if frame.rank_n is not None:
        row_of_ranks = sum(1 << (along_m * j) for j in range(along_n))
        a_share = _emit_share(b, plan.a, "a", frame.rank_n, row_of_ranks, frame.rank_m)
    if frame.rank_m is not None:
        first = frame.rank_n
        if first is not None and along_m > 1:
            first = b.let(".b32", "column_first", "mul.lo.s32", first, along_m)
        column_of_ranks = (1 << along_m) - 1
        b_share = _emit_share(b, plan.b, "b", frame.rank_m, column_of_ranks, first)
    return Loads(a_share, b_share)


def _emit_share(
    b: PtxEntry, operand: OperandTile, name: str, rank: Reg, ranks: int, shift: Reg | None
) -> Share:
    rows = operand.rows // operand.parts
    row_offset = b.let(".b32", f"{name}_share_row", "mul.lo.s32", rank, rows)
    byte_offset = b.let(".b32", f"{name}_share", "mul.lo.s32", rank, operand.share_bytes)
    mask32 = b.let(".b32", f"{name}_mask_bits", "mov.b32", ranks)
    if shift is not None:
        mask32 = b.let(".b32", f"{name}_mask_bits", "shl.b32", mask32, shift)
    mask = b.let(".b16", f"{name}_mask", "cvt.u16.u32", mask32)
    return Share(row_offset, byte_offset, mask)


def emit_share_row(b: PtxEntry, name: str, first: Reg, share: Share | None) -> Reg:
    """Write the first row of an operand that this CTA loads for a tile."""
    if share is None:
        return first
    return b.let(".b32", name, "add.s32", first, share.row_offset)


def emit_stage_loads(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    loads: Loads,
    *,
    slot: Reg,
    full: str,
    k: Operand,
    a_row: Reg,
    b_row: Reg,
    guard: Reg,
) -> None:
    """Write the loads of one stage into the slot at shared address `slot`.

    Args:
        full: address operand of the slot's full barrier.
        k: first element along K.
        a_row, b_row: first rows of A and B that this CTA loads.
        guard: predicate, true in one thread.
    """
    b.emit(
        "mbarrier.arrive.expect_tx.shared::cta.b64", "_", full, plan.loaded_bytes, guard=guard
    )  # fmt: skip
    a_slot = b.let(".b32", "a_slot", "add.s32", slot, loads.a.byte_offset) if loads.a else slot
    b_slot = b.let(".b32", "b_slot", "add.s32", slot, loads.b.byte_offset) if loads.b else slot
    a_boxes = _boxes(b, plan.a, a_row, k)
    b_boxes = _boxes(b, plan.b, b_row, k)
    for i in range(max(plan.a.boxes, plan.b.boxes)):
        if i < plan.a.boxes:
            to = address(a_slot, i * plan.a.slab_bytes)
            _emit_load(b, to, frame.map_a, a_boxes(i), full, loads.a, guard)
        if i < plan.b.boxes:
            to = address(b_slot, plan.b_offset + i * plan.b.slab_bytes)
            _emit_load(b, to, frame.map_b, b_boxes(i), full, loads.b, guard)


def _boxes(
    b: PtxEntry, operand: OperandTile, row: Operand, k: Operand
) -> Callable[[int], tuple[Operand, Operand]]:
    """Return a function that writes the coordinates of box i, innermost first."""
    along, across = (k, row) if operand.major == "K" else (row, k)

    def of(i: int) -> tuple[Operand, Operand]:
        if not i:
            return along, across
        name = "k_slab" if operand.major == "K" else "row_slab"
        return b.let(".b32", name, "add.s32", along, i * operand.line), across

    return of


def _emit_load(
    b: PtxEntry,
    to: str,
    tensor_map: Reg,
    coordinates: tuple[Operand, Operand],
    full: str,
    share: Share | None,
    guard: Reg,
) -> None:
    source = f"[{tensor_map}, {vector(coordinates)}]"
    if share is None:
        b.emit(_LOAD, to, source, full, guard=guard)
    else:
        b.emit(f"{_LOAD}.multicast::cluster", to, source, full, share.mask, guard=guard)

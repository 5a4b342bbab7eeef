"""The ring of stages: its mbarriers, and the cursor that walks around it.

A slot has a `full` barrier (one arrival with the stage's bytes, completed by TMA) and, where a
producer feeds the ring, an `empty` barrier (one arrival from each consumer warp that reads the
slot's copies, in every CTA that the producer's multicast reaches).  On a fresh barrier a wait for
parity 1 passes at once, so the producer starts at parity 1 and finds all slots empty.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.ptx import pipeline as pipe
from hopsim.kernels.ptx.pipeline import Cursor
from hopsim.kernels.ptx.text import PtxEntry, Reg, address


def emit_barriers(b: PtxEntry, plan: GemmPlan, frame: Frame) -> None:
    """Write the initialisation of the barriers, up to the point where all threads may use them."""
    b.comment("barriers")
    readers = plan.slot_warps * (plan.cluster[0] + plan.cluster[1] - 1)
    for stage in range(plan.stages):
        full = address(frame.smem, plan.full_offset + 8 * stage)
        pipe.emit_init(b, full, 1, frame.leader, f"full {stage}")
    for stage in range(plan.stages) if plan.has_producer else ():
        empty = address(frame.smem, plan.empty_offset + 8 * stage)
        pipe.emit_init(b, empty, readers, frame.leader, f"empty {stage}")
    pipe.emit_init_done(b, frame.leader, is_cluster=plan.cluster_size > 1)


def emit_advance(b: PtxEntry, plan: GemmPlan, cursor: Cursor) -> None:
    """Write the step to the next slot; the parity turns when the ring wraps."""
    pipe.emit_advance(b, cursor, plan.stages)


def emit_skip(
    b: PtxEntry, plan: GemmPlan, cursor: Cursor, slots: Reg, guard: Reg | None = None
) -> None:
    """Write a step over `slots` slots, where predicate `guard` is true; the parity turns with each wrap."""
    moved = b.let(".b32", "moved", "add.s32", cursor.stage, slots)
    wraps = b.let(".b32", "wraps", "div.u32", moved, plan.stages)
    odd = b.let(".b32", "odd_wraps", "and.b32", wraps, 1)
    b.emit("mad.lo.s32", cursor.stage, wraps, -plan.stages, moved, guard=guard)
    b.emit("xor.b32", cursor.parity, cursor.parity, odd, guard=guard)


def emit_wait(b: PtxEntry, plan: GemmPlan, barrier: str, parity: Reg, what: str) -> None:
    """Write a wait for the phase of `parity`; in a cluster its arrivals come from other CTAs."""
    scope = ".acquire.cluster" if plan.cluster_size > 1 else ""
    pipe.emit_wait(b, barrier, parity, what, scope)


@dataclass(frozen=True, slots=True)
class Release:
    """How a consumer warp hands a slot back.

    Args:
        base: for each lane, shared::cluster address of `empty[0]` in the CTA that the lane informs.
        lanes: predicate, true in the lanes that inform somebody.
        slot: address of the barrier to arrive on next; set by `emit_remember`.
    """

    base: Reg
    lanes: Reg
    slot: Reg


def emit_release_targets(b: PtxEntry, plan: GemmPlan, frame: Frame) -> Release:
    """Write whom this warp informs: every CTA whose multicast writes into this CTA's slots.

    These are the CTAs of its cluster row and column.  Lane i informs the i-th of them.
    """
    own = b.let(".b32", "empty_base", "add.s32", frame.smem, plan.empty_offset)
    slot = b.reg(".b32", "release_slot")
    if plan.cluster_size == 1:
        return Release(own, frame.elected, slot)
    along_m, along_n = plan.cluster
    targets = along_m + along_n - 1
    lanes = b.let(".pred", "releases", "setp.lt.s32", frame.lane, targets)
    target = b.let(".b32", "target", "min.s32", frame.lane, targets - 1)
    if frame.rank_m is None:
        rank = target
    else:
        rank = b.let(".b32", "row_peer", "mad.lo.s32", target, along_m, frame.rank_m)
        other_m = b.let(".b32", "other_m", "xor.b32", frame.rank_m, 1)
        column_peer = other_m
        if frame.rank_n is not None:
            column_peer = b.let(".b32", "column_peer", "mad.lo.s32", frame.rank_n, along_m, other_m)
        in_row = b.let(".pred", "in_row", "setp.lt.s32", target, along_n)
        rank = b.let(".b32", "peer", "selp.b32", rank, column_peer, in_row)
    base = b.let(".b32", "empty_peer", "mapa.shared::cluster.u32", own, rank)
    return Release(base, lanes, slot)


def emit_remember(b: PtxEntry, release: Release, cursor: Cursor) -> None:
    """Write down the slot that was just read, to be released once its products are done."""
    b.emit("mad.lo.s32", release.slot, cursor.stage, 8, release.base)


def emit_release(b: PtxEntry, plan: GemmPlan, release: Release) -> None:
    """Write the arrival on the remembered slot's empty barriers."""
    if plan.cluster_size == 1:
        form = "mbarrier.arrive.shared::cta.b64"
    elif plan.release_scope == "cta":
        form = "mbarrier.arrive.shared::cluster.b64"
    else:
        form = "mbarrier.arrive.release.cluster.shared::cluster.b64"
    b.emit(form, "_", address(release.slot), guard=release.lanes)

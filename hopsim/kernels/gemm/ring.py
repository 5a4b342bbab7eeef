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
from hopsim.kernels.ptx.text import PtxEntry, Reg, address


@dataclass(frozen=True, slots=True)
class Cursor:
    """A role's place in the ring: the slot, and the parity that its next wait expects."""

    stage: Reg
    parity: Reg


def emit_barriers(b: PtxEntry, plan: GemmPlan, frame: Frame) -> None:
    """Write the initialisation of the barriers, up to the point where all threads may use them."""
    b.comment("barriers")
    readers = plan.slot_warps * (plan.cluster[0] + plan.cluster[1] - 1)
    for stage in range(plan.stages):
        full = address(frame.smem, plan.full_offset + 8 * stage)
        b.emit("mbarrier.init.shared::cta.b64", full, 1, guard=frame.leader, note=f"full {stage}")
    if plan.has_producer:
        for stage in range(plan.stages):
            empty = address(frame.smem, plan.empty_offset + 8 * stage)
            b.emit(
                "mbarrier.init.shared::cta.b64", empty, readers, guard=frame.leader,
                note=f"empty {stage}",
            )  # fmt: skip
    if plan.cluster_size > 1:
        b.emit("fence.mbarrier_init.release.cluster", guard=frame.leader)
        b.emit("barrier.cluster.arrive.aligned")
        b.emit("barrier.cluster.wait.aligned", note="peers' barriers are ready too")
    else:
        b.emit("bar.sync", 0)
    b.emit(
        "fence.proxy.async", guard=frame.leader,
        note="initialised by generic writes, signalled by TMA",
    )  # fmt: skip


def emit_cursor(b: PtxEntry, first_parity: int) -> Cursor:
    """Write a cursor at slot 0."""
    stage = b.let(".b32", "stage", "mov.b32", 0)
    parity = b.let(".b32", "parity", "mov.b32", first_parity)
    return Cursor(stage, parity)


def emit_advance(b: PtxEntry, plan: GemmPlan, cursor: Cursor) -> None:
    """Write the step to the next slot; the parity turns when the ring wraps."""
    wraps = b.reg(".pred", "wraps")
    b.emit("add.s32", cursor.stage, cursor.stage, 1)
    b.emit("setp.eq.s32", wraps, cursor.stage, plan.stages)
    b.emit("selp.b32", cursor.stage, 0, cursor.stage, wraps)
    b.emit("xor.b32", cursor.parity, cursor.parity, 1, guard=wraps)


def emit_skip(
    b: PtxEntry, plan: GemmPlan, cursor: Cursor, slots: Reg, guard: Reg | None = None
) -> None:
    """Write a step over `slots` slots, where predicate `guard` is true; the parity turns with each wrap."""
    moved = b.let(".b32", "moved", "add.s32", cursor.stage, slots)
    wraps = b.let(".b32", "wraps", "div.u32", moved, plan.stages)
    odd = b.let(".b32", "odd_wraps", "and.b32", wraps, 1)
    b.emit("mad.lo.s32", cursor.stage, wraps, -plan.stages, moved, guard=guard)
    b.emit("xor.b32", cursor.parity, cursor.parity, odd, guard=guard)


def emit_slot_barrier(b: PtxEntry, frame: Frame, stage: Reg) -> Reg:
    """Write the base to which `full_offset` or `empty_offset` is added for slot `stage`."""
    return b.let(".b32", "slot_barrier", "mad.lo.s32", stage, 8, frame.smem)


def emit_wait(b: PtxEntry, plan: GemmPlan, barrier: str, parity: Reg, what: str) -> None:
    """Write a wait for the phase of `parity`; in a cluster its arrivals come from other CTAs."""
    ready, again = b.reg(".pred", f"{what}_ready"), b.label(f"WAIT_{what.upper()}")
    scope = ".acquire.cluster" if plan.cluster_size > 1 else ""
    b.place(again)
    b.emit(f"mbarrier.try_wait.parity{scope}.shared::cta.b64", ready, barrier, parity)
    b.emit("bra", again, unless=ready)


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

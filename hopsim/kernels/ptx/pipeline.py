"""What every TMA pipeline writes alike: who a thread is, mbarriers, slots of a ring, tensor copies, descriptors.

It knows no schedule and no tile; kernels that have their own shape of ring build on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopsim.kernels.ptx.text import Operand, PtxEntry, Reg, vector
from hopsim.layout.descriptor import MatrixDescriptor


@dataclass(frozen=True, slots=True)
class Self:
    """Who a thread is.

    Args:
        smem: shared address of the dynamic shared memory.
        thread: thread of the CTA.  warp: warp of the CTA, uniform for ptxas.  lane: lane of the warp.
        elected: predicate, true in one lane of each warp.
        leader: predicate, true in one thread of the CTA, the elected one of warp 0.
    """

    smem: Reg
    thread: Reg
    warp: Reg
    lane: Reg
    elected: Reg
    leader: Reg


def emit_self(b: PtxEntry, shared_symbol: str) -> Self:
    """Write who am I."""
    b.comment("who am I")
    smem = b.let(".b32", "smem", "mov.b32", shared_symbol)
    thread = b.let(".b32", "thread", "mov.u32", "%tid.x")
    lane = b.let(".b32", "lane", "and.b32", thread, 31)
    own_warp = b.let(".b32", "thread_warp", "shr.u32", thread, 5)
    warp = b.let(".b32", "warp", "shfl.sync.idx.b32", own_warp, 0, 31, -1, note="uniform for ptxas")
    elected, leader = b.reg(".pred", "elected"), b.reg(".pred", "leader")
    b.emit("elect.sync", f"{b.reg('.b32', 'elected_lane')}|{elected}", -1)
    in_first = b.let(".pred", "in_warp_0", "setp.eq.s32", warp, 0)
    b.emit("and.pred", leader, elected, in_first)
    return Self(smem, thread, warp, lane, elected, leader)


def emit_map(b: PtxEntry, name: str) -> Reg:
    """Write the generic address of a by-value tensor map."""
    param = b.let(".b64", f"{name}_param", "mov.b64", name)
    return b.let(".b64", name, "cvta.param.u64", param)


def emit_init(b: PtxEntry, barrier: str, arrivals: int, guard: Reg, note: str) -> None:
    """Write the initialisation of one mbarrier."""
    b.emit("mbarrier.init.shared::cta.b64", barrier, arrivals, guard=guard, note=note)


def emit_init_done(b: PtxEntry, leader: Reg, *, is_cluster: bool = False) -> None:
    """Write the point from which all threads and TMA may use the mbarriers of the CTA, or of the cluster's CTAs."""
    if is_cluster:
        b.emit("fence.mbarrier_init.release.cluster", guard=leader)
        b.emit("barrier.cluster.arrive.aligned")
        b.emit("barrier.cluster.wait.aligned", note="peers' barriers are ready too")
    else:
        b.emit("bar.sync", 0)
    b.emit(
        "fence.proxy.async", guard=leader, note="initialised by generic writes, signalled by TMA"
    )


def emit_wait(b: PtxEntry, barrier: str, parity: Operand, what: str, scope: str = "") -> None:
    """Write a wait for the phase of `parity` of an mbarrier of this CTA.

    Args:
        scope: `.acquire.cluster` where arrivals come from other CTAs.
    """
    ready, again = b.reg(".pred", f"{what}_ready"), b.label(f"WAIT_{what.upper()}")
    b.place(again)
    b.emit(f"mbarrier.try_wait.parity{scope}.shared::cta.b64", ready, barrier, parity)
    b.emit("bra", again, unless=ready)


@dataclass(frozen=True, slots=True)
class Cursor:
    """A role's place in a ring: the slot, and the parity that its next wait expects."""

    stage: Reg
    parity: Reg


def emit_cursor(b: PtxEntry, first_parity: int, prefix: str = "") -> Cursor:
    """Write a cursor at slot 0; on a fresh barrier a wait for parity 1 passes at once.

    Args:
        prefix: of its registers' names.
    """
    stage = b.let(".b32", f"{prefix}stage", "mov.b32", 0)
    return Cursor(stage, b.let(".b32", f"{prefix}parity", "mov.b32", first_parity))


def emit_advance(b: PtxEntry, cursor: Cursor, stages: int) -> None:
    """Write the step to the next slot; the parity turns when the ring wraps."""
    if stages == 1:
        b.emit("xor.b32", cursor.parity, cursor.parity, 1)
        return
    wraps = b.reg(".pred", "wraps")
    b.emit("add.s32", cursor.stage, cursor.stage, 1)
    b.emit("setp.eq.s32", wraps, cursor.stage, stages)
    b.emit("selp.b32", cursor.stage, 0, cursor.stage, wraps)
    b.emit("xor.b32", cursor.parity, cursor.parity, 1, guard=wraps)


def emit_slot_barrier(b: PtxEntry, smem: Reg, stage: Reg) -> Reg:
    """Write the base to which a barrier array's offset is added for slot `stage`."""
    return b.let(".b32", "slot_barrier", "mad.lo.s32", stage, 8, smem)


def emit_load(
    b: PtxEntry, to: str, tensor_map: Reg, coordinates: Sequence[Operand], barrier: str, guard: Reg
) -> None:
    """Write a tensor copy into this CTA's shared memory, signalled on `barrier`."""
    b.emit(
        f"cp.async.bulk.tensor.{len(coordinates)}d.shared::cluster.global"
        ".mbarrier::complete_tx::bytes",
        to, f"[{tensor_map}, {vector(coordinates)}]", barrier, guard=guard,
    )  # fmt: skip


def emit_store(
    b: PtxEntry, tensor_map: Reg, coordinates: Sequence[Operand], source: str, guard: Reg
) -> None:
    """Write a tensor copy out of shared memory, of the thread's open bulk group."""
    b.emit(
        f"cp.async.bulk.tensor.{len(coordinates)}d.global.shared::cta.bulk_group",
        f"[{tensor_map}, {vector(coordinates)}]", source, guard=guard,
    )  # fmt: skip


def emit_expect(b: PtxEntry, barrier: str, count_bytes: int, guard: Reg) -> None:
    """Write the one arrival of a full barrier, with the bytes that TMA will bring."""
    b.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, count_bytes, guard=guard)


def emit_arrive(b: PtxEntry, barrier: str, guard: Reg) -> None:
    """Write one arrival on an mbarrier of this CTA."""
    b.emit("mbarrier.arrive.shared::cta.b64", "_", barrier, guard=guard)


def emit_descriptor(
    b: PtxEntry, name: str, shared_addr: Reg, fixed: MatrixDescriptor, note: str = ""
) -> Reg:
    """Write the matrix descriptor `fixed` with a start address that is known at run time."""
    start = b.let(".b32", f"{name}_start", "bfe.u32", shared_addr, 4, 14)
    wide = b.let(".b64", f"{name}_wide", "cvt.u64.u32", start)
    return b.let(".b64", name, "or.b64", wide, fixed.encode(), note=note)


def emit_moved(b: PtxEntry, name: str, descriptor: Reg, offset_bytes: int) -> Reg:
    """Write a descriptor moved by a constant; the sum must stay below 2^18 bytes."""
    if not offset_bytes:
        return descriptor
    return b.let(".b64", name, "add.s64", descriptor, offset_bytes >> 4)


def emit_moved_to(b: PtxEntry, name: str, descriptor: Reg, cursor: Cursor, stage_bytes: int) -> Reg:
    """Write a descriptor moved to a slot of its ring."""
    moved = b.let(".b64", f"{name}_offset", "mul.wide.u32", cursor.stage, stage_bytes >> 4)
    return b.let(".b64", name, "add.s64", descriptor, moved)


def emit_ceil_div(b: PtxEntry, name: str, value: Reg, divisor: int) -> Reg:
    """Write `ceil(value / divisor)` of a value that is not negative, for a constant divisor."""
    padded = b.let(".b32", f"{name}_up", "add.s32", value, divisor - 1)
    if divisor & (divisor - 1) == 0:
        return b.let(".b32", name, "shr.u32", padded, divisor.bit_length() - 1)
    return b.let(".b32", name, "div.s32", padded, divisor)

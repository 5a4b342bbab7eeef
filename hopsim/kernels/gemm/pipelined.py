"""Schedule `pipelined`: one role, a multistage ring of TMA loads, one tile a CTA.

All warps multiply; one thread also feeds the ring.  A stage's products stay in flight while the
next stage's are issued (`wait_group 1`); then all warps meet, and the slot they have left behind is
refilled, `stages - 1` k-blocks ahead.
"""

from __future__ import annotations

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import Frame, emit_frame, new_entry
from hopsim.kernels.gemm.loads import Loads, emit_stage_loads
from hopsim.kernels.gemm.mainloop import emit_products, emit_stage_products
from hopsim.kernels.gemm.padding import emit_padding
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import emit_advance, emit_barriers, emit_wait
from hopsim.kernels.gemm.scheduler import emit_origin, emit_walk
from hopsim.kernels.ptx.pipeline import emit_cursor, emit_slot_barrier
from hopsim.kernels.ptx.text import PtxEntry, Reg, address

_OWN = Loads(None, None)


def emit_pipelined(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    b = new_entry(name, plan)
    frame = emit_frame(b, plan)
    emit_barriers(b, plan, frame)
    b.comment("the tile of this CTA")
    row, col = emit_origin(b, plan, frame, emit_walk(b, plan, frame), frame.index)
    _emit_fill(b, plan, frame, row, col)
    emit_padding(b, plan, frame)

    warpgroup = None
    if plan.warpgroups > 1:
        warpgroup = b.let(".b32", "warpgroup", "shr.u32", frame.warp, 2)
    own_warp = b.let(".b32", "own_warp", "and.b32", frame.warp, 3)
    products = emit_products(b, plan, frame, warpgroup)
    staging = emit_staging(b, plan, frame, warpgroup, own_warp)

    b.comment("first k-block")
    cursor = emit_cursor(b, first_parity=0)
    slot_barrier = emit_slot_barrier(b, frame.smem, cursor.stage)
    emit_wait(b, plan, address(slot_barrier, plan.full_offset), cursor.parity, "full")
    emit_stage_products(b, plan, products, cursor, first=True)
    left_behind = b.let(".b32", "left_behind", "mov.b32", cursor.stage)
    emit_advance(b, plan, cursor)
    refill_k = b.let(".b32", "refill_k", "mov.b32", plan.stages * plan.tile.k)
    remaining = b.let(".b32", "remaining", "sub.s32", frame.k_blocks, 1)
    done, loop = b.label("K_DONE"), b.label("K_LOOP")
    single = b.let(".pred", "single", "setp.eq.s32", remaining, 0)
    b.emit("bra", done, guard=single)

    b.comment("k-blocks 1 and on")
    b.place(loop)
    slot_barrier = emit_slot_barrier(b, frame.smem, cursor.stage)
    emit_wait(b, plan, address(slot_barrier, plan.full_offset), cursor.parity, "full")
    emit_stage_products(b, plan, products, cursor, first=False)
    b.emit("wgmma.wait_group.sync.aligned", 1, note="the k-block before is done")
    b.emit("bar.sync", 0, note="in all warps")
    _emit_refill(b, plan, frame, left_behind, refill_k, row, col)
    b.emit("mov.b32", left_behind, cursor.stage)
    emit_advance(b, plan, cursor)
    b.emit("sub.s32", remaining, remaining, 1)
    more = b.let(".pred", "more", "setp.ne.s32", remaining, 0)
    b.emit("bra", loop, guard=more)
    b.place(done)
    b.emit("wgmma.wait_group.sync.aligned", 0)

    emit_epilogue(b, plan, frame, staging, products.accumulators, row, col)
    emit_stores_done(b, staging)
    b.emit("ret")
    return b


def _emit_fill(b: PtxEntry, plan: GemmPlan, frame: Frame, row: Reg, col: Reg) -> None:
    """Write the loads of the first `stages` k-blocks, as far as there are so many."""
    b.comment("fill the ring")
    slot, full = b.reg(".b32", "fill_slot"), b.reg(".b32", "fill_barrier")
    exists, loads = b.reg(".pred", "exists"), b.reg(".pred", "loads")
    k = b.reg(".b32", "fill_k")
    for stage in range(plan.stages):
        b.emit("setp.gt.s32", exists, frame.k_blocks, stage)
        b.emit("and.pred", loads, exists, frame.leader)
        b.emit("add.s32", slot, frame.smem, stage * plan.stage_bytes)
        b.emit("add.s32", full, frame.smem, plan.full_offset + 8 * stage)
        b.emit("mov.b32", k, stage * plan.tile.k)
        emit_stage_loads(
            b, plan, frame, _OWN,
            slot=slot, full=address(full), k=k, a_row=row, b_row=col, guard=loads,
        )  # fmt: skip


def _emit_refill(
    b: PtxEntry, plan: GemmPlan, frame: Frame, stage: Reg, k: Reg, row: Reg, col: Reg
) -> None:
    """Write the loads into the slot left behind, if K is not yet exhausted."""
    exists = b.let(".pred", "refill_exists", "setp.lt.s32", k, frame.k)
    refills = b.let(".pred", "refills", "and.pred", exists, frame.leader)
    slot = b.let(".b32", "refill_slot", "mad.lo.s32", stage, plan.stage_bytes, frame.smem)
    slot_barrier = emit_slot_barrier(b, frame.smem, stage)
    emit_stage_loads(
        b, plan, frame, _OWN,
        slot=slot, full=address(slot_barrier, plan.full_offset), k=k, a_row=row, b_row=col,
        guard=refills,
    )  # fmt: skip
    b.emit("add.s32", k, k, plan.tile.k)

"""Schedule `wgmma-simple`: one stage, one role, nothing overlaps.

For each k-block: load A and B with TMA, wait for them, multiply, wait for the products, meet.  The
baseline of everything that follows: its time is the sum of what the other schedules hide.
"""

from __future__ import annotations

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import emit_frame, new_entry
from hopsim.kernels.gemm.loads import Loads, emit_stage_loads
from hopsim.kernels.gemm.mainloop import emit_products, emit_stage_products
from hopsim.kernels.gemm.padding import emit_padding
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import emit_barriers, emit_wait
from hopsim.kernels.gemm.scheduler import emit_origin, emit_walk
from hopsim.kernels.ptx.text import PtxEntry, address


def emit_wgmma_simple(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    b = new_entry(name, plan)
    frame = emit_frame(b, plan)
    emit_barriers(b, plan, frame)
    b.comment("the tile of this CTA")
    row, col = emit_origin(b, plan, frame, emit_walk(b, plan, frame), frame.index)

    warpgroup = None
    if plan.warpgroups > 1:
        warpgroup = b.let(".b32", "warpgroup", "shr.u32", frame.warp, 2)
    own_warp = b.let(".b32", "own_warp", "and.b32", frame.warp, 3)
    products = emit_products(b, plan, frame, warpgroup)
    staging = emit_staging(b, plan, frame, warpgroup, own_warp)
    full = address(frame.smem, plan.full_offset)
    emit_padding(b, plan, frame)

    b.comment("one k-block after the other")
    k = b.let(".b32", "k_at", "mov.b32", 0)
    parity = b.let(".b32", "parity", "mov.b32", 0)
    loop = b.label("K_LOOP")
    b.place(loop)
    emit_stage_loads(
        b, plan, frame, Loads(None, None),
        slot=frame.smem, full=full, k=k, a_row=row, b_row=col, guard=frame.leader,
    )  # fmt: skip
    emit_wait(b, plan, full, parity, "full")
    begun = b.let(".pred", "begun", "setp.gt.s32", k, 0)
    emit_stage_products(b, plan, products, None, first=begun)
    b.emit("wgmma.wait_group.sync.aligned", 0)
    b.emit("bar.sync", 0, note="all warps have read the slot")
    b.emit("xor.b32", parity, parity, 1)
    b.emit("add.s32", k, k, plan.tile.k)
    more = b.let(".pred", "more_k", "setp.lt.s32", k, frame.k)
    b.emit("bra", loop, guard=more)

    emit_epilogue(b, plan, frame, staging, products.accumulators, row, col)
    emit_stores_done(b, staging)
    b.emit("ret")
    return b

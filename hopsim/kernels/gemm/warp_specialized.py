"""Schedule `warp-specialized`: a producer warp feeds one or two consumer warpgroups through a ring.

Warpgroup 0 gives registers away and one of its warps issues the TMA loads; the others take them
and multiply.  Options: persistent CTAs, clusters with multicast of A and B.

Hand-over of a slot: the producer waits for `empty`, expects the bytes on `full` and issues the
loads; each consumer warp waits for `full`, multiplies, and when the products are done (one k-block
later) arrives on `empty` in every CTA whose multicast writes this slot.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import Frame, emit_frame, new_entry
from hopsim.kernels.gemm.loads import emit_share_row, emit_shares, emit_stage_loads
from hopsim.kernels.gemm.mainloop import Products, emit_products, emit_stage_products
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import (
    Cursor,
    Release,
    emit_advance,
    emit_barriers,
    emit_cursor,
    emit_release,
    emit_release_targets,
    emit_remember,
    emit_slot_barrier,
    emit_wait,
)
from hopsim.kernels.gemm.scheduler import TileWalk, emit_origin, emit_walk
from hopsim.kernels.ptx.text import PtxEntry, Reg, address


def emit_warp_specialized(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    b = new_entry(name, plan)
    frame = emit_frame(b, plan)
    walk = emit_walk(b, plan, frame)
    emit_barriers(b, plan, frame)
    consumer, end = b.label("CONSUMER"), b.label("END")
    consumes = b.let(".pred", "consumes", "setp.ge.s32", frame.warp, 4)
    b.emit("bra", consumer, guard=consumes)

    b.comment("producer warpgroup")
    b.emit("setmaxnreg.dec.sync.aligned.u32", plan.producer_registers)
    idle = b.let(".pred", "idle", "setp.ne.s32", frame.warp, 0)
    b.emit("bra", end, guard=idle)
    with b.block():
        _emit_producer(b, plan, frame, walk)
    b.emit("bra", end)

    b.comment("consumer warpgroups")
    b.place(consumer)
    b.emit("setmaxnreg.inc.sync.aligned.u32", plan.consumer_registers)
    with b.block():
        _emit_consumer(b, plan, frame, walk)

    b.comment("end")
    b.place(end)
    if plan.cluster_size > 1:
        b.emit("barrier.cluster.arrive")
        b.emit("barrier.cluster.wait", note="peers still arrive on this CTA's barriers")
    b.emit("ret")
    return b


def _emit_producer(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk) -> None:
    loads = emit_shares(b, plan, frame)
    cursor = emit_cursor(b, first_parity=1)
    with _tiles(b, plan, frame, walk) as (row, col):
        a_row = emit_share_row(b, "a_row", row, loads.a)
        b_row = emit_share_row(b, "b_row", col, loads.b)
        k = b.let(".b32", "k_at", "mov.b32", 0)
        loop = b.label("LOAD_LOOP")
        b.place(loop)
        slot_barrier = emit_slot_barrier(b, frame, cursor.stage)
        slot = b.let(".b32", "slot", "mad.lo.s32", cursor.stage, plan.stage_bytes, frame.smem)
        emit_wait(b, plan, address(slot_barrier, plan.empty_offset), cursor.parity, "empty")
        emit_stage_loads(
            b, plan, frame, loads,
            slot=slot, full=address(slot_barrier, plan.full_offset), k=k,
            a_row=a_row, b_row=b_row, guard=frame.leader,
        )  # fmt: skip
        emit_advance(b, plan, cursor)
        b.emit("add.s32", k, k, plan.tile.k)
        more = b.let(".pred", "more_k", "setp.lt.s32", k, frame.k)
        b.emit("bra", loop, guard=more)


def _emit_consumer(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk) -> None:
    warpgroup = None
    if plan.warpgroups > 1:
        after_producer = b.let(".b32", "consumer_warp", "sub.s32", frame.warp, 4)
        warpgroup = b.let(".b32", "warpgroup", "shr.u32", after_producer, 2)
    own_warp = b.let(".b32", "own_warp", "and.b32", frame.warp, 3)
    products = emit_products(b, plan, frame, warpgroup)
    staging = emit_staging(b, plan, frame, warpgroup, own_warp)
    b.comment("whom to tell that a slot is empty")
    release = emit_release_targets(b, plan, frame)
    cursor = emit_cursor(b, first_parity=0)
    with _tiles(b, plan, frame, walk) as (row, col):
        _emit_tile_products(b, plan, frame, products, release, cursor)
        emit_epilogue(b, plan, frame, staging, products.accumulators, row, col)
    emit_stores_done(b, staging)


def _emit_tile_products(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    products: Products,
    release: Release,
    cursor: Cursor,
) -> None:
    """Write the products of one tile; every slot read is released."""
    b.comment("first k-block")
    _emit_full_slot(b, plan, frame, cursor)
    emit_stage_products(b, plan, products, cursor, first=True)
    emit_remember(b, release, cursor)
    emit_advance(b, plan, cursor)
    remaining = b.let(".b32", "remaining", "sub.s32", frame.k_blocks, 1)
    done, loop = b.label("K_DONE"), b.label("K_LOOP")
    single = b.let(".pred", "single", "setp.eq.s32", remaining, 0)
    b.emit("bra", done, guard=single)

    b.comment("k-blocks 1 and on")
    b.place(loop)
    _emit_full_slot(b, plan, frame, cursor)
    emit_stage_products(b, plan, products, cursor, first=False)
    b.emit("wgmma.wait_group.sync.aligned", 1, note="the k-block before is done")
    emit_release(b, plan, release)
    emit_remember(b, release, cursor)
    emit_advance(b, plan, cursor)
    b.emit("sub.s32", remaining, remaining, 1)
    more = b.let(".pred", "more", "setp.ne.s32", remaining, 0)
    b.emit("bra", loop, guard=more)
    b.place(done)
    b.emit("wgmma.wait_group.sync.aligned", 0)
    emit_release(b, plan, release)


def _emit_full_slot(b: PtxEntry, plan: GemmPlan, frame: Frame, cursor: Cursor) -> None:
    slot_barrier = emit_slot_barrier(b, frame, cursor.stage)
    emit_wait(b, plan, address(slot_barrier, plan.full_offset), cursor.parity, "full")


@contextmanager
def _tiles(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk) -> Generator[tuple[Reg, Reg]]:
    """Write what stands inside once for each tile of this CTA; gives its first row and column."""
    if not plan.persistent:
        yield emit_origin(b, plan, frame, walk, frame.index)
        return
    b.comment("tiles of this CTA")
    index = b.let(".b32", "unit", "mov.b32", frame.index)
    ctas = b.let(".b32", "ctas", "mov.u32", "%nctaid.x")
    stride = b.let(".b32", "clusters", "shr.u32", ctas, plan.cluster_size.bit_length() - 1)
    loop = b.label("TILE_LOOP")
    b.place(loop)
    yield emit_origin(b, plan, frame, walk, index)
    b.emit("add.s32", index, index, stride)
    more = b.let(".pred", "more_tiles", "setp.lt.s32", index, walk.total)
    b.emit("bra", loop, guard=more)

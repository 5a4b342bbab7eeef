"""The two roles of a specialised kernel: one producer warp feeds the ring, consumer warpgroups empty it.

Warpgroup 0 gives registers away and one of its warps issues the TMA loads; the others take them and
multiply.

Hand-over of a slot: the producer waits for `empty`, expects the bytes on `full` and issues the
loads; each consumer warp waits for `full`, multiplies, and when the products are done (one k-block
later) arrives on `empty` in every CTA whose multicast writes this slot.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.loads import Loads, emit_share_row, emit_stage_loads
from hopsim.kernels.gemm.mainloop import Products, emit_stage_products
from hopsim.kernels.gemm.padding import emit_padding
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import Release, emit_advance, emit_release, emit_remember, emit_wait
from hopsim.kernels.gemm.scheduler import TileWalk, emit_origin
from hopsim.kernels.ptx.pipeline import Cursor, emit_slot_barrier
from hopsim.kernels.ptx.text import Operand, PtxEntry, Reg, address


def emit_roles(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    producer: Callable[[], None],
    consumer: Callable[[], None],
    meetings: int = 0,
) -> None:
    """Write the parting of the roles, their bodies, and the end of the kernel.

    Args:
        producer: writes what warp 0 does.
        consumer: writes what the computing warpgroups do.
        meetings: cluster barriers in the consumer's part, which the producer's warpgroup must join.
    """
    consumer_label, end = b.label("CONSUMER"), b.label("END")
    consumes = b.let(".pred", "consumes", "setp.ge.s32", frame.warp, 4)
    b.emit("bra", consumer_label, guard=consumes)

    b.comment("producer warpgroup")
    b.emit("setmaxnreg.dec.sync.aligned.u32", plan.producer_registers)
    idle = b.let(".pred", "idle", "setp.ne.s32", frame.warp, 0)
    done = b.label("LOADS_DONE") if meetings else end
    b.emit("bra", done, guard=idle)
    with b.block():
        producer()
    if meetings:
        b.place(done)
    for _ in range(meetings):
        emit_meeting(b, "joined by all threads of the cluster")
    b.emit("bra", end)

    b.comment("consumer warpgroups")
    b.place(consumer_label)
    b.emit("setmaxnreg.inc.sync.aligned.u32", plan.consumer_registers)
    with b.block():
        emit_padding(b, plan, frame)
        consumer()

    b.comment("end")
    b.place(end)
    if plan.launch_cluster > 1:
        emit_meeting(b, "peers still use this CTA's shared memory")
    b.emit("ret")


def emit_meeting(b: PtxEntry, note: str) -> None:
    """Write a barrier of the cluster, for threads that need not have come together."""
    b.emit("barrier.cluster.arrive")
    b.emit("barrier.cluster.wait", note=note)


def emit_consumer_place(b: PtxEntry, plan: GemmPlan, frame: Frame) -> tuple[Reg | None, Reg]:
    """Write which computing warpgroup this is (None if there is one), and which warp of it."""
    warpgroup = None
    if plan.warpgroups > 1:
        after_producer = b.let(".b32", "consumer_warp", "sub.s32", frame.warp, 4)
        warpgroup = b.let(".b32", "warpgroup", "shr.u32", after_producer, 2)
    return warpgroup, b.let(".b32", "own_warp", "and.b32", frame.warp, 3)


@contextmanager
def tile_loop(
    b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk
) -> Generator[tuple[Reg, Reg]]:
    """Write what stands inside once for each tile of this CTA; gives its first row and column."""
    if not plan.persistent:
        yield emit_origin(b, plan, frame, walk, frame.index)
        return
    b.comment("tiles of this CTA")
    index = b.let(".b32", "unit", "mov.b32", frame.index)
    stride = emit_clusters(b, plan)
    loop = b.label("TILE_LOOP")
    b.place(loop)
    yield emit_origin(b, plan, frame, walk, index)
    b.emit("add.s32", index, index, stride)
    more = b.let(".pred", "more_tiles", "setp.lt.s32", index, walk.total)
    b.emit("bra", loop, guard=more)


def emit_clusters(b: PtxEntry, plan: GemmPlan) -> Reg:
    """Write the number of clusters of the grid."""
    ctas = b.let(".b32", "ctas", "mov.u32", "%nctaid.x")
    return b.let(".b32", "clusters", "shr.u32", ctas, plan.cluster_size.bit_length() - 1)


def emit_tile_loads(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    loads: Loads,
    cursor: Cursor,
    row: Reg,
    col: Reg,
    first_k: Operand = 0,
    end_k: Reg | None = None,
) -> None:
    """Write the loads of the k-blocks from `first_k` to `end_k` (all of K) of the tile at `row`, `col`."""
    a_row = emit_share_row(b, "a_row", row, loads.a)
    b_row = emit_share_row(b, "b_row", col, loads.b)
    k = b.let(".b32", "k_at", "mov.b32", first_k)
    loop = b.label("LOAD_LOOP")
    b.place(loop)
    slot_barrier = emit_slot_barrier(b, frame.smem, cursor.stage)
    slot = b.let(".b32", "slot", "mad.lo.s32", cursor.stage, plan.stage_bytes, frame.smem)
    emit_wait(b, plan, address(slot_barrier, plan.empty_offset), cursor.parity, "empty")
    emit_stage_loads(
        b, plan, frame, loads,
        slot=slot, full=address(slot_barrier, plan.full_offset), k=k,
        a_row=a_row, b_row=b_row, guard=frame.leader,
    )  # fmt: skip
    emit_advance(b, plan, cursor)
    b.emit("add.s32", k, k, plan.tile.k)
    more = b.let(".pred", "more_k", "setp.lt.s32", k, end_k or frame.k)
    b.emit("bra", loop, guard=more)


def emit_tile_products(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    products: Products,
    release: Release,
    cursor: Cursor,
    blocks: Reg,
    issued: Callable[[], None] | None = None,
) -> None:
    """Write the products of `blocks` k-blocks of one tile; every slot read is released.

    Args:
        issued: writes what follows when the last product is issued, and not yet done.
    """
    b.comment("first k-block")
    _emit_full_slot(b, plan, frame, cursor)
    emit_stage_products(b, plan, products, cursor, first=True)
    emit_remember(b, release, cursor)
    emit_advance(b, plan, cursor)
    remaining = b.let(".b32", "remaining", "sub.s32", blocks, 1)
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
    if issued is not None:
        issued()
    b.emit("wgmma.wait_group.sync.aligned", 0)
    emit_release(b, plan, release)


def _emit_full_slot(b: PtxEntry, plan: GemmPlan, frame: Frame, cursor: Cursor) -> None:
    slot_barrier = emit_slot_barrier(b, frame.smem, cursor.stage)
    emit_wait(b, plan, address(slot_barrier, plan.full_offset), cursor.parity, "full")

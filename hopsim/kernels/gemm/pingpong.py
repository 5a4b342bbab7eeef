"""Schedule `pingpong`: persistent CTAs, two consumer warpgroups take turns, each with its own tile.

The tiles of a CTA go to its warpgroups in turn.  An order barrier gives the tensor cores to one of
them at a time: it passes the turn on when its last product is issued, and its epilogue then runs under
the products of the other.

The ring serves both: a warpgroup reads the slots of its tile and skips those of the other's.
"""

from __future__ import annotations

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import Frame, emit_frame, new_entry
from hopsim.kernels.gemm.mainloop import emit_products
from hopsim.kernels.gemm.plan import WARPGROUP_THREADS, GemmPlan
from hopsim.kernels.gemm.ring import emit_barriers, emit_release_targets, emit_skip
from hopsim.kernels.gemm.roles import (
    emit_clusters,
    emit_consumer_place,
    emit_roles,
    emit_tile_products,
)
from hopsim.kernels.gemm.scheduler import TileWalk, emit_origin, emit_walk
from hopsim.kernels.gemm.warp_specialized import emit_producer
from hopsim.kernels.ptx.pipeline import emit_cursor
from hopsim.kernels.ptx.text import PtxEntry

_ORDER_BARRIER = 3
"""Named barrier of warpgroup 0's turn, the next is that of warpgroup 1; the epilogues have 1 and 2."""

_BOTH = 2 * WARPGROUP_THREADS


def emit_pingpong(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    assert (plan.persistent, plan.takes_turns) == (True, True), plan
    b = new_entry(name, plan)
    frame = emit_frame(b, plan)
    walk = emit_walk(b, plan, frame)
    emit_barriers(b, plan, frame)
    emit_roles(
        b, plan, frame,
        producer=lambda: emit_producer(b, plan, frame, walk),
        consumer=lambda: _emit_consumer(b, plan, frame, walk),
    )  # fmt: skip
    return b


def _emit_consumer(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk) -> None:
    warpgroup, own_warp = emit_consumer_place(b, plan, frame)
    assert warpgroup is not None, plan
    products = emit_products(b, plan, frame, None)
    staging = emit_staging(b, plan, frame, warpgroup, own_warp)
    b.comment("whom to tell that a slot is empty")
    release = emit_release_targets(b, plan, frame)
    cursor = emit_cursor(b, first_parity=0)

    b.comment("whose turn it is")
    my_turn = b.let(".b32", "my_turn", "add.s32", warpgroup, _ORDER_BARRIER)
    other = b.let(".b32", "other", "xor.b32", warpgroup, 1)
    other_turn = b.let(".b32", "other_turn", "add.s32", other, _ORDER_BARRIER)
    is_second = b.let(".pred", "is_second", "setp.ne.s32", warpgroup, 0)
    b.emit("bar.arrive", other_turn, _BOTH, guard=is_second, note="warpgroup 0 begins")
    emit_skip(b, plan, cursor, frame.k_blocks, guard=is_second)

    b.comment("tiles of this warpgroup")
    clusters = emit_clusters(b, plan)
    index = b.let(".b32", "unit", "mad.lo.s32", warpgroup, clusters, frame.index)
    loop, done = b.label("TILE_LOOP"), b.label("TILES_DONE")
    none = b.let(".pred", "no_tile", "setp.ge.s32", index, walk.total)
    b.emit("bra", done, guard=none)
    b.place(loop)
    row, col = emit_origin(b, plan, frame, walk, index)
    b.emit("add.s32", index, index, clusters, note="the other's next tile")
    other_goes_on = b.let(".pred", "other_goes_on", "setp.lt.s32", index, walk.total)
    b.emit("bar.sync", my_turn, _BOTH, note="the other has issued its last product")

    def pass_turn() -> None:
        b.emit("bar.arrive", other_turn, _BOTH, guard=other_goes_on, note="its turn")

    emit_tile_products(
        b, plan, frame, products, release, cursor, frame.k_blocks, issued=pass_turn
    )  # fmt: skip
    emit_epilogue(b, plan, frame, staging, products.accumulators, row, col)
    emit_skip(b, plan, cursor, frame.k_blocks)
    b.emit("add.s32", index, index, clusters)
    more = b.let(".pred", "more_tiles", "setp.lt.s32", index, walk.total)
    b.emit("bra", loop, guard=more)
    b.place(done)
    emit_stores_done(b, staging)

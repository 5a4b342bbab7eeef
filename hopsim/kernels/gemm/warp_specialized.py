"""Schedule `warp-specialized`: a producer warp feeds one or two consumer warpgroups through a ring.

Two consumer warpgroups split the rows of a tile.  Options: persistent CTAs, clusters with multicast of
A and B.
"""

from __future__ import annotations

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import Frame, emit_frame, new_entry
from hopsim.kernels.gemm.loads import emit_shares
from hopsim.kernels.gemm.mainloop import emit_products
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import emit_barriers, emit_release_targets
from hopsim.kernels.gemm.roles import (
    emit_consumer_place,
    emit_roles,
    emit_tile_loads,
    emit_tile_products,
    tile_loop,
)
from hopsim.kernels.gemm.scheduler import TileWalk, emit_walk
from hopsim.kernels.ptx.pipeline import emit_cursor
from hopsim.kernels.ptx.text import PtxEntry


def emit_warp_specialized(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    b = new_entry(name, plan)
    frame = emit_frame(b, plan)
    walk = emit_walk(b, plan, frame)
    emit_barriers(b, plan, frame)
    emit_roles(
        b, plan, frame,
        producer=lambda: emit_producer(b, plan, frame, walk),
        consumer=lambda: emit_consumer(b, plan, frame, walk),
    )  # fmt: skip
    return b


def emit_producer(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk) -> None:
    """Write the loads of all tiles of this CTA."""
    loads = emit_shares(b, plan, frame)
    cursor = emit_cursor(b, first_parity=1)
    with tile_loop(b, plan, frame, walk) as (row, col):
        emit_tile_loads(b, plan, frame, loads, cursor, row, col)


def emit_consumer(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk) -> None:
    """Write products and stores of all tiles of this CTA, which its warpgroups share."""
    warpgroup, own_warp = emit_consumer_place(b, plan, frame)
    products = emit_products(b, plan, frame, warpgroup)
    staging = emit_staging(b, plan, frame, warpgroup, own_warp)
    b.comment("whom to tell that a slot is empty")
    release = emit_release_targets(b, plan, frame)
    cursor = emit_cursor(b, first_parity=0)
    with tile_loop(b, plan, frame, walk) as (row, col):
        emit_tile_products(b, plan, frame, products, release, cursor, frame.k_blocks)
        emit_epilogue(b, plan, frame, staging, products.accumulators, row, col)
    emit_stores_done(b, staging)

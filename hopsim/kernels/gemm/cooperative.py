"""Schedule `cooperative`: persistent CTAs, two consumer warpgroups share each tile.

Each warpgroup multiplies and stores half of the rows.  The TMA stores of a tile run under the products
of the next: only their reads of the staging memory are waited for, and only when the next tile is to
be staged.  The producer runs ahead over the end of a tile, so the ring is full when the next begins.
"""

from __future__ import annotations

from hopsim.kernels.gemm.frame import emit_frame, new_entry
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import emit_barriers
from hopsim.kernels.gemm.roles import emit_roles
from hopsim.kernels.gemm.scheduler import emit_walk
from hopsim.kernels.gemm.warp_specialized import emit_consumer, emit_producer
from hopsim.kernels.ptx.text import PtxEntry


def emit_cooperative(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    assert (plan.persistent, plan.warpgroups) == (True, 2), plan
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

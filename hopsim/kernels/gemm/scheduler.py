"""Which tile of C a cluster computes, as PTX: `hopsim.kernels.gemm.order` says it in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopsim.kernels.gemm.frame import Place
from hopsim.kernels.gemm.order import walk_order
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.ptx.pipeline import emit_ceil_div
from hopsim.kernels.ptx.text import PtxEntry, Reg

H100_CTAS: Final = {1: 132, 2: 132, 4: 120}
"""CTAs that an H100 SXM runs at once, one an SM, in clusters of 1, 2 and 4: a cluster stays inside a GPC.

Source: cuOccupancyMaxActiveClusters on an H100 80GB HBM3, driver 580.159.04: 132, 66 and 30 clusters. Dies differ in how
the SMs spread over GPCs.
"""


def units(problem: GemmProblem, plan: GemmPlan) -> tuple[int, int]:
    """Return the number of cluster tiles along M and along N."""
    return (
        -(-problem.m // (plan.tile.m * plan.cluster[0])),
        -(-problem.n // (plan.tile.n * plan.cluster[1])),
    )


def grid_ctas(problem: GemmProblem, plan: GemmPlan, resident_ctas: int) -> int:
    """Return the CTAs to launch: one a tile, or for a persistent plan at most `resident_ctas`.

    Where K is split each part of a tile has its own.
    """
    along_m, along_n = units(problem, plan)
    clusters = along_m * along_n
    if plan.persistent:
        clusters = min(clusters, max(1, resident_ctas // plan.cluster_size))
    return clusters * plan.cluster_size * plan.splits


@dataclass(frozen=True, slots=True)
class TileWalk:
    """The registers that every role needs to walk over the tiles.

    Args:
        units_n: cluster tiles along N.
        units_m: cluster tiles along M.
        total: their product.
    """

    units_m: Reg
    units_n: Reg
    total: Reg


def emit_walk(b: PtxEntry, plan: GemmPlan, frame: Place) -> TileWalk:
    """Write the size of the walk."""
    units_m = emit_ceil_div(b, "units_m", frame.m, plan.tile.m * plan.cluster[0])
    units_n = emit_ceil_div(b, "units_n", frame.n, plan.tile.n * plan.cluster[1])
    total = b.let(".b32", "units", "mul.lo.s32", units_m, units_n)
    return TileWalk(units_m, units_n, total)


def emit_origin(
    b: PtxEntry, plan: GemmPlan, frame: Place, walk: TileWalk, index: Reg
) -> tuple[Reg, Reg]:
    """Write `unit_of(index)` and return the first row and the first column of this CTA's tile."""
    along, size = walk_order(plan.order, plan.group_m, plan.cluster)
    grouped, other = walk.units_m, walk.units_n
    if along == "n":
        grouped, other = other, grouped
    per_group = b.let(".b32", "per_group", "mul.lo.s32", other, size)
    group = b.let(".b32", "group", "div.s32", index, per_group)
    first = b.let(".b32", f"first_{along}", "mul.lo.s32", group, size)
    below = b.let(".b32", "rows_below", "sub.s32", grouped, first)
    rows = b.let(".b32", "group_rows", "min.s32", below, size)
    before = b.let(".b32", "before", "mul.lo.s32", group, per_group)
    within = b.let(".b32", "within", "sub.s32", index, before)
    across = b.let(".b32", "unit_n" if along == "m" else "unit_m", "div.s32", within, rows)
    skipped = b.let(".b32", "skipped", "mul.lo.s32", across, rows)
    offset = b.let(".b32", f"along_{along}", "sub.s32", within, skipped)
    unit = b.let(".b32", f"unit_{along}", "add.s32", first, offset)
    unit_m, unit_n = (unit, across) if along == "m" else (across, unit)
    row = _emit_first(b, "row", unit_m, plan.tile.m, plan.cluster[0], frame.rank_m)
    col = _emit_first(b, "col", unit_n, plan.tile.n, plan.cluster[1], frame.rank_n)
    return row, col


def _emit_first(
    b: PtxEntry, name: str, unit: Reg, extent: int, parts: int, rank: Reg | None
) -> Reg:
    """Write the first element of the tile: `(unit * parts + rank) * extent`."""
    if rank is None:
        return b.let(".b32", name, "mul.lo.s32", unit, extent)
    tile = b.let(".b32", f"tile_{name}", "mad.lo.s32", unit, parts, rank)
    return b.let(".b32", name, "mul.lo.s32", tile, extent)

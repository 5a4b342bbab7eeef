"""`build`: from a problem and a configuration to PTX and everything its launch needs.

>>> kernel = build("pipelined", GemmProblem(512, 512, 512), (64, 64, 64), stages=3)
>>> kernel.grid, kernel.block, kernel.shared_bytes
((64, 1, 1), 128, 57368)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.frame import SHARED_SYMBOL
from hopsim.kernels.gemm.pipelined import emit_pipelined
from hopsim.kernels.gemm.plan import GemmPlan, Tile
from hopsim.kernels.gemm.problem import GemmProblem, element_type
from hopsim.kernels.gemm.scheduler import grid_ctas
from hopsim.kernels.gemm.warp_specialized import emit_warp_specialized
from hopsim.kernels.ptx.text import PtxEntry, module_text
from hopsim.layout.swizzle import Swizzle

_RESIDENT_CTAS = {1: 132, 2: 132, 4: 120}
"""CTAs, one an SM, that run at once in clusters of 1, 2 and 4: a cluster stays inside a GPC.
Source: cuOccupancyMaxActiveClusters on an H100 80GB HBM3, driver 580.159.04: 132, 66 and 30
clusters. Dies differ in how the SMs spread over GPCs."""


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A tensor map as plain data; dims, strides and box are innermost first.

    Args:
        operand: "A", "B" or "C".
        dtype: element type.
        dims: extent in elements.
        strides_bytes: pitch of every dimension but the first.
        box: elements of one copy.
        swizzle: "128B", "64B" or "32B".
        l2_promotion: how much of a line a miss brings into L2.
    """

    operand: str
    dtype: str
    dims: tuple[int, int]
    strides_bytes: tuple[int]
    box: tuple[int, int]
    swizzle: str
    l2_promotion: str = "256B"


@dataclass(frozen=True, slots=True)
class GemmKernel:
    """A built kernel: PTX, and how to launch it for its problem.

    The PTX serves every M, N, K of its types and tile: only `grid`, `maps` and `scalars` change.
    Parameters are the three maps A, B, C by value, then M, N, K as u32.
    """

    schedule: str
    problem: GemmProblem
    plan: GemmPlan
    ptx: str
    entry: str
    grid: tuple[int, int, int]
    block: int
    cluster: int
    shared_bytes: int
    maps: tuple[MapSpec, MapSpec, MapSpec]
    scalars: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Schedule:
    emit: Callable[[str, GemmPlan], PtxEntry]
    has_producer: bool
    is_one_tile: bool


_SCHEDULES = {
    "pipelined": _Schedule(emit_pipelined, has_producer=False, is_one_tile=True),
    "warp-specialized": _Schedule(emit_warp_specialized, has_producer=True, is_one_tile=False),
}
SCHEDULES = tuple(_SCHEDULES)


def build(
    schedule: str,
    problem: GemmProblem,
    tile: Tile | tuple[int, int, int],
    stages: int,
    *,
    warpgroups: int = 1,
    cluster: tuple[int, int] = (1, 1),
    persistent: bool = False,
    group_m: int = 8,
    store_buffers: int = 0,
    release_scope: str = "cta",
    resident_ctas: int | None = None,
) -> GemmKernel:
    """Return the kernel of `schedule` for a problem.

    Args:
        schedule: "pipelined" or "warp-specialized".
        tile: rows and columns of C for a CTA, and elements of K for a stage.
        stages: slots of the ring.
        warpgroups: warpgroups that compute, 1 or 2.
        cluster: CTAs along M and N; A is multicast along N, B along M.
        persistent: launch at most `resident_ctas` CTAs, each walks over several tiles.
        group_m: rows of cluster tiles that are walked together (1: row-major order).
        store_buffers: C boxes staged at a time by a warpgroup; 0 takes as many as fit.
        release_scope: "cta" or "cluster", see `GemmPlan`.
        resident_ctas: CTAs of a persistent grid; by default what an H100 SXM runs at once.

    Raises: LaunchError: the schedule, or the hardware, cannot do it.
    """
    found = _SCHEDULES.get(schedule)
    if found is None:
        raise LaunchError(
            f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}", where="gemm"
        )
    if found.is_one_tile and (persistent or cluster != (1, 1)):
        raise LaunchError(
            f"schedule {schedule} computes one tile a CTA, without clusters; "
            f"got persistent={persistent}, cluster={cluster}",
            where="gemm",
            hint="schedule warp-specialized",
        )
    if resident_ctas is not None and resident_ctas < 1:
        raise LaunchError(f"resident_ctas must be at least 1, got {resident_ctas}", where="gemm")
    plan = GemmPlan(
        dtype=element_type(problem.dtype),
        out_dtype=element_type(problem.out_dtype),
        tile=tile if isinstance(tile, Tile) else Tile(*tile),
        stages=stages,
        warpgroups=warpgroups,
        cluster=cluster,
        persistent=persistent,
        group_m=group_m,
        has_producer=found.has_producer,
        store_buffers=store_buffers,
        release_scope=release_scope,
    )
    resident = resident_ctas or _RESIDENT_CTAS[plan.cluster_size]
    entry = _entry_name(schedule, plan)
    return GemmKernel(
        schedule=schedule,
        problem=problem,
        plan=plan,
        ptx=module_text(found.emit(entry, plan), SHARED_SYMBOL),
        entry=entry,
        grid=(grid_ctas(problem, plan, resident), 1, 1),
        block=plan.threads,
        cluster=plan.cluster_size,
        shared_bytes=plan.shared_bytes,
        maps=_maps(problem, plan),
        scalars=(problem.m, problem.n, problem.k),
    )


def _entry_name(schedule: str, plan: GemmPlan) -> str:
    parts = [schedule.replace("-", "_"), plan.dtype.name, plan.out_dtype.name, str(plan.tile)]
    parts.append(f"s{plan.stages}_w{plan.warpgroups}")
    if plan.cluster_size > 1:
        parts.append(f"c{plan.cluster[0]}x{plan.cluster[1]}")
    if plan.persistent:
        parts.append("persistent")
    return "gemm_" + "_".join(parts)


def _maps(problem: GemmProblem, plan: GemmPlan) -> tuple[MapSpec, MapSpec, MapSpec]:
    def spec(
        operand: str,
        dtype: str,
        rows: int,
        columns: int,
        box: tuple[int, int],
        swizzle: Swizzle,
    ) -> MapSpec:
        pitch_bytes = columns * element_type(dtype).size
        width = f"{swizzle.width_bytes}B"
        return MapSpec(operand, dtype, (columns, rows), (pitch_bytes,), box, width)

    p = problem
    return (
        spec("A", p.dtype, p.m, p.k, plan.a_box, plan.swizzle),
        spec("B", p.dtype, p.n, p.k, plan.b_box, plan.swizzle),
        spec("C", p.out_dtype, p.m, p.n, plan.c_box, plan.c_swizzle),
    )

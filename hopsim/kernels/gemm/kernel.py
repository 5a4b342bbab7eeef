"""`build`: from a problem and a configuration to PTX and everything its launch needs.

>>> kernel = build("pipelined", GemmProblem(512, 512, 512), (64, 64, 64), stages=3)
>>> kernel.grid, kernel.block, kernel.shared_bytes
((64, 1, 1), 128, 57368)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hopsim.errors import LaunchError
from hopsim.kernels.gemm import stream_k
from hopsim.kernels.gemm.frame import SHARED_SYMBOL
from hopsim.kernels.gemm.given import check_given
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.problem import GemmProblem, element_type
from hopsim.kernels.gemm.scheduler import H100_CTAS, grid_ctas, units
from hopsim.kernels.gemm.schedules import Schedule, schedule_named
from hopsim.kernels.gemm.tile import Tile
from hopsim.kernels.ptx.text import module_text
from hopsim.layout.operand_tile import OperandTile
from hopsim.layout.swizzle import Swizzle


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A tensor map as plain data; dims, strides and box are innermost first.

    Args:
        operand: "A", "B" or "C".
        dtype: element type.
        dims: extent in elements.
        strides_bytes: pitch of every dimension but the first.
        box: elements of one copy.
        swizzle: "128B", "64B", "32B" or "none".
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
class Buffer:
    """Global memory that a kernel needs beside A, B and C, all zeros before its first launch.

    A kernel leaves what it relies on as it found it, so that it can be launched again.

    Args:
        name: what it holds.
        words: 32-bit words.
    """

    name: str
    words: int


@dataclass(frozen=True, slots=True)
class GemmKernel:
    """A built kernel: PTX, and how to launch it for its problem.

    The PTX serves every N and K of its types and tile, and every M, unless the tile has more rows than M and `plan.a_rows`
    of A are loaded: only `grid`, `maps`, `buffers` and `scalars` change.

    Args:
        maps: tensor maps, passed by value as the first parameters.
        pointers: operands whose addresses are the next parameters.
        buffers: further memory, whose addresses are the next.
        scalars: u32 parameters, the last.
        adds_to_c: the kernel adds to C, which must hold zeros.
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
    maps: tuple[MapSpec, ...]
    scalars: tuple[int, ...]
    pointers: tuple[str, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    adds_to_c: bool = False


def build(
    schedule: str | Schedule,
    problem: GemmProblem,
    tile: Tile | tuple[int, int, int],
    stages: int,
    *,
    warpgroups: int | None = None,
    cluster: tuple[int, int] = (1, 1),
    persistent: bool | None = None,
    order: str = "grouped",
    group_m: int = 8,
    store_buffers: int = 0,
    release_scope: str = "cta",
    swizzle: Swizzle | None = None,
    a_in_registers: bool = False,
    splits: int = 1,
    reduction: str = "tma",
    a_rows: int | None = None,
    resident_ctas: int | None = None,
) -> GemmKernel:
    """Return the kernel of `schedule` for a problem.

    Args:
        schedule: name of one of `hopsim.kernels.gemm.schedules.SCHEDULES`, or a schedule of one's own.
        tile: rows and columns of C for a CTA, and elements of K for a stage.
        stages: slots of the ring.
        warpgroups: warpgroups that compute, 1 or 2; by default the fewest the schedule takes.
        cluster: CTAs along M and N; A is multicast along N, B along M.
        persistent: launch at most `resident_ctas` CTAs, each walks over several tiles; by default
            as the schedule has it.
        order: how tiles are walked, one of `hopsim.kernels.gemm.order.ORDERS`.
        group_m: rows of cluster tiles that are walked together in the order "grouped".
        store_buffers: C boxes staged at a time by a warpgroup; 0 takes as many as fit.
        release_scope: "cta" or "cluster", see `GemmPlan`.
        swizzle: of A and B in shared memory; None takes the widest that fits each of them.
        a_in_registers: wgmma takes A from registers.
        splits: CTAs that share the K of a tile in schedule split-k.
        reduction: how they add up: "tma", "atomic" (both need f32 for C) or "dsmem".
        a_rows: rows of A that are loaded for a tile, 0 for all; by default those that M has, in eights, if it
            has fewer than the tile and the schedule can: rows outside cost time.
        resident_ctas: CTAs of a persistent grid; by default what an H100 SXM runs at once.

    Raises: LaunchError: the schedule, or the hardware, cannot do it.
    """
    options = {
        "warpgroups": warpgroups, "cluster": cluster, "persistent": persistent, "order": order,
        "group_m": group_m, "store_buffers": store_buffers, "release_scope": release_scope,
        "swizzle": swizzle, "a_in_registers": a_in_registers, "splits": splits,
        "reduction": reduction, "a_rows": a_rows,
    }  # fmt: skip
    check_given(problem, tile, stages, {**options, "resident_ctas": resident_ctas})
    found = schedule if isinstance(schedule, Schedule) else schedule_named(schedule)
    if resident_ctas is not None and resident_ctas < 1:
        raise LaunchError(f"resident_ctas must be at least 1, got {resident_ctas}", where="gemm")
    given = plan_options(options)
    tile = tile if isinstance(tile, Tile) else Tile(*tile)
    plan = make_plan(found, problem, tile, stages, given)
    resident = resident_ctas or H100_CTAS[plan.cluster_size]
    ctas = grid_ctas(problem, plan, resident)
    if found.has_workspace:
        ctas = stream_k.grid_ctas(
            math.prod(units(problem, plan)), -(-problem.k // tile.k), resident
        )  # fmt: skip
    entry = _entry_name(found, plan)
    return GemmKernel(
        schedule=found.name,
        problem=problem,
        plan=plan,
        ptx=module_text(found.emit(entry, plan), SHARED_SYMBOL),
        entry=entry,
        grid=(ctas, 1, 1),
        block=plan.threads,
        cluster=plan.launch_cluster,
        shared_bytes=found.shared_bytes(plan),
        maps=_maps(problem, plan) if found.has_maps else (),
        pointers=_pointers(found, plan),
        buffers=_buffers(plan, ctas) if found.has_workspace else (),
        adds_to_c=plan.adds_to_c,
        scalars=(problem.m, problem.n, problem.k),
    )


_DEFAULTS: dict[str, Any] = {
    "warpgroups": None, "cluster": (1, 1), "persistent": None, "order": "grouped", "group_m": 8,
    "store_buffers": 0, "release_scope": "cta", "swizzle": None, "a_in_registers": False, "splits": 1,
    "reduction": "tma", "a_rows": None,
}  # fmt: skip


def plan_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `build` that are not left at their defaults, as a plan calls them."""
    given = {name: value for name, value in options.items() if value != _DEFAULTS[name]}
    if "swizzle" in given:
        given["swizzle_mode"] = given.pop("swizzle")
    return given


def make_plan(
    schedule: Schedule, problem: GemmProblem, tile: Tile, stages: int, given: dict[str, Any]
) -> GemmPlan:
    """Return the plan of a schedule for a problem.

    Args:
        given: options of the plan that are not left at their defaults.

    Raises: LaunchError: the schedule, or the hardware, cannot do it.
    """
    for name, major in (("a_major", problem.a_major), ("b_major", problem.b_major)):
        if major != "K":
            given = {**given, name: major}
    if "a_rows" in schedule.options and "a_rows" not in given:
        given = {**given, "a_rows": _rows_of_a(problem, tile, given)}
    if 0 < given.get("a_rows", 0) < min(problem.m, tile.m):
        least = -(-problem.m // 8) * 8
        raise LaunchError(
            f"a_rows={given['a_rows']} leaves out rows of A: a tile has {min(problem.m, tile.m)} of M = {problem.m}",
            where="gemm",
            hint=f"a_rows={least if least < tile.m else 0}, or leave it out",
        )
    plan = GemmPlan(
        dtype=element_type(problem.dtype),
        out_dtype=element_type(problem.out_dtype),
        tile=tile,
        stages=stages,
        has_producer=schedule.has_producer,
        **schedule.settle(tile, stages, given),
    )
    k_blocks = -(-problem.k // tile.k)
    if plan.splits > k_blocks:
        raise LaunchError(
            f"{plan.splits} splits need as many k-blocks, got {k_blocks} "
            f"(K = {problem.k}, {tile.k} each)",
            where="gemm",
            hint="fewer splits, or a smaller tile k",
        )
    return plan


def deepest(
    schedule: Schedule, problem: GemmProblem, tile: Tile, most: int, given: dict[str, Any]
) -> int:
    """Return how many stages fit: at most `most`, and no more than there are k-blocks; the schedule's fewest if none does.

    Args:
        given: options of the plan that are not left at their defaults.
    """
    least, limit = schedule.stages
    k_blocks = -(-problem.k // tile.k)
    for stages in range(max(least, min(most, limit, k_blocks)), least, -1):
        try:
            make_plan(schedule, problem, tile, stages, given)
        except LaunchError:
            continue
        return stages
    return least


def _rows_of_a(problem: GemmProblem, tile: Tile, given: dict[str, Any]) -> int:
    """Return how many rows of A are to be loaded for a tile; 0: all."""
    rows = -(-problem.m // 8) * 8
    cluster: tuple[int, int] = given.get("cluster", (1, 1))
    is_less = rows < tile.m and problem.a_major == "K" and cluster[1] == 1
    return rows if is_less else 0


def _entry_name(schedule: Schedule, plan: GemmPlan) -> str:
    parts = [schedule.name.replace("-", "_"), plan.dtype.name, plan.out_dtype.name, str(plan.tile)]
    parts.append(f"s{plan.stages}_w{plan.warpgroups}")
    if plan.cluster_size > 1:
        parts.append(f"c{plan.cluster[0]}x{plan.cluster[1]}")
    if plan.persistent and "persistent" not in schedule.fixed:
        parts.append("persistent")
    if "MN" in (plan.a_major, plan.b_major):
        parts.append(f"{plan.a_major}_{plan.b_major}".lower())
    if plan.swizzle_mode is not None:
        parts.append(f"sw{plan.swizzle_mode.width_bytes}")
    if plan.a_in_registers:
        parts.append("rs")
    if plan.a_rows:
        parts.append(f"r{plan.a_rows}")
    if plan.splits > 1:
        parts.append(f"k{plan.splits}_{plan.reduction}")
    return "gemm_" + "_".join(parts)


def _pointers(schedule: Schedule, plan: GemmPlan) -> tuple[str, ...]:
    if not schedule.has_maps:
        return ("A", "B", "C")
    return ("C",) if plan.adds_to_c and plan.reduction == "atomic" else ()


def _buffers(plan: GemmPlan, ctas: int) -> tuple[Buffer, ...]:
    return Buffer("workspace", ctas * plan.tile.m * plan.tile.n), Buffer("flags", ctas)


def _maps(problem: GemmProblem, plan: GemmPlan) -> tuple[MapSpec, MapSpec, MapSpec]:
    p = problem
    return (
        _operand_map("A", p.dtype, p.a_shape, plan.a),
        _operand_map("B", p.dtype, p.b_shape, plan.b),
        _map("C", p.out_dtype, (p.m, p.n), plan.c_box, plan.c_swizzle),
    )


def _operand_map(operand: str, dtype: str, shape: tuple[int, int], tile: OperandTile) -> MapSpec:
    return _map(operand, dtype, shape, tile.box, tile.swizzle)


def _map(
    operand: str, dtype: str, shape: tuple[int, int], box: tuple[int, int], swizzle: Swizzle
) -> MapSpec:
    lines, along = shape
    mode = f"{swizzle.width_bytes}B" if swizzle is not Swizzle.NONE else "none"
    return MapSpec(operand, dtype, (along, lines), (along * element_type(dtype).size,), box, mode)

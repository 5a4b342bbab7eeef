"""`choose`: tile, stages, cluster and tile order of a GEMM as DeepGEMM's published rules have them.

    found = choose(4096, 4096, 4096)
    for reason in found.reasons: print(reason)
    kernel = found.build()

The rules, in order: the fewest waves, then the fullest last wave, then the smaller tile where one side is
equal and the wider one otherwise; a multicast over two CTAs where M is large and the SMs divide evenly, on
the side that saves more; as many stages as fit.

Source: deepseek-ai/DeepGEMM, `csrc/jit_kernels/heuristics/common.hpp` and `sm90.hpp` of 2025 (before they
weighed cycles), and its tile scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hopsim.kernels.gemm.kernel import GemmKernel, build, deepest, make_plan, plan_options
from hopsim.kernels.gemm.problem import GemmProblem, element_type
from hopsim.kernels.gemm.schedules import schedule_named
from hopsim.kernels.gemm.tile import Tile
from hopsim.kernels.ptx.limits import SHARED_LIMIT_BYTES, SMS

_ROWS: Final = (64, 128, 256)
_COLUMNS: Final = tuple(range(16, 257, 16))
_MOST_STAGES: Final = 16
_LEAST_M_FOR_MULTICAST: Final = 512
_TILE_K_BYTES: Final = 128


@dataclass(frozen=True, slots=True)
class Configuration:
    """A GEMM and the kernel chosen for it.

    Args:
        options: further arguments of `build`.
        reasons: why, a line for each part of the choice.
    """

    problem: GemmProblem
    schedule: str
    tile: Tile
    stages: int
    options: dict[str, Any]
    reasons: tuple[str, ...]

    def build(self) -> GemmKernel:
        """Return the kernel."""
        return build(self.schedule, self.problem, self.tile, self.stages, **self.options)


@dataclass(frozen=True, slots=True)
class _Fill:
    """How a tile fills the device: waves, and CTAs of the last one."""

    tile: tuple[int, int]
    waves: int
    last: int

    def beats(self, best: _Fill, m: int, n: int) -> bool:
        """Whether this tile is taken instead of the best so far."""
        if self.waves != best.waves:
            return self.waves < best.waves
        if self.last != best.last:
            return self.last > best.last
        (rows, columns), (best_rows, best_columns) = self.tile, best.tile
        if rows == best_rows:
            return columns < best_columns
        if columns == best_columns:
            return rows < best_rows
        return columns > best_columns and columns <= n and rows <= m


def choose(
    m: int, n: int, k: int, dtype: str = "bf16", *, out_dtype: str = "", sms: int = SMS
) -> Configuration:
    """Return how to compute C[m,n] = A[m,k] B[n,k]^T on a device of `sms` SMs, and why.

    Raises: LaunchError: `GemmProblem` refuses the sizes or types.
    """
    return choose_for(GemmProblem(m, n, k, dtype, out_dtype), sms)


def choose_for(problem: GemmProblem, sms: int = SMS) -> Configuration:
    """Return `choose` for a problem."""
    fill, tried = _best_fill(problem, sms)
    rows, columns = fill.tile
    tile = Tile(rows, columns, _TILE_K_BYTES // element_type(problem.dtype).size)
    warpgroups = 1 if rows == 64 else 2
    schedule = "warp-specialized" if warpgroups == 1 else "cooperative"
    cluster, multicast = _multicast(problem, tile, sms)
    order = "blocks-n" if cluster == (1, 2) else "blocks-m"
    options: dict[str, Any] = {
        "warpgroups": warpgroups, "cluster": cluster, "order": order, "persistent": True,
    }  # fmt: skip
    given, found = plan_options(options), schedule_named(schedule)
    stages = deepest(found, problem, tile, _MOST_STAGES, given)
    shared_bytes = found.shared_bytes(make_plan(found, problem, tile, stages, given))
    kept = {"blocks-m": "rows of A", "blocks-n": "columns of B"}[order]
    reasons = (
        f"tile {tile}: {fill.waves} wave{'s' if fill.waves > 1 else ''} on {sms} SMs, the fewest of "
        f"{tried} tiles; {fill.last} CTAs in the last, the most of those; k of one 128-byte line",
        f"schedule {schedule}: {warpgroups} warpgroup{'s' if warpgroups > 1 else ''} for {rows} rows",
        f"cluster {cluster[0]}x{cluster[1]}: {multicast}",
        f"{stages} stages: the most that fit {SHARED_LIMIT_BYTES:,} bytes ({shared_bytes:,} used)",
        f"order {order}: 16 tiles along {order[-1].upper()} at a time, whose {kept} stay in L2",
    )
    return Configuration(
        problem, schedule, tile, stages, {**options, "resident_ctas": sms}, reasons
    )


def _best_fill(problem: GemmProblem, sms: int) -> tuple[_Fill, int]:
    """Return the best tile and how many were tried."""
    best: _Fill | None = None
    tried = 0
    is_f32 = element_type(problem.out_dtype).size == 4
    for rows in _ROWS:
        for columns in _COLUMNS:
            # registers: one side stays within 128; 256 rows of f32 take too much staging
            if min(rows, columns) > 128 or (is_f32 and rows == 256):
                continue
            tried += 1
            tiles = -(-problem.m // rows) * -(-problem.n // columns)
            fill = _Fill((rows, columns), -(-tiles // sms), tiles % sms or sms)
            if best is None or fill.beats(best, problem.m, problem.n):
                best = fill
    assert best is not None, problem
    return best, tried


def _multicast(problem: GemmProblem, tile: Tile, sms: int) -> tuple[tuple[int, int], str]:
    """Return the cluster, and why."""
    if problem.m < _LEAST_M_FOR_MULTICAST:
        return (1, 1), f"no multicast below M = {_LEAST_M_FOR_MULTICAST}, M = {problem.m}"
    if sms % 2:
        return (1, 1), f"{sms} SMs do not divide by 2"
    why = f"M = {problem.m} is at least {_LEAST_M_FOR_MULTICAST} and {sms} SMs divide by 2"
    if tile.m > tile.n:
        return (1, 2), f"A, the larger side of the tile, is multicast to two CTAs; {why}"
    return (2, 1), f"B, the larger side of the tile, is multicast to two CTAs; {why}"

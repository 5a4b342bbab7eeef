"""Fit a schedule to a problem: the tile, warpgroups and stages that the user leaves open.

A roofline over whole waves: for each candidate tile, the CTAs an SM gets one after the other times the longest of
product, operand reads in shared memory and traffic from L2 for one tile, plus one trip to memory to fill the ring. Of tiles
that this does not tell apart the one with the least to multiply is taken.
It is a good start, not a tuner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hopsim.config import HardwareConfig
from hopsim.errors import LaunchError
from hopsim.kernels.gemm.kernel import deepest, make_plan
from hopsim.kernels.gemm.problem import ElementType, GemmProblem, element_type
from hopsim.kernels.gemm.schedules import Schedule
from hopsim.kernels.gemm.tile import ATOM_M, Tile
from hopsim.layout.operand_tile import ATOM_K_BYTES

CANDIDATES: Final = (
    (128, 256),
    (256, 128),
    (128, 128),
    (64, 256),
    (128, 64),
    (64, 128),
    (64, 64),
    (64, 32),
    (64, 16),
)
OWN_CANDIDATES: Final = ((128, 192), *CANDIDATES)
"""Where each warpgroup has a tile of its own: 192 sums a thread are the most that fit."""

MOST_STAGES: Final = 4
NEAR: Final = 1.02
"""Bounds no further apart than this are alike: the measured rates that they come from are no better known."""
_TILE_K_BYTES: Final = 128
"""One full swizzle row."""
# Names of wgmma's multiplicand types in the configuration.
_RATES: Final = {"bf16": "bf16", "fp16": "f16", "e4m3": "e4m3", "tf32": "tf32", "int8": "s8"}


@dataclass(frozen=True, slots=True)
class Fit:
    """What a kernel is built with, and which parts of it were chosen here."""

    tile: Tile
    warpgroups: int
    stages: int
    chosen: tuple[str, ...]

    def __str__(self) -> str:
        return f"tile {self.tile}, {self.stages} stages, {self.warpgroups} consumer warpgroup(s)"


class _Bounds(NamedTuple):
    """Bounds on the cycles of all waves: of all that a tile needs, and of its products with their operands alone."""

    cycles: float
    product: float


def fit(
    problem: GemmProblem,
    hardware: HardwareConfig,
    schedule: Schedule,
    *,
    tile: Tile | None = None,
    warpgroups: int | None = None,
    stages: int | None = None,
    given: dict[str, Any] | None = None,
) -> Fit:
    """Return the configuration to build; what is given is kept.

    Args:
        given: further options of the plan that the user sets.

    Raises: LaunchError: nothing fits what is given.
    """
    chosen = tuple(
        name
        for name, value in (("tile", tile), ("warpgroups", warpgroups), ("stages", stages))
        if value is None
    )
    dtype = element_type(problem.dtype)
    given = given or {}
    tiles = [tile] if tile is not None else _tiles(schedule, dtype)
    fits: list[tuple[_Bounds, Fit]] = []
    refusals: list[tuple[Tile, LaunchError]] = []
    for one in tiles:
        groups = _warpgroups(schedule, one) if warpgroups is None else warpgroups
        options = {**given, "warpgroups": groups}
        try:
            depth = (
                deepest(schedule, problem, one, MOST_STAGES, options) if stages is None else stages
            )
            make_plan(schedule, problem, one, depth, options)
        except LaunchError as error:
            refusals.append((one, error))
            continue
        cluster: tuple[int, int] = given.get("cluster", (1, 1))
        bounds = _bounds(problem, hardware, dtype, one, cluster)
        fits.append((bounds, Fit(one, groups, depth, chosen)))
    if not fits:
        raise _refusal(refusals)
    least = min(bounds.cycles for bounds, _ in fits)
    alike = [one for one in fits if one[0].cycles <= NEAR * least]
    return min(alike, key=lambda one: one[0].product)[1]


def _tiles(schedule: Schedule, dtype: ElementType) -> list[Tile]:
    """Return the tiles to choose from."""
    k = min(_TILE_K_BYTES, schedule.most_k_bytes) // dtype.size
    takes_turns: bool = schedule.fixed.get("takes_turns", False)
    shapes = OWN_CANDIDATES if takes_turns else CANDIDATES
    return [Tile(m, n, k) for m, n in shapes if n % schedule.tile_n == 0]


def _refusal(refusals: Sequence[tuple[Tile, LaunchError]]) -> LaunchError:
    """Return why nothing fits: what is wrong with every tile, or else with the one of the fewest sums."""
    tile, error = min(refusals, key=lambda one: one[0].m * one[0].n)
    if all(other.what == error.what for _, other in refusals):
        return error
    return LaunchError(
        f"none of {len(refusals)} tiles fits what is given; of {tile}: {error.what}",
        where=error.where,
        hint=error.hint or "a tile of your own",
        source=error.source,
    )


def _warpgroups(schedule: Schedule, tile: Tile) -> int:
    """Return how many warpgroups compute: two where each has a wgmma's rows, if the schedule can."""
    most = schedule.warpgroups[-1]
    shares_rows = not schedule.fixed.get("takes_turns", False)
    if most == 2 and 1 in schedule.warpgroups and shares_rows and tile.m % (2 * ATOM_M):
        return 1
    return most


def _bounds(
    problem: GemmProblem,
    hardware: HardwareConfig,
    dtype: ElementType,
    tile: Tile,
    cluster: tuple[int, int],
) -> _Bounds:
    """Return bounds on the cycles of all waves of tiles."""
    device, tensor = hardware.device, hardware.tensor
    rows, columns = -(-problem.m // (tile.m * cluster[0])), -(-problem.n // (tile.n * cluster[1]))
    ctas = rows * columns * cluster[0] * cluster[1]
    waves = -(-ctas // device.sm_count)
    k_bytes = -(-problem.k // tile.k) * tile.k * dtype.size
    steps = k_bytes // ATOM_K_BYTES * (tile.m // ATOM_M)
    product = (
        2 * ATOM_M * tile.n * (ATOM_K_BYTES // dtype.size) / tensor.flop_per_clk[_RATES[dtype.name]]
    )
    operands = (ATOM_M + tile.n) * ATOM_K_BYTES / tensor.operand_bandwidth_bytes_per_clk
    from_l2 = (tile.m / cluster[1] + tile.n / cluster[0]) * k_bytes
    resident = min(ctas, device.sm_count)
    per_sm = min(
        hardware.l2.bandwidth_per_sm_bytes_per_clk, hardware.l2.bandwidth_bytes_per_clk / resident
    )
    products = steps * max(product, operands)
    cycles = max(products, from_l2 / per_sm) + hardware.dram.latency_cycles
    return _Bounds(waves * cycles, waves * products)

"""The ladder: every schedule that suits a problem, from the simplest to the fastest, each fitted to it.

for step in ladder(GemmProblem(4096, 4096, 4096), load("h100-sxm")):
    kernel = step.build()
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from hopsim.config import HardwareConfig
from hopsim.errors import LaunchError
from hopsim.kernels.gemm.choice import choose_for
from hopsim.kernels.gemm.kernel import GemmKernel, build, plan_options
from hopsim.kernels.gemm.problem import GemmProblem, element_type
from hopsim.kernels.gemm.roofline import fit
from hopsim.kernels.gemm.schedules import SCHEDULES
from hopsim.kernels.gemm.tile import Tile

_SIMPLE_TILES: Final = ((128, 128), (64, 128), (64, 64), (64, 32))
"""Of schedules whose one warpgroup leaves room for several CTAs on an SM."""
_MULTISTAGE_FP8_TILES: Final = _SIMPLE_TILES[1:]
"""`mma.sync` makes f16 of fp8 operands in registers, of which 128x128 wants so many that ptxas spills: on an H100 64x128 is
10 % quicker.  `mma-simple` spills too, but gains more by loading less."""

_MULTICAST: Final = (2, 1)
_MOST_SPLITS: Final = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the ladder.

    Args:
        name: the schedule, and what is added to it.
        words: what is new.
        options: further arguments of `build`.
    """

    name: str
    words: str
    problem: GemmProblem
    schedule: str
    tile: Tile
    stages: int
    options: dict[str, Any]

    def build(self) -> GemmKernel:
        """Return the kernel."""
        return build(self.schedule, self.problem, self.tile, self.stages, **self.options)


def ladder(problem: GemmProblem, hardware: HardwareConfig) -> list[Step]:
    """Return the steps that suit a problem, each with the tile that a roofline prefers."""
    steps: list[Step] = []
    for name in SCHEDULES:
        if name == "split-k":
            steps += _split_steps(problem, hardware)
            continue
        step = _fitted(problem, hardware, name)
        if step is None:
            continue
        steps.append(step)
        if name in ("cooperative", "pingpong"):
            shared = _fitted(problem, hardware, name, cluster=_MULTICAST)
            if shared is not None and problem.m > shared.tile.m:
                words = "two CTAs share B by multicast"
                steps.append(replace(shared, name=f"{name} 2x1", words=words))
    chosen = choose_for(problem, hardware.device.sm_count)
    steps.append(
        Step("chosen", "by DeepGEMM's rules", problem, chosen.schedule, chosen.tile, chosen.stages,
             chosen.options)
    )  # fmt: skip
    return steps


def _fitted(
    problem: GemmProblem, hardware: HardwareConfig, schedule: str, **options: Any
) -> Step | None:
    """Return a schedule's step, None where it cannot do the problem."""
    found = SCHEDULES[schedule]
    tiles: list[Tile | None] = [None]
    if not found.has_producer:
        k = _stage_k(problem, hardware, schedule)
        spills = schedule == "mma-multistage" and problem.dtype == "e4m3"
        tiles = [Tile(m, n, k) for m, n in (_MULTISTAGE_FP8_TILES if spills else _SIMPLE_TILES)]
        tiles.sort(key=lambda tile: tile is not None and _waste(problem, tile, hardware))
    for tile in tiles:
        try:
            fitted = fit(problem, hardware, found, tile=tile, given=plan_options(options))
        except LaunchError:
            continue
        more = {"warpgroups": fitted.warpgroups, **options}
        return Step(schedule, found.words, problem, schedule, fitted.tile, fitted.stages, more)
    return None


def _stage_k(problem: GemmProblem, hardware: HardwareConfig, schedule: str) -> int:
    return fit(problem, hardware, SCHEDULES[schedule]).tile.k


def _waste(problem: GemmProblem, tile: Tile, hardware: HardwareConfig) -> float:
    """Return how long the tiles take, in multiples of one element's product on every SM."""
    tiles = -(-problem.m // tile.m) * -(-problem.n // tile.n)
    waves = -(-tiles // hardware.device.sm_count)
    return waves * tile.m * tile.n * (1 / tile.m + 1 / tile.n + 1 / 64)


def _split_steps(problem: GemmProblem, hardware: HardwareConfig) -> list[Step]:
    """Return split-k with each reduction, for problems whose tiles leave half of the SMs idle."""
    single = _fitted(problem, hardware, "warp-specialized")
    if single is None:
        return []
    tile = single.tile
    tiles = -(-problem.m // tile.m) * -(-problem.n // tile.n)
    k_blocks = -(-problem.k // tile.k)
    splits = 1
    while 2 * splits * tiles <= hardware.device.sm_count and splits < min(
        _MOST_SPLITS, k_blocks // 4
    ):
        splits *= 2
    if splits == 1:
        return []
    steps: list[Step] = []
    # only f32 can be added up in global memory
    is_f32 = element_type(problem.dtype).sum_ptx == "f32"
    for reduction in ("tma", "atomic", "dsmem") if is_f32 else ("dsmem",):
        asked = problem if reduction == "dsmem" else replace(problem, out_dtype="f32")
        step = _fitted(asked, hardware, "split-k", splits=splits, reduction=reduction)
        if step is not None:
            words = f"{splits} CTAs share K, added by {reduction}"
            steps.append(replace(step, name=f"split-k {reduction}", words=words))
    return steps

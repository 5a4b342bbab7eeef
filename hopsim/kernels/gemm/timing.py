"""How long a step of the ladder takes, and what bounds it.

The `mma.sync` schedules issue thousands of instructions where the others issue one wgmma, so whole problems of
theirs take minutes to simulate.  Large ones are therefore extrapolated: one full wave of tiles is simulated at two
short K, the line through both is followed to the whole K, and the result multiplied by the waves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hopsim.config import HardwareConfig
from hopsim.kernels.gemm.kernel import GemmKernel
from hopsim.kernels.gemm.ladder import Step
from hopsim.kernels.gemm.launch import launch_dry
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.scheduler import units
from hopsim.kernels.gemm.tile import Tile
from hopsim.launch.device import Device
from hopsim.results import LaunchResult

_BUSY: Final = {
    "tensor core": ("hopsim__tensor_core_busy.pct", "hopsim__mma_sync_busy.pct"),
    "L2": ("hopsim__l2_busy.pct",),
    "HBM": ("hopsim__dram_busy.pct",),
    "issue": ("hopsim__issue_busy.pct",),
}
_SATURATED_PCT: Final = 75.0
"""A unit this busy is what bounds a kernel. It only chooses a word."""

_WAITS_FOR_OPERANDS: Final = (
    "mbarrier", "long_scoreboard", "short_scoreboard", "copy_group", "barrier",
)  # fmt: skip
_TAIL_SHARE: Final = 0.15
_MOST_CTA_BLOCKS: Final = 33_000
"""CTAs times k-blocks of an `mma.sync` kernel that are simulated whole."""

_WAVE_BLOCKS: Final = (4, 8)


@dataclass(frozen=True, slots=True)
class StepTime:
    """What a step takes.

    Args:
        cycles: of the whole kernel.  time_us: the same in microseconds.
        bound: what bounds it, in a word.
        is_extrapolated: from one wave, not simulated whole.
    """

    cycles: int
    time_us: float
    tflops: float
    bound: str
    is_extrapolated: bool = False


def time_step(gpu: Device, step: Step, hardware: HardwareConfig) -> StepTime:
    """Return a step's time on the simulator."""
    kernel = step.build()
    ctas, k_blocks = kernel.grid[0], -(-step.problem.k // step.tile.k)
    if step.schedule.startswith("mma") and ctas * k_blocks > _MOST_CTA_BLOCKS:
        return _extrapolated(gpu, step, kernel, hardware)
    result = _simulate(gpu, kernel)
    assert result.cycles is not None, result
    assert result.time_us is not None, result
    rate = step.problem.flops / result.time_us / 1e6
    return StepTime(result.cycles, result.time_us, rate, bound(result, kernel, hardware))


def bound(result: LaunchResult, kernel: GemmKernel, hardware: HardwareConfig) -> str:
    """Return what bounds a launch: the busiest unit if it is busy, else why none is."""
    name, busiest = _busiest(result.counters)
    if busiest >= _SATURATED_PCT:
        return name
    waves, tail = waves_and_tail(kernel, result, hardware)
    if waves > 1 and tail >= _TAIL_SHARE and 200 * tail >= 100 - busiest:
        return "tail wave"
    stalls = result.stalls
    waiting = sum(stalls.get(name, 0.0) for name in _WAITS_FOR_OPERANDS)
    if stalls.get("bulk_group", 0.0) > waiting:
        return "epilogue"
    return "latency"


def waves_and_tail(
    kernel: GemmKernel, result: LaunchResult, hardware: HardwareConfig
) -> tuple[int, float]:
    """Return the waves of tiles, and the share of all waves' places that stands idle in the last."""
    along_m, along_n = units(kernel.problem, kernel.plan)
    tiles = along_m * along_n * kernel.plan.cluster_size * kernel.plan.splits
    each = result.occupancy.ctas_per_sm if result.occupancy else 1
    places = hardware.device.sm_count * each
    if kernel.plan.persistent:
        places = kernel.grid[0] * (2 if kernel.plan.takes_turns else 1)
    waves = -(-tiles // places)
    return waves, 1 - tiles / (waves * places)


def _busiest(counters: Mapping[str, int | float]) -> tuple[str, float]:
    shares = {
        name: max(float(counters.get(key, 0.0)) for key in keys) for name, keys in _BUSY.items()
    }
    name = max(shares, key=lambda one: shares[one])
    return name, shares[name]


def _simulate(gpu: Device, kernel: GemmKernel) -> LaunchResult:
    return launch_dry(gpu, kernel, check=False)


def _extrapolated(
    gpu: Device, step: Step, kernel: GemmKernel, hardware: HardwareConfig
) -> StepTime:
    tile, sms = step.tile, hardware.device.sm_count
    occupancy = _simulate(gpu, _part(step, tile, 1, 1, 1)).occupancy
    each = min(occupancy.ctas_per_sm if occupancy else 1, -(-kernel.grid[0] // sms))
    # a wave: `each` tiles an SM, in as square a block as the SMs divide into and the problem has
    along_m = -(-step.problem.m // tile.m)
    rows = max(i for i in range(1, sms + 1) if sms % i == 0 and i * i <= sms and i <= along_m)
    tiles_m, tiles_n = rows * each, sms // rows
    short, long = (_part(step, tile, tiles_m, tiles_n, blocks) for blocks in _WAVE_BLOCKS)
    first, second = _simulate(gpu, short), _simulate(gpu, long)
    assert first.cycles is not None, first
    assert second.cycles is not None, second
    assert second.clock_hz is not None, second
    slope = (second.cycles - first.cycles) / (_WAVE_BLOCKS[1] - _WAVE_BLOCKS[0])
    k_blocks = -(-step.problem.k // tile.k)
    wave_cycles = first.cycles + slope * (k_blocks - _WAVE_BLOCKS[0])
    cycles = round(-(-kernel.grid[0] // (sms * each)) * wave_cycles)
    time_us = cycles / second.clock_hz * 1e6
    why = bound(second, long, hardware)
    return StepTime(cycles, time_us, step.problem.flops / time_us / 1e6, why, is_extrapolated=True)


def _part(step: Step, tile: Tile, tiles_m: int, tiles_n: int, blocks: int) -> GemmKernel:
    """Return the kernel for so many tiles and k-blocks, as far as the problem has them."""
    p = step.problem
    m, n = min(p.m, tile.m * tiles_m), min(p.n, tile.n * tiles_n)
    problem: GemmProblem = replace(p, m=m, n=n, k=tile.k * blocks)
    return replace(step, problem=problem).build()

"""Choose the tile, warpgroups and stages of a GEMM where the user leaves them open.

A roofline over whole waves: for each candidate tile, the CTAs an SM gets one after the other times the longest of
product, operand reads in shared memory and traffic from L2 for one tile, plus one trip to memory to fill the ring.
It is a good start, not a tuner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopsim.config import HardwareConfig
from hopsim.errors import LaunchError
from hopsim.kernels.gemm.plan import ATOM_K_BYTES, ATOM_M, GemmPlan, Tile
from hopsim.kernels.gemm.problem import ElementType, GemmProblem, element_type

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
MOST_STAGES: Final = 4
TILE_K_BYTES: Final = 128
"""One full swizzle row."""
# Names of wgmma's multiplicand types in the configuration.
_RATES: Final = {"bf16": "bf16", "fp16": "f16", "e4m3": "e4m3", "tf32": "tf32", "int8": "s8"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What a kernel is built with, and which parts of it were chosen here."""

    tile: Tile
    warpgroups: int
    stages: int
    chosen: tuple[str, ...]

    def __str__(self) -> str:
        return f"tile {self.tile}, {self.stages} stages, {self.warpgroups} consumer warpgroup(s)"


def choose(
    problem: GemmProblem,
    hardware: HardwareConfig,
    *,
    has_producer: bool,
    tile: Tile | None,
    warpgroups: int | None,
    stages: int | None,
    cluster: tuple[int, int],
) -> Choice:
    """Return the configuration to build; what is given is kept.

    Raises: LaunchError: nothing fits what is given.
    """
    chosen = tuple(
        name
        for name, given in (("tile", tile), ("warpgroups", warpgroups), ("stages", stages))
        if given is None
    )
    dtype, out = element_type(problem.dtype), element_type(problem.out_dtype)
    tiles = (
        [tile]
        if tile is not None
        else [Tile(m, n, TILE_K_BYTES // dtype.size) for m, n in CANDIDATES]
    )
    best: tuple[float, Choice] | None = None
    refusal: LaunchError | None = None
    for one in tiles:
        groups = warpgroups or (2 if one.m >= 2 * ATOM_M and one.m % (2 * ATOM_M) == 0 else 1)
        try:
            depth = stages or _deepest(problem, dtype, out, one, groups, cluster, has_producer)
            GemmPlan(dtype, out, one, depth, groups, cluster, has_producer=has_producer)
        except LaunchError as error:
            refusal = error
            continue
        cycles = _roofline_cycles(problem, hardware, dtype, one, cluster)
        if best is None or cycles < best[0]:
            best = cycles, Choice(one, groups, depth, chosen)
    if best is None:
        assert refusal is not None, tiles
        raise refusal
    return best[1]


def _deepest(
    problem: GemmProblem,
    dtype: ElementType,
    out: ElementType,
    tile: Tile,
    warpgroups: int,
    cluster: tuple[int, int],
    has_producer: bool,
) -> int:
    """Return how many stages fit, at most `MOST_STAGES` and no more than there are k-blocks."""
    blocks = -(-problem.k // tile.k)
    for stages in range(max(2, min(MOST_STAGES, blocks)), 2, -1):
        try:
            GemmPlan(dtype, out, tile, stages, warpgroups, cluster, has_producer=has_producer)
        except LaunchError:
            continue
        return stages
    return 2


def _roofline_cycles(
    problem: GemmProblem,
    hardware: HardwareConfig,
    dtype: ElementType,
    tile: Tile,
    cluster: tuple[int, int],
) -> float:
    """Return a bound on the cycles of all waves of tiles."""
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
    return waves * (
        max(steps * max(product, operands), from_l2 / per_sm) + hardware.dram.latency_cycles
    )

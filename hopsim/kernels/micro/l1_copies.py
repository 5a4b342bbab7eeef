"""Tiles of A and B that threads copy through L1 (`cp.async.ca`), beside the same past it (`.cg`).

What L1 has left beside shared memory is where copies through it are on their way.
"""

from __future__ import annotations

from hopsim.kernels.micro.clocked import Benchmark
from hopsim.kernels.micro.tile_walks import TileWalk, copies

DEPTHS = (1, 2, 4)


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        copies(TileWalk(along_m, along_n, 128, 128, depth), how, is_full)
        for along_m, along_n in ((1, 1), (1, 32), (12, 11))
        for depth in DEPTHS
        for how, is_full in ((".ca", False), (".ca", True), (".cg", True))
    ]
    found += [copies(TileWalk(1, 1, 64, 64, depth), ".ca", True) for depth in (1, 2, 4, 8)]
    return found + [
        copies(TileWalk(12, 11, 64, 64, depth), ".ca", is_full)
        for depth in (2, 4)
        for is_full in (False, True)
    ]

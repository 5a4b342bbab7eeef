"""How long each SM takes for the same work while all load out of L2: which SMs have a way to L2 of their own.

The table of each benchmark is kept: a row a CTA, one an SM, in the order of the grid, in which the SMs of a GPC are
neighbours, and those of a TPC if all have work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hopsim.kernels.micro.boxes import Boxes, walk
from hopsim.kernels.micro.clocked import SMS, Benchmark, Table, mean_of_rows
from hopsim.kernels.micro.streams import KIB
from hopsim.kernels.micro.tile_walks import TileWalk, boxes

QUICK = 0.87
"""Of the median: TPCs that take no longer are counted."""


def quick_tpcs(table: Table) -> list[int]:
    """Return the TPCs, in the order of the grid, that are done clearly before most: both of their SMs."""
    pairs = table[: len(table) // 2 * 2, 0].astype(np.float64).reshape(-1, 2).max(axis=1)
    return [int(tpc) for tpc in np.flatnonzero(pairs <= QUICK * np.median(pairs))]


def _with_quick(table: Table, labels: Sequence[str]) -> dict[str, float]:
    return {**mean_of_rows(table, labels), "TPCs that end early": float(len(quick_tpcs(table)))}


def _by_sm(one: Benchmark, name: str) -> Benchmark:
    what = f"{one.what}: each SM"
    return replace(
        one, name=f"{name}_by_sm", what=what, summary=_with_quick, is_map=True, mean_of=1
    )


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    own = Boxes(128, 8, 2, KIB, 4)
    tiles = [TileWalk(12, 11, 128, 256, 4), TileWalk(12, 11, 128, 128, 4, 4128)]
    return [
        *(
            _by_sm(walk(f"own_{ctas}", f"TMA loads out of L2, {ctas} SMs, own boxes of 128 rows", own, ctas, times=4),
                   f"tma_load_l2_{ctas}")
            for ctas in (64, SMS)
        ),
        *(_by_sm(boxes(one), one.name("tma")) for one in tiles),
    ]  # fmt: skip

"""Tiles out of L2 by the L2 promotion of their tensor maps: rows that begin at lines, at sectors, or within sectors."""

from __future__ import annotations

from typing import Final

from hopsim.kernels.micro.clocked import Benchmark
from hopsim.kernels.micro.tile_walks import TileWalk, boxes

PROMOTIONS: Final = ("128B", "256B")
PITCHES: Final = (4096, 4128, 4112)
"""Bytes from row to row: of whole lines, of whole sectors, of neither."""
SHAPES: Final = ((64, 128, 4), (128, 128, 2), (128, 128, 4), (128, 256, 2), (128, 256, 4))
"""Rows of A, rows of B, stages in flight."""


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [
        boxes(TileWalk(12, 11, *shape, pitch, promotion))
        for shape in SHAPES
        for pitch in PITCHES
        for promotion in PROMOTIONS
    ]

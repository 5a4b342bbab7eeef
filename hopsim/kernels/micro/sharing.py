"""TMA loads out of L2 by SMs of which some read the same boxes, walk after walk: what L2 and the ports of GPCs give.

Every SM has a CTA, all but the first thread of which end at once: threads that wait for a cluster would hold up the one that
loads.  SMs that share are neighbours by number of their CTAs.
"""

from __future__ import annotations

from typing import Final

from hopsim.kernels.micro.boxes import Boxes, walk
from hopsim.kernels.micro.clocked import SMS, Benchmark
from hopsim.kernels.micro.streams import KIB

WALKS: Final = 4
"""Walks on end that are measured as one."""
NAMES: Final = {1: "own", 2: "pairs", 4: "fours", 16: "sixteens", SMS: "all"}
"""By how many SMs read the same boxes."""


def who(ctas: int, sharing: int) -> str:
    """Return what names call so many CTAs, of which some read the same.

    >>> who(1, 1), who(132, 2)
    ('alone', 'pairs')
    """
    return "alone" if ctas == 1 else NAMES[sharing]


def shared(sharing: int, depth: int, rows: int) -> Benchmark:
    """Boxes of some rows, 128 KiB in all, by every SM."""
    boxes = Boxes(rows, 8, 128 // rows, KIB, depth)
    more = "" if rows == 128 else f"_{rows}r"
    return walk(
        f"sharing_{NAMES[sharing]}_{SMS}_c1_d{depth}{more}",
        f"TMA loads out of L2, {SMS} SMs, clusters of 1, {sharing} read the same boxes of {rows} rows, "
        f"{depth} in flight, {WALKS} walks on end",
        boxes, SMS, 1, sharing, times=WALKS,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [
        shared(sharing, depth, rows)
        for rows in (128, 64) for sharing in NAMES for depth in (1, 2, 4)
    ]  # fmt: skip

"""Loads, stores and atomics of threads on global memory: coalescing into sectors, the L1 cache of an SM.

L1 writes through and keeps lines that weak loads brought in; it is as large as shared memory leaves
it.
Source: CUDA C++ Programming Guide 12, "Global Memory" (compute capability 5.x and later).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.config.groups import L1

WARP: Final = 32


def warp_sectors(
    addresses: int | NDArray[np.unsignedinteger], count_bytes: int, sector_bytes: int
) -> NDArray[np.int64]:
    """Return the addresses of the sectors that warps touch, sorted; lanes of one warp share sectors, warps do not.

    Args:
        addresses: one a lane, or one for all.
        count_bytes: of each lane; at most one vector, so aligned that it leaves its sector only at
        the end.
        sector_bytes: of L2.
    """
    if isinstance(addresses, int):
        first = addresses // sector_bytes
        last = (addresses + count_bytes - 1) // sector_bytes
        return np.arange(first, last + 1, dtype=np.int64) * sector_bytes
    spread = addresses.astype(np.int64)
    steps = np.arange(0, count_bytes, sector_bytes)
    numbers = (spread[:, None] + steps) // sector_bytes
    warp = np.arange(len(spread)) // WARP
    lowest = int(numbers.min())
    span = int(numbers.max()) - lowest + 1
    keys = np.unique(warp[:, None] * span + (numbers - lowest))
    return np.sort(keys % span + lowest) * sector_bytes


def lines_of(
    sectors: NDArray[np.int64], line_bytes: int, sector_bytes: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Return the lines of some sectors and, unless they are wanted whole, a mask of sectors for each line.

    Args:
        sectors: their addresses, sorted; the same one may come more than once.
    """
    numbers = sectors // line_bytes
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1))
    lines = numbers[begins]
    each = line_bytes // sector_bytes
    bits = np.left_shift(1, sectors // sector_bytes % each).astype(np.uint8)
    masks: NDArray[np.uint8] = np.bitwise_or.reduceat(bits, begins)
    return lines, None if bool((masks == (1 << each) - 1).all()) else masks


class L1Cache:
    """Lines of global memory held by one SM, least recently used.

    Args:
        config: size of the data store.
        shared_bytes: how much of it is shared memory.
        line_bytes: of a line.
    """

    def __init__(self, config: L1, shared_bytes: int, line_bytes: int) -> None:
        self.capacity = max(0, config.capacity_bytes - shared_bytes) // line_bytes
        self._lines: OrderedDict[int, None] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def look_up(self, line: int) -> bool:
        """Whether a line is present; it is from now on."""
        lines = self._lines
        if line in lines:
            lines.move_to_end(line)
            self.hits += 1
            return True
        self.misses += 1
        if self.capacity:
            lines[line] = None
            if len(lines) > self.capacity:
                lines.popitem(last=False)
        return False

    def drop(self, line: int) -> None:
        """Forget a line that was written."""
        self._lines.pop(line, None)

"""Where atomics meet: an atomic unit of L2 adds for a stretch of lines, one request after the other.

A request is a line of a warp.  It takes so long for each sector, and longer for each further lane that adds to the same
word; sums of floats at one word wait for each other.  Whether the warp gets back what was there makes no difference.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json): meetings_*, until the last SM is through, whose way is
up to 1.6 times that of the mean.  132 SMs add to a word of each of 32 lines in two thirds of the time they take for one of
each of 32 sectors of eight lines, and 24 times as quickly to random words of 128 lines as to one word: so stretches of four
lines go one by one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.config.memory import L2
from hopsim.hw.machine.thread_groups import WARP

PATTERNS_KEPT: Final = 4096


class Meeting(NamedTuple):
    """What an access asks of the atomic units.

    Args:
        units: numbers of stretches of memory, counted from that of the first address.
        cycles: of each.
    """

    units: NDArray[np.int64]
    cycles: NDArray[np.float64]


class AtomicUnits:
    """Books requests of warps.

    Args:
        config: sizes and times.
    """

    def __init__(self, config: L2) -> None:
        self._config = config
        self._free: dict[int, float] = {}
        self._seen: dict[tuple[bytes, bool], Meeting] = {}

    def take(
        self,
        now: float,
        addresses: int | NDArray[np.unsignedinteger],
        lanes: int,
        *,
        floats: bool = False,
    ) -> float:
        """Return when the units have added for all lanes.

        Args:
            now: when the request comes.
            addresses: one a lane, or one for all.
            lanes: of the access; warps are 32 consecutive ones.
            floats: whether they add floats.
        """
        first, meeting = self._meeting(addresses, lanes, floats)
        free = self._free
        last = now
        for unit, cycles in zip(meeting.units.tolist(), meeting.cycles.tolist(), strict=True):
            begin = max(now, free.get(first + unit, 0.0))
            end = free[first + unit] = begin + cycles
            last = max(last, end)
        return last

    def _meeting(
        self, addresses: int | NDArray[np.unsignedinteger], lanes: int, floats: bool
    ) -> tuple[int, Meeting]:
        if isinstance(addresses, int):
            addresses = np.full(lanes, addresses, np.uint64)
        relative = addresses.astype(np.int64)
        first = int(relative[0]) // self._config.atomic_unit_bytes
        relative -= first * self._config.atomic_unit_bytes
        key = (relative.tobytes(), floats)
        known = self._seen.get(key)
        if known is None:
            if len(self._seen) >= PATTERNS_KEPT:
                self._seen.clear()
            known = self._seen[key] = self._work_out(relative, floats)
        return first, known

    def _work_out(self, relative: NDArray[np.int64], floats: bool) -> Meeting:
        config = self._config
        lowest = int(relative.min()) // config.atomic_unit_bytes * config.atomic_unit_bytes
        span = int(relative.max()) - lowest + config.line_bytes
        span += -span % config.line_bytes
        warp = np.arange(len(relative)) // WARP
        # Words of each warp; of each of its sectors, how many lanes add to the word that has most.
        words, lanes = np.unique(warp * span + relative - lowest, return_counts=True)
        sectors, begins = np.unique(words // config.sector_bytes, return_index=True)
        again = np.maximum.reduceat(lanes, begins) - 1
        each = config.atomic_sector_cycles + again * config.atomic_again_cycles
        requests, begins = np.unique(
            sectors // (config.line_bytes // config.sector_bytes), return_index=True
        )
        cycles = np.maximum(np.add.reduceat(each, begins), config.atomic_request_cycles)
        lines = requests % (span // config.line_bytes)
        units, index = np.unique(
            lines * config.line_bytes // config.atomic_unit_bytes, return_inverse=True
        )
        total = np.bincount(index, cycles, len(units)).astype(np.float64)
        if floats:
            # One sum after the other at a word, whatever is done at others meanwhile.
            of_unit = np.searchsorted(units, words % span // config.atomic_unit_bytes)
            same, place = np.unique(words % span, return_inverse=True)
            chains = np.bincount(place, lanes, len(same)) * config.atomic_float_cycles
            np.maximum.at(total, of_unit, chains[place])
        return Meeting(units + lowest // config.atomic_unit_bytes, total)


__all__ = ["AtomicUnits", "Meeting"]

"""Where atomics meet: an atomic unit of L2 adds for some lines, one request after the other.

A request is a line of a warp.  It takes so long for each sector, less for one all of whose words are added to, and longer
for each further lane that adds to the same word; sums of floats at one word wait for each other.  Whether the warp gets back
what was there makes no difference.

Which lines have a unit together was found on an H100 SXM by adding to two lines at once, line after line of 512 KiB: of each
KiB the lines 0, 1, 4 and 5 have one, the lines 2, 3, 6 and 7 another, and of the other lines one in 73, none of them within
16 KiB.  Which ones is a hash that is not known: here each half of a KiB has a unit of its own.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json): meetings_*, until the last SM is through, whose way is
up to 1.6 times that of the mean.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.config.memory import L2
from hopsim.hw.machine.thread_groups import WARP

PATTERNS_KEPT: Final = 4096
BLOCK_LINES: Final = 8
UNITS_OF_BLOCK: Final = 2
LINES_IN_TURN: Final = 2
"""So many have one of the units of a block, the next the other, and so on."""


class Does(IntEnum):
    """What an atomic does at its words, as far as the units take other times for it."""

    ADD = 0
    """Integers, or something else that takes as long."""
    ADD_FLOATS = 1
    COMPARE = 2
    """And swap, if they are equal."""


class Meeting(NamedTuple):
    """What an access asks of the atomic units.

    Args:
        units: their numbers, counted from the first one of the block of the first address.
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
        self._seen: dict[tuple[bytes, int, Does], Meeting] = {}

    def take(
        self,
        now: float,
        addresses: int | NDArray[np.unsignedinteger],
        lanes: int,
        *,
        width: int = 4,
        does: Does = Does.ADD,
    ) -> float:
        """Return when the units have added for all lanes.

        Args:
            now: when the request comes.
            addresses: one a lane, or one for all.
            lanes: of the access; warps are 32 consecutive ones.
            width: bytes that each adds to.
            does: what they do.
        """
        first, meeting = self._meeting(addresses, lanes, width, does)
        free = self._free
        last = now
        for unit, cycles in zip(meeting.units.tolist(), meeting.cycles.tolist(), strict=True):
            begin = max(now, free.get(first + unit, 0.0))
            end = free[first + unit] = begin + cycles
            last = max(last, end)
        return last

    def _meeting(
        self,
        addresses: int | NDArray[np.unsignedinteger],
        lanes: int,
        width: int,
        does: Does,
    ) -> tuple[int, Meeting]:
        if isinstance(addresses, int):
            addresses = np.full(lanes, addresses, np.uint64)
        relative = addresses.astype(np.int64)
        block = BLOCK_LINES * self._config.line_bytes
        first = int(relative[0]) // block
        relative -= first * block
        key = (relative.tobytes(), width, does)
        known = self._seen.get(key)
        if known is None:
            if len(self._seen) >= PATTERNS_KEPT:
                self._seen.clear()
            known = self._seen[key] = self._work_out(relative, width, does)
        return UNITS_OF_BLOCK * first, known

    def _work_out(self, relative: NDArray[np.int64], width: int, does: Does) -> Meeting:
        config = self._config
        line_bytes = config.line_bytes
        block = BLOCK_LINES * line_bytes
        lowest = int(relative.min()) // block * block
        span = int(relative.max()) - lowest + line_bytes
        span += -span % line_bytes
        warp = np.arange(len(relative)) // WARP
        # Words of each warp; of each of its sectors, how many of them, and how many lanes add to the word that has most.
        words, lanes = np.unique(warp * span + relative - lowest, return_counts=True)
        sectors, begins, parts = np.unique(
            words // config.sector_bytes, return_index=True, return_counts=True
        )
        again = np.maximum.reduceat(lanes, begins) - 1
        part = config.atomic_sector_cycles
        whole = config.atomic_whole_sector_cycles
        if does is Does.COMPARE:
            part = whole = config.atomic_compare_cycles
        each = np.where(parts * width < config.sector_bytes, part, whole)
        requests, begins = np.unique(
            sectors // (line_bytes // config.sector_bytes), return_index=True
        )
        cycles = np.maximum(
            np.add.reduceat(each + again * config.atomic_again_cycles, begins),
            config.atomic_request_cycles,
        )
        units, index = np.unique(_unit(requests % (span // line_bytes)), return_inverse=True)
        total = np.bincount(index, cycles, len(units)).astype(np.float64)
        if does is Does.ADD_FLOATS:
            # One sum after the other at a word, whatever is done at others meanwhile.
            of_unit = np.searchsorted(units, _unit(words % span // line_bytes))
            same, place = np.unique(words % span, return_inverse=True)
            chains = np.bincount(place, lanes, len(same)) * config.atomic_float_cycles
            np.maximum.at(total, of_unit, chains[place])
        return Meeting(units + lowest // block * UNITS_OF_BLOCK, total)


def _unit(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the units of lines, counted from the beginning of a block."""
    return lines // BLOCK_LINES * UNITS_OF_BLOCK + lines // LINES_IN_TURN % UNITS_OF_BLOCK


__all__ = ["AtomicUnits", "Does", "Meeting"]

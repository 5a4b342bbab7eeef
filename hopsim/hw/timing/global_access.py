"""Loads, stores and atomics of threads on global memory: coalescing into sectors, the L1 cache of an SM.

L1 writes through and keeps sectors that weak loads brought in; it is as large as shared memory
leaves it.
Source: CUDA C++ Programming Guide 12, "Global Memory" (compute capability 5.x and later).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.config.memory import L1
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.timing.line_sectors import by_line
from hopsim.hw.timing.stored import Stored

PATTERNS_KEPT: Final = 4096
WORD_BYTES: Final = 4
COMING_KEPT: Final = 512
"""Lines on their way that are remembered before those that have come are forgotten."""


class Touched(NamedTuple):
    """What an access touches of global memory.

    Args:
        lines: numbers (address over line size), ascending.
        masks: a bit for each sector wanted of each line.
        whole: whether every sector of the lines is wanted.
        sectors: distinct sectors of each warp, summed.
        passes: distinct lines of each warp, summed.
        parts: sectors that pairs of lanes ask for beyond `sectors`, where a pair of 16 bytes each lies in two of them.
        uneven: lines of such pairs.
        crossed: lanes that begin another line, of those that fill a row of banks with bytes that follow each other.
        stored: the same as stores take it, which is worked out for stores alone.
    """

    lines: NDArray[np.int64]
    masks: NDArray[np.uint8]
    whole: bool
    sectors: int
    passes: int
    parts: int = 0
    uneven: int = 0
    crossed: int = 0
    stored: Stored = Stored(0, 0)


class Coalescer:
    """Finds the sectors and lines that accesses of warps touch; patterns seen before are only moved.

    Args:
        line_bytes, sector_bytes: of L2.
    """

    def __init__(self, line_bytes: int, sector_bytes: int) -> None:
        self._line_bytes = line_bytes
        self._sector_bytes = sector_bytes
        self._each = line_bytes // sector_bytes
        self._seen: dict[tuple[bytes, int, bool], Touched] = {}

    def touched(
        self,
        addresses: int | NDArray[np.unsignedinteger],
        count_bytes: int,
        lanes: int,
        is_store: bool = False,
    ) -> Touched:
        """Return what an access touches; lanes of one warp share sectors, warps do not.

        Args:
            addresses: one a lane, or one for all.
            count_bytes: of each lane; at most one vector, so aligned that it leaves its sector only
            at the end.
            lanes: of the access; warps are 32 consecutive ones.
            is_store: whether what stores take of it is wanted too.
        """
        if isinstance(addresses, int):
            addresses = np.full(lanes, addresses, np.uint64)
        relative = addresses.astype(np.int64)
        # Where a pattern starts does not matter as long as its lines begin at the same places.
        first = int(relative[0]) // self._line_bytes
        relative -= first * self._line_bytes
        key = (relative.tobytes(), count_bytes, is_store)
        known = self._seen.get(key)
        if known is None:
            if len(self._seen) >= PATTERNS_KEPT:
                self._seen.clear()
            known = self._seen[key] = self._work_out(relative, count_bytes, is_store)
        return known._replace(lines=known.lines + first)

    def _work_out(self, relative: NDArray[np.int64], count_bytes: int, is_store: bool) -> Touched:
        each = self._each
        steps = np.arange(0, count_bytes, self._sector_bytes)
        numbers = (relative[:, None] + steps) // self._sector_bytes
        lowest = int(numbers.min()) // each
        span = (int(numbers.max()) // each - lowest + 1) * each
        warp = np.arange(len(relative)) // WARP
        of_warps = np.unique(warp[:, None] * span + (numbers - lowest * each))
        sectors = np.unique(of_warps % span)
        lines, masks = by_line(sectors, each)
        parts, uneven = self._parts(relative, count_bytes)
        passes = 1 + int(np.count_nonzero(np.diff(of_warps // each)))
        masked = self._masked(relative, count_bytes, of_warps // each) if is_store else (0, 0, 0)
        return Touched(
            lines=lines + lowest,
            masks=masks,
            whole=len(sectors) == len(lines) * each,
            sectors=len(of_warps),
            passes=passes,
            parts=parts,
            uneven=uneven,
            crossed=self._crossed(relative, count_bytes),
            stored=Stored(len(of_warps), passes, *masked),
        )

    def _masked(
        self, relative: NDArray[np.int64], count_bytes: int, lines: NDArray[np.int64]
    ) -> tuple[int, int, int]:
        """Return lines of warps with sectors that are not written whole, their sectors, and lines with parts of words.

        Args:
            lines: of each sector of each warp, ascending.
        """
        warp = np.arange(len(relative)) // WARP
        from_first = relative - int(relative.min()) // self._line_bytes * self._line_bytes
        span = (int(from_first.max()) // self._line_bytes + 2) * self._line_bytes
        places = from_first[:, None] + np.arange(count_bytes)
        written = np.unique(places + warp[:, None] * span)
        sectors = np.unique(lines, return_counts=True)[1]
        counts = np.unique(written // self._line_bytes, return_counts=True)[1]
        is_masked = counts < sectors * self._sector_bytes
        masked = int(np.count_nonzero(is_masked))
        if not masked:
            return 0, 0, 0
        words, filled = np.unique(written // WORD_BYTES, return_counts=True)
        in_part = words[filled < WORD_BYTES] // (self._line_bytes // WORD_BYTES)
        return masked, int(sectors[is_masked].sum()), len(np.unique(in_part))

    def _crossed(self, relative: NDArray[np.int64], count_bytes: int) -> int:
        """Return how often lanes that fill a row of banks, as long as a line, come to the next line among them."""
        lanes = self._line_bytes // count_bytes
        if len(relative) % lanes:
            return 0
        rows = relative.reshape(-1, lanes)
        follows = np.diff(rows) == count_bytes
        return int(np.count_nonzero(follows & (rows[:, 1:] % self._line_bytes < count_bytes)))

    def _parts(self, relative: NDArray[np.int64], count_bytes: int) -> tuple[int, int]:
        """Return sectors that pairs of lanes ask for beyond those of the access, and lines of pairs that lie in two."""
        if 2 * count_bytes != self._sector_bytes or len(relative) % 2:
            return 0, 0
        pairs = relative.reshape(-1, 2) // self._sector_bytes
        split = np.unique(pairs[pairs[:, 0] + 1 == pairs[:, 1]], axis=0)
        if not len(split):
            return 0, 0
        return split.size - len(np.unique(split)), len(np.unique(split // self._each))


class L1Cache:
    """Sectors of global memory held by one SM; the least recently used line goes first.

    Args:
        config: size of the data store.
        shared_bytes: how much of it is shared memory.
        line_bytes: of a line.
    """

    def __init__(self, config: L1, shared_bytes: int, line_bytes: int) -> None:
        self.capacity = max(0, config.capacity_bytes - shared_bytes) // line_bytes
        self._lines: OrderedDict[int, int] = OrderedDict()
        # When the sectors of lines that were asked for last are there, by line.
        self._coming: dict[int, float] = {}

    def look_up(self, lines: NDArray[np.int64], masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the wanted sectors of each line that are not present; they are from now on.

        Args:
            lines: numbers.
            masks: a bit for each sector wanted of each line.
        """
        held = self._lines
        absent: list[int] = []
        if not self.capacity:
            return masks
        for line, wanted in zip(lines.tolist(), masks.tolist(), strict=True):
            known = held.get(line)
            if known is None:
                held[line] = wanted
                absent.append(wanted)
                continue
            held.move_to_end(line)
            short = wanted & ~known
            if short:
                held[line] = known | wanted
            absent.append(short)
        while len(held) > self.capacity:
            held.popitem(last=False)
        return np.array(absent, np.uint8)

    def expect(self, lines: NDArray[np.int64], now: float, when: float) -> None:
        """Note when lines come that were asked for: who loads them again waits for them too."""
        coming = self._coming
        if len(coming) > COMING_KEPT:
            self._coming = coming = {line: time for line, time in coming.items() if time > now}
        for line in lines.tolist():
            coming[line] = when

    def expected(self, lines: NDArray[np.int64]) -> float:
        """Return when the last of some lines is there that were asked for before; 0 if none was."""
        coming = self._coming
        if not coming:
            return 0.0
        return max((coming.get(line, 0.0) for line in lines.tolist()), default=0.0)

    def drop(self, lines: NDArray[np.int64]) -> None:
        """Forget lines that are written."""
        held = self._lines
        if held:
            for line in lines.tolist():
                held.pop(line, None)

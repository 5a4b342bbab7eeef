"""One partition of L2: how many lines of each kind it holds, and which of them were used least recently.

A partition is an array with the time stamp of each line's last use (0: absent) and queues of the
line sets in order of use: a set's lines that still carry its stamp when it is the oldest are the
least recently used ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopsim.hw.timing.line_sectors import Lines

Kinds = NDArray[np.int8]
"""Of each line number, which of the capacities counts for it."""


class Partition:
    """Stamps and the queues of one partition.

    Args:
        capacities: lines of each kind that it holds.
        size: how many line numbers there are.

    Lines of every kind are used alike, so one queue has the recent ones of all.  What the first kind has no room for goes
    from its end, and the others with it to the queue of the next kind: sets of lines are split only where they grow old.
    """

    __slots__ = ("capacities", "filled", "queued", "queues", "resident", "stamp")

    def __init__(self, capacities: Sequence[int], size: int) -> None:
        self.capacities = tuple(capacities)
        self.stamp: NDArray[np.int32] = np.zeros(size, np.int32)
        self.queues: list[deque[tuple[int, Lines]]] = [deque() for _ in self.capacities]
        self.queued = 0
        self.resident = [0] * len(self.capacities)
        # Lines that came, since the beginning.
        self.filled = 0

    def use(self, tick: int, lines: Lines, fresh: Lines | None, kinds: Kinds) -> None:
        """Make lines the most recently used ones; `fresh`, those that were absent, None: none was."""
        self.stamp[lines] = tick
        if fresh is not None:
            self._count(fresh, kinds, 1)
            self.filled += len(fresh)
        self.queues[0].append((tick, lines))
        self.queued += len(lines)
        if self.queued > 8 * sum(self.capacities):
            self._compact()

    def evict(self, kinds: Kinds) -> Lines | None:
        """Drop lines of a kind that has too many, those least recently used; return what was dropped."""
        for kind, capacity in enumerate(self.capacities):
            surplus = self.resident[kind] - capacity
            while surplus > 0:
                oldest = kind
                while not self.queues[oldest]:
                    oldest -= 1
                old = self._pop(oldest)
                # Hashed lines of all kinds come alike: where one has too many, those before it are about full.
                most = surplus if oldest == kind else len(old[1])
                gone = self._hand_on(old, oldest, most, kinds)
                if len(gone):
                    return gone
        return None

    def drop(self, lines: Lines, kinds: Kinds) -> None:
        """Forget lines."""
        gone = lines[self.stamp[lines] > 0]
        if len(gone):
            self.stamp[gone] = 0
            self._count(gone, kinds, -1)

    def _count(self, lines: Lines, kinds: Kinds, sign: int) -> None:
        resident = self.resident
        for kind, count in enumerate(np.bincount(kinds[lines], minlength=len(resident)).tolist()):
            resident[kind] += sign * count

    def _pop(self, number: int) -> tuple[int, Lines]:
        """Take the oldest set of a queue, without the lines that were used again."""
        tick, lines = self.queues[number].popleft()
        self.queued -= len(lines)
        return tick, lines[self.stamp[lines] == tick]

    def _hand_on(self, old: tuple[int, Lines], kind: int, surplus: int, kinds: Kinds) -> Lines:
        """Drop so many lines of a kind from a set, and hand those of other kinds before the last of them on."""
        tick, lines = old
        places = np.flatnonzero(kinds[lines] == kind)
        end = int(places[surplus]) if len(places) > surplus else len(lines)
        before, behind = lines[:end], lines[end:]
        is_other = kinds[before] > kind
        gone, kept = before[~is_other], before[is_other]
        if len(kept):
            self.queues[kind + 1].append((tick, kept))
            self.queued += len(kept)
        if len(behind):
            self.queues[kind].appendleft((tick, behind))
            self.queued += len(behind)
        self.stamp[gone] = 0
        self._count(gone, kinds, -1)
        return gone

    def _compact(self) -> None:
        """Forget the parts of queued sets that were used again later."""
        self.queued = 0
        for number, queue in enumerate(self.queues):
            kept: deque[tuple[int, Lines]] = deque()
            for tick, lines in queue:
                still = lines[self.stamp[lines] == tick]
                if len(still):
                    kept.append((tick, still))
                    self.queued += len(still)
            self.queues[number] = kept

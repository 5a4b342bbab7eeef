"""A way that data take: it serves in the order of asking, and nobody waits while it is idle.

Work is booked when it is asked for, and may begin much later, as that of a TMA engine that is full: until then others have
the way.  What device memory has to give first is booked when all of it has come: by then it is known what others left of
the way since the first of it came.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

# Idle times that are remembered; what comes late has not been on its way for longer.
IDLE_TIMES: Final = 256
# Cycles that are no more than what sums of times leave over.
NOTHING: Final = 1e-6


class Way:
    """One way.

    Args:
        rate: work a cycle.
    """

    __slots__ = ("_begins", "_ends", "free", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.free = 0.0
        # When it had nothing to do, in order.
        self._begins: list[float] = []
        self._ends: list[float] = []

    def take(self, begin: float, work: float) -> float:
        """Do work from `begin` on; return when it is done.

        >>> way = Way(2.0)
        >>> way.take(10.0, 8.0), way.take(0.0, 2.0), way.take(10.0, 2.0)
        (14.0, 1.0, 15.0)
        """
        if begin > self.free:
            self._rest(begin)
        elif self._ends and self._ends[-1] > begin:
            return self._fit(begin, work / self.rate)
        self.free += work / self.rate
        return self.free

    def take_late(self, begin: float, now: float, work: float) -> float:
        """Do work that came between `begin` and now; return how much later than now it is done.

        >>> way = Way(1.0)
        >>> way.take(6.0, 2.0), way.take_late(4.0, 10.0, 3.0), way.take_late(4.0, 10.0, 3.0)
        (8.0, 0.0, 2.0)
        """
        if now > self.free:
            self._rest(now)
        left = self._fill(begin, now, work / self.rate)
        if left < NOTHING:
            return 0.0
        return self._fit(now, left) - now

    def _fit(self, begin: float, cycles: float) -> float:
        """Take idle cycles from `begin` on, the earliest first, then those that come; return when all are done."""
        begins, ends = self._begins, self._ends
        place = bisect_right(ends, begin)
        while place < len(begins):
            first = begins[place] if begins[place] > begin else begin
            last = min(ends[place], first + cycles)
            cycles -= last - first
            place += self._cut(place, first, last)
            if cycles < NOTHING:
                return last
        self.free += cycles
        return self.free

    def _fill(self, begin: float, now: float, cycles: float) -> float:
        """Take idle cycles from `begin` until now, the latest first; return how many are missing."""
        begins, ends = self._begins, self._ends
        place = len(begins)
        while place and cycles > 0.0:
            place -= 1
            low, high = begins[place], ends[place]
            if high <= begin:
                break
            last = high if high < now else now
            room = last - (low if low > begin else begin)
            if room <= 0.0:
                continue
            first = last - min(room, cycles)
            cycles -= last - first
            self._cut(place, first, last)
        return cycles

    def _cut(self, place: int, first: float, last: float) -> bool:
        """Take a part of an idle time; return whether there is some left before it."""
        begins, ends = self._begins, self._ends
        if last < ends[place]:
            begins.insert(place + 1, last)
            ends.insert(place + 1, ends[place])
        if first > begins[place]:
            ends[place] = first
            return True
        del begins[place], ends[place]
        return False

    def _rest(self, until: float) -> None:
        """Note that it has nothing to do until then."""
        self._begins.append(self.free)
        self._ends.append(until)
        self.free = until
        if len(self._begins) > IDLE_TIMES:
            del self._begins[: IDLE_TIMES // 2], self._ends[: IDLE_TIMES // 2]

"""Until when a unit has work, as it was known at each time: what came while a request waited."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

# Times that are remembered; no request waits as long as so many take.
HISTORY: Final = 4096


class Backlog:
    """The work of one unit, in cycles of the SM clock; it serves in the order of asking, as far as this knows."""

    __slots__ = ("_frees", "_times")

    def __init__(self) -> None:
        self._times: list[float] = []
        self._frees: list[float] = []

    def note(self, now: float, free: float) -> None:
        """Note that there is work until `free`; times never fall."""
        times, frees = self._times, self._frees
        if times and times[-1] >= now:
            frees[-1] = free
            return
        times.append(now)
        frees.append(free)
        if len(times) > HISTORY:
            del times[: HISTORY // 2], frees[: HISTORY // 2]

    def behind(self, finish: float) -> float:
        """Return how much work came until `finish` and has to be done then, in cycles."""
        place = bisect_right(self._times, finish) - 1
        return max(0.0, self._frees[place] - finish) if place >= 0 else 0.0

"""Loads of the warps of a CTA between two waits, which the data pipe of L1 serves line by line.

Warps that start together drift apart: while one waits for its data, others are served.  How much they stand in each other's
way then is what a closed queue gives: so many customers, each for some time at one counter and away for some time, who come
by chance.  Warps that wait for the same lines of device memory are together again when these come.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json): gather_tiles_*, gather_walk_*.
"""

from __future__ import annotations

from hopsim.hw.timing.shared_memory import SharedPipe


def response(customers: int, service: float, away: float) -> float:
    """Return how long a customer is at a counter, in times of its service (exact mean value analysis).

    Args:
        customers: who come again and again.
        service: what each takes.
        away: from when it leaves until it comes again.

    >>> response(1, 10.0, 5.0), response(4, 10.0, 0.0)
    (1.0, 4.0)
    """
    waiting = 0.0
    there = service
    for number in range(1, customers + 1):
        there = service * (1.0 + waiting)
        waiting = number * there / (there + away)
    return there / service


class _Burst:
    """Passes of a warp since the last wait: when the first began and the last ends, how many, how much longer each takes."""

    __slots__ = ("begin", "end", "own", "stretch")

    def __init__(self, warps: int) -> None:
        self.begin = 0.0
        self.end = -1.0
        self.own = 0.0
        # Warps begin together.
        self.stretch = float(warps)


class LoadBursts:
    """The bursts of all CTAs."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[int, _Burst] = {}

    def take(
        self, pipe: SharedPipe, cta: int, passes: int, warps: int, time: float
    ) -> tuple[float, float]:
        """Take the data pipe of L1, a pass for each line of each warp; return when a warp's load enters and leaves it.

        Args:
            pipe: of the SM.
            cta: its number.
            passes: of all warps.
        """
        free = pipe.free
        pipe.book(time, passes, passes)
        burst = self._last.get(cta)
        if burst is None:
            burst = self._last[cta] = _Burst(warps)
        begin = burst.end
        if time > begin:
            if burst.own:
                burst.stretch = response(warps, burst.own, time - begin)
            burst.own = 0.0
            burst.begin = begin = max(time, free)
        own = passes / warps
        burst.own += own
        burst.end = begin + own * burst.stretch
        return begin, burst.end

    def meet(self, cta: int, warps: int) -> float:
        """Let warps that wait for the same lines of device memory go on together; return how much later that is."""
        burst = self._last[cta]
        burst.stretch = float(warps)
        end = burst.begin + burst.own * warps
        later = max(0.0, end - burst.end)
        burst.end += later
        return later

"""Lines on their way into L2, from device memory or from the other half: who finds them there before waits for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.l2_tags import L2Tags
from hopsim.hw.timing.line_sectors import Lines


def _grown(values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    grown = np.zeros(size, np.float64)
    grown[: len(values)] = values
    return grown


class InFlight:
    """When each line comes; times in cycles of the SM clock.

    Of what a read brings three times are told, as `Reply` has them: `ready`, `first` and `finish`.

    Args:
        tags: of L2.
        dram: what is behind it.
    """

    __slots__ = ("_dram", "_finish", "_last", "_ready", "_tags")

    def __init__(self, tags: L2Tags, dram: DramChannels) -> None:
        self._tags = tags
        self._dram = dram
        self._ready: NDArray[np.float64] = np.zeros(0, np.float64)
        self._finish: NDArray[np.float64] = np.zeros(0, np.float64)
        # When the last line comes that was asked for.
        self._last = 0.0

    def ready(self, line: int) -> float:
        """Return when a line comes to the SM that asked for it first; 0 if it never was on its way."""
        return float(self._ready[line]) if line < len(self._ready) else 0.0

    def bring(self, lines: Lines, ready: float, finish: float) -> None:
        """Note when lines come."""
        self._cover()
        self._ready[lines] = ready
        self._finish[lines] = finish

    def _cover(self) -> None:
        """Make room for all lines that have a number."""
        size = self._tags.size
        if len(self._ready) < size:
            self._ready = _grown(self._ready, size)
            self._finish = _grown(self._finish, size)

    def read(
        self,
        lines: Lines,
        fetched: Lines | None,
        start: float,
        is_far: bool,
        ready: float,
        first: float,
        finish: float,
    ) -> tuple[float, float, float]:
        """Note when the lines of a read come that come from elsewhere, and wait for those that others have fetched.

        Args:
            lines: that are read.
            fetched: which of them come from elsewhere; None: none does.
            start: when the last request comes to the slices.
            is_far: whether some come from the other half.
            ready, first, finish: of the lines that are fetched, or all if none is.
        Returns: the same of all lines.
        """
        waits = self._last > start
        if fetched is None:
            if waits and len(self._ready) >= self._tags.size:
                return self._wait(lines, ready, first, finish)
            return ready, first, finish
        if waits and (is_far or len(fetched) < len(lines)):
            self._cover()
            ready, first, finish = self._wait(lines, ready, first, finish)
        self.bring(fetched, ready, finish)
        if ready > self._last:
            self._last = ready
        return ready, first, finish

    def _wait(
        self, lines: Lines, ready: float, first: float, finish: float
    ) -> tuple[float, float, float]:
        """Wait for lines that are on their way; take and return what `read` does."""
        arrival = float(self._ready[lines].max())
        if arrival <= ready:
            return ready, first, finish
        first = max(first, arrival - self._dram.spread_cycles)
        return arrival, first, max(finish, float(self._finish[lines].max()))


__all__ = ["InFlight"]

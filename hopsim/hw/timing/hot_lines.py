"""Lines that many ask for at once, which a few slices of L2 serve slowly while other requests stand behind them.

Two things make lines hot: rows of a box outside its tensor, which are a few lines, and rows that lanes of an instruction
read again, such as rows of a ragged tile that are the last one of the matrix once more.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, groups few_rows and hot).
"""

from __future__ import annotations

from collections.abc import Hashable

from hopsim.config.memory import L2


class OutsideRows:
    """Rows of boxes outside their tensors: a few lines for each place along K, which lie in a few slices.

    Times are in cycles of the SM clock.

    More places at once are served by more slices, which then help with what came before too.  Boxes that lie wholly outside
    ask for eight lines that are the same for all.

    Args:
        config: rates, and how many places are served at the rate of one.
        near_cycles: from L2 to an SM.
    """

    __slots__ = ("_beside", "_config", "_factor", "_near", "_places", "_rate", "free")

    def __init__(self, config: L2, near_cycles: float) -> None:
        self._config = config
        self._near = near_cycles
        self._factor = 1.0
        self._beside = config.beside_outside_bandwidth_bytes_per_clk
        self._rate = config.outside_bandwidth_bytes_per_clk
        # Places along K, and when the last of their requests is answered.
        self._places: dict[Hashable, float] = {}
        # Until when there is work.
        self.free = 0.0

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on."""
        self._factor = factor
        self._beside = self._config.beside_outside_bandwidth_bytes_per_clk * factor

    def read(self, now: float, start: float, count_bytes: int, place: Hashable) -> float:
        """Read the part of a box that lies outside its tensor; return when the last byte reaches the SM.

        Args:
            now: when the bandwidth is booked.
            start: when the last request leaves the SM.
            place: tells it from others; None: of boxes that lie wholly outside.
        """
        config = self._config
        places = self._places
        if len(places) >= config.outside_places:
            for other in [other for other, until in places.items() if until <= now]:
                del places[other]
        more = max(0, len(places) - config.outside_places)
        least = config.outside_bandwidth_bytes_per_clk
        if place is None:
            least = config.outside_box_bandwidth_bytes_per_clk
        rate = self._factor * min(
            least + more * config.outside_bandwidth_per_place_bytes_per_clk,
            config.outside_bandwidth_most_bytes_per_clk,
        )
        waiting = max(0.0, self.free - now) * self._rate
        self._rate = rate
        self.free = now + (waiting + count_bytes) / rate
        ready = max(start, self.free) + self._near
        places[place] = ready
        return ready

    def stand_behind(self, count_bytes: int) -> float:
        """Serve bytes after the rows outside, whose slices have a part of any box; return when."""
        self.free += count_bytes / self._beside
        return self.free


class RepeatedLines:
    """Lines that lanes of `cp.async` of several SMs read once more; times in cycles of the SM clock.

    Requests are answered one after the other, those for a line that is on its way when it has come; what comes out of
    device memory is asked for behind them.

    Args:
        config: the rate.
    """

    __slots__ = ("_first", "_nominal", "_rate", "free")

    def __init__(self, config: L2) -> None:
        self._nominal = self._rate = config.repeated_bandwidth_bytes_per_clk
        # The SM that asked first for each line.
        self._first: dict[int, int] = {}
        # Until when there is work.
        self.free = 0.0

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on."""
        self._rate = self._nominal * factor

    def read(
        self, now: float, start: float, line: int, count_bytes: int, sm: int, arrival: float
    ) -> float:
        """Read bytes of a line once more; return when the last request is answered.

        Args:
            now: when the bandwidth is booked.
            start: when the last request leaves the SM.
            arrival: when L2 has the line.
        """
        if self._first.setdefault(line, sm) == sm:
            return start
        self.free = max(self.free, now, arrival) + count_bytes / self._rate
        return max(start, self.free)


__all__ = ["OutsideRows", "RepeatedLines"]

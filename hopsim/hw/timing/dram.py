"""Device memory: all channels together, one byte rate for reads and writes, a rate at which pages open, one latency.

What lies in one page comes at the byte rate; short pieces of many pages come as fast as pages can be opened.

Work is booked when it is asked for, so that a request which starts later does not leave a hole
before it.
"""

from __future__ import annotations

from hopsim.config.groups import Dram


class DramChannels:
    """The HBM of the chip.

    Args:
        config: bandwidth at the SM clock, the share of it that streams reach, latency.
    """

    __slots__ = (
        "_bytes_per_clk",
        "_latency_cycles",
        "_pages_per_clk",
        "_spread_cycles",
        "busy_cycles",
        "free",
        "page_bytes",
        "read_bytes",
        "written_bytes",
    )

    def __init__(self, config: Dram) -> None:
        self._bytes_per_clk = config.bandwidth_bytes_per_clk * config.efficiency
        self._pages_per_clk = config.pages_per_clk
        self.page_bytes = config.page_bytes
        self._latency_cycles = float(config.latency_cycles)
        self._spread_cycles = float(config.latency_spread_cycles)
        self.free = 0.0
        self.busy_cycles = 0.0
        self.read_bytes = 0
        self.written_bytes = 0

    def latency(self, lines: int) -> float:
        """Return when the slowest of some lines comes on an idle chip.

        Latencies of single lines are taken as spread evenly, so that of n the slowest lies at n / (n + 1) of the spread.
        """
        return self._latency_cycles + self._spread_cycles * lines / (lines + 1)

    def read(self, now: float, count_bytes: int, pages: int = 0) -> float:
        """Ask for bytes that lie in so many pages; return the cycles beyond the latency until the last one comes."""
        self.read_bytes += count_bytes
        return self._transfer(now, count_bytes, pages)

    def write(self, now: float, count_bytes: int) -> float:
        """Write bytes back; return the cycles until the channels have taken them."""
        self.written_bytes += count_bytes
        return self._transfer(now, count_bytes, 0)

    def _transfer(self, now: float, count_bytes: int, pages: int) -> float:
        cycles = max(count_bytes / self._bytes_per_clk, pages / self._pages_per_clk)
        self.busy_cycles += cycles
        begin = self.free if self.free > now else now
        self.free = begin + cycles
        return self.free - now

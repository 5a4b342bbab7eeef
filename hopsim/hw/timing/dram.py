"""Device memory: all channels together, one byte rate for reads and writes, one latency.

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
        "busy_cycles",
        "free",
        "latency_cycles",
        "read_bytes",
        "written_bytes",
    )

    def __init__(self, config: Dram) -> None:
        self._bytes_per_clk = config.bandwidth_bytes_per_clk * config.efficiency
        self.latency_cycles = float(config.latency_cycles)
        self.free = 0.0
        self.busy_cycles = 0.0
        self.read_bytes = 0
        self.written_bytes = 0

    def read(self, now: float, count_bytes: int) -> float:
        """Ask for bytes; return the cycles beyond the latency until the last one comes (queueing and transfer)."""
        self.read_bytes += count_bytes
        return self._transfer(now, count_bytes)

    def write(self, now: float, count_bytes: int) -> float:
        """Write bytes back; return the cycles until the channels have taken them."""
        self.written_bytes += count_bytes
        return self._transfer(now, count_bytes)

    def _transfer(self, now: float, count_bytes: int) -> float:
        cycles = count_bytes / self._bytes_per_clk
        self.busy_cycles += cycles
        begin = self.free if self.free > now else now
        self.free = begin + cycles
        return self.free - now

"""The SM-to-SM network of a cluster: distributed shared memory, remote arrivals.

Each SM sends and receives at a fixed rate that idle neighbours do not add to.
Source: seanzw/random, dsm_bw/ANALYSIS.md (H200): a TMA ring of 16 SMs has 16 times the rate of one.
"""

from __future__ import annotations

from hopsim.config.memory import Dsmem


class Fabric:
    """The network between the SMs; times in cycles of the SM clock.

    Args:
        config: latency there and back, bytes that one SM sends and receives a cycle.
        sm_count: SMs of the chip.
    """

    __slots__ = ("_bytes_per_clk", "_latency_cycles", "bytes_moved", "receive_free", "send_free")

    def __init__(self, config: Dsmem, sm_count: int) -> None:
        self._bytes_per_clk = config.bandwidth_per_sm_bytes_per_clk
        self._latency_cycles = float(config.latency_cycles)
        self.send_free = [0.0] * sm_count
        self.receive_free = [0.0] * sm_count
        self.bytes_moved = 0

    def transfer(self, now: float, source: int, target: int, count_bytes: int) -> float:
        """Move bytes from one SM to another; return when the last one is there and acknowledged."""
        cycles = count_bytes / self._bytes_per_clk
        begin = max(now, self.send_free[source], self.receive_free[target])
        self.send_free[source] = self.receive_free[target] = begin + cycles
        self.bytes_moved += count_bytes
        return begin + cycles + self._latency_cycles

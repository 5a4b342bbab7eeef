"""The tensor cores of one SM, as mma.sync sees them: each sub-partition has a pipe of its own."""

from __future__ import annotations

from hopsim.config.groups import MmaSync
from hopsim.hw.timing.issue import Ports
from hopsim.isa.numerics.mma_kinds import FP8


class MmaPipe:
    """mma.sync on one SM: each sub-partition has its share of the rate; times in cycles of the SM clock.

    Args:
        config: rates and latency.
        subpartitions: of the SM.
    """

    __slots__ = ("_config", "_latency", "_rates", "busy_cycles", "free", "operations")

    def __init__(self, config: MmaSync, subpartitions: int) -> None:
        self._config = config
        self._latency = config.latency_cycles
        # Cycles of the SM's pipes, and of the warp's own before its next one, by (type, flop).
        self._rates: dict[tuple[str, float], tuple[float, float]] = {}
        self.free = [0.0] * subpartitions
        self.busy_cycles = 0.0
        self.operations = 0

    def worked_until(self, now: float) -> float:
        """Return the cycles of all work that is done by then, of the pipes of all sub-partitions."""
        ahead = sum(max(0.0, free - now) for free in self.free)
        return self.busy_cycles - ahead / len(self.free)

    def book(
        self, issue: float, product: tuple[str, float], ports: Ports, before: float
    ) -> tuple[float, float, float]:
        """Execute one m16nNkK for each warp of a strand.

        Args:
            product: its type and flop.
            ports: warps of the strand by sub-partition.
            before: when its last one let another begin.
        Returns: when a dependent one can issue, when this one lets another begin, and when all of it has been issued.
        """
        rates = self._rates.get(product)
        if rates is None:
            kind, flop = product
            own_cycles = self._config.fp8_interval_cycles if kind in FP8 else 0.0
            rates = self._rates[product] = (flop / self._config.flop_per_clk[kind], own_cycles)
        duration, interval = rates
        free = self.free
        latency = self._latency
        each = duration * len(free)
        last = then = taken = 0.0
        for port, warps in ports:
            self.busy_cycles += duration * warps
            self.operations += warps
            start = free[port]
            if start < issue:
                start = issue
            # The pipe is free for others in between.
            end = free[port] = start + each * warps
            own = (before if before > start else start) + interval * warps
            done = start + latency
            if end > done:
                done = end
            if own > done:
                done = own
            if done > last:
                last = done
            if end - each > taken:
                taken = end - each
            if own > then:
                then = own
        # Of an fp8 one the last instructions add its products up, when these are there.
        return last, then, last + self._config.fp8_latency_cycles if interval else taken


__all__ = ["MmaPipe"]

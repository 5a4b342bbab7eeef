"""The slices of L2, those of a partition together: what looking up, giving and taking sectors costs, and who waits for it.

What is asked for meets some slices that are busy while others have nothing to do (`Stream`).  What SMs send has a way of its
own; slices are asked for a share of the time only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hopsim.config.memory import L2
from hopsim.hw.timing.footprint import Footprint
from hopsim.hw.timing.stream import Stream


def in_groups(sectors: int, each: int) -> NDArray[np.int64]:
    """Return what a slice gives for each mask of the sectors of a line: whole groups of so many.

    >>> in_groups(4, 2)[[0b0001, 0b0011, 0b0110, 0b1110]].tolist()
    [2, 2, 4, 4]
    """
    bits = np.arange(1 << sectors)[:, None] >> np.arange(sectors) & 1
    return each * bits.reshape(1 << sectors, sectors // each, each).any(axis=2).sum(axis=1)


def _queue(free: list[float], side: int, now: float, cycles: float) -> float:
    """Put work behind what one of some units has to do; return how long it takes until it is done."""
    begin = free[side] if free[side] > now else now
    free[side] = begin + cycles
    return free[side] - now


class Slices:
    """The slices of each partition; times in cycles of the SM clock, costs in sectors of whole lines that are read.

    Args:
        config: bandwidth, and what a slice looks up at a time.
    """

    __slots__ = (
        "_given", "_look_up", "_nominal", "_rate", "_reads_free", "_streams", "_tag_alone", "_write_share",
        "_writes_free", "busy_cycles", "partitions", "write_cost",
    )  # fmt: skip

    def __init__(self, config: L2) -> None:
        self.partitions = config.partitions
        # Sectors that those of one partition give a cycle.
        self._nominal = config.bandwidth_bytes_per_clk / config.partitions / config.sector_bytes
        self._rate = self._nominal
        each = config.line_bytes // config.sector_bytes
        self._look_up = config.sectors_per_look_up
        self._given = in_groups(each, self._look_up)
        # The share of a line that a slice does not give when it looks up the tag alone.
        self._tag_alone = 1.0 - self._look_up / each
        # Of a written sector; a write is looked up at its home too.
        looked_up = 2.0 - 1.0 / config.partitions
        self.write_cost = (
            config.bandwidth_bytes_per_clk / config.write_bandwidth_bytes_per_clk / looked_up
        )
        self._write_share = config.write_beside_reads
        self._reads_free = [0.0] * config.partitions
        self._writes_free = [0.0] * config.partitions
        self._streams = [
            Stream(self._rate, config.gathering_cycles) for _ in range(config.partitions)
        ]
        # Of all partitions together.
        self.busy_cycles = 0.0

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on."""
        self._rate = self._nominal * factor
        for stream in self._streams:
            stream.rate = self._rate

    def cost(self, wanted: Footprint, elsewhere: float) -> float:
        """Return what it costs to give what is wanted.

        Args:
            elsewhere: sectors of lines that have to come from their home: the half asked first looks up the tag alone.
        """
        masks, splits = wanted.masks, wanted.splits
        given = wanted.sectors if masks is None else int(self._given[masks].sum())
        # Parts of sectors are asked for alone.
        parts = splits.parts * splits.part_sectors
        return max(given - self._tag_alone * elsewhere, len(wanted.lines) * self._look_up + parts)

    def wait(self, now: float, side: int, begin: float, start: float, cost: float) -> float:
        """Ask a partition, evenly from `begin` until `start`; return how many cycles requests wait for its slices."""
        stream = self._streams[side]
        wait = stream.backlog(now)
        stream.ask(begin, start, cost)
        return wait

    def serve(self, now: float, side: int, cost: float) -> float:
        """Take bandwidth of a partition; return the cycles until it is through."""
        cycles = cost / self._rate
        self.busy_cycles += cycles
        return _queue(self._reads_free, side, now, cycles)

    def take(self, now: float, side: int, cost: float) -> float:
        """Take what is written to a partition; return the cycles until it is through."""
        self.serve(now, side, cost * self._write_share)
        return _queue(self._writes_free, side, now, cost / self._rate)

    def others(
        self, book: Callable[[float, int, float], float], now: float, side: int, cost: float
    ) -> float:
        """Have the other partitions `serve` or `take`, each an even part; return the cycles until all are through."""
        count = self.partitions - 1
        return max(book(now, number, cost / count) for number in range(count + 1) if number != side)


__all__ = ["Slices"]

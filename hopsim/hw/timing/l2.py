"""L2 in time: latency near and far, what its slices take, device memory behind it.

Boxes are looked up whole. Every byte asked for has joined a request in flight, hit, or is fetched
from device memory, and is counted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.config.memory import L2
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.footprint import Footprint
from hopsim.hw.timing.hot_lines import OutsideRows, RepeatedLines
from hopsim.hw.timing.in_flight import InFlight
from hopsim.hw.timing.l2_counters import L2Counters
from hopsim.hw.timing.l2_tags import L2Tags
from hopsim.hw.timing.line_sectors import WHOLE, Lines, Masks
from hopsim.hw.timing.slices import Slices
from hopsim.hw.timing.stored import StoreCosts, Stored

ALONE: Final = 0.5
"""When the line that comes last is asked for, from the first request to the last: half-way on average."""
IN_PAIRS: Final = 1.0
"""The same of a box whose lines bring others with them.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, cold_tiles_*): with an L2 promotion of 256 bytes the
first stage comes as late as the mean of the first two comes without it, and the second with the first.
"""


def deal(gpc_sm_counts: Sequence[int], partitions: int) -> list[int]:
    """Return a partition for each GPC, so that all serve about as many SMs; which it is on silicon is unknown.

    >>> deal([4, 16, 16, 18], 2)
    [0, 1, 1, 0]
    """
    served = [0] * partitions
    result = [0] * len(gpc_sm_counts)
    for gpc in sorted(range(len(gpc_sm_counts)), key=lambda gpc: -gpc_sm_counts[gpc]):
        side = served.index(min(served))
        result[gpc] = side
        served[side] += gpc_sm_counts[gpc]
    return result


class Reply(NamedTuple):
    """What L2 says to a read; times in cycles of the SM clock.

    Args:
        ready: when the last byte reaches the SM.
        late: cycles by which that is later than L2 alone would give it.
        wait: cycles of these for which its requests wait for slices.
        look_ups: what its look-ups take, in those of whole lines; at least 1.
        first: when the first of it comes to the SM if device memory has a part in it; else 0.
        finish: when device memory is done with it if nobody asks that for more; 0: it has no part in it.
    """

    ready: float
    late: float = 0.0
    wait: float = 0.0
    look_ups: float = 1.0
    first: float = 0.0
    finish: float = 0.0


class L2Cache:
    """The L2 of the chip; times in cycles of the SM clock.

    Args:
        config: sizes, latencies, bandwidth.
        dram: what is behind it.
        gpc_sm_counts: SMs of each group; each group belongs to a partition.
    """

    def __init__(self, config: L2, dram: DramChannels, gpc_sm_counts: Sequence[int]) -> None:
        self._dram = dram
        self.tags = L2Tags(
            config.capacity_bytes, config.partitions, config.line_bytes, config.sector_bytes,
            config.ways, config.dirty_at_launch_bytes, config.set_spread,
            config.fetch_bytes // config.sector_bytes,
        )  # fmt: skip
        self.sector_bytes = config.sector_bytes
        self._config = config
        self.near = float(config.latency_near_cycles)
        self._far = float(config.latency_far_cycles)
        # In cycles of all that L2 writes.
        self._write_buffer = config.write_buffer_bytes / config.write_bandwidth_bytes_per_clk
        self._store_costs = StoreCosts(config)
        self._threads_write = (
            config.write_bandwidth_bytes_per_clk / config.threads_write_bandwidth_bytes_per_clk
        )
        self.slices = Slices(config)
        self._in_flight = InFlight(self.tags, dram)
        self.outside = OutsideRows(config, self.near)
        self._repeated = RepeatedLines(config)
        self._atomics_free = 0.0
        self._reduces_free = 0.0
        self._reduce_rate = config.reduce_bandwidth_bytes_per_clk
        # In cycles of all that L2 adds.
        self._reduce_buffer = config.reduce_buffer_bytes / config.reduce_bandwidth_bytes_per_clk
        self._atomic_interval = config.atomic_interval_cycles
        self._atomic_miss_interval = config.atomic_miss_interval_cycles
        self.counters = L2Counters()
        self._side_of = deal(gpc_sm_counts, config.partitions)

    def overtaken(self, finish: float) -> float:
        """Return how much later a read comes than it was said to, for what device memory served before it.

        Args:
            finish: `Reply.finish` of the read.
        """
        return self._dram.overtaken(finish)

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on."""
        config = self._config
        self.slices.speed_up(factor)
        # The way to L2 and back takes as many cycles as ever (recorded); that to the other half is L2's own.
        self._far = self.near + (config.latency_far_cycles - self.near) / factor
        self.outside.speed_up(factor)
        self._repeated.speed_up(factor)
        self._atomic_interval = config.atomic_interval_cycles / factor
        self._reduce_rate = config.reduce_bandwidth_bytes_per_clk * factor
        self._atomic_miss_interval = config.atomic_miss_interval_cycles / factor

    def read(
        self, now: float, start: float, wanted: Footprint, gpc: int, begin: float | None = None
    ) -> Reply:
        """Read a box or the lines of a warp.

        Args:
            now: when the bandwidth is booked.
            begin, start: when the first and the last request leave the SM (not before `now`).
            wanted: what is read.
            gpc: of the SM that asks.
        """
        lines, sectors, masks, beside = wanted.lines, wanted.sectors, wanted.masks, wanted.beside
        counters = self.counters
        counters.requested += sectors
        count = len(lines)
        if count == 0:
            return Reply(start + self.near)
        begin = start if begin is None else begin
        side = self._side_of[gpc]
        found, written_back = self.tags.read(lines, side, masks is None)
        slices = self.slices
        cost = slices.cost(wanted, sectors * (found.far + found.remote_missed) / count)
        queue = slices.serve(now, side, cost)
        wait = slices.wait(now, side, begin, start, cost)
        start += wait
        counters.read += sectors
        fetched = found.fetched
        first = finish = 0.0
        short = brought = 0
        absent: NDArray[np.uint8] | None = None
        if masks is not None:
            absent, coming = self.tags.claim(lines, masks)
            short, brought = int(absent.sum()), int(coming.sum())
        if fetched is None and short:
            # The lines are there, but not these sectors of them.
            assert absent is not None
            fetched = lines[absent > 0]
            counters.hit += sectors - short
            ready = max(start, now + queue) + self.near
            last, first, finish = self._fetch(now, begin, start, brought, fetched)
            ready = max(ready, last)
        elif fetched is None:
            counters.hit += sectors
            ready = max(start, now + queue) + self.near
        else:
            missed = sectors * found.missed // count if absent is None else short
            brought = missed if absent is None else brought
            far = sectors * found.far // count
            counters.hit += max(0, sectors - missed - far)
            looked_up = far + sectors * found.remote_missed // count
            if looked_up:
                # The home partition is asked as well.
                counters.read += looked_up
                counters.hit += far
                queue = max(queue, slices.others(slices.serve, now, side, looked_up))
            latency = self._far if found.far or found.remote_missed else self.near
            ready = max(start, now + queue) + latency
            if missed:
                waited = IN_PAIRS if beside is not None and len(beside) else ALONE
                last, first, finish = self._fetch(now, begin, start, brought, fetched, waited)
                ready = max(ready, last)
                if beside is not None:
                    incomplete = None if masks is None else fetched
                    self._fetch_beside(now, beside, ready, finish, side, incomplete)
        at_once = max(start, now + queue) + (self.near if fetched is None else self._far)
        if written_back:
            self._write_back(now, written_back)
        outside = self.outside
        if outside.free > begin:
            late = outside.stand_behind(sectors * self.sector_bytes) - begin
            # What device memory has is asked for when L2 has looked.
            ready = max(ready, begin + late + self.near) if fetched is None else ready + late
        ready, first, finish = self._in_flight.read(
            lines, fetched, start, bool(found.far), ready, first, finish
        )
        return Reply(
            ready, max(0.0, ready - at_once), wait, max(1.0, cost / sectors), first, finish
        )

    def beside(self, addresses: Lines, fetch_bytes: int, in_part: bool) -> Lines | None:
        """Return what comes from memory with lines that are missed, as a `Footprint` has it; None: no more than always.

        Args:
            addresses: of the lines.
            fetch_bytes: of the aligned pieces that misses bring at least.
            in_part: whether only some sectors of them are wanted.

        Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, cold_sectors_*_l2_*).
        """
        line_bytes = self._config.line_bytes
        if fetch_bytes < line_bytes:
            return None
        first = addresses & -fetch_bytes
        pieces = first[:, None] + np.arange(0, fetch_bytes, line_bytes)
        others = np.setdiff1d(pieces, addresses)
        return self.tags.number(others) if in_part or len(others) else None

    def read_again(
        self, now: float, start: float, lines: Lines, count_bytes: int, sm: int
    ) -> float:
        """Read bytes that other lanes of the instruction have asked for too; return when the last request is answered.

        Args:
            now: when the bandwidth is booked.
            start: when the last request leaves the SM.
            lines: that `read` has brought.
        """
        line = int(lines[-1])
        arrival = self._in_flight.ready(line) - self.near
        return self._repeated.read(now, start, line, count_bytes, sm, arrival)

    def join(self, start: float, sectors: int, ready: float) -> float:
        """Answer a request for lines that are on their way already; return when the last byte reaches the SM."""
        self.counters.requested += sectors
        self.counters.merged += sectors
        return max(ready, start + self.near)

    def store_box(self, now: float, start: float, lines: Lines, sectors: int, gpc: int) -> float:
        """Take what a TMA store writes; return when L2 has it.

        Args:
            now, start, lines, sectors, gpc: as `write` takes them.
        """
        is_clean = len(lines) > 0 and self.tags.is_clean(lines)
        taken = self.write(now, now, lines, sectors, gpc)
        return max(start, taken - self._write_buffer if is_clean else taken)

    def store_words(
        self, now: float, start: float, lines: Lines, stored: Stored, gpc: int
    ) -> float:
        """Take what threads store; return when L2 has it.

        Args:
            now, start, lines, gpc: as `write` takes them.
            stored: sectors and requests.
        """
        cost = self._threads_write * self._store_costs.slower(stored)
        return self.write(now, start, lines, stored.sectors, gpc, cost=cost)

    def write(
        self,
        now: float,
        start: float,
        lines: Lines,
        sectors: int,
        gpc: int,
        masks: Masks | None = None,
        cost: float = 1.0,
    ) -> float:
        """Write the sectors of a box; return when L2 has them. The rest of the lines is taken as held, save with `masks`.

        Args:
            now: when the bandwidth is booked.
            start: when the last of it leaves the SM.
            lines, sectors, masks: of a `Footprint`.
            gpc: of the SM that writes.
            cost: of a sector, in those of a TMA store.
        """
        counters = self.counters
        side = self._side_of[gpc]
        if len(lines) == 0:
            return start
        written_back = self.tags.write(lines, sectors, side, masks)
        remote = sectors * self.tags.remote_lines(lines, side) // len(lines)
        counters.written += sectors + remote
        counters.hit += sectors + remote
        slices = self.slices
        each = slices.write_cost * cost
        queue = slices.take(now, side, sectors * each)
        if remote:
            queue = max(queue, slices.others(slices.take, now, side, remote * each))
        if written_back:
            self._write_back(now, written_back)
        return max(start, now + queue)

    def atomic(
        self, now: float, start: float, wanted: Footprint, requests: int, gpc: int
    ) -> tuple[float, float]:
        """Add to words of some lines; return when the atomic units have taken it and when L2 has the sums.

        Args:
            now, start, wanted, gpc: as `read` takes them.
            requests: lines of each warp, summed.
        """
        counters = self.counters
        before = counters.dram_read
        read = self.read(now, start, wanted, gpc).ready
        missed = counters.dram_read - before
        self.write(now, start, wanted.lines, wanted.sectors, gpc, wanted.masks)
        begin = self._atomics_free if self._atomics_free > now else now
        taken = begin + requests * self._atomic_interval + missed * self._atomic_miss_interval
        self._atomics_free = taken
        return taken, max(read, taken)

    def reduce(self, now: float, start: float, wanted: Footprint, gpc: int) -> float:
        """Add a box to what is there; return when L2 has taken it. What it has taken it adds later.

        Args:
            now, start, wanted, gpc: as `read` takes them.
        """
        self.read(now, start, wanted, gpc)
        self.write(now, start, wanted.lines, wanted.sectors, gpc)
        begin = self._reduces_free if self._reduces_free > now else now
        self._reduces_free = begin + wanted.sectors * self.sector_bytes / self._reduce_rate
        return max(start, self._reduces_free - self._reduce_buffer)

    def _fetch(
        self,
        now: float,
        begin: float,
        start: float,
        sectors: int,
        lines: Lines,
        waited: float = ALONE,
    ) -> tuple[float, float, float]:
        """Read sectors of some lines from device memory.

        Args:
            now, begin, start: as `read` takes them.
            waited: `ALONE` or `IN_PAIRS`.
        Returns: when the last one is there, the first one, and when device memory is done with them (`Reply`).
        """
        self.counters.dram_read += sectors
        delay = self._dram.read(now, sectors * self.sector_bytes)
        finish = now + delay
        first = self._dram.first(begin, finish, sectors * self.sector_bytes)
        latency, refresh = self._dram.latency(lines)
        latency += max(0.0, self._repeated.free - start)
        # Other lines come meanwhile. (What is more than an SM takes to ask is a queue.)
        asking = min(
            start - begin, sectors * self.sector_bytes / self._config.bandwidth_per_sm_bytes_per_clk
        )
        late = max(start - asking, finish) + refresh + waited * asking
        return max(start, finish, late) + latency, first, finish

    def warm(self, lines: Lines) -> None:
        """Put lines into L2 before the launch, as if both halves had used them."""
        for side in range(self.tags.partition_count):
            self.tags.read(lines, side)
        self.tags.launch()

    def _fetch_beside(
        self,
        now: float,
        lines: Lines,
        ready: float,
        finish: float,
        side: int,
        parts: Lines | None,
    ) -> None:
        """Bring lines that nobody has asked for yet, and the rest of `parts`; they come with what was missed."""
        fresh, written_back = self.tags.prefetch(lines)
        counters = self.counters
        sectors = self.tags.sectors_per_line * len(fresh)
        if sectors:
            counters.read += sectors - self.tags.sectors_per_line * self.tags.remote_lines(
                fresh, side
            )
            self._in_flight.bring(fresh, ready, finish)
        if parts is not None:
            _, coming = self.tags.claim(parts, np.full(len(parts), WHOLE, np.uint8))
            sectors += int(coming.sum())
        counters.dram_read += sectors
        self._dram.prefetch(now, sectors * self.sector_bytes)
        if written_back:
            self._write_back(now, written_back)

    def _write_back(self, now: float, sectors: int) -> None:
        self.counters.dram_written += sectors
        self._dram.write(now, sectors * self.sector_bytes)

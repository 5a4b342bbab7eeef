"""The TMA engine of one SM: takes one bulk operation after another and asks L2 for their bytes at its own rate.

An operation ends when its last byte has come back. The engine stalls when as many bytes are on
their way as it can keep track of, and when a tensor map is used for the first time and its 128
bytes must be fetched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final, NamedTuple

from hopsim.config.groups import Tma
from hopsim.hw.timing.stream import Passage, Stream

BULK_RANK: Final = 0
MULTICASTS_KEPT: Final = 16


class Sent(NamedTuple):
    """An operation that the engine has asked for; times in cycles of the SM clock.

    Args:
        end: when its last request leaves.
        slower: cycles that its bytes take beyond asking for them, which lines out of device memory come later: they come
            spread out.
        filling: cycles that its bytes take on the way into each SM that gets them.
    """

    end: float
    slower: float
    filling: float


class TmaEngine:
    """The TMA engine of one SM; times in cycles of the SM clock.

    Args:
        config: rates, latencies, window.
    """

    __slots__ = (
        "_config", "_filling", "_flights", "_issued_bytes", "_known_maps", "_multicast_since", "_multicasts", "_prefetched",
        "_store_free", "_window_bytes", "busy_cycles", "bytes_moved", "free", "operations",
    )  # fmt: skip

    def __init__(self, config: Tma) -> None:
        self._config = config
        self._window_bytes = config.max_inflight_requests * config.request_bytes
        self._known_maps: set[Hashable] = set()
        # (bytes issued up to and with this operation, when its last byte returned)
        self._flights: deque[tuple[int, float]] = deque()
        self._prefetched: deque[float] = deque()
        # When multicast boxes were asked for, the last few.
        self._multicasts: deque[float] = deque(maxlen=MULTICASTS_KEPT)
        # When the first of all was.
        self._multicast_since = 0.0
        self._issued_bytes = 0
        self.free = 0.0
        # The way of data into the SM, in cycles.
        self._filling = Stream(1.0, mixing=1.0, most=float(config.mixing_most_cycles))
        self._store_free = 0.0
        self.busy_cycles = 0.0
        self.bytes_moved = 0
        self.operations = 0

    def prefetch_map(self, time: float) -> None:
        """Fetch a tensor map ahead of its first use; which one does not matter, they are all as large."""
        self._prefetched.append(time + self._config.descriptor_fetch_latency_cycles)

    def start(self, time: float, tensor_map: Hashable | None) -> float:
        """Return when the engine begins with an operation that it is given at `time`."""
        begin = self.free if self.free > time else time
        if tensor_map is not None and tensor_map not in self._known_maps:
            self._known_maps.add(tensor_map)
            if self._prefetched:
                begin = max(begin, self._prefetched.popleft())
            else:
                begin += self._config.descriptor_fetch_latency_cycles
        return begin

    def send(self, begin: float, count_bytes: int, requests: int = 0) -> Sent:
        """Occupy the engine with an operation; what it brings is still to `fill` SMs.

        Args:
            count_bytes: of the whole box, what lies outside the tensor included.
            requests: lines of L2 that it asks for; more than its bytes fill where rows do not begin at a line.
        """
        config = self._config
        filling = count_bytes / config.bandwidth_bytes_per_clk
        lines = count_bytes / config.request_bytes
        asking = lines * config.request_interval_cycles
        if requests > lines:
            asking = filling = filling + (requests - lines) * config.split_cycles
        slower = filling - asking
        interval = config.issue_interval_cycles
        taken = asking if asking > interval else interval
        end = begin + asking
        gate = self._gate(count_bytes)
        if gate > end:
            taken += gate - end
            end = gate
        self.free = begin + taken
        self.busy_cycles += taken
        self.bytes_moved += count_bytes
        self.operations += 1
        self._issued_bytes += count_bytes
        return Sent(end, slower, filling)

    def fill(self, begin: float, sent: Sent) -> Passage:
        """Take what an operation brings on the way into this SM, whoever asked for it; return its turn.

        Args:
            begin: when its first request leaves.
        """
        return self._filling.ask(begin, sent.end, sent.filling)

    def returned(self, time: float) -> None:
        """Say when the last byte of the operation sent last comes back."""
        self._flights.append((self._issued_bytes, time))

    def _gate(self, count_bytes: int) -> float:
        """Return the earliest time at which all requests of the next operation can be on their way."""
        freed = self._issued_bytes + count_bytes - self._window_bytes
        flights = self._flights
        gate = 0.0
        while flights and flights[0][0] <= freed:
            gate = max(gate, flights.popleft()[1])
        if flights and freed > 0:
            # A part of the oldest one must be back: its bytes come at the engine's rate until its end.
            issued, end = flights[0]
            rest = (issued - freed) / self._config.bandwidth_bytes_per_clk
            gate = max(gate, end - rest)
        return gate

    def load_latency(self, rank: int) -> float:
        """Return what the engine adds to the latency of the memory system; rank 0 is a plain bulk copy."""
        config = self._config
        latency = float(config.latency_cycles)
        if rank != BULK_RANK:
            latency += config.rank_extra_cycles[rank - 1]
        return latency

    def multicast(self, begin: float) -> None:
        """Note that a multicast box is asked for."""
        if not self._multicasts:
            self._multicast_since = begin
        self._multicasts.append(begin)

    def multicast_delay(self, begin: float, lines: int) -> float:
        """Return how much later a box out of device memory comes that was asked for at `begin`, for those asked for since.

        Multicast lines give way to all others: boxes that are asked for one at a time come as soon as if they were for
        one SM, the first of some at once comes late.  Only the first ones do: once a ring goes round it is as quick as
        without multicast.
        """
        config = self._config
        if begin - self._multicast_since > config.multicast_beginning_cycles:
            return 0.0
        gaps = [abs(other - begin) for other in self._multicasts if other != begin]
        if not gaps:
            return 0.0
        soon, apart = config.multicast_soon_cycles, config.multicast_apart_cycles
        share = (apart - min(gaps)) / (apart - soon)
        return min(1.0, max(0.0, share)) * config.multicast_fetch_cycles * lines

    def send_store(
        self, begin: float, count_bytes: int, more_sectors: int = 0, adds: bool = False
    ) -> float:
        """Send the bytes of a store on their own way, which loads do not take; return when its source has been read.

        Args:
            more_sectors: that it touches than its bytes fill, where rows begin in the middle of one.
            adds: whether it adds to what is there.
        """
        config = self._config
        self.free = begin + config.issue_interval_cycles
        first = begin + config.store_read_latency_cycles
        rate = (
            config.reduce_bandwidth_bytes_per_clk if adds else config.store_bandwidth_bytes_per_clk
        )
        cycles = count_bytes / rate
        cycles += more_sectors * config.store_sector_cycles
        self._store_free = (self._store_free if self._store_free > first else first) + cycles
        self.busy_cycles += config.issue_interval_cycles
        self.bytes_moved += count_bytes
        self.operations += 1
        return self._store_free

    def store_latency(self) -> float:
        """Return the cycles from the last byte read until the write is complete, L2 not loaded."""
        return float(self._config.store_latency_cycles)

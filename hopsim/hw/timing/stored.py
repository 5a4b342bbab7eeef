"""What stores of threads take on their way: a request for each line of a warp, with its sectors; what waits behind them.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, fragment_stores_* and in_order_*): loads come behind
what was stored before, out of L1 too, while loads that miss hold none up; what is in shared memory waits for the
instructions that have not come to L1.
"""

from __future__ import annotations

from typing import NamedTuple

from hopsim.config import HardwareConfig
from hopsim.config.memory import L2


class Stored(NamedTuple):
    """What warps store with an instruction.

    Args:
        sectors: distinct ones of each warp, summed.
        requests: lines of each warp, summed.
        masked: requests of them that leave bytes of a sector as they are.
        masked_sectors: of those requests.
        halved: of the masked ones, those that write parts of words.
    """

    sectors: int
    requests: int
    masked: int = 0
    masked_sectors: int = 0
    halved: int = 0


class StoreCosts:
    """What stores take of the way out of an SM and of L2.

    Args:
        config: of L2.
    """

    def __init__(self, config: L2) -> None:
        self._sector_bytes = config.sector_bytes
        self._request_bytes = config.store_request_bytes
        self._masked_bytes = config.store_masked_request_bytes
        self._halved_bytes = config.store_halved_request_bytes
        self._request = config.stored_sectors_per_request
        self._masked_request = config.stored_sectors_per_masked_request
        self._masked_sector = config.stored_sectors_per_masked_sector
        each = config.line_bytes // config.sector_bytes
        # The rate of what threads store is that of whole lines.
        self._whole = 1.0 + self._request / each

    def way_bytes(self, stored: Stored) -> float:
        """Return what stores take of the way out of an SM, in bytes of whole lines without their requests."""
        sectors, requests, masked, _, halved = stored
        return (
            sectors * self._sector_bytes
            + (requests - masked) * self._request_bytes
            + (masked - halved) * self._masked_bytes
            + halved * self._halved_bytes
        )

    def slower(self, stored: Stored) -> float:
        """Return how much longer L2 takes for these sectors than for as many of whole lines."""
        sectors, requests, masked, masked_sectors, _ = stored
        time = (
            (sectors - masked_sectors)
            + (requests - masked) * self._request
            + masked_sectors * self._masked_sector
            + masked * self._masked_request
        )
        return time / (sectors * self._whole)


class WayOut:
    """The way out of an SM for what its threads store.

    Args:
        config: of the chip.
    """

    __slots__ = ("_local_rate", "_queue", "_queue_per_warp", "_rate", "_sent", "_warps")

    def __init__(self, config: HardwareConfig) -> None:
        self._rate = config.l2.store_bandwidth_per_sm_bytes_per_clk
        self._local_rate = config.l1.local_store_bandwidth_bytes_per_clk
        self._queue = config.l1.store_queue_cycles
        self._queue_per_warp = config.l1.store_queue_per_warp_cycles
        # Until when it is taken.
        self._sent = 0.0
        # That have stored since it was free, by their first thread in the grid.
        self._warps: dict[tuple[int, int], int] = {}

    def send(
        self, time: float, count_bytes: float, warps: tuple[int, int, int], local: bool = False
    ) -> float:
        """Send what threads store; return when the last byte has left.

        Args:
            warps: index of the CTA, first thread, and how many warps store.
            local: whether it is stored to local memory.
        """
        cta, thread, count = warps
        if self._sent <= time:
            self._sent = time
            self._warps.clear()
        self._warps[cta, thread] = count
        self._sent += count_bytes / (self._local_rate if local else self._rate)
        return self._sent

    def wait(self, time: float) -> float:
        """Return how long a load that comes to L1 waits for what was stored before."""
        backlog = self._sent - time
        if backlog <= 0.0:
            return 0.0
        return min(backlog, self._queue + self._queue_per_warp * sum(self._warps.values()))

    def wait_of_shared(self, time: float) -> float:
        """Return the same of what goes to shared memory: only what has not come to L1 is before it."""
        return max(0.0, self.wait(time) - self._queue)

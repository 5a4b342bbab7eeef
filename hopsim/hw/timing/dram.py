"""Device memory: all channels together, one byte rate for reads and writes, one latency.

Channels serve what suits their open rows first, so requests that come while one waits get before some of its lines.  How
many come is known only when it would be done: `overtaken` says then how much later it is.

Work is booked when it is asked for, so that a request which starts later does not leave a hole
before it.

Source: hopsim's recording on an H100 SXM (tests/silicon/micro.json, cold_boxes): of four cold boxes that 16 to 132 SMs ask
for together, the first comes nearly as late as the last.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hopsim.config.memory import Dram
from hopsim.hw.timing.backlog import Backlog
from hopsim.hw.timing.line_sectors import Lines
from hopsim.hw.timing.luck import Luck

# A request whose lines spread over more than so many times their number is scattered.
DENSE: Final = 2
# A burst may take all of a window; the wait behind it is counted apart.
BUSIEST: Final = 0.9
MEMORY: Final = 4


def refresh_wait(share: float, channels: int, luck: float) -> float:
    """Return how long requests to some channels wait for the one whose refresh ends last, in refreshes.

    Each channel refreshes for a share p of the time; what comes in a refresh waits for any part of it alike.  The longest
    of n such waits is x or less in (1 - p + p x)^n of the cases.

    Args:
        luck: which case it is, 0 to 1.
    """
    return max(0.0, (luck ** (1.0 / channels) - 1.0 + share) / share)


class DramChannels:
    """The HBM of the chip; times in cycles of the SM clock.

    Args:
        config: bandwidth at the SM clock, the share of it that streams reach, latency.
        line_bytes: of L2.
        l2_cycles: of the latency, the part of the way to L2 and back.
    """

    __slots__ = (
        "_backlog",
        "_busy_then",
        "_bytes_per_clk",
        "_channels",
        "_config",
        "_contention_cycles",
        "_l2_cycles",
        "_latency_cycles",
        "_line_shift",
        "_load",
        "_luck",
        "_overtaking",
        "_overtaking_cycles",
        "_queued",
        "_refresh_cycles",
        "_refreshing",
        "_spread",
        "_window_cycles",
        "_window_end",
        "busy_cycles",
        "free",
        "read_bytes",
        "spread_cycles",
        "written_bytes",
    )

    def __init__(self, config: Dram, line_bytes: int, l2_cycles: int = 0) -> None:
        self._config = config
        self._l2_cycles = l2_cycles
        self._refreshing = config.refresh_cycles / config.refresh_interval_cycles
        self._channels = config.channels
        self._luck = Luck()
        self._queued = Luck()
        self._spread = config.contention_spread
        self._line_shift = (config.interleave_bytes // line_bytes).bit_length() - 1
        self._overtaking = config.overtaking
        self.speed_up(1.0)
        self._window_cycles = max(1.0, self._latency_cycles)
        self._backlog = Backlog()
        self._window_end = 0.0
        # Share of the channels' time taken lately.
        self._load = 0.0
        self._busy_then = 0.0
        self.free = 0.0
        self.busy_cycles = 0.0
        self.read_bytes = 0
        self.written_bytes = 0

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on."""
        config = self._config
        self._bytes_per_clk = config.bandwidth_bytes_per_clk * config.efficiency * factor
        beyond = config.latency_cycles - self._l2_cycles
        self._latency_cycles = self._l2_cycles + beyond / factor
        self.spread_cycles = config.latency_spread_cycles / factor
        self._refresh_cycles = config.refresh_cycles / factor
        self._contention_cycles = config.contention_latency_cycles / factor
        self._overtaking_cycles = config.overtaking_most_cycles / factor

    def latency(self, lines: Lines) -> tuple[float, float]:
        """Return when the slowest of some lines comes on an idle chip, and how much later one that meets a refresh.

        Latencies of single lines are taken as spread evenly, so that of n the slowest lies at n / (n + 1) of the spread.
        The more channels they come from, the more surely one of these refreshes.  Lines that lie scattered, each in
        a row of its own, come later than neighbours, which share rows, when the channels are busy.
        """
        count = len(lines)
        latency = self._latency_cycles + self.spread_cycles * count / (count + 1)
        held = lines >> self._line_shift
        channels = 1 + int(np.count_nonzero(held[1:] != held[:-1]))
        refresh = 0.0
        if self._refreshing:
            channels = min(channels, self._channels)
            luck = self._luck.draw()
            refresh = self._refresh_cycles * refresh_wait(self._refreshing, channels, luck)
        if int(lines[-1]) - int(lines[0]) >= DENSE * count:
            load = self._load
            wait = self._contention_cycles * load / (1.0 - load)
            latency += wait * (1.0 + self._spread * (2.0 * self._queued.draw() - 1.0))
        return latency, refresh

    def read(self, now: float, count_bytes: int) -> float:
        """Ask for bytes; return the cycles beyond the latency until the last one comes (queueing and transfer)."""
        self.read_bytes += count_bytes
        wait = self._transfer(now, count_bytes)
        if now >= self._window_end:
            span = now - self._window_end + self._window_cycles
            busy = min((self.busy_cycles - self._busy_then) / span, BUSIEST)
            self._load += (busy - self._load) * min(1.0, span / (MEMORY * self._window_cycles))
            self._busy_then = self.busy_cycles
            self._window_end = now + self._window_cycles
        self._backlog.note(now, self.free)
        return wait

    def overtaken(self, finish: float) -> float:
        """Return how much later a request is done than at `finish`, for others that came while it waited."""
        return min(self._overtaking * self._backlog.behind(finish), self._overtaking_cycles)

    def first(self, begin: float, finish: float, count_bytes: int) -> float:
        """Return when the first byte of a request comes on an idle chip.

        Args:
            begin: when it is asked for.
            finish: when channels are done with the request.
            count_bytes: of the request.
        """
        return max(begin, finish - count_bytes / self._bytes_per_clk) + self._latency_cycles

    def prefetch(self, now: float, count_bytes: int) -> None:
        """Fetch bytes that nobody waits for yet."""
        self.read_bytes += count_bytes
        self._transfer(now, count_bytes)
        self._backlog.note(now, self.free)

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

"""The SM clock under load: power lowers it while the tensor cores work, and memory, whose clocks are its own, gains on it.

Cycles are cycles of the SM clock, so a rate that is fixed in bytes a second is more bytes a cycle at a lower clock.  The
clock follows the share of time in which the tensor cores were busy lately.  Each GPC has a clock of its own: one without
a CTA stays at the highest, and its cycles are then the most that any GPC counts (`gpc__cycles_elapsed.max`).

Source: hopsim's recordings on an H100 SXM (Nsight Compute's cycles over its duration, one launch at a time).  GEMMs of 8
CTAs or 8 clusters, which leave GPCs without work, read 1.98 to 1.99 GHz, all others 1.71 to 1.87.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.config.groups import Clock
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.sm import Sm

# Less of the tensor cores' time than this is no load.
IDLE_SHARE = 1e-3


class LoadClock:
    """The clock of one launch.

    Args:
        config: how the clock falls with load.
        clock_hz: of the chip without load, at which rates in bytes a cycle are given.
        sms: whose tensor cores count.
        l2, dram: whose rates follow.
    """

    def __init__(
        self, config: Clock, clock_hz: float, sms: Sequence[Sm], l2: L2Cache, dram: DramChannels
    ) -> None:
        self._config = config
        self._highest = clock_hz
        self._sms = sms
        self._l2 = l2
        self._dram = dram
        self._since = 0.0
        self._busy = 0.0
        self._seconds = 0.0

    def hertz(self, share: float, sustained: bool = False) -> float:
        """Return the clock at a share of the tensor cores' time; sustained: after many launches on end."""
        config = self._config
        if share < IDLE_SHARE:
            return self._highest
        above = max(0.0, share - config.knee)
        drop = config.sustained_drop_hz if sustained else config.drop_hz
        return min(self._highest, config.loaded_hz - above * drop)

    def advance(self, now: float) -> None:
        """Look at what the tensor cores did since the last call, and set the clock for what follows."""
        span = now - self._since
        if span <= 0.0:
            return
        busy = sum(sm.tensor.busy_cycles for sm in self._sms)
        clock = self.hertz((busy - self._busy) / (span * len(self._sms)))
        self._seconds += span / clock
        self._since, self._busy = now, busy
        self._l2.speed_up(self._highest / clock)
        self._dram.speed_up(self._highest / clock)

    def finish(self, cycles: float, idle_gpc: bool) -> tuple[float, float, float]:
        """Return the cycles that the fastest GPC counted, its mean clock, and that of many launches on end, in hertz.

        Args:
            cycles: of the GPCs that worked.
            idle_gpc: whether one had nothing to do.
        """
        busy = sum(sm.tensor.busy_cycles for sm in self._sms)
        share = busy / (max(1.0, cycles) * len(self._sms))
        self.advance(cycles)
        seconds = self._seconds
        counted = seconds * self._highest if idle_gpc else cycles
        mean = counted / seconds if seconds else self._highest
        return counted, mean, self.hertz(share, sustained=True)

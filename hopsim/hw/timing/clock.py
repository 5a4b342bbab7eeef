"""The SM clock under load: power lowers it while the tensor cores work, and memory, whose clocks are its own, gains on it.

Cycles are cycles of the SM clock, so what takes a fixed time outside of the GPCs (L2 and the way to it, device memory)
takes fewer cycles at a lower clock.  The clock falls at once when tensor cores begin to work, and then slowly, as power
asks, with the share of time in which they are busy and with what L2 gives.  It is back at the highest as soon as they are
done; at both changes it is lower for a moment.  Each GPC has a clock of its own: as long as one has no CTA it stays at the
highest, and its cycles are then the most that any GPC counts (`gpc__cycles_elapsed.max`).

Source: hopsim's recordings on an H100 SXM.  tests/silicon/micro.json, load: 1.98 GHz becomes 1.80 with the first products,
even of zeros, 1.58 GHz for a thousand cycles, and rises with the last; boxes of 132 SMs come out of L2 at 4,108 bytes a
cycle then 4,675, dependent loads out of device memory every 701 cycles then 661.  Nsight Compute's cycles over its
duration, one launch at a time: Triton bf16 GEMMs of 2048 cubed, 25 to 50 us, run at 1.72 to 1.82 GHz, the same of 4096
cubed, 190 to 420 us, at 1.57 to 1.77; GEMMs of 8 CTAs or 8 clusters, which leave GPCs without work, read 1.98 to 1.99 GHz.
phases.json: where some GPCs get CTAs of the last wave and others none, the fastest GPC counts 4.5 % more than the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Final, Protocol

from hopsim.config.groups import Clock
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.sm import Sm

IDLE_SHARE: Final = 1e-3
"""Less of the tensor cores' time than this is no load."""
LOOK_CYCLES: Final = 512.0
"""The load is looked at so often, or a little less."""


class Paced(Protocol):
    """What has a clock of its own."""

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on."""


class LoadClock:
    """The clock of one launch.

    Args:
        config: how the clock falls with load.
        clock_hz: of the chip without load, at which cycles, and bytes a cycle, are given.
        gpcs: the SMs of each, whose tensor cores count.
        l2: what it gives counts.
        paced: whose times follow.
    """

    def __init__(
        self,
        config: Clock,
        clock_hz: float,
        gpcs: Sequence[Sequence[Sm]],
        l2: L2Cache,
        paced: Sequence[Paced],
    ) -> None:
        self._config = config
        self._highest = clock_hz
        self._settling_s = config.settling_cycles / clock_hz
        self._change_s = config.change_cycles / clock_hz
        self._gpcs = gpcs
        self._sms = [sm for gpc in gpcs for sm in gpc]
        self._l2 = l2
        self._paced = paced
        self._since = 0.0
        self._busy = 0.0
        self._moved = 0.0
        self._seconds = 0.0
        # The cycles of each GPC, and whether it had a CTA when that was looked at last.
        self._counted = [0.0] * len(gpcs)
        self._works = [False] * len(gpcs)
        self._was_loaded = False
        # How far power has lowered the clock by now.
        self._lowered = 0.0
        self._clock = clock_hz
        self.next_look = 0.0

    def hertz(self, share: float, rate: float = 0.0, sustained: bool = False) -> float:
        """Return the clock that a load leads to.

        Args:
            share: of the tensor cores' time.
            rate: what L2 gives meanwhile, bytes a cycle.
            sustained: after many launches on end.
        """
        config = self._config
        if share < IDLE_SHARE:
            return self._highest
        drop = config.sustained_drop_hz if sustained else config.drop_hz
        return min(self._highest, config.loaded_hz - self._beyond(share, rate) * drop)

    def _beyond(self, share: float, rate: float) -> float:
        """Return by how much a load is above the knee."""
        config = self._config
        return max(0.0, share + rate / config.traffic_bytes_per_clk - config.knee)

    def advance(self, now: float) -> None:
        """Look at what the tensor cores did since the last call, and set the clock for what follows."""
        self.next_look = now + LOOK_CYCLES
        span = now - self._since
        if span <= 0.0:
            return
        config = self._config
        busy, moved = self._busy_cycles(now), self._moved_bytes()
        share = (busy - self._busy) / (span * len(self._sms))
        passed = 1.0 - exp(-span / self._clock / self._settling_s)
        lower = self._beyond(share, (moved - self._moved) / span) * config.drop_hz
        self._lowered += (lower - self._lowered) * passed
        clock, counted = self._highest, span
        if share >= IDLE_SHARE:
            clock = min(clock, config.loaded_hz - self._lowered)
            counted += config.gpc_spread * span
            self._was_loaded = True
        seconds = counted / clock
        self._seconds += seconds
        for number, gpc in enumerate(self._gpcs):
            worked, works = self._works[number], any(sm.ctas for sm in gpc)
            self._counted[number] += counted if worked or works else seconds * self._highest
            self._works[number] = works
        self._since, self._busy, self._moved = now, busy, moved
        if clock != self._clock:
            self._clock = clock
            for unit in self._paced:
                unit.speed_up(self._highest / clock)

    def _busy_cycles(self, now: float) -> float:
        return sum(sm.tensor.worked_until(now) + sm.mma.worked_until(now) for sm in self._sms)

    def _moved_bytes(self) -> float:
        return self._l2.counters.read * self._l2.sector_bytes

    def finish(self, cycles: float) -> tuple[float, float, float]:
        """Return the cycles that the fastest GPC counted, its mean clock, and that of many launches on end, in hertz.

        Args:
            cycles: of the GPC that worked longest.
        """
        span = max(1.0, cycles)
        share = self._busy_cycles(cycles) / (span * len(self._sms))
        self.advance(cycles)
        # One fall and one rise; whether pauses between products change it is not known.
        change_s = self._change_s if self._was_loaded else 0.0
        counted = max(
            own if any(sm.used for sm in gpc) else own + change_s * self._highest
            for own, gpc in zip(self._counted, self._gpcs, strict=True)
        )
        seconds = self._seconds + change_s
        mean = counted / seconds if seconds else self._highest
        return counted, mean, self.hertz(share, self._moved_bytes() / span, sustained=True)

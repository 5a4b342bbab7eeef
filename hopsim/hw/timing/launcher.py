"""Starts the clusters of a launch as places become free, and frees the places of CTAs that have ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hopsim.config.groups import Launch
from hopsim.hw.machine.launch import Machine
from hopsim.hw.timing.actor import Clock, Moment, Placed
from hopsim.hw.timing.chip import Chip
from hopsim.hw.timing.luck import Luck
from hopsim.hw.timing.occupancy import WARP


class Launcher:
    """The way of CTAs onto the chip and off it.

    Args:
        config: launch times.
        machine: whose clusters are started.
        chip: where they go.
        env: the clock.
        start: called when a cluster's first instructions issue, with the SM of each CTA.
    """

    def __init__(
        self,
        config: Launch,
        machine: Machine,
        chip: Chip,
        env: Clock,
        start: Callable[[tuple[int, ...]], None],
    ) -> None:
        self._config = config
        self._machine = machine
        self._placement = chip.placement
        self._env = env
        self._start = start
        warps = -(-machine.threads // WARP)
        self._interval = (
            config.cta_launch_interval_cycles + config.warp_launch_interval_cycles * warps
        )
        # Places of the first CTAs, taken already.
        self._first: deque[int] = deque()
        if machine.cluster_size == 1:
            self._first.extend(chip.placement.first_wave(machine.cluster_count))
        self._next = 0.0
        self._luck = Luck()
        self._starting = 0
        # The overhead is that of an empty kernel with one CTA an SM; their launch is simulated.
        simulated = self._interval * len(chip.sms)
        simulated += config.cta_launch_cycles + config.cta_retire_cycles
        Moment(env, self._more).set(max(0.0, config.kernel_overhead_cycles - simulated))

    def retire(self, sm: int, time: float) -> float:
        """A CTA's last thread leaves at `time`: its place becomes free a little later; return when."""
        free = time + self._config.cta_retire_cycles
        Placed(self._env, self._free, (sm,)).set(free)
        return free

    def _more(self, _: Moment) -> None:
        """Place clusters while there is room."""
        machine, config = self._machine, self._config
        size = machine.cluster_size
        while machine.clusters_started + self._starting < machine.cluster_count:
            follows = not self._first
            sms = self._placement.place(size) if follows else (self._first.popleft(),)
            if sms is None:
                return
            time = max(float(self._env.now), self._next)
            self._next = time + self._interval * size
            begin = time + config.cta_launch_cycles
            if follows:
                begin += config.cta_launch_spread_cycles * (self._luck.draw() - 0.5)
            if size > 1:
                begin += config.cluster_launch_cycles
            self._starting += 1
            Placed(self._env, self._begin, sms).set(begin)

    def _begin(self, event: Placed) -> None:
        self._starting -= 1
        self._start(event.sms)

    def _free(self, event: Placed) -> None:
        for sm in event.sms:
            self._placement.release(sm)
        self._more(event)

"""Starts the clusters of a launch as places become free, and frees the places of CTAs that have ended.

At the start of a launch all GPCs start CTAs at once, one SM after the other.  Then each GPC is looked after in turn: SMs
that have become free since are given the next CTAs of the grid together, so that neighbours stay neighbours.  To some GPCs
the way is longer.

Source: hopsim's recordings on an H100 SXM, the SM clock and the global timer read in CTAs that follow each other
(tests/silicon/micro.json, cta_*; the same clocks in GEMMs of 4096 cubed).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hopsim.config.groups import Launch
from hopsim.hw.machine.launch import Machine
from hopsim.hw.timing.actor import Clock, Moment, Numbered, Placed
from hopsim.hw.timing.chip import Chip


class Launcher:
    """The way of CTAs onto the chip and off it; times in cycles of the SM clock.

    Args:
        config: launch times.
        machine: whose clusters are started.
        chip: where they go.
        env: the clock.
        start: called when a cluster's first instructions issue, with its number and the SM of each CTA.
    """

    def __init__(
        self,
        config: Launch,
        machine: Machine,
        chip: Chip,
        env: Clock,
        start: Callable[[int, tuple[int, ...]], None],
    ) -> None:
        self._config = config
        self._count = machine.cluster_count
        self._size = machine.cluster_size
        self._placement = chip.placement
        self._env = env
        self._start = start
        self._interval = config.cta_retire_interval_cycles
        # The number of the cluster that is next.
        self._given = 0
        # When another CTA can leave each SM.
        self._retiring = [0.0] * len(chip.sms)
        listed = config.cta_launch_cycles
        ways = [listed[gpc % len(listed)] for gpc in range(len(self._placement.sms_of))]
        # From the decision to the first instruction, by GPC.
        more = config.cluster_launch_cycles if self._size > 1 else 0
        self._ways = [way + more for way in ways]
        self._is_awaited = [False] * len(ways)
        # The overhead is that of an empty kernel with one CTA an SM; their launch is simulated.
        simulated = config.cta_retire_cycles + max(
            way + (len(sms) - 1) * config.gpc_launch_interval_cycles
            for way, sms in zip(ways, self._placement.sms_of, strict=True)
        )
        fill = self._fill if self._size == 1 else self._fill_with_clusters
        Moment(env, fill).set(max(0.0, config.kernel_overhead_cycles - simulated))

    def retire(self, sm: int, time: float) -> float:
        """A CTA's last thread leaves at `time`: its place becomes free a little later; return when."""
        begin = max(time, self._retiring[sm])
        self._retiring[sm] = begin + self._interval
        free = begin + self._config.cta_retire_cycles
        Numbered(self._env, self._free, sm).set(free)
        return free

    # -- the start of a launch ---------------------------------------------------------------------

    def _fill(self, _: Moment) -> None:
        """Fill the chip with single CTAs: those that share an SM start together."""
        now = float(self._env.now)
        placement, config = self._placement, self._config
        for wave in placement.first_waves(self._count):
            # Of each GPC the first SMs of its TPCs come first.
            turns: dict[int, float] = {}
            started = [0] * len(self._ways)
            for sm in sorted(wave, key=placement.rank_of.__getitem__):
                gpc = placement.gpc_of[sm]
                turns[sm] = self._ways[gpc] + started[gpc] * config.gpc_launch_interval_cycles
                started[gpc] += 1
            for sm in wave:
                self._give(now + turns[sm], (sm,))

    def _fill_with_clusters(self, _: Moment) -> None:
        """Fill the chip with clusters: each GPC gets one, then each another."""
        now = float(self._env.now)
        placement, config = self._placement, self._config
        started = [0] * len(self._ways)
        while self._given < self._count:
            sms = placement.place(self._size)
            if sms is None:
                return
            gpc = placement.gpc_of[sms[0]]
            turn = started[gpc] * config.gpc_launch_interval_cycles
            started[gpc] += self._size
            self._give(now + self._ways[gpc] + turn, sms)

    # -- later -------------------------------------------------------------------------------------

    def _free(self, event: Numbered) -> None:
        placement = self._placement
        placement.release(event.number)
        gpc = placement.gpc_of[event.number]
        if self._given == self._count or self._is_awaited[gpc]:
            return
        # Each GPC has its turn.
        self._is_awaited[gpc] = True
        interval = self._config.gpc_visit_interval_cycles
        phase = interval * gpc / len(self._ways)
        turns = math.ceil((self._env.now - phase) / interval)
        Numbered(self._env, self._visit, gpc).set(turns * interval + phase)

    def _visit(self, event: Numbered) -> None:
        """Give the free SMs of a GPC the next clusters."""
        gpc = event.number
        self._is_awaited[gpc] = False
        begin = float(self._env.now) + self._ways[gpc]
        while self._given < self._count:
            sms = self._placement.place_in(gpc, self._size)
            if sms is None:
                return
            self._give(begin, sms)

    def _give(self, begin: float, sms: tuple[int, ...]) -> None:
        """Start the next cluster of the grid on these SMs."""
        Placed(self._env, self._started, self._given, sms).set(begin)
        self._given += 1

    def _started(self, event: Placed) -> None:
        self._start(event.index, event.sms)

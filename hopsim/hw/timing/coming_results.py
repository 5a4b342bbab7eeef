"""Results that are on their way: who reads them waits, and what is computed from loads comes when these do."""

from __future__ import annotations

from typing import Final

from hopsim.config import HardwareConfig
from hopsim.hw.timing.actor import Actor
from hopsim.hw.timing.costs import SegmentCost
from hopsim.hw.timing.in_order import NEVER
from hopsim.hw.timing.stalls import Stall

PENDING_KEPT: Final = 1024
"""Results of a strand, those that have come among them, until these are forgotten."""


class ComingResults:
    """Books waits for results, as a part of what charges steps.

    Args:
        config: latencies.
        stalls: warp cycles by what is waited for.
    """

    def __init__(self, config: HardwareConfig, stalls: list[float]) -> None:
        self._stalls = stalls
        self._add = float(config.issue.latency_cycles["fp32"])

    def await_operands(self, actor: Actor, cost: SegmentCost, time: float) -> float:
        """Wait for what a segment reads that is on its way; return when it can issue."""
        deferred = cost.deferred
        if deferred is not None and deferred.turns > 1:
            turn = actor.turns.get(actor.strand.segment, 0)
            actor.turns[actor.strand.segment] = turn + 1
            if turn % deferred.turns == 0:
                # What is carried from turn to turn is there before the loads of the next turns.
                time = self._stall(actor, dict.fromkeys(deferred.carried, 0.0), time)
        if actor.pending and not actor.pending.keys().isdisjoint(cost.reads):
            return self._stall(actor, cost.reads, time)
        return time

    def _stall(self, actor: Actor, reads: dict[int, float], time: float) -> float:
        """Wait for results that a segment reads."""
        pending = actor.pending
        worst = time
        reason = Stall.WAIT
        for register in pending.keys() & reads.keys():
            when, stall = pending.pop(register)
            when -= reads[register]
            if when > worst:
                worst, reason = when, stall
        if worst > time:
            self._stalls[reason] += (worst - time) * actor.warps
        return worst

    def _owe(
        self, actor: Actor, cost: SegmentCost, ready: float, stall: Stall, time: float
    ) -> float:
        """Let results of a head come at `ready`; return when the plain run can begin, which waits if it reads them soon."""
        use = cost.head_use
        if use != NEVER and ready > time + use:
            self._stalls[stall] += (ready - time - use) * actor.warps
            return ready - use
        pending = actor.pending
        result = (ready, stall)
        for register in cost.head_writes:
            pending[register] = result
        return time

    def _defer(self, actor: Actor, cost: SegmentCost, ready: float, stall: Stall) -> None:
        """Let what is computed from a load come when the load and what else it needs are there."""
        pending = actor.pending
        deferred, behind = cost.deferred, cost.behind
        assert deferred is not None, cost
        assert behind is not None, cost
        actor.unknown.difference_update(deferred.results)
        others = max(
            (pending[register][0] for register in deferred.inputs if register in pending),
            default=-NEVER,
        )
        actor.answered = max(actor.answered, ready)
        for register in deferred.results:
            when = max(
                ready + behind.load.get(register, -NEVER),
                others + behind.inputs.get(register, -NEVER),
            )
            pending[register] = (when, stall)
        for register in deferred.run:
            if register in pending:
                # It waits for the last load of all.
                when = max(pending[register][0], actor.answered + self._add)
                pending[register] = (when, stall)


def forget_past(pending: dict[int, tuple[float, Stall]], time: float) -> None:
    """Drop results that are there already."""
    for register in [register for register, (when, _) in pending.items() if when <= time]:
        del pending[register]


__all__ = ["PENDING_KEPT", "ComingResults", "forget_past"]

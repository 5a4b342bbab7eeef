"""Loads whose addresses are loaded too: ptxas issues them behind the other loads of a run.

`sum += value[k] * data[index[k]]`, some times in a row: all of `index` and `value` is asked for first, then all of `data`,
as soon as the addresses are there; so a warp waits twice, and not for each.  The program comes to such a load before it
comes to the others: its access is kept until the run is over.

Source: machine code of ptxas 13.0 for sparse products of CUDA C++ (tests/silicon/workloads, `spmv_rows`, `spmv_warps`) and
for the microbenchmarks `lists_*`; hopsim's recordings, H100 SXM, tests/silicon/micro.json, lists_*_nounroll.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from hopsim.hw.machine.access_notes import AccessNote
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.thread_access import ThreadAccess

if TYPE_CHECKING:
    from hopsim.hw.timing.actor import Actor
    from hopsim.hw.timing.costs import SegmentCost


class Postponed(NamedTuple):
    """A load, or one of which something is computed that waits for such a load.

    Args:
        cost: of its segment.
        note: what it accesses; None: it has been issued.
        ready: when its address is there; of one that has been issued, when it is answered.
        stall: what waiting for one that has been issued is called.
    """

    cost: SegmentCost
    note: AccessNote | None
    ready: float
    stall: Stall


Defer = Callable[["Actor", "SegmentCost", float, Stall], None]


class PostponedLoads:
    """Keeps and issues them.

    Args:
        accesses: books loads.
        stalls: warp cycles by what is waited for.
        defer: notes when what is computed from a load comes.
    """

    def __init__(self, accesses: ThreadAccess, stalls: list[float], defer: Defer) -> None:
        self._accesses = accesses
        self._stalls = stalls
        self._defer = defer

    def keep(self, actor: Actor, one: Postponed) -> None:
        """Keep a load until the run is over."""
        assert one.cost.deferred is not None, one
        actor.postponed.append(one)
        actor.unknown.update(one.cost.deferred.results)

    def keep_access(self, actor: Actor, cost: SegmentCost, note: AccessNote, time: float) -> None:
        """Keep a load that has not been issued, whose address comes late."""
        assert cost.deferred is not None, cost
        pending = actor.pending
        waits = [pending[register] for register in cost.deferred.address if register in pending]
        when, stall = max(waits, default=(time, Stall.LONG_SCOREBOARD))
        self.keep(actor, Postponed(cost, note, when, stall))

    def are_due(self, actor: Actor, cost: SegmentCost, segment: int) -> bool:
        """Whether a strand issues what it has kept before a segment: where the run is over."""
        deferred = cost.deferred
        if deferred is None or not deferred.is_first:
            return deferred is None
        return actor.turns.get(segment, 0) % deferred.turns == 0

    def await_first(self, actor: Actor, time: float) -> float:
        """Wait until the first of them has its address; return when it has."""
        for one in actor.postponed:
            if one.note is not None:
                until = max(time, one.ready)
                self._stalls[Stall.LONG_SCOREBOARD] += (until - time) * actor.warps
                return until
        return time

    def issue(self, actor: Actor, time: float, until: float = math.inf) -> float:
        """Issue what a strand has kept, in order, each when it has its address; return when the last one is issued.

        Args:
            until: those whose address comes later are kept.
        """
        kept, actor.postponed = actor.postponed, []
        started = time
        for number, one in enumerate(kept):
            ready, stall = one.ready, one.stall
            if one.note is not None:
                when = max(time, one.ready)
                begin = started if math.isinf(until) else when
                if when > max(time, until):
                    actor.postponed = kept[number:]
                    break
                # Where a strand could not wait for the clock, what others ask for meanwhile is not to stand behind it.
                # (Loads of global memory are one instruction each.)
                held, ready, stall, _ = self._accesses.serve(actor, one.note, one.cost, begin)
                time = max(when, held)
                ready += when - begin
            self._defer(actor, one.cost, ready, stall)
        if not actor.postponed:
            actor.unknown.clear()
        self._stalls[Stall.LONG_SCOREBOARD] += (time - started) * actor.warps
        return time


__all__ = ["Postponed", "PostponedLoads"]

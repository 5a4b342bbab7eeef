"""One phase of an mbarrier after the other: nobody may count in one who is not known to come after the one before.

Source: PTX ISA 8.7 "mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hopsim.hazards.clocks import Agent, Done, bits
from hopsim.hazards.flags import Published
from hopsim.hazards.object_life import ObjectLife
from hopsim.hazards.objects import Barrier, Phase, Source, knows


@dataclass(slots=True)
class Sent:
    """An arrive on its way: who sent it, and what it publishes."""

    agent: Agent
    epoch: int
    mask: int
    line: int
    published: Published
    copies: list[Done]


class Turns:
    """Finds arrivals and waits that may belong to another phase than that of this run."""

    def __init__(self, life: ObjectLife) -> None:
        self.life = life
        # Some arrival or wait was relaxed: not all is known of what came before what.
        self.is_vague = False
        # By PTX line of an init: the most lanes that may be meant to arrive for one phase.
        self._meant: dict[int, int] = {}

    def check_arrivals(self, barrier: Barrier, arrivals: list[Sent]) -> None:
        """The phase before must have been seen by somebody, and be known to be complete to all who arrive for the next.

        An arrival that does not know could have counted in the phase before, in the place of one that came later.
        """
        last = barrier.phases.get(barrier.index - 1)
        if last is None:
            return
        unseen = not last.waits and not barrier.phase(barrier.index).arrivals
        for arrival in arrivals:
            other = None if unseen else self._not_before(last, arrival)
            if not unseen and other is None:
                continue
            init = barrier.born[3]
            twice = _counted_twice(last)
            count = 0 if twice else self._count_apart(barrier, last, arrivals)
            # One count is at fault, whichever arrivals show it.
            cause = ("count", init) if count and not last.flights else None
            barrier.is_split = barrier.is_split or cause is not None
            finding = self.life.misuse(
                "HS215",
                "hazard",
                other and (other.agent, other.mask, other.line, "arrive"),
                (arrival.agent, arrival.mask, arrival.line, "arrive"),
                barrier.address,
                "a wait that sees the phase before it is followed by the next"
                if other is None
                else f"an edge to :{arrival.line} from the arrival at :{other.line}, or from a wait for its phase",
                f"wait for the phase before :{arrival.line} arrives again{twice}",
                late=lambda: "" if any(flight.raced for flight in last.flights) else None,
                cause=cause,
            )
            if count:
                finding.hint = (
                    f"wait for the phase before :{finding.lines[1]} arrives again; or, if those of the phase before and"
                    f" these belong to one phase, at :{init}:  mbarrier.init with a count of at least {count}"
                )
            return

    def _count_apart(self, barrier: Barrier, last: Phase, arrivals: list[Sent]) -> int:
        """Return how many arrive, as far as is known, where others do than for the phase before; 0: the same ones do.

        All of them may be meant for one phase.
        """
        before = _lanes_of(last.members)
        if not before or before & _lanes_of(arrivals):
            return 0
        lanes = before | _lanes_of(barrier.phase(barrier.index).members) | _lanes_of(arrivals)
        init = barrier.born[3]
        self._meant[init] = max(self._meant.get(init, 0), len(lanes))
        return self._meant[init]

    def _not_before(self, last: Phase, arrival: Sent) -> Source | None:
        """Return an arrival of a complete phase that one of the next may have come before; None if there is none."""
        view = arrival.published.views.get("")
        if view is None or self.is_vague:
            return None

        def covers(agent: Agent, epoch: int) -> bool:
            return knows(view, agent, epoch)

        def follows(agent: Agent, epoch: int, mask: int) -> bool:
            if agent is arrival.agent:
                return view.covers(agent, epoch, mask)
            return covers(agent, epoch)

        for agent, epoch, mask, _ in last.waits:
            is_own = agent is arrival.agent and mask & arrival.mask and epoch <= arrival.epoch
            if is_own or follows(agent, epoch, mask) or met(covers, agent, epoch):
                return None
        unknown = (one for one in last.members if not follows(one.agent, one.epoch, one.mask))
        return next(unknown, None)

    def check_complete(self, barrier: Barrier, index: int) -> None:
        """A phase is complete: those who waited for the one before must be known to have seen it.

        It is enough that one arrival, or bytes without which it could not complete, came from who knew.
        """
        phase, last = barrier.phase(index), barrier.phases.get(index - 1)
        if last is None or not phase.members:
            return
        for position, (agent, epoch, mask, line) in enumerate(last.waits):
            if (
                not phase.covers(agent, epoch)
                and not met(phase.covers, agent, epoch)
                and not phase.held_by_bytes(position)
            ):
                first = phase.members[-1]
                self.life.misuse(
                    "HS005", "hazard", (agent, mask, line, "wait"), (first.agent, first.mask, first.line, "arrive"),
                    barrier.address, f"an edge from the wait at :{line} to an arrival of the next phase",
                    "let the waiting warp arrive on a barrier that the next phase depends on",
                    late=lambda: "" if barrier.is_split else None,
                )  # fmt: skip
                return


def met(covers: Callable[[Agent, int], bool], agent: Agent, epoch: int) -> bool:
    """Whether what `covers` an epoch follows a wgmma that all four warps issued, this one in `epoch` or later."""
    first = agent.warp // 4 * 4
    for other in agent.cta.agents[first : first + 4]:
        for own_epoch, parts in other.met:
            if any(one is agent and when >= epoch for one, when, _ in parts) and covers(
                other, own_epoch
            ):
                return True
    return False


def _lanes_of(arrivals: Iterable[Sent | Source]) -> set[tuple[Agent, int]]:
    """Return the lanes that arrive."""
    return {(one.agent, lane) for one in arrivals for lane in bits(one.mask)}


def _counted_twice(last: Phase) -> str:
    """Return what else may be wrong where some lane arrived twice in the phase before."""
    seen: dict[tuple[Agent, int], int] = {}
    for one in last.members:
        for lane in bits(one.mask):
            line = seen.setdefault((one.agent, lane), one.line)
            if line != one.line:
                return f"; or leave out the arrive at :{one.line}: the phase has counted its lanes at :{line}"
    return ""

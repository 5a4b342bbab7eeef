"""Races that only follow: something is there to order the two accesses, and another finding tells what is wrong with it.

A flag or a lock of too narrow a scope, a lock that a plain store gives back, a named barrier or an mbarrier that is complete
before all have come: whoever mends these mends the accesses that they guard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from hopsim.hazards.chains import Chain, find_chain
from hopsim.hazards.clocks import Agent
from hopsim.hazards.naming import epoch_of
from hopsim.hazards.ordering import ORDER, Gap
from hopsim.hazards.records import Record
from hopsim.hazards.swaps import swap_story
from hopsim.hazards.world import World

Question: TypeAlias = Callable[[], str | None]
TURNS_KEPT: Final = 64


class Followers:
    """Knows what findings say of flags, locks and barriers, and which races stand behind these."""

    def __init__(self, world: World) -> None:
        self.world = world
        # PTX lines, either way round, of strong accesses whose scopes are told to be too narrow.
        self._narrow: set[tuple[int, int]] = set()
        # Plain stores that gave a lock back, and who took it next.
        self._turns: deque[tuple[Record, Record, Gap]] = deque(maxlen=TURNS_KEPT)

    def is_guarded(self, first: Record, second: Record, gap: Gap) -> bool:
        """Whether a lock that a plain store gave back lies between two accesses; remember such a turn."""
        if gap.first is None or gap.missing != ORDER:
            return False
        if not first.scope and swap_story(first, second, self.world.facts) == "release":
            self._turns.append((first, second, gap))
            return False
        return any(_passes(turn, first, second, gap) for turn in self._turns)

    def note_narrow(self, first: Record, second: Record) -> None:
        """Remember strong accesses of which a finding says that their scopes are too narrow."""
        self._narrow |= {(first.line, second.line), (second.line, first.line)}

    def ask(
        self,
        first: Record,
        second: Record,
        gap: Gap,
        chain: Chain | None,
        late: Question | None,
    ) -> Question:
        """Return a question for the end of the run: does a race follow from what is told of a flag or a barrier?

        Args:
            chain: the edges from the first access to the second.  late: what else is asked then.
        """
        is_early = self._ask_barrier(first, second, gap)
        is_released = _ask_mbarriers(first, second, gap)

        def ask() -> str | None:
            if self._is_narrow(chain) or is_early() or is_released():
                return ""
            return None if late is None else late()

        return ask

    def _is_narrow(self, chain: Chain | None) -> bool:
        """Whether nothing but scopes that are told makes the edges of a chain too weak."""
        if chain is None or {*chain.weak} != {"scope"}:
            return False
        return self._narrow.issuperset(zip(chain.lines[::2], chain.lines[1::2], strict=True))

    def _ask_barrier(self, first: Record, second: Record, gap: Gap) -> Callable[[], bool]:
        """Return whether the first thread will come, behind its access, to a barrier that let the second go before."""
        agent, end = gap.first[0] if gap.first is not None else None, gap.second[0]
        if agent is None or agent is end or agent.cta is not end.cta or gap.missing != ORDER:
            return lambda: False
        epoch = epoch_of(first, agent)
        passed = {line for _, _, line, what, _ in end.log if what == "bar"}

        def ask() -> bool:
            came = {
                line for at, (kind, line) in agent.epochs.items() if kind == "bar" and at >= epoch
            }
            return any(passed & pair and came & pair for pair in self.world.collided)

        return ask


def _ask_mbarriers(first: Record, second: Record, gap: Gap) -> Callable[[], bool]:
    """Return whether the first thread will arrive, behind its access, on an mbarrier that let an operation go before."""
    if gap.first is None or second.flight is None or gap.missing != ORDER:
        return lambda: False
    (agent, _), end = gap.first, gap.second[0]
    epoch = epoch_of(first, agent)
    phases = {node for *_, what, node in end.log if what.endswith("mbarrier")}
    passed = [one for one in end.cta.barriers.values() if phases & {*one.phases.values()}]

    def ask() -> bool:
        return any(
            barrier.is_split
            and any(
                source.agent is agent and source.epoch >= epoch
                for phase in barrier.phases.values()
                for source in phase.members
            )
            for barrier in passed
        )

    return ask


def _passes(turn: tuple[Record, Record, Gap], first: Record, second: Record, gap: Gap) -> bool:
    """Whether who made the first access gave a lock back after it, and who makes the second took it before."""
    given, taken, between = turn
    assert gap.first is not None
    assert between.first is not None
    if given.cta is not first.cta or taken.cta is not second.cta:
        return False
    if not (first.seq < given.seq and taken.seq < second.seq):
        return False
    return _leads(first, gap.first, given, between.first) and _leads(
        taken, between.second, second, gap.second
    )


def _leads(
    earlier: Record, who: tuple[Agent, int], later: Record, whose: tuple[Agent, int]
) -> bool:
    """Whether an access comes before a later one, by the same thread or by edges between the two."""
    if who[0] is whose[0] and who[1] & whose[1]:
        return True
    start, end = who[0], whose[0]
    return find_chain(start, epoch_of(earlier, start), end, epoch_of(later, end), False) is not None

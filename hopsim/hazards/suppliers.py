"""Who brings what a phase of an mbarrier lacks: if they wait for something else now, the lack follows from that.

Who did so in the phase before could do it again.  Of a first phase only the program tells who may come: those who wait where
an arrive, or a copy, still stands ahead of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hopsim.findings import Wait
from hopsim.hazards.clocks import Agent
from hopsim.hazards.objects import Barrier, Phase
from hopsim.hazards.world import World

ARRIVE: Final = re.compile(r"\bmbarrier\.arrive")
COPY: Final = re.compile(r"\bcomplete_tx\b")


class Suppliers:
    """Asks of those who are stuck which mbarriers they would go on to bring something.

    Args:
        waits: where each of them waits.
    """

    def __init__(self, world: World, waits: Sequence[Wait]) -> None:
        self._facts = world.facts
        ctas = [world.cta(world.facts.index_of(wait.cta)) for wait in waits]
        self._stuck = [(cta.agents[wait.warp], wait) for cta, wait in zip(ctas, waits, strict=True)]
        self._after: dict[int, Sequence[int]] = {}

    def all_wait(self, barrier: Barrier) -> bool:
        """Whether all who arrived in the phase before, and could do so again, wait for another barrier now."""
        last = barrier.phases.get(barrier.index - 1)
        if last is None or not last.members or barrier.phase(barrier.index).arrivals:
            return False
        elsewhere = {agent for agent, _ in self._elsewhere(barrier)}
        return all(source.agent in elsewhere for source in last.members)

    def copier_waits(self, barrier: Barrier) -> bool:
        """Whether bytes that a phase expects are to be copied by somebody who waits for another barrier before that.

        What the warp that expects them copies after its next expect_tx only is for the next phase.
        """
        phase, last = barrier.phase(barrier.index), barrier.phases.get(barrier.index - 1)
        came = {(flight.agent, flight.line) for flight in phase.flights}
        before = None if last is None else {(one.agent, one.line) for one in last.flights}
        if before is None and came:
            return False
        expecters = _expecters(phase)
        return any(
            (agent, line) not in came
            and (before is None or (agent, line) in before)
            and not (agent in expecters and _passes(wait.line, line, phase.expected_at))
            for agent, wait in self._elsewhere(barrier)
            for line in self._ahead(wait, COPY)
        )

    def expecter_waits(self, barrier: Barrier) -> bool:
        """Whether bytes came that nobody expects, since those who did before, and did not copy them, wait elsewhere now."""
        phase, last = barrier.phase(barrier.index), barrier.phases.get(barrier.index - 1)
        if phase.expects or last is None:
            return False
        came = {flight.agent for flight in phase.flights}
        elsewhere = {agent for agent, _ in self._elsewhere(barrier)}
        return bool((_expecters(last) - came) & elsewhere)

    def follows(self, barrier: Barrier, other: Barrier) -> bool:
        """Whether a first phase to which nobody came lacks what those bring who wait for another mbarrier.

        They come no further until that one is complete, and who waits for this one has given all to it.
        """
        phase = barrier.phase(barrier.index)
        if barrier.index or phase.arrivals or not other.pending:
            return False
        given = {source.agent for source in other.phase(other.index).members}
        return all(agent in given for agent, wait in self._stuck if _is_for(agent, wait, barrier)) and any(
            self._ahead(wait, ARRIVE) for agent, wait in self._stuck if _is_for(agent, wait, other)
        )  # fmt: skip

    def _elsewhere(self, barrier: Barrier) -> list[tuple[Agent, Wait]]:
        """Return those of the cluster who wait for something else than this mbarrier."""
        return [
            (agent, wait)
            for agent, wait in self._stuck
            if agent.cta.cluster == barrier.owner.cluster and not _is_for(agent, wait, barrier)
        ]

    def _ahead(self, wait: Wait, what: re.Pattern[str]) -> list[int]:
        """Return the lines of instructions of a kind that may execute after a wait."""
        after = self._after.get(wait.line)
        if after is None:
            after = self._after[wait.line] = tuple(self._facts.lines_after(wait.line))
        return [line for line in after if what.search(self._facts.text(line))]


def _expecters(phase: Phase) -> set[Agent]:
    """Return the warps that expected bytes in a phase."""
    return {agent for parts, _ in phase.expects for agent, _ in parts}


def _is_for(agent: Agent, wait: Wait, barrier: Barrier) -> bool:
    """Whether a warp waits for an mbarrier: one of its own CTA, as no other can be waited for."""
    return (
        wait.kind == "mbarrier" and wait.address == barrier.address and agent.cta is barrier.owner
    )


def _passes(start: int, end: int, mark: int) -> bool:
    """Whether a line stands on the way from one line to another, around a loop if the second stands above the first."""
    if not mark:
        return False
    if start < end:
        return start < mark and mark < end
    return start < mark or mark < end

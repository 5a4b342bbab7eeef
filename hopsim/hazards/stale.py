"""Strong reads behind a flag that carries nothing: no data race, and yet they may find what stood there before.

    st.relaxed data, 1;  st.relaxed flag, 1        ld.relaxed flag (it is 1);  ld.relaxed data (may be 0)

Strong accesses do not race, so happens-before alone does not tell of these: volatile partial sums before a ticket that
somebody draws with no fence.  It is told where a thread stored a word, and then (itself, or whoever comes after it by a
barrier) wrote another one, the value of that one was seen and used, and the first word is then loaded behind that look.  A
load that a loop repeats or that decides a branch looks for a change itself, and one whose word is changed by atomics is a
hint that may be old: neither counts.  Where only the look does not acquire, as in the sums of CUDA's Programming Guide, no
chip is known to load the word before (contested rule `unacquired_reads`).

Source: PTX ISA 8.7 "Memory Consistency Model": "Causality Order", "Coherence"; CUDA C++ Programming Guide, "Memory Fence
Functions".
"""

from __future__ import annotations

from collections import deque
from typing import Final, Literal, TypeAlias

from hopsim.hazards.chains import FENCE, MOST_STEPS
from hopsim.hazards.clocks import NEVER, Agent
from hopsim.hazards.objects import Source
from hopsim.hazards.ordering import Gap
from hopsim.hazards.records import Record
from hopsim.hazards.strength import is_morally_strong
from hopsim.hazards.world import World, includes

# What ends an epoch of a warp where its lanes meet, and order memory.
MEETINGS: Final = frozenset({"bar", "bar.warp.sync", "cluster arrive"})
Announced: TypeAlias = Literal["", "unsent", "unread"]
# How often a pair of sites is looked at, found or not.
TRIES: Final = 64


class StaleReads:
    """Looks for the flag that a strong read behind it relies on."""

    def __init__(self, world: World) -> None:
        facts = world.facts
        self._waiting = facts.poll_lines | facts.choice_lines
        self._unread = facts.unread_looks
        self._tries: dict[tuple[int, int], int] = {}

    def may_be(self, first: Record, second: Record) -> bool:
        """Whether two accesses are a store and a load of data, morally strong, by different warps."""
        if (
            first.kind != "w"
            or not first.scope
            or second.kind != "r"
            or first.flight is not None
            or second.flight is not None
            or second.line in self._waiting
            or first.parts[0][0] is second.parts[0][0]
            or not is_morally_strong(first, second)
        ):
            return False
        site = (first.line, second.line)
        tries = self._tries[site] = self._tries.get(site, 0) + 1
        return tries <= TRIES

    def announced(self, first: Record, gap: Gap) -> Announced:
        """Return what a later write of those who stored says to who loads: nothing (they saw none), unsent, or unread.

        Args:
            gap: between the store and the load.
        """
        if gap.first is None:
            return ""
        start, start_lanes = gap.first
        began = next((at for one, at, _ in first.parts if one is start and at != NEVER), None)
        end, end_lanes = gap.second
        if began is None or start is end:
            return ""
        todo: deque[tuple[Agent, int, int, Announced]] = deque([(end, end_lanes, end.now, "")])
        reached: dict[tuple[Agent, int], int] = {}
        for _ in range(MOST_STEPS):
            if not todo:
                return ""
            agent, lanes, limit, behind = todo.popleft()
            for at, mask, line, what, node in reversed(agent.log):
                if at > limit or node is None or line in self._unread:
                    continue
                if not _is_before(agent, mask, at, lanes, limit):
                    continue
                for source in node.sources():
                    found = behind
                    if what.endswith("flag"):
                        found = "unread" if _reaches(source, agent) else "unsent"
                    # Of that very word no flag is needed.
                    if (
                        found
                        and source.agent is start
                        and source.epoch >= began
                        and source.line != first.line
                        and _is_before(start, start_lanes, began, source.mask, source.epoch)
                    ):
                        return found if _is_fenced(source, began) else "unsent"
                    known = reached.get((source.agent, source.mask), -1)
                    if known < source.epoch:
                        reached[source.agent, source.mask] = source.epoch
                        todo.append((source.agent, source.mask, source.epoch, found))
        return ""


def _reaches(source: Source, reader: Agent) -> bool:
    """Whether a strong write publishes anything to another warp."""
    if source.weak:
        return False
    return source.fence is None or includes(source.fence[0], source.agent.cta, reader.cta)


def _is_fenced(source: Source, began: int) -> bool:
    """Whether a flag that publishes by a fence does so by one that stands behind what its thread did in an epoch."""
    if source.fence is None:
        return True
    epochs = source.agent.epochs
    return any(epochs.get(at, ("", 0))[0] == FENCE for at in range(began, source.epoch))


def _is_before(agent: Agent, earlier: int, epoch: int, later: int, until: int) -> bool:
    """Whether what lanes of a warp did in an epoch comes before what others of it do in a later one."""
    if earlier & later:
        return True
    for at in range(epoch, until + 1):
        if agent.epochs.get(at, ("", 0))[0] in MEETINGS:
            return True
    return any(
        epoch <= at <= until and lanes & earlier and lanes & later
        for at, lanes, _ in agent.gathered
    )

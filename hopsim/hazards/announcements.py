"""Two threads that each announce something, then look whether the other has: with no fence.sc, both may miss it.

    st x, 1;  fence.acq_rel;  ld y        st y, 1;  fence.acq_rel;  ld x

In a run one of them sees the other's word.  Nothing but a fence.sc between the write and the look of both forbids that
neither does (store buffering), and then both take the way of who is alone: locks of Dekker's and Peterson's kind fail so.
This is told where both looks decide where their threads go, each word's value of before leads elsewhere, and no order that
the program has shows the write to the look.  Where one side of the branch comes to look again and does nothing meanwhile,
missing the word counts only if it leads to the other side: who waits looks again.

Source: PTX ISA 8.7 "Memory Consistency Model": "Fence-SC Order", "Causality Order", "Coherence".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.events import Access as AccessEvent
from hopsim.events import Poll, SyncEvent
from hopsim.hazards.clocks import Agent, View, bits, sees
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.observations import Place
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import World, includes, scope_around

KEPT: Final = 8


@dataclass(slots=True, eq=False)
class Announcement:
    """A strong write.

    Args:
        seq: number of the event.
        before, value: what the word held, and holds then; None: not known.
        missed_by: looks that did not find it, or may not have found it, and that this leads elsewhere.
    """

    place: Place
    agent: Agent
    mask: int
    epoch: int
    seq: int
    line: int
    before: int | None
    value: int | None
    missed_by: list[Decision]


@dataclass(slots=True, eq=False)
class Decision:
    """A look that decided where lanes of a warp go.

    Args:
        waits: whether one side comes to look again.
        announced: what these lanes had written before, and the scopes of the fence.sc in between.
    """

    agent: Agent
    mask: int
    epoch: int
    seq: int
    line: int
    place: Place
    poll: Poll
    positions: list[int]
    waits: bool
    announced: dict[Announcement, frozenset[str]]

    def sides(self, value: int | None) -> set[bool]:
        """Return which way its lanes go with a value: True is on, False is to look again, or the other way."""
        if value is None:
            return set()
        found = self.poll.would_end(value)
        return {bool(_at(found, one)) for one in self.positions}

    def heeds(self, write: Announcement) -> bool:
        """Whether missing a write leads its lanes elsewhere, and not to wait."""
        missed, found = self.sides(write.before), self.sides(write.value)
        return (
            len(missed) == len(found) == 1
            and missed != found
            and (missed == {True} or not self.waits)
        )


@dataclass(frozen=True, slots=True)
class _Look:
    """A look that is under way: at what, and the last writes to it of which its lanes do not know."""

    place: Place
    mask: int
    writes: list[Announcement]


class Announcements:
    """Watches strong writes, and looks that decide."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world = world
        self.findings = findings
        facts = world.facts
        self._deciding = facts.poll_lines | facts.choice_lines
        # The last writes of each word, oldest first, and the looks at it since.
        self._writes: dict[Place, deque[Announcement]] = {}
        self._decisions: dict[Place, list[Decision]] = {}
        # By warp number: its last writes, and its last fence.sc as (event, lanes, scope).
        self._own: dict[int, deque[Announcement]] = {}
        self._fences: dict[int, deque[tuple[int, int, str]]] = {}
        self._looks: dict[tuple[int, int], list[_Look]] = {}
        self._told: set[tuple[int, int]] = set()

    def fence(self, agent: Agent, mask: int, scope: str) -> None:
        """A fence.sc."""
        if self._deciding:
            fences = self._fences.setdefault(agent.number, deque(maxlen=KEPT))
            fences.append((self.world.seq, mask, scope))

    def access(self, event: AccessEvent, kind: str, agent: Agent, mask: int, address: int) -> None:
        """A strong access of lanes of a warp to one address, before anything is learned from it."""
        if not self._deciding:
            return
        place = (event.space, event.owner, address)
        view = agent.eyes(mask)[0][1]
        if kind != "r":
            self._write(event, place, agent, mask, view)
        elif event.line in self._deciding:
            unknown: list[Announcement] = []
            for write in reversed(self._writes.get(place, ())):
                if _knows(view, agent, mask, write):
                    break
                unknown.append(write)
            looks = self._looks.setdefault((agent.number, event.line), [])
            looks[:] = [look for look in looks if not look.mask & mask]
            looks.append(_Look(place, mask, unknown))

    def _write(self, event: AccessEvent, place: Place, agent: Agent, mask: int, view: View) -> None:
        write = Announcement(
            place, agent, mask, agent.now, self.world.seq, event.line, _value(event.before, event, agent, mask, 0),
            _value(event.value, event, agent, mask, -1), [],
        )  # fmt: skip
        write.missed_by = [
            decision
            for decision in self._decisions.pop(place, ())
            if decision.heeds(write) and not _knows(view, agent, mask, decision)
        ]
        self._writes.setdefault(place, deque(maxlen=KEPT)).append(write)
        self._own.setdefault(agent.number, deque(maxlen=KEPT)).append(write)

    def looked(self, event: SyncEvent) -> None:
        """A look has decided where its threads go: out of a loop, round it once more, or to one side of a branch."""
        poll: Poll = event.detail
        tids: list[int] = event.agent[1].tolist()
        for agent, mask in self.world.parties(event.agent):
            own = self._own.get(agent.number)
            looks = self._looks.pop((agent.number, event.line), [])
            if own is None:
                continue
            for look in looks:
                lanes = look.mask & mask
                positions = [k for k, tid in enumerate(tids) if _is_of(tid, agent, lanes)]
                announced = {
                    one: self._scopes_since(one, lanes)
                    for one in own
                    if one.place != look.place and one.mask & lanes
                }
                if not announced or not positions:
                    continue
                decision = Decision(
                    agent, lanes, agent.now, self.world.seq, event.line, look.place, poll, positions,
                    event.what != "choice", announced,
                )  # fmt: skip
                for write in look.writes:
                    if decision.heeds(write):
                        self._may_miss(decision, write)
                ended = {bool(_at(poll.ended, one)) for one in positions}
                if not decision.waits or ended == {True}:
                    seen = self._decisions.setdefault(look.place, [])
                    seen[:] = [*seen[1 - KEPT :], decision]

    def _may_miss(self, second: Decision, write: Announcement) -> None:
        """Take a look that may have missed what another thread wrote: did that thread, or may it, miss this one's word?"""
        write.missed_by = [*write.missed_by[1 - KEPT :], second]
        for own in second.announced:
            for first in own.missed_by:
                if write not in first.announced:
                    continue
                ctas = first.agent.cta, second.agent.cta
                scopes = first.announced[write], second.announced[own]
                # Two fences that hold each other have an order.
                if not all(any(includes(scope, *ctas) for scope in one) for one in scopes):
                    self._tell(first, write, second, own)

    def _scopes_since(self, write: Announcement, mask: int) -> frozenset[str]:
        """Return the scopes of the fence.sc of these lanes since one of their writes."""
        return frozenset(
            scope
            for seq, lanes, scope in self._fences.get(write.agent.number, ())
            if seq > write.seq and not mask & ~lanes
        )

    def _tell(
        self, first: Decision, write: Announcement, second: Decision, own: Announcement
    ) -> None:
        if (first.line, second.line) in self._told:
            return
        self._told |= {(first.line, second.line), (second.line, first.line)}
        scope = scope_around(first.agent.cta, second.agent.cta)
        places = " and ".join(f":{line}" for line in sorted({write.line, own.line}))
        self.findings.add(
            Finding(
                "HS516", "note", RULES["HS516"].sentence, self._side(first), self._side(second),
                f"a fence.sc between the write at :{write.line} and the look at :{first.line}, and one between :{own.line}"
                f" and :{second.line}: without both, each may miss what the other wrote, and both go on as if alone",
                f"behind {places}:  fence.sc.{scope};  (in CUDA: __threadfence(), or atomic_thread_fence of"
                " memory_order_seq_cst; acq_rel does not do)",
                cause=(),
            )
        )  # fmt: skip

    def _side(self, decision: Decision) -> Any:
        space, owner, address = decision.place
        agent = decision.agent
        if space == "shared":
            space = "shared::cta" if owner == agent.cta.index else "shared::cluster"
        region = self.world.global_region(address) if space == "global" else None
        start = address if region is None else address - region.base
        return self.findings.thread_side(
            agent, decision.mask, decision.line, "read", space=space, start=start, stop=start + 4,
            name="" if region is None else region.name,
        )  # fmt: skip


def _knows(view: View, agent: Agent, mask: int, other: Announcement | Decision) -> bool:
    """Whether lanes made an access themselves, or come after it."""
    if other.agent is agent and other.mask & mask:
        return True
    return any(sees(view.hb, other.agent, other.epoch, 1 << lane) for lane in bits(other.mask))


def _is_of(tid: int, agent: Agent, lanes: int) -> bool:
    return tid >> 5 == agent.warp and bool(lanes >> (tid & 31) & 1)


def _at(value: Any, position: int) -> Any:
    return value[position] if isinstance(value, np.ndarray) else value


def _value(value: Any, event: AccessEvent, agent: Agent, mask: int, which: int) -> int | None:
    """Return the value of the first (0) or last (-1) of some lanes."""
    if value is None or isinstance(value, int):
        return value
    tids = event.agent[1].tolist()
    return int(value[[k for k, tid in enumerate(tids) if _is_of(tid, agent, mask)][which]])

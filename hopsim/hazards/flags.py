"""Release and acquire through memory: flags, atomics, and the fences that make relaxed accesses carry more.

A location remembers what the last release, and every read-modify-write since, publishes.  A relaxed access publishes
what a release fence before it knew, and lets a later acquire fence learn, each to the threads that the fence's scope
holds.  fence.sc is release and acquire too; the order of such fences is an edge of its own (`fence_order`).

Source: PTX ISA 8.7 "Memory Consistency Model": "Release and Acquire Patterns", "Synchronizes".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hopsim.events import Access, SyncEvent
from hopsim.hazards.announcements import Announcements
from hopsim.hazards.chains import CLUSTERED, FENCE, NARROW, RELAXED
from hopsim.hazards.clocks import Agent, View, bits
from hopsim.hazards.fence_order import FenceOrder
from hopsim.hazards.fences import Fence
from hopsim.hazards.objects import Phase, Source, learn
from hopsim.hazards.observations import Look, Observations
from hopsim.hazards.polls import Polls
from hopsim.hazards.world import Reach, World, includes, reach

RELEASING: Final = frozenset({"release", "acq_rel"})
ACQUIRING: Final = frozenset({"acquire", "acq_rel"})
RED: Final = re.compile(r"^red\b")
WIDTH: Final = ("cta", "cluster", "gpu", "sys")
PENDING_KEPT: Final = 8
RELEASED_KEPT: Final = 32


@dataclass(slots=True)
class Published:
    """What an access or an arrival publishes.

    Args:
        views: by the scope of the fence that lets it; an empty one: as far as the access itself reaches.
        fence: (scope, PTX line) of the last such fence.
        is_whole: whether each of its lanes publishes something.
    """

    views: dict[str, View]
    fence: tuple[str, int] | None = None
    is_whole: bool = True


class Flag:
    """A location that somebody wrote with a strong access: what reading it may teach."""

    __slots__ = ("carried", "members", "released", "scope")

    def __init__(self) -> None:
        # By whom it is for; neither the table nor its views ever change, they are replaced.
        self.carried: dict[Reach, View] = {}
        self.scope = ""
        self.members: list[Source] = []
        # What threads released here, by (warp, lanes), as (scope, view): their later strong writes publish it too.
        self.released: dict[tuple[int, int], tuple[str, View]] = {}


@dataclass(slots=True)
class Seen:
    """Who had written a location when it was read; later writes are none of the reader's business."""

    members: list[Source]

    def sources(self) -> Iterator[Source]:
        """Yield the edges into those who read it."""
        yield from self.members


@dataclass(slots=True)
class Pending:
    """What an acquire fence may still learn: a phase, or what a flag carried, and from whom."""

    node: Flag | Phase
    scope: str
    line: int
    carried: dict[Reach, View]
    members: list[Source]


class Flags:
    """All locations written or read with strong accesses."""

    def __init__(
        self,
        world: World,
        polls: Polls,
        announcements: Announcements,
        observations: Observations,
    ) -> None:
        self.world = world
        self.polls = polls
        self.announcements = announcements
        self.observations = observations
        self.fence_order = FenceOrder()
        self.flags: dict[tuple[str, int, int], Flag] = {}

    # -- fences ------------------------------------------------------------------------------------

    def fence(self, event: SyncEvent) -> None:
        """fence, membar."""
        semantics, scope = event.detail
        for agent, mask in self.world.parties(event.agent):
            if semantics != "release" and agent.acquiring:
                self._learn(agent, mask, scope, event.line)
            if semantics == "sc":
                self.fence_order.learn(agent, mask, scope)
                self.announcements.fence(agent, mask, scope)
            if semantics != "acquire":
                fence = Fence.at(agent, mask, scope, event.line)
                if semantics == "sc":
                    self.fence_order.enter(fence)
                wider = WIDTH[WIDTH.index(scope) + 1 :]
                for lane in bits(mask):
                    # A narrower fence takes nothing from what a wider one before it lets be published.
                    kept = [one for one in agent.releasing.get(lane, ()) if one.scope in wider]
                    agent.releasing[lane] = [*kept, fence]
                agent.end_epoch(FENCE, event.line)

    def fenced(self, agent: Agent, mask: int) -> Published:
        """Return what a relaxed access of these lanes publishes, because of fences before it."""
        found = Published({})
        lanes_of: dict[Fence, int] = {}
        for lane in bits(mask):
            fences = agent.releasing.get(lane)
            if fences is None:
                found.is_whole = False
                continue
            for fence in fences:
                lanes_of[fence] = lanes_of.get(fence, 0) | 1 << lane
        for fence, lanes in lanes_of.items():
            view = fence.before(lanes)
            known = found.views.get(fence.scope)
            if known is not None:
                view.join(known)
            found.views[fence.scope] = view
            found.fence = (fence.scope, fence.line)
        return found

    def published(self, agent: Agent, mask: int, releases: bool) -> Published:
        """Return what an access of these lanes publishes, be it a release or relaxed."""
        return Published({"": agent.release(mask)}) if releases else self.fenced(agent, mask)

    def learn_later(self, agent: Agent, mask: int, phase: Phase, scope: str, line: int) -> None:
        """A relaxed wait: an acquire fence after it will learn."""
        for lane in bits(mask):
            agent.acquiring.setdefault(lane, []).append(Pending(phase, scope, line, {}, []))

    @staticmethod
    def share_looks(agent: Agent, mask: int) -> None:
        """Lanes hand each other values: an acquire fence of any of them will learn from what one has read."""
        if not agent.acquiring:
            return
        known: dict[int, Pending] = {}
        for lane in bits(mask):
            known.update((id(one), one) for one in agent.acquiring.get(lane, ()))
        for lane in bits(mask) if known else ():
            agent.acquiring[lane] = list(known.values())[-PENDING_KEPT:]

    def _learn(self, agent: Agent, mask: int, scope: str, line: int) -> None:
        gathered: dict[int, tuple[Pending, int]] = {}
        for lane in bits(mask):
            for pending in agent.acquiring.pop(lane, ()):
                known = gathered.get(id(pending.node))
                gathered[id(pending.node)] = (pending, (known[1] if known else 0) | 1 << lane)
        mark = {"cta": NARROW, "cluster": CLUSTERED}.get(scope, "")
        for pending, lanes in gathered.values():
            what, at = mark + "fence", line
            if isinstance(pending.node, Phase):
                if pending.scope == "cta" and not mark:
                    what, at = NARROW + "mbarrier", pending.line
                learn(agent, lanes, pending.node, "cta" in (scope, pending.scope))
                apart = scope == "cta" and pending.node.far is not None
            else:
                apart = any(
                    not includes(scope, source.agent.cta, agent.cta) for source in pending.members
                )
                _take(agent, lanes, pending.carried, apart)
            if apart:
                # A wider fence may follow.
                for lane in bits(lanes):
                    kept = agent.acquiring.setdefault(lane, [])
                    kept[:] = [*kept[1 - PENDING_KEPT :], pending]
            node = pending.node if isinstance(pending.node, Phase) else Seen(pending.members)
            agent.log.append((agent.now, lanes, at, what, node))

    # -- accesses ----------------------------------------------------------------------------------

    def access(self, event: Access) -> None:
        """A strong access of threads."""
        parties = self.world.parties(event.agent)
        scope = event.scope or "sys"
        addresses: Any = event.addresses
        kind = event.kind
        if kind == "a" and RED.match(self.world.facts.mnemonic(event.line)):
            kind = "red"
        if isinstance(addresses, np.ndarray):
            lanes_of: dict[tuple[int, int], int] = {}
            for tid, address in zip(event.agent[1].tolist(), addresses.tolist(), strict=True):
                lanes_of[tid >> 5, address] = lanes_of.get((tid >> 5, address), 0) | 1 << (tid & 31)
            agents = {agent.warp: (agent, agent.now) for agent, _ in parties}
            for (warp, address), mask in lanes_of.items():
                self._one(event, kind, *agents[warp], mask, address, scope)
        else:
            for agent, mask in parties:
                self._one(event, kind, agent, agent.now, mask, addresses, scope)

    def _one(
        self,
        event: Access,
        kind: str,
        agent: Agent,
        epoch: int,
        mask: int,
        address: int,
        scope: str,
    ) -> None:
        key = (event.space, event.owner, address)
        self.polls.access(event, kind, agent, mask, address)
        self.announcements.access(event, kind, agent, mask, address)
        is_told = event.line not in self.world.facts.unread_looks
        look = Look(event.kind, agent, epoch, mask, scope, event.count_bytes, is_told)
        word = self.observations.word(key, look)
        if word is not None:
            if self.fence_order.is_used:
                self.fence_order.note(word, look)
            word.enter(look)
        flag = self.flags.get(key)
        semantics = event.semantics
        if flag is not None and kind in ("r", "a"):
            self._acquire(event, flag, agent, mask, scope)
        elif flag is not None and kind == "red" and flag.carried:
            agent.log.append((agent.now, mask, event.line, "flag", _weakly(flag, "red")))
        if kind == "r":
            return
        if flag is None or kind == "w":
            before = flag
            flag = self.flags[key] = Flag()
            if before is not None:
                flag.released = before.released
        published = self.published(agent, mask, semantics in RELEASING)
        self._released_before(flag, published, (agent.number, mask), semantics, scope)
        for width, view in published.views.items():
            whom = reach(width, agent.cta)
            fresh = view.copy()
            if whom in flag.carried:
                fresh.join(flag.carried[whom])
            flag.carried = {**flag.carried, whom: fresh}
            flag.scope = scope
        weak = "" if published.is_whole else "relaxed access"
        source = Source(agent, agent.now, mask, event.line, weak, published.fence)
        flag.members = [*flag.members[-31:], source]
        agent.end_epoch("release" if published.views else "relaxed access", event.line)

    @staticmethod
    def _released_before(
        flag: Flag, published: Published, who: tuple[int, int], semantics: str, scope: str
    ) -> None:
        """A release and a later strong write by the same thread make a release pattern, of the scope of the release."""
        if semantics in RELEASING:
            kept = list(flag.released.items())[1 - RELEASED_KEPT :]
            width = scope if scope in ("cta", "cluster") else ""
            flag.released = {**dict(kept), who: (width, published.views[""])}
        elif who in flag.released:
            width, view = flag.released[who]
            known = published.views.get(width)
            if known is not None:
                view = view.copy()
                view.join(known)
            published.views[width] = view
            published.is_whole = True

    def _acquire(self, event: Access, flag: Flag, agent: Agent, mask: int, scope: str) -> None:
        semantics = event.semantics
        sources = flag.members
        apart = any(
            not includes(flag.scope or scope, source.agent.cta, agent.cta)
            or not includes(scope, source.agent.cta, agent.cta)
            for source in sources
        )
        if semantics in ACQUIRING:
            if not apart:
                _take(agent, mask, flag.carried)
            agent.log.append(
                (
                    agent.now,
                    mask,
                    event.line,
                    "flag",
                    _weakly(flag, "scope") if apart else Seen(sources),
                )
            )
            return
        if flag.carried and not apart:
            for lane in bits(mask):
                waiting = agent.acquiring.setdefault(lane, [])
                waiting[:] = [pending for pending in waiting if pending.node is not flag]
                waiting.append(Pending(flag, scope, event.line, flag.carried, sources))
        # What was fenced is not learned for want of scope; a fence behind it may be there already.
        node = _weakly(flag, "scope") if flag.carried and apart else Seen(sources)
        agent.log.append((agent.now, mask, event.line, RELAXED + "flag", node))


def _take(agent: Agent, mask: int, carried: dict[Reach, View], apart: bool = False) -> None:
    """Let lanes learn what a flag carries; `apart`: their own scope does not hold those who wrote it."""
    for whom, view in carried.items():
        if apart or whom != reach(whom[0], agent.cta):
            agent.acquire_loosely(mask, view)
        else:
            agent.acquire(mask, view)


def _weakly(flag: Flag, weak: str) -> Seen:
    """Return the same edges, marked with why they do not count."""
    return Seen([replace(source, weak=weak) for source in flag.members])

"""Release and acquire through memory: flags, atomics, and the fences that make relaxed accesses carry more.

A location remembers what the last release, and every read-modify-write since, publishes.  A relaxed access publishes
what a release fence before it knew, and lets a later acquire fence learn.  fence.sc is taken as release and acquire; the
total order of such fences is not used as an edge.

Source: PTX ISA 8.7 "Memory Consistency Model": "Release and Acquire Patterns", "Synchronizes".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.events import Access, SyncEvent
from hopsim.hazards.chains import RELAXED
from hopsim.hazards.clocks import Agent, View, bits
from hopsim.hazards.objects import Phase, Source, learn
from hopsim.hazards.polls import Polls
from hopsim.hazards.world import CtaState, World

RELEASING: Final = frozenset({"release", "acq_rel"})
ACQUIRING: Final = frozenset({"acquire", "acq_rel"})
RED: Final = re.compile(r"^red\b")


class Flag:
    """A location that somebody wrote with a strong access: what reading it may teach."""

    __slots__ = ("members", "scope", "view")

    def __init__(self) -> None:
        self.view: View | None = None
        self.scope = ""
        self.members: list[Source] = []

    def sources(self) -> Iterator[Source]:
        """Yield the edges into those who read it."""
        yield from self.members


@dataclass(slots=True)
class Pending:
    """What an acquire fence may still learn: a flag's view, or a phase."""

    node: Flag | Phase
    view: View | None
    scope: str
    line: int


def includes(scope: str, one: CtaState, other: CtaState) -> bool:
    """Whether a scope around one CTA holds the other."""
    if scope == "cta":
        return one is other
    if scope == "cluster":
        return one.cluster == other.cluster
    return True


class Flags:
    """All locations written or read with strong accesses."""

    def __init__(self, world: World, polls: Polls) -> None:
        self.world = world
        self.polls = polls
        self.flags: dict[tuple[str, int, int], Flag] = {}

    # -- fences ------------------------------------------------------------------------------------

    def fence(self, event: SyncEvent) -> None:
        """fence, membar."""
        semantics, scope = event.detail
        for agent, mask in self.world.parties(event.agent):
            if semantics != "release" and agent.acquiring:
                self._learn(agent, mask, scope, event.line)
            if semantics != "acquire":
                view = agent.release(mask)
                for lane in bits(mask):
                    agent.releasing[lane] = (view, scope)
                agent.end_epoch("fence", event.line)

    def fenced(self, agent: Agent, mask: int) -> View | None:
        """Return what a relaxed access of these lanes publishes, because of a fence before it."""
        found: View | None = None
        for lane in bits(mask):
            known = agent.releasing.get(lane)
            if known is None:
                return None
            if found is None:
                found = known[0]
            elif found is not known[0]:
                found = found.copy()
                found.join(known[0])
        return found

    def learn_later(self, agent: Agent, mask: int, phase: Phase, scope: str) -> None:
        """A relaxed wait: an acquire fence after it will learn."""
        for lane in bits(mask):
            agent.acquiring.setdefault(lane, []).append(Pending(phase, None, scope, 0))

    def _learn(self, agent: Agent, mask: int, scope: str, line: int) -> None:
        gathered: dict[int, tuple[Pending, int]] = {}
        for lane in bits(mask):
            for pending in agent.acquiring.pop(lane, ()):
                known = gathered.get(id(pending.node))
                gathered[id(pending.node)] = (pending, (known[1] if known else 0) | 1 << lane)
        for pending, lanes in gathered.values():
            if isinstance(pending.node, Phase):
                learn(agent, lanes, pending.node, scope == "cta")
            elif pending.view is not None:
                agent.acquire(lanes, pending.view)
            agent.log.append((agent.now, lanes, line, "fence", pending.node))

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
            agents = {agent.warp: agent for agent, _ in parties}
            for (warp, address), mask in lanes_of.items():
                self._one(event, kind, agents[warp], mask, address, scope)
        else:
            for agent, mask in parties:
                self._one(event, kind, agent, mask, addresses, scope)

    def _one(
        self, event: Access, kind: str, agent: Agent, mask: int, address: int, scope: str
    ) -> None:
        key = (event.space, event.owner, address)
        self.polls.access(event, kind, agent, mask, address)
        flag = self.flags.get(key)
        semantics = event.semantics
        if flag is not None and kind in ("r", "a"):
            self._acquire(event, flag, agent, mask, scope)
        elif flag is not None and kind == "red" and flag.view is not None:
            agent.log.append((agent.now, mask, event.line, "flag", _weakly(flag, "red")))
        if kind == "r":
            return
        if flag is None or kind == "w":
            flag = self.flags[key] = Flag()
        if semantics in RELEASING:
            view: View | None = agent.release(mask)
        else:
            view = self.fenced(agent, mask)
        weak = "" if view is not None else "relaxed access"
        if view is not None:
            fresh = view.copy()
            if flag.view is not None:
                fresh.join(flag.view)
            flag.view = fresh
            flag.scope = scope
        flag.members = [*flag.members[-31:], Source(agent, agent.now, mask, event.line, weak)]
        agent.end_epoch("release" if view is not None else "relaxed access", event.line)

    def _acquire(self, event: Access, flag: Flag, agent: Agent, mask: int, scope: str) -> None:
        semantics = event.semantics
        sources = flag.members
        apart = any(
            not includes(flag.scope or scope, source.agent.cta, agent.cta)
            or not includes(scope, source.agent.cta, agent.cta)
            for source in sources
        )
        if semantics in ACQUIRING:
            if flag.view is not None and not apart:
                agent.acquire(mask, flag.view)
            agent.log.append(
                (agent.now, mask, event.line, "flag", _weakly(flag, "scope") if apart else flag)
            )
            return
        if flag.view is not None and not apart:
            for lane in bits(mask):
                waiting = agent.acquiring.setdefault(lane, [])
                waiting[:] = [pending for pending in waiting if pending.node is not flag]
                waiting.append(Pending(flag, flag.view, scope, event.line))
        agent.log.append((agent.now, mask, event.line, RELAXED + "flag", flag))


def _weakly(flag: Flag, weak: str) -> Flag:
    """Return the same edges, marked with why they do not count."""
    told = Flag()
    told.members = [Source(s.agent, s.epoch, s.mask, s.line, weak) for s in flag.members]
    return told

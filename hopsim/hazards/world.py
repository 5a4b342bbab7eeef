"""The launch as the checker sees it: CTAs, their warps, their shadow memory, and the count of events."""

from __future__ import annotations

import bisect
from collections import deque
from typing import Any

from hopsim.events import SyncEvent
from hopsim.hazards.clocks import Agent
from hopsim.hazards.facts import CheckOptions, LaunchFacts
from hopsim.hazards.records import Eye, Flight, Ints, Part, Record
from hopsim.hazards.shadow import Region, States

WARP = 32
FENCES_KEPT = 64
STATES_KEPT = 1 << 17
PARTIES_KEPT = 1 << 14

Parties = list[tuple[Agent, int]]
# The threads that a scope holds: those of a CTA or of a cluster, by its number, or all.
Reach = tuple[str, int]


class CtaState:
    """One CTA: its warps, the shadow of its shared memory, its barriers, and who reaches in from outside."""

    def __init__(self, world: World, index: int) -> None:
        facts = world.facts
        self.index = index
        self.cluster = facts.cluster_of(index)
        self.id = facts.coordinates(index)
        self.agents: list[Agent] = []
        for first in range(0, facts.threads, WARP):
            lanes = min(WARP, facts.threads - first)
            world.agents += 1
            self.agents.append(Agent(world.agents, self, first // WARP, (1 << lanes) - 1))
        self.live = facts.threads
        self.shared = Region(0, facts.shared_bytes, "shared memory", False)
        world.regions.append(self.shared)
        self.barriers: dict[int, Any] = {}
        # Bounds of the barriers, so that most accesses need not look.
        self.barrier_start = self.barrier_stop = 0
        self.named: dict[int, Any] = {}
        # Numbers of the named barriers in use: others than 0 are for some of the warps.
        self.numbers: set[int] = set()
        # Named barriers on which somebody arrived again too early: what follows is not told.
        self.overrun: set[int] = set()
        self.warpgroups: dict[int, Any] = {}
        # Proxy fences: (event, warp, lanes, PTX line, spaces).
        self.fences: deque[tuple[int, Agent, int, int, tuple[int, ...]]] = deque(maxlen=FENCES_KEPT)
        # Fences of the tensormap proxy, by PTX line: (`release` or `acquire`, scope).
        self.map_fences: dict[int, tuple[str, str]] = {}
        # Waits for bulk groups: (event, warp, lanes, PTX line).
        self.store_waits: deque[tuple[int, Agent, int, int]] = deque(maxlen=FENCES_KEPT)
        # Who touched this CTA's shared memory from outside, by site and threads, and operations that read or write it.
        self.visits: dict[tuple[int, int, int], Any] = {}
        self.flights: list[tuple[Flight, Record]] = []
        self.leaving: list[tuple[Agent, int]] = []


def reach(scope: str, cta: CtaState) -> Reach:
    """Return the threads that a scope around a CTA holds."""
    if scope == "cta":
        return scope, cta.index
    if scope == "cluster":
        return scope, cta.cluster
    return "", 0


def includes(scope: str, one: CtaState, other: CtaState) -> bool:
    """Whether a scope around one CTA holds the other."""
    return reach(scope, one) == reach(scope, other)


def scope_around(one: CtaState, other: CtaState) -> str:
    """Return the narrowest scope that holds two CTAs."""
    return "cluster" if one.cluster == other.cluster else "gpu"


class World:
    """Everything the rules share."""

    def __init__(self, facts: LaunchFacts, options: CheckOptions) -> None:
        self.facts = facts
        self.options = options
        self.agents = 0
        self.seq = 0
        self.records = 0
        # Proxy fences that a warp executed: (warp, PTX line).
        self.fenced: set[tuple[int, int]] = set()
        # Sites of copies that findings name: what is left of others of the same site follows from that.
        self.told: set[tuple[int, ...]] = set()
        # PTX lines of stores that findings say nobody committed.
        self.uncommitted: set[int] = set()
        # PTX lines of two uses of a named barrier of which findings say that the first was complete without the second.
        self.collided: set[frozenset[int]] = set()
        self.states = States()
        self.regions: list[Region] = []
        self.ctas: dict[int, CtaState] = {}
        ordered = sorted(facts.regions)
        self._bases = [base for base, _, _ in ordered]
        self._globals = [Region(base, size, name, True) for base, size, name in ordered]
        self.regions += self._globals
        self._parties: dict[Any, tuple[Any, Parties]] = {}
        self._swept = STATES_KEPT

    # -- who ---------------------------------------------------------------------------------------

    def cta(self, index: int) -> CtaState:
        """Return a CTA, made when first met."""
        found = self.ctas.get(index)
        if found is None:
            found = self.ctas[index] = CtaState(self, index)
        return found

    def parties(self, agent: tuple[int, Ints]) -> Parties:
        """Return the warps and lanes of an event's agent."""
        index, tids = agent
        single = len(tids) == 1
        key = (index, int(tids[0])) if single else (index, id(tids), -1)
        known = self._parties.get(key)
        if known is not None:
            return known[1]
        agents = self.cta(index).agents
        masks: dict[int, int] = {}
        for tid in tids.tolist():
            masks[tid >> 5] = masks.get(tid >> 5, 0) | 1 << (tid & 31)
        found = [(agents[warp], mask) for warp, mask in masks.items()]
        if len(self._parties) > PARTIES_KEPT:
            self._parties.clear()
        # The array is kept so that its identity is not given to another one.
        self._parties[key] = (tids, found)
        return found

    def eyes(self, parties: Parties) -> list[Eye]:
        """Return who looks and what they rely on."""
        found: list[Eye] = []
        for agent, mask in parties:
            if agent.parts:
                found += [(agent, lanes, view) for lanes, view in agent.eyes(mask)]
            else:
                found.append((agent, mask, agent.view))
        return found

    def parts(self, parties: Parties) -> list[Part]:
        """Return the same as parts of a record, in their present epochs."""
        return [(agent, agent.now, mask) for agent, mask in parties]

    # -- what --------------------------------------------------------------------------------------

    def next_record(self) -> int:
        """Return a number for a record."""
        self.records += 1
        return self.records

    def global_region(self, address: int) -> Region | None:
        """Return the allocation that holds an address."""
        position = bisect.bisect_right(self._bases, address) - 1
        if position < 0:
            return None
        region = self._globals[position]
        return region if address < region.base + region.size else None

    def allocated(self, event: SyncEvent) -> None:
        """Watch memory that a thread allocated: addresses come in rising order, behind all others."""
        base, size, name = event.detail
        assert not self._bases or base > self._bases[-1], (base, self._bases[-1])
        region = Region(base, size, name, True)
        self._bases.append(base)
        self._globals.append(region)
        self.regions.append(region)

    def tidy(self) -> None:
        """Forget states that no byte is in, now and then."""
        if len(self.states.all) > self._swept:
            self.states.sweep([region for region in self.regions if len(region.states)])
            self._swept = len(self.states.all) * 2 + STATES_KEPT


__all__ = ["WARP", "CtaState", "Parties", "Reach", "World", "includes", "reach", "scope_around"]

"""Accesses of threads and of asynchronous operations as records for the judge, and what else each touches on its way."""

from __future__ import annotations

import numpy as np

from hopsim.events import Access as AccessEvent
from hopsim.events import FlightEvent, Touch
from hopsim.hazards.clocks import NEVER, Done
from hopsim.hazards.findings import WHAT, Findings
from hopsim.hazards.grids import Grids
from hopsim.hazards.judge import Judge
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.maps import Maps
from hopsim.hazards.mbarriers import Mbarriers
from hopsim.hazards.observations import Observations
from hopsim.hazards.records import REMOTE_STORES, Flight, Ints, Record
from hopsim.hazards.shadow import Region
from hopsim.hazards.world import CtaState, World


class Memory:
    """Every access goes through here."""

    def __init__(
        self,
        world: World,
        findings: Findings,
        judge: Judge,
        mbarriers: Mbarriers,
        lifetime: Lifetime,
        observations: Observations,
    ) -> None:
        self.world = world
        self.judge = judge
        self.mbarriers = mbarriers
        self.lifetime = lifetime
        self.observations = observations
        self.maps = Maps(world)
        self.grids = Grids(world, findings)
        facts = world.facts
        self._nc_lines = {line for line in facts.kernel_lines if ".nc" in facts.mnemonic(line)}

    # -- threads -----------------------------------------------------------------------------------

    def access(self, event: AccessEvent) -> None:
        """A load, store or atomic of threads."""
        world = self.world
        addresses: int | Ints = event.addresses
        tids: Ints = event.agent[1]
        scope = ""
        if event.semantics != "weak":
            scope = event.scope or "sys"
        if event.space == "shared":
            if isinstance(addresses, np.ndarray):
                addresses = addresses.astype(np.int64)
            self._threads(event, world.cta(event.owner).shared, addresses, tids, scope)
            return
        if isinstance(addresses, np.ndarray):
            addresses = addresses.astype(np.int64)
            region = world.global_region(int(addresses[0]))
            if region is None:
                return
            low, high = int(addresses.min()), int(addresses.max())
            if low < region.base or high + event.count_bytes > region.base + region.size:
                self._several_regions(event, addresses, tids, scope)
                return
        else:
            region = world.global_region(addresses)
            if region is None or addresses + event.count_bytes > region.base + region.size:
                return
        self._threads(event, region, addresses, tids, scope)

    def _several_regions(self, event: AccessEvent, addresses: Ints, tids: Ints, scope: str) -> None:
        groups: dict[int, tuple[Region, list[int]]] = {}
        for position, one in enumerate(addresses.tolist()):
            region = self.world.global_region(one)
            if region is not None and one + event.count_bytes <= region.base + region.size:
                groups.setdefault(region.base, (region, []))[1].append(position)
        for region, positions in groups.values():
            chosen = np.array(positions)
            part = event._replace(agent=(event.agent[0], tids[chosen]))
            self._threads(part, region, addresses[chosen], tids[chosen], scope)

    def _threads(
        self, event: AccessEvent, region: Region, addresses: int | Ints, tids: Ints, scope: str
    ) -> None:
        world = self.world
        cta = world.cta(event.agent[0])
        parties = world.parties(event.agent)
        count = event.count_bytes
        if isinstance(addresses, int):
            start, stop = addresses, addresses + count
        else:
            start, stop = int(addresses.min()), int(addresses.max()) + count
        if stop > region.base + region.size:
            # The machine stops at it.
            return
        record = Record(
            world.next_record(), event.kind, False, cta, world.parts(parties), event.line, event.space, event.owner,
            start, stop, addresses, count, tids, scope, None, None, world.seq, event.shares,
        )  # fmt: skip
        record.fresh = parties[0][0].fresh
        record.is_nc = event.line in self._nc_lines
        if event.line in self.maps.collective:
            record.done = Done()
            for agent, mask in parties:
                record.done.observe(agent, mask)
        if scope:
            record.observations = self.observations
        eyes = self.maps.copiers(record, parties, world.eyes(parties))
        for agent, _ in parties:
            agent.dirty = True
        if event.space == "global" and self.grids.is_used:
            self.grids.check(eyes, event.line, WHAT[event.kind])
        if event.space == "shared":
            owner = cta if region is cta.shared else world.cta(event.owner)
            if owner is not cta:
                self.lifetime.visit(owner, record, eyes)
            if owner.barriers and stop > owner.barrier_start and start < owner.barrier_stop:
                self.mbarriers.life.data_over(owner, record, eyes)
        self.judge.apply(region, record, eyes, None)
        if event.kind == "w" and not scope and len(parties) > 1:
            self.judge.collide(region, record, eyes)

    # -- operations --------------------------------------------------------------------------------

    def flight(self, event: FlightEvent, flight: Flight) -> None:
        """The accesses of an operation that is issued."""
        world = self.world
        parties = world.parties(event.agent)
        cta = world.cta(event.agent[0])
        eyes = world.eyes(parties)
        for agent, _ in parties:
            agent.dirty = True
        for touch in event.touches:
            if touch.space == "global":
                region = world.global_region(touch.start)
                if region is None:
                    continue
            else:
                region = world.cta(touch.owner).shared
            if touch.start < region.base or touch.stop > region.base + region.size:
                # The machine stops at it when the operation lands.
                continue
            record = self._part(event, flight, touch, cta)
            flight.records.append(record)
            self._burst(flight, touch)
            if touch.barrier is not None and touch.kind != "r":
                self.mbarriers.aimed(flight, record, touch.barrier)
            if touch.space == "shared":
                owner = world.cta(touch.owner)
                if owner is not cta:
                    self.lifetime.visit(owner, record, eyes)
                self.lifetime.watch(owner, flight, record)
                if (
                    owner.barriers
                    and touch.stop > owner.barrier_start
                    and touch.start < owner.barrier_stop
                ):
                    self.mbarriers.life.data_over(owner, record, eyes)
            self.judge.apply(region, record, eyes, touch.key)
        if event.detail is not None and flight.tracked in ("mbarrier", "bulk"):
            of_map = self.maps.read(event, flight)
            if of_map is not None:
                self.judge.apply(*of_map, None)
        if self.grids.is_used and any(touch.space == "global" for touch in event.touches):
            self.grids.check(eyes, event.line, event.kind)

    def _burst(self, flight: Flight, touch: Touch) -> None:
        """Note which operation began the stretch of like operations that this one belongs to."""
        if touch.barrier is not None and touch.kind != "r":
            barrier = self.world.cta(touch.barrier[0]).barriers.get(touch.barrier[1])
            if barrier is not None:
                flight.burst = barrier.phase(barrier.index).bursts.setdefault(
                    flight.kind, flight.line
                )

    def _part(self, event: FlightEvent, flight: Flight, touch: Touch, cta: CtaState) -> Record:
        world = self.world
        done: Done | None
        if flight.tracked == "bulk":
            done = flight.read if touch.kind == "r" else flight.landed
        elif flight.tracked == "mbarrier":
            done = Done() if touch.kind != "r" else flight.landed
        else:
            done = flight.landed
        per_thread = flight.tracked == "cp.async"
        parts = (
            [(agent, NEVER, mask) for agent, _, mask in flight.parts]
            if per_thread
            else flight.parts
        )
        atomic = "gpu" if touch.kind == "a" else ""
        record = Record(
            world.next_record(), touch.kind, touch.proxy != "generic", cta, parts, event.line, touch.space, touch.owner,
            touch.start, touch.stop, touch.addresses, touch.count_bytes, event.agent[1] if per_thread else None, atomic,
            flight, done, world.seq,
        )  # fmt: skip
        record.fresh = flight.parts[0][0].fresh
        record.inside = touch.inside
        record.wants_bridge = world.options.st_async_proxy and flight.kind in REMOTE_STORES
        return record

"""Tensor maps that threads change: who may use them, and when they may be changed again.

A copy reads its map through the tensormap proxy.  What threads wrote into a map is there for the copy once the writer
has released it to that proxy, an edge leads to the user, and the user has acquired the map; the scopes of both fences
must hold the other one's threads.

Source: PTX ISA 8.7 "fence.proxy.tensormap", "tensormap.replace", "tensormap.cp_fenceproxy"; 9.4 "Causality order".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hopsim.events import FlightEvent, SyncEvent
from hopsim.hazards.clocks import GLOBAL, MAPS, Agent, Clock, Done, MapRead, View, raise_to, sees
from hopsim.hazards.records import Eye, Flight, Record
from hopsim.hazards.shadow import Region
from hopsim.hazards.world import World, includes
from hopsim.layout.tensormap import MAP_BYTES

RELEASES_KEPT = 256
# All lanes of a warp copy a map, wait for each other, and release it.
COLLECTIVE = "tensormap.cp_fenceproxy"
# Stands in the bulk group of a load's issuer for the reading of its map.
READING = "tensor map read"


@dataclass(slots=True)
class Release:
    """A release fence of the tensormap proxy, and what came before it."""

    agent: Agent
    epoch: int
    mask: int
    scope: str
    clock: Clock

    def reaches(self, agent: Agent, lanes: int, view: View, scope: str) -> bool:
        """Whether it synchronizes with an acquire fence of these lanes, who rely on `view`."""
        one, other = self.agent.cta, agent.cta
        if not includes(self.scope, one, other) or not includes(scope, one, other):
            return False
        is_own = self.agent is agent and bool(self.mask & lanes)
        return is_own or sees(view.hb, self.agent, self.epoch, self.mask)


class Maps:
    """Releases and acquires of tensor maps, and the reads of maps by copies."""

    def __init__(self, world: World) -> None:
        self.world = world
        # What a warp's lanes may rely on in a map: (warp, address) to (lanes, clock).
        self.acquired: dict[tuple[int, int], tuple[int, Clock]] = {}
        # Releases by cluster, for pairs of fences one of which reaches no further; all others are bridges of views.
        self.released: dict[int, deque[Release]] = {}
        facts = world.facts
        self.is_used = any(
            facts.mnemonic(line).startswith("tensormap.") for line in facts.kernel_lines
        )
        # Lines after which no lane of a warp goes on before all have copied: each lane comes after all of the copy.
        self.collective = {
            line for line in facts.kernel_lines if facts.mnemonic(line).startswith(COLLECTIVE)
        }

    def fence(self, event: SyncEvent) -> None:
        """fence.proxy.tensormap, release or acquire."""
        semantics, scope = event.detail[:2]
        is_wide = scope not in ("cta", "cluster")
        for agent, mask in self.world.parties(event.agent):
            agent.cta.map_fences[event.line] = (semantics, scope)
            near = self.released.setdefault(agent.cta.cluster, deque(maxlen=RELEASES_KEPT))
            if semantics == "release":
                near.append(Release(agent, agent.now, mask, scope, agent.release(mask).hb))
                if is_wide:
                    agent.fence_proxy(mask, (MAPS,))
                agent.end_epoch("fence.proxy.tensormap", event.line)
                continue
            clock: Clock = {}
            for lanes, view in agent.eyes(mask):
                if is_wide:
                    raise_to(clock, view.bridges[MAPS])
                for release in near:
                    if release.reaches(agent, lanes, view, scope):
                        raise_to(clock, release.clock)
            addresses = event.detail[2]
            for address in {int(one) for one in _several(addresses)}:
                self.acquired[agent.number, address] = (mask, clock)

    def copiers(
        self, record: Record, parties: list[tuple[Agent, int]], eyes: list[Eye]
    ) -> list[Eye]:
        """Return who makes an access and what they rely on.

        All lanes of tensormap.cp_fenceproxy come before a map is written (`.sync`): after what any of them waited for.
        """
        if record.kind == "r" or record.line not in self.collective:
            return eyes
        return [(agent, mask, agent.release(mask)) for agent, mask in parties]

    def read(self, event: FlightEvent, flight: Flight) -> tuple[Region, Record, list[Eye]] | None:
        """Return the read of its map that a tensor copy makes, when the map lies in global memory."""
        address = event.detail[0]
        if not self.is_used or not isinstance(address, int):
            return None
        world = self.world
        region = world.global_region(address)
        if region is None:
            return None
        done = self._in_group(flight) if flight.tracked == "mbarrier" else flight.read
        record = Record(
            world.next_record(), "r", True, flight.agent.cta, flight.parts, event.line, "global", -1, address,
            address + MAP_BYTES, None, 0, None, "", flight, done, world.seq,
        )  # fmt: skip
        record.is_map = True
        eyes = [
            (agent, lanes, self._through(agent, lanes, view, address))
            for agent, lanes, view in world.eyes(world.parties(event.agent))
        ]
        return region, record, eyes

    def _in_group(self, flight: Flight) -> Done:
        """Return when the map of a load is read; its issuer's next bulk group holds the reading too (D-MAPGROUP)."""
        agent, _, mask = flight.parts[0]
        last, lanes = agent.stores[-1] if agent.stores else (None, 0)
        if last is None or last.kind != READING or lanes != mask:
            last = Flight(READING, flight.number, flight.parts[:1], flight.line, "bulk", flight.seq)
            agent.stores.append((last, mask))
        return MapRead(flight.landed, last.read)

    def _through(self, agent: Agent, lanes: int, view: View, address: int) -> View:
        """Return what lanes rely on when a copy of theirs reads a map: only what they acquired is bridged."""
        mask, clock = self.acquired.get((agent.number, address), (0, {}))
        bridges = list(view.bridges)
        bridges[GLOBAL] = {} if lanes & ~mask else clock
        return View(view.hb, view.loose, (bridges[0], bridges[1], bridges[2], bridges[3]))


def _several(addresses: object) -> list[int]:
    tolist = getattr(addresses, "tolist", None)
    if tolist is not None:
        return tolist()
    assert isinstance(addresses, int)
    return [addresses]

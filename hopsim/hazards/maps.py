"""Tensor maps that threads change: who may use them, and when they may be changed again.

A copy reads its map through the tensormap proxy.  What threads wrote into a map is there for the copy once the writer
has released it to that proxy, an edge leads to the user, and the user has acquired the map.

Source: PTX ISA 8.7 "fence.proxy.tensormap", "tensormap.replace", "tensormap.cp_fenceproxy"; 9.4 "Causality order".
"""

from __future__ import annotations

from hopsim.events import FlightEvent, SyncEvent
from hopsim.hazards.clocks import GLOBAL, MAPS, Agent, Clock, View
from hopsim.hazards.records import Eye, Flight, Record
from hopsim.hazards.shadow import Region
from hopsim.hazards.world import World

MAP_BYTES = 128


class Maps:
    """Releases and acquires of tensor maps, and the reads of maps by copies."""

    def __init__(self, world: World) -> None:
        self.world = world
        # What a warp's lanes may rely on in a map: (warp, address) to (lanes, clock).
        self.acquired: dict[tuple[int, int], tuple[int, Clock]] = {}
        self.is_used = any(
            world.facts.mnemonic(line).startswith("tensormap.") for line in world.facts.kernel_lines
        )

    def fence(self, event: SyncEvent) -> None:
        """fence.proxy.tensormap, release or acquire."""
        semantics = event.detail[0]
        for agent, mask in self.world.parties(event.agent):
            if semantics == "release":
                agent.fence_proxy(mask, (MAPS,))
                agent.end_epoch("fence.proxy.tensormap", event.line)
                continue
            addresses = event.detail[2]
            for address in {int(one) for one in _several(addresses)}:
                clock: Clock = {}
                for _, view in agent.eyes(mask):
                    clock.update(view.bridges[MAPS])
                self.acquired[agent.number, address] = (mask, clock)

    def read(self, event: FlightEvent, flight: Flight) -> tuple[Region, Record, list[Eye]] | None:
        """Return the read of its map that a tensor copy makes, when the map lies in global memory."""
        address = event.detail[0]
        if not self.is_used or not isinstance(address, int):
            return None
        world = self.world
        region = world.global_region(address)
        if region is None:
            return None
        done = flight.landed if flight.tracked == "mbarrier" else flight.read
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

"""Groups of cp.async, bulk stores and wgmma: who committed what, and what a wait covers.

Groups of copies belong to the thread that committed them, wgmma groups to the warpgroup.  `wait_group N` leaves the N
newest committed groups pending and says nothing of what was not committed.

Source: PTX ISA 8.7 "cp.async.wait_group", "cp.async.bulk.wait_group", "wgmma.wait_group".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hopsim.events import SyncEvent
from hopsim.hazards.clocks import NEVER, Agent
from hopsim.hazards.records import Flight, Record
from hopsim.hazards.registers import Registers
from hopsim.hazards.world import World

GROUPS_KEPT = 256
WGMMA_GROUPS_KEPT = 64


@dataclass(slots=True)
class Group:
    """Copies that lanes of a warp committed together.

    Args:
        read: lanes that know that all sources are free.
    """

    mask: int
    flights: list[tuple[Flight, int]]
    read: int = 0


@dataclass(slots=True)
class Products:
    """The wgmma of a warpgroup: not yet committed, and groups by number."""

    open: list[Flight] = field(default_factory=list[Flight])
    groups: dict[int, list[Flight]] = field(default_factory=dict[int, "list[Flight]"])
    committed: int = 0


class Groups:
    """Handles commits and waits."""

    def __init__(self, world: World, registers: Registers) -> None:
        self.world = world
        self.registers = registers

    def issued(self, flight: Flight) -> None:
        """An operation joins what its threads have not committed yet."""
        if flight.tracked == "wgmma":
            products = self._products(flight.agent)
            if products.open:
                flight.burst = products.open[0].burst
            products.open.append(flight)
        elif flight.tracked == "bulk":
            for agent, _, mask in flight.parts:
                agent.stores.append((flight, mask))
        elif flight.tracked == "cp.async":
            for agent, _, mask in flight.parts:
                agent.copies.append((flight, mask))

    def _products(self, agent: Agent) -> Products:
        groups = agent.cta.warpgroups
        found: Products | None = groups.get(agent.warp // 4)
        if found is None:
            found = groups[agent.warp // 4] = Products()
        return found

    # -- wgmma -------------------------------------------------------------------------------------

    def commit_products(self, event: SyncEvent) -> None:
        """wgmma.commit_group."""
        products = self._products(self.world.parties(event.agent)[0][0])
        for flight in products.open:
            flight.group = products.committed
        products.groups[products.committed] = products.open
        products.open = []
        if len(products.groups) > WGMMA_GROUPS_KEPT:
            # A wait that covers the younger one covers the older one.
            oldest, younger = list(products.groups)[:2]
            products.groups[younger][:0] = products.groups.pop(oldest)
        products.committed += 1

    def wait_products(self, event: SyncEvent) -> None:
        """wgmma.wait_group."""
        newest = int(event.detail)
        for agent, mask in self.world.parties(event.agent):
            products = self._products(agent)
            covered = products.committed - newest
            last: Flight | None = None
            for number, flights in products.groups.items():
                for flight in flights:
                    if number < covered:
                        if not any(other is agent for other, _, _ in flight.landed.observers):
                            flight.landed.observe(agent, mask)
                            last = flight
                    elif not flight.landed.observers:
                        flight.left_at = (event.line, products.committed - 1 - number)
                        flight.left_usefully = last is not None
            if last is not None:
                # It is complete, so all four warps had come as far as its issue.
                agent.met.append((agent.now, last.parts))
            self.registers.waited(agent, covered)
            done = [
                number
                for number, flights in products.groups.items()
                if number < covered and all(len(flight.landed.observers) >= 4 for flight in flights)
            ]
            for number in done:
                del products.groups[number]

    # -- bulk stores -------------------------------------------------------------------------------

    def commit_stores(self, event: SyncEvent) -> None:
        """cp.async.bulk.commit_group."""
        for agent, mask in self.world.parties(event.agent):
            mine = [(flight, lanes & mask) for flight, lanes in agent.stores if lanes & mask]
            agent.stores = [
                (flight, lanes & ~mask) for flight, lanes in agent.stores if lanes & ~mask
            ]
            for flight, _ in mine:
                flight.group = len(agent.store_groups)
            self._enter(agent.store_groups, Group(mask, mine))

    @staticmethod
    def _enter(groups: list[Group], group: Group) -> None:
        groups.append(group)
        if len(groups) <= GROUPS_KEPT:
            return
        # Old groups of the same lanes become one: a wait that covers the youngest of them covers all.
        merged: dict[int, Group] = {}
        for old in groups[: GROUPS_KEPT // 2]:
            oldest = merged.pop(old.mask, old)
            if oldest is not old:
                oldest.flights += old.flights
                oldest.read &= old.read
            merged[old.mask] = oldest
        groups[: GROUPS_KEPT // 2] = merged.values()

    def wait_stores(self, event: SyncEvent) -> None:
        """cp.async.bulk.wait_group, with or without .read."""
        newest, reading = event.detail
        for agent, mask in self.world.parties(event.agent):
            agent.cta.store_waits.append((self.world.seq, agent, mask, event.line))
            mine = [group for group in agent.store_groups if group.mask & mask]
            covered = mine[: max(len(mine) - newest, 0)]
            for position, group in enumerate(mine):
                if reading and not group.mask & mask & ~group.read:
                    continue
                if position < len(covered):
                    group.read |= group.mask & mask
                for flight, lanes in group.flights:
                    if not lanes & mask:
                        continue
                    if position >= len(covered):
                        if not flight.read.observers:
                            flight.left_at = flight.left_by = (event.line, len(mine) - 1 - position)
                        continue
                    left, flight.left_at = flight.left_at, None
                    if flight.told and left is not None and left[0] == event.line:
                        flight.known = dict(agent.eyes(lanes & mask)[0][1].hb)
                    flight.read.observe(agent, lanes & mask)
                    if not reading:
                        flight.landed.observe(agent, lanes & mask)
            if not reading:
                agent.store_groups = _without(agent.store_groups, covered, mask)

    # -- cp.async ----------------------------------------------------------------------------------

    def commit_copies(self, event: SyncEvent) -> None:
        """cp.async.commit_group."""
        for agent, mask in self.world.parties(event.agent):
            mine = [(flight, lanes & mask) for flight, lanes in agent.copies if lanes & mask]
            agent.copies = [
                (flight, lanes & ~mask) for flight, lanes in agent.copies if lanes & ~mask
            ]
            for flight, _ in mine:
                flight.group = len(agent.copy_groups)
            self._enter(agent.copy_groups, Group(mask, mine))

    def wait_copies(self, event: SyncEvent) -> None:
        """cp.async.wait_group, or wait_all."""
        newest: int | None = event.detail
        for agent, mask in self.world.parties(event.agent):
            mine = [group for group in agent.copy_groups if group.mask & mask]
            covered = mine[: max(len(mine) - (newest or 0), 0)]
            # What the wait does not count: if it was to be a group of its own, one group more would have been covered.
            apart = [flight for flight, lanes in agent.copies if lanes & mask]
            for position, group in enumerate(mine):
                for flight, lanes in group.flights:
                    if position < len(covered):
                        _observed(flight, agent, lanes & mask)
                        continue
                    enough = len(mine) - 1 - position
                    flight.left_at = (event.line, enough)
                    if apart and newest == enough + 1:
                        flight.left_open = (apart[-1].line, event.line)
            if newest is not None:
                for flight in apart:
                    flight.left_open = (apart[-1].line, event.line)
            else:
                for flight, lanes in agent.copies:
                    _observed(flight, agent, lanes & mask)
                agent.copies = [
                    (flight, lanes & ~mask) for flight, lanes in agent.copies if lanes & ~mask
                ]
            agent.copy_groups = _without(agent.copy_groups, covered, mask)


def _without(groups: list[Group], covered: list[Group], mask: int) -> list[Group]:
    """Return the groups that a wait of these lanes leaves to others or to a later wait."""
    over = {id(group) for group in covered if not group.mask & ~mask}
    return [group for group in groups if id(group) not in over]


def _observed(flight: Flight, agent: Agent, mask: int) -> None:
    """The copies of these lanes are complete for them: as if they had made the accesses themselves just now."""
    if not mask:
        return
    for record in flight.records:
        _split_parts(record, agent, mask)


def _split_parts(record: Record, agent: Agent, mask: int) -> None:
    parts: list[tuple[Agent, int, int]] = []
    for other, epoch, lanes in record.parts:
        if other is not agent or epoch != NEVER or not lanes & mask:
            parts.append((other, epoch, lanes))
            continue
        parts.append((agent, agent.now, lanes & mask))
        if lanes & ~mask:
            parts.append((agent, NEVER, lanes & ~mask))
    record.parts = parts


__all__ = ["Groups"]

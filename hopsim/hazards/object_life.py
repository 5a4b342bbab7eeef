"""The life of an mbarrier object: init, inval, who may use it and from where, and what else its bytes are used for.

Source: PTX ISA 8.7 "mbarrier.init", "mbarrier.inval"; 9.4 "mbarrier" for the proxy of the operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from hopsim.events import BarrierEvent
from hopsim.hazards.clocks import INIT, Agent, bits, sees
from hopsim.hazards.findings import Finding, Findings, Level
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.objects import Barrier
from hopsim.hazards.records import LOADS, Flight, Record
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import CtaState, World

MBARRIER_BYTES: Final = 8
LOCAL: Final = re.compile(r"^mbarrier\.\S*\.shared(::cta)?\.")


class ObjectLife:
    """Keeps the mbarriers of every CTA, and tells how they are misused."""

    def __init__(self, world: World, findings: Findings, lifetime: Lifetime) -> None:
        self.world = world
        self.findings = findings
        self.lifetime = lifetime
        # Operations that a barrier will hear of, by number.
        self.flying: dict[int, Flight] = {}

    def find(self, event: BarrierEvent) -> Barrier | None:
        """Return the object that an event is about, if there is one."""
        owner, address = event.barrier
        return self.world.cta(owner).barriers.get(address)

    def init(self, event: BarrierEvent) -> None:
        """mbarrier.init."""
        owner, address = event.barrier
        cta = self.world.cta(owner)
        agent, mask = self.world.parties(event.agent)[0]
        old: Barrier | None = cta.barriers.get(address)
        if old is not None and old.overlaid is None:
            level: Level = "note" if old.is_quiet and not old.used else "hazard"
            if old.is_quiet and old.used and self._all_seen(old, agent, mask):
                level = "note"
            self.misuse(
                "HS212", level, (old.born[0], old.born[2], old.born[3], "init"), (agent, mask, event.line, "init"),
                address, "mbarrier.inval between the two", f"before :{event.line}:  mbarrier.inval on this object",
            )  # fmt: skip
        agent.dirty = True
        barrier = Barrier(
            cta, address, event.count, (agent, agent.now, mask, event.line), pending=event.count
        )
        cta.barriers[address] = barrier
        self._bound(cta)

    @staticmethod
    def _all_seen(barrier: Barrier, agent: Agent, mask: int) -> bool:
        """Whether an agent knows of the last arrivals on a barrier, so that nobody can still be using it."""
        last = barrier.phases.get(barrier.index - 1)
        view = agent.eyes(mask)[0][1]
        return last is None or all(sees(view.hb, s.agent, s.epoch, s.mask) for s in last.members)

    @staticmethod
    def _bound(cta: CtaState) -> None:
        addresses = list(cta.barriers)
        cta.barrier_start = min(addresses, default=0)
        cta.barrier_stop = max(addresses, default=-MBARRIER_BYTES) + MBARRIER_BYTES

    def inval(self, event: BarrierEvent) -> None:
        """mbarrier.inval."""
        barrier = self.find(event)
        if barrier is None:
            return
        agent, mask = self.world.parties(event.agent)[0]
        user, level = self._unfinished(barrier, agent, mask)
        if not barrier.is_quiet:
            level = "hazard"
        if not barrier.is_quiet or user is not None:
            aimed = [
                flight
                for flight in self.flying.values()
                if any(aim is barrier for aim, _, _ in flight.aims)
            ]
            for flight in aimed:
                flight.told = True
            if user is None and aimed:
                newest = aimed[-1]
                user = newest.agent, newest.parts[0][2], newest.line, newest.kind
            self.misuse(
                "HS214", level, user, (agent, mask, event.line, "inval"), barrier.address,
                "an edge that says that the last phase is complete and nobody waits for it any more",
                f"before :{event.line}, wait for the phase, and pass a barrier with all who wait for it",
            )  # fmt: skip
        del barrier.owner.barriers[barrier.address]
        self._bound(barrier.owner)

    @staticmethod
    def _unfinished(
        barrier: Barrier, agent: Agent, mask: int
    ) -> tuple[tuple[Agent, int, int, str] | None, Level]:
        """Return somebody who, as far as an agent knows, still copies for the last phase of a barrier or waits for it.

        Of lanes that waited in one instruction those that the agent knows of tell that the others are through as well,
        on a chip if not by PTX: that is a note.
        """
        last = barrier.phases.get(barrier.index - 1)
        if last is None:
            return None, "hazard"
        hb = agent.eyes(mask)[0][1].hb
        for flight in last.flights:
            if not last.done.known_to(hb, agent, mask):
                return (flight.agent, flight.parts[0][2], flight.line, flight.kind), "hazard"
        found: tuple[Agent, int, int, str] | None = None
        for waiter, epoch, lanes, line in last.waits:
            if waiter is agent or sees(hb, waiter, epoch, lanes):
                continue
            found = waiter, lanes, line, "wait"
            if not any(sees(hb, waiter, epoch, 1 << lane) for lane in bits(lanes)):
                return found, "hazard"
        return found, "note"

    def data_over(self, owner: CtaState, record: Record, who: tuple[Agent, int]) -> None:
        """Ordinary data may be written over a barrier."""
        if record.kind == "r":
            return
        for barrier in list(owner.barriers.values()):
            if barrier.overlaid is not None or not _overlaps(record, barrier.address):
                continue
            level: Level = "note" if barrier.is_quiet else "hazard"
            span = (barrier.address, barrier.address + MBARRIER_BYTES)
            born = barrier.born
            barrier.overlaid = self.findings.add(
                Finding(
                    "HS213", level, RULES["HS213"].sentence,
                    self.findings.thread_side(born[0], born[2], born[3], "init", start=span[0], stop=span[1]),
                    self.findings.side(record, who, span, ""),
                    "mbarrier.inval before the bytes are used for something else",
                    f"before :{record.line}, once nobody uses the barrier:  mbarrier.inval, then a barrier for all",
                )
            )  # fmt: skip

    def used(
        self,
        barrier: Barrier,
        agent: Agent,
        mask: int,
        line: int,
        what: str,
        *,
        by_copy: bool = False,
    ) -> None:
        """An agent uses a barrier: it must know of its init, and no data may lie over it."""
        barrier.used = True
        overlaid = barrier.overlaid
        if isinstance(overlaid, Finding):
            overlaid.level = "hazard"
        if agent.cta is not barrier.owner:
            self.lifetime.reach(barrier.owner, agent, mask, line, what, by_copy=by_copy)
        key = (agent.number, mask)
        if key in barrier.acquainted:
            return
        barrier.acquainted.add(key)
        if agent.cta is not barrier.owner and LOCAL.search(self.world.facts.mnemonic(line)):
            self.misuse(
                "HS218", "hazard", None, (agent, mask, line, what), barrier.address,
                "an address of .shared::cluster, or a barrier of the own CTA",
                f"at :{line}, for an address of mapa:  mbarrier.arrive.release.cluster.shared::cluster.b64",
            )  # fmt: skip
        born, epoch, lanes, born_line = barrier.born
        for inside, view in agent.eyes(mask):
            if sees(view.hb, born, epoch, lanes) or all(
                view.hb.get(born.key + INIT + lane, 0) >= epoch for lane in bits(lanes)
            ):
                continue
            if born is agent and not inside & ~lanes:
                continue
            relaxed = any(
                kind == "relaxed cluster arrive"
                for ended, (kind, _) in born.epochs.items()
                if ended >= epoch
            )
            rule = "HS210" if relaxed else "HS209"
            if agent.cta is not barrier.owner and what in LOADS:
                rule = "HS204"
            self.misuse(
                rule, "hazard", (born, lanes, born_line, "init"), (agent, mask, line, what),
                barrier.address, f"an edge from the init at :{born_line} to :{line}",
                f"after :{born_line}:  fence.mbarrier_init.release.cluster;" if relaxed
                else "after the inits:  bar.sync 0;  (in a cluster: barrier.cluster.arrive and wait)",
            )  # fmt: skip
            return

    def misuse(
        self,
        rule: str,
        level: Level,
        first: tuple[Agent, int, int, str] | None,
        second: tuple[Agent, int, int, str],
        address: int,
        missing: str,
        hint: str,
        late: Callable[[], str | None] | None = None,
    ) -> None:
        """Enter a finding about an mbarrier.

        Args:
            first, second: who, which lanes, at which PTX line, did what.
            late: as in `Finding`.
        """
        span = {"start": address, "stop": address + MBARRIER_BYTES}
        # What is missing is one barrier for all inits.
        cause = () if rule in ("HS204", "HS209", "HS210") else None
        sides = [
            None
            if side is None
            else self.findings.thread_side(*side[:3], f"mbarrier {side[3]}", **span)
            for side in (first, second)
        ]
        self.findings.add(
            Finding(
                rule,
                level,
                RULES[rule].sentence,
                sides[0],
                sides[1],
                missing,
                hint,
                late=late,
                cause=cause,
            )
        )


def _overlaps(record: Record, address: int) -> bool:
    addresses = record.addresses
    stop = address + MBARRIER_BYTES
    if addresses is None or isinstance(addresses, int):
        return record.start < stop and record.stop > address
    if not isinstance(addresses, np.ndarray):
        addresses = addresses()
    return bool(((addresses < stop) & (addresses + record.count_bytes > address)).any())

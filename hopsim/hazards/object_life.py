"""The life of an mbarrier object: init, inval, who may use it and from where, and what else its bytes are used for.

Source: PTX ISA 8.7 "mbarrier.init", "mbarrier.inval"; 9.4 "mbarrier" for the proxy of the operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hopsim.events import BarrierEvent
from hopsim.hazards.clocks import INIT, Agent, View, bits, sees
from hopsim.hazards.findings import Finding, Findings, Level
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.objects import Barrier, Use
from hopsim.hazards.records import LOADS, Eye, Flight, Record
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import CtaState, World

MBARRIER_BYTES: Final = 8
# The arrival that follows copies of its thread: it comes when they are complete.
LATER: Final = "cp.async arrive"
# What makes inits visible, to other CTAs and in their own.
INITIALISED: Final = (
    "after the inits:  fence.mbarrier_init.release.cluster;  then, in every thread of the cluster:  barrier.cluster.arrive;"
    "  barrier.cluster.wait;",
    "after the inits:  bar.sync 0;  (in a cluster, where other CTAs use it too: barrier.cluster.arrive and wait)",
)
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
            user, level = unfinished(old, self.world.eyes(self.world.parties(event.agent)))
            if old.is_quiet and user is None:
                level = "note"
            elif not old.is_quiet:
                level = "hazard"
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
    def _bound(cta: CtaState) -> None:
        addresses = list(cta.barriers)
        cta.barrier_start = min(addresses, default=0)
        cta.barrier_stop = max(addresses, default=-MBARRIER_BYTES) + MBARRIER_BYTES

    def inval(self, event: BarrierEvent) -> None:
        """mbarrier.inval."""
        barrier = self.find(event)
        if barrier is None:
            return
        parties = self.world.parties(event.agent)
        agent, mask = parties[0]
        user, level = unfinished(barrier, self.world.eyes(parties))
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
                "an edge that says that the last phase is complete and nobody uses the barrier any more",
                f"before :{event.line}, wait for the phase, and pass a barrier with all who use it",
            )  # fmt: skip
        del barrier.owner.barriers[barrier.address]
        self._bound(barrier.owner)

    def data_over(self, owner: CtaState, record: Record, eyes: list[Eye]) -> None:
        """Ordinary data may be written over a barrier, or its bytes be read as if they were data."""
        is_read = record.kind == "r"
        for barrier in list(owner.barriers.values()):
            if barrier.overlaid is not None or not _overlaps(record, barrier.address):
                continue
            born, _, lanes, line = barrier.born
            if not all(knows_init(barrier, agent, mask, view) for agent, mask, view in eyes):
                # They race with the init, and that is told.
                continue
            if is_read:
                level: Level = "hazard" if record.is_thread else "note"
            else:
                user, level = unfinished(barrier, eyes)
                if barrier.is_quiet and user is None:
                    level = "note"
            span = (barrier.address, barrier.address + MBARRIER_BYTES)
            finding = self.findings.add(
                Finding(
                    "HS213", level, RULES["HS213"].sentence,
                    self.findings.thread_side(born, lanes, line, "init", start=span[0], stop=span[1]),
                    self.findings.side(record, eyes[0][:2], span, ""),
                    "mbarrier.inval before the bytes are used for something else",
                    f"at :{record.line}, leave out the bytes of the barrier: they are no data" if is_read else
                    f"before :{record.line}, once nobody uses the barrier:  mbarrier.inval, then a barrier for all",
                )
            )  # fmt: skip
            if not is_read:
                barrier.overlaid = finding

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
        if not by_copy:
            # A copy tells of itself when it is complete.
            use = Use(agent, agent.now, mask, line, what, barrier.index, self.world.seq)
            barrier.uses[*key, what == LATER] = use
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
            if knows_init(barrier, agent, inside, view):
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
                else INITIALISED[agent.cta is barrier.owner],
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
        cause: tuple[Any, ...] | None = None,
    ) -> Finding:
        """Enter a finding about an mbarrier, and return it, or the one that it is told as.

        Args:
            first, second: who, which lanes, at which PTX line, did what.
            late, cause: as in `Finding`.
        """
        span = {"start": address, "stop": address + MBARRIER_BYTES}
        # What is missing is one barrier for all inits.
        cause = () if rule in ("HS204", "HS209", "HS210") else cause
        sides = [
            None
            if side is None
            else self.findings.thread_side(*side[:3], f"mbarrier {side[3]}", **span)
            for side in (first, second)
        ]
        return self.findings.add(
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


def knows_init(barrier: Barrier, agent: Agent, mask: int, view: View) -> bool:
    """Whether lanes of a warp, who rely on `view`, come after the init of a barrier."""
    born, epoch, lanes, _ = barrier.born
    return (
        sees(view.hb, born, epoch, lanes)
        or (born is agent and not mask & ~lanes)
        or all(view.hb.get(born.key + INIT + lane, 0) >= epoch for lane in bits(lanes))
    )


def unfinished(
    barrier: Barrier, eyes: list[Eye]
) -> tuple[tuple[Agent, int, int, str] | None, Level]:
    """Return somebody who still uses a barrier, as far as those who look know: a copy for its last phase, or threads.

    Of lanes that used it by one instruction those that are known of tell that the others are through as well, on a chip if
    not by PTX: that is a note, unless the lanes have met since.  An arrival has happened if a wait for its phase or a later
    one is known of, whatever it publishes.
    """
    last = barrier.phases.get(barrier.index - 1)
    for flight in () if last is None else last.flights:
        assert last is not None
        if not all(last.done.known_to(view.hb, agent, mask) for agent, mask, view in eyes):
            return (flight.agent, flight.parts[0][2], flight.line, flight.kind), "hazard"
    found: tuple[Agent, int, int, str] | None = None
    for use in barrier.uses.values():
        for eye in eyes:
            if _is_past(barrier, use, eye):
                continue
            found = use.agent, use.mask, use.line, use.what
            _, _, view = eye
            if use.what == LATER or not any(
                sees(view.hb, use.agent, use.epoch, 1 << lane) for lane in bits(use.mask)
            ):
                return found, "hazard"
    return found, "note"


def _is_past(barrier: Barrier, use: Use, eye: Eye) -> bool:
    """Whether who looks knows that an operation on a barrier is over."""
    agent, mask, view = eye
    is_own = use.agent is agent and use.mask & mask
    if use.what != LATER and (is_own or sees(view.hb, use.agent, use.epoch, use.mask)):
        return True
    if use.what != LATER and _met_since(use, eye):
        return True
    if use.what in ("wait", "test") or use.index >= barrier.index:
        return False
    return any(
        (waiter is agent and lanes & mask) or sees(view.hb, waiter, epoch, lanes)
        for index, phase in barrier.phases.items()
        if index >= use.index
        for waiter, epoch, lanes, _ in phase.waits
    )


def _met_since(use: Use, eye: Eye) -> bool:
    """Whether who looks knows of a lane that met those of a use after it, be it where nothing orders memory.

    They have come that far: what they began on the object is over, though what they wrote may not be visible.
    """
    agent, mask, view = eye
    for epoch, lanes, seq in use.agent.gathered:
        if seq <= use.seq or use.mask & ~lanes:
            continue
        if use.agent is agent and lanes & mask:
            return True
        if any(sees(view.hb, use.agent, epoch, 1 << lane) for lane in bits(lanes)):
            return True
    return False


def _overlaps(record: Record, address: int) -> bool:
    addresses = record.addresses
    stop = address + MBARRIER_BYTES
    if record.start >= stop or record.stop <= address:
        return False
    if addresses is None or isinstance(addresses, int):
        return True
    if not isinstance(addresses, np.ndarray):
        addresses = addresses()
    return bool(((addresses < stop) & (addresses + record.count_bytes > address)).any())

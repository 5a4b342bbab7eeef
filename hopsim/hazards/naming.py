"""Which class a race belongs to: the pair of accesses decides, and what each side is known to have done before."""

from __future__ import annotations

import re
from typing import Final

from hopsim.hazards.chains import FENCE as AT_FENCE
from hopsim.hazards.chains import find_chain
from hopsim.hazards.clocks import ANY, CLUSTER_SHARED, GLOBAL, NEVER, Agent, Clock, sees
from hopsim.hazards.objects import Barrier
from hopsim.hazards.ordering import BRIDGE, SCOPE, Gap, bridge_of
from hopsim.hazards.records import (
    LOADS,
    REMOTE_STORES,
    Eye,
    Flight,
    Record,
    share_a_warp,
    write_the_same,
)
from hopsim.hazards.strength import is_morally_strong
from hopsim.hazards.swaps import swap_story
from hopsim.hazards.world import World

ARRIVE: Final = re.compile(r"^(bar|barrier)(\.cta|\.cluster)?\.arrive\b")
FLAG: Final = re.compile(r"^(st|atom|red)\b")
FENCE: Final = "fence.proxy.async"
# Why an edge does not count -> rule.
WEAK: Final = {
    "relaxed": "HS216", "relaxed cluster": "HS403", "scope": "HS510", "cta scope": "HS217", "cluster scope": "HS217",
    "complete_tx": "HS223", "red": "HS511", "relaxed access": "HS216",
}  # fmt: skip


class Names:
    """Names races by their rule, and the rules that explain it."""

    def __init__(self, world: World) -> None:
        self.world = world

    def name(
        self, first: Record, second: Record, gap: Gap, eyes: list[Eye], early: bool
    ) -> tuple[str, tuple[str, ...]]:
        """Return the rule of a race and the rules that explain it."""
        if gap.missing == SCOPE:
            return "HS217", ()
        if gap.missing == BRIDGE:
            return self._bridge(first, second, gap)
        if first.is_map:
            return "HS307", ()
        if second.is_map:
            return "HS308", ()
        flight = first.flight
        if flight is not None and not first.is_thread:
            return self._after_operation(flight, first, second, gap, eyes), ()
        if flight is not None:
            waited = all(epoch != NEVER for _, epoch, _ in first.parts)
            return ("HS018" if waited else "HS017"), ()
        return self._after_threads(first, second, gap, eyes, early), ()

    # the earlier one is an operation

    def _after_operation(
        self, flight: Flight, first: Record, second: Record, gap: Gap, eyes: list[Eye]
    ) -> str:
        if flight.kind == "wgmma":
            return self._after_wgmma(flight, first, second, eyes)
        if flight.tracked == "bulk":
            return self._after_store(flight, first, second, gap, eyes)
        if first.kind == "r":
            return "HS301" if first.space == "shared" else "HS300"
        if flight.kind in LOADS:
            other = second.flight
            if second.kind != "r" and other is not None and other.kind in LOADS:
                return "HS207" if _is_duplicate(flight, first, other) else "HS016"
            return self._unwaited(flight, first, second, gap)
        if flight.tracked == "mbarrier" and first.kind != "r":
            return self._unwaited(flight, first, second, gap)
        return "HS000"

    def _unwaited(self, flight: Flight, first: Record, second: Record, gap: Gap) -> str:
        """Data of a load was used without waiting for it: what was waited for instead?"""
        barrier, issued_in = barrier_of(flight, first)
        if barrier is not None and issued_in in barrier.phases:
            agent, mask = gap.second
            for other, _, lanes, _ in barrier.phases[issued_in].waits:
                mask &= ~lanes if other is agent else -1
            if not mask:
                return "HS201"
            if mask != gap.second[1]:
                return "HS001"
        fresh = second.fresh
        if barrier is None or fresh is None or not fresh[3] & gap.second[1]:
            return "HS001"
        other, index, *_ = fresh
        if other is not barrier:
            return "HS003"
        landed = _landed_in(barrier, flight)
        if landed is not None and landed > issued_in:
            return "HS201"
        if index >= issued_in:
            return "HS201"
        return "HS004"

    def _after_wgmma(self, flight: Flight, first: Record, second: Record, eyes: list[Eye]) -> str:
        if not _knows_issue(flight, eyes):
            return "HS405" if self._is_multicast(first, second) else "HS006"
        if flight.group is None:
            return "HS010"
        return "HS009" if flight.left_at is not None else "HS008"

    def _is_multicast(self, first: Record, second: Record) -> bool:
        """Whether a slot is refilled by another CTA's multicast."""
        return (
            second.flight is not None
            and second.cta is not first.cta
            and ".multicast" in self.world.facts.mnemonic(second.line)
        )

    def _after_store(
        self, flight: Flight, first: Record, second: Record, gap: Gap, eyes: list[Eye]
    ) -> str:
        reading = first.kind == "r"
        if _is_same_store(flight, first, second, eyes):
            return "HS207"
        if flight.group is None:
            return "HS305"
        issuer = flight.agent
        if reading and any(agent is issuer for agent, _, _ in flight.read.observers):
            return "HS306"
        if not reading:
            # No wait helps a CTA that nothing orders after the copy; whoever knows of the .read wait was told too early.
            if second.cta is not first.cta and not _knows_issue(flight, eyes):
                return _by_weak_edge(flight, gap) or "HS300"
            if all(flight.read.known_to(view.hb, agent, lanes) for agent, lanes, view in eyes):
                return "HS303"
            if flight.landed.observers:
                return "HS306"
        if flight.left_at is not None:
            return "HS302"
        if not reading and flight.read.observers:
            return "HS303"
        mask = flight.parts[0][2]
        for seq, agent, lanes, _ in issuer.cta.store_waits:
            if seq > flight.seq and (agent is not issuer or not lanes & mask):
                return "HS304"
        return "HS301" if reading else "HS300"

    # the proxies differ

    def _bridge(self, first: Record, second: Record, gap: Gap) -> tuple[str, tuple[str, ...]]:
        if first.flight is not None and first.flight.kind in REMOTE_STORES:
            return "HS109", ()
        other = second.flight
        assert other is not None
        rule = "HS100"
        if second.is_map:
            return "HS308", ()
        if first.space == "global":
            if second.kind == "a" and first.kind == "a":
                rule = "HS111"
            elif first.kind != "r" and second.kind == "r":
                rule = "HS108"
        elif second.kind == "r":
            if other.kind == "wgmma":
                rule = "HS103" if first.flight is not None else "HS102"
            else:
                rule = "HS101"
        elif first.kind == "r":
            rule = "HS104"
        return rule, self._bridge_causes(first, second, gap)

    def _bridge_causes(self, first: Record, second: Record, gap: Gap) -> tuple[str, ...]:
        if gap.first is None:
            return ()
        agent, mask = gap.first
        epoch = epoch_of(first, agent)
        needed = bridge_of(first, second)
        for _, view in gap.second[0].eyes(gap.second[1]):
            for space in (0, 1, 2):
                if space != needed and sees(view.bridges[space], agent, epoch, mask):
                    return (
                        ("HS110",) if needed == CLUSTER_SHARED and space != GLOBAL else ("HS106",)
                    )
        fenced = (
            agent.cta.fences
            if agent.cta is gap.second[0].cta
            else (*agent.cta.fences, *gap.second[0].cta.fences)
        )
        kind, line = agent.epochs.get(epoch - 1, ("", 0))
        if any(
            needed in spaces
            and (first.seq < seq < second.seq or (by is agent and kind == FENCE and at == line))
            for seq, by, _, at, spaces in fenced
        ):
            return ("HS105",)
        facts = self.world.facts
        for line in facts.kernel_lines:
            fence = first.line < line < second.line and facts.mnemonic(line).startswith(FENCE)
            if fence and (agent.number, line) not in self.world.fenced:
                return ("HS107",)
        return ("HS112",) if gap.second[0] is not agent or mask & ~gap.second[1] else ()

    # the earlier one is an access of threads

    def _after_threads(
        self, first: Record, second: Record, gap: Gap, eyes: list[Eye], early: bool
    ) -> str:
        if first.scope and second.scope and second.is_thread:
            if first.count_bytes != second.count_bytes:
                return "HS512"
            # Strong accesses of one warp do not race: its lanes were taken to go in step.
            if gap.first is not None and gap.first[0] is gap.second[0]:
                return "HS502"
            return "HS216" if is_morally_strong(first, second) else "HS510"
        if swap_story(first, second, self.world.facts):
            return "HS500"
        assert gap.first is not None
        agent, mask = gap.first
        end, lanes = gap.second
        epoch = epoch_of(first, agent)
        if not early:
            story = self._thread_story(first, agent, epoch, mask, end, lanes, second)
            if story:
                return story
        if any(
            one.kind == "r" and one.line in self.world.facts.parity_lines for one in (first, second)
        ):
            return "HS406"
        if agent is end:
            return "HS502"
        if first.kind == "r":
            if second.flight is not None:
                return "HS405" if self._is_multicast(first, second) else "HS006"
            return "HS501" if first.space == "shared" else "HS500"
        return "HS500"

    def _thread_story(
        self,
        first: Record,
        agent: Agent,
        epoch: int,
        mask: int,
        end: Agent,
        lanes: int,
        second: Record,
    ) -> str:
        """Say why an edge that the program has does not order the two, or nothing."""
        view = end.eyes(lanes)[0][1]
        known = view.hb.get(agent.key + ANY, 0)
        if known >= epoch:
            by_lanes = agent is end and agent.epochs.get(known, ("", 0))[0] == "bar.warp.sync"
            return "HS502" if by_lanes else "HS208"
        before = agent.epochs.get(epoch - 1, ("", 0))[0]
        if before == "mbarrier.arrive" and first.kind != "r" and _covers(view.hb, agent, epoch - 1):
            return "HS224"
        chain = find_chain(agent, epoch, end, end.now, True)
        if (
            chain is None
            or (first.scope and chain.lines[0] == first.line)
            or (second.scope and chain.lines[-1] == second.line)
        ):
            # An atomic that others saw carries itself: what is missing is order between it and a plain access.
            return ""
        for label in chain.weak:
            found = WEAK.get(label, "") if label != "complete_tx" or first.kind != "r" else ""
            if found:
                return found
        if chain.weak or not FLAG.match(self.world.facts.mnemonic(chain.lines[0])):
            return ""
        # A fence lets the flag be of use, but stands before the access.
        epochs = agent.epochs
        is_fenced = any(epochs.get(at, ("", 0))[0] == AT_FENCE for at in range(epoch, chain.epoch))
        is_known = any(
            sees(view.hb, agent, epoch, mask)
            for one in end.cta.agents
            for _, view in one.eyes(one.live)
            if one is not agent
        )
        return "" if is_fenced or is_known else "HS216"


def epoch_of(record: Record, agent: Agent) -> int:
    """Return the epoch in which a warp made its part of an access."""
    for other, epoch, _ in record.parts:
        if other is agent and epoch != NEVER:
            return epoch
    return agent.now


def arrive_before(first: Record, gap: Gap, world: World) -> int:
    """Return the PTX line of an arrive that a write stands behind, though the other thread has learned of it; 0: none."""
    if gap.first is None or first.kind == "r":
        return 0
    agent, _ = gap.first
    epoch = epoch_of(first, agent)
    line = agent.epochs.get(epoch - 1, ("", 0))[1]
    hb = gap.second[0].eyes(gap.second[1])[0][1].hb
    if not ARRIVE.match(world.facts.mnemonic(line)) or not _covers(hb, agent, epoch - 1):
        return 0
    # It has waited since: the write belongs to what comes next.
    waited = any(at == epoch and wait < first.line for at, _, wait, *_ in agent.log)
    return 0 if waited else line


def barrier_of(flight: Flight, record: Record) -> tuple[Barrier | None, int]:
    """Return the mbarrier that tells of a record's bytes, and its phase when the operation was issued."""
    for barrier, index, told in flight.aims:
        if told is record:
            return barrier, index
    return None, 0


def wants_older(load: Record, read: Record, who: tuple[Agent, int]) -> bool:
    """Whether a read behind a load is one of what the phase before had brought: it was waited for once, just now.

    Args:
        who: the warp and lanes that read.
    """
    barrier, index = (None, 0) if load.flight is None else barrier_of(load.flight, load)
    agent, lanes = who
    fresh = agent.fresh
    if barrier is None or fresh is None or fresh[0] is not barrier or fresh[1] != index - 1:
        return False
    phase = barrier.phase(index - 1)
    waits = [mask for waiter, _, mask, _ in phase.waits if waiter is agent and mask & lanes]
    return len(waits) == 1 and any(
        one.owner == read.owner and one.start < read.stop and read.start < one.stop
        for flight in phase.flights
        for one in flight.records
        if one.kind != "r" and one.space == read.space
    )


def _covers(clock: Clock, agent: Agent, epoch: int) -> bool:
    """Whether a clock knows what some lane of a warp did in an epoch."""
    return clock.get(agent.key, 0) >= epoch or clock.get(agent.key + ANY, 0) >= epoch


def _by_weak_edge(flight: Flight, gap: Gap) -> str:
    """Return why somebody does not learn of an operation that its issuer has waited for, though a flag says so."""
    end = gap.second[0]
    for agent, epoch, _ in flight.landed.observers:
        chain = find_chain(agent, epoch, end, end.now, True)
        for label in () if chain is None else chain.weak:
            if label in WEAK:
                return WEAK[label]
    return ""


def _knows_issue(flight: Flight, eyes: list[Eye]) -> bool:
    """Whether somebody knows that an operation was issued."""
    return any(
        agent is issuer or _covers(view.hb, issuer, epoch)
        for agent, _, view in eyes
        for issuer, epoch, _ in flight.parts
    )


def _is_duplicate(flight: Flight, record: Record, other: Flight) -> bool:
    """Whether two threads issued the same copy, for the same phase of the same barrier."""
    if flight.line != other.line or flight.agent.cta is not other.agent.cta:
        return False
    if any(
        one is two and mask & lanes
        for one, _, mask in flight.parts
        for two, _, lanes in other.parts
    ):
        return False
    barrier, index = barrier_of(flight, record)
    return any(aim is barrier and phase == index for aim, phase, _ in other.aims)


def _is_same_store(flight: Flight, first: Record, second: Record, eyes: list[Eye]) -> bool:
    """Whether two warps of a CTA issued the same store side by side: to the same bytes by one instruction."""
    return (
        second.flight is not None
        and write_the_same(first, second)
        and first.cta is second.cta
        and not share_a_warp(first, second)
        and not _knows_issue(flight, eyes)
    )


def _landed_in(barrier: Barrier, flight: Flight) -> int | None:
    for index, phase in barrier.phases.items():
        if flight in phase.flights:
            return index
    return None

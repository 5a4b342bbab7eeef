"""mbarriers: their phases, what arrivals and copies bring, and what waits learn.

Source: PTX ISA 8.7 "mbarrier"; 9.4 "mbarrier" for the proxy of the operand.
"""

from __future__ import annotations

from typing import Final

from hopsim.events import BarrierEvent
from hopsim.hazards.chains import NARROW, RELAXED
from hopsim.hazards.clocks import (
    CLUSTER_SHARED,
    CTA_SHARED,
    Agent,
    Done,
    View,
    raise_to,
    sees,
)
from hopsim.hazards.findings import Findings
from hopsim.hazards.flags import Flags, Published
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.object_life import LATER, ObjectLife
from hopsim.hazards.objects import Barrier, Phase, Source, knows, learn
from hopsim.hazards.records import Flight, Record
from hopsim.hazards.turns import Sent, Turns, met
from hopsim.hazards.world import Parties, World

INIT_FENCE_UNTIL: Final = (9, 3)
FLYING_KEPT: Final = 1 << 14


class Mbarriers:
    """Handles every event of an mbarrier."""

    def __init__(self, world: World, findings: Findings, flags: Flags, lifetime: Lifetime) -> None:
        self.world = world
        self.flags = flags
        self.lifetime = lifetime
        self.sent: dict[int, list[Sent]] = {}
        self.life = ObjectLife(world, findings, lifetime)
        self.turns = Turns(self.life)
        self.flying = self.life.flying
        self._handlers = {
            "init": self.life.init, "inval": self.life.inval,
            "arrive": self._arrive, "drop": self._arrive, "send": self._send,
            "add_pending": self._add_pending, "expect_tx": self._expect, "complete_tx": self._complete,
            "phase": self._phase, "wait": self._wait, "peek": self._peek,
        }  # fmt: skip

    def event(self, event: BarrierEvent) -> None:
        """Take an event of kind `mbarrier`."""
        self._handlers[event.what](event)

    def fly(self, flight: Flight) -> None:
        """Remember an operation that a barrier will hear of."""
        if flight.tracked in ("mbarrier", "cp.async"):
            self.flying[flight.number] = flight
            if len(self.flying) > FLYING_KEPT:
                del self.flying[next(iter(self.flying))]

    # -- counting ----------------------------------------------------------------------------------

    def _add_pending(self, event: BarrierEvent) -> None:
        barrier = self.life.find(event)
        if barrier is not None:
            barrier.pending += event.count
            barrier.phase(barrier.index).added += event.count

    def _expect(self, event: BarrierEvent) -> None:
        barrier = self.life.find(event)
        if barrier is None:
            return
        barrier.tx += event.count
        phase = barrier.phase(barrier.index)
        phase.bytes_expected += event.count
        phase.expected_at = event.line
        if event.op < 0:
            parties = self.world.parties(event.agent)
            for agent, mask in parties:
                self.life.used(barrier, agent, mask, event.line, "expect_tx")
            phase.expects.append(([(agent, agent.now) for agent, _ in parties], event.count))
        else:
            # It came with an arrival.
            sent = self.sent.get(event.op, ())
            phase.expects.append(([(one.agent, one.epoch) for one in sent], event.count))

    def aimed(self, flight: Flight, record: Record, target: tuple[int, int]) -> None:
        """An operation that is issued will count its bytes on a barrier."""
        barrier = self.world.cta(target[0]).barriers.get(target[1])
        if barrier is None:
            return
        flight.aims.append((barrier, barrier.index, record))
        barrier.outstanding += 1
        agent, _, mask = flight.parts[0]
        phase = barrier.phase(barrier.index)
        if flight.number not in phase.heeds:
            parties = [(one, lanes) for one, _, lanes in flight.parts]
            phase.heeds[flight.number] = self._heeded(barrier, parties)
            arrived = {member.agent for member in phase.members}
            if flight.past is None and not all(one in arrived for one, _ in parties):
                flight.past = {}
                for one, lanes in parties:
                    raise_to(flight.past, one.leave_behind(lanes, flight.kind, flight.line))
        agent.loads += 1
        self.life.used(barrier, agent, mask, flight.line, flight.kind, by_copy=True)
        if self.world.options.init_fence and self.world.facts.version < INIT_FENCE_UNTIL:
            born, epoch, lanes, line = barrier.born
            space = CTA_SHARED if barrier.owner is agent.cta else CLUSTER_SHARED
            if not all(
                sees(view.bridges[space], born, epoch, lanes) for _, view in agent.eyes(mask)
            ):
                self.life.misuse(
                    "HS200", "hazard", (born, lanes, line, "init"), (agent, mask, flight.line, flight.kind),
                    barrier.address, "a proxy fence between mbarrier.init and the copy that signals it (strict)",
                    f"after :{line}:  fence.proxy.async;",
                )  # fmt: skip

    def _complete(self, event: BarrierEvent) -> None:
        barrier = self.life.find(event)
        if barrier is None:
            return
        barrier.tx -= event.count
        phase = barrier.phase(barrier.index)
        phase.bytes_done += event.count
        flight = self.flying.get(event.op)
        heeded = (
            phase.heeds.get(event.op, 0)
            if event.op >= 0
            else self._heeded(barrier, self.world.parties(event.agent))
        )
        phase.landed.append((heeded, None if flight is None else flight.past, event.count))
        if flight is None:
            return
        barrier.senders.pop(flight.line, None)
        barrier.senders[flight.line] = event.count
        for aim, index, record in flight.aims:
            if aim is barrier:
                if index in barrier.phases:
                    barrier.phases[index].aimed += event.count
                    barrier.weigh(index)
                assert record.done is not None
                record.done.observers = phase.done.observers
                phase.flights.append(flight)
                barrier.outstanding -= 1
        flight.landed.observers = phase.done.observers

    def _heeded(self, barrier: Barrier, parties: Parties) -> int:
        """Return which waits for the last phase of a barrier all these lanes know of now, a bit each."""
        last = barrier.phases.get(barrier.index - 1)
        if last is None or not last.waits:
            return 0
        eyes = self.world.eyes(parties)

        def covers(waiter: Agent, epoch: int) -> bool:
            return all(waiter is one or knows(view, waiter, epoch) for one, _, view in eyes)

        return sum(
            1 << position
            for position, (waiter, epoch, _, _) in enumerate(last.waits)
            if covers(waiter, epoch) or met(covers, waiter, epoch)
        )

    # -- arrivals ----------------------------------------------------------------------------------

    def _send(self, event: BarrierEvent) -> None:
        """An arrive leaves for another CTA."""
        barrier = self.life.find(event)
        waiting = self.sent.setdefault(event.op, [])
        for agent, mask in self.world.parties(event.agent):
            if barrier is not None:
                self.life.used(barrier, agent, mask, event.line, "arrive")
            published = self.flags.published(agent, mask, event.semantics == "release")
            epoch = agent.end_epoch("mbarrier.arrive", event.line)
            waiting.append(Sent(agent, epoch, mask, event.line, published, []))

    def follow(self, flight: Flight, copies: list[Done], target: tuple[int, int]) -> None:
        """cp.async.mbarrier.arrive: an arrival on an mbarrier that publishes the copies before it."""
        sent = self.sent[flight.number] = list[Sent]()
        barrier = self.world.cta(target[0]).barriers.get(target[1])
        for agent, epoch, mask in flight.parts:
            if barrier is not None:
                self.life.used(barrier, agent, mask, flight.line, LATER)
            view = View.empty()
            view.follow(agent.leave_behind(mask, flight.kind, flight.line))
            sent.append(Sent(agent, epoch, mask, flight.line, Published({"": view}), copies))

    def _arrive(self, event: BarrierEvent) -> None:
        barrier = self.life.find(event)
        if barrier is None:
            return
        phase = barrier.phase(barrier.index)
        if event.op >= 0:
            arrivals = self.sent.pop(event.op, [])
        else:
            arrivals = list[Sent]()
            for agent, mask in self.world.parties(event.agent):
                self.life.used(barrier, agent, mask, event.line, "arrive")
                published = self.flags.published(agent, mask, event.semantics == "release")
                epoch = agent.end_epoch("mbarrier.arrive", event.line)
                arrivals.append(Sent(agent, epoch, mask, event.line, published, []))
        if barrier.index > 0:
            self.turns.check_arrivals(barrier, arrivals)
        for arrival in arrivals:
            weak = self._carry(barrier, phase, arrival, event.scope)
            phase.members.append(
                Source(
                    arrival.agent, arrival.epoch, arrival.mask, arrival.line, weak, arrival.published.fence
                )
            )  # fmt: skip
            phase.copies += arrival.copies
        phase.arrivals += event.count
        barrier.pending -= event.count
        if event.what == "drop":
            barrier.expected -= event.count

    def _carry(self, barrier: Barrier, phase: Phase, arrival: Sent, scope: str) -> str:
        """Let a phase carry what an arrival publishes; return why it does not count, if so."""
        is_own = arrival.agent.cta is barrier.owner
        across = self.world.options.proxy_fence == "path"
        for width, view in arrival.published.views.items():
            if is_own:
                phase.local.join(view)
            elif "cta" in (scope, width):
                if phase.narrow is None:
                    phase.narrow = View.empty()
                phase.narrow.join(view, across)
            else:
                if phase.far is None:
                    phase.far = View.empty()
                phase.far.join(view, across)
        if not arrival.published.is_whole:
            self.turns.is_vague = True
            return "relaxed"
        return "cta scope" if scope == "cta" and not is_own else ""

    def _phase(self, event: BarrierEvent) -> None:
        barrier = self.life.find(event)
        if barrier is None:
            return
        index = event.phase - 1
        phase = barrier.phase(index)
        self.turns.check_complete(barrier, index)
        phase.close()
        barrier.index = event.phase
        barrier.weigh(index)
        barrier.pending = barrier.expected

    # -- waits -------------------------------------------------------------------------------------

    def _wait(self, event: BarrierEvent) -> None:
        barrier = self.life.find(event)
        if barrier is None:
            return
        index = event.phase - 1
        relaxed = event.semantics == "relaxed"
        narrow = event.scope == "cta"
        phase = barrier.phase(index)
        if barrier.owner.visits and not phase.waits:
            self.lifetime.counted(barrier.owner, phase.members)
        what = (RELAXED if relaxed else NARROW if narrow else "") + "mbarrier"
        for agent, mask in self.world.parties(event.agent):
            self.life.used(barrier, agent, mask, event.line, "wait")
            agent.peek(mask, None)
            agent.fresh = (barrier, index, event.line, mask)
            agent.log.append((agent.now, mask, event.line, what, phase))
            if index < 0:
                continue
            phase.waits.append((agent, agent.now, mask, event.line))
            if relaxed:
                self.turns.is_vague = True
                self.flags.learn_later(agent, mask, phase, event.scope, event.line)
            else:
                learn(agent, mask, phase, narrow)
            if narrow and self.world.options.tma_acquire_scope:
                self._foreign_bytes(barrier, phase, agent, mask, event.line)
            self._check_loop(agent, mask, event.line, barrier)

    def _foreign_bytes(
        self, barrier: Barrier, phase: Phase, agent: Agent, mask: int, line: int
    ) -> None:
        for flight in phase.flights:
            if flight.agent.cta is not agent.cta:
                self.life.misuse(
                    "HS217", "hazard", (flight.agent, flight.parts[0][2], flight.line, flight.kind),
                    (agent, mask, line, "wait"), barrier.address,
                    "a wait of cluster scope for bytes that another CTA's TMA wrote (strict)",
                    f"at :{line}:  mbarrier.try_wait.parity.acquire.cluster",
                )  # fmt: skip
                return

    def _peek(self, event: BarrierEvent) -> None:
        barrier = self.life.find(event)
        if barrier is None:
            return
        for agent, mask in self.world.parties(event.agent):
            self.life.used(barrier, agent, mask, event.line, "test")
            agent.peek(mask, (barrier, event.phase, event.line))

    def _check_loop(self, agent: Agent, mask: int, line: int, barrier: Barrier) -> None:
        """try_wait may say no after a while: its answer must be used."""
        if line in self.world.facts.unread_answers:
            self.life.misuse(
                "HS222", "hazard", None, (agent, mask, line, "wait"), barrier.address,
                "a loop around try_wait: it may return false after a time limit",
                f"after :{line}, branch back to it while the predicate is false",
            )  # fmt: skip

"""mbarrier objects: their life, their phases, and what waits learn.

Source: PTX ISA 8.7 "mbarrier"; 9.4 "mbarrier" for the proxy of the operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from hopsim.events import BarrierEvent
from hopsim.hazards.chains import NARROW, RELAXED
from hopsim.hazards.clocks import CLUSTER_SHARED, CTA_SHARED, INIT, Agent, Done, View, sees
from hopsim.hazards.findings import Finding, Findings, Level
from hopsim.hazards.flags import Flags
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.objects import Barrier, Phase, Source, learn
from hopsim.hazards.records import LOADS, Flight, Record
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import CtaState, World

MBARRIER_BYTES: Final = 8
LOCAL: Final = re.compile(r"^mbarrier\.\S*\.shared(::cta)?\.")
INIT_FENCE_UNTIL: Final = (9, 3)
FLYING_KEPT: Final = 1 << 14


@dataclass(slots=True)
class Sent:
    """An arrive on its way: who sent it, and what it publishes."""

    agent: Agent
    epoch: int
    mask: int
    line: int
    view: View | None
    copies: list[Done]


class Mbarriers:
    """Handles every event of an mbarrier."""

    def __init__(self, world: World, findings: Findings, flags: Flags, lifetime: Lifetime) -> None:
        self.world = world
        self.findings = findings
        self.flags = flags
        self.lifetime = lifetime
        self.sent: dict[int, list[Sent]] = {}
        self.flying: dict[int, Flight] = {}
        self._looped: dict[int, bool] = {}
        self._handlers = {
            "init": self._init, "inval": self._inval, "arrive": self._arrive, "drop": self._arrive, "send": self._send,
            "add_pending": self._add_pending, "expect_tx": self._expect, "complete_tx": self._complete,
            "phase": self._phase, "wait": self._wait, "peek": self._peek,
        }  # fmt: skip

    def event(self, event: BarrierEvent) -> None:
        """Take an event of kind `mbarrier`."""
        self._handlers[event.what](event)

    def _find(self, event: BarrierEvent) -> Barrier | None:
        owner, address = event.barrier
        return self.world.cta(owner).barriers.get(address)

    def fly(self, flight: Flight) -> None:
        """Remember an operation that a barrier will hear of."""
        if flight.tracked in ("mbarrier", "cp.async"):
            self.flying[flight.number] = flight
            if len(self.flying) > FLYING_KEPT:
                del self.flying[next(iter(self.flying))]

    # -- life --------------------------------------------------------------------------------------

    def _init(self, event: BarrierEvent) -> None:
        owner, address = event.barrier
        cta = self.world.cta(owner)
        agent, mask = self.world.parties(event.agent)[0]
        old: Barrier | None = cta.barriers.get(address)
        if old is not None and old.overlaid is None:
            level: Level = "note" if old.is_quiet and not old.used else "hazard"
            if old.is_quiet and old.used and self._all_seen(old, agent, mask):
                level = "note"
            self._misuse(
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

    def _inval(self, event: BarrierEvent) -> None:
        barrier = self._find(event)
        if barrier is None:
            return
        agent, mask = self.world.parties(event.agent)[0]
        user = self._unfinished(barrier, agent, mask)
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
            self._misuse(
                "HS214", "hazard", user, (agent, mask, event.line, "inval"), barrier.address,
                "an edge that says that the last phase is complete and nobody waits for it any more",
                f"before :{event.line}, wait for the phase, and pass a barrier with all who wait for it",
            )  # fmt: skip
        del barrier.owner.barriers[barrier.address]
        self._bound(barrier.owner)

    @staticmethod
    def _unfinished(
        barrier: Barrier, agent: Agent, mask: int
    ) -> tuple[Agent, int, int, str] | None:
        """Return somebody who, as far as an agent knows, still copies for the last phase of a barrier or waits for it."""
        last = barrier.phases.get(barrier.index - 1)
        if last is None:
            return None
        hb = agent.eyes(mask)[0][1].hb
        for flight in last.flights:
            if not last.done.known_to(hb, agent, mask):
                return flight.agent, flight.parts[0][2], flight.line, flight.kind
        for waiter, epoch, lanes, line in last.waits:
            if waiter is not agent and not sees(hb, waiter, epoch, lanes):
                return waiter, lanes, line, "wait"
        return None

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

    def _used(
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
            self._misuse(
                "HS218", "hazard", None, (agent, mask, line, what), barrier.address,
                "an address of .shared::cluster, or a barrier of the own CTA",
                f"at :{line}, for an address of mapa:  mbarrier.arrive.release.cluster.shared::cluster.b64",
            )  # fmt: skip
        born, epoch, lanes, born_line = barrier.born
        for inside, view in agent.eyes(mask):
            if sees(view.hb, born, epoch, lanes) or view.hb.get(born.key + INIT, 0) >= epoch:
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
            self._misuse(
                rule, "hazard", (born, lanes, born_line, "init"), (agent, mask, line, what),
                barrier.address, f"an edge from the init at :{born_line} to :{line}",
                f"after :{born_line}:  fence.mbarrier_init.release.cluster;" if relaxed
                else "after the inits:  bar.sync 0;  (in a cluster: barrier.cluster.arrive and wait)",
            )  # fmt: skip
            return

    # -- counting ----------------------------------------------------------------------------------

    def _add_pending(self, event: BarrierEvent) -> None:
        barrier = self._find(event)
        if barrier is not None:
            barrier.pending += event.count

    def _expect(self, event: BarrierEvent) -> None:
        barrier = self._find(event)
        if barrier is None:
            return
        barrier.tx += event.count
        phase = barrier.phase(barrier.index)
        phase.bytes_expected += event.count
        phase.expected_at = event.line
        if event.op < 0:
            for agent, mask in self.world.parties(event.agent):
                self._used(barrier, agent, mask, event.line, "expect_tx")

    def aimed(self, flight: Flight, record: Record, target: tuple[int, int]) -> None:
        """An operation that is issued will count its bytes on a barrier."""
        barrier = self.world.cta(target[0]).barriers.get(target[1])
        if barrier is None:
            return
        flight.aims.append((barrier, barrier.index, record))
        barrier.outstanding += 1
        agent, _, mask = flight.parts[0]
        agent.loads += 1
        self._used(barrier, agent, mask, flight.line, flight.kind, by_copy=True)
        if self.world.options.init_fence and self.world.facts.version < INIT_FENCE_UNTIL:
            born, epoch, lanes, line = barrier.born
            space = CTA_SHARED if barrier.owner is agent.cta else CLUSTER_SHARED
            if not all(
                sees(view.bridges[space], born, epoch, lanes) for _, view in agent.eyes(mask)
            ):
                self._misuse(
                    "HS200", "hazard", (born, lanes, line, "init"), (agent, mask, flight.line, flight.kind),
                    barrier.address, "a proxy fence between mbarrier.init and the copy that signals it (strict)",
                    f"after :{line}:  fence.proxy.async;",
                )  # fmt: skip

    def _complete(self, event: BarrierEvent) -> None:
        barrier = self._find(event)
        if barrier is None:
            return
        barrier.tx -= event.count
        phase = barrier.phase(barrier.index)
        phase.bytes_done += event.count
        flight = self.flying.get(event.op)
        if flight is None:
            return
        for aim, _, record in flight.aims:
            if aim is barrier:
                assert record.done is not None
                record.done.observers = phase.done.observers
                phase.flights.append(flight)
                barrier.outstanding -= 1
        flight.landed.observers = phase.done.observers

    # -- arrivals ----------------------------------------------------------------------------------

    def _published(self, agent: Agent, mask: int, semantics: str) -> View | None:
        if semantics == "release":
            return agent.release(mask)
        return self.flags.fenced(agent, mask)

    def _send(self, event: BarrierEvent) -> None:
        """An arrive leaves for another CTA."""
        barrier = self._find(event)
        waiting = self.sent.setdefault(event.op, [])
        for agent, mask in self.world.parties(event.agent):
            if barrier is not None:
                self._used(barrier, agent, mask, event.line, "arrive")
            view = self._published(agent, mask, event.semantics)
            epoch = agent.end_epoch("mbarrier.arrive", event.line)
            waiting.append(Sent(agent, epoch, mask, event.line, view, []))

    def follow(self, flight: Flight, copies: list[Done]) -> None:
        """cp.async.mbarrier.arrive: an arrival that publishes the copies before it."""
        self.sent[flight.number] = [
            Sent(agent, epoch, mask, flight.line, View.empty(), copies)
            for agent, epoch, mask in flight.parts
        ]

    def _arrive(self, event: BarrierEvent) -> None:
        barrier = self._find(event)
        if barrier is None:
            return
        phase = barrier.phase(barrier.index)
        if event.op >= 0:
            arrivals = self.sent.pop(event.op, [])
        else:
            arrivals = list[Sent]()
            for agent, mask in self.world.parties(event.agent):
                self._used(barrier, agent, mask, event.line, "arrive")
                view = self._published(agent, mask, event.semantics)
                epoch = agent.end_epoch("mbarrier.arrive", event.line)
                arrivals.append(Sent(agent, epoch, mask, event.line, view, []))
        if not phase.arrivals and barrier.index > 0:
            self._check_consumed(barrier, arrivals)
        for arrival in arrivals:
            weak = self._carry(barrier, phase, arrival, event.scope)
            phase.members.append(
                Source(arrival.agent, arrival.epoch, arrival.mask, arrival.line, weak)
            )
            phase.copies += arrival.copies
        phase.arrivals += event.count
        barrier.pending -= event.count
        if event.what == "drop":
            barrier.expected -= event.count

    def _carry(self, barrier: Barrier, phase: Phase, arrival: Sent, scope: str) -> str:
        """Let a phase carry what an arrival publishes; return why it does not count, if so."""
        if arrival.view is None:
            return "relaxed"
        if arrival.agent.cta is barrier.owner:
            phase.local.join(arrival.view)
            return ""
        across = self.world.options.proxy_fence == "path"
        if scope == "cta":
            if phase.narrow is None:
                phase.narrow = View.empty()
            phase.narrow.join(arrival.view, across)
            return "cta scope"
        if phase.far is None:
            phase.far = View.empty()
        phase.far.join(arrival.view, across)
        return ""

    def _check_consumed(self, barrier: Barrier, arrivals: list[Sent]) -> None:
        last = barrier.phases.get(barrier.index - 1)
        if last is None or last.waits or not arrivals:
            return
        arrival = arrivals[0]
        self._misuse(
            "HS215",
            "hazard",
            None,
            (arrival.agent, arrival.mask, arrival.line, "arrive"),
            barrier.address,
            "a wait that sees the phase before it is followed by the next",
            f"wait for the phase before :{arrival.line} arrives again",
            late=lambda: "" if any(flight.raced for flight in last.flights) else None,
        )

    def _phase(self, event: BarrierEvent) -> None:
        """A phase completed: those who waited for the one before must be known to have seen it."""
        barrier = self._find(event)
        if barrier is None:
            return
        index = event.phase - 1
        phase = barrier.phase(index)
        last = barrier.phases.get(index - 1)
        if last is not None:
            for agent, epoch, mask, line in last.waits:
                if (
                    phase.members
                    and not phase.covers(agent, epoch)
                    and not _met(phase, agent, epoch)
                ):
                    first = phase.members[-1]
                    self._misuse(
                        "HS005", "hazard", (agent, mask, line, "wait"), (first.agent, first.mask, first.line, "arrive"),
                        barrier.address, f"an edge from the wait at :{line} to an arrival of the next phase",
                        "let the waiting warp arrive on a barrier that the next phase depends on",
                    )  # fmt: skip
                    break
        barrier.index = event.phase
        barrier.pending = barrier.expected

    # -- waits -------------------------------------------------------------------------------------

    def _wait(self, event: BarrierEvent) -> None:
        barrier = self._find(event)
        if barrier is None:
            return
        index = event.phase - 1
        relaxed = event.semantics == "relaxed"
        narrow = event.scope == "cta"
        phase = barrier.phase(index)
        what = (RELAXED if relaxed else NARROW if narrow else "") + "mbarrier"
        for agent, mask in self.world.parties(event.agent):
            self._used(barrier, agent, mask, event.line, "wait")
            agent.peeked = None
            agent.fresh = (barrier, index, event.line)
            agent.log.append((agent.now, mask, event.line, what, phase))
            if index < 0:
                continue
            phase.waits.append((agent, agent.now, mask, event.line))
            if relaxed:
                self.flags.learn_later(agent, mask, phase, event.scope)
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
                self._misuse(
                    "HS217", "hazard", (flight.agent, flight.parts[0][2], flight.line, flight.kind),
                    (agent, mask, line, "wait"), barrier.address,
                    "a wait of cluster scope for bytes that another CTA's TMA wrote (strict)",
                    f"at :{line}:  mbarrier.try_wait.parity.acquire.cluster",
                )  # fmt: skip
                return

    def _peek(self, event: BarrierEvent) -> None:
        barrier = self._find(event)
        if barrier is None:
            return
        for agent, mask in self.world.parties(event.agent):
            agent.peeked = (barrier, event.phase, event.line, mask)

    def _check_loop(self, agent: Agent, mask: int, line: int, barrier: Barrier) -> None:
        """try_wait may say no after a while: its answer must be used."""
        looped = self._looped.get(line)
        if looped is None:
            looped = self._looped[line] = self._answer_is_used(line)
        if not looped:
            self._misuse(
                "HS222", "hazard", None, (agent, mask, line, "wait"), barrier.address,
                "a loop around try_wait: it may return false after a time limit",
                f"after :{line}, branch back to it while the predicate is false",
            )  # fmt: skip

    def _answer_is_used(self, line: int) -> bool:
        """Whether the text of the kernel reads the predicate of a wait anywhere."""
        facts = self.world.facts
        found = re.search(r"_wait\S*\s+([%\w$]+)\s*,", facts.text(line))
        if found is None:
            return True
        name = re.compile(r"(?<![\w$%])" + re.escape(found.group(1)) + r"(?![\w$])")
        first, last = min(facts.kernel_lines), max(facts.kernel_lines)
        for number in range(first, last + 1):
            text = facts.text(number)
            uses = len(name.findall(text))
            if number == line:
                uses -= 1
            if (
                uses
                and ".reg" not in text
                and not re.search(r"_wait\S*\s+" + re.escape(found.group(1)), text)
            ):
                return True
        return False

    # -- telling -----------------------------------------------------------------------------------

    def _misuse(
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


def _met(phase: Phase, agent: Agent, epoch: int) -> bool:
    """Whether an arrival follows a wgmma that all four warps issued, this one in `epoch` or later."""
    first = agent.warp // 4 * 4
    for other in agent.cta.agents[first : first + 4]:
        for own_epoch, parts in other.met:
            if any(one is agent and when >= epoch for one, when, _ in parts) and phase.covers(
                other, own_epoch
            ):
                return True
    return False


def _overlaps(record: Record, address: int) -> bool:
    addresses = record.addresses
    stop = address + MBARRIER_BYTES
    if addresses is None or isinstance(addresses, int):
        return record.start < stop and record.stop > address
    if not isinstance(addresses, np.ndarray):
        addresses = addresses()
    return bool(((addresses < stop) & (addresses + record.count_bytes > address)).any())

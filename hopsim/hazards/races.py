"""Name a race: which class it is, what is missing, what to add.

The pair of accesses and what each side is known to have done decide; nothing here depends on the order in which the run
happened to execute the two, except where the text of the finding says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopsim.hazards.advice import advise
from hopsim.hazards.chains import Chain, find_chain
from hopsim.hazards.clocks import ANY, CLUSTER_SHARED, GLOBAL, NEVER, Agent, Clock, sees
from hopsim.hazards.findings import Finding, Findings, Level
from hopsim.hazards.objects import Barrier
from hopsim.hazards.ordering import BRIDGE, ORDER, SCOPE, Gap, bridge_of, find_gap
from hopsim.hazards.records import LOADS, Eye, Flight, Record
from hopsim.hazards.world import World

CLASSIFIED_PER_SITE: Final = 8
FENCE: Final = "fence.proxy.async"
STORES: Final = frozenset({"tma store", "tma reduce", "bulk store", "bulk reduce"})
SPACES: Final = ("shared::cta", "shared::cluster", "global")


class Races:
    """Names races and enters them into the findings."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world = world
        self.findings = findings
        self._seen: dict[tuple[int, int, str, str, str], list[Finding]] = {}
        # Lines of writes that went over data which others had yet to read.
        self._overtaking: set[int] = set()
        # Stores and later writes by the very thread that issued the store: it did not wait in between.
        self._unawaited: set[tuple[int, int]] = set()

    def found(
        self,
        first: Record,
        second: Record,
        gap: Gap,
        eyes: list[Eye],
        span: tuple[int, int],
        name: str,
    ) -> None:
        """Enter a race.

        Args:
            eyes: who made the second access.
            span: bytes concerned, in the region's addresses.  name: of a global allocation.
        """
        if second.kind != "r" and gap.missing != BRIDGE and self._too_early(first, second, eyes):
            # The read came too early: it should have waited for this write.
            self._enter(second, first, Gap(gap.missing, self._who(second, gap.second), gap.first or _whole(first)),
                        eyes, span, name, True)  # fmt: skip
            return
        self._enter(first, second, gap, eyes, span, name, False)

    def overtaken(
        self, reader: Record, writer: Record, gap: Gap, span: tuple[int, int], name: str
    ) -> None:
        """Enter a read of older data that a write overtook in this run: the writer should have waited for it.

        Args:
            gap: of the write before the read, as it ran.
        """
        turned = Gap(ORDER, self._who(reader, gap.second), gap.first or _whole(writer))
        self._overtaking.add(writer.line)
        self._enter(reader, writer, turned, [], span, name, True)

    def _too_early(self, first: Record, second: Record, eyes: list[Eye]) -> bool:
        """Whether a read that a write is not ordered with should have waited for that write.

        It read what nobody had written, or read once more what the writer knows to have been read.
        """
        if first.unwritten:
            return True
        before = first.before
        return before is not None and find_gap(before, second, eyes, None) is None

    def _who(self, record: Record, who: tuple[Agent, int]) -> tuple[Agent, int] | None:
        return who if record.is_thread else None

    def _enter(
        self,
        first: Record,
        second: Record,
        gap: Gap,
        eyes: list[Eye],
        span: tuple[int, int],
        name: str,
        early: bool,
    ) -> None:
        if self._follows(first, second):
            return
        for record in (first, second):
            if record.flight is not None and record.flight.kind in LOADS:
                record.flight.told = True
                self.world.told.add(record.flight.site)
        if first.flight is not None:
            first.flight.told = True
            self.world.told.add(first.flight.site)
        site = (first.line, second.line, first.kind, second.kind, gap.missing)
        seen = self._seen.setdefault(site, [])
        if len(seen) >= CLASSIFIED_PER_SITE:
            seen[-1].also(site[:2])
            return
        rule, causes = self.name(first, second, gap, eyes, early)
        level: Level = "hazard"
        if rule == "HS217" and self._is_slot_release(first, second):
            level = "note"
        chain = self._chain(first, second, gap) if not early else None
        cause: tuple[Any, ...] | None = (
            *self._start_of(first, gap.first),
            *self._start_of(second, gap.second),
        )
        if rule == "HS217":
            chain = self._narrow_edge(first, gap) or chain
            cause = cause if chain is None else chain.lines
        places = {
            "space": self._bridge_name(first, second), "release": _released_at(chain), "expect": _expected_at(first),
            "wait": f"at :{second.fresh[2]}" if second.fresh is not None else "before it",
        }  # fmt: skip
        message, missing, hint = advise(rule, first, second, places)
        finding = Finding(
            rule, level, message,
            self.findings.side(first, gap.first, span, name),
            self.findings.side(second, gap.second if second.is_thread else None, span, name),
            missing, hint, () if chain is None else chain.steps, causes, cause=cause,
        )  # fmt: skip
        finding.retold = lambda other: advise(other, first, second, places)
        if rule in ("HS001", "HS000") and first.flight is not None:
            finding.late = _waited_later(first, gap.second[0], self._epoch(second, gap.second[0]))
        elif rule == "HS004" and first.flight is not None:
            finding.late = _never_expected(*_barrier_of(first.flight, first))
        elif rule == "HS016":
            finding.late = lambda: "" if second.line in self._overtaking else None
        elif rule == "HS301" and first.flight is not None:
            finding.late = self._waited_apart(first.flight, second, gap.second)
        seen.append(self.findings.add(finding))

    def _waited_apart(
        self, flight: Flight, second: Record, who: tuple[Agent, int]
    ) -> Callable[[], str | None]:
        """Return a question for the end of the run: did the issuer wait in time, and only others did not learn of it?"""
        issuer, _, lanes = flight.parts[0]
        if issuer is who[0] and lanes & who[1] and second.is_thread:
            self._unawaited.add((flight.line, second.line))
        site = (flight.line, second.line)

        def ask() -> str | None:
            if site in self._unawaited or not flight.read.observers:
                return None
            return "HS306"

        return ask

    def _follows(self, first: Record, second: Record) -> bool:
        """Whether a race is only a consequence of one that is told: a load that nobody waited for raced already."""
        flight, other = first.flight, second.flight
        if flight is not None and flight.kind in LOADS and first.kind != "r":
            if second.kind != "r" and other is not None and other.kind in LOADS:
                return flight.raced
            flight.raced = True
            if other is not None and other.kind == "wgmma":
                other.raced = True
        elif flight is not None and flight.kind == "wgmma":
            return flight.raced
        return False

    def _start_of(self, record: Record, who: tuple[Agent, int] | None) -> tuple[Any, ...]:
        """Return where the stretch of the program begins that an access belongs to: findings of one stretch are one."""
        if record.flight is not None:
            return (record.kind, record.flight.kind, record.flight.burst)
        assert who is not None
        return (record.kind, *who[0].epochs.get(self._epoch(record, who[0]) - 1, ("", 0)))

    @staticmethod
    def _epoch(record: Record, agent: Agent) -> int:
        for other, epoch, _ in record.parts:
            if other is agent and epoch != NEVER:
                return epoch
        return agent.now

    def _is_slot_release(self, first: Record, second: Record) -> bool:
        """Whether only a slot is handed back: asynchronous accesses are done, and an asynchronous write comes next."""
        lenient = self.world.options.mbarrier_scope == "data"
        return lenient and first.done is not None and second.done is not None and second.kind == "w"

    def _bridge_name(self, first: Record, second: Record) -> str:
        return SPACES[bridge_of(first, second)]

    def _chain(self, first: Record, second: Record, gap: Gap) -> Chain | None:
        """Return the edges from the first access, or from whoever issued it, to the second."""
        end = gap.second[0]
        if gap.first is not None:
            starts = [(gap.first[0], self._epoch(first, gap.first[0]))]
        else:
            starts = [(agent, epoch) for agent, epoch, _ in first.parts if epoch != NEVER]
        for agent, epoch in starts:
            if agent is end:
                return None
            chain = find_chain(agent, epoch, end, end.now, gap.missing != BRIDGE)
            if chain is not None:
                return chain
        return None

    def _narrow_edge(self, first: Record, gap: Gap) -> Chain | None:
        """Return the edge of too narrow a scope that hands on an access, or the completion of an operation."""
        end = gap.second[0]
        starts = [(gap.first[0], self._epoch(first, gap.first[0]))] if gap.first is not None else []
        if first.done is not None:
            starts += [(agent, epoch) for agent, epoch, _ in first.done.observers]
        for agent, epoch in starts:
            chain = find_chain(agent, epoch, end, end.now, True)
            if chain is not None and "cta scope" in chain.weak:
                return chain
        return None

    # -- names -------------------------------------------------------------------------------------

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
            return self._after_store(flight, first, second, gap)
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
        barrier, issued_in = _barrier_of(flight, first)
        if barrier is not None and issued_in in barrier.phases:
            waits = barrier.phases[issued_in].waits
            if any(
                agent is gap.second[0] and lanes & gap.second[1] for agent, _, lanes, _ in waits
            ):
                return "HS201"
        fresh = second.fresh
        if barrier is None or fresh is None:
            return "HS001"
        other, index, _ = fresh
        if other is not barrier:
            return "HS003"
        landed = _landed_in(barrier, flight)
        if landed is not None and landed > issued_in:
            return "HS201"
        if index >= issued_in:
            return "HS201"
        return "HS004"

    def _after_wgmma(self, flight: Flight, first: Record, second: Record, eyes: list[Eye]) -> str:
        knows_issue = any(
            agent is issuer or _covers(view.hb, issuer, epoch)
            for agent, _, view in eyes
            for issuer, epoch, _ in flight.parts
        )
        if not knows_issue:
            other_cta = second.flight is not None and second.cta is not first.cta
            return "HS405" if other_cta else "HS006"
        if flight.group is None:
            return "HS010"
        return "HS009" if flight.left_at is not None else "HS008"

    def _after_store(self, flight: Flight, first: Record, second: Record, gap: Gap) -> str:
        reading = first.kind == "r"
        if flight.group is None:
            return "HS305"
        issuer = flight.agent
        if reading and any(agent is issuer for agent, _, _ in flight.read.observers):
            return "HS306"
        if not reading and flight.landed.observers:
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
        if first.flight is not None and first.flight.kind == "st.async":
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
        epoch = self._epoch(first, agent)
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
        for line in range(first.line + 1, second.line):
            fence = line in facts.kernel_lines and facts.mnemonic(line).startswith(FENCE)
            if fence and (agent.number, line) not in self.world.fenced:
                return ("HS107",)
        return ("HS112",) if gap.second[0] is not agent or mask & ~gap.second[1] else ()

    # the earlier one is an access of threads

    def _after_threads(
        self, first: Record, second: Record, gap: Gap, eyes: list[Eye], early: bool
    ) -> str:
        if first.scope and second.scope and second.is_thread:
            return "HS512" if first.count_bytes != second.count_bytes else "HS510"
        assert gap.first is not None
        agent, mask = gap.first
        end, lanes = gap.second
        epoch = self._epoch(first, agent)
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
                return "HS405" if not second.is_thread and second.cta is not first.cta else "HS006"
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
        if view.hb.get(agent.key + ANY, 0) >= epoch:
            return "HS208"
        before = agent.epochs.get(epoch - 1, ("", 0))[0]
        if before == "mbarrier.arrive" and first.kind != "r" and _covers(view.hb, agent, epoch - 1):
            return "HS224"
        chain = find_chain(agent, epoch, end, end.now, True)
        if chain is None:
            return ""
        for label in chain.weak:
            found = {
                "relaxed": "HS216", "relaxed cluster": "HS403", "cta scope": "HS217", "scope": "HS510",
                "complete_tx": "HS223" if first.kind != "r" else "", "red": "HS511", "relaxed access": "HS216",
            }.get(label, "")  # fmt: skip
            if found:
                return found
        return ""


def _covers(clock: Clock, agent: Agent, epoch: int) -> bool:
    """Whether a clock knows what some lane of a warp did in an epoch."""
    return clock.get(agent.key, 0) >= epoch or clock.get(agent.key + ANY, 0) >= epoch


def _is_duplicate(flight: Flight, record: Record, other: Flight) -> bool:
    """Whether two threads issued the same copy, for the same phase of the same barrier."""
    if flight.line != other.line or flight.agent.cta is not other.agent.cta:
        return False
    barrier, index = _barrier_of(flight, record)
    return any(aim is barrier and phase == index for aim, phase, _ in other.aims)


def _whole(record: Record) -> tuple[Agent, int]:
    agent, _, mask = record.parts[0]
    return agent, mask


def _barrier_of(flight: Flight, record: Record) -> tuple[Barrier | None, int]:
    """Return the mbarrier that tells of a record's bytes, and its phase when the operation was issued."""
    for barrier, index, told in flight.aims:
        if told is record:
            return barrier, index
    return None, 0


def _released_at(chain: Chain | None) -> str:
    """Return where the first of the edges that there are begins, in words."""
    if chain is None or chain.weak:
        return "the slot is released"
    return f":{chain.lines[0]} releases the slot"


def _expected_at(record: Record) -> str:
    """Return where the bytes of a copy's phase are expected, in words."""
    if record.flight is None:
        return ""
    barrier, index = _barrier_of(record.flight, record)
    phase = None if barrier is None else barrier.phases.get(index)
    return f" (:{phase.expected_at})" if phase is not None and phase.expected_at else ""


def _landed_in(barrier: Barrier, flight: Flight) -> int | None:
    for index, phase in barrier.phases.items():
        if flight in phase.flights:
            return index
    return None


def _never_expected(barrier: Barrier | None, index: int) -> Callable[[], str | None]:
    """Return a question for the end of the run: did a phase get bytes that nobody expected in it?"""

    def ask() -> str | None:
        is_surplus = barrier is not None and barrier.index == index and barrier.tx < 0
        return "HS201" if is_surplus else None

    return ask


def _waited_later(record: Record, agent: Agent, epoch: int) -> Callable[[], str | None]:
    """Return a question for the end of the run: did the reader wait for this load after all, but late?"""

    def ask() -> str | None:
        assert record.done is not None
        for other, when, _ in record.done.observers:
            if other is agent and when >= epoch:
                return "HS002"
        return None

    return ask

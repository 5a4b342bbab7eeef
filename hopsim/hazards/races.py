"""Enter a race into the findings: both sides, the edges there are, what is missing, what to add (`naming`: which class).

Nothing here depends on the order in which the run happened to execute the two accesses, except where the text of the
finding says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopsim.hazards import misplaced, out_of_step, places
from hopsim.hazards.advice import advise
from hopsim.hazards.chains import Chain, fences_between, find_chain, told_by_another
from hopsim.hazards.clocks import CLUSTER_SHARED, CTA_SHARED, NEVER, Agent, sees
from hopsim.hazards.findings import EITHER_WAY, Finding, Findings, Level
from hopsim.hazards.followers import Followers
from hopsim.hazards.later import learned_later, may_be_first, never_used, waited_later
from hopsim.hazards.naming import Names, arrive_before, barrier_of, epoch_of
from hopsim.hazards.ordering import BRIDGE, ORDER, Gap, bridge_of, find_gap
from hopsim.hazards.records import LOADS, Eye, Flight, Record, share_a_warp
from hopsim.hazards.swaps import swap_story
from hopsim.hazards.world import World, scope_around

CLASSIFIED_PER_SITE: Final = 8
STORES: Final = frozenset({"tma store", "tma reduce", "bulk store", "bulk reduce"})
SPACES: Final = ("shared::cta", "shared::cluster", "global")


class Races:
    """Tells races apart from what follows from them, and enters them."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world = world
        self.findings = findings
        self.names = Names(world)
        self.followers = Followers(world)
        self._seen: dict[tuple[int, int, str, str, str], list[Finding]] = {}
        # Lines of writes that went over data which others had yet to read.
        self._overtaking: set[int] = set()
        # Lines of loads that go to one slot for several mbarriers.
        self._misplaced: set[int] = set()
        # Stores and later writes by the very thread that issued the store: it did not wait in between.
        self._unawaited: set[tuple[int, int]] = set()
        # Lines at which threads of two warps race: what orders them is told, and mends their lanes too.
        self._between_warps: set[tuple[int, int]] = set()

    def found(
        self,
        first: Record,
        second: Record,
        gap: Gap,
        eyes: list[Eye],
        span: tuple[int, int],
        name: str,
        level: Level = "hazard",
    ) -> None:
        """Enter a race.

        Args:
            eyes: who made the second access.
            span: bytes concerned, in the region's addresses.  name: of a global allocation.
            level: of strong accesses that do not race but may find what is old.
        """
        if self.followers.is_guarded(first, second, gap):
            return
        if second.kind != "r" and gap.missing != BRIDGE and self._too_early(first, second, eyes):
            # The read came too early: it should have waited for this write.
            self._enter(second, first, Gap(gap.missing, self._who(second, gap.second), gap.first or _whole(first)),
                        eyes, span, name, True)  # fmt: skip
            return
        self._enter(first, second, gap, eyes, span, name, False, level)

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

        It read what nobody had written, or threads read once more what the writer knows to have been read.  Where the writer
        itself reads before it writes, or issued an operation that reads, it has yet to wait for that.
        """
        if first.unwritten:
            return True
        before = first.before
        if before is None or not first.is_thread or share_a_warp(first, second):
            return False
        return find_gap(before, second, eyes, None) is None

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
        level: Level = "hazard",
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
        rule, causes = self.names.name(first, second, gap, eyes, early)
        if (early or rule in out_of_step.FOLLOWING) and out_of_step.is_behind(first, second):
            return
        if rule == "HS217" and self._is_slot_release(first, second):
            level = "note"
        barrier, index = (None, 0) if first.flight is None else barrier_of(first.flight, first)
        if barrier is not None:
            out_of_step.note(rule, barrier, index)
        if rule == "HS305":
            self.world.uncommitted.add(first.line)
        if rule in ("HS006", "HS500", "HS501"):
            self._between_warps.add(site[:2])
            if rule in EITHER_WAY:
                self._between_warps.add((second.line, first.line))
        chain = self._chain(first, second, gap, rule) if not early else None
        cause: tuple[Any, ...] | None = (
            *self._start_of(first, gap.first),
            *self._start_of(second, gap.second),
        )
        if rule == "HS217":
            chain = places.narrow_edge(first, gap) or chain
            cause = cause if chain is None else chain.lines
        if rule == "HS201":
            # One expect_tx is at fault, whichever copies and readers show it.
            cause = ("expect_tx", places.counted_at(first) or first.line)
        if rule == "HS017" and first.flight is not None:
            cause = _copy_cause(first.flight, self._start_of(second, gap.second))
        words = {
            "space": self._bridge_name(first, second), "release": places.released_at(chain),
            "expect": places.expected_at(first), "raised": places.raised(first),
            "wait": f"at :{second.fresh[2]}" if second.fresh is not None else "before it",
            "awaited": places.awaited(first, second, gap), "gather": places.gather(first, gap),
            "narrow": places.narrow_map_fences(first, second),
            "lacking": places.lacking_map_fence(first, second, gap), **self._narrow_fences(chain),
            "swap": swap_story(first, second, self.world.facts),
            **places.flag_of(chain, first, second), "instead": places.announced_by(first, second, gap),
            **places.told_to(first, second, gap), "released": places.released_by(second, gap),
            "apart": places.slots_overlap(first, second, gap),
            **self._half_way(rule, first, second, gap),
        }  # fmt: skip
        message, missing, hint = advise(rule, first, second, words)
        finding = Finding(
            rule, level, message,
            self.findings.side(first, gap.first, span, name),
            self.findings.side(second, gap.second if second.is_thread else None, span, name),
            missing, hint, () if chain is None else chain.steps, causes, cause=cause,
        )  # fmt: skip
        finding.retold = lambda other: advise(other, first, second, words)
        if rule in ("HS001", "HS000") and first.flight is not None:
            finding.late = waited_later(first, second, gap.second)
        elif rule in ("HS004", "HS201") and barrier is not None:
            finding.late = out_of_step.ask_expected(rule, barrier, index)
        elif (
            rule == "HS500"
            and gap.first is not None
            and second.is_thread
            and first.cta is not second.cta
        ):
            finding.late = learned_later(finding, first, second, gap)
        elif rule == "HS502":
            finding.late = lambda: "" if site[:2] in self._between_warps else None
        elif rule in ("HS006", "HS405") and gap.first is not None and may_be_first(first, second):
            finding.retold = lambda other: advise(other, second, first, words)
            finding.late = never_used(finding, first, second, gap.first)
        if rule in ("HS006", "HS405"):
            finding.late = out_of_step.ask_behind(second, finding.late)
        elif rule == "HS016":
            if misplaced.is_misplaced(first, second):
                self._misplaced.add(second.line)
            finding.late = lambda: "" if second.line in self._overtaking - self._misplaced else None
        elif rule == "HS301" and first.flight is not None and first.flight.tracked == "bulk":
            finding.late = self._waited_apart(first.flight, second, gap.second)
        elif rule == "HS302" and first.flight is not None and first.flight.tracked == "bulk":
            finding.late = self._waited_meanwhile(first.flight, second, gap.second)
        if rule in misplaced.FOLLOWING:
            load = first if first.flight is not None else second
            finding.late = misplaced.ask_misplaced(load.line, self._misplaced, finding.late)
        if rule == "HS510" and first.scope and second.scope:
            self.followers.note_narrow(first, second)
        else:
            finding.late = self.followers.ask(first, second, gap, chain, finding.late)
        seen.append(self.findings.add(finding))

    def _waited_apart(
        self, flight: Flight, second: Record, who: tuple[Agent, int]
    ) -> Callable[[], str | None]:
        """Return a question for the end of the run: did the issuer wait in time, and only others did not learn of it?"""
        issuer, _, lanes = flight.parts[0]
        if issuer is who[0] and lanes & who[1]:
            self._unawaited.add((flight.line, second.line))
        site = (flight.line, second.line)

        def ask() -> str | None:
            if site in self._unawaited or not flight.read.observers:
                return None
            return "HS306"

        return ask

    def _waited_meanwhile(
        self, flight: Flight, second: Record, who: tuple[Agent, int]
    ) -> Callable[[], str | None]:
        """Return a question for the end of the run: did the same wait cover it next time around, unordered with the access?

        Then it leaves the right groups pending, and others run ahead of it.
        """
        agent, lanes = who
        epoch = epoch_of(second, agent)
        apart = self._waited_apart(flight, second, who)

        def ask() -> str | None:
            if flight.known is None or sees(flight.known, agent, epoch, lanes):
                return None
            return apart()

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
        elif flight is not None and flight.tracked == "cp.async" and first.kind != "r":
            if other is not None and other.tracked == "cp.async":
                return flight.raced
            flight.raced = True
        return False

    def _start_of(self, record: Record, who: tuple[Agent, int] | None) -> tuple[Any, ...]:
        """Return where the stretch of the program begins that an access belongs to: findings of one stretch are one."""
        if record.flight is not None:
            return (record.kind, record.flight.kind, record.flight.burst)
        assert who is not None
        return (record.kind, *who[0].epochs.get(epoch_of(record, who[0]) - 1, ("", 0)))

    def _is_slot_release(self, first: Record, second: Record) -> bool:
        """Whether only a slot is handed back: reads, or operations, are done, and an asynchronous write comes next."""
        lenient = self.world.options.mbarrier_scope == "data"
        is_over = first.done is not None or first.kind == "r"
        return lenient and is_over and second.done is not None and second.kind == "w"

    def _bridge_name(self, first: Record, second: Record) -> str:
        """Return the state space that a proxy fence must name: the widest that any pair of the two places needs."""
        needed = bridge_of(first, second)
        copy = second if second.is_async else first
        if needed == CTA_SHARED and ".multicast" in self.world.facts.mnemonic(copy.line):
            # What the readers of this CTA need not, those of the other ones do, and they run the same line.
            needed = CLUSTER_SHARED
        return SPACES[needed]

    def _chain(self, first: Record, second: Record, gap: Gap, rule: str) -> Chain | None:
        """Return the edges from the first access, or from whoever issued it, to the second."""
        end = gap.second[0]
        if gap.first is not None:
            starts = [(gap.first[0], epoch_of(first, gap.first[0]))]
        else:
            starts = [(agent, epoch) for agent, epoch, _ in first.parts if epoch != NEVER]
        for agent, epoch in starts:
            if agent is end and rule != "HS216":
                return None
            chain = find_chain(agent, epoch, end, end.now, gap.missing != BRIDGE)
            if chain is not None:
                return chain
        return None

    def _narrow_fences(self, chain: Chain | None) -> dict[str, str]:
        """Return which fences of a chain are of too narrow a scope, in words, their kind, and the scope that they need."""
        if chain is None or not chain.fences:
            return {}
        lines = sorted({line for line, _ in chain.fences})
        scopes = {scope for _, scope in chain.fences}
        # The order of fence.sc may be what counts (`fence_order`): another kind would not do.
        is_sc = any(self._is_sc(line) for line in lines)
        return {
            "fences": " and ".join(f":{line}" for line in lines),
            "kind": "sc" if is_sc else "acq_rel",
            "scope": "gpu" if "gpu" in scopes else "cluster",
        }

    def _half_way(self, rule: str, first: Record, second: Record, gap: Gap) -> dict[str, str]:
        """Return what would order two accesses of threads but for one thing, in words."""
        if rule != "HS500" or gap.first is None:
            return {}
        agent, end = gap.first[0], gap.second[0]
        lines = fences_between(agent, epoch_of(first, agent), end)
        weak = [f":{line}" for line in lines or () if not self._is_sc(line)]
        scope = scope_around(first.cta, second.cta)
        if weak:
            return {"acq_rel": " and ".join(dict.fromkeys(weak)), "scope": scope}
        arrive = arrive_before(first, gap, self.world)
        if arrive:
            return {"arrive": f":{arrive}"}
        elected = told_by_another(agent, end)
        return {"elected": f":{elected}"} if elected else {}

    def _is_sc(self, line: int) -> bool:
        return self.world.facts.mnemonic(line).startswith(("membar", "fence.sc"))


def _whole(record: Record) -> tuple[Agent, int]:
    agent, _, mask = record.parts[0]
    return agent, mask


def _copy_cause(flight: Flight, reader: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the commit or the wait at fault: it is one, whichever copies and readers show it.

    Args:
        reader: where the stretch of the program begins that reads or refills it.
    """
    if flight.left_open is not None:
        return flight.left_open
    if flight.left_at is not None:
        return ("wait", flight.left_at[0])
    return ("unwaited", flight.group is None, *reader)

"""One access against what its bytes have seen before: which earlier ones it races with, and what the bytes remember then.

An operation is judged when it is issued: what came before must be ordered before its issue; what comes later must be
ordered after its completion, which the later access shows.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from operator import attrgetter

import numpy as np

from hopsim.hazards.clocks import Agent
from hopsim.hazards.findings import Finding, Findings, Level
from hopsim.hazards.misplaced import is_misplaced
from hopsim.hazards.naming import wants_older
from hopsim.hazards.ordering import ORDER, Gap, Orders, find_gap
from hopsim.hazards.races import Races
from hopsim.hazards.records import Eye, Ints, Record, share_a_warp
from hopsim.hazards.rules import RULES
from hopsim.hazards.shadow import Region, State, walk
from hopsim.hazards.stale import StaleReads
from hopsim.hazards.strength import follows, is_morally_strong, is_spread, latest, stands_for
from hopsim.hazards.unwritten import Unwritten
from hopsim.hazards.world import World

DEFERRED_MOST = 4096
OVER_KEPT = 16


class Judge:
    """Judges every access of every region."""

    def __init__(self, world: World, findings: Findings, races: Races) -> None:
        self.world = world
        self.findings = findings
        self.races = races
        self.unwritten = Unwritten(world, findings)
        facts = world.facts
        # The last read that took lanes to go in step, by number.
        self._out_of_step = 0
        self._stale = StaleReads(world)
        self._volatile = {
            line for line in facts.kernel_lines if ".volatile" in facts.mnemonic(line)
        }

    def apply(self, region: Region, record: Record, eyes: list[Eye], key: object) -> None:
        """Judge an access and let the bytes remember it."""
        if region.deferred is not None:
            if record.kind == "r" and len(region.deferred) < DEFERRED_MOST:
                region.deferred.append(record)
                return
            self._catch_up(region)
        region.refine(record.count_bytes or (record.start | record.stop | 16))
        cells = region.cells(record, key)
        world = self.world
        step = (
            self._reading(region, record, eyes)
            if record.kind == "r"
            else self._writing(region, record, eyes)
        )
        walk(region, world.states, cells, step)
        world.tidy()

    def _catch_up(self, region: Region) -> None:
        """Enter the reads that were put off until somebody writes."""
        waiting, region.deferred = region.deferred, None
        states = self.world.states
        for record in waiting or ():
            region.refine(record.count_bytes or (record.start | record.stop | 16))

            def step(state: State, where: Callable[[], Ints], record: Record = record) -> State:
                return states.get(state.writers, (*state.readers, record))

            walk(region, states, region.cells(record, None), step)

    def _reading(self, region: Region, record: Record, eyes: list[Eye]) -> Callable[..., State]:
        states = self.world.states
        ordered = Orders(record, eyes)

        def step(state: State, where: Callable[[], Ints]) -> State:
            raced: Record | None = None
            if record.is_nc and state.writers:
                self._not_read_only(state.writers[-1], record, region, where)
            for writer in reversed(state.writers):
                if writer in ordered:
                    continue
                gap = self._judge(writer, record, eyes, region, where, follows(writer, raced))
                if gap is None:
                    ordered.add(writer)
                    _make_use(writer, record, eyes)
                else:
                    raced = writer
            if record.scope and state.writers and self._stale.may_be(state.writers[-1], record):
                self._behind_flag(state.writers[-1], record, eyes, region, where)
            if state.is_unwritten and record.space == "shared":
                self.unwritten.look(region, record, where)
            readers = state.readers
            if readers:
                readers = self._remaining(readers, record, eyes)
            return states.get(state.writers, (*readers, record))

        return step

    def _remaining(
        self, readers: tuple[Record, ...], record: Record, eyes: list[Eye]
    ) -> tuple[Record, ...]:
        """Return the readers that a later write must still be compared with, besides a new one."""
        kept: list[Record] = []
        for reader in readers:
            if not stands_for(record, reader, eyes):
                kept.append(reader)
            elif reader.line == record.line and reader.parts[0][0] is record.parts[0][0]:
                record.before = reader.before or reader
        return tuple(kept)

    def _writing(self, region: Region, record: Record, eyes: list[Eye]) -> Callable[..., State]:
        states = self.world.states
        ordered = Orders(record, eyes)

        def step(state: State, where: Callable[[], Ints]) -> State:
            if state.is_unwritten and record.kind == "a" and record.space == "shared":
                self.unwritten.look(region, record, where)
            kept: list[Record] = []
            raced: Record | None = None
            # The latest first: where it races, that some earlier ones do follows from it.
            seen = [*state.readers, *state.writers]
            if len(seen) > 1:
                seen.sort(key=attrgetter("number"), reverse=True)
            for other in seen:
                if other.flight is record.flight and record.flight is not None:
                    continue
                if other.is_nc:
                    self._not_read_only(other, record, region, where)
                if other.scope and record.scope and is_morally_strong(other, record):
                    kept.append(other)
                    continue
                if other not in ordered:
                    follow = follows(other, raced) and not is_misplaced(other, record)
                    gap = self._judge(other, record, eyes, region, where, follow)
                    if gap is not None:
                        raced = other
                        if other.kind != "r" and len(record.over) < OVER_KEPT:
                            record.over = (*record.over, other, *other.over)[:OVER_KEPT]
                        continue
                    ordered.add(other)
                    self._two_ctas(other, record, region, where)
                # A weak access races with whatever one before it would; a strong one only stands for those as strong.
                if record.scope:
                    kept.append(other)
            if not kept:
                return states.get((record,), ())
            writers, readers = latest([k for k in kept if not stands_for(record, k, eyes)])
            return states.get((*writers, record), readers)

        return step

    def _judge(
        self,
        first: Record,
        second: Record,
        eyes: list[Eye],
        region: Region,
        where: Callable[[], Ints],
        told: bool = False,
    ) -> Gap | None:
        """Return what is missing between two accesses, and report it unless what is `told` explains it."""
        if first.scope and second.scope and is_morally_strong(first, second):
            if self._volatile and second.number != self._out_of_step:
                self._in_step(first, second, eyes, region, where)
            return None
        gap = find_gap(first, second, eyes, lambda: (region.base, region.shift, where()))
        if gap is not None and not told:
            name = region.name if second.space == "global" else ""
            span = region.span(where())
            if name:
                span = (span[0] - region.base, span[1] - region.base)
            wanted = (
                second.kind == "r"
                and not _is_own_copy(first, second)
                and (
                    any(find_gap(other, second, eyes, None) is None for other in first.over)
                    or wants_older(first, second, gap.second)
                )
            )
            if wanted:
                self.races.overtaken(second, first, gap, span, name)
            else:
                self.races.found(first, second, gap, eyes, span, name)
        return gap

    def _in_step(
        self,
        first: Record,
        second: Record,
        eyes: list[Eye],
        region: Region,
        where: Callable[[], Ints],
    ) -> None:
        """Report lanes that read, each its own word, what other lanes of their warp wrote, as if all went in step.

        No data race, since volatile accesses are strong; but which value they find depends on who comes first, and
        what is no loop that waits cannot try again.  Where all read one word (a hint to stop, say) any value may do.
        """
        if not (
            first.line in self._volatile
            and second.line in self._volatile
            and second.line not in self.world.facts.poll_lines
            and second.space == "shared"
            and is_spread(first)
            and is_spread(second)
        ):
            return
        gap = find_gap(first, second, eyes, lambda: (region.base, region.shift, where()))
        if gap is None or gap.first is None or gap.first[0] is not gap.second[0]:
            return
        # That the writes before are not waited for either follows from this.
        self._out_of_step = second.number
        self.races.found(first, second, gap, eyes, region.span(where()), "")

    def _behind_flag(
        self,
        first: Record,
        second: Record,
        eyes: list[Eye],
        region: Region,
        where: Callable[[], Ints],
    ) -> None:
        """Report a strong read of data that a flag without release or acquire was to announce."""
        gap = find_gap(first, second, eyes, lambda: (region.base, region.shift, where()))
        announced = "" if gap is None else self._stale.announced(first, gap)
        if gap is None or not announced:
            return
        level = "hazard" if announced == "unsent" else self.world.options.unacquired_reads
        name = region.name if second.space == "global" else ""
        base = region.base if name else 0
        low, high = region.span(where())
        self.races.found(first, second, gap, eyes, (low - base, high - base), name, level)

    def _not_read_only(
        self, first: Record, second: Record, region: Region, where: Callable[[], Ints]
    ) -> None:
        """Report a load with .nc of bytes that the grid writes, before or after, whatever orders the two."""
        low, high = region.span(where())
        span = (low - region.base, high - region.base)
        sides = [
            self.findings.side(one, (one.parts[0][0], one.parts[0][2]), span, region.name)
            for one in (first, second)
        ]
        load = first.line if first.is_nc else second.line
        self.findings.add(
            Finding(
                "HS114", "hazard", RULES["HS114"].sentence, sides[0], sides[1],
                "memory that nobody writes while the grid runs: no edge makes .nc loads see what was written",
                f"at :{load}:  ld.global without .nc  (in CUDA: no __ldg, no const __restrict__)",
            )
        )  # fmt: skip

    def _two_ctas(
        self, first: Record, second: Record, region: Region, where: Callable[[], Ints]
    ) -> None:
        """Note asynchronous accesses of two CTAs that only completion orders."""
        if (
            self.world.options.cross_cta_async == "off"
            or first.cta is second.cta
            or not (first.is_async and second.is_async)
            or region.name != "shared memory"
        ):
            return
        span = region.span(where())
        level: Level = "hazard" if self.world.options.cross_cta_async == "hazard" else "note"
        self.findings.add(
            Finding(
                "HS400", level, RULES["HS400"].sentence,
                self.findings.side(first, None, span, ""), self.findings.side(second, None, span, ""),
                "PTX orders asynchronous accesses within one CTA's async proxy; between CTAs it does not say",
                "common practice (multicast rings do it); --strict reports it as a hazard", cause=(),
            )
        )  # fmt: skip

    def collide(self, region: Region, record: Record, eyes: list[Eye]) -> None:
        """Report warps that write the same bytes by one instruction: nothing orders them among themselves."""
        tids, starts = record.spread()
        order = np.argsort(starts, kind="stable")
        ordered, warps = starts[order], tids[order] >> 5
        near = (ordered[1:] - ordered[:-1] < record.count_bytes) & (warps[1:] != warps[:-1])
        if not near.any():
            return
        place = int(np.flatnonzero(near)[0])
        sides: list[Record] = []
        who: list[tuple[Agent, int]] = []
        for warp in (int(warps[place]), int(warps[place + 1])):
            part = next(part for part in record.parts if part[0].warp == warp)
            one = copy(record)
            one.parts = [part]
            sides.append(one)
            who.append((part[0], part[2]))
        start, stop = int(ordered[place]), int(ordered[place + 1]) + record.count_bytes
        name = region.name if record.space == "global" else ""
        base = region.base if name else 0
        gap = Gap(ORDER, who[0], who[1])
        self.races.found(sides[0], sides[1], gap, eyes, (start - base, stop - base), name)


def _make_use(writer: Record, reader: Record, eyes: list[Eye]) -> None:
    """Data of a load was read in order: the wait before it has served its purpose."""
    done = writer.done
    if done is None:
        return
    writer.used = reader.uses = True
    for agent, _, _ in eyes:
        fresh = agent.fresh
        if fresh is not None and fresh[0].phase(fresh[1]).done.observers is done.observers:
            agent.fresh = None


def _is_own_copy(first: Record, second: Record) -> bool:
    """Whether a warp reads what its own cp.async writes: it has yet to wait, whatever the place held before."""
    flight = first.flight
    return flight is not None and flight.tracked == "cp.async" and share_a_warp(first, second)

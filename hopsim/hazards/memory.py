"""Accesses of threads and of asynchronous operations, judged against what the bytes have seen before.

An operation is judged when it is issued: what came before must be ordered before its issue; what comes later must be
ordered after its completion, which the later access shows.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from operator import attrgetter

import numpy as np

from hopsim.events import Access as AccessEvent
from hopsim.events import BarrierEvent, FlightEvent, Touch
from hopsim.hazards.clocks import NEVER, Agent, Done, sees
from hopsim.hazards.findings import WHAT, Finding, Findings, Level
from hopsim.hazards.grids import Grids
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.maps import Maps
from hopsim.hazards.mbarriers import Mbarriers
from hopsim.hazards.object_life import MBARRIER_BYTES
from hopsim.hazards.observations import Observations
from hopsim.hazards.ordering import ORDER, Gap, Orders, find_gap
from hopsim.hazards.races import Races
from hopsim.hazards.records import Eye, Flight, Ints, Record, is_array
from hopsim.hazards.rules import RULES
from hopsim.hazards.shadow import LARGEST_SHIFT, Region, State, walk
from hopsim.hazards.strength import follows, is_morally_strong, is_no_stronger, latest
from hopsim.hazards.world import CtaState, World
from hopsim.isa.program.symbols import SHARED_RESERVED_BYTES

DEFERRED_MOST = 4096
OVER_KEPT = 16
REMOTE_STORES = frozenset({"st.async", "red.async"})


class Memory:
    """Every access goes through here."""

    def __init__(
        self,
        world: World,
        findings: Findings,
        races: Races,
        mbarriers: Mbarriers,
        lifetime: Lifetime,
        observations: Observations,
    ) -> None:
        self.world = world
        self.findings = findings
        self.races = races
        self.mbarriers = mbarriers
        self.lifetime = lifetime
        self.observations = observations
        self.maps = Maps(world)
        self.grids = Grids(world, findings)
        self.unwritten: list[tuple[Record, tuple[int, int]]] = []
        facts = world.facts
        self._nc_lines = {line for line in facts.kernel_lines if ".nc" in facts.mnemonic(line)}
        # What an exchange finds is of no account where nobody looks at it: it is a store.
        self._stores = {line for line in facts.unread_looks if ".exch" in facts.mnemonic(line)}

    # -- threads -----------------------------------------------------------------------------------

    def access(self, event: AccessEvent) -> None:
        """A load, store or atomic of threads."""
        world = self.world
        addresses: int | Ints = event.addresses
        tids: Ints = event.agent[1]
        scope = ""
        if event.semantics != "weak":
            scope = event.scope or "sys"
        if event.space == "shared":
            if isinstance(addresses, np.ndarray):
                addresses = addresses.astype(np.int64)
            self._threads(event, world.cta(event.owner).shared, addresses, tids, scope)
            return
        if isinstance(addresses, np.ndarray):
            addresses = addresses.astype(np.int64)
            region = world.global_region(int(addresses[0]))
            if region is None:
                return
            low, high = int(addresses.min()), int(addresses.max())
            if low < region.base or high + event.count_bytes > region.base + region.size:
                self._several_regions(event, addresses, tids, scope)
                return
        else:
            region = world.global_region(addresses)
            if region is None or addresses + event.count_bytes > region.base + region.size:
                return
        self._threads(event, region, addresses, tids, scope)

    def _several_regions(self, event: AccessEvent, addresses: Ints, tids: Ints, scope: str) -> None:
        groups: dict[int, tuple[Region, list[int]]] = {}
        for position, one in enumerate(addresses.tolist()):
            region = self.world.global_region(one)
            if region is not None and one + event.count_bytes <= region.base + region.size:
                groups.setdefault(region.base, (region, []))[1].append(position)
        for region, positions in groups.values():
            chosen = np.array(positions)
            part = event._replace(agent=(event.agent[0], tids[chosen]))
            self._threads(part, region, addresses[chosen], tids[chosen], scope)

    def _threads(
        self, event: AccessEvent, region: Region, addresses: int | Ints, tids: Ints, scope: str
    ) -> None:
        world = self.world
        cta = world.cta(event.agent[0])
        parties = world.parties(event.agent)
        count = event.count_bytes
        if isinstance(addresses, int):
            start, stop = addresses, addresses + count
        else:
            start, stop = int(addresses.min()), int(addresses.max()) + count
        if stop > region.base + region.size:
            # The machine stops at it.
            return
        record = Record(
            world.next_record(), event.kind, False, cta, world.parts(parties), event.line, event.space, event.owner,
            start, stop, addresses, count, tids, scope, None, None, world.seq, event.shares,
        )  # fmt: skip
        record.fresh = parties[0][0].fresh
        record.is_nc = event.line in self._nc_lines
        if scope:
            record.observations = self.observations
        eyes = world.eyes(parties)
        for agent, _ in parties:
            agent.dirty = True
        if event.space == "global" and self.grids.is_used:
            self.grids.check(eyes, event.line, WHAT[event.kind])
        if event.space == "shared":
            owner = cta if region is cta.shared else world.cta(event.owner)
            if owner is not cta:
                self.lifetime.visit(owner, record, eyes)
            if owner.barriers and stop > owner.barrier_start and start < owner.barrier_stop:
                self.mbarriers.life.data_over(owner, record, eyes)
        self.apply(region, record, eyes, None)
        if event.kind == "w" and not scope and len(parties) > 1:
            self._collide(region, record, eyes)

    def object(self, event: BarrierEvent) -> None:
        """mbarrier.init and mbarrier.inval: the threads that execute them write the bytes of the object."""
        world = self.world
        index, address = event.barrier
        cta, owner = world.cta(event.agent[0]), world.cta(index)
        parties = world.parties(event.agent)
        record = Record(
            world.next_record(), "w", False, cta, world.parts(parties), event.line, "shared", index, address,
            address + MBARRIER_BYTES, address, MBARRIER_BYTES, event.agent[1], "", None, None, world.seq,
        )  # fmt: skip
        record.is_void = event.what == "inval"
        eyes = world.eyes(parties)
        for agent, _ in parties:
            agent.dirty = True
        if owner is not cta:
            self.lifetime.visit(owner, record, eyes)
        self.apply(owner.shared, record, eyes, None)
        if len(parties) > 1:
            self._collide(owner.shared, record, eyes)

    def _collide(self, region: Region, record: Record, eyes: list[Eye]) -> None:
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

    # -- operations --------------------------------------------------------------------------------

    def flight(self, event: FlightEvent, flight: Flight) -> None:
        """The accesses of an operation that is issued."""
        world = self.world
        parties = world.parties(event.agent)
        cta = world.cta(event.agent[0])
        eyes = world.eyes(parties)
        for agent, _ in parties:
            agent.dirty = True
        for touch in event.touches:
            if touch.space == "global":
                region = world.global_region(touch.start)
                if region is None:
                    continue
            else:
                region = world.cta(touch.owner).shared
            if touch.start < region.base or touch.stop > region.base + region.size:
                # The machine stops at it when the operation lands.
                continue
            record = self._part(event, flight, touch, cta)
            flight.records.append(record)
            self._burst(flight, touch)
            if touch.barrier is not None and touch.kind != "r":
                self.mbarriers.aimed(flight, record, touch.barrier)
            if touch.space == "shared":
                owner = world.cta(touch.owner)
                if owner is not cta:
                    self.lifetime.visit(owner, record, eyes)
                self.lifetime.watch(owner, flight, record)
                if (
                    owner.barriers
                    and touch.stop > owner.barrier_start
                    and touch.start < owner.barrier_stop
                ):
                    self.mbarriers.life.data_over(owner, record, eyes)
            self.apply(region, record, eyes, touch.key)
        if event.detail is not None and flight.tracked in ("mbarrier", "bulk"):
            of_map = self.maps.read(event, flight)
            if of_map is not None:
                self.apply(*of_map, None)
        if self.grids.is_used and any(touch.space == "global" for touch in event.touches):
            self.grids.check(eyes, event.line, event.kind)

    def _burst(self, flight: Flight, touch: Touch) -> None:
        """Note which operation began the stretch of like operations that this one belongs to."""
        if touch.barrier is not None and touch.kind != "r":
            barrier = self.world.cta(touch.barrier[0]).barriers.get(touch.barrier[1])
            if barrier is not None:
                flight.burst = barrier.phase(barrier.index).bursts.setdefault(
                    flight.kind, flight.line
                )

    def _part(self, event: FlightEvent, flight: Flight, touch: Touch, cta: CtaState) -> Record:
        world = self.world
        done: Done | None
        if flight.tracked == "bulk":
            done = flight.read if touch.kind == "r" else flight.landed
        elif flight.tracked == "mbarrier":
            done = Done() if touch.kind != "r" else flight.landed
        else:
            done = flight.landed
        per_thread = flight.tracked == "cp.async"
        parts = (
            [(agent, NEVER, mask) for agent, _, mask in flight.parts]
            if per_thread
            else flight.parts
        )
        atomic = "gpu" if touch.kind == "a" else ""
        record = Record(
            world.next_record(), touch.kind, touch.proxy != "generic", cta, parts, event.line, touch.space, touch.owner,
            touch.start, touch.stop, touch.addresses, touch.count_bytes, event.agent[1] if per_thread else None, atomic,
            flight, done, world.seq,
        )  # fmt: skip
        record.fresh = flight.parts[0][0].fresh
        record.inside = touch.inside
        record.wants_bridge = world.options.st_async_proxy and flight.kind in REMOTE_STORES
        return record

    # -- bytes -------------------------------------------------------------------------------------

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
        is_told = False

        def step(state: State, where: Callable[[], Ints]) -> State:
            nonlocal is_told
            raced: Record | None = None
            is_written = False
            if record.is_nc and state.writers:
                self._not_read_only(state.writers[-1], record, region, where)
            for writer in reversed(state.writers):
                is_written = is_written or not writer.is_void
                if writer in ordered:
                    continue
                gap = self._judge(writer, record, eyes, region, where, follows(writer, raced))
                if gap is None:
                    ordered.add(writer)
                    self._made_use(writer, record, eyes)
                else:
                    raced = writer
            if not is_written and record.space == "shared":
                if not is_told:
                    cells = self._inside(region, record, where())
                    if len(cells):
                        self.unwritten.append((record, self._span(region, cells)))
                        is_told = True
                record.unwritten = True
            readers = state.readers
            if readers:
                readers = self._remaining(readers, record, eyes)
            return states.get(state.writers, (*readers, record))

        return step

    @staticmethod
    def _inside(region: Region, record: Record, cells: Ints) -> Ints:
        """Return the granules of a read that count: of the box of a tensor store those that lie inside the tensor."""
        if record.inside is None:
            return cells
        shift = region.shift
        chunks = (record.inside() - region.base) >> LARGEST_SHIFT
        return cells[np.isin(cells >> (LARGEST_SHIFT - shift), chunks)]

    def _remaining(
        self, readers: tuple[Record, ...], record: Record, eyes: list[Eye]
    ) -> tuple[Record, ...]:
        """Return the readers that a later write must still be compared with, besides a new one."""
        kept: list[Record] = []
        for reader in readers:
            if not self._stands_for(record, reader, eyes):
                kept.append(reader)
            elif reader.is_thread == record.is_thread and reader.parts[0][0] is record.parts[0][0]:
                record.before = reader.before or reader
        return tuple(kept)

    def _writing(self, region: Region, record: Record, eyes: list[Eye]) -> Callable[..., State]:
        states = self.world.states
        ordered = Orders(record, eyes)
        # What the system reserves it has cleared: groups of cooperative groups meet there.
        is_read = (
            record.kind == "a"
            and record.space == "shared"
            and record.start >= SHARED_RESERVED_BYTES
            and record.line not in self._stores
        )

        def step(state: State, where: Callable[[], Ints]) -> State:
            nonlocal is_read
            if is_read and all(writer.is_void for writer in state.writers):
                self.unwritten.append((record, self._span(region, where())))
                is_read = False
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
                    follow = follows(other, raced)
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
            writers, readers = latest([k for k in kept if not self._stands_for(record, k, eyes)])
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
            return None
        gap = find_gap(first, second, eyes, lambda: (region.base, region.shift, where()))
        if gap is not None and not told:
            name = region.name if second.space == "global" else ""
            span = self._span(region, where())
            if name:
                span = (span[0] - region.base, span[1] - region.base)
            wanted = second.kind == "r" and any(
                find_gap(other, second, eyes, None) is None for other in first.over
            )
            if wanted:
                self.races.overtaken(second, first, gap, span, name)
            else:
                self.races.found(first, second, gap, eyes, span, name)
        return gap

    @staticmethod
    def _span(region: Region, cells: Ints) -> tuple[int, int]:
        """Return the first and last byte of granules."""
        low, high = int(cells.min()), int(cells.max())
        return region.base + (low << region.shift), region.base + ((high + 1) << region.shift)

    @classmethod
    def _stands_for(cls, later: Record, earlier: Record, eyes: list[Eye]) -> bool:
        """Whether whatever races with `earlier` races with `later` too, so that the earlier one can be forgotten."""
        if earlier.is_nc and not later.is_nc:
            return False
        return is_no_stronger(later, earlier) and cls._covered(earlier, later, eyes)

    @staticmethod
    def _covered(earlier: Record, later: Record, eyes: list[Eye]) -> bool:
        """Whether whatever is ordered after `later` is ordered after `earlier` too."""
        if earlier.tids is None:
            assert earlier.done is not None
            return all(earlier.done.known_to(view.hb, agent, lanes) for agent, lanes, view in eyes)
        if later.tids is None:
            return False
        if earlier.flight is not None:
            return False
        same = later.tids is earlier.tids and later.shares is earlier.shares
        if same and later.cta is earlier.cta:
            if later.addresses is earlier.addresses or (
                is_array(later.addresses)
                and is_array(earlier.addresses)
                and later.count_bytes >= earlier.count_bytes
                and np.array_equal(later.addresses, earlier.addresses)
            ):
                return True
            if (
                isinstance(later.addresses, int)
                and isinstance(earlier.addresses, int)
                and later.addresses == earlier.addresses
                and later.count_bytes >= earlier.count_bytes
            ):
                return True
        return all(
            sees(view.hb, agent, epoch, mask)
            for agent, epoch, mask in earlier.parts
            for _, _, view in eyes
        )

    @staticmethod
    def _made_use(writer: Record, reader: Record, eyes: list[Eye]) -> None:
        """Data of a load was read in order: the wait before it has served its purpose."""
        done = writer.done
        if done is None:
            return
        writer.used = reader.uses = True
        for agent, _, _ in eyes:
            fresh = agent.fresh
            if fresh is not None and fresh[0].phase(fresh[1]).done.observers is done.observers:
                agent.fresh = None

    def _not_read_only(
        self, first: Record, second: Record, region: Region, where: Callable[[], Ints]
    ) -> None:
        """Report a load with .nc of bytes that the grid writes, before or after, whatever orders the two."""
        low, high = self._span(region, where())
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
        span = self._span(region, where())
        level: Level = "hazard" if self.world.options.cross_cta_async == "hazard" else "note"
        self.findings.add(
            Finding(
                "HS400", level, RULES["HS400"].sentence,
                self.findings.side(first, None, span, ""), self.findings.side(second, None, span, ""),
                "PTX orders asynchronous accesses within one CTA's async proxy; between CTAs it does not say",
                "common practice (multicast rings do it); --strict reports it as a hazard", cause=(),
            )
        )  # fmt: skip

    # -- the end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Report reads of bytes that nobody had written, where no race explains them."""
        explained = {
            (access.line, access.what)
            for finding in self.findings.found.values()
            for access in (finding.first, finding.second)
            if access is not None
        }
        for record, span in self.unwritten:
            if (record.line, WHAT[record.kind]) in explained:
                continue
            agent, _, mask = record.parts[0]
            # A wgmma may compute rows that nobody stores.
            is_mma = record.flight is not None and record.flight.kind == "wgmma"
            level: Level = "note" if is_mma else "hazard"
            side = self.findings.side(record, (agent, mask), span, "")
            self.findings.add(
                Finding(
                    "HS701", level, RULES["HS701"].sentence, None, side,
                    "a write before the read", f"write the bytes before :{record.line}, or wait for the copy that does",
                    cause=("wgmma",) if is_mma else None,
                )
            )  # fmt: skip

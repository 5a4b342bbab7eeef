"""When copies land: each takes its engine, L2 and device memory, and the ports of its targets.

A copy is booked once for all its bytes: when it is issued or, if too much is on its way to its SM, when there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.config import HardwareConfig
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.work import CopyWork, TmaWork
from hopsim.hw.timing.fabric import Fabric
from hopsim.hw.timing.footprint import WHOLE_ROWS, Footprint, Splits
from hopsim.hw.timing.global_access import Coalescer
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.line_sectors import Masks, by_line
from hopsim.hw.timing.load_gate import Load
from hopsim.hw.timing.sm import Sm, Way
from hopsim.hw.timing.stream import UNKNOWN, Passage
from hopsim.hw.timing.tma_engine import BULK_RANK, TmaEngine

LOOK_AGAIN: Final = 200.0
"""Cycles after which an arrival looks again for copies of which it is not known yet when they come."""
HALF_A_CYCLE: Final = 0.5
"""What is no more late than that is not late: it would be looked at again and again."""
BoxKey = tuple[object, tuple[int, ...]]


class Booked(NamedTuple):
    """When an operation lands, and its second stage if it has two, in cycles of the SM clock."""

    first: float
    second: float


class _Waiting(NamedTuple):
    """A load, and what others that come while it waits may put before it.

    Args:
        finish: when device memory is done with it; 0: it has no part in it.
        turns: of the ways that it takes.
        back: cycles from the end of these until it lands.
        multicast: the engine that asked for it, when, and its lines, if others get it too.
    """

    finish: float
    turns: tuple[Passage, ...]
    back: float
    multicast: tuple[TmaEngine, float, int] | None = None


class Bookings:
    """Books copies on the units of the chip.

    Args:
        config: of the chip.
        sms: all SMs.
        l2, fabric: what they share.
    """

    def __init__(
        self, config: HardwareConfig, sms: Sequence[Sm], l2: L2Cache, fabric: Fabric
    ) -> None:
        self._config = config
        self._sms = sms
        self._l2 = l2
        self._fabric = fabric
        self._line_bytes = config.l2.line_bytes
        self._sector_bytes = config.l2.sector_bytes
        self._coalescer = Coalescer(config.l2.line_bytes, config.l2.sector_bytes)
        self._boxes: dict[BoxKey, Footprint] = {}
        self._due: dict[int, float] = {}
        # Bytes of loads that are on their way or wait to be, by number of the operation.
        self._loads: dict[int, Load] = {}
        # Loads that may be overtaken, by number of the operation.
        self._waiting: dict[int, _Waiting] = {}

    def admit(self, operation: Operation, time: float) -> bool:
        """Say whether an operation issued at `time` can be booked; if not, `landed` says when it can."""
        load = self._load(operation)
        if load is None:
            return True
        self._loads[operation.number] = load
        return self._sm_of(operation).loads.enter(operation, time, load)

    def book(self, operation: Operation, time: float) -> Booked:
        """Book an operation issued at `time` that was admitted."""
        work = operation.work
        unit = operation.unit
        if unit == "tma":
            if isinstance(work, TmaWork):
                key = (work.tensor_map, work.plan.coords)
                footprint = self._boxes.get(key)
                if footprint is None:
                    footprint = self._boxes[key] = self._box(work)
                return self._bulk(
                    operation, time, work.direction, work.total_bytes, work.rank, work.tensor_map, footprint,
                    work.destinations,
                )  # fmt: skip
            assert isinstance(work, CopyWork), operation.kind
            if work.direction == "peer":
                return self._peer(operation, time, work)
            return self._bulk(
                operation, time, work.direction, work.count_bytes, BULK_RANK, None, self._range(work),
                work.destinations,
            )  # fmt: skip
        if unit == "cp_async":
            assert isinstance(work, CopyWork), operation.kind
            if work.direction == "peer":
                return self._peer(operation, time, work)
            return self._thread_copy(operation, time, work)
        assert unit == "mbarrier", (operation.kind, unit)
        if operation.after:
            last = max(self._due.get(copy.number, time) for copy in operation.after)
            landed = max(time, last) + self._config.mbarrier.copies_arrive_latency_cycles
        elif work is None:
            landed = time + self._config.mbarrier.arrive_latency_cycles
        else:
            landed = time + self._config.mbarrier.remote_arrive_latency_cycles
        return Booked(landed, landed)

    def delay(self, operation: Operation, now: float) -> float:
        """Return how much later than now an operation lands that was to land now.

        It waits for what device memory serves before it, and for its turns on the ways to the SM, whose ends are known
        only when they are near: until then it is looked at again at the earliest time.
        """
        if operation.after and not operation.may_land:
            return self._until_landed(operation.after, now)
        waiting = self._waiting.pop(operation.number, None)
        if waiting is None:
            return 0.0
        delay = self._l2.overtaken(waiting.finish) if waiting.finish else 0.0
        if waiting.multicast is not None:
            engine, begin, lines = waiting.multicast
            delay += engine.multicast_delay(begin, lines)
        back = waiting.back
        is_known = True
        for turn in waiting.turns:
            delay = max(delay, turn.expected(now) + back - now)
            is_known = is_known and turn.end < UNKNOWN
        if not is_known:
            self._waiting[operation.number] = _Waiting(0.0, waiting.turns, back)
        return delay if delay > HALF_A_CYCLE else 0.0

    def landed(self, operation: Operation) -> list[tuple[Operation, float]]:
        """Forget an operation; return those that can be booked now, and when they were issued."""
        self._due.pop(operation.number, None)
        load = self._loads.pop(operation.number, None)
        return [] if load is None else self._sm_of(operation).loads.leave(load)

    def _until_landed(self, copies: Sequence[Operation], now: float) -> float:
        """Return how much later than now an arrival lands that follows copies which have waited for room."""
        left = [copy.number for copy in copies if not copy.done]
        last = max(self._due.get(number, now + LOOK_AGAIN) for number in left)
        later = max(last, now) + self._config.mbarrier.copies_arrive_latency_cycles - now
        # (What is due now may come after this in its cycle.)
        return max(1.0, later)

    def _load(self, operation: Operation) -> Load | None:
        """Return what an operation brings from L2 to its SM; None: it brings nothing."""
        work = operation.work
        if isinstance(work, TmaWork):
            is_load = work.direction == "load" and work.total_bytes
            return Load(work.total_bytes) if is_load else None
        if not isinstance(work, CopyWork) or work.direction != "load":
            return None
        count_bytes = work.count_bytes * (work.lanes if operation.unit == "cp_async" else 1)
        return Load(count_bytes, work.through_l1) if count_bytes else None

    def _sm_of(self, operation: Operation) -> Sm:
        cta: Cta = operation.cta
        return self._sms[cta.sm]

    # -- footprints --------------------------------------------------------------------------------

    def _box(self, work: TmaWork) -> Footprint:
        plan = work.plan
        addresses = plan.lines()
        lines = self._l2.tags.number(addresses)
        sectors = plan.sectors()
        masks = self._masks(len(lines), sectors, plan.sector_addresses)
        beside = self._l2.beside(addresses, work.fetch_bytes, masks is not None)
        # Rows outside differ by their place along K alone, boxes wholly outside not at all.
        is_inside = plan.inside_bytes > 0
        place = (work.tensor_map, *plan.coords[:1], *plan.coords[2:]) if is_inside else None
        outside_bytes = work.total_bytes - plan.inside_bytes
        config = self._config.l2
        in_pairs = work.fetch_bytes > config.line_bytes
        part = config.sectors_per_part_of_pairs if in_pairs else config.sectors_per_part
        splits = Splits(*plan.splits(), part)
        return Footprint(lines, sectors, masks, beside, splits, outside_bytes, place)

    def _masks(
        self, lines: int, sectors: int, addresses: Callable[[], NDArray[np.int64]]
    ) -> Masks | None:
        """Return the masks of lines of which some sectors are wanted; None: they are wanted whole."""
        config = self._config.l2
        if sectors * config.sector_bytes >= lines * config.line_bytes:
            return None
        _, masks = by_line(
            addresses() // config.sector_bytes, config.line_bytes // config.sector_bytes
        )
        return masks

    def _range(self, work: CopyWork) -> Footprint:
        assert isinstance(work.addresses, int), work
        start, stop = work.addresses, work.addresses + work.count_bytes
        line, sector = self._config.l2.line_bytes, self._config.l2.sector_bytes
        lines = np.arange(start // line, (stop - 1) // line + 1, dtype=np.int64) * line
        numbers = self._l2.tags.number(lines)
        first, last = start // sector, (stop - 1) // sector
        sectors = last - first + 1
        masks = self._masks(
            len(lines), sectors, lambda: np.arange(first, last + 1, dtype=np.int64) * sector
        )
        return Footprint(numbers, sectors, masks)

    # -- the TMA unit ------------------------------------------------------------------------------

    def _bulk(
        self,
        operation: Operation,
        time: float,
        direction: str,
        count_bytes: int,
        rank: int,
        tensor_map: bytes | None,
        footprint: Footprint,
        destinations: Sequence[Cta],
    ) -> Booked:
        sm = self._sm_of(operation)
        engine = sm.tma
        begin = engine.start(time, tensor_map)
        lines, sectors, outside_bytes = footprint.lines, footprint.sectors, footprint.outside_bytes
        if direction == "load":
            requests = len(lines) + footprint.splits.parts + outside_bytes // self._line_bytes
            sent = engine.send(begin, count_bytes, requests)
            end = sent.end
            ready, turns, finish = sm.port.read(
                time, begin, end, footprint, sm.number, len(destinations)
            )
            if outside_bytes:
                ready = max(ready, self._l2.outside.read(time, end, outside_bytes, footprint.place))
            if finish:
                ready += sent.slower
            landed = ready + engine.load_latency(rank)
            multicast: tuple[TmaEngine, float, int] | None = None
            if len(destinations) > 1:
                engine.multicast(begin)
                multicast = (engine, begin, len(lines)) if finish else None
            if sectors:
                filled = [self._sms[cta.sm].tma.fill(begin, sent) for cta in destinations]
                back = landed - ready + self._l2.near
                self._waiting[operation.number] = _Waiting(
                    finish, (*turns, *filled), back, multicast
                )
            engine.returned(landed)
            return Booked(landed, landed)
        if direction == "prefetch":
            end = engine.send(begin, 0).end
            ready = self._l2.read(time, end, footprint, sm.gpc).ready
            return Booked(ready, ready)
        filled = (count_bytes - outside_bytes) // self._sector_bytes
        source_read = engine.send_store(
            begin, count_bytes, max(0, sectors - filled), adds=direction == "reduce"
        )
        if direction == "reduce":
            added = Footprint(lines, sectors, footprint.masks)
            written = source_read = self._l2.reduce(time, source_read, added, sm.gpc)
        else:
            # Its source is read as L2 takes it.
            written = source_read = self._l2.store_box(time, source_read, lines, sectors, sm.gpc)
        written += engine.store_latency()
        return Booked(source_read, written)

    def _peer(self, operation: Operation, time: float, work: CopyWork) -> Booked:
        source = self._sm_of(operation)
        target = work.destinations[0]
        begin = time
        count_bytes = work.count_bytes * work.lanes
        if operation.unit == "tma":
            begin = source.tma.start(time, None)
            source.tma.send(begin, count_bytes)
        landed = self._fabric.transfer(begin, source.number, target.sm, count_bytes)
        if operation.unit == "tma":
            source.tma.returned(landed)
        return Booked(landed, landed)

    # -- cp.async ----------------------------------------------------------------------------------

    def _thread_copy(self, operation: Operation, time: float, work: CopyWork) -> Booked:
        """cp.async: sectors come from L2 and go to shared memory without passing registers."""
        sm = self._sm_of(operation)
        addresses = work.addresses
        if not isinstance(addresses, int) and len(addresses) == 0:
            return self._due_at(operation, time + self._config.smem.latency_cycles)
        lines, masks, whole, sectors, passes, parts, uneven, crossed, _ = self._coalescer.touched(
            addresses, work.count_bytes, work.lanes
        )
        sectors += parts
        splits = Splits(0, parts, uneven, self._config.l2.sectors_per_part) if parts else WHOLE_ROWS
        places = lines * self._line_bytes
        numbers = self._l2.tags.number(places)
        # The pipe takes a row of banks at a time, of each line by itself (recorded: product_walk_before_copies_*).
        row_bytes = self._config.smem.banks * self._config.smem.bank_width_bytes
        rows = -(-work.count_bytes * work.lanes // row_bytes) + crossed
        # Recordings of GEMMs count hardly any wavefronts for these: 10 to 14 for 32 to 64 instructions.
        entered = sm.pipe.book(time, rows, rows, counted=False)
        # Lines are asked for one after the other.
        begin = max(entered, sm.ask(time, passes))
        sector_bytes = self._config.l2.sector_bytes
        way = Way.THROUGH_L1 if work.through_l1 else Way.PAST_L1
        end = sm.fill(begin, sectors * sector_bytes, way)
        # Lanes that ask for the sectors of others are answered each for itself.
        asking = work.lanes if isinstance(addresses, int) else len(addresses)
        again = work.count_bytes * asking - sectors * sector_bytes
        beside = self._l2.beside(places, work.fetch_bytes, not whole)
        wanted = Footprint(numbers, sectors, None if whole else masks, beside, splits)
        ready, turns, finish = sm.port.read(time, begin, end, wanted, sm.number, is_box=False)
        if again > 0:
            end = sm.wait_for_fill(self._l2.read_again(time, begin, numbers, again, sm.number))
            ready = max(ready, end + self._l2.near)
        latency = self._config.smem.latency_cycles
        back = self._l2.near + latency
        self._waiting[operation.number] = _Waiting(finish, turns, back)
        return self._due_at(operation, ready + latency)

    def _due_at(self, operation: Operation, time: float) -> Booked:
        self._due[operation.number] = time
        return Booked(time, time)


__all__ = ["Booked", "Bookings"]

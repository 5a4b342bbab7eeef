"""Loads, stores, atomics and matrix copies of warps: how long they hold the warp and when their results are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from hopsim.config import HardwareConfig
from hopsim.hw.machine.access_notes import AccessNote, first_of
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.memory import RANK_SHIFT
from hopsim.hw.machine.strand import StrandCore
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.timing.actor import Actor
from hopsim.hw.timing.atomic_units import AtomicUnits
from hopsim.hw.timing.costs import SegmentCost
from hopsim.hw.timing.fabric import Fabric
from hopsim.hw.timing.footprint import Footprint
from hopsim.hw.timing.global_access import Coalescer
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.line_sectors import BITS
from hopsim.hw.timing.load_bursts import LoadBursts
from hopsim.hw.timing.local_memory import LocalMemory
from hopsim.hw.timing.shared_memory import Banks
from hopsim.hw.timing.sm import Sm
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.stored import StoreCosts, Stored
from hopsim.hw.timing.swap_loops import SwapLoops

SHARED_SPACES = ("shared", "shared::cta", "shared::cluster")

# Lines of a load from local memory that L1 looks up in a cycle.
TAGS: Final = 4
# Passes of one warp that stores, ahead of the others, at most.
LONGEST_BURST: Final = 256


class Served(NamedTuple):
    """What became of an access.

    Args:
        held: until when it holds its warp.
        ready: when its result is there; both in SM cycles.
        stall: what a reader's wait is called.
        instructions: machine instructions that nobody knew of before.
    """

    held: float
    ready: float
    stall: Stall
    instructions: int = 0


def _warps_of(strand: StrandCore, note: AccessNote) -> tuple[int, int, int]:
    """Return the CTA of a strand, its first thread, and how many warps access."""
    return strand.cta.index, int(strand.tids[0]), -(-note.lanes // WARP)


class ThreadAccess:
    """Books accesses of threads.

    Args:
        config: of the chip.
        sms: all SMs.
        l2, fabric: what they share.
        local: where local memory lies.
    """

    def __init__(
        self,
        config: HardwareConfig,
        sms: Sequence[Sm],
        l2: L2Cache,
        fabric: Fabric,
        local: LocalMemory,
    ) -> None:
        self._config = config
        self._sms = sms
        self._l2 = l2
        self._fabric = fabric
        self._where = local
        self._banks = Banks(config.smem)
        self._coalescer = Coalescer(config.l2.line_bytes, config.l2.sector_bytes)
        self._store_costs = StoreCosts(config.l2)
        self._atomics = AtomicUnits(config.l2)
        self._swaps = SwapLoops(config.smem, config.dsmem)
        self._loads = LoadBursts(config.l1)
        # When the last other access of a warp of a CTA leaves the data pipe.
        self._stores: dict[int, float] = {}
        self._line_bytes = config.l2.line_bytes
        self._sectors_per_line = config.l2.line_bytes // config.l2.sector_bytes
        # Stores that leave later than this hold their warp.
        self._queue = (
            config.l2.store_queue_per_sm_bytes / config.l2.store_bandwidth_per_sm_bytes_per_clk
        )
        self._l1_latency = float(config.l1.latency_cycles)
        self._local_latency = float(config.l1.local_latency_cycles)
        # From the first wavefront to the result, by kind of access.
        smem = config.smem
        self._shared_latency: dict[str, int] = {
            "r": smem.latency_cycles,
            "w": smem.latency_cycles,
            "a": smem.atomic_latency_cycles,
            "rm": smem.ldmatrix_latency_cycles,
            "wm": smem.stmatrix_latency_cycles,
        }
        self._replay = float(config.smem.replay_latency_cycles)

    def serve(self, actor: Actor, note: AccessNote, cost: SegmentCost, time: float) -> Served:
        """Book one access.

        Args:
            actor: the strand.
            note: what it accesses.
            cost: of the segment that it is the head of.
            time: of issue.
        """
        served = self._serve_space(actor, note, cost, time)
        for other in note.beside:
            # Lanes that point into another space follow (DEVIATIONS D-WINDOWS).
            after = self._serve_space(actor, other, cost, served.held)
            last = max(served, after, key=lambda one: one.ready)
            more = served.instructions + after.instructions
            served = Served(after.held, last.ready, last.stall, more)
        return served

    def _serve_space(
        self, actor: Actor, note: AccessNote, cost: SegmentCost, time: float
    ) -> Served:
        """Book the lanes of an access that point into one space."""
        if note.space in SHARED_SPACES:
            if cost.swaps is not None and (cost.swaps.reaches or not note.remote):
                end, instructions = self._swaps.run(actor, note, cost.swaps, time)
                return Served(end, end, Stall.SHORT_SCOREBOARD, instructions)
            if note.remote:
                return self._remote(actor.sm, actor.strand.cta, note, time)
            return self._shared(actor, note, time)
        if note.space == "global":
            return self._global(actor, note, cost, time)
        if note.space == "local":
            return self._local(actor, note, time)
        # Constants are taken as always present in the caches of the SM.
        return Served(time, time + self._l1_latency, Stall.LONG_SCOREBOARD)

    # -- shared memory -----------------------------------------------------------------------------

    def _shared(self, actor: Actor, note: AccessNote, time: float) -> Served:
        wavefronts, ideal = self._banks.wavefronts(note.addresses, note.count_bytes, note.lanes)
        end = actor.sm.pipe.book(time, wavefronts, ideal)
        if note.kind in ("w", "wm"):
            actor.staged = end
        # A warp goes on when its access has entered the pipe; those before it go first.
        held = max(time, end - wavefronts)
        # The latency covers the first wavefront.
        warps = -(-note.lanes // WARP)
        replays = (-(-wavefronts // warps) - 1) * self._replay
        late = actor.sm.way_out.wait_of_shared(time)
        return Served(
            held,
            end - 1.0 + self._shared_latency[note.kind] + replays + late,
            Stall.SHORT_SCOREBOARD,
        )

    def _remote(self, sm: Sm, cta: Cta, note: AccessNote, time: float) -> Served:
        rank = first_of(note.addresses) >> RANK_SHIFT
        ctas = cta.cluster.ctas
        target = ctas[rank].sm if rank < len(ctas) else sm.number
        count_bytes = note.count_bytes * note.lanes
        source, goal = (target, sm.number) if note.kind == "r" else (sm.number, target)
        done = self._fabric.transfer(time, source, goal, count_bytes)
        return Served(time, done, Stall.LONG_SCOREBOARD)

    # -- local memory ------------------------------------------------------------------------------

    def _local(self, actor: Actor, note: AccessNote, time: float) -> Served:
        sm, strand = actor.sm, actor.strand
        threads = strand.tids if len(strand.tids) == note.lanes else np.arange(note.lanes)
        lines = self._where.touched(note, threads)
        if note.kind == "r":
            passes = -(-lines.passes // TAGS)
            end = sm.pipe.book(time, passes, passes)
            own = -(-lines.most // TAGS)
            return Served(
                max(time, end - own), end - 1.0 + self._local_latency, Stall.LONG_SCOREBOARD
            )
        end = sm.pipe.book(time, lines.passes, lines.passes)
        begin = self._where.begin(strand.cta.index)
        numbers = self._l2.tags.number(lines.offsets + begin)
        size = lines.sectors * self._l2.sector_bytes
        sent = sm.way_out.send(end, size, _warps_of(strand, note), local=True)
        stored = Stored(lines.sectors, lines.passes)
        done = self._l2.store_words(time, sent, numbers, stored, sm.gpc)
        held = max(time, end - lines.most, done - self._queue)
        return Served(held, done, Stall.LONG_SCOREBOARD)

    # -- global memory -----------------------------------------------------------------------------

    def _pass(self, sm: Sm, cta: Cta, passes: int, warps: int, time: float) -> tuple[float, float]:
        """Take the data pipe of L1, a pass for each line of each warp; return when a warp's access enters and leaves it.

        Warps that store drift apart until each has the pipe for itself: what follows in a row waits for passes of its warp
        only, what begins anew for all.
        """
        own = passes / warps
        free = sm.pipe.free
        sm.pipe.book(time, passes, passes)
        begin = self._stores.get(cta.index, 0.0)
        if time > begin:
            begin = max(time, free)
        else:
            begin = max(begin, free - (warps - 1) * LONGEST_BURST)
        end = self._stores[cta.index] = begin + own
        return begin, end

    def _global(self, actor: Actor, note: AccessNote, cost: SegmentCost, time: float) -> Served:
        sm = actor.sm
        touched = self._coalescer.touched(
            note.addresses, note.count_bytes, note.lanes, note.kind == "w"
        )
        lines, masks, whole, sectors, passes, *_ = touched
        warps = -(-note.lanes // WARP)
        if note.kind == "a":
            slots = passes + round(sectors * self._config.l1.atomic_interval_cycles)
            end = sm.pipe.book(time, slots, slots)
            begin = end - slots
        elif note.kind == "r":
            begin, end = self._loads.take(sm.pipe, actor.loaded, passes, warps, time)
            actor.loaded = end
        else:
            begin, end = self._pass(sm, actor.strand.cta, passes, warps, time)
        held = max(time, begin)
        if note.kind == "r":
            end += sm.way_out.wait(end)
            coming = 0.0
            if cost.cached:
                # What another load has asked for comes when it comes for that one.
                coming = sm.l1.expected(lines)
                absent = sm.l1.look_up(lines, masks)
                is_missed = absent > 0
                missed = int(np.count_nonzero(is_missed))
                if missed == 0:
                    ready = max(coming, end - 1.0 + self._l1_latency)
                    return Served(held, ready, Stall.LONG_SCOREBOARD)
                lines, masks = lines[is_missed], absent[is_missed]
                sectors = int(BITS[masks].sum())
                whole = sectors == missed * self._sectors_per_line
            places = lines * self._line_bytes
            numbers = self._l2.tags.number(places)
            sent = sm.fill(end, sectors * self._l2.sector_bytes)
            beside = self._l2.beside(places, note.fetch_bytes, not whole)
            wanted = Footprint(numbers, sectors, None if whole else masks, beside)
            arrival = sm.port.read(time, end, sent, wanted, sm.number)
            # A warp that loads is booked at once: what others ask for later does not come before it.
            ready = max(arrival.ready, sm.port.expected(arrival, time)) + self._l1_latency
            if cost.cached:
                sm.l1.expect(lines, time, ready)
            return Served(held, max(ready, coming), Stall.LONG_SCOREBOARD)
        sm.l1.drop(lines)
        numbers = self._l2.tags.number(lines * self._line_bytes)
        if note.kind == "w":
            size = self._store_costs.way_bytes(touched.stored)
            sent = sm.way_out.send(end, size, _warps_of(actor.strand, note))
            done = self._l2.store_words(time, sent, numbers, touched.stored, sm.gpc)
            sm.stored = max(sm.stored, done + self._l2.near)
            return Served(max(held, done - self._queue), done, Stall.LONG_SCOREBOARD)
        wanted = Footprint(numbers, sectors, None if whole else masks)
        taken, done = self._l2.atomic(time, end, wanted, passes, sm.gpc)
        # Units add when device memory has brought what was there; a warp that gives no result to wait for goes on.
        late = max(0.0, done - end - self._l2.near)
        if cost.joined and isinstance(note.addresses, int):
            # One lane of each warp adds for all.
            added = 0.0
            for _ in range(warps):
                added = self._atomics.take(time + late, note.addresses, 1, width=note.count_bytes)
        else:
            added = self._atomics.take(
                time + late,
                note.addresses,
                note.lanes,
                width=note.count_bytes,
                does=cost.does,
            )
        taken = max(taken, added - late)
        done = max(done, added, taken)
        latency = self._config.l2.atomic_latency_cycles
        # A CTA that adds ends when it knows that L2 has.
        sm.stored = max(sm.stored, done + self._l2.near)
        # An SM has as many under way as L2 takes in a round trip.
        return Served(max(held, taken - latency), max(done, end + latency), Stall.LONG_SCOREBOARD)

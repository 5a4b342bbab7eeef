"""Loads, stores, atomics and matrix copies of warps: how long they hold the warp and when their results are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopsim.config import HardwareConfig
from hopsim.hw.machine.access import AccessNote, first_of
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.memory import RANK_SHIFT
from hopsim.hw.timing.costs import Stall
from hopsim.hw.timing.fabric import Fabric
from hopsim.hw.timing.global_access import WARP, lines_of, warp_sectors
from hopsim.hw.timing.gpc_port import join_key
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.shared_memory import Banks
from hopsim.hw.timing.sm import Sm

SHARED_SPACES = ("shared", "shared::cta", "shared::cluster")


class Served(NamedTuple):
    """Until when an access holds its warp, when its result is ready, and what a reader's wait is called."""

    held: float
    ready: float
    stall: Stall


class ThreadAccess:
    """Books accesses of threads.

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
        self._banks = Banks(config.smem)
        self._l1_latency = float(config.l1.latency_cycles)
        self._replay = float(config.smem.replay_latency_cycles)

    def serve(self, sm: Sm, cta: Cta, note: AccessNote, cached: bool, time: float) -> Served:
        """Book one access.

        Args:
            sm: of the strand.  cta: it belongs to.
            note: what it accesses.
            cached: whether L1 may answer.
            time: of issue.
        """
        if note.space in SHARED_SPACES:
            if note.remote:
                return self._remote(sm, cta, note, time)
            return self._shared(sm, note, time)
        if note.space == "global":
            return self._global(sm, note, cached, time)
        # Local memory and constants are taken as always present in the caches of the SM.
        return Served(time, time + self._config.l1.latency_cycles, Stall.LONG_SCOREBOARD)

    # -- shared memory -----------------------------------------------------------------------------

    def _shared(self, sm: Sm, note: AccessNote, time: float) -> Served:
        smem = self._config.smem
        wavefronts, ideal = self._banks.wavefronts(note.addresses, note.count_bytes, note.lanes)
        end = sm.pipe.book(time, wavefronts, ideal)
        # A warp goes on when its access has entered the pipe; those before it go first.
        held = max(time, end - wavefronts)
        latency = {
            "r": smem.latency_cycles,
            "w": smem.latency_cycles,
            "a": smem.atomic_latency_cycles,
            "rm": smem.ldmatrix_latency_cycles,
            "wm": smem.stmatrix_latency_cycles,
        }[note.kind]
        # The latency covers the first wavefront.
        warps = -(-note.lanes // WARP)
        replays = (-(-wavefronts // warps) - 1) * self._replay
        return Served(held, end - 1.0 + latency + replays, Stall.SHORT_SCOREBOARD)

    def _remote(self, sm: Sm, cta: Cta, note: AccessNote, time: float) -> Served:
        rank = first_of(note.addresses) >> RANK_SHIFT
        ctas = cta.cluster.ctas
        target = ctas[rank].sm if rank < len(ctas) else sm.number
        count_bytes = note.count_bytes * note.lanes
        source, goal = (target, sm.number) if note.kind == "r" else (sm.number, target)
        done = self._fabric.transfer(time, source, goal, count_bytes)
        return Served(time, done, Stall.LONG_SCOREBOARD)

    # -- global memory -----------------------------------------------------------------------------

    def _global(self, sm: Sm, note: AccessNote, cached: bool, time: float) -> Served:
        config = self._config
        line_bytes, sector_bytes = config.l2.line_bytes, config.l2.sector_bytes
        sectors = warp_sectors(note.addresses, note.count_bytes, sector_bytes)
        lines, masks = lines_of(sectors, line_bytes, sector_bytes)
        # Each line of a warp is one pass through the data pipe of L1.
        end = sm.pipe.book(time, len(lines), len(lines))
        held = max(time, end - len(lines))
        if note.kind == "r":
            if cached:
                missed = np.array(
                    [line for line in lines.tolist() if not sm.l1.look_up(line)], np.int64
                )
                if len(missed) == 0:
                    return Served(held, end - 1.0 + config.l1.latency_cycles, Stall.LONG_SCOREBOARD)
                if len(missed) < len(lines):
                    sectors = sectors[np.isin(sectors // line_bytes, missed)]
                    masks = None if masks is None else masks[np.isin(lines, missed)]
                    lines = missed
            numbers = self._l2.tags.number(lines * line_bytes)
            key = join_key(numbers)
            sent = sm.fill(end, len(sectors) * sector_bytes)
            ready = sm.port.read(time, end, sent, sm.awaited, numbers, len(sectors), key, masks)
            return Served(held, ready + self._l1_latency, Stall.LONG_SCOREBOARD)
        for line in lines.tolist():
            sm.l1.drop(line)
        numbers = self._l2.tags.number(lines * line_bytes)
        if note.kind == "w":
            done = self._l2.write(time, end, numbers, len(sectors), sm.gpc)
            return Served(held, done, Stall.LONG_SCOREBOARD)
        done = self._l2.read(time, end, numbers, len(sectors), sm.gpc, masks=masks)
        self._l2.write(time, end, numbers, len(sectors), sm.gpc)
        ready = max(done, end + config.l2.atomic_latency_cycles)
        return Served(held, ready, Stall.LONG_SCOREBOARD)

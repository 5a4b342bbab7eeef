"""Named barriers, the cluster barrier, fences, clocks: what threads of a CTA or cluster say to each other.

Source: PTX ISA 8.7 "bar, barrier", "barrier.cluster", "mapa", "getctarank".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopsim.events import BarrierEvent, SyncEvent
from hopsim.hw.machine.barriers import BarrierMisuse, NamedBarrier
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.memory import OFFSET_MASK, RANK_MASK, RANK_SHIFT, SHARED_WINDOW
from hopsim.hw.machine.register_moves import RegisterOps
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.machine.waiting import Wait
from hopsim.isa.forms.bound import ConstantArg
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.values import Predicate, Value, lanes

BAR = 'PTX ISA 8.7, "bar, barrier"'
CLUSTER = 'PTX ISA 8.7, "barrier.cluster"'


class SyncOps(RegisterOps):
    """Named barriers, cluster barriers, fences, sleeps, clocks."""

    # -- named barriers ----------------------------------------------------------------------------

    def named_barrier(
        self, action: str, number: Value, count: Value | None, aligned: bool, red: Any = None
    ) -> Any:
        """bar/barrier: `action` is `sync`, `arrive` or `red`; `red` is (operation, predicate)."""
        resumed = self.resumed
        if resumed is not None and resumed.kind == "named barrier" and resumed.over:
            return resumed.detail
        if self.part_warps(number, count) is BLOCKED:
            return BLOCKED
        identity = self._uniform(number, "barrier number")
        if not 0 <= identity < 16:
            raise self.fault(f"barrier {identity} does not exist: expected 0 to 15")
        threads = None if count is None else self._uniform(count, "barrier thread count")
        if threads is not None and (threads % 32 or not 0 < threads <= 2048):
            raise self.fault(f"barrier thread count {threads} must be a positive multiple of 32")
        if aligned and not self.is_whole:
            self.let_leave()
            gathered = self.converge(
                f"aligned barrier {identity}",
                "use barrier.sync (not aligned), or let the warp converge first",
                BAR,
            )
            if gathered is BLOCKED:
                return BLOCKED
        cta = self.cta
        barrier = cta.named.get(identity)
        if barrier is None:
            barrier = cta.named[identity] = NamedBarrier(identity)
        if barrier.is_idle:
            barrier.count = threads
        elif threads != barrier.count:
            raise self.fault(
                f"barrier {identity} is used with {threads or 'all'} threads while others wait with "
                f"{barrier.count or 'all'}",
                "give every participant of one barrier the same count", BAR,
            )  # fmt: skip
        if len(self.warps) > 1 and self._part_at_count(barrier) is BLOCKED:
            return BLOCKED
        self._enter(barrier)
        barrier.parties.append((self.identity, self.line))
        self.machine.version += 1
        self._barrier_event("named", action, identity, 0, self.lanes)
        if red is not None:
            operation, predicate = red
            barrier.red.append((operation, predicate, self.lanes))
        wait = Wait("named barrier", barrier)
        if action != "arrive":
            barrier.waiters.append((self, wait))
        if self._named_complete(cta, barrier):
            # The strand became part of another, or took others in, and starts its instruction again.
            if self.done or self.resumed is wait:
                return BLOCKED
            return wait.detail
        if action == "arrive":
            return None
        self.block(wait)
        return BLOCKED

    def _part_at_count(self, barrier: NamedBarrier) -> Any:
        """Where the warps of this strand are more than a barrier still waits for, let the others arrive for its next use.

        Returns: BLOCKED when the strand was divided: its parts execute the instruction again.
        """
        missing = (barrier.needed(self.cta) - barrier.arrived) // WARP
        if not 0 < missing < len(self.warps):
            return None
        first = self.tids // WARP < self.warps[missing]
        return self.part([first, ~first])

    def _enter(self, barrier: NamedBarrier) -> None:
        """Let the warps of this strand arrive, as far as they are here."""
        cta = self.cta
        if self.is_whole:
            barrier.arrived += WARP * len(self.warps)
            return
        try:
            for warp in self.warps:
                here = self.tids[self.tids // WARP == warp] % WARP
                barrier.enter(warp, sum(1 << lane for lane in here.tolist()), cta.live_lanes(warp))
        except BarrierMisuse as misuse:
            raise self.fault(misuse.what, misuse.hint, BAR) from None

    def _named_complete(self, cta: Cta, barrier: NamedBarrier) -> bool:
        needed = barrier.needed(cta)
        if barrier.arrived < needed or barrier.partial:
            return False
        if barrier.arrived > needed:
            raise self.fault(
                f"{barrier.arrived} threads arrived on barrier {barrier.number}, which waits for {needed}",
                "two uses of one barrier overlap: give them different numbers",
                BAR,
            )
        waiters = barrier.waiters
        value = _reduce(barrier.red)
        self._barrier_event("named", "phase", barrier.number, 0, barrier.arrived)
        barrier.reset()
        for _, wait in waiters:
            wait.over = True
            wait.detail = value
        for strand in self._fuse_released(waiters):
            self.machine.wake(strand)
        return True

    def _fuse_released(self, waiters: list[tuple[Any, Wait]]) -> list[Any]:
        """Bring warps of a warpgroup that leave one barrier together back into one strand; return whom to wake."""
        released = [strand for strand, _ in waiters if strand is not self]
        if not self.machine.fuse or not released:
            return released
        together: dict[tuple[int, int], list[Any]] = {}
        last: dict[tuple[int, int], tuple[int, int]] = {}
        for strand, _ in sorted(waiters, key=_first_thread):
            if strand.join is None and strand.is_whole:
                # Only neighbours: the warps of a strand are consecutive.
                place = (strand.warpgroup.number, strand.segment)
                run = last.get(place, (0, -2))
                first = run[0] if strand.warps[0] == run[1] + 1 else strand.warps[0]
                last[place] = (first, strand.warps[-1])
                together.setdefault((strand.segment, first), []).append(strand)
        awake = list(released)
        for strands in together.values():
            if len(strands) < 2:
                continue
            if self in strands:
                # This strand is in the middle of its instruction: it waits too, and is woken as a part.
                self.block(next(wait for strand, wait in waiters if strand is self))
                awake.append(self)
            self.merge(strands)
            awake = [strand for strand in awake if not strand.done]
        return awake

    # -- cluster barrier ---------------------------------------------------------------------------

    def cluster_arrive(self, aligned: bool, sem: str) -> None:
        """barrier.cluster.arrive."""
        self._check_aligned(aligned, "barrier.cluster.arrive.aligned")
        cluster = self.cta.cluster
        barrier = cluster.barrier
        arrived = self.cta.cluster_arrived
        if arrived[self.tids].any():
            raise self.fault(
                "barrier.cluster.arrive twice without a wait between",
                "each thread arrives once, then waits, per phase", CLUSTER,
            )  # fmt: skip
        arrived[self.tids] = 1
        barrier.arrived += self.lanes
        self.machine.version += 1
        self._barrier_event(
            "cluster",
            "arrive",
            cluster.index,
            barrier.phase,
            self.lanes,
            sem or "release",
            "cluster",
        )
        self.cluster_maybe_complete()

    def cluster_maybe_complete(self) -> None:
        """Complete the phase when every live thread of the cluster has arrived."""
        cluster = self.cta.cluster
        barrier = cluster.barrier
        if barrier.arrived < barrier.expected or barrier.arrived == 0:
            return
        barrier.phase += 1
        barrier.arrived = 0
        for cta in cluster.ctas:
            # 2: arrived and complete, so that the wait of this phase passes.
            cta.cluster_arrived[cta.cluster_arrived == 1] = 2
        waiters, barrier.waiters = barrier.waiters, []
        self._barrier_event("cluster", "phase", cluster.index, barrier.phase, 0)
        for strand in waiters:
            self.machine.wake(strand)

    def cluster_wait(self, aligned: bool, sem: str) -> Any:
        """barrier.cluster.wait."""
        self._check_aligned(aligned, "barrier.cluster.wait.aligned")
        cta = self.cta
        state = cta.cluster_arrived[self.tids]
        if (state == 0).any():
            raise self.fault(
                "barrier.cluster.wait without an arrive before it",
                "barrier.cluster.arrive comes first",
                CLUSTER,
            )
        if (state == 2).all():
            cta.cluster_arrived[self.tids] = 0
            phase = cta.cluster.barrier.phase
            self._barrier_event(
                "cluster", "wait", cta.cluster.index, phase, 0, sem or "acquire", "cluster"
            )
            return None
        barrier = cta.cluster.barrier
        barrier.waiters.append(self)
        self.block(Wait("cluster barrier", barrier, barrier.phase))
        return BLOCKED

    def _check_aligned(self, aligned: bool, what: str) -> None:
        if aligned and not self.is_whole and not self.is_apart:
            raise self.fault(
                f"{what} executed by {self.lanes} lanes of a warp",
                "leave out .aligned, or let the warp converge first", CLUSTER,
            )  # fmt: skip

    # -- shared addresses of the cluster -----------------------------------------------------------

    def map_address(self, space: str, address: Value, rank: Value) -> Value:
        """mapa: the same offset in the shared memory of CTA `rank` of the cluster.

        ptxas makes it a byte permutation, and nvcc moves it in front of the branch that guards its use: the address of a
        CTA that is not there faults when it is used, not here.
        """
        if isinstance(address, int) and isinstance(rank, int):
            window = 0 if space else SHARED_WINDOW
            return window + ((rank & RANK_MASK) << RANK_SHIFT) + (address & OFFSET_MASK)
        width = 32 if space else 64
        spread = lanes(address, self.lanes, width).astype(np.uint64) & np.uint64(OFFSET_MASK)
        ranks = lanes(rank, self.lanes, 32).astype(np.uint64) & np.uint64(RANK_MASK)
        moved = (ranks << np.uint64(RANK_SHIFT)) + spread
        return moved.astype(np.uint32) if space else moved + np.uint64(SHARED_WINDOW)

    def cta_rank(self, address: Value) -> Value:
        """getctarank: the rank of the CTA that owns a shared address."""
        if isinstance(address, int):
            return (address >> RANK_SHIFT) & RANK_MASK
        return ((address.astype(np.uint64) >> np.uint64(RANK_SHIFT)) & np.uint64(RANK_MASK)).astype(
            np.uint32
        )

    def read_clock(self, name: str) -> int:
        """The SM clock as the schedule counts it; %globaltimer counts the same (DEVIATIONS D-CLOCK)."""
        # Time passes: a loop that looks at the clock is not the same twice.
        self.machine.clock_reads += 1
        ticks = self.machine.schedule.clock(self)
        if name.endswith("_hi"):
            return ticks >> 32
        return ticks

    # -- fences ------------------------------------------------------------------------------------

    def fence(self, what: str, *detail: Any) -> None:
        """Any fence: it orders, so only observers and timing care."""
        if self.machine.probe.sync:
            event = SyncEvent(self.agent, self.line, what, detail)
            for listen in self.machine.probe.sync:
                listen(event)

    def sleep(self, nanoseconds: Value) -> None:
        """nanosleep: only timing cares, and for how long the lane sleeps that sleeps longest; its tables have the rest."""
        if self.machine.timed:
            bound = self.machine.program[self.segment].instructions[0]
            if bound.instruction.guard is not None or not isinstance(bound.args[0], ConstantArg):
                owner = self.acting or self
                owner.sleeps[len(owner.trail)] = int(np.max(nanoseconds))

    # -- shared by the families above ---------------------------------------------------------------------

    def _uniform(self, value: Value, what: str) -> int:
        if isinstance(value, np.ndarray):
            if (value != value[0]).any():
                raise self.fault(f"{what} differs between lanes of one warp")
            self.settle()
            return int(value[0])
        return value

    def _barrier_event(
        self,
        kind: str,
        what: str,
        barrier: Any,
        phase: int,
        count: int,
        sem: str = "",
        scope: str = "",
    ) -> None:
        if self.machine.probe.barrier:
            event = BarrierEvent(
                self.agent, self.line, kind, what, barrier, phase, count, sem, scope, -1
            )
            for listen in self.machine.probe.barrier:
                listen(event)

    def after_exit(self) -> None:
        """Let whoever counts or gathers live threads look again."""
        cta = self.cta
        self.regroup()
        if cta.register_moves:
            self.check_moves_at_exit()
        for named in list(cta.named.values()):
            if named.is_idle:
                continue
            for warp in self.warps:
                if warp in named.partial:
                    named.enter(warp, 0, cta.live_lanes(warp))
            if cta.live:
                self._named_complete(cta, named)
        cluster, states = cta.cluster.barrier, cta.cluster_arrived
        cluster.arrived -= int(np.count_nonzero(states[self.tids] == 1))
        states[self.tids] = 0
        if self.machine.cluster_size > 1 or cluster.arrived:
            self.cluster_maybe_complete()


def _first_thread(waiter: tuple[Any, Wait]) -> int:
    return int(waiter[0].tids[0])


def _reduce(entries: list[tuple[str, Predicate, int]]) -> Any:
    """Combine the predicates of bar.red."""
    if not entries:
        return None
    operation = entries[0][0]
    total = held = 0
    for _, predicate, count in entries:
        total += count
        held += (
            int(np.count_nonzero(predicate))
            if isinstance(predicate, np.ndarray)
            else count * bool(predicate)
        )
    return {"popc": held, "and": held == total, "or": held > 0}[operation]

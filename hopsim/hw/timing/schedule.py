"""The `timed` schedule: a discrete-event simulation of the chip that decides when strands step and operations land.

The clock is a SimPy environment; one unit is one cycle of the SM clock. A strand takes a step, then
its cost is worked out from what it executed (`costs`, the units of its SM), and its next step is
set for when it can issue again. What only the strand itself can notice (wgmma, fences, waits that
park) executes ahead of the clock, with the time it belongs to; whatever others see happens at its
time.

Values are never looked at.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np
from simpy.core import EmptySchedule

from hopsim.config import HardwareConfig
from hopsim.errors import LaunchError
from hopsim.hw.machine.barriers import NamedBarrier
from hopsim.hw.machine.cta import Cluster, Cta
from hopsim.hw.machine.launch import Machine
from hopsim.hw.machine.memory import GLOBAL_BASE
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.schedule import Outcome, Schedule
from hopsim.hw.machine.strand import StrandCore
from hopsim.hw.machine.tensor_queue import Group
from hopsim.hw.machine.waiting import Wait
from hopsim.hw.timing.actor import Actor, Clock, GroupLanding, Landing, Moment, Placed
from hopsim.hw.timing.bookings import Bookings
from hopsim.hw.timing.charge import Charge
from hopsim.hw.timing.costs import CostTable, Head, Stall
from hopsim.hw.timing.counters import Totals, counters
from hopsim.hw.timing.cta_scheduler import Placement
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.fabric import Fabric
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.occupancy import WARP, occupancy
from hopsim.hw.timing.recorder import Recorder
from hopsim.hw.timing.recording import Recording
from hopsim.hw.timing.sm import Port, Sm
from hopsim.hw.timing.tensor_core import WarpgroupQueue
from hopsim.hw.timing.thread_access import ThreadAccess

# A strand that executes ahead of the clock gives others a turn after so many steps.
RUN_AHEAD_STEPS: Final = 64
PROGRESS_EVENTS: Final = 4096
WARM_LINES: Final = 4096
COLLECT_AFTER: Final = 100_000

Progress = Callable[[float], None]


class TimedSchedule(Schedule):
    """Discrete-event timing of the whole chip.

    Args:
        config: numbers of the chip.
        warm: (address, bytes) of global memory that is in L2 before the launch; nothing by default.
        max_cycles: give up there (`cap`).
        recorder: hears intervals for a timeline.
        progress: called now and then with the share of clusters that are done.
    """

    name = "timed"
    fuse = True
    timed = True

    def __init__(
        self,
        config: HardwareConfig,
        *,
        warm: Sequence[tuple[int, int]] = (),
        max_cycles: int | None = None,
        recorder: Recorder | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.config = config
        self.max_cycles = max_cycles
        self._recording = None if recorder is None else Recording(recorder)
        self.progress = progress
        self.env = Clock()
        self.totals = Totals()
        self.dram = DramChannels(config.dram)
        self.l2 = L2Cache(config.l2, self.dram, config.device.gpc_sm_counts)
        self.l2.tags.cover(GLOBAL_BASE, GLOBAL_BASE)
        self.fabric = Fabric(config.dsmem, config.device.sm_count)
        self.sms: list[Sm] = []
        self.now = 0.0
        self._warm = warm
        self._machine: Machine | None = None
        self._actors: dict[Any, Actor] = {}
        self._current: Actor | None = None
        self._runnable: list[Actor] = []
        # Strands spawned in the step that runs, and after how many of its segments.
        self._newborn: list[tuple[Actor, int]] = []
        self._ended: list[Cta] = []
        self._arrive_extra = 0.0
        self._arrive_latency = float(config.mbarrier.arrive_latency_cycles)
        self._next_launch = 0.0
        self._starting = 0
        self._end = 0.0
        self._peeked_at = -1
        barrier = config.barrier
        self._wake_latency: dict[str, tuple[float, Stall]] = {
            "mbarrier": (float(config.mbarrier.wakeup_latency_cycles), Stall.MBARRIER),
            "named barrier": (float(barrier.bar_sync_latency_cycles), Stall.BARRIER),
            "cluster barrier": (
                float(barrier.cluster_barrier_latency_cycles),
                Stall.CLUSTER_BARRIER,
            ),
            "wgmma group": (config.tensor.wait_cycles, Stall.GMMA),
            "bulk group": (config.cp_async.wait_cycles, Stall.BULK_GROUP),
            "cp.async group": (config.cp_async.wait_cycles, Stall.COPY_GROUP),
            "registers": (float(barrier.setmaxnreg_cycles), Stall.REGISTERS),
            "collective": (0.0, Stall.CONVERGENCE),
            "sleep": (0.0, Stall.SLEEPING),
        }

    # -- the run -----------------------------------------------------------------------------------

    def run(self, machine: Machine) -> Outcome:
        """Simulate the launch.

        Raises:
            LaunchError: a CTA, or a cluster, does not fit on the chip.
        """
        config, env = self.config, self.env
        self._machine = machine
        self._occupancy = occupancy(
            config.device, machine.threads, machine.registers_per_thread, machine.shared_bytes
        )
        self._placement = Placement(config.device, self._occupancy.ctas_per_sm)
        if machine.cluster_size > self._placement.largest_cluster():
            raise LaunchError(
                f"a cluster of {machine.cluster_size} CTAs fits in no GPC "
                f"({self._placement.largest_cluster()} places in the largest)",
                hint="use smaller clusters, or less shared memory and registers a CTA",
            )
        resident_shared = self._occupancy.shared_bytes_per_cta * self._occupancy.ctas_per_sm
        placement = self._placement
        ports = [Port() for _ in range(placement.tpc_count)]
        self.sms = [
            Sm(config, number, placement.gpc_of[number], ports[tpc], resident_shared)
            for number, tpc in enumerate(placement.tpc_of)
        ]
        self._costs = CostTable(config, machine.program, machine.threads)
        self._bookings = Bookings(config, self.sms, self.l2, self.fabric)
        accesses = ThreadAccess(config, self.sms, self.l2, self.fabric)
        self._charge = Charge(
            config,
            self._costs,
            accesses,
            self.totals,
            self._book,
            self._commit,
            machine.setup.serialised_wgmma,
        )
        self._fill_l2()
        if self._recording is not None:
            machine.probe.barrier.append(self._recording.barrier)
        launch = config.launch
        # The overhead is that of an empty kernel with one CTA an SM; their launch is simulated.
        warps = -(-machine.threads // WARP)
        self._launch_interval = (
            launch.cta_launch_interval_cycles + launch.warp_launch_interval_cycles * warps
        )
        simulated = self._launch_interval * len(self.sms)
        simulated += launch.cta_launch_cycles + launch.cta_retire_cycles
        before = max(0.0, launch.kernel_overhead_cycles - simulated)
        Moment(env, self._launch_more).set(before)
        with _rare_collection():
            ended = self._loop(machine)
        self._end = max(self._end, float(env.now)) if ended != "finished" else self._end
        cycles = int(np.ceil(self._end))
        for sm in self.sms:
            if sm.ctas:
                sm.active_cycles += self._end - sm.active_since
        outcome = Outcome(ended, cycles)
        outcome.facts = {
            "counters": counters(cycles, self.sms, self.l2, self.dram, self.fabric, self.totals),
            "stalls": self.totals.shares(),
            "occupancy": replace(self._occupancy, sms_used=sum(sm.used for sm in self.sms)),
        }
        if ended != "finished":
            outcome.stuck = list(machine.waiting)
        return outcome

    def _loop(self, machine: Machine) -> str:
        env = self.env
        step = env.step
        limit = float("inf") if self.max_cycles is None else self.max_cycles
        totals = self.totals
        progress = self.progress
        goal = machine.cluster_count
        while True:
            try:
                step()
            except EmptySchedule:
                if machine.clusters_done == goal:
                    return "finished"
                if not (self._peek(machine) or self._part_warps(machine)):
                    return "deadlock"
                continue
            totals.events += 1
            if totals.events % PROGRESS_EVENTS == 0 and progress is not None:
                progress(machine.clusters_done / goal)
            if env.now > limit:
                return "cap"

    def _peek(self, machine: Machine) -> bool:
        """When nothing can happen, tell parked `try_wait`s "not yet", once."""
        parked = [
            (strand, strand.waiting.subject)
            for strand in machine.waiting
            if strand.waiting is not None and strand.waiting.kind == "mbarrier"
        ]
        if not parked or machine.version <= self._peeked_at:
            return False
        # Their time limit ends the wait.
        self.now = self.env.now + float(self.config.mbarrier.suspend_limit_cycles)
        for strand, barrier in parked:
            strand.peek = True
            if strand in barrier.waiters:
                barrier.waiters.remove(strand)
            machine.wake(strand)
        self._peeked_at = machine.version
        self._drain()
        return True

    def _part_warps(self, machine: Machine) -> bool:
        """When nothing can happen, lanes that wait to meet others of their warp go on alone."""
        self.now = float(self.env.now)
        parted = machine.part_warps()
        self._drain()
        return parted

    def _fill_l2(self) -> None:
        """Put warm memory into L2."""
        line = self.config.l2.line_bytes
        for address, count_bytes in self._warm:
            lines = np.arange(
                address // line, (address + count_bytes - 1) // line + 1, dtype=np.int64
            )
            for first in range(0, len(lines), WARM_LINES):
                self.l2.warm(self.l2.tags.number(lines[first : first + WARM_LINES] * line))

    # -- clusters ----------------------------------------------------------------------------------

    def _launch_more(self, _: Moment) -> None:
        """Place clusters while there is room."""
        machine, launch = self._machine, self.config.launch
        assert machine is not None
        size = machine.cluster_size
        while machine.clusters_started + self._starting < machine.cluster_count:
            sms = self._placement.place(size)
            if sms is None:
                return
            time = max(float(self.env.now), self._next_launch)
            self._next_launch = time + self._launch_interval * size
            start = time + launch.cta_launch_cycles
            if size > 1:
                start += launch.cluster_launch_cycles
            self._starting += 1
            Placed(self.env, self._start_cluster, sms).set(start)

    def _start_cluster(self, event: Placed) -> None:
        machine = self._machine
        assert machine is not None
        self._starting -= 1
        self.now = float(self.env.now)
        self._current = None
        for sm in event.sms:
            self.sms[sm].enter(self.now)
        cluster = machine.start_next_cluster(event.sms)
        if self._recording is not None:
            for cta in cluster.ctas:
                self._recording.started(cta, self.sms[cta.sm].name)
        self._drain()

    def _free_place(self, event: Placed) -> None:
        for sm in event.sms:
            self._placement.release(sm)
        self._launch_more(event)

    def _end_ctas(self, time: float) -> None:
        """CTAs whose last thread left in this step: their places become free a little later."""
        for cta in self._ended:
            self.sms[cta.sm].leave(time)
            free = time + self.config.launch.cta_retire_cycles
            self._end = max(self._end, free)
            Placed(self.env, self._free_place, (cta.sm,)).set(free)
            for warpgroup in cta.warpgroups:
                self._charge.forget(warpgroup)
        self._ended.clear()

    # -- told by the machine -----------------------------------------------------------------------

    def spawned(self, strand: Any) -> None:
        """A strand is new, or goes on after a join: it issues when the step that caused it has."""
        actor = self._actors.get(strand)
        if actor is None:
            cta: Cta = strand.cta
            actor = Actor(self.env, self._wake, strand, self.sms[cta.sm])
            self._actors[strand] = actor
            actor.time = actor.active_since = self.now
        actor.resume = self.now
        actor.waited = Stall.CONVERGENCE
        parent = self._current
        self._newborn.append((actor, 0 if parent is None else len(parent.strand.trail)))

    def woken(self, strand: Any, wait: Wait) -> None:
        """What a strand waited for happened."""
        actor = self._actors[strand]
        latency, stall = self._wake_latency[wait.kind]
        if stall is Stall.BARRIER:
            latency += self.config.barrier.bar_sync_warp_cycles * self._parties(actor, wait.subject)
        actor.resume = self.now + self._arrive_extra + latency
        actor.waited = stall
        actor.resumed = wait.kind != "collective"
        if self._recording is not None and wait.kind == "mbarrier":
            self._recording.woken(actor, wait.subject, self.now)
        self._runnable.append(actor)

    def _parties(self, actor: Actor, barrier: NamedBarrier) -> int:
        """Return how many warps meet at a named barrier."""
        assert self._machine is not None
        threads = self._machine.threads if barrier.count is None else barrier.count
        return -(-threads // WARP)

    def retired(self, strand: Any) -> None:
        """A strand is gone."""
        actor = self._actors.pop(strand)
        actor.sm.issue.admit(actor.ports, -1)
        if actor is not self._current and self.now > actor.time:
            # It waited until it became part of another one.
            wait: Wait | None = strand.waiting
            stall = Stall.CONVERGENCE if wait is None else self._wake_latency[wait.kind][1]
            self.totals.stalls[stall] += (self.now - actor.time) * actor.warps

    def issued(self, operation: Operation) -> None:
        """An operation is in flight; it is booked when the step's times are known."""
        actor = self._current
        position = 0 if actor is None else len(actor.strand.trail)
        self._charge.issued.append((position, operation))

    def committed(self, group: Group) -> None:
        """A wgmma group is complete."""
        actor = self._current
        assert actor is not None, "a wgmma group was committed outside a step"
        self._charge.committed.append((len(actor.strand.trail), group))

    def cta_done(self, cta: Cta) -> None:
        """All threads of a CTA have exited."""
        self._ended.append(cta)

    def cluster_done(self, cluster: Cluster) -> None:
        """All CTAs of a cluster are done; their places are freed one by one."""

    def clock(self, strand: Any) -> int:
        """Return the cycle a strand is at."""
        return int(self.now)

    # -- strands -----------------------------------------------------------------------------------

    def _wake(self, actor: Actor) -> None:
        self._run(actor, actor.time)
        if self._runnable:
            self._drain()

    def _drain(self) -> None:
        """Set strands going that can: at once where nobody can tell, else at their time."""
        if self._newborn:
            self._runnable += [child for child, _ in self._newborn]
            self._newborn.clear()
        costs = self._costs.segments
        while self._runnable:
            batch = self._runnable
            self._runnable = []
            for actor in batch:
                if actor.strand.done:
                    continue
                waited = actor.resume - actor.time
                if waited > 0:
                    self.totals.stalls[actor.waited] += waited * actor.warps
                    if self._recording is not None:
                        self._recording.waited(actor)
                    actor.time = actor.resume
                if costs[actor.strand.segment].private:
                    self._run(actor, actor.time)
                else:
                    actor.set(actor.time)

    def _run(self, actor: Actor, time: float) -> None:
        """Step a strand from `time` on until it must wait for the clock or for others."""
        strand = actor.strand
        if strand.lanes != actor.lanes:
            actor.refresh()
        costs = self._costs.segments
        charge = self._charge
        cost = costs[strand.segment]
        for _ in range(RUN_AHEAD_STEPS):
            self.now = time
            if self._recording is not None:
                self._recording.now = time
            self._current = actor
            if cost.head is Head.ARRIVE:
                # Whom the arrival wakes notices it after its latency.
                self._arrive_extra = self._arrive_latency + cost.block
                more = strand.step()
                self._arrive_extra = 0.0
            else:
                more = strand.step()
            if strand.lanes != actor.lanes and not strand.done:
                actor.refresh()
            time = charge.step(actor, time)
            self._current = None
            actor.time = time
            if self._newborn:
                self._begin_children(strand, time)
            if strand.done and actor.pending:
                # A warp that has loads on their way exits when they are back.
                time = max(time, max(when for when, _ in actor.pending.values()))
            if self._ended:
                self._end_ctas(time)
            if not more:
                if self._recording is not None:
                    self._recording.ran(actor)
                return
            cost = costs[strand.segment]
            if not cost.private and (self._runnable or not self.env.is_next(time)):
                break
        actor.set(time)

    def _begin_children(self, parent: StrandCore, time: float) -> None:
        """Let strands go on that a step spawned: when it had come to where they left it."""
        trail = parent.trail
        for child, count in self._newborn:
            ahead = count < len(trail)
            left = self.now + self._charge.length(trail[:count]) if ahead else time
            child.resume = max(child.resume, left)
            self._runnable.append(child)
        self._newborn.clear()

    # -- operations --------------------------------------------------------------------------------

    def _book(self, operation: Operation, time: float) -> None:
        """Book a copy and set its landing."""
        first, second = self._bookings.book(operation, time)
        Landing(self.env, self._land, operation, second).set(first)
        if self._recording is not None:
            self._recording.booked(operation, time, second)

    def _commit(self, actor: Actor, group: Group, queue: WarpgroupQueue, time: float) -> None:
        """Set the landing of a wgmma group."""
        tensor = actor.sm.tensor
        run = tensor.close(queue)
        landing = GroupLanding(self.env, self._land_group, group, tensor, run)
        landing.set(max(tensor.complete(run), time))

    def _land(self, event: Landing) -> None:
        """Do the next stage of an operation."""
        operation = event.operation
        self._begin_landing()
        assert self._machine is not None
        if self._recording is not None:
            self._recording.landing(operation, self.now)
        self._end = max(self._end, self.now)
        if self._machine.land(operation):
            self._bookings.landed(operation)
        else:
            event.set(event.later)
        self._end_landing()

    def _land_group(self, event: GroupLanding) -> None:
        """Land all operations of a wgmma group, in order, unless others took turns before them meanwhile."""
        if not event.tensor.has_completed(event.run, float(self.env.now)):
            event.set(event.tensor.complete(event.run))
            return
        self._begin_landing()
        assert self._machine is not None
        if self._recording is not None:
            self._recording.multiplied(event.group, event.run)
        self._machine.land_group(event.group)
        self._end_landing()

    def _begin_landing(self) -> None:
        self.now = float(self.env.now)
        self._current = None

    def _end_landing(self) -> None:
        """Go on with whom the landing woke; what it issued is booked now."""
        issued = self._charge.issued
        if issued:
            fresh = [operation for _, operation in issued]
            issued.clear()
            for operation in fresh:
                self._book(operation, self.now)
        if self._recording is not None:
            self._recording.landed()
        if self._runnable or self._newborn:
            self._drain()


@contextmanager
def _rare_collection() -> Generator[None]:
    """Let Python look for garbage cycles seldom: a run makes many objects and few cycles."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()

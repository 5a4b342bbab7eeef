"""The `timed` schedule: a discrete-event simulation of the chip that decides when strands step and operations land.

The clock is a SimPy environment; one unit is one cycle of the SM clock. A strand takes a step, then
its cost is worked out from what it executed (`costs`, the units of its SM), and its next step is
set for when it can issue again. What only the strand itself can notice (wgmma, fences, waits that
park) executes ahead of the clock, with the time it belongs to; whatever others see happens at its
time.

Values are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
from simpy.core import EmptySchedule

from hopsim.config import HardwareConfig
from hopsim.hw.machine.cta import Cluster, Cta
from hopsim.hw.machine.launch import Machine
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.schedule import Outcome, Schedule
from hopsim.hw.machine.spinning import Peeks
from hopsim.hw.machine.strand import StrandCore
from hopsim.hw.machine.tensor_queue import Group
from hopsim.hw.machine.thread_groups import WARPGROUP
from hopsim.hw.machine.waiting import Wait
from hopsim.hw.timing.actor import Actor, Clock
from hopsim.hw.timing.bookings import Bookings
from hopsim.hw.timing.charge import Charge
from hopsim.hw.timing.chip import Chip
from hopsim.hw.timing.clock import LoadClock
from hopsim.hw.timing.costs import CostTable
from hopsim.hw.timing.counters import Totals, counters
from hopsim.hw.timing.crowding import Crowds
from hopsim.hw.timing.first_touch import FirstTouch
from hopsim.hw.timing.heads import Head
from hopsim.hw.timing.landings import Landings
from hopsim.hw.timing.launcher import Launcher
from hopsim.hw.timing.recorder import Recorder
from hopsim.hw.timing.recording import Recording
from hopsim.hw.timing.register_room import room_for_loads
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.standstill import Standstill
from hopsim.hw.timing.thread_access import ThreadAccess
from hopsim.hw.timing.wakeups import WakeUps
from hopsim.hw.timing.wgmma_issue import WgmmaIssue

# A strand that executes ahead of the clock gives others a turn after so many steps.
RUN_AHEAD_STEPS: Final = 64
PROGRESS_EVENTS: Final = 4096

Progress = Callable[[float], None]


class TimedSchedule(Schedule):
    """Discrete-event timing of the whole chip.

    Args:
        config: numbers of the chip.
        warm: (address, bytes) of global memory that is in L2 before the launch; nothing by default.
        warm_code: whether the SMs have the code already.
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
        warm_code: bool = False,
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
        self.now = 0.0
        self._warm = warm
        self._warm_code = warm_code
        self._machine: Machine | None = None
        self._actors: dict[Any, Actor] = {}
        self._current: Actor | None = None
        self._runnable: list[Actor] = []
        # Strands spawned in the step that runs, and after how many of its segments.
        self._newborn: list[tuple[Actor, int]] = []
        self._ended: list[Cta] = []
        self._arrive_extra = 0.0
        self._arrive_latency = float(config.mbarrier.arrive_latency_cycles)
        self._end = 0.0
        self._peeks = Peeks()
        self._standstill = Standstill(self.env)

    # -- the run -----------------------------------------------------------------------------------

    def run(self, machine: Machine) -> Outcome:
        """Simulate the launch.

        Raises:
            LaunchError: a CTA, or a cluster, does not fit on the chip.
        """
        config, env = self.config, self.env
        self._machine = machine
        self._chip = chip = Chip(config, machine)
        sms = chip.sms
        self._costs = CostTable(
            config,
            machine.program,
            machine.threads,
            machine.setup.parameter_offsets,
            chip.shares_sms,
            room_for_loads(
                config.device,
                machine.registers_per_thread,
                machine.threads if machine.setup.has_register_bound else None,
            ),
            machine.setup.kept_loops,
        )
        self._landings = Landings(
            env,
            machine,
            Bookings(config, sms, chip.l2, chip.fabric),
            self._recording,
            self._begin_landing,
            self._end_landing,
        )
        self._wake_ups = WakeUps(config)
        accesses = ThreadAccess(config, sms, chip.l2, chip.fabric, chip.local_memory(machine))
        serialised = machine.threads // WARPGROUP if machine.setup.serialised_wgmma else 0
        self._wgmma = WgmmaIssue(self.totals.stalls, self._landings.commit, serialised)
        self._crowds = Crowds(self.totals.stalls)
        self._charge = Charge(
            config,
            self._costs,
            accesses,
            self.totals,
            self._landings.book,
            self._wgmma,
            self._crowds,
            None
            if self._warm_code
            else FirstTouch(config, self._costs.segments, len(sms), chip.busy),
        )
        self._clock = LoadClock(
            config.clock, config.device.clock_hz, chip.sms_of_gpcs, chip.l2, [chip.l2, chip.dram, *chip.gpcs]
        )  # fmt: skip
        chip.warm(self._warm, config.l2.line_bytes)
        if self._recording is not None:
            machine.probe.barrier.append(self._recording.barrier)
        self._launcher = Launcher(config.launch, machine, chip, env, self._start_cluster)
        try:
            ended = self._loop(machine)
        finally:
            # A fault ends it too.
            if self._recording is not None:
                self._recording.ended(float(env.now))
        self._end = max(self._end, self._landings.last)
        self._end = max(self._end, float(env.now)) if ended != "finished" else self._end
        if ended == "finished":
            # What threads have stored is on its way when they exit; the trip itself is part of the overhead.
            self._end = max(self._end, max(sm.stored for sm in sms) - chip.l2.near)
        for sm in sms:
            if sm.ctas:
                sm.active_cycles += self._end - sm.active_since
        counted, mean_hz, sustained_hz = self._clock.finish(self._end)
        cycles = int(np.ceil(counted))
        facts: dict[str, Any] = {
            "clock_hz": round(mean_hz),
            "counters": {
                **counters(cycles, sms, chip.l2, chip.dram, chip.fabric, self.totals),
                "hopsim__clock_launch.hz": round(mean_hz),
                "hopsim__clock_sustained.hz": round(sustained_hz),
            },
            "stalls": self.totals.shares(),
            "occupancy": replace(chip.occupancy, sms_used=sum(sm.used for sm in sms)),
        }
        return Outcome(ended, cycles, facts)

    def _loop(self, machine: Machine) -> str:
        env = self.env
        step = env.step
        limit = float("inf") if self.max_cycles is None else self.max_cycles
        totals = self.totals
        progress = self.progress
        clock = self._clock
        goal = machine.cluster_count
        while True:
            try:
                step()
            except EmptySchedule:
                if machine.clusters_done == goal:
                    return "finished"
                if not self._goes_on(machine):
                    return "deadlock"
                continue
            totals.events += 1
            if progress is not None and totals.events % PROGRESS_EVENTS == 0:
                progress(machine.clusters_done / goal)
            now = env.now
            if now >= clock.next_look:
                clock.advance(float(now))
                if (
                    machine.clusters_done < goal
                    and self._standstill.is_reached(machine)
                    and not self._goes_on(machine)
                ):
                    machine.spinning = [actor.strand for actor in env.pending()]
                    return "deadlock"
            if now > limit:
                # At the very start there are clusters to place, and nobody to step.
                actors = [one for one in env.pending() if isinstance(one, Actor)]
                machine.spinning = [cast("Any", one.strand) for one in actors]
                return "cap"

    def _goes_on(self, machine: Machine) -> bool:
        """When nothing can happen, tell parked `try_wait`s "not yet", or let lanes go on without others of their warp."""
        # Their time limit ends the wait, which may have begun ahead of the clock.
        self.now = max(self.now, self.env.now) + float(self.config.mbarrier.suspend_limit_cycles)
        if not self._peeks.tell(machine):
            self.now = float(self.env.now)
            if not machine.part_warps():
                return False
        self._drain()
        return True

    # -- clusters ----------------------------------------------------------------------------------

    def _start_cluster(self, index: int, places: tuple[int, ...]) -> None:
        """Let the first instructions of a cluster, by its number, issue on these SMs."""
        machine = self._machine
        assert machine is not None
        self.now = float(self.env.now)
        self._current = None
        if machine.clusters_started == 0:
            # Until here nothing worked.
            self._clock.advance(self.now)
        for sm in places:
            self._chip.sms[sm].enter(self.now)
        cluster = machine.start_cluster(index, places)
        if self._recording is not None:
            for cta in cluster.ctas:
                self._recording.started(cta, self._chip.sms[cta.sm].name)
        self._drain()

    def _end_ctas(self, time: float) -> None:
        """CTAs whose last thread left in this step: their places become free a little later."""
        for cta in self._ended:
            self._chip.sms[cta.sm].leave(time)
            self._end = max(self._end, self._launcher.retire(cta.sm, time))
            for warpgroup in cta.warpgroups:
                self._wgmma.forget(warpgroup, self._chip.sms[cta.sm])
        self._ended.clear()

    # -- told by the machine -----------------------------------------------------------------------

    def spawned(self, strand: Any) -> None:
        """A strand is new, or goes on after a join: it issues when the step that caused it has."""
        actor = self._actors.get(strand)
        if actor is None:
            cta: Cta = strand.cta
            actor = Actor(self.env, self._wake, strand, self._chip.sms[cta.sm])
            self._actors[strand] = actor
            actor.time = actor.active_since = self.now
        actor.resume = self.now
        actor.waited = Stall.CONVERGENCE
        parent = self._current
        self._newborn.append((actor, 0 if parent is None else len(parent.strand.trail)))

    def woken(self, strand: Any, wait: Wait) -> None:
        """What a strand waited for happened."""
        actor = self._actors[strand]
        block = self._costs.segments[actor.strand.segment].block
        latency, stall = self._wake_ups.after(wait, block)
        actor.resume = self.now + self._arrive_extra + latency
        if wait.kind == "mbarrier" and actor.strand.is_awaited:
            actor.resume = self._wake_ups.looked(actor.time, actor.resume)
        actor.waited = stall
        if wait.kind == "bulk group" and not actor.resumed:
            # (Who looked too early waits on.)
            actor.alone = actor.time
        actor.resumed = wait.kind != "collective"
        if self._recording is not None and wait.kind == "mbarrier":
            self._recording.woken(actor, wait.subject, self.now)
        self._runnable.append(actor)

    def retired(self, strand: Any) -> None:
        """A strand is gone."""
        actor = self._actors.pop(strand)
        actor.sm.issue.admit(actor.ports, -1)
        if actor is not self._current and self.now > actor.time:
            # It waited until it became part of another one.
            stall = self._wake_ups.stall(strand.waiting)
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
        if actor.crowding is not None:
            self._crowds.settle(actor, actor.crowding)
            if actor.time > self.env.now:
                actor.set(actor.time)
                return
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
                if actor.crowding is not None:
                    self._crowds.settle(actor, actor.crowding)
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
        if actor.postponed and charge.postponed.are_due(actor, cost, strand.segment):
            time = actor.time = charge.postponed.issue(actor, time, time)
            if actor.postponed:
                actor.time = charge.postponed.await_first(actor, time)
                actor.set(actor.time)
                return
            time = actor.time = charge.await_operands(actor, cost, time)
            if not self.env.is_next(time):
                actor.set(time)
                return
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
            time = charge.step(actor, time)
            if strand.lanes != actor.lanes and not strand.done:
                actor.refresh()
            self._current = None
            actor.time = time
            if self._newborn:
                self._begin_children(strand, time)
            if strand.sleeps:
                strand.sleeps.clear()
            if strand.matched:
                strand.matched.clear()
            if strand.done and actor.pending:
                # A warp that has loads on their way exits when they are back.
                time = max(time, max(when for when, _ in actor.pending.values()))
            if self._ended:
                self._end_ctas(time)
            if not more:
                if self._recording is not None:
                    self._recording.ran(actor)
                return
            if actor.crowding is not None:
                # What it does next comes when it is known for how long the tensor cores worked.
                break
            cost = costs[strand.segment]
            if actor.postponed and charge.postponed.are_due(actor, cost, strand.segment):
                # Whoever has an address before goes first.
                time = actor.time = charge.postponed.await_first(actor, time)
                break
            if cost.in_turn:
                # It comes to its pipe when it has its operands: whoever has theirs before goes first.
                time = actor.time = charge.await_operands(actor, cost, time)
            if not cost.private and (self._runnable or not self.env.is_next(time)):
                break
        actor.set(time)

    def _begin_children(self, parent: StrandCore, time: float) -> None:
        """Let strands go on that a step spawned: when it had come to where they left it."""
        trail = parent.trail
        for child, count in self._newborn:
            ahead = count < len(trail)
            left = self.now + self._charge.length(parent, count) if ahead else time
            child.resume = max(child.resume, left)
            self._runnable.append(child)
        self._newborn.clear()

    # -- landings ----------------------------------------------------------------------------------

    def _begin_landing(self) -> None:
        """Let what happens to the machine happen now, to no strand that steps."""
        self.now = float(self.env.now)
        self._current = None

    def _end_landing(self) -> None:
        """Go on with whom the landing woke; what it issued is booked now."""
        issued = self._charge.issued
        if issued:
            fresh = [operation for _, operation in issued]
            issued.clear()
            for operation in fresh:
                self._landings.book(operation, self.now)
        if self._recording is not None:
            self._recording.landed()
        if self._runnable or self._newborn:
            self._drain()

"""What a step cost: walks the segments a strand has just executed and moves its clock.

For each segment: stalls for results that are still on their way, the head (memory, wgmma, copies,
barriers), the plain run. Then the issue slots of all of it are taken from the strand's
sub-partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopsim.config import HardwareConfig
from hopsim.hw.machine.access_notes import AccessNote
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.strand import StrandCore
from hopsim.hw.machine.tensor_queue import Group
from hopsim.hw.timing.actor import Actor, Crowding
from hopsim.hw.timing.coming_results import PENDING_KEPT, ComingResults, forget_past
from hopsim.hw.timing.costs import CostTable, SegmentCost
from hopsim.hw.timing.counters import Totals
from hopsim.hw.timing.crowding import LEAST_CROWDED, Crowds
from hopsim.hw.timing.first_touch import FirstTouch
from hopsim.hw.timing.heads import NANOSECONDS, Head
from hopsim.hw.timing.paths import Path, PathCosts, Walk, tested_after
from hopsim.hw.timing.postponed import Postponed, PostponedLoads
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.thread_access import ThreadAccess
from hopsim.hw.timing.wgmma_issue import WgmmaIssue
from hopsim.isa.program.codegen import Segment

STEPS_KEPT: Final = 4096


class Known:
    """A step seen before: its cost, or its outline if only the run knows that; which SMs have executed it (a bit each)."""

    __slots__ = ("executed", "path")

    def __init__(self, path: Path | Walk) -> None:
        self.path = path
        self.executed = 0


class Charge(ComingResults):
    """Charges steps.

    Args:
        config: latencies.
        costs: of the program.
        accesses: books loads and stores.
        totals: where warp cycles and instructions are counted.
        book: called with (operation, time of issue) for copies.
        wgmma: books wgmma and commits groups of them.
        crowds: notes arithmetic beside the tensor cores.
        fetch: of code and parameters that an SM uses for the first time; None: all is there.
    """

    def __init__(
        self,
        config: HardwareConfig,
        costs: CostTable,
        accesses: ThreadAccess,
        totals: Totals,
        book: Callable[[Operation, float], None],
        wgmma: WgmmaIssue,
        crowds: Crowds,
        fetch: FirstTouch | None = None,
    ) -> None:
        super().__init__(config, totals.stalls)
        self._costs = costs.segments
        self._accesses = accesses
        self._totals = totals
        self._book = book
        self._wgmma = wgmma
        self._crowds = crowds
        self._mbarrier = config.mbarrier
        self._state = float(config.mbarrier.state_latency_cycles)
        self._fence_again = float(config.fence.again_cycles)
        self._nanosecond = NANOSECONDS * config.device.clock_hz
        self._staged = float(config.fence.staged_cycles)
        self.postponed = PostponedLoads(accesses, totals.stalls, self._defer)
        self._path_costs = PathCosts(config, costs.segments)
        self._fetch = fetch
        self._steps: dict[tuple[object, ...], Known] = {}
        # Issued or committed in the step that runs, with the position in the strand's trail.
        self.issued: list[tuple[int, Operation]] = []
        self.committed: list[tuple[int, Group]] = []

    def length(self, strand: StrandCore, count: int) -> float:
        """Return the cycles of the first `count` segments of a step when nothing stalls them."""
        costs = [self._costs[segment.number] for segment in strand.trail[:count]]
        slept = sum(time for position, time in strand.sleeps.items() if position < count)
        return sum(cost.block + cost.span for cost in costs) + slept * self._nanosecond

    def step(self, actor: Actor, start: float) -> float:
        """Charge the step that `actor` took at `start`; return when it can issue again."""
        strand = actor.strand
        trail = strand.trail
        if not trail:
            # Nothing completed: the strand waits, or was divided before its instruction.
            if self.issued or self.committed:
                self._flush(actor, start)
            return start
        key = (actor.resumed, actor.warps, strand.segment, *trail)
        known = self._steps.get(key)
        if known is None:
            known = self._learn(key, trail, actor)
        if not known.executed >> actor.sm.number & 1:
            start = self._first(known, actor, start)
        path = known.path
        if isinstance(path, Walk):
            return self._walk(actor, path, start)
        actor.resumed = False
        time = start
        if path.after_mma and actor.mma_taken > time:
            time = self._issue_all_mma(actor, time)
        pending = actor.pending
        if pending and not pending.keys().isdisjoint(path.reads):
            # The whole step waits for what it reads: of the few instructions before, none is long.
            time = self._stall(actor, path.reads, time)
        if self.issued or self.committed:
            time = self._act(actor, path, time)
        for when in path.prefetches:
            actor.sm.tma.prefetch_map(start + when)
        for register, when, stall in path.late:
            pending[register] = (time + when, stall)
        time += path.total
        warps = actor.warps
        stalls = self._stalls
        slots = path.slots
        issued_by = actor.sm.issue.book(actor.ports, start, slots)
        if path.crowded_total + path.lost > LEAST_CROWDED and actor.sm.tensor.operations:
            crowding = Crowding(
                time - path.total, time, path.crowded_total, path.crowded_slots, issued_by
            )
            self._crowds.note(actor, crowding, path.lost)
        if issued_by > time:
            stalls[Stall.NOT_SELECTED] += (issued_by - time) * warps
            time = issued_by
        if len(pending) > PENDING_KEPT:
            forget_past(pending, time)
        stalls[Stall.SELECTED] += slots * warps
        for stall, cycles in path.stalls:
            stalls[stall] += cycles * warps
        self._totals.instructions += path.instructions * warps
        return time

    def _learn(self, key: tuple[object, ...], trail: list[Segment], actor: Actor) -> Known:
        """Work out a step that was not seen before."""
        numbers = [segment.number for segment in trail]
        following = actor.strand.segment
        paths = self._path_costs
        path = paths.work_out(numbers, following, actor.resumed, actor.warps)
        known = Known(paths.outline(numbers, following) if path is None else path)
        if len(self._steps) < STEPS_KEPT:
            self._steps[key] = known
        return known

    def _first(self, known: Known, actor: Actor, start: float) -> float:
        """Fetch what an SM executes for the first time; return when it can begin."""
        number = actor.sm.number
        if self._fetch is None:
            known.executed |= 1 << number
            return start
        strand = actor.strand
        numbers = [segment.number for segment in strand.trail]
        passed = self._fetch.passed(numbers, strand.registers)
        if not passed:
            known.executed |= 1 << number
        cycles = self._fetch.first(number, numbers, passed)
        if cycles:
            self._stalls[Stall.NO_INSTRUCTION] += cycles * actor.warps
        return start + cycles

    def _act(self, actor: Actor, path: Path, start: float) -> float:
        """Book what a known step issued and committed; return its start, later by what held the issue."""
        for position, head, when in path.actions:
            time = start + when
            if head is Head.COMMIT:
                self._commit(actor, position, time)
            elif head is Head.TENSOR:
                start += self._issue_tensor(actor, position, time) - time
            else:
                self._book_issued(position, time)
        if self.issued or self.committed:
            self._flush(actor, start)
        return start

    def _walk(self, actor: Actor, walk: Walk, start: float) -> float:
        """Charge a step segment by segment."""
        stalls = self._stalls
        warps = actor.warps
        pending = actor.pending
        time = start
        waited = 0.0
        for position, (cost, taken) in enumerate(walk.segments):
            if actor.unknown and not actor.unknown.isdisjoint(cost.reads):
                before = time
                time = self.postponed.issue(actor, time)
                waited += time - before
            if pending and not pending.keys().isdisjoint(cost.reads):
                before = time
                time = self._stall(actor, cost.reads, time)
                waited += time - before
            if cost.simple:
                time += cost.span
                continue
            if cost.after_mma and actor.mma_taken > time:
                waited += actor.mma_taken - time
                time = self._issue_all_mma(actor, time)
            head = cost.head
            before = time
            if head is Head.MMA:
                time = self._multiply(actor, cost, position, time)
            elif head > Head.FIXED:
                time = self._head(actor, cost, head, position, time)
            elif cost.block and not actor.resumed:
                time += cost.block
                stalls[cost.block_stall] += cost.block * warps
            actor.resumed = False
            for register, when, stall in cost.late:
                pending[register] = (time + when, stall)
            waited += time - before
            time += cost.span
            if taken:
                time += taken
                waited += taken
                stalls[Stall.BRANCH_RESOLVE] += taken * warps
        actor.resumed = False
        slots = walk.slots
        if self.issued or self.committed:
            self._flush(actor, time)
        issued_by = actor.sm.issue.book(actor.ports, start, slots)
        if walk.crowded_total + walk.lost > LEAST_CROWDED and actor.sm.tensor.operations:
            crowding = Crowding(start, time, walk.crowded_total, walk.crowded_slots, issued_by)
            self._crowds.note(actor, crowding, walk.lost)
        if issued_by > time:
            stalls[Stall.NOT_SELECTED] += (issued_by - time) * warps
            waited += issued_by - time
            time = issued_by
        self._totals.instructions += walk.instructions * warps
        stalls[Stall.SELECTED] += slots * warps
        rest = time - start - slots - waited
        if rest > 0.0:
            stalls[Stall.WAIT] += rest * warps
        if len(pending) > PENDING_KEPT:
            forget_past(pending, time)
        return time

    def _book_issued(self, position: int, time: float) -> None:
        """Book what was issued up to a position in the trail."""
        issued = self.issued
        while issued and issued[0][0] <= position:
            self._book(issued.pop(0)[1], time)

    def _commit(self, actor: Actor, position: int, time: float) -> None:
        """Commit the wgmma groups that were complete up to a position in the trail."""
        committed = self.committed
        while committed and committed[0][0] <= position:
            self._wgmma.commit(actor, committed.pop(0)[1], time)

    def _flush(self, actor: Actor, time: float) -> None:
        """Book what no segment of the trail accounts for: copies issued by a head that then parked, or by others."""
        for _, operation in self.issued:
            if operation.unit != "tensor":
                self._book(operation, time)
            else:
                self._wgmma.book(actor, operation, time)
        self.issued.clear()
        for _, group in self.committed:
            self._wgmma.commit(actor, group, time)
        self.committed.clear()

    def _issue_all_mma(self, actor: Actor, time: float) -> float:
        """Wait until the pipe has taken all mma.sync of a strand."""
        self._stalls[Stall.MATH_PIPE_THROTTLE] += (actor.mma_taken - time) * actor.warps
        return actor.mma_taken

    # -- heads -------------------------------------------------------------------------------------

    def _head(
        self, actor: Actor, cost: SegmentCost, head: Head, position: int, time: float
    ) -> float:
        """Charge the head of a segment whose cost is known only now; return when the plain run can begin."""
        stalls = self._stalls
        warps = actor.warps
        begin = time
        if cost.block and not actor.resumed:
            time += cost.block
            stalls[cost.block_stall] += cost.block * warps
            if cost.fences and actor.sm.stored > time:
                # What was stored before a release is to be seen first.
                stalls[cost.block_stall] += (actor.sm.stored - time) * warps
                time = actor.sm.stored
        if head is Head.LEAVE:
            # The warp that waited for stores comes when the fence of the others is under way.
            late = actor.alone + self._fence_again - begin
            if late > 0.0:
                stalls[cost.block_stall] += late * warps
                time += late
            return time
        if head is Head.PUBLISH:
            late = actor.staged + self._staged - begin
            if late > 0.0:
                stalls[cost.block_stall] += late * warps
                time += late
            return time
        if head is Head.SLEEP:
            slept = actor.strand.sleeps.get(position, 0) * self._nanosecond
            stalls[Stall.SLEEPING] += slept * warps
            return time + slept
        if head is Head.TENSOR:
            return self._issue_tensor(actor, position, time)
        if head is Head.COMMIT:
            self._commit(actor, position, time)
            return time
        ready = time
        stall = Stall.WAIT
        if head is Head.BARRIER_WAIT:
            # A strand that was woken pays the wake-up, not the test.
            ready = time if actor.resumed else time + tested_after(self._mbarrier, warps)
            stall = Stall.MBARRIER
        elif head is Head.MEMORY or head is Head.MATRIX_COPY:
            note = actor.strand.access
            if note is not None:
                actor.strand.access = None
                if cost.deferred is not None and cost.deferred.address:
                    self.postponed.keep_access(actor, cost, note, time)
                    return time
                held, ready, stall = self._load(actor, cost, position, note, time)
                if held > time:
                    stalls[Stall.SHORT_SCOREBOARD] += (held - time) * warps
                    time = held
        elif head is Head.MATCH:
            values = actor.strand.matched.get(position, 1)
            ready = actor.sm.match.book(time, values, actor.ports)
            stall = Stall.SHORT_SCOREBOARD
        elif head is Head.ARRIVE:
            ready = time + self._state
            stall = Stall.SHORT_SCOREBOARD
        elif head is Head.COPY and cost.prefetches_map:
            actor.sm.tma.prefetch_map(time)
        if self.issued:
            self._book_issued(position, time)
        if cost.deferred is not None:
            if actor.unknown & cost.deferred.inputs:
                self.postponed.keep(actor, Postponed(cost, None, ready, stall))
            else:
                self._defer(actor, cost, ready, stall)
        elif cost.head_writes:
            time = self._owe(actor, cost, ready, stall, time)
        return time

    def _load(
        self, actor: Actor, cost: SegmentCost, position: int, note: AccessNote, time: float
    ) -> tuple[float, float, Stall]:
        """Book an access, which may be part of a wider one; return until when it holds its warp, when it is answered."""
        if cost.part_of is not None and cost.part_of in actor.wide:
            ready, stall = actor.wide[cost.part_of]
            return time, ready, stall
        if cost.wide is not None:
            words, shift = cost.wide
            note = note._replace(
                addresses=note.addresses - shift, count_bytes=note.count_bytes * words
            )
        held, ready, stall, more = self._accesses.serve(actor, note, cost, time)
        self._totals.instructions += more
        if cost.wide is not None:
            actor.wide[actor.strand.trail[position].number] = (ready, stall)
        return held, ready, stall

    def _multiply(self, actor: Actor, cost: SegmentCost, position: int, time: float) -> float:
        """Charge an mma.sync, the head that programs have most of; return when the plain run can begin."""
        assert cost.mma is not None
        ready, actor.mma_free, actor.mma_taken = actor.sm.mma.book(
            time, cost.mma, actor.ports, actor.mma_free
        )
        if self.issued:
            self._book_issued(position, time)
        return self._owe(actor, cost, ready, Stall.MATH_PIPE_THROTTLE, time)

    def _issue_tensor(self, actor: Actor, position: int, time: float) -> float:
        """Book the wgmma at `position`; return when what follows it can issue."""
        issued = self.issued
        hidden = self._costs[actor.strand.trail[position].number].span
        while issued and issued[0][0] <= position:
            time = self._wgmma.book(actor, issued.pop(0)[1], time, hidden)
        return time

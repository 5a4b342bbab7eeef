"""The tensor cores of one SM, as wgmma sees them: one unit that executes m64nNkK operations one after another.

An operation occupies the unit for the longer of its arithmetic and its operand reads from shared memory.  Operations
of a warpgroup execute in order; the warpgroups of the SM take turns, one operation each.  Which turn an operation
gets depends on what others issue before it starts, so the end of a group is worked out when it is asked for, with
what has been issued until then.

Source: hopsim's recordings on an H100 (tests/silicon/micro.json, wgmma_*): a group of c operations m64nN takes
(c - 1) max(N/2, 16 + N/4) + N/2 + 54 cycles; of two warpgroups, the first to issue c of them ends after
2c - 1 operations.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from hopsim.config.groups import Tensor
from hopsim.hw.machine.work import TENSOR_ROWS, TensorWork
from hopsim.hw.timing.slowing import Slowed, Slowing

FLOP_PER_FMA: Final = 2
WARPGROUPS: Final = 4
"""More of them than issue wgmma on one SM at a time."""
NEVER: Final = math.inf
IDLE_KEPT: Final = 64


class Run:
    """Equal operations that a warpgroup issued one after the other, all in one group; times in cycles of the SM clock.

    `left` of them have not started; `start` is when the first one did, `last` when the last one did (of those that
    have); `tail` is from the start of an operation until its products are there.
    """

    __slots__ = ("cycles", "last", "left", "ready", "start", "tail")

    def __init__(self, ready: float, cycles: float, tail: float) -> None:
        self.ready = ready
        self.cycles = cycles
        self.tail = tail
        self.left = 1
        self.start = NEVER
        self.last = 0.0


class WarpgroupQueue:
    """What one warpgroup has in the tensor core: runs that have not all started, oldest first.

    `ends` is when each outstanding operation would end if none were overtaken, which is what holds the issue;
    `open` is the run that the next operation may join.
    """

    __slots__ = ("ends", "open", "runs")

    def __init__(self, depth: int) -> None:
        self.ends: deque[float] = deque(maxlen=depth)
        self.runs: deque[Run] = deque()
        self.open: Run | None = None


class TensorCore:
    """The tensor cores of one SM; times in cycles of the SM clock.

    Args:
        config: rates, latency, queue depth.
    """

    __slots__ = (
        "_bytes", "_config", "_cycles", "_depth", "_durations", "_free", "_idle", "_latency", "_least", "_queues", "_slowed",
        "_tail", "_waiting", "_work", "busy_cycles", "free", "operand_bytes", "operations",
    )  # fmt: skip

    def __init__(self, config: Tensor) -> None:
        self._config = config
        # The base is measured from a wait, which is issued after the commit.
        self._latency = config.commit_cycles + config.latency_base_cycles
        self._durations: dict[tuple[str, int, int, int, bool, bool], tuple[float, int, float]] = {}
        # Of the last operation: the next one is mostly the same.
        self._work: TensorWork | None = None
        self._cycles = self._tail = 0.0
        self._bytes = 0
        # The queues with operations that have not started; the one whose turn it is comes first.
        self._waiting: deque[WarpgroupQueue] = deque()
        # When the operations of each warpgroup end.
        self._queues: list[deque[float]] = []
        self._depth = config.queue_depth
        self._least = max(1, config.queue_depth // WARPGROUPS)
        self._free = 0.0
        self._slowed = Slowed()
        # When the unit would be free if nobody took turns: the same sum of work.
        self.free = 0.0
        # When it had nothing to do: (from, until), the last times.
        self._idle: deque[tuple[float, float]] = deque(maxlen=IDLE_KEPT)
        self.busy_cycles = 0.0
        self.operand_bytes = 0
        self.operations = 0

    def admit(self) -> WarpgroupQueue:
        """Return the queue of a warpgroup that comes to the SM."""
        queue = WarpgroupQueue(self._depth)
        self._queues.append(queue.ends)
        return queue

    def dismiss(self, queue: WarpgroupQueue) -> None:
        """Forget the queue of a warpgroup that has exited."""
        self._queues = [ends for ends in self._queues if ends is not queue.ends]

    def duration(self, work: TensorWork) -> tuple[float, int, float]:
        """Return the cycles one operation occupies the unit, the operand bytes it reads, and its arithmetic's cycles."""
        key = work[:6]
        known = self._durations.get(key)
        if known is None:
            config = self._config
            flop = FLOP_PER_FMA * TENSOR_ROWS * work.n * work.stored_k
            arithmetic = flop / config.flop_per_clk[work.kind]
            reads = work.shared_bytes / config.operand_bandwidth_bytes_per_clk
            cycles = max(arithmetic, reads) + (config.sparse_cycles if work.sparse else 0.0)
            known = self._durations[key] = (cycles, work.shared_bytes, arithmetic)
        return known

    def book(self, queue: WarpgroupQueue, time: float, work: TensorWork) -> float:
        """Put one operation into a queue at `time` or when it has room; return when it was issued."""
        if work is not self._work:
            self._work = work
            self._cycles, self._bytes, self._tail = self.duration(work)
        cycles = self._cycles
        ends = queue.ends
        if len(ends) >= self._least:
            time = self._room(ends, time)
        run = queue.open
        if run is not None and run.cycles == cycles and run.left and time <= ends[-1]:
            run.left += 1
        else:
            queue.open = run = Run(time, cycles, self._tail)
            if not queue.runs:
                self._waiting.append(queue)
            queue.runs.append(run)
        if time > self.free:
            self._idle.append((self.free, time))
            self.free = time
        self.free = self._slowed.after(self.free, cycles)
        ends.append(self.free)
        self.busy_cycles += cycles
        self.operand_bytes += self._bytes
        self.operations += 1
        return time

    def slow(self, start: float, end: float, lost: float) -> Slowing:
        """Let arithmetic between two times cost products then `lost` cycles; return it, so that its end can be mended."""
        return self._slowed.add(start, end, lost, self._free)

    def worked_until(self, now: float) -> float:
        """Return the cycles of all work that is done by then."""
        return self.busy_cycles - max(0.0, self.free - now)

    def worked(self, start: float, end: float) -> float:
        """Return for how many cycles of some time the unit had work, as far as it is known."""
        end = min(end, self.free)
        found = max(0.0, end - start)
        for begin, until in reversed(self._idle):
            if until <= start:
                break
            found -= max(0.0, min(until, end) - max(begin, start))
        return found

    def _room(self, ends: deque[float], time: float) -> float:
        """Return when a warpgroup whose operations end so may issue: those at work share the places."""
        sharing = 1
        for other in self._queues:
            if other is not ends and other and other[-1] > time:
                sharing += 1
        places = max(1, self._depth // sharing)
        if len(ends) >= places and ends[-places] > time:
            return ends[-places]
        return time

    def close(self, queue: WarpgroupQueue) -> Run:
        """Commit what was issued since the last commit; return its last run."""
        run = queue.open
        assert run is not None, "a group without operations was committed"
        queue.open = None
        return run

    def complete(self, run: Run) -> float:
        """Return when the results of a run are in its registers, if nobody issues anything until then."""
        return self._end(run) + self._latency

    def has_completed(self, run: Run, now: float) -> bool:
        """Settle what started up to `now`, less the latency; return whether the results of a run are there."""
        if run.left:
            self._advance(now - self._latency)
        return not run.left and run.last + run.tail + self._latency <= now

    def _end(self, run: Run) -> float:
        """Return when the last operation of a run ends, given what is in the queues now."""
        if not run.left:
            return run.last + run.tail
        waiting = self._waiting
        free = self._free
        if len(waiting) == 1 and not self._slowed:
            for one in waiting[0].runs:
                begin = one.ready if one.ready > free else free
                free = begin + one.left * one.cycles
                if one is run:
                    return free - one.cycles + one.tail
        elif len(waiting) == 2 and not self._slowed:
            begin = self._turns_of_two(run, free)
            if begin is not None:
                return begin + run.tail
        # Play the turns on a copy.
        turns = deque(
            (deque((one.ready, one.left, one.cycles, one) for one in queue.runs))
            for queue in waiting
        )
        while True:
            for _ in range(len(turns)):
                if turns[0][0][0] <= free:
                    break
                turns.rotate(-1)
            else:
                free = min(runs[0][0] for runs in turns)
                continue
            runs = turns[0]
            ready, left, cycles, one = runs[0]
            if left > 1:
                runs[0] = (ready, left - 1, cycles, one)
            elif one is run:
                return self._slowed.after(free, one.tail)
            else:
                runs.popleft()
            free = self._slowed.after(free, cycles)
            turns.rotate(-1)
            if not runs:
                turns.remove(runs)

    def _turns_of_two(self, run: Run, free: float) -> float | None:
        """Return when the last operation of a run begins if two queues take turns with no gap, None otherwise."""
        cycles = run.cycles
        before = others = 0
        is_first = True
        for number, queue in enumerate(self._waiting):
            total = 0
            is_own = False
            for one in queue.runs:
                if one.ready > free or one.cycles != cycles:
                    return None
                total += one.left
                if one is run:
                    is_own = True
                    break
            if is_own:
                before, is_first = total, number == 0
            else:
                others = total
        between = before - 1 if is_first else before
        return free + (before - 1 + (between if between < others else others)) * cycles

    def _advance(self, until: float) -> None:
        """Start operations whose turn comes before or at `until`."""
        waiting = self._waiting
        free = self._free
        while waiting:
            for _ in range(len(waiting)):
                if waiting[0].runs[0].ready <= free:
                    break
                waiting.rotate(-1)
            else:
                free = min(queue.runs[0].ready for queue in waiting)
                continue
            if free > until:
                break
            queue = waiting[0]
            run = queue.runs[0]
            count = 1
            if len(waiting) == 1 and not self._slowed:
                count = min(run.left, int((until - free) // run.cycles) + 1)
            if run.start == NEVER:
                run.start = free
            run.left -= count
            free = self._slowed.after(free, count * run.cycles)
            run.last = free - run.cycles
            if not run.left:
                queue.runs.popleft()
            if not queue.runs:
                waiting.popleft()
            elif len(waiting) > 1:
                waiting.rotate(-1)
        self._free = free

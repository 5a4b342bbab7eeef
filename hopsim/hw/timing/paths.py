"""Steps seen before: the cost of a sequence of segments, worked out once.

A kernel's main loop takes the same few steps thousands of times.  A path can be worked out ahead
when nothing in it has a cost that only the run knows, save for the copies and wgmma it issues:
those are listed with their time from the start of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from hopsim.config import HardwareConfig
from hopsim.config.groups import Mbarrier
from hopsim.hw.timing.costs import SegmentCost
from hopsim.hw.timing.heads import Head
from hopsim.hw.timing.in_order import NEVER
from hopsim.hw.timing.stalls import Stall

KNOWN_AT_RUN_TIME: Final = (
    Head.MEMORY, Head.MATRIX_COPY, Head.MMA, Head.LEAVE, Head.PUBLISH,
    Head.SLEEP, Head.MATCH,
)  # fmt: skip
ACTING: Final = (Head.TENSOR, Head.COMMIT, Head.COPY, Head.ARRIVE)
LONGEST: Final = 64


@dataclass(slots=True, eq=False)
class Path:
    """The cost of a step; times in cycles from its start.

    Args:
        reads: registers read before they are written in it, and when first.
        total: until the strand can issue again.
        slots: issue cycles of a warp.
        crowded_total, crowded_slots: how much longer both are while the tensor cores work.
        lost: cycles that these lose meanwhile.
        instructions: issued by a warp.
        stalls: cycles of a warp by reason; the issue slots are not among them.
        actions: (position in the trail, kind, time) of each segment that may issue or commit.
        prefetches: times at which tensor maps are prefetched.
        late: results on their way at the end: (register, when, stall).
        after_mma: whether the step waits until the pipe has taken all mma.sync before it.
    """

    reads: dict[int, float]
    total: float
    slots: float
    crowded_total: float
    crowded_slots: float
    lost: float
    instructions: int
    stalls: tuple[tuple[Stall, float], ...]
    actions: tuple[tuple[int, Head, float], ...]
    prefetches: tuple[float, ...]
    late: tuple[tuple[int, float, Stall], ...]
    after_mma: bool


class Walk(NamedTuple):
    """What is known ahead of a step whose cost only the run knows.

    Args:
        segments: their costs, and what a taken branch at the end of each costs.
        slots, crowded_total, crowded_slots, lost, instructions: as a `Path` has them.
    """

    segments: tuple[tuple[SegmentCost, float], ...]
    slots: float
    crowded_total: float
    crowded_slots: float
    lost: float
    instructions: int


def tested_after(config: Mbarrier, warps: int) -> float:
    """Return what a `try_wait` of some warps at once takes when the phase is complete."""
    return config.try_wait_latency_cycles + config.try_wait_warp_cycles * (warps - 1)


class PathCosts:
    """Works paths out.

    Args:
        config: latencies of barriers.
        costs: of all segments, by number.
    """

    def __init__(self, config: HardwareConfig, costs: Sequence[SegmentCost]) -> None:
        self._costs = costs
        self._mbarrier = config.mbarrier
        self._state = float(config.mbarrier.state_latency_cycles)

    def work_out(
        self, numbers: Sequence[int], following: int, resumed: bool, warps: int
    ) -> Path | None:
        """Return the cost of a step, or None when only the run knows it.

        Args:
            numbers: segments executed.
            following: the segment after them.
            resumed: the first head waited for something, so that its wake-up is paid for.
            warps: of the strand.
        """
        costs = [self._costs[number] for number in numbers]
        if len(costs) > LONGEST or any(cost.head in KNOWN_AT_RUN_TIME for cost in costs):
            return None
        time = slots = 0.0
        crowded = crowded_slots = lost = 0.0
        instructions = 0
        reads: dict[int, float] = {}
        written: set[int] = set()
        pending: dict[int, tuple[float, Stall]] = {}
        stalls: dict[Stall, float] = {}
        actions: list[tuple[int, Head, float]] = []
        prefetches: list[float] = []

        def hold(stall: Stall, cycles: float) -> float:
            if cycles > 0.0:
                stalls[stall] = stalls.get(stall, 0.0) + cycles
                return cycles
            return 0.0

        for position, cost in enumerate(costs):
            worst, reason = 0.0, Stall.WAIT
            for register in sorted(pending.keys() & cost.reads.keys()):
                when, stall = pending.pop(register)
                if when - cost.reads[register] - time > worst:
                    worst, reason = when - cost.reads[register] - time, stall
            time += hold(reason, worst)
            for register, when in cost.reads.items():
                if register not in written:
                    reads.setdefault(register, time + when)
            written |= cost.writes
            first = resumed and position == 0
            if not first:
                time += hold(cost.block_stall, cost.block)
            if cost.head in ACTING:
                actions.append((position, cost.head, time))
            if cost.prefetches_map:
                prefetches.append(time)
            ready, stall = self._ready(cost.head, time, first, warps)
            if cost.head_use != NEVER:
                time += hold(stall, ready - time - cost.head_use)
            elif ready > time:
                for register in cost.head_writes:
                    pending[register] = (ready, stall)
            for register, when, late_stall in cost.late:
                pending[register] = (time + when, late_stall)
            time += cost.span
            slots += cost.slots
            crowded += cost.crowded_span
            crowded_slots += cost.crowded_slots
            lost += cost.lost
            instructions += cost.counted
            after = numbers[position + 1] if position + 1 < len(numbers) else following
            if cost.taken and after != cost.fall_through:
                time += hold(Stall.BRANCH_RESOLVE, cost.taken)
        rest = time - slots - sum(stalls.values())
        hold(Stall.WAIT, rest)
        return Path(
            reads=reads,
            total=time,
            slots=slots,
            crowded_total=crowded,
            crowded_slots=crowded_slots,
            lost=lost,
            instructions=instructions,
            stalls=tuple(sorted(stalls.items())),
            actions=tuple(actions),
            prefetches=tuple(prefetches),
            late=tuple((r, when, stall) for r, (when, stall) in sorted(pending.items())),
            after_mma=any(cost.after_mma for cost in costs),
        )

    def outline(self, numbers: Sequence[int], following: int) -> Walk:
        """Return what is known of a step that is walked.

        Args:
            numbers, following: as `work_out` takes them.
        """
        segments: list[tuple[SegmentCost, float]] = []
        slots = crowded = crowded_slots = lost = 0.0
        instructions = 0
        for number, after in zip(numbers, [*numbers[1:], following], strict=True):
            cost = self._costs[number]
            segments.append((cost, cost.taken if after != cost.fall_through else 0.0))
            slots += cost.slots
            crowded += cost.crowded_span
            crowded_slots += cost.crowded_slots
            lost += cost.lost
            instructions += cost.counted
        return Walk(tuple(segments), slots, crowded, crowded_slots, lost, instructions)

    def _ready(self, head: Head, time: float, woken: bool, warps: int) -> tuple[float, Stall]:
        """Return when the result of a head is there."""
        if head is Head.BARRIER_WAIT:
            # A strand that was woken pays the wake-up, not the test.
            return (time if woken else time + tested_after(self._mbarrier, warps)), Stall.MBARRIER
        if head is Head.ARRIVE:
            return time + self._state, Stall.SHORT_SCOREBOARD
        return time, Stall.WAIT

"""Code that an SM executes for the first time in a launch: it comes from L2 while it runs, and a jump waits for it.

What was executed once stays; kernels larger than an SM's instruction caches (32 KiB at full rate) are not modelled.

Source: hopsim's recording on an H100 SXM (tests/silicon/micro.json, group code): first against later passes over straight
code.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.config.groups import Issue
from hopsim.hw.timing.costs import SegmentCost


class InstructionFetch:
    """What each SM has fetched.

    Args:
        config: cycles of an instruction that follows, and of a jump.
        costs: of all segments, by number.
        sm_count: of the chip.
    """

    __slots__ = ("_costs", "_fetched", "_interval", "_jump")

    def __init__(self, config: Issue, costs: Sequence[SegmentCost], sm_count: int) -> None:
        self._interval = config.fetch_interval_cycles
        self._jump = float(config.jump_latency_cycles)
        self._costs = costs
        # One byte a segment; the last one stands before the first.
        self._fetched = [bytearray(len(costs) + 1) for _ in range(sm_count)]
        for fetched in self._fetched:
            fetched[-1] = 1

    def first(self, sm: int, numbers: Sequence[int]) -> float:
        """Return the cycles that fetching some segments adds to their execution."""
        fetched = self._fetched[sm]
        cycles = 0.0
        for number in numbers:
            if not fetched[number]:
                fetched[number] = 1
                cycles += self._costs[number].instructions * self._interval
                if not fetched[number - 1]:
                    cycles += self._jump
        return cycles

"""What an SM uses for the first time in a launch: code comes from L2 while it runs, and a jump waits for it; parameters come
from behind the constant cache; the first fence of either kind takes longer.

What was used once stays; kernels larger than an SM's instruction caches (32 KiB at full rate) are not modelled.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, groups code and start): first against later passes over
straight code, jumps, reads of parameters, fences.  From the cluster barrier to the first wait for a slot `cooperative`
takes as long as from bar.sync on without clusters (SM clock read there, 512 cubed), though its fence of the async proxy
is not the first fence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopsim.config import HardwareConfig
from hopsim.hw.timing.costs import SegmentCost
from hopsim.isa.values import Value


class FirstTouch:
    """What each SM has used.

    Args:
        config: cycles of an instruction that follows, of a jump, of a line of parameters, of a fence.
        costs: of all segments, by number.
        sm_count: of the chip.
    """

    __slots__ = (
        "_constant",
        "_costs",
        "_fence",
        "_fenced",
        "_fetched",
        "_interval",
        "_jump",
        "_parameters",
    )

    def __init__(self, config: HardwareConfig, costs: Sequence[SegmentCost], sm_count: int) -> None:
        self._interval = config.issue.fetch_interval_cycles
        self._jump = float(config.issue.jump_latency_cycles)
        self._constant = float(config.issue.constant_latency_cycles)
        self._fence = float(config.fence.first_cycles)
        self._costs = costs
        # One byte a segment; the last one stands before the first.
        self._fetched = [bytearray(len(costs) + 1) for _ in range(sm_count)]
        for fetched in self._fetched:
            fetched[-1] = 1
        self._parameters: list[set[int]] = [set() for _ in range(sm_count)]
        self._fenced = bytearray(sm_count)

    def passed(self, numbers: Sequence[int], registers: Sequence[Value]) -> list[int]:
        """Return those of some segments that have a fence which none of the threads executed, by its predicate.

        Args:
            registers: of the threads, after it.
        """
        found: list[int] = []
        for number in numbers:
            cost = self._costs[number]
            if cost.fences and cost.guard is not None:
                predicate, idle = registers[cost.guard[0]], cost.guard[1]
                if np.all(predicate == idle):
                    found.append(number)
        return found

    def first(self, sm: int, numbers: Sequence[int], passed: Sequence[int] = ()) -> float:
        """Return the cycles that the first use of some segments adds to their execution.

        Args:
            passed: those of them whose fence none of the threads executes: it is another warp's to begin.
        """
        fetched = self._fetched[sm]
        cycles = 0.0
        for number in numbers:
            cost = self._costs[number]
            if not fetched[number]:
                fetched[number] = 1
                cycles += cost.instructions * self._interval
                before = number - 1
                while self._costs[before].detour and not fetched[before]:
                    before -= 1
                if not fetched[before]:
                    cycles += self._jump
            new = cost.parameters - self._parameters[sm]
            if new:
                self._parameters[sm] |= new
                cycles += len(new) * self._constant
            if cost.fences and number not in passed and not self._fenced[sm] & cost.fences:
                self._fenced[sm] |= cost.fences
                cycles += self._fence
        return cycles

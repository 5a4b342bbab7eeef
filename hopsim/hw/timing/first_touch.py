"""What an SM uses for the first time in a launch: code, parameters, fences.

Code comes in the order in which it stands, more slowly while all SMs ask for it, and this is added to what it takes itself.
A jump waits as long as what it leads over would take to come, or for code from further away; far from a kernel's first
instruction code comes in large pieces, and who jumps into one first waits long.  Parameters come from behind the constant
cache; the first fence of either kind takes longer.  What was used once stays; kernels larger than an SM's instruction
caches (32 KiB at full rate) are not modelled.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, groups code and start) and on an H200
(tests/silicon/h200/micro.json, group jumps): first against later passes over straight code, jumps, reads of parameters,
fences.  From the cluster barrier to the first wait for a slot `cooperative` takes as long as from bar.sync on without
clusters (SM clock read there, 512 cubed), though its fence of the async proxy is not the first fence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopsim.config import HardwareConfig
from hopsim.hw.timing.costs import SegmentCost
from hopsim.isa.machine_code import INSTRUCTION_BYTES
from hopsim.isa.values import Value


class FirstTouch:
    """What each SM has used.

    Args:
        config: how code comes, and cycles of a line of parameters and of a fence.
        costs: of all segments, by number.
        sm_count: of the chip.
        busy: share of the SMs that begin at once, and get their code through ports that they share.
    """

    __slots__ = (
        "_chunk", "_chunks", "_constant", "_costs", "_fence", "_fenced", "_fetched", "_held", "_interval", "_jump",
        "_parameters", "_passing",
    )  # fmt: skip

    def __init__(
        self,
        config: HardwareConfig,
        costs: Sequence[SegmentCost],
        sm_count: int,
        busy: float = 0.0,
    ) -> None:
        issue = config.issue
        self._interval = _between(
            issue.fetch_interval_cycles, issue.fetch_interval_all_cycles, busy
        )
        self._jump = _between(issue.jump_latency_cycles, issue.jump_latency_all_cycles, busy)
        self._passing = issue.jump_interval_cycles
        self._chunk = float(issue.code_chunk_latency_cycles)
        self._constant = float(issue.constant_latency_cycles)
        self._fence = float(config.fence.first_cycles)
        self._costs = costs
        self._chunks = _chunks(costs, issue.launched_code_bytes, issue.code_chunk_bytes)
        self._held = [{0} for _ in range(sm_count)]
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
        """Return the cycles that the first use of some segments, one after the other, adds to their execution.

        Args:
            passed: those of them whose fence none of the threads executes: it is another warp's to begin.
        """
        fetched, held = self._fetched[sm], self._held[sm]
        cycles = 0.0
        for number in numbers:
            cost = self._costs[number]
            if not fetched[number]:
                fetched[number] = 1
                cycles += cost.instructions * self._interval
                if not fetched[number - 1]:
                    cycles += self._jumped(fetched, number)
                    if self._chunks[number][0] not in held:
                        cycles += self._chunk
                held.update(self._chunks[number])
            new = cost.parameters - self._parameters[sm]
            if new:
                self._parameters[sm] |= new
                cycles += len(new) * self._constant
            if cost.fences and number not in passed and not self._fenced[sm] & cost.fences:
                self._fenced[sm] |= cost.fences
                cycles += self._fence
        return cycles

    def _jumped(self, fetched: bytearray, number: int) -> float:
        """Return what a segment waits for when what stands before it has not come."""
        cycles, before = 0.0, number - 1
        while not fetched[before] and cycles < self._jump:
            cycles += self._costs[before].instructions * self._passing
            before -= 1
        return min(cycles, self._jump)


def _between(alone: float, all_at_once: float, share: float) -> float:
    return alone + (all_at_once - alone) * share


def _chunks(costs: Sequence[SegmentCost], ahead: int, size: int) -> list[range]:
    """Return the chunks of code that each segment lies in; 0 is what a launch brings along."""
    found: list[range] = []
    begin = 0
    for cost in costs:
        end = begin + cost.instructions * INSTRUCTION_BYTES
        first, last = (
            max(0, (place - ahead) // size + 1) for place in (begin, max(begin, end - 1))
        )
        found.append(range(first, last + 1))
        begin = end
    return found

"""The tensor cores of one SM, as wgmma sees them: one unit that executes m64nNkK operations one after another.

An operation takes the longer of its arithmetic and its operand reads from shared memory. Operations
of a warpgroup execute in order; those of different warpgroups as they come.

Source: rates after Luo et al., arXiv 2402.13499 (the maximum of two terms fits its f16 points).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from hopsim.config.groups import MmaSync, Tensor
from hopsim.hw.machine.work import TENSOR_ROWS, TensorWork

FLOP_PER_FMA: Final = 2


class WarpgroupQueue:
    """What one warpgroup has in the tensor core: when each outstanding operation ends, oldest first.

    `group_start` is when the first operation since the last commit began, while `group_open`.
    """

    __slots__ = ("depth", "ends", "group_open", "group_start", "last_end")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.ends: deque[float] = deque(maxlen=depth)
        self.last_end = 0.0
        self.group_open = False
        self.group_start = 0.0


class TensorCore:
    """The tensor cores of one SM.

    Args:
        config: rates, latency, queue depth.
    """

    __slots__ = (
        "_bytes", "_config", "_cycles", "_durations", "_overhead", "_work", "busy_cycles", "free", "operand_bytes",
        "operations",
    )  # fmt: skip

    def __init__(self, config: Tensor) -> None:
        self._config = config
        self._overhead = config.op_overhead_cycles
        self._durations: dict[tuple[str, int, int, int, bool], tuple[float, int]] = {}
        # Of the last operation: the next one is mostly the same.
        self._work: TensorWork | None = None
        self._cycles = 0.0
        self._bytes = 0
        self.free = 0.0
        self.busy_cycles = 0.0
        self.operand_bytes = 0
        self.operations = 0

    def duration(self, work: TensorWork) -> tuple[float, int]:
        """Return the cycles one operation occupies the unit, and the operand bytes it reads from shared memory."""
        key = work[:5]
        known = self._durations.get(key)
        if known is None:
            config = self._config
            flop = FLOP_PER_FMA * TENSOR_ROWS * work.n * work.k
            cycles = max(
                flop / config.flop_per_clk[work.kind],
                work.shared_bytes / config.operand_bandwidth_bytes_per_clk,
            )
            known = self._durations[key] = (cycles, work.shared_bytes)
        return known

    def book(self, queue: WarpgroupQueue, time: float, work: TensorWork) -> float:
        """Execute one operation, issued at `time` or when the queue has room; return when it was issued."""
        if work is not self._work:
            self._work = work
            self._cycles, self._bytes = self.duration(work)
        ends = queue.ends
        if len(ends) == queue.depth and ends[0] > time:
            time = ends[0]
        start = self.free + self._overhead if self.free > time else time
        if not queue.group_open:
            queue.group_open = True
            queue.group_start = start
        end = start + self._cycles
        self.free = queue.last_end = end
        ends.append(end)
        self.busy_cycles += self._cycles
        self.operand_bytes += self._bytes
        self.operations += 1
        return time

    def complete(self, queue: WarpgroupQueue) -> float:
        """Return when the results of everything the warpgroup issued so far are in its registers."""
        # The base is measured from a wait, which is issued after the commit.
        config = self._config
        return queue.last_end + config.commit_cycles + config.latency_base_cycles


class MmaPipe:
    """mma.sync on one SM: the warps of all sub-partitions share its rate.

    Args:
        config: rates and latency.
    """

    __slots__ = ("_config", "busy_cycles", "free", "operations")

    def __init__(self, config: MmaSync) -> None:
        self._config = config
        self.free = 0.0
        self.busy_cycles = 0.0
        self.operations = 0

    def book(self, issue: float, kind: str, flop: float, warps: int) -> float:
        """Execute one m16nNkK for each of `warps` warps; return when a dependent one can issue."""
        duration = flop * warps / self._config.flop_per_clk[kind]
        start = max(self.free, issue)
        self.free = start + duration
        self.busy_cycles += duration
        self.operations += warps
        return max(self.free, start + self._config.latency_cycles)

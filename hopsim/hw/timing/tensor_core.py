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

    def earliest_issue(self, time: float) -> float:
        """Return when the next operation can be issued: at most `depth` are outstanding."""
        if len(self.ends) < self.depth:
            return time
        return max(time, self.ends[0])


class TensorCore:
    """The tensor cores of one SM.

    Args:
        config: rates, latency, queue depth.
    """

    __slots__ = ("_config", "_durations", "busy_cycles", "free", "operand_bytes", "operations")

    def __init__(self, config: Tensor) -> None:
        self._config = config
        self.operand_bytes = 0
        self._durations: dict[tuple[str, int, int, int, bool], tuple[float, int]] = {}
        self.free = 0.0
        self.busy_cycles = 0.0
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

    def book(self, queue: WarpgroupQueue, issue: float, work: TensorWork) -> tuple[float, float]:
        """Execute one operation issued at `issue`; return when it starts and when the unit is done with it."""
        duration, operand_bytes = self.duration(work)
        self.operand_bytes += operand_bytes
        if self.free > issue:
            start = self.free + self._config.op_overhead_cycles
        else:
            start = issue
        end = start + duration
        self.free = end
        self.busy_cycles += duration
        self.operations += 1
        queue.ends.append(end)
        queue.last_end = end
        return start, end

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

"""The head of a segment: the instruction at its beginning that others can tell, or that only the run knows the cost of.

What kind it is says who charges it; what it costs that is known beforehand is said here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from hopsim.config import HardwareConfig
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.timing.fences import (
    arrives_after_initialisation,
    fence_cycles,
    publishes_shared,
    releases_to_cluster,
)
from hopsim.hw.timing.stalls import Stall
from hopsim.isa.forms.bound import BoundInstruction, ConstantArg, TupleArg
from hopsim.isa.program.codegen import Segment

NANOSECONDS: Final = 1e-9
RELEASES: Final = ("release", "acq_rel")
WAITS: Final = ("cp.async.wait", "mbarrier.try_wait", "mbarrier.test_wait")
STORING: Final = ("lsu_global", "atomic")


class Head(IntEnum):
    """How the schedule treats the shared instruction of a segment."""

    NONE = 0
    FIXED = 1
    MEMORY = 2
    MATRIX_COPY = 3
    TENSOR = 4
    COMMIT = 5
    MMA = 6
    BARRIER_WAIT = 7
    ARRIVE = 8
    COPY = 9
    LEAVE = 10
    """An arrival at a cluster barrier by warps one of which may come later than the others."""
    PUBLISH = 11
    """A fence between what a warp has stored to shared memory and the async proxy."""
    SLEEP = 12
    """A nanosleep whose time comes from a register, or that a warp may pass by."""
    MATCH = 13
    """What it takes depends on how many values the lanes have."""


SHARED_PIPES: Final = (Head.MATRIX_COPY, Head.MMA)
"""Heads whose pipe all CTAs of an SM share, in the order in which they come to it."""


class Heads:
    """Heads of a program.

    Args:
        config: latencies.
        program: compiled segments, by number.
        threads: of a CTA.
        shares_sms: whether other CTAs may be on the SM.
    """

    def __init__(
        self, config: HardwareConfig, program: Sequence[Segment], threads: int, shares_sms: bool
    ) -> None:
        self._config = config
        self._threads = threads
        self._shares_sms = shares_sms
        self._first_cluster_barrier = arrives_after_initialisation(program)

    def kind(self, bound: BoundInstruction) -> Head:
        """Return how the schedule treats an instruction that is a head."""
        unit = bound.form.unit
        if unit == "cluster_barrier" and self._threads > WARP:
            slots = dict(bound.slots)
            if releases_to_cluster(bound, slots) and not self._comes_apart(bound):
                return Head.LEAVE
        if publishes_shared(bound):
            return Head.PUBLISH
        if bound.form.name.startswith("nanosleep") and not sleeps_for_known_time(bound):
            return Head.SLEEP
        if bound.form.name.startswith("match."):
            return Head.MATCH
        if unit in ("lsu_shared", "lsu_global", "lsu_local", "atomic"):
            return Head.MEMORY
        if unit == "tensor_sync" and bound.form.name.startswith("wgmma.commit_group"):
            return Head.COMMIT
        if unit == "mbarrier":
            waits = bound.form.name.startswith(("mbarrier.try_wait", "mbarrier.test_wait"))
            return Head.BARRIER_WAIT if waits else Head.ARRIVE
        kinds = {
            "tensor": Head.TENSOR,
            "mma": Head.MMA,
            "matrix_copy": Head.MATRIX_COPY,
            "tma": Head.COPY,
            "cp_async": Head.COPY,
            "tma_sync": Head.COPY,
        }
        return kinds.get(unit, Head.FIXED)

    def block(self, bound: BoundInstruction) -> tuple[float, Stall]:
        """Return the cycles for which a head holds its warp besides its issue slot, and what waiting for it is called."""
        config = self._config
        unit, name = bound.form.unit, bound.form.name
        slots = dict(bound.slots)
        if unit == "tensor":
            from_registers = any(isinstance(arg, TupleArg) for arg in bound.args[1:])
            cycles = (
                config.tensor.issue_rs_cycles if from_registers else config.tensor.issue_ss_cycles
            )
            return cycles, Stall.MATH_PIPE_THROTTLE
        if unit == "tensor_sync":
            waits = {
                "wgmma.fence": config.tensor.fence_cycles,
                "wgmma.commit_group": config.tensor.commit_cycles,
                "wgmma.wait_group": config.tensor.wait_cycles,
            }
            return next(
                cycles for known, cycles in waits.items() if name.startswith(known)
            ), Stall.GMMA
        if unit == "barrier" and "arrive" not in bound.instruction.opcode:
            barrier = config.barrier
            warps = -(-self._parties(bound) // WARP)
            cycles = barrier.bar_sync_latency_cycles + barrier.bar_sync_warp_cycles * warps
            return cycles, Stall.BARRIER
        if releases_to_cluster(bound, slots):
            late = unit == "cluster_barrier" and self._comes_apart(bound)
            again = config.fence.again_cycles if late else 0
            return float(config.fence.cluster_cycles + again), Stall.MEMBAR
        if unit == "cluster_barrier" and "wait" in bound.instruction.opcode:
            return float(config.barrier.cluster_barrier_latency_cycles), Stall.CLUSTER_BARRIER
        if unit == "fence" or (unit in STORING and slots.get("sem") in RELEASES):
            return float(fence_cycles(config.fence, name, slots)), Stall.MEMBAR
        if name == "setmaxnreg":
            return float(config.barrier.setmaxnreg_cycles), Stall.REGISTERS
        if name.startswith("cp.async.bulk.commit_group") and bound.instruction.guard is not None:
            return float(config.tma.guarded_commit_cycles), Stall.BRANCH_RESOLVE
        if unit == "cp_async":
            if name == "cp.async.commit_group":
                return config.cp_async.commit_cycles, Stall.WAIT
            if name.startswith("cp.async.wait"):
                return config.cp_async.wait_cycles, Stall.COPY_GROUP
            return config.cp_async.issue_interval_cycles, Stall.WAIT
        if name.startswith("nanosleep"):
            literal = bound.args[0]
            if not isinstance(literal, ConstantArg) or not sleeps_for_known_time(bound):
                return 0.0, Stall.SLEEPING
            return literal.value * NANOSECONDS * config.device.clock_hz, Stall.SLEEPING
        return 0.0, Stall.WAIT

    def is_private(self, segment: Segment, head: Head) -> bool:
        """Whether a head can execute before its time comes without anybody seeing it.

        Waits are private: one that is over stays over, and one that is not over parks the strand
        until it is.
        """
        if head is Head.TENSOR:
            # One that ends a step is waited for, so that warpgroups take turns on the tensor core.
            return not segment.stop
        if head in SHARED_PIPES:
            return not self._shares_sms
        if head is Head.MATCH:
            return False
        if head in (Head.NONE, Head.COMMIT):
            return True
        first = segment.instructions[0]
        if head is Head.BARRIER_WAIT:
            return first.form.may_block
        if head is Head.COPY:
            # A copy books its unit for the time at which it is issued.
            return "mbarrier" not in first.form.name
        return first.form.unit in (
            "fence",
            "tensor_sync",
            "shuffle",
            "lsu_const",
            "alu",
        )

    def _comes_apart(self, bound: BoundInstruction) -> bool:
        """Whether some warps always come to a cluster barrier too late to share the fence of the others."""
        return self._threads > WARP * self._config.fence.warps or (
            bound is self._first_cluster_barrier and self._threads > WARP
        )

    def _parties(self, bound: BoundInstruction) -> int:
        """Return the threads that meet at a named barrier: its second operand, else all of the CTA."""
        count = bound.args[1] if len(bound.args) > 1 else None
        return count.value if isinstance(count, ConstantArg) else self._threads


def sleeps_for_known_time(bound: BoundInstruction) -> bool:
    """Whether a nanosleep always takes the same time: a literal, of every warp that comes to it."""
    return bound.instruction.guard is None and isinstance(bound.args[0], ConstantArg)


def keeps_order(bound: BoundInstruction) -> bool:
    """Whether a head is a barrier or a wait, which a warp comes to when its mma.sync before it have been issued.

    Of `ldmatrix` ptxas moves the next ones up before the mma.sync that come first.
    """
    return bound.form.unit in ("barrier", "cluster_barrier") or bound.form.name.startswith(WAITS)


__all__ = ["NANOSECONDS", "Head", "Heads", "keeps_order"]

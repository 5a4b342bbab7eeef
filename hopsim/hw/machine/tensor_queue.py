"""The wgmma state of a warpgroup: operations not yet committed, groups in flight, accumulators on the way.

Operations of one warpgroup land in order, as the tensor core executes them.  Between chained operations the accumulator
stays a matrix; registers are written when no later operation in flight uses the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hopsim.hw.machine.thread_groups import WARPGROUP
from hopsim.isa.values import Array

if TYPE_CHECKING:
    from hopsim.hw.machine.cta import Cta
    from hopsim.hw.machine.operations import Operation


@dataclass(slots=True, eq=False)
class Group:
    """Operations committed together; `left` counts those that have not landed.

    A dry group computes nothing and nobody listens: its operations are stand-ins that only carry their work.
    """

    owner: Any
    operations: list[Operation]
    left: int
    number: int = 0
    is_dry: bool = False


@dataclass(slots=True, eq=False)
class Warpgroup:
    """Four consecutive warps and what they have in flight."""

    cta: Cta
    number: int
    open: list[Operation] = field(default_factory=list["Operation"])
    groups: list[Group] = field(default_factory=list[Group])
    waiters: list[Any] = field(default_factory=list[Any])
    strands: list[Any] = field(default_factory=list[Any])
    committed: int = 0
    stand_ins: dict[tuple[int, bool], Operation] = field(
        default_factory=dict[tuple[int, bool], "Operation"]
    )
    # Destination registers of operations in flight, oldest first, and the matrix of the last one that landed.
    destinations: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    matrix: Array | None = None

    @property
    def first_tid(self) -> int:
        """Thread number of its first lane."""
        return self.number * WARPGROUP

    @property
    def is_full(self) -> bool:
        """Whether the block has all four warps of it."""
        return self.first_tid + WARPGROUP <= self.cta.machine.threads

    def commit(self) -> Group:
        """Make a group of everything issued since the last commit."""
        group = Group(self, self.open, len(self.open), self.committed)
        self.committed += 1
        if self.cta.machine.is_dry:
            group.is_dry = True
            group.left = min(1, group.left)
        else:
            for operation in self.open:
                operation.group = group
        self.open = []
        if group.left:
            self.groups.append(group)
        return group

    def pending_beyond(self, newest: int) -> bool:
        """Whether a group other than the `newest` last committed ones is still in flight."""
        allowed = self.committed - newest
        return any(group.number < allowed for group in self.groups)

    def landed(self, operation: Operation) -> None:
        """Count an operation that landed and wake those who wait for groups."""
        group: Group | None = operation.group
        if group is None:
            self.open.remove(operation)
            return
        group.left -= 1
        if group.left == 0:
            self.finished(group)

    def finished(self, group: Group) -> None:
        """Wake those who wait for groups: one is complete."""
        self.groups.remove(group)
        waiters, self.waiters = self.waiters, []
        for strand in waiters:
            self.cta.machine.wake(strand)

    # -- registers of the 128 threads --------------------------------------------------------------

    def read(self, numbers: tuple[int, ...], dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return registers as (len(numbers), 128), whoever holds the lanes now."""
        result = np.zeros((len(numbers), WARPGROUP), dtype)
        for strand in self.strands:
            registers = strand.registers
            if strand.lanes == WARPGROUP:
                for row, number in enumerate(numbers):
                    result[row] = registers[number]
                return result
            columns = strand.tids - self.first_tid
            for row, number in enumerate(numbers):
                result[row, columns] = registers[number]
        return result

    def write(self, numbers: tuple[int, ...], values: NDArray[Any]) -> None:
        """Write registers from (len(numbers), 128)."""
        for strand in self.strands:
            registers = strand.registers
            part = values if strand.lanes == WARPGROUP else values[:, strand.tids - self.first_tid]
            for row, number in enumerate(numbers):
                registers[number] = part[row]

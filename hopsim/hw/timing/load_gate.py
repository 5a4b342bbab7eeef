"""What SMs may have asked L2 for and not been given: so much a CPC, in even parts for its SMs that have work.

What does not fit waits until the SM has got some of what it asked for before.  So the SMs of a CPC with two TPCs have more
on their way than those of one with three, where several CTAs of an SM or many stages of one load at once, and get more of a
busy L2.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, steady_*): with 96 KiB on the way to each SM, all SMs
get as much as each other, with 128 KiB and more those of small CPCs 1.3 to 1.6 times as much: as much a CPC as in the
others.  What is on its way to a CPC then is its rate times what a load takes where it does not wait.

What threads copy by way of L1 has a place there from when it is asked for until it is in shared memory (tests/silicon/
micro.json, tile_walk_copies_ca_*: with little L1 beside shared memory stages out of a busy L2 come as slowly as that says).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from hopsim.hw.machine.operations import Operation


class Cpc:
    """How much may be on its way to each SM of a CPC.

    Args:
        most_bytes: to all of them.
    """

    __slots__ = ("_busy_sms", "_most_bytes", "share_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._busy_sms = 0
        self.share_bytes = float(most_bytes)

    def note(self, change: int) -> None:
        """Note that so many more of its SMs have CTAs."""
        self._busy_sms += change
        self.share_bytes = self._most_bytes / max(1, self._busy_sms)


class Load(NamedTuple):
    """What an operation brings from L2 to its SM.

    Args:
        count_bytes: of it.  through_l1: whether it is in L1 first.
    """

    count_bytes: int
    through_l1: bool = False


class LoadGate:
    """The loads of one SM.

    Args:
        cpc: that the SM is part of.
        l1_bytes: what shared memory leaves of the data store.
    """

    __slots__ = ("_cpc", "_in_l1_bytes", "_l1_bytes", "_on_way_bytes", "_waiting")

    def __init__(self, cpc: Cpc, l1_bytes: int) -> None:
        self._cpc = cpc
        self._l1_bytes = l1_bytes
        self._on_way_bytes = 0
        self._in_l1_bytes = 0
        # With when they were issued.
        self._waiting: deque[tuple[Operation, float, Load]] = deque()

    def enter(self, operation: Operation, time: float, load: Load) -> bool:
        """Let a load that is issued at `time` pass, or keep it until there is room; return whether it passes."""
        if self._waiting or not self._has_room(load):
            self._waiting.append((operation, time, load))
            return False
        self._take(load)
        return True

    def leave(self, load: Load) -> list[tuple[Operation, float]]:
        """Note that a load has landed; return those that pass now, and when they were issued."""
        self._on_way_bytes -= load.count_bytes
        if load.through_l1:
            self._in_l1_bytes -= load.count_bytes
        passing: list[tuple[Operation, float]] = []
        waiting = self._waiting
        while waiting and self._has_room(waiting[0][2]):
            operation, time, next_load = waiting.popleft()
            self._take(next_load)
            passing.append((operation, time))
        return passing

    def _take(self, load: Load) -> None:
        self._on_way_bytes += load.count_bytes
        if load.through_l1:
            self._in_l1_bytes += load.count_bytes

    def _has_room(self, load: Load) -> bool:
        """Say whether a load can be on its way too; one always can."""
        on_way = self._on_way_bytes
        if on_way and on_way + load.count_bytes > self._cpc.share_bytes:
            return False
        in_l1 = self._in_l1_bytes
        return not load.through_l1 or not in_l1 or in_l1 + load.count_bytes <= self._l1_bytes


__all__ = ["Cpc", "Load", "LoadGate"]

"""What SMs may have asked L2 for and not been given: so much a CPC, in even parts for its SMs that have work.

What does not fit waits until the SM has got some of what it asked for before.  So the SMs of a CPC with two TPCs have more
on their way than those of one with three, where several CTAs of an SM or many stages of one load at once, and get more of a
busy L2.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, steady_*): with 96 KiB on the way to each SM, all SMs
get as much as each other, with 128 KiB and more those of small CPCs 1.3 to 1.6 times as much: as much a CPC as in the
others.  What is on its way to a CPC then is its rate times what a load takes where it does not wait.
"""

from __future__ import annotations

from collections import deque

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


class LoadGate:
    """The loads of one SM.

    Args:
        cpc: that the SM is part of.
    """

    __slots__ = ("_cpc", "_on_way_bytes", "_waiting")

    def __init__(self, cpc: Cpc) -> None:
        self._cpc = cpc
        self._on_way_bytes = 0
        # With when they were issued, and their bytes.
        self._waiting: deque[tuple[Operation, float, int]] = deque()

    def enter(self, operation: Operation, time: float, count_bytes: int) -> bool:
        """Let a load that is issued at `time` pass, or keep it until there is room; return whether it passes."""
        if self._waiting or not self._has_room(count_bytes):
            self._waiting.append((operation, time, count_bytes))
            return False
        self._on_way_bytes += count_bytes
        return True

    def leave(self, count_bytes: int) -> list[tuple[Operation, float]]:
        """Note that a load has landed; return those that pass now, and when they were issued."""
        self._on_way_bytes -= count_bytes
        passing: list[tuple[Operation, float]] = []
        waiting = self._waiting
        while waiting and self._has_room(waiting[0][2]):
            operation, time, size = waiting.popleft()
            self._on_way_bytes += size
            passing.append((operation, time))
        return passing

    def _has_room(self, count_bytes: int) -> bool:
        """Say whether so much more can be on its way; one load always can."""
        on_way = self._on_way_bytes
        return not on_way or on_way + count_bytes <= self._cpc.share_bytes


__all__ = ["Cpc", "LoadGate"]

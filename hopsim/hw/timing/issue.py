"""Issue slots of the sub-partitions of one SM.

A sub-partition issues one warp instruction a cycle, from whichever of its warps is ready. Runs of instructions are booked
whole: a run that meets a backlog waits for its fair share of it, as if the scheduler took turns between resident warps.
"""

from __future__ import annotations

from collections.abc import Sequence

# (sub-partition, warps of the strand in it)
Ports = tuple[tuple[int, int], ...]


def ports_of(warps: Sequence[int], subpartitions: int) -> Ports:
    """Return the sub-partitions that the warps of a strand issue from: warp w belongs to w mod subpartitions."""
    counts: dict[int, int] = {}
    for warp in warps:
        counts[warp % subpartitions] = counts.get(warp % subpartitions, 0) + 1
    return tuple(sorted(counts.items()))


class IssuePorts:
    """When the issue ports of one SM are free, in cycles of the SM clock, and how many warps share each.

    Args:
        subpartitions: schedulers of the SM.
    """

    __slots__ = ("_ends", "busy_slots", "free", "resident")

    def __init__(self, subpartitions: int) -> None:
        self.free = [0.0] * subpartitions
        self.resident = [0] * subpartitions
        self.busy_slots = 0.0
        # When runs that were booked last end.
        self._ends: list[list[float]] = [[] for _ in range(subpartitions)]

    def admit(self, ports: Ports, sign: int = 1) -> None:
        """Add (or with -1 take away) the warps of a strand."""
        for port, warps in ports:
            self.resident[port] += sign * warps

    def book(self, ports: Ports, start: float, slots: float) -> float:
        """Take `slots` issue cycles for each warp from `start` on; return when the last of them has issued."""
        free = self.free
        if max(free) <= start:
            # Nothing to wait for.
            longest = 0.0
            for port, warps in ports:
                work = slots * warps
                free[port] = start + work
                self._ends[port] = [start + work]
                self.busy_slots += work
                if work > longest:
                    longest = work
            return start + longest
        resident = self.resident
        finish = start
        for port, warps in ports:
            work = slots * warps
            backlog = free[port] - start
            if backlog > 0.0:
                # Round robin: while this run issues once, each other warp that has something to issue does once.
                ends = [end for end in self._ends[port] if end > start]
                share = slots * min(len(ends), resident[port] - warps)
                free[port] += work
                end = start + work + (backlog if backlog < share else share)
                ends.append(end)
                self._ends[port] = ends
            else:
                end = free[port] = start + work
                self._ends[port] = [end]
            self.busy_slots += work
            if end > finish:
                finish = end
        return finish

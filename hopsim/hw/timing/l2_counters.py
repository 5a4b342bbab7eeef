"""What L2 counts."""

from __future__ import annotations


class L2Counters:
    """Sectors by what happened to them (32 bytes each).

    `read` and `written` count lookups in any partition, as Nsight Compute's lts counters do: a
    request that has to go on to the home partition counts in both. `requested` counts what SMs
    asked for.

    A miss that brings a pair of lines makes the second one a hit when it is asked for, at its home. Its own look-up
    counts as a miss where the SM asked the home itself; where a partition asked for the other, none is seen.
    """

    __slots__ = ("dram_read", "dram_written", "hit", "merged", "read", "requested", "written")

    def __init__(self) -> None:
        self.requested = 0
        self.merged = 0
        self.read = 0
        self.hit = 0
        self.written = 0
        self.dram_read = 0
        self.dram_written = 0


__all__ = ["L2Counters"]

"""Loads of the warps of a strand between two waits, which the data pipe of L1 serves line by line.

A warp alone takes longer over a line than the pipe does.  Warps that start together drift apart until none stands in the
others' way: a load leaves when those of its own warp before it have, and what follows a wait begins when the pipe has
served the loads of all warps before it.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json): gather_tiles_*, gather_walk_*.
"""

from __future__ import annotations

from hopsim.config.memory import L1
from hopsim.hw.timing.shared_memory import SharedPipe


class LoadBursts:
    """When loads of a strand pass L1; times in cycles of the SM clock.

    Args:
        config: how long a line takes a warp alone, and how soon a load can be answered.
    """

    __slots__ = ("_alone", "_latency")

    def __init__(self, config: L1) -> None:
        self._alone = float(config.warp_interval_cycles)
        self._latency = float(config.latency_cycles)

    def take(
        self, pipe: SharedPipe, before: float, passes: int, warps: int, time: float
    ) -> tuple[float, float]:
        """Take the data pipe of L1, a pass for each line of each warp; return when a warp's load enters and leaves it.

        Args:
            pipe: of the SM.
            before: when the strand's last load has left it.
            passes: of all warps.
        """
        free = pipe.free
        pipe.book(time, passes, passes)
        # What comes sooner than any answer has not waited for one.
        begin = max(time, before if time < before + self._latency else free)
        return begin, begin + self._alone * passes / warps

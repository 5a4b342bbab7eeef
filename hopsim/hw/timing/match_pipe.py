"""`match` on one SM: each sub-partition compares one value after the other with those of all lanes.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json): match_any_w1 to _w16, whose latency grows by 11 cycles
for each further value that the lanes of a warp have, and of which four warps of a sub-partition take 8 cycles a value each;
match_all_* takes as long for many values as for one.
"""

from __future__ import annotations

from hopsim.config.groups import Issue
from hopsim.hw.timing.issue import Ports


class MatchPipe:
    """Books `match` instructions; times in cycles of the SM clock.

    Args:
        config: latencies.
        subpartitions: of the SM.
    """

    __slots__ = ("_config", "_free")

    def __init__(self, config: Issue, subpartitions: int) -> None:
        self._config = config
        self._free = [0.0] * subpartitions

    def book(self, issue: float, values: int, ports: Ports) -> float:
        """Execute one for each warp of a strand; return when the first result is there.

        (Warps that run alike take turns: while the first one goes on, the others are served.)

        Args:
            values: that the lanes of a warp have, at most.
            ports: warps of the strand by sub-partition.
        """
        config = self._config
        latency = config.match_latency_cycles + config.match_value_cycles * values
        interval = config.match_interval_cycles * values
        begins = issue
        for port, warps in ports:
            begin = max(issue, self._free[port])
            self._free[port] = begin + interval * warps
            begins = max(begins, begin)
        return begins + latency


__all__ = ["MatchPipe"]

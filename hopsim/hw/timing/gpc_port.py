"""The way of data from L2 to the SMs of a GPC, which share a port; those of a CPC share what is on its way to one of them.

Different lines come at one rate.  Lines that an SM of the same CPC has asked for and that have not come yet are not asked
for again: they come once and are handed to each SM, at a rate of their own.

Source: hopsim's recording on an H100 SXM (tests/silicon/micro.json, group boxes): own boxes against the same boxes, from 1
to 132 SMs.  Of 16 SMs of a GPC, or of all of the chip, that read the same, 3.1 to 3.7 share a request, of two of a TPC 1.7
to 2.0.  One that asks when the data has come shares nothing: it is what is in flight, not a cache.
"""

from __future__ import annotations

from hopsim.config.groups import L2
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.l2_tags import Lines, Masks

# (first line, count, last line, sectors of the first and of the last line)
JoinKey = tuple[int, int, int, int]


def join_key(lines: Lines, masks: Masks | None = None) -> JoinKey | None:
    """Return what two requests for the same sectors have in common; None without lines.

    Args:
        lines: numbers.
        masks: a bit for each sector that is wanted of each line; None: whole lines.
    """
    count = len(lines)
    if not count:
        return None
    wanted = 0 if masks is None else int(masks[0]) << 8 | int(masks[-1])
    return int(lines[0]), count, int(lines[-1]), wanted


class GpcPort:
    """The port of one GPC.

    Args:
        config: its rate for different lines, and that at which it hands data to SMs.
        l2: what is behind it.
        gpc: its number.
    """

    __slots__ = ("_delivered", "_delivery_rate", "_free", "_gpc", "_l2", "_rate")

    def __init__(self, config: L2, l2: L2Cache, gpc: int) -> None:
        self._rate = config.bandwidth_per_gpc_bytes_per_clk
        self._delivery_rate = config.delivery_per_gpc_bytes_per_clk
        self._l2 = l2
        self._gpc = gpc
        self._free = 0.0
        self._delivered = 0.0

    def read(
        self,
        now: float,
        begin: float,
        sent: float,
        awaited: dict[JoinKey, float],
        lines: Lines,
        sectors: int,
        key: JoinKey | None,
        masks: Masks | None,
        receivers: int = 1,
    ) -> float:
        """Read a box or the lines of a warp; return when the last byte reaches the SMs.

        Args:
            now: when the bandwidth is booked.
            begin, sent: when the first and the last request leave the SM (not before `now`).
            awaited: when the lines are there that neighbours have asked for.
            lines, sectors, masks: as `L2Cache.read` takes them.
            key: `join_key(lines, masks)`.
            receivers: SMs that each get all of it.
        """
        l2 = self._l2
        count_bytes = sectors * l2.sector_bytes
        handed = self._delivered if self._delivered > begin else begin
        handed += receivers * count_bytes / self._delivery_rate
        self._delivered = handed
        if handed > sent:
            sent = handed
        if key is None:
            return l2.read(now, sent, lines, sectors, self._gpc, masks)
        ready = awaited.get(key, 0.0)
        if ready > now:
            return l2.join(sent, sectors, ready)
        free = (self._free if self._free > begin else begin) + count_bytes / self._rate
        self._free = free
        if free > sent:
            sent = free
        ready = awaited[key] = l2.read(now, sent, lines, sectors, self._gpc, masks)
        return ready

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

    __slots__ = ("_delivered", "_delivery_rate", "_free", "_rate", "gpc", "l2")

    def __init__(self, config: L2, l2: L2Cache, gpc: int) -> None:
        self._rate = config.bandwidth_per_gpc_bytes_per_clk
        # A part of a line takes as long as a line.
        self._delivery_rate = config.delivery_per_gpc_bytes_per_clk / config.line_bytes
        self.l2 = l2
        self.gpc = gpc
        self._free = 0.0
        self._delivered = 0.0

    def fetch(self, begin: float, count_bytes: int) -> float:
        """Bring bytes from L2 from `begin` on; return when the last one is through."""
        self._free = (self._free if self._free > begin else begin) + count_bytes / self._rate
        return self._free

    def hand(self, begin: float, lines: int) -> float:
        """Hand lines, or parts of them, to SMs from `begin` on; return when the last one is through."""
        delivered = self._delivered if self._delivered > begin else begin
        self._delivered = delivered + lines / self._delivery_rate
        return self._delivered


class CpcPort:
    """The way of the SMs of one CPC to the port of their GPC.

    Args:
        gpc: that port.
    """

    __slots__ = ("_awaited", "_gpc")

    def __init__(self, gpc: GpcPort) -> None:
        self._gpc = gpc
        # When the lines of a request are there.
        self._awaited: dict[JoinKey, float] = {}

    def read(
        self,
        now: float,
        begin: float,
        sent: float,
        lines: Lines,
        sectors: int,
        key: JoinKey | None,
        masks: Masks | None,
        receivers: int = 1,
        beside: Lines | None = None,
    ) -> float:
        """Read a box or the lines of a warp; return when the last byte reaches the SMs.

        Args:
            now: when the bandwidth is booked.
            begin, sent: when the first and the last request leave the SM (not before `now`).
            lines, sectors, masks: as `L2Cache.read` takes them.
            key: `join_key(lines, masks)`.
            receivers: SMs that each get all of it.
            beside: as `L2Cache.read` takes it.
        """
        gpc = self._gpc
        l2 = gpc.l2
        sent = max(sent, gpc.hand(begin, receivers * len(lines)))
        if key is None:
            return l2.read(now, sent, lines, sectors, gpc.gpc, masks, begin, beside)
        ready = self._awaited.get(key, 0.0)
        if ready > now:
            return l2.join(sent, sectors, ready)
        sent = max(sent, gpc.fetch(begin, sectors * l2.sector_bytes))
        ready = l2.read(now, sent, lines, sectors, gpc.gpc, masks, begin, beside)
        self._awaited[key] = ready
        return ready

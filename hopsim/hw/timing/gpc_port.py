"""The way of data from L2 to the SMs of a GPC, which share a port and what is on its way to one of them.

Different lines come at one rate.  Lines that an SM of the GPC has just asked for are not asked for again: up to so many SMs
share a request, and the lines are handed to each of them, at a rate of their own.  An SM may join while L2 works on the
request; the other SM of a TPC that shares it may join until the data comes.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, group boxes; Nsight Compute's sectors).
Own boxes against the same boxes, from 1 to 132 SMs: of n SMs of a GPC that read the same together, whichever they are,
n / 4 rounded up ask L2.  The SMs of a TPC share for good, whatever the load; others lose each other when all GPCs are
busy.  One that asks when the data has come shares nothing: it is what is in flight, not a cache.
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


class _Request:
    """Lines that are on their way to the SMs of a GPC.

    Args:
        ready: when they reach the SMs.
        served: when L2 has served its first line; requests of other TPCs may join before.
        through: when the first line is there; requests of TPCs that share it may join before.
        finish: `L2Cache.finish` of it.
    """

    __slots__ = ("finish", "ready", "served", "sharing", "through")

    def __init__(self, ready: float, served: float, through: float, finish: float) -> None:
        self.finish = finish
        self.ready = ready
        self.served = served
        self.through = through
        self.sharing = 1


class GpcPort:
    """The port of one GPC.

    Args:
        config: its rate for different lines, that at which it hands data to SMs, and how many share a request.
        l2: what is behind it.
        gpc: its number.
    """

    __slots__ = (
        "_delivered",
        "_delivery_rate",
        "_free",
        "_rate",
        "awaited",
        "gpc",
        "l2",
        "sharers",
        "way_back",
    )

    def __init__(self, config: L2, l2: L2Cache, gpc: int) -> None:
        self._rate = config.bandwidth_per_gpc_bytes_per_clk
        # A part of a line takes as long as a line.
        self._delivery_rate = config.delivery_per_gpc_bytes_per_clk / config.line_bytes
        self.sharers = config.sms_per_request
        # The rest of L2's latency is the way back to the SM.
        self.way_back = float(config.latency_near_cycles - config.joining_cycles)
        self.l2 = l2
        self.gpc = gpc
        self._free = 0.0
        self._delivered = 0.0
        self.awaited: dict[JoinKey, _Request] = {}

    def fetch(self, begin: float, count_bytes: int) -> float:
        """Bring bytes from L2 from `begin` on; return when the last one is through."""
        self._free = (self._free if self._free > begin else begin) + count_bytes / self._rate
        return self._free

    def hand(self, begin: float, lines: int) -> float:
        """Hand lines, or parts of them, to SMs from `begin` on; return when the last one is through."""
        delivered = self._delivered if self._delivered > begin else begin
        self._delivered = delivered + lines / self._delivery_rate
        return self._delivered


class TpcPort:
    """The way of the SMs of one TPC to the port of their GPC.

    Args:
        gpc: that port.
    """

    __slots__ = ("_awaited", "_gpc", "gpc")

    def __init__(self, gpc: GpcPort) -> None:
        self._gpc = gpc
        self.gpc = gpc.gpc
        self._awaited: dict[JoinKey, _Request] = {}

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
        delivered = gpc.hand(begin, receivers * len(lines))
        if key is None:
            return l2.read(
                now, max(sent, delivered), lines, sectors, self.gpc, masks, begin, beside
            )
        request = self._awaited.get(key)
        if request is None or request.through <= begin or request.sharing >= gpc.sharers:
            request = gpc.awaited.get(key)
            if request is None or request.served <= begin or request.sharing >= gpc.sharers:
                asked = max(sent, gpc.fetch(begin, sectors * l2.sector_bytes))
                ready = l2.read(now, asked, lines, sectors, self.gpc, masks, begin, beside)
                request = _Request(
                    ready, begin + ready - asked - gpc.way_back, begin + ready - sent, l2.finish
                )
                gpc.awaited[key] = self._awaited[key] = request
                return max(ready, delivered + l2.near)
            self._awaited[key] = request
        request.sharing += 1
        l2.finish = request.finish
        return l2.join(max(sent, delivered), sectors, request.ready)

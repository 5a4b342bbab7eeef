"""The way of data from L2 to the SMs of a GPC, which share a port and what is on its way to one of them.

Different lines come at one rate.  Lines that an SM of the GPC has just asked for are not asked for again: up to so many SMs
share a request until its first line is there, and the lines are handed to each of them, at a rate of their own.  Where
others crowd the port, not all lines of a box find their request still on its way: the later an SM asks, the more it asks for
itself.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, group boxes; Nsight Compute's sectors).
Own boxes against the same boxes, from 1 to 132 SMs: of n SMs of a GPC that read the same together, whichever they are,
n / 4 rounded up ask L2.  Pairs of the 16 SMs of a GPC that read the same get 928, 876 and 816 bytes a cycle when one starts
0, 20 and 50 cycles late, 619 and 559 at 160 and 400; which SMs they are hardly matters.  Of 16 SMs that read the same
rows, 1,040 bytes apart, every second of which begins within a sector, a third share; 1,056 bytes apart two thirds do.
What comes of a line takes the port in pairs of sectors: own boxes half of whose rows have an odd part in two lines come at
3,745 bytes a clock, those of whole lines at 4,273 (66 SMs; tile_walk_*_p4128 on an H200: 4,140 and 4,600).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hopsim.config.groups import L2
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.l2_tags import BITS, Lines, Masks

# Of a box: lines more than with rows that begin at lines, parts of sectors, lines with such parts.
Splits = tuple[int, int, int]
WHOLE_ROWS: Final[Splits] = (0, 0, 0)
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


def _padding(masks: Masks | None, more: int) -> int:
    """Return the sectors that the port takes beyond those wanted of a box whose rows do not begin at lines."""
    return int(np.count_nonzero(BITS[masks] & 1)) if more and masks is not None else 0


class _Request:
    """Lines that are on their way to the SMs of a GPC.

    Args:
        begin: when the first was asked for.
        is_crowded: whether it waits for the port longer than L2 takes.
        window: how much later another SM finds none of them on its way then.
        ready: when they reach the SMs.
        finish: `L2Cache.finish` of it.
        through: how much later the first line is there; until then all are on their way otherwise.
    """

    __slots__ = ("begin", "finish", "is_crowded", "ready", "sharing", "through", "window")

    def __init__(
        self,
        begin: float,
        is_crowded: bool,
        window: float,
        ready: float,
        finish: float,
        through: float,
    ) -> None:
        self.begin = begin
        self.is_crowded = is_crowded
        self.window = window
        self.ready = ready
        self.finish = finish
        self.sharing = 1
        self.through = through


class GpcPort:
    """The port of one GPC.

    Args:
        config: its rate for different lines, that at which it hands data to SMs, how many share a request, for how long.
        l2: what is behind it.
        gpc: its number.
    """

    __slots__ = (
        "_awaited",
        "_delivered",
        "_delivery_rate",
        "_disorder",
        "_free",
        "_nominal",
        "_rate",
        "_second",
        "_sharers",
        "_window",
        "gpc",
        "l2",
    )

    def __init__(self, config: L2, l2: L2Cache, gpc: int) -> None:
        self._nominal = config.bandwidth_per_gpc_bytes_per_clk
        self._rate = self._nominal
        # A part of a line takes as long as a line.
        self._delivery_rate = config.delivery_per_gpc_bytes_per_clk / config.line_bytes
        # The rest of a row, in its second line, comes quicker than another row.
        self._second = config.delivery_split
        self._sharers = config.sms_per_request
        self._window = float(config.joining_cycles)
        self._disorder = float(config.joining_disorder_cycles)
        self.l2 = l2
        self.gpc = gpc
        self._free = 0.0
        self._delivered = 0.0
        self._awaited: dict[JoinKey, _Request] = {}

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on; handing to SMs stays."""
        self._rate = self._nominal * factor

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
        splits: Splits = WHOLE_ROWS,
    ) -> float:
        """Read a box or the lines of a warp; return when the last byte reaches the SMs.

        Args:
            now: when the bandwidth is booked.
            begin, sent: when the first and the last request leave the SM (not before `now`).
            lines, sectors, masks: as `L2Cache.read` takes them.
            key: `join_key(lines, masks)`.
            receivers: SMs that each get all of it.
            beside: as `L2Cache.read` takes it.
            splits: of a box: lines that it has more than one whose rows begin at lines, parts of sectors, lines with such
                parts, which nobody shares.
        """
        l2 = self.l2
        more, parts, uneven = splits
        handed = len(lines) - more + more * self._second + parts
        delivered = self._hand(begin, receivers * handed)
        if key is None:
            return l2.read(
                now, max(sent, delivered), lines, sectors, self.gpc, masks, begin, beside
            )
        request = self._awaited.get(key)
        if request is not None and request.sharing < self._sharers:
            late = begin - request.begin
            # What has come and gone is spread over those that nobody shares and the others alike.
            again = uneven + self._not_on_their_way(request, late, len(lines) - uneven)
            if again < len(lines):
                return self._join(
                    request, now, begin, max(sent, delivered), lines, sectors, masks, again, more
                )
        is_crowded = self._free - begin > l2.near
        asked = self._ask(begin, sent, sectors + _padding(masks, more))
        ready = l2.read(now, asked, lines, sectors, self.gpc, masks, begin, beside)
        # The longer L2 takes, the longer others find lines on their way.
        window = self._window + max(0.0, ready - asked - l2.near)
        self._awaited[key] = _Request(begin, is_crowded, window, ready, l2.finish, ready - sent)
        return max(ready, delivered + l2.near)

    def _not_on_their_way(self, request: _Request, late: float, count: int) -> int:
        """Return how many of the lines of a request an SM has to ask for itself that asks so much later."""
        if not request.is_crowded:
            return 0 if late < request.through else count
        return max(0, int(count * (late + self._disorder) / request.window + 0.5))

    def _join(
        self,
        request: _Request,
        now: float,
        begin: float,
        sent: float,
        lines: Lines,
        sectors: int,
        masks: Masks | None,
        again: int,
        more: int,
    ) -> float:
        """Share a request but for its last lines, so many, which have come and gone; return when all are there."""
        request.sharing += 1
        l2 = self.l2
        ready = request.ready
        finish = request.finish
        if again:
            rest = lines[-again:]
            parts = None if masks is None else masks[-again:]
            missing = sectors * again // len(lines) if parts is None else int(BITS[parts].sum())
            sectors -= missing
            asked = self._ask(begin, sent, missing + _padding(parts, more))
            ready = max(ready, l2.read(now, asked, rest, missing, self.gpc, parts, begin))
            finish = max(finish, l2.finish)
        l2.finish = finish
        return l2.join(sent, sectors, ready)

    def _ask(self, begin: float, sent: float, sectors: int) -> float:
        """Bring sectors from L2 from `begin` on; return when the last one is through."""
        count_bytes = sectors * self.l2.sector_bytes
        self._free = (self._free if self._free > begin else begin) + count_bytes / self._rate
        return self._free if self._free > sent else sent

    def _hand(self, begin: float, lines: float) -> float:
        """Hand lines, or parts of them, to SMs from `begin` on; return when the last one is through."""
        delivered = self._delivered if self._delivered > begin else begin
        self._delivered = delivered + lines / self._delivery_rate
        return self._delivered

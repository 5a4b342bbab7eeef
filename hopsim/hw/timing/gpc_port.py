"""The way of data from L2 to the SMs of a GPC, which share a port and what is on its way to one of them.

Different lines come at one rate, those of all SMs in turns.  Lines that an SM of the GPC has just asked for are not asked
for again: up to so many SMs share a request, and the lines are handed to each of them, at a rate of their own.  A line is on
its way only for some time: the later an SM asks, the more it asks for itself.  Where slices are busy, lines are on their way
for longer.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, group boxes; Nsight Compute's sectors).
Own boxes against the same boxes, from 1 to 132 SMs: of n SMs of a GPC that read the same together, whichever they are,
n / 4 rounded up ask L2.  Pairs of the 16 SMs of a GPC that read the same get 928, 876 and 816 bytes a cycle when one starts
0, 20 and 50 cycles late, 619 and 559 at 160 and 400; which SMs they are hardly matters.  Of 16 SMs that read the same
rows, 1,040 bytes apart, every second of which begins within a sector, a third share; 1,056 bytes apart two thirds do.
Of what is joined of rows in two lines, a third comes through the port again (tests/silicon/l2_joined.json, *_p41*).
With one stage of tiles on its way SMs stay together (tile_walk_*_d1): the first box is through as late as the last.
"""

from __future__ import annotations

from typing import Final

from hopsim.config.groups import L2
from hopsim.hw.timing.backlog import Backlog
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.l2_tags import BITS, Lines, Masks

# Of a box: lines more than with rows that begin at lines, parts of sectors, lines with such parts.
Splits = tuple[int, int, int]
WHOLE_ROWS: Final[Splits] = (0, 0, 0)
USUAL_SMS: Final = 16
"""SMs of a GPC whose port has the rate of the configuration."""
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
        begin: when the last was asked for.
        window: how much later another SM finds none of them on its way.
        disorder: added to how late it is.
        ready: when they reach the SMs.
        finish: `L2Cache.finish` of it.
        through: when the last of them is through the port.
    """

    __slots__ = ("begin", "disorder", "finish", "ready", "sharing", "through", "window")

    def __init__(
        self,
        begin: float,
        window: float,
        disorder: float,
        ready: float,
        finish: float,
        through: float,
    ) -> None:
        self.begin = begin
        self.window = window
        self.disorder = disorder
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
        sms: how many it serves.
    """

    __slots__ = (
        "_again",
        "_awaited",
        "_backlog",
        "_crowded",
        "_delivered",
        "_delivery_rate",
        "_disorder",
        "_free",
        "_nominal",
        "_parts_disorder",
        "_rate",
        "_second",
        "_sharers",
        "_window",
        "gpc",
        "l2",
        "others",
        "through",
    )

    def __init__(self, config: L2, l2: L2Cache, gpc: int, sms: int) -> None:
        # Larger GPCs have wider ports.
        self._nominal = config.bandwidth_per_gpc_bytes_per_clk * max(1.0, sms / USUAL_SMS)
        self._rate = self._nominal
        # A part of a line takes as long as a line.
        self._delivery_rate = config.delivery_per_gpc_bytes_per_clk / config.line_bytes
        # The rest of a row, in its second line, comes quicker than another row.
        self._second = config.delivery_split
        self._sharers = config.sms_per_request
        self._window = float(config.joining_cycles)
        self._crowded = float(config.joining_crowded_cycles)
        self._disorder = float(config.joining_disorder_cycles)
        self._parts_disorder = config.parts_disorder
        self._again = config.joined_again
        self.l2 = l2
        self.gpc = gpc
        self._free = 0.0
        self._delivered = 0.0
        self._backlog = Backlog()
        self.others = sms - 1
        # When what was read last is through the port if no other SM asks.
        self.through = 0.0
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
            receivers: SMs that each get all of it; what several get is not shared with others.
            beside: as `L2Cache.read` takes it.
            splits: of a box: lines that it has more than one whose rows begin at lines, parts of sectors, lines with such
                parts, which nobody shares.
        """
        l2 = self.l2
        more, parts, uneven = splits
        count = len(lines)
        delivered = self._hand(begin, receivers * (count - more + more * self._second + parts))
        if key is None:
            return l2.read(
                now, max(sent, delivered), lines, sectors, self.gpc, masks, begin, beside
            )
        request = self._awaited.get(key) if receivers == 1 else None
        if request is not None and request.sharing < self._sharers:
            late = sent - request.begin + request.disorder
            # What has come and gone is spread over those that nobody shares and the others alike.
            gone = int((count - uneven) * late / request.window + 0.5)
            again = uneven + gone
            if again < count:
                return self._join(
                    request, now, begin, sent, delivered, lines, sectors, masks, again, splits
                )
        self.through = through = self._bring(now, begin, sectors)
        ready = l2.read(now, sent, lines, sectors, self.gpc, masks, begin, beside, parts)
        ready = max(ready, through + l2.near, delivered + l2.near)
        if receivers == 1:
            self._awaited[key] = self._request(begin, sent, ready, parts, through)
        return ready

    def _request(
        self, begin: float, sent: float, ready: float, parts: int, through: float
    ) -> _Request:
        """Note what was asked of L2 last, for others to join."""
        l2 = self.l2
        # The longer L2 takes for a line, the longer others find it on its way; what costs more look-ups goes line by line.
        crowd = min(l2.crowd, self._crowded)
        window = (self._window + crowd) * min(1.0, 1.0 / l2.look_ups) + l2.late
        disorder = self._disorder if l2.crowd > l2.near or through - begin > l2.near else 0.0
        if parts:
            disorder += self._parts_disorder * max(0.0, ready - begin - 2.0 * l2.near)
        return _Request(sent, window, disorder, ready, l2.finish, through)

    def _join(
        self,
        request: _Request,
        now: float,
        begin: float,
        sent: float,
        delivered: float,
        lines: Lines,
        sectors: int,
        masks: Masks | None,
        again: int,
        splits: Splits,
    ) -> float:
        """Share a request but for its last lines, so many, which have come and gone; return when all are there."""
        request.sharing += 1
        l2 = self.l2
        ready = request.ready
        finish = request.finish
        count = len(lines)
        rest = lines[count - again :]
        held = None if masks is None else masks[count - again :]
        missing = sectors * again // count if held is None else int(BITS[held].sum())
        more, parts, _ = splits
        # Of a row in two lines, some of what is joined comes once more.
        once_more = self._again * (sectors - missing) * more / (count - more) if more else 0.0
        through = request.through
        if missing or once_more:
            through = max(through, self._bring(now, begin, missing + once_more))
        self.through = through
        if again:
            alone = parts * again // count
            late = l2.read(now, sent, rest, missing, self.gpc, held, begin, None, alone)
            ready = max(ready, late)
            finish = max(finish, l2.finish)
        l2.finish = finish
        ready = max(ready, through + l2.near, delivered + l2.near)
        return l2.join(sent, sectors - missing, ready)

    def overtaken(self, through: float, count_bytes: int) -> float:
        """Return how much later a box is through than at `through`, for boxes that other SMs asked for while it waited.

        Lines of all SMs take turns: of each other SM as much goes first as the box has.

        Args:
            count_bytes: of the box.
        """
        behind = self._backlog.behind(through)
        if not behind:
            return 0.0
        others = self.others
        return min(behind * others / (others + 1), others * count_bytes / self._rate)

    def _bring(self, now: float, begin: float, sectors: float) -> float:
        """Bring sectors from L2 from `begin` on; return when the last one is through."""
        count_bytes = sectors * self.l2.sector_bytes
        self._free = (self._free if self._free > begin else begin) + count_bytes / self._rate
        self._backlog.note(now, self._free)
        return self._free

    def _hand(self, begin: float, lines: float) -> float:
        """Hand lines, or parts of them, to SMs from `begin` on; return when the last one is through."""
        delivered = self._delivered if self._delivered > begin else begin
        self._delivered = delivered + lines / self._delivery_rate
        return self._delivered

"""The way of data from L2 to the SMs of a GPC, which share a port and what is on its way to one of them.

Different lines come at one rate, those of all SMs in turns.  Lines that an SM of the GPC has just asked for are not asked
for again: up to so many SMs share a request, and the lines are handed to each of them, at a rate of their own.  A line is on
its way only for some time: the later an SM asks, the more it asks for itself.  Where slices are busy, lines are on their way
for longer.  Rows in two lines that come out of device memory are booked when they have come.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, group boxes; Nsight Compute's sectors).
Own boxes against the same boxes, from 1 to 132 SMs: of n SMs of a GPC that read the same together, whichever they are,
n / 4 rounded up ask L2.  Pairs of the 16 SMs of a GPC that read the same get 928, 876 and 816 bytes a cycle when one starts
0, 20 and 50 cycles late, 619 and 559 at 160 and 400; which SMs they are hardly matters.  Of 16 SMs that read the same
rows, 1,040 bytes apart, every second of which begins within a sector, a third share; 1,056 bytes apart two thirds do.
Of what is joined of rows in two lines, a third comes through the port again (tests/silicon/l2_joined.json, *_p41*).
With one stage of tiles on its way SMs stay together (tile_walk_*_d1): the first box is through as late as the last.
Out of device memory, tiles whose rows begin at lines come as soon as if the port had been theirs since they were asked for;
others 3 to 10 % later, as if it had been since the first of them came (cold_walk_*, cold_tiles_12x11_*).
"""

from __future__ import annotations

from typing import Final

from hopsim.config.memory import L2
from hopsim.hw.timing.backlog import Backlog
from hopsim.hw.timing.footprint import Footprint, JoinKey
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.way import Way

USUAL_SMS: Final = 16
"""SMs of a GPC whose port has the rate of the configuration."""


class _Request:
    """Lines that are on their way to the SMs of a GPC.

    Args:
        begin: when the last was asked for.
        together: how much later another SM finds all of them on their way.
        window: how much later than that another SM finds none.
        disorder: added to how late it is.
        ready: when they reach the SMs.
        finish, first: `L2Cache.finish` and `L2Cache.first` of it.
        through: when the last of them is through the port; 0: that is booked when they have come.
    """

    __slots__ = (
        "begin", "disorder", "finish", "first", "held", "ready", "sharing", "through", "together", "window",
    )  # fmt: skip

    def __init__(
        self,
        begin: float,
        together: float,
        window: float,
        disorder: float,
        ready: float,
        finish: float,
        first: float,
        through: float,
    ) -> None:
        self.begin = begin
        self.together = together
        self.window = window
        self.disorder = disorder
        self.ready = ready
        self.finish = finish
        self.first = first
        self.sharing = 1
        self.through = through
        # When they have come and are through.
        self.held = 0.0


class Late:
    """What device memory has to give before it can come through the port and be handed to SMs.

    Args:
        begin: when the first of it can come through.
        count_bytes: what comes through.
        lines: what is handed on, in lines or parts of them.
        request: that it is or shares; None: nobody shares it.
    """

    __slots__ = ("begin", "count_bytes", "lines", "request")

    def __init__(
        self, begin: float, count_bytes: float, lines: float, request: _Request | None
    ) -> None:
        self.begin = begin
        self.count_bytes = count_bytes
        self.lines = lines
        self.request = request


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
        "_delivery",
        "_disorder",
        "_nominal",
        "_parts_disorder",
        "_port",
        "_second",
        "_sharers",
        "_together",
        "_window",
        "gpc",
        "l2",
        "late",
        "others",
        "through",
    )

    def __init__(self, config: L2, l2: L2Cache, gpc: int, sms: int) -> None:
        # Larger GPCs have wider ports, and hand as much to each SM as others.
        larger = max(1.0, sms / USUAL_SMS)
        self._nominal = config.bandwidth_per_gpc_bytes_per_clk * larger
        self._port = Way(self._nominal)
        # A part of a line takes as long as a line.
        self._delivery = Way(config.delivery_per_gpc_bytes_per_clk * larger / config.line_bytes)
        # The rest of a row, in its second line, comes quicker than another row.
        self._second = config.delivery_split
        self._sharers = config.sms_per_request
        self._window = float(config.joining_cycles)
        self._crowded = float(config.joining_crowded_cycles)
        self._together = float(config.joining_together_cycles)
        self._disorder = float(config.joining_disorder_cycles)
        self._parts_disorder = config.parts_disorder
        self._again = config.joined_again
        self.l2 = l2
        self.gpc = gpc
        self._backlog = Backlog()
        self.others = sms - 1
        # When what was read last is through the port if no other SM asks; 0: that is booked when it has come.
        self.through = 0.0
        # What of it is left to be booked then.
        self.late: Late | None = None
        self._awaited: dict[JoinKey, _Request] = {}

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on; handing to SMs stays."""
        self._port.rate = self._nominal * factor

    def read(
        self, now: float, begin: float, sent: float, wanted: Footprint, receivers: int = 1
    ) -> float:
        """Read a box or the lines of a warp; return when the last byte reaches the SMs.

        Args:
            now: when the bandwidth is booked.
            begin, sent: when the first and the last request leave the SM (not before `now`).
            wanted: what is read.  Who has more lines asks `arrive` about what is `late`, when it has come.
            receivers: SMs that each get all of it; what several get is not shared with others.
        """
        l2 = self.l2
        more, parts, uneven, _ = wanted.splits
        count = len(wanted.lines)
        handed = receivers * (count - more + more * self._second + parts)
        self.late = None
        key = wanted.key
        if key is None:
            delivered = self._delivery.take(begin, handed)
            return l2.read(now, max(sent, delivered), wanted, self.gpc, begin)
        request = self._awaited.get(key) if receivers == 1 else None
        if request is not None and request.sharing < self._sharers:
            late = max(0.0, abs(sent - request.begin) + request.disorder - request.together)
            # What has come and gone is spread over those that nobody shares and the others alike.
            gone = int((count - uneven) * late / request.window + 0.5)
            again = uneven + gone
            if again < count:
                return self._join(request, now, begin, sent, handed, wanted, again)
        ready = l2.read(now, sent, wanted, self.gpc, begin)
        count_bytes = wanted.sectors * l2.sector_bytes
        through = 0.0
        is_late = more > 0 and l2.finish > 0.0
        if not is_late:
            through = self._bring(now, begin, count_bytes)
            delivered = self._delivery.take(begin, handed)
            ready = max(ready, through + l2.near, delivered + l2.near)
        self.through = through
        asked = None
        if receivers == 1:
            asked = self._awaited[key] = self._request(begin, sent, ready, parts, through)
        if is_late:
            self.late = Late(max(begin, l2.first - l2.near), count_bytes, handed, asked)
        return ready

    def arrive(self, late: Late, now: float) -> float:
        """Book what has come out of device memory; return how much later than now it is with the SMs."""
        # The way back from L2 has been counted.
        at = now - self.l2.near
        delay = self._delivery.take_late(late.begin, at, late.lines)
        if late.count_bytes:
            delay = max(delay, self._port.take_late(late.begin, at, late.count_bytes))
        request = late.request
        if request is not None:
            # Whoever shares it waits until it is through.
            request.held = max(request.held, now + delay)
            delay = request.held - now
        return delay

    def _request(
        self, begin: float, sent: float, ready: float, parts: int, through: float
    ) -> _Request:
        """Note what was asked of L2 last, for others to join."""
        l2 = self.l2
        # The longer L2 takes for a line, the longer others find it on its way; what costs more look-ups goes line by line.
        crowd = min(l2.crowd, self._crowded)
        window = (self._window + crowd) * min(1.0, 1.0 / l2.look_ups) + l2.late
        together = min(crowd, self._together)
        disorder = self._disorder if l2.crowd > l2.near or through - begin > l2.near else 0.0
        if parts:
            disorder += self._parts_disorder * max(0.0, ready - begin - 2.0 * l2.near)
        return _Request(
            sent,
            together,
            max(1.0, window - together),
            disorder,
            ready,
            l2.finish,
            l2.first,
            through,
        )

    def _join(
        self,
        request: _Request,
        now: float,
        begin: float,
        sent: float,
        handed: float,
        wanted: Footprint,
        again: int,
    ) -> float:
        """Share a request but for its last lines, so many, which have come and gone; return when all are there."""
        request.sharing += 1
        l2 = self.l2
        ready = request.ready
        finish = request.finish
        first = request.first
        count, sectors, more = len(wanted.lines), wanted.sectors, wanted.splits.more
        missing = 0
        if again:
            rest = wanted.last(again)
            missing = rest.sectors
            ready = max(ready, l2.read(now, sent, rest, self.gpc, begin))
            finish = max(finish, l2.finish)
            first = max(first, l2.first)
        # Of a row in two lines, some of what is joined comes once more.
        once_more = self._again * (sectors - missing) * more / (count - more) if more else 0.0
        brought = (missing + once_more) * l2.sector_bytes
        l2.finish = finish
        if more > 0 and finish > 0.0:
            self.through = 0.0
            self.late = Late(max(begin, first - l2.near), brought, handed, request)
            return l2.join(sent, sectors - missing, ready)
        through = request.through
        if brought:
            through = max(through, self._bring(now, begin, brought))
        self.through = through
        delivered = self._delivery.take(begin, handed)
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
        return min(behind * others / (others + 1), others * count_bytes / self._port.rate)

    def _bring(self, now: float, begin: float, count_bytes: float) -> float:
        """Bring bytes from L2 from `begin` on; return when the last one is through."""
        through = self._port.take(begin, count_bytes)
        self._backlog.note(now, through)
        return through

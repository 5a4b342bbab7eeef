"""The way of data from L2 to the SMs of a GPC, which share a port and what is on its way to one of them.

Different lines come at one rate, in the order of asking (`Stream`).  Lines that an SM of the GPC has just asked for are not
asked for again: up to so many requests share one, and its lines are handed to each of them, at a rate of their own and for a
share of the port's time.  A line is on its way only for some time: who asks later asks for more of the lines itself; while
lines wait at the port, they are on their way for longer.  What an SM asks for that it has asked for already takes the
port again, though L2 looks it up once.  Rows in two lines that come out of device memory pass the port when they have come.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, group boxes; Nsight Compute's sectors).
Own boxes against the same boxes, from 1 to 132 SMs: of n SMs of a GPC that read the same together, whichever they are,
n / 4 rounded up ask L2.  SMs that ask 25, 50, 75 and 100 cycles late share 94, 83, 50 and 9 % of the lines
(tests/silicon/l2_joined.json, paced_*), also where a GPC is just full; two CTAs of an SM look up 0.54 of what they ask for
and are as slow as if they shared nothing.  Where a walk over tiles waits for the port, SMs share more (tile_walk_*).
Of 16 SMs that read the same rows, 1,040 bytes apart, every second of which begins within a sector, a third share; 1,056
bytes apart two thirds do.  Of what is joined of rows in two lines, a third comes through the port again (*_p41*).
"""

from __future__ import annotations

from typing import Final

from hopsim.config.memory import L2
from hopsim.hw.timing.footprint import Footprint, JoinKey
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.stream import Passage, Stream

USUAL_SMS: Final = 16
"""SMs of a GPC whose port has the rate of the configuration."""


class _Request:
    """Lines that are on their way to the SMs of a GPC.

    Args:
        sent: when the last was asked for.
        together: how much later another SM finds all of them on their way; below 0: not even one that asks at once does.
        window: how much later than that another SM finds none.
        longer: the share of the time that lines wait at the port for which they are on their way.
        ready: when they reach the SMs, if they wait for nobody.
        finish, first: `L2Cache.finish` and `L2Cache.first` of it.
        fetch: its turn at the port.
        wait: how long it waited for slices before.
        sm: that asked.
    """

    __slots__ = (
        "fetch", "finish", "first", "longer", "ready", "sent", "sharing", "sms", "together", "wait", "window",
    )  # fmt: skip

    def __init__(
        self,
        sent: float,
        together: float,
        window: float,
        longer: float,
        ready: float,
        finish: float,
        first: float,
        fetch: Passage,
        wait: float,
        sm: int,
    ) -> None:
        self.sent = sent
        self.together = together
        self.window = window
        self.longer = longer
        self.ready = ready
        self.finish = finish
        self.first = first
        self.fetch = fetch
        self.wait = wait
        self.sharing = 1
        self.sms = {sm}


class GpcPort:
    """The port of one GPC.

    Args:
        config: its rate for different lines, that at which it hands data to SMs, how many share a request, for how long.
        l2: what is behind it.
        gpc: its number.
        sms: how many it serves.
    """

    __slots__ = (
        "_awaited",
        "_config",
        "_delivery",
        "_nominal",
        "_port",
        "gpc",
        "l2",
        "turns",
    )

    def __init__(self, config: L2, l2: L2Cache, gpc: int, sms: int) -> None:
        # Larger GPCs have wider ports, and hand as much to each SM as others.
        larger = max(1.0, sms / USUAL_SMS)
        ways = (config.gathering_cycles, config.mixing, config.mixing_most_cycles)
        # What it hands to an SM takes a share of its time: the rate of lines that one SM each asks for includes one.
        each = 1.0 + config.handing
        self._nominal = config.bandwidth_per_gpc_bytes_per_clk * larger * each
        self._port = Stream(self._nominal, *ways)
        # A part of a line takes as long as a line.
        rate = config.delivery_per_gpc_bytes_per_clk * larger / config.line_bytes
        self._delivery = Stream(rate, *ways)
        self._config = config
        self.l2 = l2
        self.gpc = gpc
        # What has to be done before what was read last is with the SMs; from then it takes `L2Cache.near`.
        self.turns: tuple[Passage, ...] = ()
        self._awaited: dict[JoinKey, _Request] = {}

    def speed_up(self, factor: float) -> None:
        """Take so many times fewer SM cycles than at the highest SM clock, from now on; handing to SMs stays."""
        self._port.rate = self._nominal * factor

    def read(
        self,
        now: float,
        begin: float,
        sent: float,
        wanted: Footprint,
        sm: int,
        receivers: int = 1,
    ) -> float:
        """Read a box or the lines of a warp; return when the last byte reaches the SMs if it waits for none of its `turns`.

        Args:
            now: when the bandwidth is booked.
            begin, sent: when the first and the last request leave the SM (not before `now`).
            wanted: what is read.
            sm: that asks.
            receivers: SMs that each get all of it; what several get is not shared with others.
        """
        l2 = self.l2
        more, parts, uneven, _ = wanted.splits
        count = len(wanted.lines)
        # The rest of a row, in its second line, comes quicker than another row.
        lines = receivers * (count - more + more * self._config.delivery_split + parts)
        key = wanted.key
        if key is None:
            self.turns = (self._delivery.ask(begin, sent, lines),)
            return l2.read(now, sent, wanted, self.gpc, begin)
        request = self._awaited.get(key) if receivers == 1 else None
        if request is not None and request.sharing < self._config.sms_per_request:
            late = max(0.0, abs(sent - request.sent) - request.together - self._held(request, now))
            # What has come and gone is spread over those that nobody shares and the others alike.
            gone = int((count - uneven) * late / request.window + 0.5)
            again = uneven + gone
            if again < count:
                return self._join(request, now, begin, sent, lines, wanted, again, sm)
        ready = l2.read(now, sent, wanted, self.gpc, begin)
        first, wait = l2.first if more else 0.0, l2.wait
        handed = wanted.sectors * receivers
        fetch = self._fetch(begin + wait, sent + wait, ready, first, wanted.sectors, handed, lines)
        if receivers == 1:
            self._awaited[key] = self._request(begin, sent, ready, parts, fetch, sm)
        return ready

    def expected(self, now: float) -> float:
        """Return when what was read last is with the SMs, for all that is known now and if only its turns hold it up."""
        return max(turn.expected(now) for turn in self.turns) + self.l2.near

    def _held(self, request: _Request, now: float) -> float:
        """Return how much longer the lines of a request are on their way because they wait for slices and the port."""
        config = self._config
        waits = request.wait + request.fetch.waits(now) - config.joining_held_after_cycles
        return request.longer * min(max(0.0, waits), config.joining_held_cycles)

    def _fetch(
        self,
        begin: float,
        sent: float,
        ready: float,
        first: float,
        sectors: float,
        handed: int,
        lines: float,
    ) -> Passage:
        """Bring sectors from L2, and hand them to SMs; return the turn of the former.

        Args:
            begin, sent: when the first and the last request come to the slice that has it.
            ready: when L2 has all of it.
            first: when it has the first if it passes as it comes out of device memory; 0: it does not.
            sectors, handed, lines: what comes, what SMs get of it, and in how many lines.
        """
        if first:
            near = self.l2.near
            begin, sent = max(begin, first - near), max(sent, ready - near)
        work = (sectors + handed * self._config.handing) * self.l2.sector_bytes
        fetch = self._port.ask(begin, sent, work)
        self.turns = (fetch, self._delivery.ask(begin, sent, lines))
        return fetch

    def _request(
        self, begin: float, sent: float, ready: float, parts: int, fetch: Passage, sm: int
    ) -> _Request:
        """Note what was asked of L2 last, for others to join."""
        l2, config = self.l2, self._config
        # What costs more look-ups goes line by line.
        longer = min(1.0, 1.0 / l2.look_ups)
        spread = config.joining_spread_cycles
        together = longer * config.joining_cycles - spread
        if parts:
            together -= config.parts_disorder * max(0.0, ready - begin - 2.0 * l2.near)
        window = max(1.0, 2.0 * spread + l2.late)
        return _Request(
            sent, together, window, longer, ready, l2.finish, l2.first, fetch, l2.wait, sm
        )

    def _join(
        self,
        request: _Request,
        now: float,
        begin: float,
        sent: float,
        lines: float,
        wanted: Footprint,
        again: int,
        sm: int,
    ) -> float:
        """Share a request but for its last lines, so many, which have come and gone; return when all are there."""
        request.sharing += 1
        l2 = self.l2
        ready, finish, first, wait = request.ready, request.finish, request.first, request.wait
        count, sectors, more = len(wanted.lines), wanted.sectors, wanted.splits.more
        missing = 0
        if again:
            rest = wanted.last(again)
            missing = rest.sectors
            ready = max(ready, l2.read(now, sent, rest, self.gpc, begin))
            finish = max(finish, l2.finish)
            first = max(first, l2.first)
            wait = max(wait, l2.wait)
        l2.finish = finish
        if sm in request.sms:
            brought = float(sectors)
        else:
            request.sms.add(sm)
            # Of a row in two lines, some of what is joined comes once more.
            once_more = (
                self._config.joined_again * (sectors - missing) * more / (count - more)
                if more
                else 0.0
            )
            brought = missing + once_more
        first = first if more else 0.0
        self._fetch(begin + wait, sent + wait, ready, first, brought, sectors, lines)
        self.turns = (request.fetch, *self.turns)
        return l2.join(sent, sectors - missing, ready)

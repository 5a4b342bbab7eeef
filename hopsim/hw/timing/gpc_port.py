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

from typing import Final, NamedTuple

from hopsim.config.memory import L2
from hopsim.hw.timing.footprint import Footprint, JoinKey
from hopsim.hw.timing.l2 import L2Cache, Reply
from hopsim.hw.timing.stream import Passage, Stream

USUAL_SMS: Final = 16
"""SMs of a GPC whose port has the rate of the configuration."""


class Arrival(NamedTuple):
    """When what was read is with the SMs, as far as that is known; times in cycles of the SM clock.

    Args:
        ready: when the last byte is, if it waits for none of its turns.
        turns: what has to be done before; from then it takes `L2Cache.near`.
        finish: as `Reply` has it.
    """

    ready: float
    turns: tuple[Passage, ...]
    finish: float


class _Request:
    """Lines that are on their way to the SMs of a GPC; times in cycles of the SM clock.

    Args:
        sent: when the last was asked for.
        together: how much later another SM finds all of them on their way; below 0: not even one that asks at once does.
        window: how much later than that another SM finds none.
        longer: the share of the time that lines wait at the port for which they are on their way.
        reply: of L2.
        fetch: its turn at the port.
        sm: that asked.
    """

    __slots__ = ("fetch", "longer", "reply", "sent", "sharing", "sms", "together", "window")

    def __init__(
        self,
        sent: float,
        together: float,
        window: float,
        longer: float,
        reply: Reply,
        fetch: Passage,
        sm: int,
    ) -> None:
        self.sent = sent
        self.together = together
        self.window = window
        self.longer = longer
        self.reply = reply
        self.fetch = fetch
        self.sharing = 1
        self.sms = {sm}


def later_of(one: Reply, other: Reply) -> Reply:
    """Return what L2 says to two reads together: the later of each of their times."""
    return Reply(*map(max, one, other))


class GpcPort:
    """The port of one GPC; times in cycles of the SM clock.

    Args:
        config: its rate for different lines, that at which it hands data to SMs, how many share a request, for how long.
        l2: what is behind it.
        gpc: its number.
        sms: how many it serves.
    """

    __slots__ = ("_awaited", "_config", "_delivery", "_nominal", "_port", "gpc", "l2")

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
        *,
        is_box: bool = True,
    ) -> Arrival:
        """Read a box or the lines of a warp.

        Args:
            now: when the bandwidth is booked.
            begin, sent: when the first and the last request leave the SM (not before `now`).
            wanted: what is read.
            sm: that asks.
            receivers: SMs that each get all of it; what several get is not shared with others.
            is_box: what others ask for later may come before the last lines of a box, not before those of a warp.
        """
        l2 = self.l2
        more, parts, uneven, _ = wanted.splits
        count = len(wanted.lines)
        # The rest of a row, in its second line, comes quicker than another row.
        lines = receivers * (count - more + more * self._config.delivery_split + parts)
        key = wanted.key
        if key is None:
            delivery = self._delivery.ask(begin, sent, lines, is_box)
            reply = l2.read(now, sent, wanted, self.gpc, begin)
            return Arrival(reply.ready, (delivery,), reply.finish)
        request = self._awaited.get(key) if receivers == 1 else None
        if request is not None and request.sharing < self._config.sms_per_request:
            late = max(0.0, abs(sent - request.sent) - request.together - self._held(request, now))
            # What has come and gone is spread over those that nobody shares and the others alike.
            gone = int((count - uneven) * late / request.window + 0.5)
            again = uneven + gone
            if again < count:
                return self._join(request, now, begin, sent, lines, wanted, again, sm, is_box)
        reply = l2.read(now, sent, wanted, self.gpc, begin)
        handed = wanted.sectors * receivers
        turns = self._fetch(begin, sent, reply, more > 0, wanted.sectors, handed, lines, is_box)
        if receivers == 1:
            self._awaited[key] = self._request(begin, sent, reply, parts, turns[0], sm)
        return Arrival(reply.ready, turns, reply.finish)

    def expected(self, one: Arrival, now: float) -> float:
        """Return when what was read is with the SMs, for all that is known now and if only its turns hold it up."""
        return max(turn.expected(now) for turn in one.turns) + self.l2.near

    def _held(self, request: _Request, now: float) -> float:
        """Return how much longer the lines of a request are on their way because they wait for slices and the port."""
        config = self._config
        waits = request.reply.wait + request.fetch.waits(now) - config.joining_held_after_cycles
        return request.longer * min(max(0.0, waits), config.joining_held_cycles)

    def _fetch(
        self,
        begin: float,
        sent: float,
        reply: Reply,
        is_split: bool,
        sectors: float,
        handed: int,
        lines: float,
        is_box: bool,
    ) -> tuple[Passage, Passage]:
        """Bring sectors from L2, and hand them to SMs; return the turns of both.

        Args:
            begin, sent: when the first and the last request leave the SM.
            reply: of L2.
            is_split: whether rows lie in two lines: out of device memory they pass as they come.
            sectors, handed, lines: what comes, what SMs get of it, and in how many lines.
            is_box: as `read` takes it.
        """
        begin, sent = begin + reply.wait, sent + reply.wait
        if is_split and reply.first:
            near = self.l2.near
            begin, sent = max(begin, reply.first - near), max(sent, reply.ready - near)
        work = (sectors + handed * self._config.handing) * self.l2.sector_bytes
        fetch = self._port.ask(begin, sent, work, is_box)
        return fetch, self._delivery.ask(begin, sent, lines, is_box)

    def _request(
        self, begin: float, sent: float, reply: Reply, parts: int, fetch: Passage, sm: int
    ) -> _Request:
        """Return what was asked of L2, for others to join."""
        config = self._config
        # What costs more look-ups goes line by line.
        longer = min(1.0, 1.0 / reply.look_ups)
        spread = config.joining_spread_cycles
        together = longer * config.joining_cycles - spread
        if parts:
            usual = 2.0 * self.l2.near
            together -= config.parts_disorder * max(0.0, reply.ready - begin - usual)
        window = max(1.0, 2.0 * spread + reply.late)
        return _Request(sent, together, window, longer, reply, fetch, sm)

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
        is_box: bool,
    ) -> Arrival:
        """Share a request but for its last lines, so many, which have come and gone."""
        request.sharing += 1
        l2, reply = self.l2, request.reply
        count, sectors, more = len(wanted.lines), wanted.sectors, wanted.splits.more
        missing = 0
        if again:
            rest = wanted.last(again)
            missing = rest.sectors
            reply = later_of(reply, l2.read(now, sent, rest, self.gpc, begin))
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
        turns = self._fetch(begin, sent, reply, more > 0, brought, sectors, lines, is_box)
        ready = l2.join(sent, sectors - missing, reply.ready)
        return Arrival(ready, (request.fetch, *turns), reply.finish)

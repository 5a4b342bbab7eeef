"""A way that many lines take at once: what is asked for comes in the order of asking, but for what others ask for meanwhile.

Who asks for something asks for one line after the other, and others for theirs.  Three things make lines wait:
- All that was asked for until their own last line was.
- Lines are given by many at once, not all of which have some to give while few are asked for: with work w left that takes
  `w / rate` cycles at full rate, the way gives `1 - exp(-w / (rate * gathering))` of it.  What nobody waits for is counted
  in the latency of what is behind the way; only what is more than that is told.
- Not all who give are as far: when the last line of a request could come, a share of what others have asked for since has
  come before it.  Rows that warps copy do not wait for that: paced and side by side they come as early as one SM's alone.

Source: hopsim's recordings on an H100 SXM (tests/silicon/micro.json, tile_landings_*): of two stages that 12 x 11 CTAs ask
for at once the first lands after 1,049 cycles, one alone after 866; of four after 1,023.  steady_*, sharing_*, tile_walk_*.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import Final

UNKNOWN: Final = math.inf
FULL: Final = 30.0
"""With so many times `rate * gathering` left, the way gives all that it can."""
NOTHING: Final = 1e-9


class Passage:
    """Lines that were asked for on a stream; times in cycles of the SM clock.

    `sent` is when the last one was asked for; `first` when it could come in the order of asking, `end` when it comes, each
    as soon as that is known.
    """

    __slots__ = ("end", "first", "is_overtaken", "sent", "stream")

    def __init__(self, stream: Stream, sent: float, is_overtaken: bool) -> None:
        self.stream = stream
        self.sent = sent
        self.is_overtaken = is_overtaken
        self.first = UNKNOWN
        self.end = UNKNOWN

    def expected(self, now: float) -> float:
        """Return when the last line comes, or the earliest time as long as that is not known.

        Args:
            now: all that is asked for from until then on has been told.
        """
        if self.end == UNKNOWN:
            backlog = self.stream.backlog(now)
            if self.end == UNKNOWN:
                return self.first if self.first < UNKNOWN else max(self.sent, now + backlog)
        return self.end

    def waits(self, now: float) -> float:
        """Return how long the last line waits in the order of asking, as far as that is known.

        Args:
            now: as `expected` takes it.
        """
        backlog = self.stream.backlog(now)
        if self.first < UNKNOWN:
            return self.first - self.sent
        return max(0.0, now + backlog - self.sent)


class Stream:
    """One way; times in cycles of the SM clock, work in what its user counts (bytes, lines, sectors).

    Args:
        rate: work a cycle, at most.
        gathering: cycles (see above); 0: it gives all that it can as long as there is any.
        mixing: the share of what was asked for later that comes before the last line of a request.
        most: cycles that this lasts at most.

    >>> way = Stream(1.0)
    >>> one, two = way.ask(0.0, 8.0, 8.0), way.ask(4.0, 8.0, 4.0)
    >>> one.expected(20.0), two.expected(20.0)
    (12.0, 12.0)
    """

    __slots__ = (
        "_asked",
        "_asking",
        "_changes",
        "_gathering",
        "_left",
        "_mixing",
        "_most",
        "_now",
        "_pace",
        "rate",
    )

    def __init__(
        self, rate: float, gathering: float = 0.0, mixing: float = 0.0, most: float = math.inf
    ) -> None:
        self.rate = rate
        self._gathering = gathering
        self._mixing = mixing
        self._most = most
        self._now = 0.0
        # Work that has been asked for and has not come.
        self._left = 0.0
        # How many ask now, and for how much a cycle in all.
        self._asking = 0
        self._pace = 0.0
        # Who begins to ask (a pace, nobody), has asked for all (less pace), or could have all (no pace).
        self._changes: list[tuple[float, int, float, Passage | None]] = []
        self._asked = 0

    def ask(self, begin: float, sent: float, work: float, is_overtaken: bool = True) -> Passage:
        """Ask for work, evenly from `begin` until `sent`, neither of them past.

        Args:
            is_overtaken: whether what others ask for later may come before the last of it.
        """
        passage = Passage(self, sent, is_overtaken)
        if sent > begin:
            pace = work / (sent - begin)
            self._note(begin, pace, None)
            self._note(sent, -pace, passage)
        else:
            self._note(begin, work, passage)
        return passage

    def backlog(self, now: float) -> float:
        """Return how much later than at once comes what is asked for now."""
        self.advance(now)
        return self._wait()

    def advance(self, now: float) -> None:
        """Work until some time."""
        changes = self._changes
        while changes and changes[0][0] <= now:
            time, _, pace, passage = heappop(changes)
            self._work_until(time)
            if passage is None:
                self._asking += 1
                self._pace += pace
                continue
            if passage.first < UNKNOWN:
                passage.end = time + min(self._mixing * self._wait(), self._most)
                continue
            if pace < 0.0:
                self._asking -= 1
                # (Sums of many paces would not come back to nothing.)
                self._pace = self._pace + pace if self._asking else 0.0
            else:
                self._left += pace
            passage.first = self._now + self._wait()
            if self._mixing and passage.is_overtaken:
                self._note(passage.first, 0.0, passage)
            else:
                passage.end = passage.first
        self._work_until(now)

    def _note(self, time: float, pace: float, passage: Passage | None) -> None:
        self._asked += 1
        heappush(self._changes, (time, self._asked, pace, passage))

    def _wait(self) -> float:
        """Return how long all that is left takes, beyond what it takes while nobody waits."""
        gathering = self._gathering
        if not gathering:
            return self._left / self.rate
        level = self._left / (self.rate * gathering)
        if level < NOTHING:
            return 0.0
        share = 1.0 - math.exp(-level) if level < FULL else 1.0
        return max(0.0, gathering * (level / share - 1.0))

    def _work_until(self, time: float) -> None:
        """Work until a time before which nothing changes."""
        span = time - self._now
        if span <= 0.0:
            return
        self._now = time
        if not self._left and not self._pace:
            return
        gathering, rate = self._gathering, self.rate
        growth = self._pace / rate - 1.0
        if not gathering or self._left > FULL * rate * gathering:
            self._left = max(0.0, self._left + growth * rate * span)
            return
        # With u = exp(level): du/dt = (growth u + 1) / gathering.
        level, cycles = self._left / (rate * gathering), span / gathering
        grown = growth * cycles
        if -NOTHING < growth < NOTHING:
            level = math.log(math.exp(level) + cycles)
        elif level + grown > FULL:
            level += grown
        else:
            level = math.log(
                max(1.0, (math.exp(level) + 1.0 / growth) * math.exp(grown) - 1.0 / growth)
            )
        self._left = level * rate * gathering

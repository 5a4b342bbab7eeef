"""Who has observed a strong write: read its value, or that of a read-modify-write in the chain that it begins.

What such a reader does next comes after that write, and so does all that follows it in order: the block that draws the last
ticket may set the counter back with a plain store.  It comes after nothing else that the writer did: that takes a release
and an acquire.  A read whose value nothing uses tells nobody anything, and counts for nothing.

Source: PTX ISA 8.7 "Memory Consistency Model": "Observation Order", "Causality Order", "Morally Strong Operations".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from hopsim.hazards.clocks import Agent, Clock, bits, sees
from hopsim.hazards.world import includes

LOOKS_KEPT: Final = 256

# State space, owner, address.
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """A strong access of lanes of a warp to a word.

    Args:
        kind: `r`, `w` or `a`.
        is_told: whether its lanes use the value that they read.
    """

    kind: str
    agent: Agent
    epoch: int
    mask: int
    scope: str
    count_bytes: int
    is_told: bool


class Observations:
    """The last strong accesses to each word, in the order of the run."""

    def __init__(self) -> None:
        self._looks: dict[Place, deque[Look]] = {}
        # Who has read the value that is there now: a loop that looks again learns nothing new.
        self._readers: dict[Place, set[tuple[int, int]]] = {}

    def note(self, place: Place, look: Look) -> None:
        """Enter a strong access."""
        looks = self._looks.get(place)
        if looks is None:
            if look.kind == "r":
                return
            looks = self._looks[place] = deque(maxlen=LOOKS_KEPT)
        if look.kind == "r":
            reader = (look.agent.number, look.mask)
            readers = self._readers.setdefault(place, set())
            if reader in readers:
                return
            readers.add(reader)
        else:
            self._readers.pop(place, None)
        looks.append(look)

    def covers(
        self, place: Place, write: tuple[Agent, int, int], clock: Clock, by: tuple[Agent, int]
    ) -> bool:
        """Whether somebody observed a write and `by` (warp, lane) is it, or knows of it by `clock`.

        Args:
            write: (warp, epoch, lane).
        """
        writer, epoch, lane = write
        last: Look | None = None
        for look in self._looks.get(place, ()):
            lanes = look.mask
            if last is None:
                if look.kind == "r" or look.agent is not writer or look.epoch != epoch:
                    continue
                if not lanes >> lane & 1:
                    continue
                # Lanes of one instruction take their turns in order.
                lanes = lanes >> lane + 1 << lane + 1 if look.kind == "a" else 0
            elif look.kind == "w":
                return False
            elif not are_strong(last, look):
                if look.kind == "a":
                    return False
                continue
            if look.is_told and lanes and _knows(clock, look, lanes, by):
                return True
            if look.kind != "r":
                last = look
        return False


def are_strong(one: Look, other: Look) -> bool:
    """Whether two strong accesses of a word are morally strong."""
    return (
        one.count_bytes == other.count_bytes
        and includes(one.scope, one.agent.cta, other.agent.cta)
        and includes(other.scope, one.agent.cta, other.agent.cta)
    )


def _knows(clock: Clock, look: Look, lanes: int, by: tuple[Agent, int]) -> bool:
    agent, lane = by
    if agent is look.agent and lanes >> lane & 1:
        return True
    return any(sees(clock, look.agent, look.epoch, 1 << one) for one in bits(lanes))

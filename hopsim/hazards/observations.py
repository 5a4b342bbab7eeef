"""Who has observed a strong write: read its value, or that of a read-modify-write in the chain that it begins.

What such a reader does next comes after that write, and so does all that follows it in order: the block that draws the last
ticket may set the counter back with a plain store.  It comes after nothing else that the writer did: that takes a release
and an acquire.  A read whose value nothing uses tells nobody anything, and counts for nothing.

Source: PTX ISA 8.7 "Memory Consistency Model": "Observation Order", "Causality Order", "Morally Strong Operations".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, TypeAlias

from hopsim.hazards.clocks import Agent, Clock, View, bits, sees
from hopsim.hazards.world import CtaState, Reach, includes

LOOKS_KEPT: Final = 256

# State space, owner, address.
Place = tuple[str, int, int]

# What fences knew, by whom their scopes hold, and the CTAs of these fences.  Neither tables nor views ever change.
Carried: TypeAlias = dict[Reach, tuple[View, frozenset[CtaState]]]


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


class Word:
    """The last strong accesses to a word, in the order of the run."""

    __slots__ = ("_readers", "carried", "last", "looks")

    def __init__(self) -> None:
        self.looks: deque[Look] = deque(maxlen=LOOKS_KEPT)
        # The last write, and what fences before the chain that ends with it knew (`fence_order`).
        self.last: Look | None = None
        self.carried: Carried = {}
        # The lanes that have read the value that is there now, by warp number, scope and bytes.
        self._readers: dict[tuple[int, str, int], int] = {}

    def is_news(self, look: Look) -> bool:
        """Whether an access is worth an entry: a loop that looks again learns nothing new."""
        if look.kind != "r":
            return True
        return look.is_told and bool(look.mask & ~self._readers.get(_reader(look), 0))

    def enter(self, look: Look) -> None:
        """Remember an access."""
        if look.kind == "r":
            reader = _reader(look)
            self._readers[reader] = self._readers.get(reader, 0) | look.mask
        else:
            self._readers.clear()
            self.last = look
        self.looks.append(look)


class Observations:
    """All words that somebody wrote with a strong access."""

    def __init__(self) -> None:
        self._words: dict[Place, Word] = {}

    def word(self, place: Place, look: Look) -> Word | None:
        """Return the word to enter an access at, or None if it is a read that tells nobody anything."""
        word = self._words.get(place)
        if word is None and look.kind != "r":
            word = self._words[place] = Word()
        return word if word is not None and word.is_news(look) else None

    def covers(
        self, place: Place, write: tuple[Agent, int, int], clock: Clock, by: tuple[Agent, int]
    ) -> bool:
        """Whether somebody observed a write and `by` (warp, lane) is it, or knows of it by `clock`.

        Args:
            write: (warp, epoch, lane).
        """
        writer, epoch, lane = write
        word = self._words.get(place)
        last: Look | None = None
        for look in () if word is None else word.looks:
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


def _reader(look: Look) -> tuple[int, str, int]:
    return look.agent.number, look.scope, look.count_bytes


def _knows(clock: Clock, look: Look, lanes: int, by: tuple[Agent, int]) -> bool:
    agent, lane = by
    if agent is look.agent and lanes >> lane & 1:
        return True
    return any(sees(clock, look.agent, look.epoch, 1 << one) for one in bits(lanes))

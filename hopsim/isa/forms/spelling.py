"""Which opcodes are spellings of a form: its words are there, and those whose place says something are in their places.

    >>> shift = Spelling(("shf",), (Slot("way", ("l", "r"), False), Slot("mode", ("clamp", "wrap"), False), "b32"), joined=1)
    >>> shift.match(("shf", "l", "b32", "wrap")), shift.match(("shf", "wrap", "l", "b32"))
    ({'way': 'l', 'mode': 'wrap'}, None)

Compilers write modifiers in several orders, and ptxas takes these.  Types and layouts it tells apart by their order, copies
by that of their state spaces, and some words belong to the name.  Source: what ptxas 13.0 takes and refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hopsim.isa.types import TYPES

ANYWHERE: Final = frozenset({"approx", "cc", "relu", "rn", "sat", *TYPES})
"""Words that stand anywhere behind the first one: `add.s32.sat`, `ex2.f32.approx`."""
ORDERED: Final = (frozenset({"b1", "u2", "s2", "u4", "s4", *TYPES}), frozenset({"row", "col"}))
"""Types, and layouts of matrices: several of a kind stand in the order of the syntax, the type of the result first."""
COPY_SPACES: Final = frozenset({"global", "shared", "shared::cta", "shared::cluster"})
"""State spaces that a copy names two of."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one modifier."""

    name: str
    alternatives: tuple[str, ...]
    optional: bool


@dataclass(frozen=True)
class Spelling:
    """The words of a form.

    Args:
        base: words that begin the syntax.
        items: words and slots behind them.
        joined: how many of the items belong to the name and stand right behind the base, where they are there.
    """

    base: tuple[str, ...]
    items: tuple[str | Slot, ...]
    joined: int = 0

    @cached_property
    def fixed(self) -> int:
        """How many words of the base stand first in each spelling, in this order."""
        words = (number for number, word in enumerate(self.base) if number and word in ANYWHERE)
        return next(words, len(self.base))

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The slots, in the order of the syntax."""
        return tuple(item for item in self.items if isinstance(item, Slot))

    @cached_property
    def spaces(self) -> tuple[tuple[str, ...], ...]:
        """What each state space of a copy may be, in the order of the syntax: the first is written."""
        words = [
            item.alternatives if isinstance(item, Slot) else (item,)
            for item in (*self.base, *self.items)
        ]
        return tuple(word for word in words if set(word) <= COPY_SPACES)

    def match(self, opcode: tuple[str, ...], *, in_order: bool = True) -> dict[str, str] | None:
        """Return the slot values when `opcode` is a spelling, else None.

        Missing optional slots have the value `""`.

        Args:
            in_order: whether the words must be in their places; without, all that is asked is that they are there.
        """
        fixed = self.fixed if in_order else 1
        if opcode[:fixed] != self.base[:fixed]:
            return None
        items = (*self.base[fixed:], *self.items)
        start = len(items) - len(self.items)
        joined = range(start, start + self.joined) if in_order else range(0)
        rest = opcode[fixed:]
        filled: dict[int, str] = {}
        for place in joined:
            if rest and _takes(items[place], rest[0]):
                filled[place], *rest = rest
            elif isinstance(items[place], str):
                return None
        last = [-1] * len(ORDERED)
        for word in rest:
            for place, item in enumerate(items):
                may_stand = place not in joined or word in ANYWHERE
                if place not in filled and may_stand and _takes(item, word):
                    break
            else:
                return None
            for kind, words in enumerate(ORDERED):
                if word in words:
                    if place < last[kind] and in_order:
                        return None
                    last[kind] = place
            filled[place] = word
        found: dict[str, str] = {}
        for place, item in enumerate(items):
            if isinstance(item, Slot):
                found[item.name] = filled.get(place, "")
            if place not in filled and (isinstance(item, str) or not item.optional):
                return None
        return None if in_order and self._swaps_spaces(opcode) else found

    def _swaps_spaces(self, opcode: tuple[str, ...]) -> bool:
        given = [word for word in opcode if word in COPY_SPACES]
        return len(given) > 1 and any(
            word not in allowed for word, allowed in zip(given, self.spaces, strict=False)
        )


def _takes(item: str | Slot, word: str) -> bool:
    return word == item if isinstance(item, str) else word in item.alternatives

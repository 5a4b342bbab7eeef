"""Slots that ld, st, atom and red have alike."""

from __future__ import annotations

from typing import Final

from hopsim.isa.types import TYPES, WIDEST_BITS, ScalarType

VECTOR: Final = ("v2", "v4", "v8")
LENGTH: Final = {"": 1, "v2": 2, "v4": 4, "v8": 8}
SCOPE: Final = ("cta", "cluster", "gpu", "sys")
HINT: Final = ("L2::cache_hint",)


def words_of(v: str, t: ScalarType) -> tuple[int, int]:
    """Return the bytes of a word and how many words an access has; 128 bits are two words.

    >>> words_of("v4", TYPES["b32"]), words_of("", TYPES["b128"])
    ((4, 4), (8, 2))
    """
    word = min(t.bytes, WIDEST_BITS // 8)
    return word, LENGTH[v] * t.bytes // word


def vector_counts(slots: dict[str, str]) -> dict[str, int]:
    """Return how many elements the vectors d and b of an instruction have."""
    _, length = words_of(slots["v"], TYPES[slots["t"]])
    return {"d": length, "b": length}

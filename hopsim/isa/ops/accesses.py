"""Slots that ld, st, atom and red have alike."""

from __future__ import annotations

from typing import Final

VECTOR: Final = ("v2", "v4", "v8")
LENGTH: Final = {"": 1, "v2": 2, "v4": 4, "v8": 8}
SCOPE: Final = ("cta", "cluster", "gpu", "sys")
HINT: Final = ("L2::cache_hint",)


def vector_counts(slots: dict[str, str]) -> dict[str, int]:
    """Return how many elements the vectors d and b of an instruction have."""
    length = LENGTH[slots["v"]]
    return {"d": length, "b": length}

"""Cases that follow each other evenly spread, not at random: a launch always takes the same time."""

from __future__ import annotations

from typing import Final

GOLDEN: Final = 0.6180339887498949


class Luck:
    """Numbers from 0 to 1, each far from those before it.

    >>> luck = Luck()
    >>> [round(luck.draw(), 3) for _ in range(4)]
    [0.618, 0.236, 0.854, 0.472]
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0.0

    def draw(self) -> float:
        """Return the next number."""
        self._last = (self._last + GOLDEN) % 1.0
        return self._last

"""Sectors of lines: which of them are meant, a bit each, and which come together."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.int64]
"""Numbers, or byte addresses, of lines."""
Masks = NDArray[np.uint8]
"""Of each line, a bit for each of its sectors."""

# Of four sectors: all of them, and how many a mask has.
WHOLE: Final = 15
BITS: Final = np.array([number.bit_count() for number in range(WHOLE + 1)], np.uint8)


def in_pieces(each: int) -> NDArray[np.uint8]:
    """Return for each mask of the sectors of a line that of the aligned pieces, so many sectors each, which they lie in.

    >>> in_pieces(2)[[0b0001, 0b0110, 0b1000]].tolist()
    [3, 15, 12]
    """
    assert BITS[WHOLE] % each == 0, each
    masks = np.arange(WHOLE + 1, dtype=np.uint8)
    found = np.zeros_like(masks)
    for first in range(0, int(BITS[WHOLE]), each):
        piece = ((1 << each) - 1) << first
        found |= np.where(masks & piece, piece, 0).astype(np.uint8)
    return found


def by_line(sectors: NDArray[np.int64], each: int) -> tuple[Lines, Masks]:
    """Return the distinct lines of some sectors, and a bit for each sector of each line.

    Args:
        sectors: distinct numbers, ascending.
        each: sectors of a line.

    >>> lines, masks = by_line(np.array([1, 2, 3, 9]), 4)
    >>> lines.tolist(), masks.tolist()
    ([0, 2], [14, 2])
    """
    lines = sectors // each
    begins = np.flatnonzero(np.diff(lines, prepend=-1))
    bits = np.left_shift(1, sectors % each).astype(np.uint8)
    return lines[begins], np.bitwise_or.reduceat(bits, begins)

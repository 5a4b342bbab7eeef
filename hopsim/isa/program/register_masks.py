"""Sets of registers as bit masks: bit n stands for the register of index n."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def mask_of(registers: Iterable[int]) -> int:
    """Return registers as a bit mask.

    >>> mask_of(frozenset({0, 3}))
    9
    """
    mask = 0
    for index in registers:
        mask |= 1 << index
    return mask


@lru_cache(maxsize=4096)
def members(mask: int) -> tuple[int, ...]:
    """Return the registers of a bit mask, in their order.

    >>> members(9)
    (0, 3)
    """
    return tuple(index for index in range(mask.bit_length()) if mask >> index & 1)

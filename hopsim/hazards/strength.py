"""Strong accesses: which pairs are morally strong, and which access stands for an earlier one.

Source: PTX ISA 8.7 "Memory Consistency Model": "Scope", "Morally Strong Operations".
"""

from __future__ import annotations

import numpy as np

from hopsim.hazards.clocks import sees
from hopsim.hazards.records import Eye, Record, is_array
from hopsim.hazards.world import includes

KEPT = 64


def is_morally_strong(first: Record, second: Record) -> bool:
    """Whether two strong accesses are: same proxy, same size, scopes that include each other."""
    return (
        _matches(first, second)
        and includes(first.scope, first.cta, second.cta)
        and includes(second.scope, first.cta, second.cta)
    )


def is_spread(record: Record) -> bool:
    """Whether the threads of an access have words of their own."""
    addresses = record.addresses
    return is_array(addresses) and bool((addresses != addresses[0]).any())


def _matches(first: Record, second: Record) -> bool:
    if first.is_async or second.is_async:
        return first.is_async and second.is_async
    return first.count_bytes == second.count_bytes


def _is_no_stronger(later: Record, earlier: Record) -> bool:
    """Whether nothing is morally strong with the later access but not with the earlier one."""
    # Left out: what is too narrow itself for the CTA of the earlier one; else counters would keep one access of each CTA.
    if not later.scope:
        return True
    if not earlier.scope or not _matches(earlier, later):
        return False
    return earlier.scope not in ("cta", "cluster") or (
        later.scope in ("cta", earlier.scope) and includes(earlier.scope, earlier.cta, later.cta)
    )


def stands_for(later: Record, earlier: Record, eyes: list[Eye]) -> bool:
    """Whether whatever races with `earlier` races with `later` too, so that the earlier one can be forgotten."""
    if earlier.is_nc and not later.is_nc:
        return False
    return _is_no_stronger(later, earlier) and _covered(earlier, later, eyes)


def _covered(earlier: Record, later: Record, eyes: list[Eye]) -> bool:
    """Whether whatever is ordered after `later` is ordered after `earlier` too."""
    if earlier.tids is None:
        assert earlier.done is not None
        return all(earlier.done.known_to(view.hb, agent, lanes) for agent, lanes, view in eyes)
    if later.tids is None:
        return False
    if earlier.flight is not None:
        return False
    same = later.tids is earlier.tids and later.shares is earlier.shares
    if same and later.cta is earlier.cta:
        if later.addresses is earlier.addresses or (
            is_array(later.addresses)
            and is_array(earlier.addresses)
            and later.count_bytes >= earlier.count_bytes
            and np.array_equal(later.addresses, earlier.addresses)
        ):
            return True
        if (
            isinstance(later.addresses, int)
            and isinstance(earlier.addresses, int)
            and later.addresses == earlier.addresses
            and later.count_bytes >= earlier.count_bytes
        ):
            return True
    return all(
        sees(view.hb, agent, epoch, mask)
        for agent, epoch, mask in earlier.parts
        for _, _, view in eyes
    )


def follows(earlier: Record, raced: Record | None) -> bool:
    """Whether it follows from a race of another access of the same bytes that an earlier one races too."""
    if raced is None or earlier.number > raced.number:
        return False
    if earlier.kind == "r":
        return raced.kind != "r"
    return raced.kind == "r" or not earlier.scope


def latest(accesses: list[Record]) -> tuple[list[Record], tuple[Record, ...]]:
    """Return (writes, reads) of those worth keeping, oldest first; many strong ones push out no weak one.

    Args:
        accesses: newest first.
    """
    writes: list[Record] = []
    reads: list[Record] = []
    counts: dict[tuple[bool, bool], int] = {}
    for access in accesses:
        sort = (access.kind == "r", bool(access.scope))
        counts[sort] = counts.get(sort, 0) + 1
        if counts[sort] <= KEPT:
            (reads if sort[0] else writes).append(access)
    return writes[::-1], tuple(reads[::-1])

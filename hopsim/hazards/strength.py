"""Strong accesses: which pairs are morally strong, and which access stands for an earlier one.

Source: PTX ISA 8.7 "Memory Consistency Model": "Scope", "Morally Strong Operations".
"""

from __future__ import annotations

from hopsim.hazards.records import Record
from hopsim.hazards.world import includes

KEPT = 64


def is_morally_strong(first: Record, second: Record) -> bool:
    """Whether two strong accesses are: same proxy, same size, scopes that include each other."""
    return (
        _matches(first, second)
        and includes(first.scope, first.cta, second.cta)
        and includes(second.scope, first.cta, second.cta)
    )


def _matches(first: Record, second: Record) -> bool:
    if first.is_async or second.is_async:
        return first.is_async and second.is_async
    return first.count_bytes == second.count_bytes


def is_no_stronger(later: Record, earlier: Record) -> bool:
    """Whether nothing is morally strong with the later access but not with the earlier one."""
    # Left out: what is too narrow itself for the CTA of the earlier one; else counters would keep one access of each CTA.
    if not later.scope:
        return True
    if not earlier.scope or not _matches(earlier, later):
        return False
    return earlier.scope not in ("cta", "cluster") or (
        later.scope in ("cta", earlier.scope) and includes(earlier.scope, earlier.cta, later.cta)
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

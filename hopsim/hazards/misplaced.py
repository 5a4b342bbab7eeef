"""Rounds of one load that announce on different mbarriers what they bring to the same bytes: one slot is used for all.

What its readers find follows from that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopsim.hazards.naming import barrier_of
from hopsim.hazards.records import LOADS, Record, share_a_warp, write_the_same

# Rules that a reader breaks who has waited for another round than the one that went over its data.
FOLLOWING: Final = frozenset({"HS001", "HS003", "HS006"})


def is_misplaced(first: Record, second: Record) -> bool:
    """Whether two writes are rounds of one load into one slot, for different mbarriers."""
    flight, other = first.flight, second.flight
    if flight is None or other is None or not {flight.kind, other.kind} <= LOADS:
        return False
    return (
        write_the_same(first, second)
        and share_a_warp(first, second)
        and barrier_of(flight, first)[0] is not barrier_of(other, second)[0]
    )


def ask_misplaced(
    line: int, misplaced: set[int], otherwise: Callable[[], str | None] | None
) -> Callable[[], str | None]:
    """Return a question for the end of the run: is the load of a race told to go to one slot in all its rounds?"""

    def ask() -> str | None:
        if line in misplaced:
            return ""
        return None if otherwise is None else otherwise()

    return ask

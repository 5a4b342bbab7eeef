"""mbarriers whose phases do not expect all bytes of their copies: behind the first such phase the two are out of step.

A race there only follows.  What the bytes were expected by, if at all, is known at the end of the run only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopsim.hazards.naming import barrier_of
from hopsim.hazards.objects import Barrier
from hopsim.hazards.records import Record

# Rules that a copy of another phase than its reader takes it for breaks.
FOLLOWING: Final = frozenset({"HS004", "HS006", "HS201", "HS405"})


def note(rule: str, barrier: Barrier, index: int) -> None:
    """Remember the phase in which the copy of a race was issued, if it may have expected too few bytes."""
    if rule == "HS201" and barrier.told_short is None:
        barrier.told_short = index
    elif rule == "HS004" and barrier.doubted is None:
        barrier.doubted = index


def is_behind(first: Record, second: Record) -> bool:
    """Whether a copy was issued in a phase behind one that is told to expect too few bytes."""
    for record in (first, second):
        if record.flight is not None:
            barrier, index = barrier_of(record.flight, record)
            told = None if barrier is None else barrier.told_short
            if told is not None and told < index:
                return True
    return False


def is_told_by_race(barrier: Barrier) -> bool:
    """Whether data that somebody read before it came shows already that an mbarrier expects too few bytes."""
    return barrier.told_short is not None or (
        barrier.doubted is not None and barrier.fell_short(barrier.doubted)
    )


def ask_expected(rule: str, barrier: Barrier, index: int) -> Callable[[], str | None]:
    """Return a question for the end of the run: did a phase get bytes that nobody expected, or no arrival with them?

    The bytes may have been meant for another mbarrier: then that is told.
    """

    def ask() -> str | None:
        if barrier.is_astray:
            return ""
        if rule == "HS201":
            return None
        if barrier.fell_short(index):
            return "HS201"
        phase = barrier.phase(index)
        is_last = barrier.index == index
        return "HS203" if is_last and phase.bytes_expected and not phase.arrivals else None

    return ask


def ask_behind(
    refill: Record, otherwise: Callable[[], str | None] | None
) -> Callable[[], str | None]:
    """Return a question for the end of the run: was a refill issued behind a phase that another finding calls short?"""
    barrier, index = (None, 0) if refill.flight is None else barrier_of(refill.flight, refill)

    def ask() -> str | None:
        if barrier is not None and barrier.doubted is not None:
            is_short = barrier.short is not None and barrier.short < index
            if is_short and barrier.fell_short(barrier.doubted):
                return ""
        return None if otherwise is None else otherwise()

    return ask

"""Races that only follow: something is there to order the two accesses, and another finding tells what is wrong with it.

A flag or a lock of too narrow a scope: whoever mends it mends the accesses that it guards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hopsim.hazards.chains import Chain
from hopsim.hazards.records import Record

Question: TypeAlias = Callable[[], str | None]


class Followers:
    """Knows what findings say of flags, and which races stand behind these."""

    def __init__(self) -> None:
        # PTX lines, either way round, of strong accesses whose scopes are told to be too narrow.
        self._narrow: set[tuple[int, int]] = set()

    def note_narrow(self, first: Record, second: Record) -> None:
        """Remember strong accesses of which a finding says that their scopes are too narrow."""
        self._narrow |= {(first.line, second.line), (second.line, first.line)}

    def ask(self, chain: Chain | None, late: Question | None) -> Question:
        """Return a question for the end of the run: does a race follow from what is told of a flag?

        Args:
            chain: the edges from the first access to the second.  late: what else is asked then.
        """

        def ask() -> str | None:
            if self._is_narrow(chain):
                return ""
            return None if late is None else late()

        return ask

    def _is_narrow(self, chain: Chain | None) -> bool:
        """Whether nothing but scopes that are told makes the edges of a chain too weak."""
        if chain is None or {*chain.weak} != {"scope"}:
            return False
        return self._narrow.issuperset(zip(chain.lines[::2], chain.lines[1::2], strict=True))

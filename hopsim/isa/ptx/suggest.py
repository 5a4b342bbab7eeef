"""The nearest known word, for "did you mean" hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[str]) -> str:
    """Return the known word most like `word`, or an empty string when none is near."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), "")

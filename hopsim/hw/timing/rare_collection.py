"""Python's garbage collector, told to look seldom: a run makes many objects and few cycles."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

COLLECT_AFTER: Final = 100_000


@contextmanager
def rare_collection() -> Generator[None]:
    """Let Python look for garbage cycles seldom while this lasts."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


__all__ = ["rare_collection"]

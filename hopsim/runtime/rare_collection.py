"""Python's garbage collector around a launch: told to look seldom, and only at what the launch makes.

A run makes many objects and few cycles.  What was there before, a parsed file of megabytes among it, is set aside, so that
looking costs as much as the launch is large; what the launch leaves is given back at its end.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

COLLECT_AFTER: Final = 100_000


@contextmanager
def rare_collection() -> Generator[None]:
    """Let Python look for garbage cycles seldom while this lasts, and among new objects alone."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    try:
        yield
        # The machine of the launch is one cycle, with all its memory.
        gc.collect()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()

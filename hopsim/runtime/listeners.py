"""Who hears what a launch does: the checker, and the observers of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from hopsim.errors import LaunchError
from hopsim.events import Observer
from hopsim.hazards.facts import CheckOptions
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.given import place_of


def readings_of(check: object, kernel: Kernel) -> CheckOptions | None:
    """Return how contested rules are read; None where nobody looks for hazards.

    Raises: LaunchError: it is neither True, False nor such options.
    """
    if isinstance(check, CheckOptions):
        return check
    if isinstance(check, bool | np.bool_):
        return CheckOptions() if check else None
    raise LaunchError(
        f"check: expected True, False or CheckOptions, got {check!r}",
        where=place_of(kernel),
        hint="check=True, or check=hs.CheckOptions(strict=True)",
    )


def listeners_of(observers: object, kernel: Kernel) -> list[Observer]:
    """Return the observers that a caller gives.

    Raises: LaunchError: it is no list, or one of them is no observer.
    """
    where, hint = place_of(kernel), "observers=[Mine()], with class Mine(hopsim.events.Observer)"
    if not isinstance(observers, Sequence) or isinstance(observers, str | bytes):
        raise LaunchError(
            f"observers: expected a list of observers, got a {type(observers).__name__}",
            where=where,
            hint=hint,
        )
    for position, one in enumerate(cast("Sequence[object]", observers)):
        if not isinstance(one, Observer):
            got = (
                f"the class {one.__name__}" if isinstance(one, type) else f"a {type(one).__name__}"
            )
            raise LaunchError(
                f"observers[{position}]: expected an observer, got {got}", where=where, hint=hint
            )
    return list(cast("Sequence[Observer]", observers))

"""The options of a launch, checked: simulator and real device take the same ones, and tell the same mistakes alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import Kernel
from hopsim.isa.ptx.suggest import closest
from hopsim.launch.given import check_kernel, place_of, whole_number

SCHEDULES: Final = ("timed", "in-order", "seeded", "adversarial")
NUMERICS: Final = ("hopper", "float32")
WARM: Final = ("nothing", "code", "memory")


@dataclass(frozen=True, slots=True)
class Options:
    """How a kernel is run.

    Args:
        values: whether data is computed.
        schedule: one of `SCHEDULES`; untimed if time is not asked for.
        numerics: one of `NUMERICS`.
        seed: of the seeded schedule.
        max_cycles: where a run ends, in cycles of a timed and steps of an untimed one; None: no limit.
        warm: one of `WARM`.
        trace: whether to record a timeline.
    """

    values: bool
    schedule: str
    numerics: str
    seed: int
    max_cycles: int | None
    warm: str
    trace: bool


def options(
    kernel: Kernel,
    *,
    values: bool,
    timing: bool,
    schedule: str,
    numerics: str,
    seed: int,
    max_cycles: int | None,
    warm: str,
    trace: bool,
    progress: object = None,
) -> Options:
    """Check a kernel and the options of its launch.

    Args:
        kernel: what is launched.
        values, timing, schedule, numerics, seed, max_cycles, warm, trace, progress: as `hopsim.Gpu.launch` takes them.
    Raises: LaunchError.
    """
    check_kernel(kernel)
    where = place_of(kernel)
    for name, given in (("values", values), ("timing", timing), ("trace", trace)):
        if not isinstance(given, bool | np.bool_):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LaunchError(
                f"{name}: expected True or False, got {given!r}", where=where, hint=f"{name}=True"
            )
    if progress is not None and not callable(progress):
        raise LaunchError(
            f"progress: expected a function of the share that is done, got {progress!r}",
            where=where,
            hint="progress=print",
        )
    _check_word(schedule, "schedule", SCHEDULES, where)
    _check_word(numerics, "numerics", NUMERICS, where)
    _check_word(warm, "warm", WARM, where)
    if schedule == "timed" and not timing:
        schedule = "in-order"
    if trace and schedule != "timed":
        raise LaunchError(
            f"trace=True: a timeline needs time, and the schedule {schedule} knows none",
            where=where,
            hint='schedule="timed", and timing=True',
        )
    seed = _at_least(0, seed, "seed", where, "seed=0")
    if max_cycles is not None:
        limits = "max_cycles=1_000_000, or None for no limit"
        max_cycles = _at_least(1, max_cycles, "max_cycles", where, limits)
    return Options(values, schedule, numerics, seed, max_cycles, warm, trace)


def _at_least(least: int, value: object, what: str, where: str, hint: str) -> int:
    number = whole_number(value, what, where, hint)
    if number < least:
        raise LaunchError(f"{what}: expected {least} or more, got {number}", where=where, hint=hint)
    return number


def _check_word(word: object, what: str, known: tuple[str, ...], where: str) -> None:
    if not isinstance(word, str) or word not in known:
        near = closest(str(word), known) or known[0]
        raise LaunchError(
            f"{what} {word!r}: expected one of {', '.join(known)}",
            where=where,
            hint=f'{what}="{near}"',
        )


__all__ = ["NUMERICS", "SCHEDULES", "WARM", "Options", "options"]

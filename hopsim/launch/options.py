"""The options of a launch, checked: simulator and real device take the same ones, and tell the same mistakes alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.given import check_kernel, whole_number

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
) -> Options:
    """Check a kernel and the options of its launch.

    Args:
        kernel: what is launched.
        values, timing, schedule, numerics, seed, max_cycles, warm, trace: as `hopsim.Gpu.launch` takes them.
    Raises: LaunchError.
    """
    check_kernel(kernel)
    for name, given in (("values", values), ("timing", timing), ("trace", trace)):
        if not isinstance(given, bool | np.bool_):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LaunchError(f"{name}: expected True or False, got {given!r}")
    _check_word(schedule, "schedule", SCHEDULES)
    _check_word(numerics, "numerics", NUMERICS)
    _check_word(warm, "warm", WARM)
    if schedule == "timed" and not timing:
        schedule = "in-order"
    if trace and schedule != "timed":
        raise LaunchError(
            f"trace=True: a timeline needs time, and the schedule {schedule} knows none",
            hint='schedule="timed", and timing=True',
        )
    seed = whole_number(seed, "seed")
    if max_cycles is not None:
        max_cycles = whole_number(max_cycles, "max_cycles")
        if max_cycles < 0:
            raise LaunchError(f"max_cycles {max_cycles}: expected 0 or more, or None for no limit")
    return Options(values, schedule, numerics, seed, max_cycles, warm, trace)


def _check_word(word: str, what: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise LaunchError(f"{what} {word!r}: expected one of {', '.join(known)}")


__all__ = ["NUMERICS", "SCHEDULES", "WARM", "Options", "options"]

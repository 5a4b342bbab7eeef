"""What a launch gives back: one frozen record, the same for the simulator and for a real device.

A backend leaves empty what it cannot tell: a device knows no hazards, a run without timing no
cycles.  `json()` is deterministic: no wall-clock time, sorted keys, the same bytes on every run.
Imports numpy, errors and findings only.

    >>> LaunchResult(verdict="clean", kernel="k", grid=(1, 1, 1), block=(32, 1, 1)).exit_code
    0
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import numpy as np

from hopsim.errors import HopsimError
from hopsim.findings import Deadlock, Dim, Hazard

Verdict = Literal["clean", "hazard", "deadlock", "not-modelled"]

EXIT_CODES: Final[Mapping[Verdict, int]] = {
    "clean": 0,
    "hazard": 1,
    "deadlock": 3,
    "not-modelled": 4,
}
JSON_FORMAT: Final = 1
CUT_OFF: Final = "the run was ended by its limit of cycles or steps"
"""Of `NotModelledNote.why`: nothing is known of what the program would have done after it."""


class SavedTrace(Protocol):
    """A recorded timeline that can write itself."""

    def save(self, path: str | Path) -> None:
        """Write the timeline to a file."""
        ...


@dataclass(frozen=True, slots=True)
class NotModelledNote:
    """Something that ran, or was asked for, and that hopsim does not model or did not check.

    Args:
        why: one sentence.
        line: 1-based PTX line; 0 when it is about the whole launch.
        text: the instruction.
    """

    why: str
    line: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many CTAs one SM holds, and what limits them.

    Args:
        ctas_per_sm: CTAs resident at once.
        warps_per_sm: warps resident at once.
        warps_max: warps that an SM can hold.
        limiter: `registers`, `shared memory`, `warps`, `CTAs`, `cluster` or `grid`.
        registers_per_thread: as allocated at launch.
        shared_bytes_per_cta: static, dynamic and reserved.
        sms_used: SMs that ran at least one CTA.
    """

    ctas_per_sm: int
    warps_per_sm: int
    warps_max: int
    limiter: str
    registers_per_thread: int
    shared_bytes_per_cta: int
    sms_used: int

    @property
    def share(self) -> float:
        """Resident warps as a part of what an SM can hold."""
        return self.warps_per_sm / self.warps_max


@dataclass(frozen=True)
class LaunchResult:
    """What one launch did, found and took.

    Args:
        verdict: `clean` only when everything that ran was modelled and checked.
        kernel: entry name.
        grid: CTAs.  block: threads of a CTA.  cluster: CTAs of a cluster.
        hazards: rules broken, hazards before notes, in the order found.
        deadlock: why nothing could progress, when that is the verdict.
        not_modelled: what was not modelled or not checked.
        cycles: of the SM clock, launch overhead included; None without timing.
        time_us: the same in microseconds (simulator: cycles at `clock_hz`; device: measured).
        clock_hz: the clock of `cycles`.
        counters: Nsight Compute metric names where the meaning is the same, else names that begin
            with `hopsim__`.
        stalls: share of warp time by reason, in Nsight Compute's words.
        occupancy: CTAs an SM holds.
        printed: what threads printed (printf, failed assertions), in the order in which they did; of a device it goes
            to standard error instead, once for each launch that is measured.
        backend: `sim` or `cuda`.
        config: name of the hardware configuration, or of the device.
        schedule, seed, numerics, values, timing, checked: how it was run.
        faulted: whether a fault ended it: nothing after that was run or checked.
        trace: the recorded timeline, for `save_trace`; not part of `json()` or of equality.
    Raises:
        ValueError: the verdict contradicts the findings.
    """

    verdict: Verdict
    kernel: str
    grid: Dim
    block: Dim
    cluster: Dim = (1, 1, 1)
    hazards: tuple[Hazard, ...] = ()
    deadlock: Deadlock | None = None
    not_modelled: tuple[NotModelledNote, ...] = ()
    cycles: int | None = None
    time_us: float | None = None
    clock_hz: float | None = None
    counters: Mapping[str, int | float] = field(default_factory=dict[str, "int | float"])
    stalls: Mapping[str, float] = field(default_factory=dict[str, float])
    occupancy: Occupancy | None = None
    printed: str = ""
    backend: str = "sim"
    config: str = ""
    schedule: str = ""
    seed: int = 0
    numerics: str = ""
    values: bool = True
    timing: bool = True
    checked: bool = True
    faulted: bool = False
    trace: SavedTrace | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        is_hazard = has_hazard(self.hazards)
        if (self.verdict == "deadlock") != (self.deadlock is not None):
            raise ValueError(f"verdict {self.verdict!r} with deadlock {self.deadlock!r}")
        if self.verdict == "hazard" and not is_hazard:
            raise ValueError("verdict 'hazard' without a hazard")
        if self.verdict == "clean" and (is_hazard or self.not_modelled):
            raise ValueError(
                f"verdict 'clean' with hazards {self.hazards!r}, not modelled {self.not_modelled!r}"
            )

    def __repr__(self) -> str:
        """Return one line: a notebook shows it, and the fields fill pages; `hs.summary` and `json()` tell all."""
        facts = [str(self.verdict)]
        if self.hazards:
            facts.append(", ".join(dict.fromkeys(hazard.rule for hazard in self.hazards)))
        if self.cycles is not None:
            facts.append(f"{self.cycles:,} cycles")
        if self.time_us is not None:
            facts.append(f"{self.time_us:.2f} us")
        return f"<LaunchResult of {self.kernel}: {', '.join(facts)}>"

    @property
    def exit_code(self) -> int:
        """The exit code of a command: 0 clean, 1 hazard, 3 deadlock, 4 not modelled."""
        return EXIT_CODES[self.verdict]

    @property
    def is_cut_off(self) -> bool:
        """Whether a limit ended the run: cycles and counters are those up to there."""
        return was_cut_off(note.why for note in self.not_modelled)

    @property
    def is_finished(self) -> bool:
        """Whether all threads came to their end, so that there is a result and a time it took."""
        return self.deadlock is None and not self.is_cut_off and not self.faulted

    def json(self) -> str:
        """Return the result as JSON text, byte for byte the same for the same run.

        Raises:
            ValueError: a number is not finite.
        """
        content = {
            f.name: _plain(getattr(self, f.name))
            for f in dataclasses.fields(self)
            if f.name != "trace"
        }
        content["format"] = JSON_FORMAT
        return (
            json.dumps(content, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
        )

    def save_trace(self, path: str | Path) -> None:
        """Write the timeline for Perfetto.

        Raises:
            HopsimError: the launch recorded none, or the file cannot be written.
        """
        if self.trace is None:
            raise HopsimError(
                "this launch recorded no timeline", hint="trace=True at launch, or --trace FILE"
            )
        try:
            self.trace.save(path)
        except OSError as error:
            raise HopsimError(
                f"cannot write {path}: {error.strerror}", hint="a file in a folder that exists"
            ) from None


def was_cut_off(whys: Iterable[str]) -> bool:
    """Whether the reasons of a result's `not_modelled` say that a limit ended the run."""
    return CUT_OFF in whys


def has_hazard(found: Iterable[Hazard]) -> bool:
    """Whether something was found that is more than a note."""
    return any(hazard.level == "hazard" for hazard in found)


def decide_verdict(
    hazards: Sequence[Hazard], deadlock: Deadlock | None, not_modelled: Sequence[NotModelledNote]
) -> Verdict:
    """Return the verdict that findings ask for.

    A deadlock stands above a hazard, because the run ended in it; a hazard above what was not
    modelled, because it is certain whatever the rest did.
    """
    if deadlock is not None:
        return "deadlock"
    if has_hazard(hazards):
        return "hazard"
    return "not-modelled" if not_modelled else "clean"


def _plain(value: Any) -> Any:
    """Return `value` in JSON's own types; numpy scalars become Python numbers."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a result holds {value!r}, which JSON cannot say")
        return float(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {str(key): _plain(item) for key, item in table.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    raise TypeError(f"a result holds {value!r} of {type(value)}, which JSON cannot say")

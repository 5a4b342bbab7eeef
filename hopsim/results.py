"""What a launch gives back: one frozen record, the same for the simulator and for a real device.

A backend leaves empty what it cannot tell: a device knows no hazards, a run without timing no
cycles.  `json()` is deterministic: no wall-clock time, sorted keys, the same bytes on every run.
Imports numpy and errors only.

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

Verdict = Literal["clean", "hazard", "deadlock", "not-modelled"]
Level = Literal["hazard", "note"]
Space = Literal["global", "shared::cta", "shared::cluster", "local", "param", "const", "register"]
Proxy = Literal["generic", "async", "tensormap"]
Dim = tuple[int, int, int]

EXIT_CODES: Final[Mapping[Verdict, int]] = {
    "clean": 0,
    "hazard": 1,
    "deadlock": 3,
    "not-modelled": 4,
}
JSON_FORMAT: Final = 1
CUT_OFF: Final = "the run was ended by its limit of cycles or steps"
"""Of `NotModelledNote.why`: nothing is known of what the program would have done after it."""
FAULT: Final = "fault"
"""Of `Access.what`: the instruction that the run ended at."""


class SavedTrace(Protocol):
    """A recorded timeline that can write itself."""

    def save(self, path: str | Path) -> None:
        """Write the timeline to a file."""
        ...


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the program that the PTX was compiled from, as `.loc` tells it."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a hazard: who touched which bytes, and where in the program.

    Args:
        what: `read`, `write`, `atomic`, `fault`, or a register or object access in words.
        cta: its coordinates in the grid.
        warp: index in the CTA.
        lanes: bit mask of lanes; 0 when an asynchronous operation acts for the warp.
        line: 1-based PTX line; 0 when unknown.
        text: the instruction.
        start: first byte, counted from the start of the space (shared) or the array (global); None
            for registers.
        stop: one past the last byte.
        source: the source line, where the PTX tells it.
        actor: the asynchronous operation that made the access, for example `TMA load`; empty for a
            thread's own.
        name: the array or registers touched, or the tile that a copy moves, where known.
        symbol: the shared variable that the first byte belongs to, `tile+0x40`, where known.
    """

    what: str
    cta: Dim
    warp: int
    lanes: int
    line: int
    text: str
    proxy: Proxy
    space: Space
    start: int | None = None
    stop: int | None = None
    source: SourceLocation | None = None
    actor: str = ""
    name: str = ""
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Hazard:
    """A rule of PTX that the program broke.

    Args:
        rule: stable id `HSnnn`; ids never change meaning.
        title: the rule's short name, for example `tma-read-unwaited`.
        level: `hazard` decides the verdict, `note` does not.
        message: what happened, one sentence.
        first: the earlier access, where there is one.
        second: the later access.
        missing: the edge that would have ordered the two.
        hint: what to change.
        chain: the edges that do exist between the two, oldest first, in words.
        causes: further rules that explain this one, for example a fence in the wrong space.
        count: how often it was seen.
        silicon: what real hardware probably does.
        ptx: the rule of PTX, by the title of its page.
    """

    rule: str
    title: str
    level: Level
    message: str
    first: Access | None = None
    second: Access | None = None
    missing: str = ""
    hint: str = ""
    chain: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    count: int = 1
    silicon: str = ""
    ptx: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether the run ended at it: `missing` is then the rule, as there is no edge that could be added."""
        return self.second is not None and self.second.what == FAULT


@dataclass(frozen=True, slots=True)
class Wait:
    """One warp that waits for something that never comes.

    Args:
        kind: `mbarrier`, `bar`, `barrier.cluster`, `setmaxnreg`, `wgmma`, or what else it waits on.
        address: of the mbarrier, or the number of the named barrier.
        symbol: the shared variable that the mbarrier lies in, where known.
        phase: the phase that the mbarrier is in, counted from 0.
        parity: the parity that the warp waits for.
        pending_arrivals: arrivals still missing in this phase.
        expected_arrivals: arrivals that a phase needs.
        tx_bytes: transaction bytes still missing in this phase.
        line: 1-based PTX line of the wait.
        text: the instruction.
    """

    cta: Dim
    warp: int
    lanes: int
    kind: str
    line: int
    text: str
    address: int | None = None
    phase: int | None = None
    parity: int | None = None
    pending_arrivals: int | None = None
    expected_arrivals: int | None = None
    tx_bytes: int | None = None
    source: SourceLocation | None = None
    symbol: str = ""

    def __str__(self) -> str:
        cta = ",".join(map(str, self.cta))
        at = f" {self.address:#x}" if self.kind == "mbarrier" and self.address is not None else ""
        at = at or (f" {self.address}" if self.address is not None else "")
        facts: list[str] = []
        if self.phase is not None:
            facts.append(f"phase {self.phase}")
        if self.parity is not None:
            facts.append(f"waited parity {self.parity}")
        if self.pending_arrivals is not None:
            of = f" of {self.expected_arrivals}" if self.expected_arrivals is not None else ""
            facts.append(f"{self.pending_arrivals}{of} arrivals missing")
        if self.tx_bytes is not None:
            facts.append(f"{self.tx_bytes} bytes missing")
        state = f": {', '.join(facts)}" if facts else ""
        what = f"waits on {self.kind}{at} at line {self.line}{state}"
        return f"cta ({cta}) warp {self.warp} {what}  [{self.text}]"


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Why nothing could progress.

    Args:
        waiting: every warp that has not exited, in order of CTA and warp.
        in_flight: asynchronous operations that had not landed, in words.
        cycle: when the last thing happened; None without timing.
        barriers: for each thing waited for, its state and who waits for it, in words.
        history: what happened on each mbarrier and named barrier before, in words.
        chains: who waits for whom: `warp 0 -> mbarrier 0x408 -> warp 1 (exited)`.
        not_started: CTAs that found no place on the chip.
    """

    waiting: tuple[Wait, ...]
    in_flight: tuple[str, ...] = ()
    cycle: int | None = None
    barriers: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    chains: tuple[str, ...] = ()
    not_started: int = 0

    def __str__(self) -> str:
        one = len(self.waiting) == 1
        who = "1 warp waits" if one else f"{len(self.waiting)} warps wait"
        lines = [f"deadlock: {who} and nothing is on its way to {'it' if one else 'them'}"]
        lines += [f"  {wait}" for wait in self.waiting]
        lines += [f"  in flight: {operation}" for operation in self.in_flight]
        lines += [f"  before: {line}" for line in self.history]
        lines += [f"  chain: {line}" for line in self.chains]
        return "\n".join(lines)


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

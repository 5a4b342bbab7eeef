"""What a real device does with the twins, and what compute-sanitizer says of them: recorded once, read here.

The file `silicon.json` beside this module is written by `hopsim zoo record` on a machine with an sm_90 device.  Without an
entry a twin is `not recorded`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopsim.cuda.gpu import CudaGpu
from hopsim.errors import ConfigError, DeviceError
from hopsim.explore.case import launch
from hopsim.explore.examine import check_once
from hopsim.zoo.twin import Twin

RECORDING: Final = Path(__file__).parent / "silicon.json"
FORMAT: Final = 1
NOT_RECORDED: Final = "not recorded"
RUNS: Final = 20
HANG_LIMIT_S: Final = 5.0
SANITIZER_TOOLS: Final = ("memcheck", "racecheck", "synccheck", "initcheck")
SANITIZER_LIMIT_S: Final = 30.0
SANITIZERS_AT_ONCE: Final = 8
SANITIZER_EXIT: Final = 77


@dataclass(frozen=True, slots=True)
class Observed:
    """What a device did with one twin.

    Args:
        runs: that finished.  wrong: of these, with other bits than the simulator gives the good twin in order.
        hang: whether a run did not end.  error: the driver's, if one ended a run.
    """

    runs: int
    wrong: int
    hang: bool = False
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"error: {self.error}"
        if self.hang:
            return "hang"
        return (
            f"wrong in {self.wrong} of {self.runs}" if self.wrong else f"hidden in {self.runs} runs"
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """What was recorded of one twin: on the device, and by each tool of compute-sanitizer (its first message, or empty)."""

    bad: Observed
    good: Observed
    sanitizer: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of entries, with the device, driver and date they were made with."""

    made_with: dict[str, str]
    entries: dict[str, Entry]

    def silicon(self, twin: Twin) -> str:
        """Return what the device did with the bad twin, in words."""
        entry = self.entries.get(twin.name)
        return NOT_RECORDED if entry is None else str(entry.bad)

    def sanitizer(self, twin: Twin) -> str:
        """Return which tools of compute-sanitizer reported the bad twin."""
        entry = self.entries.get(twin.name)
        if entry is None or not entry.sanitizer:
            return NOT_RECORDED
        found = [tool for tool, message in entry.sanitizer.items() if message]
        return ", ".join(found) or "nothing"


def read_recording(path: Path = RECORDING) -> Recording:
    """Return what was recorded; empty when there is no file.

    Raises: ConfigError: the file is of another format.
    """
    if not path.exists():
        return Recording({}, {})
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if content.get("format") != FORMAT:
        raise ConfigError(f"{path} is no recording of format {FORMAT}", hint="hopsim zoo record")
    entries = {
        name: Entry(Observed(**one["bad"]), Observed(**one["good"]), one["sanitizer"])
        for name, one in content["entries"].items()
    }
    return Recording(content["made_with"], entries)


def recording_text(recording: Recording) -> str:
    """Return a recording as its file has it, sorted, so that two of them can be compared."""
    content = {
        "format": FORMAT,
        "made_with": recording.made_with,
        "entries": {name: asdict(entry) for name, entry in sorted(recording.entries.items())},
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def expected_bits(twin: Twin) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the result of the good twin, as the simulator has it in order."""
    case = twin.case(is_good=True)
    _, made = check_once(case, case.kernel())
    return made.arrays["out"].numpy()


def observe(gpu: CudaGpu, twin: Twin, is_good: bool, runs: int = RUNS) -> Observed:
    """Run one twin on a device, until it hangs or fails."""
    case = twin.case(is_good)
    kernel = case.kernel()
    expected = expected_bits(twin)
    wrong = 0
    for done in range(runs):
        try:
            result, made = launch(case, kernel, gpu, timing=False, time_limit_s=HANG_LIMIT_S)
            if result.deadlock is not None:
                return Observed(done, wrong, hang=True)
            wrong += not np.array_equal(made.arrays["out"].numpy(), expected)
        except DeviceError as error:
            gpu.close()
            return Observed(done, wrong, error=error.what.splitlines()[0])
    return Observed(runs, wrong)


def record(
    gpu: CudaGpu,
    twins: Sequence[Twin],
    runs: int = RUNS,
    sanitizer: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Entry]:
    """Run twins on a device and, where its path is given, under compute-sanitizer."""
    observed: dict[str, tuple[Observed, Observed]] = {}
    for twin in twins:
        good, bad = (
            observe(gpu, twin, is_good=True, runs=runs),
            observe(gpu, twin, is_good=False, runs=runs),
        )
        observed[twin.name] = bad, good
        if tell is not None:
            tell(f"{twin.name}: {bad} (good: {good})")
    hanging = frozenset(name for name, (bad, _) in observed.items() if bad.hang)
    found = sanitize_all(sanitizer, twins, hanging, tell) if sanitizer else {}
    return {name: Entry(bad, good, found.get(name, {})) for name, (bad, good) in observed.items()}


def sanitize_all(
    program: str,
    twins: Sequence[Twin],
    hanging: Collection[str] = (),
    tell: Callable[[str], None] | None = None,
) -> dict[str, dict[str, str]]:
    """Return what each tool of compute-sanitizer says about each bad twin, by its name.

    Args:
        program: compute-sanitizer.
        hanging: twins that do not end, which come last: they hold a processor and the device up to the time limit.
    """
    order = sorted(twins, key=lambda twin: twin.name in hanging)
    runs = [(twin, tool) for twin in order for tool in SANITIZER_TOOLS]

    def one(run: tuple[Twin, str]) -> str:
        twin, tool = run
        message = sanitize(program, twin, tool)
        if tell is not None:
            tell(f"{twin.name}, {tool}: {message or 'nothing'}")
        return message

    with ThreadPoolExecutor(max(SANITIZERS_AT_ONCE, os.cpu_count() or 1)) as pool:
        messages = dict(zip(runs, pool.map(one, runs), strict=True))
    return {twin.name: {tool: messages[twin, tool] for tool in SANITIZER_TOOLS} for twin in twins}


def sanitize(program: str, twin: Twin, tool: str) -> str:
    """Return the first message of one tool of compute-sanitizer about the bad twin.

    It is empty where the tool says nothing, or does not end within its time limit.
    """
    words = [
        program, "--tool", tool, "--target-processes", "all", "--error-exitcode", str(SANITIZER_EXIT),
        sys.executable, "-m", "hopsim", "zoo", "silicon", twin.name,
    ]  # fmt: skip
    try:
        started = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigError(f"cannot run {program}: {error.strerror}", where="--sanitizer") from None
    try:
        output, _ = started.communicate(timeout=SANITIZER_LIMIT_S)
    except subprocess.TimeoutExpired:
        # The program that hangs is a child of the sanitizer and would go on without it.
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        return ""
    return first_message(output) if started.returncode == SANITIZER_EXIT else ""


def first_message(text: str) -> str:
    """Return the first line of compute-sanitizer's output that is a message."""
    for line in text.splitlines():
        found = re.match(r"=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)(\S.*)", line)
        if found is not None:
            return found.group(1)
    return "reported, with no message"

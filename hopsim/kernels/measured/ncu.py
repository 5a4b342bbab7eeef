"""Nsight Compute: run over a module of ours, and what it exports (`ncu --csv --page raw --print-units base`)."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from hopsim.errors import DeviceError


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch: its kernel, its CTAs (None where the export does not say), its metrics in base units."""

    kernel: str
    grid: int | None
    metrics: Mapping[str, float]


def profile(
    module: str,
    argument: str,
    metrics: Sequence[str],
    log: Path,
    limit_s: float,
    say: Callable[[str], None],
    kernels: str = "",
) -> list[Profile]:
    """Run `python -m MODULE ARGUMENT` under Nsight Compute; return the launches that it looked at, in order.

    The clocks are left alone, and the caches flushed before each launch.

    Args:
        metrics: what is counted; the rest of an export is left out.
        log: where Nsight Compute writes.
        limit_s: it is ended after so many seconds; what it wrote until then counts.
        say: told when it fails or is ended.
        kernels: a regular expression of the kernels it looks at; all if empty.
    Raises: DeviceError: there is no `ncu`, or it wrote nothing.
    """
    chosen = ["-k", f"regex:{kernels}"] if kernels else []
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--metrics",
        ",".join(metrics), *chosen, "--log-file", str(log), sys.executable, "-m", module, argument,
    ]  # fmt: skip
    try:
        started = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise DeviceError("ncu is not on PATH", hint="install Nsight Compute") from None
    try:
        told, _ = started.communicate(timeout=limit_s)
        if started.returncode:
            say(f"ncu ended with {started.returncode}: {told[-600:]}")
    except subprocess.TimeoutExpired:
        # What it looks at is a child of its own and would go on without it.
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        say(f"ncu was ended after {limit_s:g} s")
    if not log.exists():
        raise DeviceError("ncu wrote nothing", where=str(log))
    return [
        replace(one, metrics={name: one.metrics[name] for name in metrics if name in one.metrics})
        for one in read_csv(log)
    ]


def read_csv(path: Path) -> Iterator[Profile]:
    """Give the launches of an export, in order.

    Raises: OSError.
    """
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    for row in csv.DictReader(lines):
        if not row.get("ID"):
            continue  # the second line holds the units
        metrics: dict[str, float] = {}
        for name, text in row.items():
            if name and "__" in name:
                with suppress(ValueError):
                    metrics[name] = float((text or "").replace(",", ""))
        yield Profile(row["Kernel Name"], _ctas(row.get("Grid Size")), metrics)


def _ctas(text: str | None) -> int | None:
    """Return the product of `(8, 4, 1)`."""
    extents = re.findall(r"\d+", text or "")
    if not extents:
        return None
    count = 1
    for extent in extents:
        count *= int(extent)
    return count


def middle(launches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each metric that all launches have."""
    names = [name for name in launches[0] if all(name in one for one in launches)]
    return {name: median(one[name] for one in launches) for name in names}

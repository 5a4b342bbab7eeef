"""Nsight Compute, run over a module of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hopsim.errors import DeviceError
from hopsim.kernels.measured.ncu_export import Profile, read_csv


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

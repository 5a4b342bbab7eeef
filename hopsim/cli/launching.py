"""What `gemm` and `run` share: making the GPU, the progress bar, the trace, the JSON of a launch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hopsim.cli.options import Backend, Numerics, RunSchedule, Warm, overrides
from hopsim.cli.output import Output, check_target, terminal, write_file
from hopsim.errors import ConfigError, HopsimError
from hopsim.report.facts import Row
from hopsim.report.launch import beyond_choice, not_checked
from hopsim.results import LaunchResult

if TYPE_CHECKING:
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.runtime.gpu import Gpu

LONG_RUN_SECONDS: Final = 1.0
"""Nobody needs a progress bar before this."""


def make_gpu(
    backend: Backend, hardware: str, settings: list[str] | None, *, lines: int | None = None
) -> Gpu | CudaGpu:
    """Return the GPU to run on; a real one is the driver's first.

    Args:
        lines: of the PTX, to show the time of; None for a GPU that does not look at them.
    Raises: ConfigError: no such configuration.  DeviceError: no device, or no extra to reach it.
    """
    if backend is Backend.SIM:
        if lines is not None:
            from hopsim.profile.gpu import ProfilingGpu

            return ProfilingGpu(hardware, overrides(settings))
        from hopsim.runtime.gpu import Gpu

        return Gpu(hardware, overrides(settings))
    if lines is not None:
        raise ConfigError(
            "a device does not tell where its warps spend their time",
            where="--lines",
            hint="--backend sim; ncu --section SourceCounters on the device",
        )
    if settings:
        raise ConfigError(
            "a real device has its own numbers",
            where="--set",
            hint="--backend sim, or leave --set out",
        )
    from hopsim.cuda.gpu import CudaGpu

    return CudaGpu(0)


def launch_options(
    run_schedule: RunSchedule,
    *,
    values: bool,
    check: bool,
    numerics: Numerics,
    seed: int,
    max_cycles: int | None,
    warm: Warm,
    trace: str | None,
    lines: int | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments of `Gpu.launch`.

    Raises: ConfigError: options that contradict each other, or a trace that cannot be written.
    """
    left = None if warm is Warm.NOTHING else warm
    timed = {
        "--trace": ("a timeline needs", trace),
        "--lines": ("lines need", lines),
        "--warm": ("caches need", left),
    }
    for option, (who, value) in timed.items():
        if value is not None and run_schedule is not RunSchedule.TIMED:
            raise ConfigError(
                f"{who} time, and the schedule {run_schedule.value} knows none",
                where=option,
                hint="--run-schedule timed",
            )
    if trace is not None:
        check_target(trace, "--trace")
    return {
        "schedule": run_schedule.value,
        "timing": run_schedule is RunSchedule.TIMED,
        "values": values,
        "check": check and values,
        "numerics": numerics.value,
        "seed": seed,
        "max_cycles": max_cycles,
        "warm": warm.value,
        "trace": trace is not None,
    }


@contextmanager
def progress_bar(words: str) -> Generator[Callable[[float], None] | None]:
    """Give a function that is told the share done; it draws a bar on long runs, and only on a terminal."""
    console = terminal(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
        console=console, transient=True,
    )  # fmt: skip
    task = bar.add_task(words, total=1.0)
    began = time.monotonic()
    is_shown = False

    def tell(part: float) -> None:
        nonlocal is_shown
        if not is_shown and time.monotonic() - began > LONG_RUN_SECONDS:
            bar.start()
            is_shown = True
        bar.update(task, completed=part)

    try:
        yield tell
    finally:
        if is_shown:
            bar.stop()


def show_lines(output: Output, device: object, lines: int | None) -> dict[str, Any]:
    """Show at which lines warps spent most time, if that was asked for; return what the JSON says of them."""
    if lines is None:
        return {}
    from hopsim.profile.gpu import ProfilingGpu
    from hopsim.report.lines import line_report

    assert isinstance(device, ProfilingGpu), device
    times = device.line_times
    output.show(*line_report(times, lines))
    return {"line_times": times.content()}


def save_trace(output: Output, result: LaunchResult, trace: str | None) -> list[Row]:
    """Write the timeline, and return the line that says so; the output tells later if it cannot be written."""
    rows: list[Row] = []
    if trace is None:
        return rows
    with output.saving():
        try:
            result.save_trace(trace)
        except HopsimError as error:
            raise ConfigError(error.what, where="--trace", hint=error.hint) from None
        rows.append(("timeline", f"saved to {trace}; open it at https://ui.perfetto.dev"))
    return rows


def save_ptx(text: str, path: str | None) -> list[Row]:
    """Write a kernel's PTX, and return the line that says so.

    Raises: ConfigError: it cannot be written.
    """
    if path is None:
        return []
    write_file(path, text, "--ptx")
    return [("PTX", f"saved to {path}")]


def launch_json(
    command: str,
    result: LaunchResult,
    more: Mapping[str, Any],
    *,
    checks: bool = True,
    settings: list[str] | None = None,
) -> dict[str, Any]:
    """Return the JSON of a launch: the result's own keys, and the command's beside them.

    Args:
        checks: whether the options asked for races.  settings: those of `--set`.
    """
    content: dict[str, Any] = json.loads(result.json())
    content |= {
        "command": command,
        "set": overrides(settings),
        "not_checked": list(not_checked(result, checks)),
        "beyond_choice": [note.why for note in beyond_choice(result)],
        **more,
    }
    return content

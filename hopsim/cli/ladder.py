"""`hopsim ladder`: a GEMM by every schedule that suits it, simple to fast, and what each step is worth."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hopsim.cli.gemm import operands
from hopsim.cli.gemm_choices import Dtype, OutDtype
from hopsim.cli.options import Backend, BackendOption, GpuOption, JsonOption, SetOption, overrides

if TYPE_CHECKING:
    from hopsim.kernels.gemm.ladder import Step
    from hopsim.kernels.gemm.timing import StepTime
    from hopsim.launch.device import Device

_REPEATS = 10
_Measured = tuple[float | None, float | None]
"""TFLOP/s and cycles."""


def ladder(
    m: Annotated[int, typer.Option("--m", metavar="N", help="Rows of A and C.")],
    n: Annotated[int, typer.Option("--n", metavar="N", help="Rows of B, columns of C.")],
    k: Annotated[int, typer.Option("--k", metavar="N", help="Columns of A and B.")],
    dtype: Annotated[
        Dtype, typer.Option("--dtype", help="Type of A and B; sums are f32, of int8 s32.")
    ] = Dtype.BF16,
    out_dtype: Annotated[
        OutDtype | None, typer.Option("--out-dtype", help="Type of C; by default as in `gemm`.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="SCHEDULE", help="Run this step only. Repeatable."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Steps simulated at a time; all cores."),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--recorded",
            metavar="FOLDER",
            help="Put what an H100 did with the same program beside it: tests/silicon/ladder.",
        ),
    ] = None,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    json_file: JsonOption = None,
    backend: BackendOption = Backend.SIM,
) -> None:
    """Time C[M,N] = A[M,K] B[N,K]^T by one schedule after the other; values are not computed."""
    from dataclasses import asdict

    from hopsim.cli.output import Output
    from hopsim.config import load
    from hopsim.errors import ConfigError
    from hopsim.kernels.gemm.ladder import ladder as steps_of
    from hopsim.kernels.gemm.problem import GemmProblem
    from hopsim.report.facts import fact_table
    from hopsim.report.ladder import Rung, ladder_table
    from hopsim.report.launch import changed_rows

    output = Output(json_file)
    problem = GemmProblem(m, n, k, dtype.value, out_dtype.value if out_dtype else "")
    changes = overrides(settings)
    steps = steps_of(problem, load(gpu, changes))
    if only:
        unknown = sorted(set(only) - {step.name for step in steps})
        if unknown:
            raise ConfigError(
                f"no step is called {unknown[0]!r}",
                where="--only",
                hint=", ".join(step.name for step in steps),
            )
        steps = [step for step in steps if step.name in only]
    if recorded is not None and backend is Backend.CUDA:
        raise ConfigError(
            "expected one device beside the prediction, got a recorded and a real one",
            where="--recorded",
            hint="leave --recorded out, or --backend cuda",
        )
    measured: list[_Measured] = [(None, None)] * len(steps)
    missing: dict[str, str] = {}
    nothing = ""
    if recorded is not None:
        measured, missing, nothing = _recorded(steps, recorded)
    times = _times(steps, gpu, changes, jobs or os.cpu_count() or 1)
    if backend is Backend.CUDA:
        measured = [(rate, None) for rate in _measure(steps)]
    rungs = [
        Rung(
            step.name, f"{step.tile}, {step.stages}", time.cycles, time.tflops, time.bound,
            rate, time.is_extrapolated, cycles,
        )
        for step, time, (rate, cycles) in zip(steps, times, measured, strict=True)
    ]  # fmt: skip
    words = (
        f"C[{m},{n}] = A[{m},{k}] B[{n},{k}]^T   {problem.dtype} -> {problem.out_dtype}, on {gpu}"
    )
    notes = [("problem", words), *changed_rows(changes)]
    if any(rung.is_extrapolated for rung in rungs):
        notes.append(("~", "extrapolated from one wave of tiles"))
    if any(rung.measured_cycles is not None for rung in rungs):
        notes.append(("device", "cycles of the kernel alone, caches cold, as recorded"))
    elif any(rung.measured_tflops is not None for rung in rungs):
        notes.append(("device", "TFLOP/s by events, which include the launch"))
    elif nothing:
        notes.append(("device", nothing))
    notes += [
        ("not recorded" if not position else "", one) for position, one in enumerate(_told(missing))
    ]
    output.show(fact_table(notes), "", ladder_table(rungs))
    content = {
        "command": "ladder",
        "set": changes,
        "not_recorded": missing,
        "problem": {
            "m": m, "n": n, "k": k, "dtype": problem.dtype, "out_dtype": problem.out_dtype, "flops": problem.flops,
        },
        "steps": [
            {
                **asdict(rung), "schedule": step.schedule, "stages": step.stages, "words": step.words,
                "options": {name: _plain(value) for name, value in step.options.items()},
                "time_us": time.time_us,
            }
            for rung, step, time in zip(rungs, steps, times, strict=True)
        ],
    }  # fmt: skip
    output.finish(content, 0)


def _times(steps: list[Step], gpu: str, changes: dict[str, str], jobs: int) -> list[StepTime]:
    """Return the simulated times, in as many processes as there are jobs."""
    work = [(step, gpu, changes) for step in steps]
    if min(jobs, len(steps)) <= 1:
        return [_time(one) for one in work]
    with ProcessPoolExecutor(min(jobs, len(steps)), mp_context=get_context("spawn")) as pool:
        return list(pool.map(_time, work))


def _time(work: tuple[Step, str, dict[str, str]]) -> StepTime:
    from hopsim.config import load
    from hopsim.kernels.gemm.timing import time_step
    from hopsim.runtime.gpu import Gpu

    step, gpu, changes = work
    return time_step(cast("Device", Gpu(gpu, changes)), step, load(gpu, changes))


def _measure(steps: list[Step]) -> list[float | None]:
    """Return TFLOP/s on the first real device."""
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.kernels.gemm.launch import launch

    rates: list[float | None] = []
    with CudaGpu(0) as gpu:
        for step in steps:
            a, b = operands(step.problem, 0)
            result = launch(cast("Device", gpu), step.build(), a, b, repeats=_REPEATS).result
            rates.append(step.problem.flops / result.time_us / 1e6 if result.time_us else None)
    return rates


def _recorded(steps: list[Step], folder: Path) -> tuple[list[_Measured], dict[str, str], str]:
    """Return the recorded TFLOP/s and cycles of the same programs on the same problem, and why there are none.

    That is told by step, or, where the problem was not recorded at all, in one sentence.
    """
    from hopsim.kernels.gemm.recorded import read_ladders
    from hopsim.kernels.gemm.silicon import sha256

    ladders = read_ladders(folder)
    found: dict[tuple[int, int, int, str], _Measured] = {
        (one.problem.m, one.problem.n, one.problem.k, step.ptx_sha256): (step.tflops, step.cycles)
        for one in ladders
        for step in one.steps
    }
    problem = steps[0].problem
    m, n, k = problem.m, problem.n, problem.k
    measured: list[_Measured] = [
        found.get((m, n, k, sha256(step.build().ptx)), (None, None)) for step in steps
    ]
    recorded = [one for one in ladders if one.problem == problem]
    if not recorded:
        return measured, {}, f"{folder} has no measurements of {m} x {n} x {k} in {problem.dtype}"
    others = {step.step.name: step.step for one in recorded for step in one.steps}
    missing = {
        step.name: _why_not(step, others.get(step.name))
        for step, (rate, _) in zip(steps, measured, strict=True)
        if rate is None
    }
    return measured, missing, ""


def _why_not(step: Step, other: Step | None) -> str:
    """Return why a step has no recording where its problem has some.

    Args:
        other: the recorded step of its name.
    """
    if other is None:
        return "this step was not recorded"
    if (other.tile, other.stages) != (step.tile, step.stages):
        return f"recorded with {other.tile}, {other.stages}"
    return "recorded with other options, or other PTX"


def _told(missing: dict[str, str]) -> list[str]:
    """Return a line for each step that was not recorded; one for all where the reason is the same."""
    if len(set(missing.values())) == 1 and len(missing) > 1:
        return [f"{', '.join(missing)}: {next(iter(missing.values()))}"]
    return [f"{name}: {why}" for name, why in missing.items()]


def _plain(value: Any) -> Any:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value

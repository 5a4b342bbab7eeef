"""What the simulator says of measured programs: cycles and counters, several at a time in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from hopsim.errors import HopsimError
from hopsim.kernels.measured.program import launch, operands
from hopsim.kernels.measured.sets import Measured


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one simulation gave.

    Args:
        cycles: None where it failed.
        time_us: at the configuration's clock.
        counters: as `LaunchResult.counters`.
        seconds: that the simulation took.
        error: why it failed.
    """

    cycles: int | None
    time_us: float | None
    counters: Mapping[str, float]
    seconds: float
    error: str = ""


def predict(case: Measured, config: str, overrides: Mapping[str, Any]) -> Prediction:
    """Simulate one case without values, L2 cold, as it was measured."""
    from hopsim.runtime.gpu import Gpu

    began = time.perf_counter()
    program = case.program
    try:
        gpu = Gpu(config, overrides)
        given = operands(gpu, program.dtype, program.out_dtype, case.size)
        result = launch(gpu, program, case.size, case.grid, given, values=False, check=False)
    except HopsimError as error:
        return Prediction(None, None, {}, time.perf_counter() - began, error.what)
    except Exception as error:  # noqa: BLE001  a defect is told in its row; the other cases have their turn
        told = f"defect: {type(error).__name__}: {error}"
        return Prediction(None, None, {}, time.perf_counter() - began, told)
    told = "" if result.deadlock is None else "deadlock"
    seconds = time.perf_counter() - began
    return Prediction(result.cycles, result.time_us, dict(result.counters), seconds, told)


def predict_all(
    cases: Sequence[Measured],
    config: str = "h100-sxm",
    overrides: Mapping[str, Any] | None = None,
    jobs: int = 1,
    progress: Callable[[int, Measured, Prediction], None] = lambda number, case, found: None,
) -> list[Prediction]:
    """Simulate cases, the largest first; predictions come in the order of the cases.

    Args:
        jobs: processes; 1 simulates in this one.
        progress: told how many are done, and the last of them.
    """
    found: dict[int, Prediction] = {}
    order = sorted(range(len(cases)), key=lambda index: -cases[index].flop)
    for index, one in _predictions(cases, order, config, dict(overrides or {}), jobs):
        found[index] = one
        progress(len(found), cases[index], one)
    return [found[index] for index in range(len(cases))]


def _predictions(
    cases: Sequence[Measured],
    order: Sequence[int],
    config: str,
    overrides: Mapping[str, Any],
    jobs: int,
) -> Iterator[tuple[int, Prediction]]:
    if jobs == 1:
        for index in order:
            yield index, predict(cases[index], config, overrides)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        waiting: dict[Future[Prediction], int] = {
            pool.submit(predict, cases[index], config, overrides): index for index in order
        }
        for done in as_completed(waiting):
            yield waiting[done], done.result()

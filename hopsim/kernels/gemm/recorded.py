"""The recorded ladders: what `hopsim record --part ladder` measured, and how to build and simulate the same again.

for one in read_ladders(Path("tests/silicon/ladder")):
    one.problem, one.cublas_cycles, [(step.step.name, step.cycles) for step in one.steps]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from hopsim.errors import ConfigError
from hopsim.json_kinds import (
    ANYTHING,
    NUMBER,
    SHAPE,
    TEXT,
    WHOLE,
    each,
    perhaps,
    rows,
    some,
    table_of,
    with_besides,
)
from hopsim.kernels.gemm.ladder import Step
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.tile import Tile
from hopsim.kernels.recordings import check, read_recording

APART: Final = 0.05
"""Two steps that silicon separates by more should be in the same order in a prediction."""

_CYCLES: Final = perhaps(rows(NUMBER))
_STEP: Final = with_besides(
    table_of(
        step=TEXT, words=TEXT, schedule=TEXT, tile=SHAPE, stages=WHOLE,
        options=with_besides(table_of(), cluster=some(WHOLE)),
        out_dtype=TEXT, ptx_sha256=TEXT, grid=WHOLE, time_us_l2_flushed=NUMBER, time_us_back_to_back=NUMBER,
        clock_hz_back_to_back=perhaps(NUMBER),
    ),
    cycles=_CYCLES,
)  # fmt: skip
_CUBLAS: Final = with_besides(table_of(), cycles=_CYCLES, time_us_l2_flushed=perhaps(NUMBER))
_PROBLEM: Final = table_of(m=WHOLE, n=WHOLE, k=WHOLE, cublas=_CUBLAS, steps=rows(each(ANYTHING)))
_LADDERS: Final = table_of(dtype=TEXT, problems=rows(_PROBLEM))
_FILE: Final = each(ANYTHING)
"""Beside ladders lie files of other kernels."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One step on one problem as it was measured.

    Args:
        cycles: of the whole launch, caches cold, median; None where Nsight Compute was not there.
        cold_us, warm_us: by events, with L2 flushed and back to back.
        clock_hz: over the launches back to back.
    """

    step: Step
    ptx_sha256: str
    grid: int
    cycles: float | None
    cold_us: float
    warm_us: float
    clock_hz: float | None

    @property
    def tflops(self) -> float:
        """Speed by events, with L2 flushed."""
        return self.step.problem.flops / self.cold_us / 1e6


@dataclass(frozen=True, slots=True)
class RecordedLadder:
    """All steps of one problem, and cuBLAS (None where it was not measured)."""

    problem: GemmProblem
    steps: tuple[RecordedStep, ...]
    cublas_cycles: float | None
    cublas_cold_us: float | None


def read_ladders(folder: Path, dtypes: Sequence[str] = ()) -> list[RecordedLadder]:
    """Return the recorded ladders.

    Args:
        dtypes: types of A and B; all without.
    Raises: ConfigError: there are none, or a file holds something else.
    """
    found: list[RecordedLadder] = []
    for file in sorted(folder.glob("*.json")):
        content: dict[str, Any] = read_recording(file, _FILE)
        if "problems" in content:
            check(content, _LADDERS, file)
            if not dtypes or content["dtype"] in dtypes:
                found += [_ladder(content["dtype"], row, file) for row in content["problems"]]
    if not found:
        raise ConfigError(
            f"no recorded ladder in {folder}", hint="hopsim record tests/silicon --part ladder"
        )
    return found


def read_bits(folder: Path) -> dict[str, dict[str, str]]:
    """Return by type the hash of C on the small problem, by the hash of the program."""
    files = [read_recording(file, _FILE) for file in sorted(folder.glob("*.json"))]
    return {one["dtype"]: one["bits"]["c_sha256"] for one in files if "bits" in one}


def _ladder(dtype: str, row: Mapping[str, Any], file: Path) -> RecordedLadder:
    size = (row["m"], row["n"], row["k"])
    cublas = row["cublas"]
    # (A step that could not be measured says why.)
    measured = {
        str(position): one for position, one in enumerate(row["steps"]) if "error" not in one
    }
    check({"steps": measured}, table_of(steps=each(_STEP)), file)
    return RecordedLadder(
        GemmProblem(*size, dtype), tuple(_step(dtype, size, one) for one in measured.values()),
        _middle(cublas), cublas.get("time_us_l2_flushed"),
    )  # fmt: skip


def _step(dtype: str, size: tuple[int, int, int], row: Mapping[str, Any]) -> RecordedStep:
    options: dict[str, Any] = dict(row["options"])
    if "cluster" in options:
        options["cluster"] = tuple(options["cluster"])
    problem = GemmProblem(*size, dtype, row["out_dtype"])
    step = Step(
        row["step"], row["words"], problem, row["schedule"], Tile(*row["tile"]), row["stages"], options
    )  # fmt: skip
    return RecordedStep(
        step, row["ptx_sha256"], row["grid"], _middle(row), row["time_us_l2_flushed"], row["time_us_back_to_back"],
        row["clock_hz_back_to_back"],
    )  # fmt: skip


def _middle(row: Mapping[str, Any]) -> float | None:
    return median(row["cycles"]) if row.get("cycles") else None


@dataclass(frozen=True, slots=True)
class Order:
    """Whether predictions put steps in silicon's order.

    Args:
        pairs: that silicon separates.
        wrong: of these, the ones in the other order, as indices (quicker on silicon, slower on silicon).
    """

    pairs: int
    wrong: tuple[tuple[int, int], ...]


def compare_order(
    predicted: Sequence[float], measured: Sequence[float], apart: float = APART
) -> Order:
    """Compare all pairs of steps.

    >>> compare_order([10, 20, 15], [10, 15, 20])
    Order(pairs=3, wrong=((1, 2),))
    """
    pairs, wrong = 0, list[tuple[int, int]]()
    for i, quick in enumerate(measured):
        for j, slow in enumerate(measured):
            if slow > quick * (1 + apart):
                pairs += 1
                if predicted[i] >= predicted[j]:
                    wrong.append((i, j))
    return Order(pairs, tuple(wrong))

"""The measurements that lie in a checkout: which programs, on which problems, and what an H100 took for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from hopsim.errors import ConfigError
from hopsim.json_kinds import NUMBER, NUMBERS, WHOLE, perhaps, rows, table_of, with_besides
from hopsim.kernels.measured.program import PROGRAM, Program, Size, read
from hopsim.kernels.recordings import read_recording

CYCLES: Final = "gpc__cycles_elapsed.max"
SETS: Final = (
    ("calibration", "../data/triton_bf16/triton_bf16.json"),
    ("judging", "judging/gemm_own.json"),
    ("judging", "judging/gemm_triton.json"),
)
"""Role of a set, and its file from the folder of recordings."""

_TIME: Final = perhaps(NUMBER)
_MEASUREMENT: Final = with_besides(
    table_of(m=WHOLE, n=WHOLE, k=WHOLE, grid=WHOLE),
    counters=perhaps(NUMBERS), cycles=perhaps(rows(NUMBER)), time_us_l2_flushed=_TIME, time_us_back_to_back=_TIME,
    clock_hz_back_to_back=_TIME,
)  # fmt: skip
ROWS: Final = rows(PROGRAM._replace(inside={**PROGRAM.inside, "measured": rows(_MEASUREMENT)}))
"""What a file of a set holds."""


@dataclass(frozen=True)
class Measured:
    """One program on one problem, and what silicon took.

    Args:
        role: `calibration` or `judging`.
        program, size, grid: what was launched.
        cycles: Nsight Compute's `gpc__cycles_elapsed.max`, caches flushed before; None where not profiled.
        spread: largest less smallest of several such launches, as a share of `cycles`; None for one launch.
        cold_us, warm_us: times by events.
        clock_hz: SM clock of back-to-back launches, where it was read.
        counters: Nsight Compute's, by name.
    """

    role: str
    program: Program
    size: Size
    grid: int
    cycles: float | None
    spread: float | None
    cold_us: float | None
    warm_us: float | None
    clock_hz: float | None
    counters: Mapping[str, float]

    @property
    def flop(self) -> float:
        """Floating-point operations."""
        m, n, k = self.size
        return 2.0 * m * n * k


def load_sets(folder: Path) -> list[Measured]:
    """Return all measurements of a folder of recordings (`tests/silicon` of a checkout).

    Raises: ConfigError: there are none, they are something else, or a program is not the one that was measured.
    """
    found: list[Measured] = []
    for role, name in SETS:
        file = folder / name
        if file.exists():
            for row in read_recording(file, ROWS):
                found += _measured(role, row, file.parent)
    if not found:
        raise ConfigError(
            f"there are no measurements in {folder}",
            hint="tests/silicon of a checkout of hopsim, or what hopsim record made",
        )
    return found


def _measured(role: str, row: Mapping[str, Any], folder: Path) -> list[Measured]:
    program = read(row, folder)
    found: list[Measured] = []
    for one in row["measured"]:
        counters: dict[str, float] = one.get("counters") or {}
        runs: list[float] = one.get("cycles") or []
        cycles = median(runs) if runs else counters.get(CYCLES)
        spread = (max(runs) - min(runs)) / median(runs) if len(runs) > 1 else None
        found.append(
            Measured(
                role, program, (one["m"], one["n"], one["k"]), one["grid"], cycles, spread,
                one.get("time_us_l2_flushed"), one.get("time_us_back_to_back"), one.get("clock_hz_back_to_back"),
                counters,
            )
        )  # fmt: skip
    return found

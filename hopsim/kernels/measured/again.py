"""The measured GEMMs once more on another device of the same kind: how far two of them are apart.

No prediction can be held to less than that.

    rows = record(Path("tests/silicon"), Path("ncu.csv"), print)     # on another H100, with Nsight Compute
    cycles = read(Path("tests/silicon"))[key(ptx_sha256, size, grid)]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from hopsim.errors import DeviceError
from hopsim.json_kinds import NUMBER, TEXT, WHOLE, rows, some, table_of
from hopsim.kernels.gemm import silicon
from hopsim.kernels.gemm.recorded import read_ladders
from hopsim.kernels.measured.ncu import Profile, profile
from hopsim.kernels.measured.program import Size, launch
from hopsim.kernels.measured.record import CYCLES, PROFILES, Held
from hopsim.kernels.measured.sets import Measured, load_sets
from hopsim.kernels.recordings import read_recording

FILE: Final = "again.json"
LADDER: Final = "ladder"
"""Of a folder of recordings."""
ROWS: Final = rows(
    table_of(ptx_sha256=TEXT, m=WHOLE, n=WHOLE, k=WHOLE, grid=WHOLE, cycles=some(NUMBER))
)
NCU_LIMIT_S: Final = 500.0
HASH_DIGITS: Final = 16
Key = tuple[str, Size, int]
"""First digits of a program's hash; M, N and K; CTAs."""


def key(ptx_sha256: str, size: Size, grid: int) -> Key:
    """Return by what a measurement is found."""
    return ptx_sha256[:HASH_DIGITS], size, grid


def read(folder: Path) -> dict[Key, float]:
    """Return the cycles of what was measured again, the median of its launches; nothing where it was not.

    Raises: ConfigError: the file holds something else.
    """
    file = folder / FILE
    measured: list[dict[str, Any]] = read_recording(file, ROWS) if file.exists() else []
    found: dict[Key, list[float]] = {}
    for row in measured:
        # Some programs are both judged and a step of a ladder.
        launch_key = key(row["ptx_sha256"], (row["m"], row["n"], row["k"]), row["grid"])
        found.setdefault(launch_key, []).extend(row["cycles"])
    return {launch_key: median(cycles) for launch_key, cycles in found.items()}


# --- recording ------------------------------------------------------------------------------------


def _cases(folder: Path) -> list[Measured]:
    """Return the sets that predictions are judged on, those of one type and size together."""
    cases = [case for case in load_sets(folder) if case.cycles is not None]
    return sorted(cases, key=lambda one: (one.program.dtype, one.program.out_dtype, one.size))


def launched(folder: Path) -> list[tuple[str, Key]]:
    """Return kernel and key of what is launched, in order: the sets, then the ladders."""
    found = [
        (case.program.entry, key(case.program.ptx_sha256, case.size, case.grid))
        for case in _cases(folder)
    ]
    for ladder in read_ladders(folder / LADDER):
        size = (ladder.problem.m, ladder.problem.n, ladder.problem.k)
        found += [
            (step.step.build().entry, key(step.ptx_sha256, size, step.grid))
            for step in ladder.steps
        ]
    return found


def launch_all(folder: Path) -> None:
    """Launch everything some times; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu: Any = CudaGpu(0, isolate=False)
    held = Held(gpu)
    for case in _cases(folder):
        given = held.of(case.program, case.size)
        for _ in range(PROFILES):
            launch(gpu, case.program, case.size, case.grid, given, timing=False)
    held.forget()
    for ladder in read_ladders(folder / LADDER):
        ours = silicon.Held(gpu, ladder.problem)
        for step in ladder.steps:
            kernel = step.step.build()
            for _ in range(PROFILES):
                ours.launch(kernel, timing=False)


def record(folder: Path, log: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run everything under Nsight Compute; return a row for each launch, as plain data.

    Args:
        folder: of the recordings.
        log: where Nsight Compute writes.
    Raises: DeviceError: there is no `ncu`, or launches are missing.
    """
    found = profile(__name__, str(folder), (CYCLES,), log, NCU_LIMIT_S, say, "^(gemm|mm_)")
    return rows_of(launched(folder), found)


def rows_of(expected: Sequence[tuple[str, Key]], found: Sequence[Profile]) -> list[dict[str, Any]]:
    """Return what Nsight Compute saw as rows.

    Raises: DeviceError: other kernels were launched.
    """
    names = [name for name, _ in expected for _ in range(PROFILES)]
    if names != [one.kernel.partition("(")[0] for one in found]:
        raise DeviceError(
            f"{len(names)} launches were expected, got {len(found)}, or of other kernels"
        )
    rows: list[dict[str, Any]] = []
    for number, (name, (digits, (m, n, k), grid)) in enumerate(expected):
        mine = found[PROFILES * number : PROFILES * (number + 1)]
        rows.append({
            "kernel": name, "ptx_sha256": digits, "m": m, "n": n, "k": k, "grid": grid,
            "cycles": [one.metrics[CYCLES] for one in mine],
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    launch_all(Path(sys.argv[1]))

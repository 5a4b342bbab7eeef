"""Measure GEMMs on a device: times by CUDA events, and cycles and counters by Nsight Compute.

Nsight Compute (`ncu`) is run over `python -m hopsim.kernels.measured.record FOLDER`, which launches every case; with
`--clock-control none` it leaves the clocks alone, and it flushes the caches before each launch.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopsim.errors import DeviceError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.measured.cases import Case, own_cases, small_case, triton_cases
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.measured.ncu_export import middle
from hopsim.kernels.measured.program import (
    Operands,
    Program,
    Size,
    describe,
    launch,
    operands,
)

CYCLES: Final = "gpc__cycles_elapsed.max"
METRICS: Final = (
    CYCLES, "sm__cycles_active.avg", "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
    "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "lts__t_sector_hit_rate.pct",
    "smsp__inst_executed.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum", "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "l1tex__data_pipe_lsu_wavefronts.sum", "launch__registers_per_thread",
)  # fmt: skip
PROFILES: Final = 3
"""Launches of each case under Nsight Compute: cycles are the median."""
REPEATS: Final = 20
"""Launches of each case that are timed by events, cold and warm."""
NCU_LIMIT_S: Final = 300.0
LAUNCH_LIMIT_S: Final = 20.0
EMPTY: Final = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry empty()
{
    ret;
}
"""
EMPTY_LAUNCHES: Final = (
    (1, 128, 1, 0), (132, 128, 1, 0), (132, 384, 1, 0), (132, 384, 1, 232448), (132, 384, 2, 232448),
    (1056, 128, 1, 0), (1056, 384, 1, 232448), (1056, 384, 2, 232448), (4096, 128, 1, 0),
)  # fmt: skip
"""CTAs, threads, CTAs of a cluster, bytes of shared memory."""


class Held:
    """Random operands on a device, made once for neighbouring cases of one type and size."""

    def __init__(self, gpu: Any) -> None:
        self._gpu = gpu
        self._values = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
        self._key: tuple[str, str, Size] | None = None
        self._operands: Operands | None = None

    def of(self, program: Program, size: Size) -> Operands:
        """Return the operands of a program on a problem."""
        key = (program.dtype, program.out_dtype, size)
        if self._operands is None or key != self._key:
            self._operands = None
            self._operands = operands(self._gpu, *key, self._values)
            self._key = key
        return self._operands

    def forget(self) -> None:
        """Make them again next time."""
        self._operands = None


def in_order(cases: Sequence[Case]) -> list[int]:
    """Return the order in which cases are launched: those of one type and size together."""
    return sorted(
        range(len(cases)),
        key=lambda i: (cases[i].program.dtype, cases[i].program.out_dtype, cases[i].size),
    )


def all_cases(folder: Path) -> list[Case]:
    """Return all cases: hopsim's own, then those of the PTX files under `folder`."""
    return [*own_cases(), *triton_cases(folder)]


# --- times ----------------------------------------------------------------------------------------


def times(
    gpu: Any, cases: Sequence[Case], progress: Callable[[str], None]
) -> dict[int, dict[str, Any]]:
    """Return times by the number of the case; a case that hangs or fails is told and left out."""
    found: dict[int, dict[str, Any]] = {}
    held = Held(gpu)
    for number in in_order(cases):
        case = cases[number]
        what = f"{case.program.name} {case.size}"
        try:
            given = held.of(case.program, case.size)
            result = launch(
                gpu, case.program, case.size, case.grid, given, repeats=REPEATS, measure_clock=True
            )
        except DeviceError as error:
            progress(f"{what}: {error}")
            held.forget()
            continue
        if result.verdict == "deadlock":
            progress(f"{what}: it hangs")
            held.forget()
            continue
        found[number] = {
            "time_us_l2_flushed": result.time_us,
            "time_us_back_to_back": result.counters["hopsim__time_us_warm"],
            "clock_hz_back_to_back": result.clock_hz,
        }
    return found


def bits(gpu: Any, case: Case, **options: Any) -> str:
    """Return the SHA-256 of C of one launch on random operands.

    Args:
        options: of `gpu.launch`.
    """
    values = np.random.default_rng(2).standard_normal(1 << 16).astype(np.float32)
    given = operands(gpu, case.program.dtype, case.program.out_dtype, case.size, values)
    launch(gpu, case.program, case.size, case.grid, given, **options)
    return hashlib.sha256(given.c.numpy().tobytes()).hexdigest()


# --- Nsight Compute -------------------------------------------------------------------------------


def launch_all(folder: Path) -> None:
    """Launch empty kernels, then every case, each some times; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu = CudaGpu(0, isolate=False)
    empty = loads(EMPTY)["empty"]
    for ctas, threads, cluster, shared_bytes in EMPTY_LAUNCHES:
        for _ in range(PROFILES):
            gpu.launch(empty, ctas, threads, cluster, [], shared_bytes, timing=False)
    held = Held(gpu)
    cases = all_cases(folder)
    for number in in_order(cases):
        case = cases[number]
        given = held.of(case.program, case.size)
        for _ in range(PROFILES):
            launch(gpu, case.program, case.size, case.grid, given, timing=False)


def together(launches: Sequence[dict[str, float]]) -> tuple[list[float], dict[str, float]]:
    """Return the cycles of each launch of one case, and the median of every metric."""
    return [row[CYCLES] for row in launches], middle(launches)


# --- all of it ------------------------------------------------------------------------------------


def record(
    folder: Path, log: Path, progress: Callable[[str], None]
) -> dict[str, list[dict[str, Any]]]:
    """Measure everything; return what `gemm_own.json`, `gemm_triton.json` and `empty_kernel.json` hold.

    Args:
        folder: with the PTX files of other compilers.
        log: where Nsight Compute writes.
    Raises: DeviceError.
    """
    from hopsim.cuda.gpu import CudaGpu

    cases = all_cases(folder)
    with CudaGpu(0, time_limit_s=LAUNCH_LIMIT_S) as gpu:
        timed = times(gpu, cases, progress)
        programs = {case.program.name: case.program for case in cases}
        small = {name: small_case(program) for name, program in programs.items()}
        hashes = {name: bits(gpu, case, timing=False) for name, case in small.items()}
    progress(f"times of {len(timed)} of {len(cases)} GEMMs")
    looked_at = profile(
        __name__, str(folder), METRICS, log, NCU_LIMIT_S, progress, "^(gemm|empty|mm_)"
    )
    if not looked_at:
        raise DeviceError("ncu gave no launch", where=str(log))
    profiles = [dict(one.metrics) for one in looked_at]
    progress(f"counters of {len(profiles)} launches")
    groups = [profiles[at : at + PROFILES] for at in range(0, len(profiles), PROFILES)]
    empty = [
        {"grid": ctas, "block": threads, "cluster": cluster, "shared_bytes": shared, "cycles": cycles,
         "counters": counters}
        for (ctas, threads, cluster, shared), (cycles, counters) in zip(
            EMPTY_LAUNCHES, map(together, groups), strict=False
        )
    ]  # fmt: skip
    counted = dict(zip(in_order(cases), groups[len(EMPTY_LAUNCHES) :], strict=False))
    found: dict[str, list[dict[str, Any]]] = {
        "gemm_own.json": [], "gemm_triton.json": [], "empty_kernel.json": empty,
    }  # fmt: skip
    rows: dict[str, dict[str, Any]] = {}
    for number, case in enumerate(cases):
        program = case.program
        if program.name not in rows:
            m, n, k = small[program.name].size
            kept = {
                "m": m,
                "n": n,
                "k": k,
                "grid": small[program.name].grid,
                "c_sha256": hashes[program.name],
            }
            rows[program.name] = {**describe(program), "bits": kept, "measured": []}
            is_own = program.file.startswith("own/")
            if is_own:
                (folder / "own").mkdir(exist_ok=True)
                (folder / program.file).write_text(program.ptx, encoding="utf-8")
            found["gemm_own.json" if is_own else "gemm_triton.json"].append(rows[program.name])
        m, n, k = case.size
        row: dict[str, Any] = {"m": m, "n": n, "k": k, "grid": case.grid, **timed.get(number, {})}
        if number in counted:
            row["cycles"], row["counters"] = together(counted[number])
        rows[program.name]["measured"].append(row)
    return found


if __name__ == "__main__":
    launch_all(Path(sys.argv[1]))

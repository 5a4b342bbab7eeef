"""The ladder on a real device: what is launched, how it is measured, and how it is written down.

found = record(Path("tests/silicon/ladder"), print)     # plain data by type, for JSON files

Every step is built, timed by events and, where Nsight Compute is at hand, counted in cycles (caches flushed before
each launch, clocks left alone).  Each program is launched once more on a small problem whose C is kept as a hash, so
that the simulator can be held to its bits.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.config import load
from hopsim.errors import DeviceError, HopsimError
from hopsim.isa.program.kernel import loads
from hopsim.kernels import others
from hopsim.kernels.gemm.cublas import Cublas
from hopsim.kernels.gemm.kernel import GemmKernel
from hopsim.kernels.gemm.ladder import Step, ladder
from hopsim.kernels.gemm.launch import NUMPY_TYPES, arguments, buffers, launch
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.schedules import schedule_named
from hopsim.kernels.measured.ncu import profile
from hopsim.launch.arrays import DeviceArray
from hopsim.launch.device import Device

Size = tuple[int, int, int]
SIZES: Final[tuple[Size, ...]] = (
    *((n, n, n) for n in (512, 1024, 2048, 4096, 8192)),
    *((m, 4096, 4096) for m in (16, 32, 64, 128)),
)
SIZES_OF: Final[dict[str, tuple[Size, ...]]] = {
    "bf16": SIZES,
    "e4m3": SIZES,
    "int8": ((1024, 1024, 1024), (4096, 4096, 4096)),
    "tf32": ((1024, 1024, 1024), (4096, 4096, 4096)),
}
"""Types of A and B, and the problems that are recorded of each."""
BITS_SIZE: Final[Size] = (136, 144, 400)
"""Ragged in every mode, and more k-blocks than the shorter rings have stages."""
CONFIG: Final = "h100-sxm"
REPEATS: Final = 20
"""Launches that are timed by events, cold and back to back."""
PROFILES: Final = 3
"""Launches under Nsight Compute."""
LAUNCH_LIMIT_S: Final = 30.0
NCU_LIMIT_S: Final = 400.0
CYCLES: Final = "gpc__cycles_elapsed.max"
METRICS: Final = (
    CYCLES,
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "launch__registers_per_thread",
)


def steps_of(dtype: str, size: Size) -> list[Step]:
    """Return the steps of the ladder that are recorded."""
    return ladder(GemmProblem(*size, dtype), load(CONFIG))


def operands(problem: GemmProblem) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return A and B: normal random numbers, the same every time, repeated."""
    kind = NUMPY_TYPES[problem.dtype]
    values = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
    base = (values * 40 if kind.kind == "i" else values).astype(kind)
    return np.resize(base, problem.a_shape), np.resize(base[::-1], problem.b_shape)


def sha256(text: str | bytes) -> str:
    """Return the hash of a text or of bytes."""
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def bits_step(step: Step) -> Step:
    """Return the program of a step on the small problem, with as many rows as the program can load."""
    m, n, k = BITS_SIZE
    a_rows = step.build().plan.a_rows
    problem = GemmProblem(
        step.problem.m if a_rows else m, n, k, step.problem.dtype, step.problem.out_dtype
    )  # fmt: skip
    takes_rows = "a_rows" in schedule_named(step.schedule).options
    options = {**step.options, "a_rows": a_rows} if takes_rows else step.options
    return replace(step, problem=problem, options=options)


def bits(gpu: Device, step: Step, **options: Any) -> str:
    """Return the hash of the C that a step's program gives for the small problem.

    Args:
        options: of `gpu.launch`.
    """
    small = bits_step(step)
    return sha256(launch(gpu, small.build(), *operands(small.problem), **options).c.tobytes())


class Held:
    """A, B and the C of each type of one problem on a device."""

    def __init__(self, gpu: Any, problem: GemmProblem) -> None:
        self._gpu = gpu
        a, b = operands(problem)
        self._a, self._b = gpu.array(a), gpu.array(b)
        self._c: dict[str, DeviceArray] = {}

    def launch(self, kernel: GemmKernel, **options: Any) -> Any:
        """Launch a kernel; its sums go to whatever C holds."""
        problem = kernel.problem
        out = problem.out_dtype
        if out not in self._c:
            self._c[out] = self._gpu.array(np.zeros((problem.m, problem.n), NUMPY_TYPES[out]))
        given = arguments(kernel, self._a, self._b, self._c[out], buffers(self._gpu, kernel))
        return self._gpu.launch(
            loads(kernel.ptx)[kernel.entry], kernel.grid, kernel.block, kernel.cluster, given, kernel.shared_bytes,
            **options,
        )  # fmt: skip


# --- Nsight Compute -------------------------------------------------------------------------------


def launch_all(dtype: str) -> None:
    """Launch every step of every problem some times, then cuBLAS; what Nsight Compute looks at.

    Args:
        dtype: or the name of a set of kernels beside the ladder.
    """
    from hopsim.cuda.gpu import CudaGpu

    os.environ["CUDA_MODULE_LOADING"] = "LAZY"  # or PyTorch loads all it has
    gpu = CudaGpu(0, isolate=False)
    if dtype in others.SETS:
        for _, go in others.SETS[dtype].cases(cast("Device", gpu)):
            for _ in range(PROFILES):
                go(timing=False)
        return
    for size in SIZES_OF[dtype]:
        problem = GemmProblem(*size, dtype)
        held = Held(gpu, problem)
        for step in steps_of(dtype, size):
            for _ in range(PROFILES):
                held.launch(step.build(), timing=False)
        try:
            rival = Cublas(problem, *operands(problem))
        except DeviceError:
            continue
        for _ in range(PROFILES):
            rival.go()


def cycles_of(
    dtype: str, log: Path, say: Callable[[str], None]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Look at `launch_all` with Nsight Compute; give name and metrics of each kernel, in order.

    Args:
        log: where Nsight Compute writes.
    Raises: DeviceError: there is no `ncu`, or it wrote nothing.
    """
    for one in profile(__name__, dtype, METRICS, log, NCU_LIMIT_S, say):
        yield one.kernel, dict(one.metrics)


def add_cycles(
    rows: list[dict[str, Any]],
    profiles: Iterator[tuple[str, dict[str, float]]],
    say: Callable[[str], None],
) -> None:
    """Put the cycles of each launch into the rows of the problems, in the order of `launch_all`.

    Kernels of other names than the step's are cuBLAS's, if they stand where it is launched; it may take several kernels a
    product, which are added.
    """
    kernels = list(profiles)
    at = 0
    for row in rows:
        for step in row["steps"]:
            mine = kernels[at : at + PROFILES]
            if [name.partition("(")[0] for name, _ in mine] != [step["entry"]] * PROFILES:
                say(f"ncu: expected {step['entry']}, got {mine[:1]}")
                return
            step["cycles"] = [metrics[CYCLES] for _, metrics in mine]
            step["counters"] = {name: value for name, value in mine[0][1].items() if name != CYCLES}
            at += PROFILES
        end = at
        while end < len(kernels) and not kernels[end][0].startswith("gemm_"):
            end += 1
        others = [metrics[CYCLES] for _, metrics in kernels[at:end]]
        each = len(others) // PROFILES
        if each and each * PROFILES == len(others):
            row["cublas"]["cycles"] = [
                sum(others[i * each : (i + 1) * each]) for i in range(PROFILES)
            ]
            row["cublas"]["kernels"] = [
                name.partition("(")[0] for name, _ in kernels[at : at + each]
            ]
        at = end


# --- all of it ------------------------------------------------------------------------------------


def describe(step: Step, kernel: GemmKernel) -> dict[str, Any]:
    """Return what a step is, as plain data: enough to build it again."""
    options = {
        name: list(cast("tuple[int, ...]", value)) if isinstance(value, tuple) else value
        for name, value in step.options.items()
    }
    tile = step.tile
    return {
        "step": step.name, "words": step.words, "schedule": step.schedule, "tile": [tile.m, tile.n, tile.k],
        "stages": step.stages, "options": options, "out_dtype": step.problem.out_dtype, "entry": kernel.entry,
        "ptx_sha256": sha256(kernel.ptx), "grid": kernel.grid[0],
    }  # fmt: skip


def times(gpu: Any, dtype: str, size: Size, say: Callable[[str], None]) -> dict[str, Any]:
    """Time the steps of one problem, and cuBLAS."""
    problem = GemmProblem(*size, dtype)
    held = Held(gpu, problem)
    steps: list[dict[str, Any]] = []
    for step in steps_of(dtype, size):
        kernel = step.build()
        row = describe(step, kernel)
        steps.append(row)
        try:
            result = held.launch(kernel, repeats=REPEATS, measure_clock=True)
        except HopsimError as error:
            row["error"] = error.what
            held = Held(gpu, problem)
        else:
            if result.verdict == "deadlock":
                row["error"] = "it hangs"
                held = Held(gpu, problem)
                continue
            row["time_us_l2_flushed"] = result.time_us
            row["time_us_back_to_back"] = result.counters["hopsim__time_us_warm"]
            row["clock_hz_back_to_back"] = result.clock_hz
        say(f"{dtype} {size} {step.name} {step.tile}: {row.get('error') or rate(row, problem)}")
    cublas: dict[str, Any] = {}
    try:
        cold, warm = Cublas(problem, *operands(problem)).times_us(REPEATS)
        cublas = {"time_us_l2_flushed": cold, "time_us_back_to_back": warm}
        say(f"{dtype} {size} cuBLAS: {rate(cublas, problem)}")
    except (HopsimError, RuntimeError, AttributeError) as error:
        say(f"{dtype} {size} cuBLAS: {error}")
    return {"m": problem.m, "n": problem.n, "k": problem.k, "steps": steps, "cublas": cublas}


def rate(row: dict[str, Any], problem: GemmProblem) -> str:
    """Return the speed of a row in words."""
    cold, warm = row["time_us_l2_flushed"], row["time_us_back_to_back"]
    flop = problem.flops / 1e6
    return f"{cold:.2f} us cold, {flop / cold:.1f} TFLOP/s; {warm:.2f} us warm, {flop / warm:.1f} TFLOP/s"


def programs(rows: list[dict[str, Any]], dtype: str) -> dict[str, Step]:
    """Return one step of each program, by the hash of its text."""
    found: dict[str, Step] = {}
    for row in rows:
        for step in steps_of(dtype, (row["m"], row["n"], row["k"])):
            found.setdefault(sha256(step.build().ptx), step)
    return found


def record(dtype: str, log: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure the ladders of one type; return what its JSON file holds.

    Args:
        log: where Nsight Compute writes.
    """
    from hopsim.cuda.gpu import CudaGpu

    with CudaGpu(0, time_limit_s=LAUNCH_LIMIT_S) as gpu:
        rows = [times(gpu, dtype, size, say) for size in SIZES_OF[dtype]]
        small = {
            key: bits(cast("Device", gpu), step, timing=False)
            for key, step in programs(rows, dtype).items()
        }
        say(f"{dtype}: bits of {len(small)} programs")
    try:
        add_cycles(rows, cycles_of(dtype, log, say), say)
    except DeviceError as error:
        say(f"no cycles: {error.what}")
    m, n, k = BITS_SIZE
    return {
        "dtype": dtype, "bits": {"m": m, "n": n, "k": k, "c_sha256": small}, "problems": rows,
    }  # fmt: skip


def record_others(name: str, log: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measure a set of kernels beside the ladder."""
    from hopsim.cuda.gpu import CudaGpu

    with CudaGpu(0, time_limit_s=LAUNCH_LIMIT_S) as gpu:
        rows = others.times(cast("Device", gpu), name, REPEATS, say)
    try:
        add_cycles([{"steps": rows, "cublas": {}}], cycles_of(name, log, say), say)
    except DeviceError as error:
        say(f"no cycles: {error.what}")
    return rows


if __name__ == "__main__":
    launch_all(sys.argv[1])

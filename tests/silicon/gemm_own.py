"""Measure hopsim's own GEMMs on a device: python tests/silicon/gemm_own.py OUT_DIR

Writes gemm_own.json: for each kernel and problem the times by events and one launch under Nsight Compute
(`--clock-control none`; it flushes the caches first), in the shape of tests/data/triton_bf16/triton_bf16.json.
Nothing is calibrated on it: it judges.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import hopsim as hs
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, tensor_map
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.probes.probe import load_module

METRICS = (
    "gpc__cycles_elapsed.max", "sm__cycles_active.avg", "gpu__time_duration.sum", "dram__bytes_read.sum",
    "dram__bytes_write.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "lts__t_sector_hit_rate.pct",
    "smsp__inst_executed.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum", "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "l1tex__data_pipe_lsu_wavefronts.sum", "launch__registers_per_thread",
)  # fmt: skip
WS = "warp-specialized"
KERNELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bf16", {"schedule": "pipelined", "tile": (128, 128, 64), "stages": 4}),
    ("bf16", {"schedule": "pipelined", "tile": (128, 256, 64), "stages": 3, "warpgroups": 2}),
    ("bf16", {"schedule": WS, "tile": (128, 128, 64), "stages": 4}),
    ("bf16", {"schedule": WS, "tile": (128, 256, 64), "stages": 4, "warpgroups": 2, "persistent": True}),
    ("bf16", {"schedule": WS, "tile": (128, 128, 64), "stages": 4, "cluster": (2, 1)}),
    ("e4m3", {"schedule": WS, "tile": (128, 256, 128), "stages": 4, "warpgroups": 2, "persistent": True}),
    ("fp16", {"schedule": WS, "tile": (256, 128, 64), "stages": 4, "warpgroups": 2}),
)  # fmt: skip
SIZES = ((512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3, (1000, 1416, 528))
REPEATS = 20
EMPTY = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry empty()
{
    ret;
}
"""
EMPTY_GRIDS = (1, 132, 1056)


def cases() -> list[tuple[GemmKernel, dict[str, Any]]]:
    found: list[tuple[GemmKernel, dict[str, Any]]] = []
    for dtype, options in KERNELS:
        for m, n, k in SIZES:
            given = dict(options)
            kernel = build(
                given.pop("schedule"),
                GemmProblem(m, n, k, dtype),
                given.pop("tile"),
                given.pop("stages"),
                **given,
            )
            found.append((kernel, options))
    return found


class Arrays:
    """Random normal operands, uploaded once for each size and type."""

    def __init__(self, gpu: hs.CudaGpu) -> None:
        self.gpu = gpu
        self.base = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
        self.shape: tuple[Any, ...] = ()
        self.held: list[Any] = []

    def of(self, kernel: GemmKernel) -> list[Any]:
        p = kernel.problem
        wanted = (p.m, p.n, p.k, p.dtype)
        if self.shape != wanted:
            self.held.clear()
            values = self.base.astype(NUMPY_TYPES[p.dtype])
            for rows, columns in ((p.m, p.k), (p.n, p.k)):
                self.held.append(self.gpu.array(np.resize(values, (rows, columns))))
            self.held.append(self.gpu.empty((p.m, p.n), NUMPY_TYPES[p.out_dtype]))
            self.shape = wanted
        return self.held


def launch(gpu: hs.CudaGpu, arrays: Arrays, kernel: GemmKernel, **options: Any) -> Any:
    maps = [
        tensor_map(array, spec) for array, spec in zip(arrays.of(kernel), kernel.maps, strict=True)
    ]
    args = [*maps, *(np.uint32(size) for size in kernel.scalars)]
    entry = load_module(kernel.ptx)[kernel.entry]
    return gpu.launch(
        entry, kernel.grid, kernel.block, kernel.cluster, args, kernel.shared_bytes, **options
    )


def in_size_order() -> list[tuple[int, GemmKernel]]:
    numbered = [(i, kernel) for i, (kernel, _) in enumerate(cases())]
    return sorted(numbered, key=lambda pair: (pair[1].problem.dtype, pair[1].problem.m, pair[0]))


def launch_all() -> None:
    """Under Nsight Compute: empty kernels, then every case once."""
    gpu = hs.CudaGpu(0, isolate=False)
    empty = hs.loads(EMPTY)["empty"]
    for grid in EMPTY_GRIDS:
        gpu.launch(empty, grid, 128, timing=False)
    arrays = Arrays(gpu)
    for _, kernel in in_size_order():
        launch(gpu, arrays, kernel, timing=False)


def profile(folder: Path) -> list[dict[str, float | None]]:
    log = folder / "ncu.csv"
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--metrics",
        ",".join(METRICS), "-k", "regex:^(gemm|empty)", "--log-file", str(log), sys.executable, __file__, "--launch",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    if done.returncode:
        print("ncu:", done.returncode, done.stdout[-1500:], done.stderr[-1500:])
    lines = [line for line in log.read_text().splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the second line holds the units
    print(f"ncu: {len(rows)} launches")
    return [{name: _number(row.get(name)) for name in METRICS} for row in rows]


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None


def times() -> dict[int, tuple[float, float, float | None]]:
    found: dict[int, tuple[float, float, float | None]] = {}
    with hs.CudaGpu(0, time_limit_s=20.0) as gpu:
        arrays = Arrays(gpu)
        for number, kernel in in_size_order():
            arrays.of(kernel)
            result = launch(gpu, arrays, kernel, repeats=REPEATS, measure_clock=True)
            if result.verdict == "deadlock":
                print("deadlock:", kernel.entry, kernel.problem)
                arrays.shape = ()
                continue
            warm = result.counters["hopsim__time_us_warm"]
            found[number] = (result.time_us, warm, result.clock_hz)
    return found


def main(folder: Path) -> None:
    began = time.monotonic()
    measured = times()
    print(f"timed {len(measured)} cases in {time.monotonic() - began:.0f} s", flush=True)
    profiles = profile(folder)
    empty, rest = profiles[: len(EMPTY_GRIDS)], profiles[len(EMPTY_GRIDS) :]
    counters = {number: row for (number, _), row in zip(in_size_order(), rest, strict=False)}
    kernels: dict[str, dict[str, Any]] = {}
    for number, (kernel, options) in enumerate(cases()):
        p, plan = kernel.problem, kernel.plan
        entry = kernels.setdefault(
            kernel.entry,
            {
                "kernel": kernel.entry, "entry": kernel.entry, "dtype": p.dtype, "out_dtype": p.out_dtype,
                "shared_bytes": kernel.shared_bytes, "block": kernel.block, "cluster": kernel.cluster,
                "tile": {"bm": plan.tile.m, "bn": plan.tile.n, "bk": plan.tile.k, "stages": plan.stages,
                         "group_m": plan.group_m},
                "options": dict(options),
                "measured": [],
            },
        )  # fmt: skip
        cold, warm, clock = measured.get(number, (None, None, None))
        entry["measured"].append(
            {
                "m": p.m, "n": p.n, "k": p.k, "grid": kernel.grid[0], "time_us_l2_flushed": cold,
                "time_us_back_to_back": warm, "clock_hz_back_to_back": clock, "counters": counters.get(number),
            }
        )  # fmt: skip
    (folder / "gemm_own.json").write_text(json.dumps(list(kernels.values()), indent=1) + "\n")
    named = [
        {"grid": grid, "block": 128, "counters": row}
        for grid, row in zip(EMPTY_GRIDS, empty, strict=False)
    ]
    (folder / "empty_kernel.json").write_text(json.dumps(named, indent=1) + "\n")
    print(f"gemm_own in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    if sys.argv[1] == "--launch":
        launch_all()
    else:
        main(Path(sys.argv[1]))

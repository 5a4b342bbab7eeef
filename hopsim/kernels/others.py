"""Times of the kernels beside the ladder on a real device: attention and fp8-scaled, as plain data for a JSON file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from hopsim.errors import HopsimError
from hopsim.kernels.attention import launch as attention
from hopsim.kernels.attention.plan import AttentionProblem
from hopsim.kernels.fp8_scaled import launch as scaled
from hopsim.kernels.fp8_scaled.scaled import BLOCK
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.launch.device import Device
from hopsim.results import LaunchResult

ATTENTION: Final = tuple(
    (AttentionProblem(heads, length, length, head_dim, causal), block_kv)
    for heads, length in ((16, 1024), (16, 4096), (4, 16384))
    for head_dim in (64, 128)
    for causal in (False, True)
    for block_kv in (128, 176)
)
"""Problems, and rows of K and V in a stage."""
SCALED: Final = tuple(
    (GemmProblem(*size, "e4m3"), tile, stages, cluster)
    for size in ((1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192))
    for tile, stages, cluster in (
        ((128, 128), 4, (1, 1)), ((128, 160), 4, (1, 1)), ((128, 128), 4, (2, 1)), ((64, 128), 4, (1, 1)),
    )
)  # fmt: skip

Launch = Callable[..., LaunchResult]


def cases(gpu: Device) -> Iterator[tuple[dict[str, Any], Launch]]:
    """Give what each kernel is, and what launches it on random numbers with options of `gpu.launch`."""
    values = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
    for problem, block_kv in ATTENTION:
        kernel = attention.build(problem, block_kv=block_kv)
        kind = attention.NUMPY_TYPES[problem.dtype]
        shape = (problem.heads, problem.seq_q, problem.head_dim)
        q, k, v = (np.resize(np.roll(values, i).astype(kind), shape) for i in range(3))

        def go(kernel: Any = kernel, q: Any = q, k: Any = k, v: Any = v, **options: Any) -> Any:
            return attention.launch(gpu, kernel, q, k, v, **options).result

        words = {
            "heads": problem.heads, "seq": problem.seq_q, "head_dim": problem.head_dim, "causal": problem.causal,
            "block_kv": block_kv, "dtype": problem.dtype,
        }  # fmt: skip
        yield {**_row("attention", kernel, problem.flops), **words}, go
    for problem, tile, stages, cluster in SCALED:
        kernel = scaled.build(problem, tile, stages, cluster=cluster)
        kind = NUMPY_TYPES["e4m3"]
        a = np.resize(values.astype(kind), (problem.m, problem.k))
        b = np.resize(values[::-1].astype(kind), (problem.n, problem.k))
        blocks = -(-problem.k // BLOCK)
        scales = np.abs(values) + 0.5
        a_scales = np.resize(scales, (problem.m, blocks))
        b_scales = np.resize(scales, (-(-problem.n // BLOCK), blocks))

        def run(
            kernel: Any = kernel, a: Any = a, b: Any = b, a_scales: Any = a_scales, b_scales: Any = b_scales,
            **options: Any,
        ) -> Any:  # fmt: skip
            return scaled.launch(gpu, kernel, a, b, a_scales, b_scales, **options).result

        words = {
            "m": problem.m, "n": problem.n, "k": problem.k, "tile": list(tile), "stages": stages,
            "cluster": list(cluster),
        }  # fmt: skip
        yield {**_row("fp8-scaled", kernel, problem.flops), **words}, run


def _row(
    schedule: str, kernel: attention.AttentionKernel | scaled.ScaledKernel, flops: int
) -> dict[str, Any]:
    return {
        "schedule": schedule, "entry": kernel.entry, "flop": flops,
        "ptx_sha256": hashlib.sha256(kernel.ptx.encode()).hexdigest(), "grid": math.prod(kernel.grid),
    }  # fmt: skip


def times(gpu: Device, repeats: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Time every kernel by events, with L2 flushed and back to back."""
    rows: list[dict[str, Any]] = []
    for row, go in cases(gpu):
        rows.append(row)
        try:
            result = go(repeats=repeats, measure_clock=True)
        except HopsimError as error:
            row["error"] = error.what
        else:
            row["time_us_l2_flushed"] = result.time_us
            row["time_us_back_to_back"] = result.counters.get("hopsim__time_us_warm")
            row["clock_hz_back_to_back"] = result.clock_hz
        rate = row["flop"] / row["time_us_l2_flushed"] / 1e6 if row.get("time_us_l2_flushed") else 0
        say(f"{row['entry']} {row['grid']}: {row.get('error') or f'{rate:.1f} TFLOP/s'}")
    return rows

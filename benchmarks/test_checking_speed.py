"""What checking costs: the same 512^3 GEMM with and without it; the goal is at most three times the run without."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, launch
from hopsim.kernels.gemm.problem import GemmProblem

SHAPES: dict[str, tuple[str, tuple[int, int, int], dict[str, Any]]] = {
    "small tiles": ("warp-specialized", (64, 64, 64), {}),
    "large tiles": ("warp-specialized", (128, 128, 64), {"warpgroups": 2}),
    "pipelined": ("pipelined", (128, 128, 64), {}),
    "clusters": ("warp-specialized", (64, 64, 64), {"cluster": (2, 1)}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_checked_512(benchmark: Any, name: str) -> None:
    schedule, tile, options = SHAPES[name]
    rng = np.random.default_rng(0)
    kind = NUMPY_TYPES["bf16"]
    a, b = (rng.standard_normal((512, 512), dtype=np.float32).astype(kind) for _ in range(2))
    kernel = build(schedule, GemmProblem(512, 512, 512), tile, 4, **options)

    def run(check: bool) -> float:
        gpu: Any = hs.Gpu()
        start = time.perf_counter()
        result = launch(gpu, kernel, a, b, schedule="in-order", check=check).result
        assert result.verdict == ("clean" if check else "not-modelled")
        return time.perf_counter() - start

    run(False)
    plain = min(run(False) for _ in range(3))
    checked = benchmark.pedantic(run, args=(True,), rounds=3, iterations=1, warmup_rounds=1)
    benchmark.extra_info["seconds_without"] = round(plain, 3)
    benchmark.extra_info["times"] = round(benchmark.stats.stats.min / plain, 2)
    assert checked > 0

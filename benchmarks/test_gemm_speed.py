"""How fast whole GEMMs run: exact bits at 512^3, and time alone at 4096^3 in simulated cycles a second."""

from __future__ import annotations

from typing import Any

import numpy as np

import hopsim as hs
from hopsim import reference
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, launch
from hopsim.kernels.gemm.problem import GemmProblem


def test_exact_bits_512(benchmark: Any) -> None:
    """512 x 512 x 512 bf16, values, time and hazards, compared with the reference: what `make demo` does."""
    generator = np.random.default_rng(0)
    kind = NUMPY_TYPES["bf16"]
    a = generator.standard_normal((512, 512), dtype=np.float32).astype(kind)
    b = generator.standard_normal((512, 512), dtype=np.float32).astype(kind)
    kernel = build("warp-specialized", GemmProblem(512, 512, 512), (64, 64, 64), 4)

    def run() -> bool:
        done = launch(hs.Gpu("h100-sxm"), kernel, a, b)
        wanted = reference.gemm(a, b, out_dtype=kind)
        return np.array_equal(done.c.view(np.uint16), wanted.view(np.uint16))

    assert benchmark.pedantic(run, rounds=3, iterations=1, warmup_rounds=1)


def _timing_only(benchmark: Any, kernel: GemmKernel, size: int) -> None:
    zeros = np.zeros((size, size), NUMPY_TYPES["bf16"])

    def run() -> int:
        done = launch(hs.Gpu("h100-sxm"), kernel, zeros, zeros, values=False, check=False)
        assert done.result.cycles is not None
        return done.result.cycles

    cycles = benchmark.pedantic(run, rounds=1, iterations=1)
    benchmark.extra_info["cycles"] = cycles
    benchmark.extra_info["cycles_per_second"] = round(cycles / benchmark.stats.stats.mean)


def test_timing_only_4096(benchmark: Any) -> None:
    """4096 x 4096 x 4096 bf16, 128x256x64, all SMs, no values."""
    kernel = build(
        "warp-specialized", GemmProblem(4096, 4096, 4096), (128, 256, 64), 4, warpgroups=2
    )
    _timing_only(benchmark, kernel, 4096)


def test_timing_only_mma_sync(benchmark: Any) -> None:
    """2048 x 2048 x 2048 bf16 by `cp.async`, `ldmatrix` and `mma.sync`, no values: many more instructions than wgmma."""
    kernel = build("mma-multistage", GemmProblem(2048, 2048, 2048), (128, 128, 64), 3)
    _timing_only(benchmark, kernel, 2048)

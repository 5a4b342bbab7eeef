"""The kernels beside the ladder on both backends: one test, the same program, the reference's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hopsim.kernels.attention import launch as attention_kernels
from hopsim.kernels.attention.plan import AttentionProblem
from hopsim.kernels.fp8_scaled import launch as scaled_kernels
from hopsim.kernels.fp8_scaled import quantise
from hopsim.kernels.fp8_scaled.errors import operands
from hopsim.kernels.gemm.launch import NUMPY_TYPES, run
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.surroundings.dependent import run_pair
from hopsim.kernels.surroundings.end_to_end import run_maps
from hopsim.kernels.surroundings.maps import WAYS
from hopsim.reference.attention import attention
from hopsim.reference.gemm import gemm
from hopsim.reference.gemm_scaled import gemm_scaled

UNCHECKED = {"check": False, "timing": False}
BF16 = NUMPY_TYPES["bf16"]


@pytest.fixture(params=["sim", pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request: pytest.FixtureRequest) -> Any:
    if request.param == "sim":
        from hopsim.runtime.gpu import Gpu

        return Gpu()
    from hopsim.cuda.gpu import CudaGpu

    return CudaGpu(0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("head_dim", "block_kv"), [(64, 128), (128, 128), (128, 176)])
def test_attention(gpu: Any, head_dim: int, block_kv: int, causal: bool) -> None:
    problem = AttentionProblem(2, 130, 200, head_dim, causal)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, rows, head_dim)).astype(BF16) for rows in (130, 200, 200))
    done = attention_kernels.run(gpu, problem, q, k, v, block_kv=block_kv, **UNCHECKED)
    expected = attention(q, k, v, causal=causal, block_kv=block_kv)
    assert np.array_equal(done.o.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("tile", [(128, 128), (128, 160), (64, 24), (64, 56)])
def test_fp8_scaled(gpu: Any, tile: tuple[int, int]) -> None:
    problem = GemmProblem(130, 200, 400, "e4m3")
    a, b = operands(problem, seed=0, spread=3)
    qa, sa = quantise.by_row(a)
    qb, sb = quantise.by_block(b)
    done = scaled_kernels.run(gpu, problem, qa, qb, sa, sb, tile, 3, **UNCHECKED)
    expected = gemm_scaled(qa, qb, sa, sb, done.c.dtype)
    assert np.array_equal(done.c.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("dtype", ["int8", "tf32"])
@pytest.mark.parametrize("schedule", ["mma-multistage", "warp-specialized"])
def test_int8_and_tf32(gpu: Any, schedule: str, dtype: str) -> None:
    problem = GemmProblem(150, 72, 176, dtype)
    rng = np.random.default_rng(0)
    kind = NUMPY_TYPES[dtype]
    a, b = ((rng.standard_normal((rows, 176)) * 40).astype(kind) for rows in (150, 72))
    done = run(
        gpu, problem, a, b, schedule=schedule, tile=(64, 64, 128 // kind.itemsize), stages=3,
        launch_options=UNCHECKED,
    )  # fmt: skip
    expected = gemm(a, b, out_dtype=NUMPY_TYPES[problem.out_dtype])
    assert np.array_equal(done.c.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("way", WAYS)
def test_maps(gpu: Any, way: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 208)).astype(BF16) for rows in (150, 136))
    done = run_maps(gpu, GemmProblem(150, 136, 208), a, b, way, **UNCHECKED)
    assert np.array_equal(done.c.view(np.uint16), gemm(a, b, out_dtype=BF16).view(np.uint16))


def test_dependent_products(gpu: Any) -> None:
    rng = np.random.default_rng(0)
    a, b, d = (rng.standard_normal(s).astype(BF16) for s in ((100, 72), (136, 72), (80, 136)))
    pair = run_pair(gpu, a, b, d, **UNCHECKED)
    expected = gemm(gemm(a, b, out_dtype=BF16), d, out_dtype=BF16)
    assert np.array_equal(pair.y.view(np.uint16), expected.view(np.uint16))

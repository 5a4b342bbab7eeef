from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.launch import NUMPY_TYPES, run
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.runtime.gpu import Gpu

WS = "warp-specialized"
RAGGED = (200, 328, 144)
IN_ORDER = {"schedule": "in-order", "check": False}


def small_integers(problem: GemmProblem) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """A, B and C = A B^T whose sums every accumulator holds exactly."""
    rng = np.random.default_rng(problem.k)
    limit = 1 if problem.dtype == "e4m3" else 3
    a, b = (
        rng.integers(-limit, limit, (rows, problem.k), endpoint=True)
        for rows in (problem.m, problem.n)
    )
    kind = NUMPY_TYPES[problem.dtype]
    exact = (a @ b.T).astype(np.float32).astype(NUMPY_TYPES[problem.out_dtype])
    return a.astype(kind), b.astype(kind), exact


def check(problem: GemmProblem, launch_options: dict[str, Any], **options: Any) -> None:
    a, b, exact = small_integers(problem)
    done = run(Gpu(), problem, a, b, launch_options=launch_options, **options)
    bits = np.dtype(f"u{exact.dtype.itemsize}")
    # adding zero makes -0 into 0: an exact sum of zero has either sign in the reference only
    assert np.array_equal(
        (done.c + exact.dtype.type(0)).view(bits), (exact + exact.dtype.type(0)).view(bits)
    )


@pytest.mark.parametrize(
    ("dtype", "out", "options"),
    [
        ("bf16", "", {"schedule": "pipelined", "tile": (64, 64, 64), "stages": 3}),
        (
            "fp16",
            "",
            {"schedule": "pipelined", "tile": (128, 48, 32), "stages": 2, "warpgroups": 2},
        ),
        ("e4m3", "f32", {"schedule": "pipelined", "tile": (64, 128, 256), "stages": 2}),
        ("bf16", "", {"tile": (64, 64, 64), "stages": 3}),
        ("bf16", "f32", {"tile": (128, 96, 128), "stages": 2}),
        ("e4m3", "fp16", {"tile": (256, 64, 128), "stages": 2, "warpgroups": 2}),
        ("bf16", "", {"tile": (64, 256, 64), "stages": 3, "store_buffers": 2}),
        ("bf16", "", {"tile": (64, 8, 64), "stages": 3}),
        ("fp16", "", {"tile": (128, 40, 64), "stages": 2, "warpgroups": 2}),
        ("bf16", "f32", {"tile": (128, 24, 64), "stages": 2}),
    ],
)
def test_ragged_sizes_are_exact(dtype: str, out: str, options: dict[str, Any]) -> None:
    check(GemmProblem(*RAGGED, dtype, out), IN_ORDER, **options)


@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize(
    "launch_options",
    [
        IN_ORDER,
        {"schedule": "seeded", "seed": 7, "check": False},
        {"schedule": "adversarial", "check": False},
    ],
    ids=["in-order", "seeded", "adversarial"],
)
def test_multicast_and_persistence_are_exact_under_any_order(
    cluster: tuple[int, int], launch_options: dict[str, Any]
) -> None:
    check(
        GemmProblem(*RAGGED), launch_options,
        tile=(64, 64, 32), stages=2, cluster=cluster, persistent=True, resident_ctas=4, group_m=2,
    )  # fmt: skip


@pytest.mark.parametrize("sizes", [(1, 8, 16), (64, 64, 16), (65, 72, 80), (256, 16, 512)])
def test_tiles_wholly_outside_and_single_k_blocks(sizes: tuple[int, int, int]) -> None:
    check(GemmProblem(*sizes), IN_ORDER, tile=(128, 32, 64), stages=4, cluster=(2, 1))
    check(GemmProblem(*sizes), IN_ORDER, schedule="pipelined", tile=(64, 32, 64), stages=4)


def test_operands_of_another_shape_or_type_are_refused() -> None:
    problem = GemmProblem(64, 64, 64)
    a, b, _ = small_integers(problem)
    with pytest.raises(LaunchError, match=r"A must be bfloat16 \(64, 64\), got float32"):
        run(Gpu(), problem, a.astype(np.float32), b)
    with pytest.raises(
        LaunchError, match=r"B must be bfloat16 \(64, 64\), got bfloat16 \(32, 64\)"
    ):
        run(Gpu(), problem, a, b[:32])

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.kernels.convolution.launch import build, launch, launch_dry, run
from hopsim.kernels.convolution.problem import ConvProblem
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.reference.convolution import columns, convolution
from hopsim.runtime.gpu import Gpu

IN_ORDER = {"schedule": "in-order", "check": False}
SMALL = ConvProblem(1, 6, 7, 64, 32)
Operands = tuple[NDArray[Any], NDArray[Any]]


def operands(problem: ConvProblem, seed: int = 0) -> Operands:
    rng = np.random.default_rng(seed)
    kind = NUMPY_TYPES[problem.dtype]
    x, w = (rng.standard_normal(shape).astype(kind) for shape in (problem.x_shape, problem.w_shape))
    return x, w


def same(problem: ConvProblem, launch_options: dict[str, Any], **options: Any) -> str:
    """Run, compare bits with the reference, and return the verdict."""
    x, w = operands(problem)
    done = run(Gpu(), problem, x, w, launch_options=launch_options, **options)
    expected = convolution(
        x, w, stride=problem.stride, padding=problem.padding, dilation=problem.dilation
    ).astype(done.y.dtype)
    assert done.y.shape == problem.out_shape == expected.shape
    np.testing.assert_array_equal(done.y.view(np.uint16), expected.view(np.uint16))
    return done.result.verdict


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (ConvProblem(1, 1, 1, 8, 8), {"tile": (64, 8)}),
        (ConvProblem(3, 5, 4, 64, 64), {"tile": (64, 64)}),
        (ConvProblem(2, 9, 9, 128, 72), {"tile": (128, 64), "stages": 2}),
        (ConvProblem(2, 9, 9, 72, 128), {"tile": (128, 128), "stages": 3}),
        (ConvProblem(1, 12, 12, 64, 16, extent=(1, 5), padding=(0, 2)), {"tile": (64, 16)}),
        (ConvProblem(1, 12, 12, 64, 16, extent=(5, 1), padding=(0, 0)), {"tile": (64, 16)}),
        (ConvProblem(2, 11, 13, 64, 32, stride=(2, 3)), {"tile": (64, 32)}),
        (ConvProblem(1, 15, 9, 64, 32, stride=(8, 1), padding=(2, 0)), {"tile": (64, 32)}),
        (ConvProblem(1, 13, 13, 64, 32, dilation=(4, 3), padding=(4, 3)), {"tile": (64, 32)}),
        (ConvProblem(4, 8, 8, 64, 96, dtype="fp16"), {"tile": (128, 96), "persistent": True}),
        (ConvProblem(20, 16, 16, 64, 8, extent=(1, 1), padding=(0, 0)), {"tile": (256, 8), "warpgroups": 2}),
        (ConvProblem(1, 7, 7, 64, 8, extent=(7, 7), padding=(6, 6)), {"tile": (64, 8)}),
    ],
    ids=str,
)  # fmt: skip
def test_bits_are_those_of_the_reference(problem: ConvProblem, options: dict[str, Any]) -> None:
    same(problem, IN_ORDER, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": "in-order"},
        {"schedule": "adversarial"},
        {"schedule": "timed"},
        *({"schedule": "seeded", "seed": seed} for seed in range(20)),
    ],
    ids=str,
)
def test_no_order_changes_bits_and_nothing_is_racy(options: dict[str, Any]) -> None:
    problem = ConvProblem(2, 6, 7, 64, 16, stride=(2, 1))
    assert same(problem, options, tile=(64, 16), stages=2) == "clean"


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"fence\.proxy\.async\.shared::cta;", ""),
        (r"wgmma\.wait_group\.sync\.aligned +1;", "wgmma.wait_group.sync.aligned 2;"),
        (r"wgmma\.wait_group\.sync\.aligned +0;", "wgmma.wait_group.sync.aligned 1;"),
        (r"@!\S+ bra +WAIT_FULL\w*;", ""),
        (r"@!\S+ bra +WAIT_EMPTY\w*;", ""),
        (r"@\S+ cp\.async\.bulk\.wait_group +0;", ""),
    ],
)
def test_a_missing_edge_is_found(pattern: str, replacement: str) -> None:
    kernel = build(SMALL, (64, 32), 2)
    text, found = re.subn(pattern, replacement, kernel.ptx)
    assert found
    done = launch(Gpu(), replace(kernel, ptx=text), *operands(SMALL), schedule="in-order")
    assert done.result.verdict == "hazard"


def test_time_alone_needs_no_values() -> None:
    kernel = build(SMALL, (64, 32), 2)
    timed = launch(Gpu(), kernel, *operands(SMALL)).result
    assert launch_dry(Gpu(), kernel).cycles == timed.cycles


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"images": 0}, "images must be at least 1, got 0"),
        ({"channels": 12}, "channels must fill a multiple of 16 bytes, got 12 of bf16"),
        ({"filters": 4}, "filters must fill a multiple of 16 bytes, got 4 of bf16"),
        ({"dtype": "e4m3"}, "dtype must be bf16 or fp16, got 'e4m3'"),
        ({"stride": (1, 9)}, "stride along W must be 1 to 8, got 9"),
        ({"dilation": (0, 1)}, "along H extent and dilation must be at least 1"),
        ({"padding": (1, -1)}, "along W extent and dilation must be at least 1 and padding at least 0"),
        ({"extent": (9, 3)}, "a filter that reaches over 9 pixels along H is larger than an image of 6 with a padding of 1"),
        ({"width": 400, "extent": (1, 140), "padding": (0, 0)},
         "a filter that reaches over 140 pixels along W with a padding of 0 does not fit an im2col map"),
    ],
)  # fmt: skip
def test_mistakes_are_told(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(LaunchError, match=re.escape(what)):
        replace(SMALL, **changes)


def test_operands_of_other_shapes_are_refused() -> None:
    x, w = operands(SMALL)
    kernel = build(SMALL, (64, 32), 2)
    with pytest.raises(LaunchError, match=r"w must be bfloat16 \(32, 3, 3, 64\), got bfloat16"):
        launch(Gpu(), kernel, x, w[:16])
    with pytest.raises(LaunchError, match=r"x must be bfloat16 \(1, 6, 7, 64\), got float32"):
        launch(Gpu(), kernel, x.astype(np.float32), w)


def test_the_reference_is_a_convolution() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-3, 4, (2, 7, 6, 16)).astype(np.float16)
    w = rng.integers(-3, 4, (8, 3, 2, 16)).astype(np.float16)
    options: dict[str, Any] = {"stride": (2, 1), "padding": (2, 1), "dilation": (1, 2)}
    got = convolution(x, w, **options)
    moved = columns(x, (3, 2), **options).astype(np.float64)
    np.testing.assert_array_equal(got, np.einsum("npqrsc,krsc->npqk", moved, w.astype(np.float64)))
    n, p, q, r, s = 1, 2, 3, 0, 1
    h, v = p * 2 - 2 + r, q - 1 + 2 * s
    np.testing.assert_array_equal(moved[n, p, q, r, s], x[n, h, v] if h >= 0 <= v < 6 else 0)

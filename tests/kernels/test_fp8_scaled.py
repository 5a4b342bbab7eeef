from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.fp8_scaled import quantise
from hopsim.kernels.fp8_scaled.errors import compare, operands
from hopsim.kernels.fp8_scaled.launch import build, launch
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.reference.gemm_scaled import BLOCK, dequantised, gemm_scaled
from hopsim.runtime.gpu import Gpu

PTXAS = shutil.which("ptxas")
IN_ORDER = {"schedule": "in-order", "check": False}
Quantised = tuple[NDArray[Any], NDArray[Any], NDArray[np.float32], NDArray[np.float32]]


def quantised(problem: GemmProblem) -> Quantised:
    a, b = operands(problem, seed=problem.k, spread=3)
    qa, sa = quantise.by_row(a)
    qb, sb = quantise.by_block(b)
    return qa, qb, sa, sb


def same(sizes: tuple[int, int, int], tile: tuple[int, int], options: dict[str, Any],
         out: str = "", **build_options: Any) -> str:  # fmt: skip
    """Run, compare bits with the reference, and return the verdict."""
    problem = GemmProblem(*sizes, "e4m3", out)
    given = quantised(problem)
    done = launch(Gpu(), build(problem, tile, **{"stages": 3, **build_options}), *given, **options)
    expected = gemm_scaled(*given, done.c.dtype)
    bits = f"u{expected.itemsize}"
    assert np.array_equal(done.c.view(bits), expected.view(bits))
    return done.result.verdict


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [
        ((1, 8, 16), (64, 16)),
        ((64, 64, 128), (64, 64)),
        ((200, 200, 304), (128, 128)),
        ((70, 264, 400), (64, 24)),
        ((130, 328, 512), (128, 160)),
        ((130, 328, 256), (128, 152)),
        ((64, 192, 256), (64, 40)),
        ((64, 136, 1040), (64, 112)),
    ],
)
def test_bits_are_those_of_the_reference(
    sizes: tuple[int, int, int], tile: tuple[int, int]
) -> None:
    same(sizes, tile, IN_ORDER)


def test_a_cta_walks_over_tiles_with_scales_of_their_own() -> None:
    same((192, 392, 384), (64, 56), IN_ORDER, resident_ctas=2)
    same((192, 392, 384), (64, 128), IN_ORDER, out="f32", resident_ctas=1)


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": "in-order"},
        {"schedule": "adversarial"},
        {"schedule": "timed"},
        {"schedule": "seeded", "seed": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2)])
def test_no_order_changes_bits_and_nothing_is_racy(
    cluster: tuple[int, int], options: dict[str, Any]
) -> None:
    verdict = same((150, 160, 512), (64, 80), options, cluster=cluster, resident_ctas=4)
    assert verdict == "clean"


@pytest.mark.slow
def test_twenty_seeds_give_one_result() -> None:
    for seed in range(20):
        options = {"schedule": "seeded", "seed": seed}
        assert same((64, 160, 384), (64, 80), options, resident_ctas=1) == "clean"


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"bar\.warp\.sync +-1;", ""),
        (r"@\S+ fence\.proxy\.async\.shared::cta;", ""),
        (r"\n +fence\.proxy\.async\.shared::cta;", "\n"),
        (r"bar\.sync +3, \d+;", ""),
        (r"wgmma\.wait_group\.sync\.aligned +0;", ""),
        (r"@!\S+ bra +WAIT_FULL\w*;", ""),
        (r"@!\S+ bra +WAIT_EMPTY\w*;", ""),
    ],
)
def test_a_missing_edge_is_found(pattern: str, replacement: str) -> None:
    problem = GemmProblem(128, 160, 640, "e4m3")
    kernel = build(problem, (64, 80), 2, resident_ctas=1)
    text, found = re.subn(pattern, replacement, kernel.ptx)
    assert found
    done = launch(Gpu(), replace(kernel, ptx=text), *quantised(problem), schedule="in-order")
    assert done.result.verdict == "hazard"


def test_promotion_keeps_what_the_tensor_core_drops() -> None:
    """The tensor core keeps about 14 bits of a sum, so the longer it sums the worse: DeepSeek-V3 3.3.2."""
    problem = GemmProblem(64, 64, 4096, "e4m3", "f32")
    numbers = operands(problem, seed=0, spread=0)
    fine, coarse = compare(Gpu(), problem, *numbers, (64, 64), **IN_ORDER)
    assert (fine.is_exact, coarse.is_exact) == (True, True)
    assert 1e-6 < fine.sums.relative < 2e-3 < coarse.sums.relative * 10
    assert coarse.sums.relative > 3 * fine.sums.relative
    # what quantisation loses is the same order in both while all numbers are of one size
    assert 0.02 < fine.whole.relative < 0.06


def test_scales_of_blocks_keep_small_rows() -> None:
    """Below 2^-18 of the largest number nothing is left in e4m3 under one scale."""
    problem = GemmProblem(64, 64, 128, "e4m3", "f32")
    numbers = operands(problem, seed=0, spread=24)
    fine, coarse = compare(Gpu(), problem, *numbers, (64, 64), 2, **IN_ORDER)
    assert fine.whole.relative < 0.05 < 0.1 < coarse.whole.relative


@given(st.integers(1, 300), st.integers(1, 40), st.floats(1e-3, 1e3))
def test_quantised_numbers_are_near(k: int, rows: int, size: float) -> None:
    x = np.random.default_rng(k).standard_normal((rows, k)).astype(np.float32) * np.float32(size)
    for quantiser, each in ((quantise.by_row, 1), (quantise.by_block, BLOCK)):
        q, scales = quantiser(x)
        near = dequantised(q, scales, each)
        # half a unit of 3 fraction bits, or of the smallest e4m3 number
        bound = np.maximum(np.abs(x) * 2.0**-4, scales.max() * 2.0**-10) * 1.001
        assert (np.abs(near - x) <= bound).all()
    assert np.abs(quantise.by_row(x)[0].astype(np.float32)).max(axis=1).max() == 448


def test_zeros_have_scale_one() -> None:
    q, scales = quantise.by_row(np.zeros((2, 130), np.float32))
    assert scales.tolist() == [[1, 1], [1, 1]]
    assert not q.astype(np.float32).any()


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not on PATH: the kernel was not assembled")
@pytest.mark.parametrize(
    ("tile", "stages", "cluster"),
    [
        ((128, 128), 5, (1, 1)),
        ((128, 160), 4, (2, 1)),
        ((128, 152), 4, (1, 1)),
        ((128, 112), 4, (1, 2)),
        ((64, 24), 8, (1, 1)),
        ((64, 16), 8, (1, 2)),
    ],
)
def test_ptxas_takes_it_without_spills_or_remarks(
    tile: tuple[int, int], stages: int, cluster: tuple[int, int], tmp_path: Path
) -> None:
    kernel = build(GemmProblem(4096, 4096, 7168, "e4m3"), tile, stages, cluster=cluster)
    assert loads(kernel.ptx)[kernel.entry].serialised_wgmma == []
    source = tmp_path / "kernel.ptx"
    source.write_text(kernel.ptx)
    assert PTXAS is not None
    command = [PTXAS, "-arch=sm_90a", "-v", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    assert done.returncode == 0, report
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report
    assert "(C7" not in report


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: build(GemmProblem(64, 64, 64)), "multiplies e4m3, got bf16"),
        (lambda: build(GemmProblem(64, 64, 64, "e4m3"), (256, 64)), "tile m must be 64 or 128"),
        (lambda: build(GemmProblem(64, 64, 64, "e4m3"), (128, 256)), "256 accumulators"),
        (lambda: build(GemmProblem(64, 64, 1 << 20, "e4m3"), stages=6), "scales of K = 1048576"),
    ],
)
def test_what_cannot_run_is_refused(make: Any, said: str) -> None:
    with pytest.raises(LaunchError) as error:
        make()
    assert said in str(error.value)


def test_scales_of_another_shape_are_refused() -> None:
    problem = GemmProblem(64, 64, 256, "e4m3")
    a, b, sa, sb = quantised(problem)
    with pytest.raises(LaunchError, match=r"scales of A must be float32 \(64, 2\)"):
        launch(Gpu(), build(problem), a, b, sa[:, :1], sb)


def test_it_is_timed_without_values() -> None:
    problem = GemmProblem(256, 320, 1024, "e4m3")
    given = quantised(problem)
    kernel = build(problem, (128, 160))
    found = [
        launch(Gpu(), kernel, *given, values=values, check=False).result.cycles
        for values in (False, True)
    ]
    assert found[0] == found[1]

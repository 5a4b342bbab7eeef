"""int8 and tf32 through every schedule: bits of the reference, whatever the order."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, run
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.reference.gemm import gemm
from hopsim.runtime.gpu import Gpu

PTXAS = shutil.which("ptxas")
TILE_K = {"int8": 128, "tf32": 32}
IN_ORDER = {"schedule": "in-order", "check": False}
CASES: list[tuple[str, int, dict[str, Any]]] = [
    ("mma-simple", 1, {}),
    ("mma-multistage", 3, {}),
    ("wgmma-simple", 1, {}),
    ("wgmma-simple", 1, {"a_in_registers": True}),
    ("pipelined", 3, {}),
    ("warp-specialized", 3, {"cluster": (2, 1)}),
    ("cooperative", 3, {}),
    ("pingpong", 3, {}),
]


def operands(problem: GemmProblem, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    shapes = (problem.m, problem.k), (problem.n, problem.k)
    if problem.dtype == "int8":
        a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    else:
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return a, b


def same(
    problem: GemmProblem,
    how: str,
    stages: int,
    options: dict[str, Any],
    launch_options: dict[str, Any],
) -> str:
    """Run, compare bits with the reference, and return the verdict."""
    a, b = operands(problem)
    tile = (64 if how != "cooperative" else 128, 64, TILE_K[problem.dtype])
    done = run(
        Gpu(), problem, a, b, schedule=how, tile=tile, stages=stages,
        launch_options=launch_options, **options,
    )  # fmt: skip
    expected = gemm(a, b, out_dtype=NUMPY_TYPES[problem.out_dtype])
    bits = f"u{expected.itemsize}"
    assert np.array_equal(done.c.view(bits), expected.view(bits))
    return done.result.verdict


@pytest.mark.parametrize("dtype", ["int8", "tf32"])
@pytest.mark.parametrize(("schedule", "stages", "options"), CASES)
def test_ragged_sizes(dtype: str, schedule: str, stages: int, options: dict[str, Any]) -> None:
    problem = GemmProblem(150, 72, 176, dtype)
    same(problem, schedule, stages, options, IN_ORDER)


@pytest.mark.parametrize("dtype", ["int8", "tf32"])
@pytest.mark.parametrize("order", [{"schedule": "adversarial"}, {"schedule": "seeded", "seed": 5}])
@pytest.mark.parametrize("schedule", ["pipelined", "pingpong"])
def test_any_order_gives_the_same_bits(dtype: str, schedule: str, order: dict[str, Any]) -> None:
    assert same(GemmProblem(130, 64, 272, dtype), schedule, 3, {}, order) == "clean"


def test_tf32_may_be_stored_narrow() -> None:
    problem = GemmProblem(64, 64, 64, "tf32", "bf16")
    same(problem, "pipelined", 3, {}, IN_ORDER)


def test_int8_sums_wrap() -> None:
    """K x 127 x 127 passes 2^31 at K = 133,153: sums are modulo 2^32."""
    k = 133_248
    problem = GemmProblem(64, 16, k, "int8")
    a, b = np.full((64, k), 127, np.int8), np.full((16, k), 127, np.int8)
    done = run(
        Gpu(), problem, a, b, schedule="pipelined", tile=(64, 16, 128), stages=3,
        launch_options={"schedule": "in-order", "check": False},
    )  # fmt: skip
    assert (done.c == k * 127 * 127 - (1 << 32)).all()


def test_sums_across_ctas_are_of_floats() -> None:
    with pytest.raises(LaunchError):
        build("split-k", GemmProblem(64, 64, 512, "int8"), (64, 64, 128), 3, splits=2)


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not on PATH: the kernel was not assembled")
@pytest.mark.parametrize("dtype", ["int8", "tf32"])
@pytest.mark.parametrize(("schedule", "stages", "options"), CASES)
def test_ptxas_takes_it(
    dtype: str, schedule: str, stages: int, options: dict[str, Any], tmp_path: Path
) -> None:
    problem = GemmProblem(512, 512, 512, dtype)
    tile = (128, 128, TILE_K[dtype])
    if schedule.startswith("mma"):
        tile = (128, 64, TILE_K[dtype])
    source = tmp_path / "kernel.ptx"
    source.write_text(build(schedule, problem, tile, stages, **options).ptx)
    assert PTXAS is not None
    command = [PTXAS, "-arch=sm_90a", "-v", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    assert done.returncode == 0, report
    assert "0 bytes spill stores, 0 bytes spill loads" in report
    assert "(C7" not in report

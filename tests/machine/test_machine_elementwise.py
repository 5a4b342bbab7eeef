"""What people write first, as nvcc compiles it (tests/data/nvcc/elementwise.cu), on both backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.launch.options import SCHEDULES

KERNELS = hs.load(Path(__file__).parents[1] / "data" / "nvcc" / "elementwise.ptx")


@pytest.fixture(params=["sim", pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request: pytest.FixtureRequest) -> Any:
    if request.param == "sim":
        return hs.Gpu()
    from hopsim.cuda.gpu import CudaGpu

    return CudaGpu(0)


def expect_clean(result: hs.LaunchResult) -> None:
    """A device looks for no hazards."""
    assert result.verdict == "clean" or (result.backend == "cuda" and not result.deadlock), result


@pytest.mark.parametrize("n", [20, 256, 300])
def test_threads_that_return_before_a_barrier_are_not_waited_for(gpu: Any, n: int) -> None:
    values = np.arange(100, 100 + n, dtype=np.int32)
    a, c = gpu.array(values), gpu.array(np.zeros(n, np.int32))
    expect_clean(gpu.launch(KERNELS["shift"], -(-n // 256), 256, args=[a, c, np.int32(n)]))
    wanted = np.concatenate([np.roll(values[k : k + 256], 1) for k in range(0, n, 256)])
    assert np.array_equal(c.numpy(), wanted)


def test_ctas_meet_at_the_barrier_of_the_grid(gpu: Any) -> None:
    x, out = (gpu.array(np.zeros(256, np.int32)) for _ in range(2))
    for _ in range(2):
        expect_clean(gpu.launch(KERNELS["reversed"], 4, 64, args=[x, out]))
        assert np.array_equal(out.numpy(), 2 * np.arange(256)[::-1])
        assert np.array_equal(x.numpy(), 2 * np.arange(256) + 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_they_meet_in_every_order(schedule: str) -> None:
    gpu = hs.Gpu()
    x, out = (gpu.array(np.zeros(256, np.int32)) for _ in range(2))
    expect_clean(gpu.launch(KERNELS["reversed"], 4, 64, args=[x, out], schedule=schedule))
    assert np.array_equal(out.numpy(), 2 * np.arange(256)[::-1])


def test_a_grid_that_does_not_fit_cannot_meet() -> None:
    gpu = hs.Gpu()
    x = gpu.array(np.zeros(1, np.int32))
    with pytest.raises(hs.LaunchError, match=r"the grid has 5,000 CTAs.*it holds 2,112"):
        gpu.launch(KERNELS["reversed"], 5000, 128, args=[x, x])


def test_division_of_128_bits(gpu: Any) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2**64, 64, np.uint64)
    b = rng.integers(1, 2**64, 64, np.uint64)
    b[1::4] = 0  # a half of the divisors fits into 64 bits
    b[2::8] >>= np.uint64(40)
    given = gpu.array(a), gpu.array(b), gpu.array(np.zeros(128, np.uint64))
    expect_clean(gpu.launch(KERNELS["divide128"], 1, 32, args=list(given)))
    for row, (low, high), (by, by_high) in zip(
        given[2].numpy().reshape(32, 4).tolist(),
        a.reshape(32, 2).tolist(),
        b.reshape(32, 2).tolist(),
        strict=True,
    ):
        quotient, rest = divmod(high << 64 | low, by_high << 64 | by)
        mask = 2**64 - 1
        assert row == [quotient & mask, quotient >> 64, rest & mask, rest >> 64]


def test_a_variable_keeps_what_launches_leave_in_it(gpu: Any) -> None:
    out = gpu.array(np.zeros(1, np.uint32))
    for expected in (6, 7, 8):
        gpu.launch(KERNELS["count"], 1, 1, args=[out])
        assert out.numpy().tolist() == [expected]


def test_each_gpu_has_variables_of_its_own() -> None:
    for _ in range(2):
        gpu = hs.Gpu()
        out = gpu.array(np.zeros(1, np.uint32))
        gpu.launch(KERNELS["count"], 1, 1, args=[out])
        assert out.numpy().tolist() == [6]
        held = gpu.memory.allocated_bytes
        gpu.launch(KERNELS["count"], 1, 1, args=[out])
        assert gpu.memory.allocated_bytes == held


@pytest.mark.parametrize("ctas", [64, 896, 1024, 1040])
def test_the_end_of_a_launch_is_no_standstill(ctas: int) -> None:
    n = 256 * ctas
    gpu = hs.Gpu()
    a, b = (gpu.array(np.arange(n, dtype=np.float32)) for _ in range(2))
    c = gpu.array(np.zeros(n, np.float32))
    result = gpu.launch(KERNELS["vadd"], ctas, 256, args=[a, b, c, np.int32(n)], check=False)
    assert result.deadlock is None
    assert np.array_equal(c.numpy(), 2.0 * np.arange(n, dtype=np.float32))

"""The reference against the scalar oracle and against the simulator's tensor core, bit for bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hopsim.isa.numerics.mma_kinds import MMA_SYNC, WGMMA
from hopsim.isa.numerics.tensor_core import mma_chain
from hopsim.reference import gemm, gemm_f64
from hopsim.reference.gemm import f32_error_bound
from tests.numerics.tensor_core_oracle import DISTRIBUTIONS, chain_bits, draw, fp8_mma_sync_bits

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
UNITS = {"wgmma": WGMMA, "mma.sync": MMA_SYNC}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("pair", list(WGMMA), ids=str)
@pytest.mark.parametrize("unit", ["wgmma", "mma.sync"])
def test_equals_the_tensor_core_and_the_scalar_model(unit, pair, distribution: str) -> None:
    kind = UNITS[unit][pair]
    a, b, c = draw(distribution, *pair, "f32", 70, 40, 3 * kind.instruction_k, 21)
    got = gemm(a.view(DTYPES[pair[0]]), b.view(DTYPES[pair[1]]), c.view(np.float32), unit=unit)
    np.testing.assert_array_equal(got.view(np.uint32), mma_chain(a, b, c, kind))
    corner = a[66:], b[:5], c[66:, :5]
    if kind.through_f16:
        scalar = fp8_mma_sync_bits(*corner, *pair, "f32")
    else:
        shape = kind.fraction_bits, kind.cleared_low_bits, kind.instruction_k
        scalar = chain_bits(*corner, *pair, "f32", *shape)
    np.testing.assert_array_equal(got[66:, :5].view(np.uint32), scalar)


def test_k_is_padded_with_zeros_and_cut_by_k_step() -> None:
    a, b, _ = draw("normal", "bf16", "bf16", "f32", 8, 8, 40, 22)
    a[:, 5] = 0x7F7F  # huge, so that it matters where the chain is cut
    a[:, 9] = 0xFF7F
    x, y = a.view(DTYPES["bf16"]), b.view(DTYPES["bf16"])
    padded = [np.pad(m, ((0, 0), (0, 8))) for m in (a, b)]
    want = mma_chain(*padded, None, WGMMA[("bf16", "bf16")])
    np.testing.assert_array_equal(gemm(x, y).view(np.uint32), want)
    halves = mma_chain(*padded, None, WGMMA[("bf16", "bf16")], instruction_k=8)
    got = gemm(x, y, k_step=8).view(np.uint32)
    np.testing.assert_array_equal(got, halves)
    assert (got != want).any()


def test_output_types() -> None:
    a = np.full((1, 16), 1.0, np.float16)
    b = np.full((1, 16), 1.0 + 2.0**-9, np.float16)  # 16 + 2**-5
    assert gemm(a, b).dtype == np.float32
    assert gemm(a, b)[0, 0] == np.float32(16.03125)
    assert gemm(a, b, out_dtype=ml_dtypes.bfloat16)[0, 0] == ml_dtypes.bfloat16(16.0)
    assert gemm(a, b, out_dtype=np.float16)[0, 0] == np.float16(16.03125)
    assert gemm(a * 64, b, out_dtype=ml_dtypes.float8_e4m3fn)[0, 0] == ml_dtypes.float8_e4m3fn(448)
    assert gemm(a.astype(np.float64), b, dtype=np.float16)[0, 0] == np.float32(16.03125)


def test_integers_wrap() -> None:
    a, b = np.full((1, 64), -128, np.int8), np.full((1, 64), 127, np.int8)
    c = np.array([[-(2**31)]], np.int32)
    assert gemm(a, b)[0, 0] == -128 * 127 * 64
    assert gemm(a, b, c)[0, 0] == 2**31 - 128 * 127 * 64
    assert gemm(a.view(np.uint8), b, c)[0, 0] == -(2**31) + 128 * 127 * 64


def test_float32_mode_and_the_yardstick() -> None:
    a, b, c = draw("normal", "f16", "f16", "f32", 6, 7, 64, 23)
    x, y, z = a.view(np.float16), b.view(np.float16), c.view(np.float32)
    exact = gemm_f64(x, y, z)
    assert exact.dtype == np.float64
    np.testing.assert_allclose(gemm(x, y, z, numerics="float32"), exact, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gemm(x, y, z), exact, rtol=1e-5, atol=1e-5)
    assert gemm_f64(x, y)[0, 0] == pytest.approx(exact[0, 0] - z[0, 0])


def test_fp8_accumulation_loses_what_float64_keeps() -> None:
    rng = np.random.default_rng(24)
    a = rng.random((4, 4096)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.random((4, 4096)).astype(ml_dtypes.float8_e4m3fn)
    exact = gemm_f64(a, b)
    error = np.abs(gemm(a, b) - exact) / exact
    # Truncation to 13 bits, 128 times, always downwards: percents, where float32 has 2**-20.
    assert error.min() > 0.03
    assert error.max() < 0.1
    assert (np.abs(gemm(a, b, numerics="float32") - exact) / exact).max() < 2.0**-20


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros((2, 16), np.float16), np.zeros((2, 8), np.float16)),
        (np.zeros((2, 16), np.float64), np.zeros((2, 16), np.float64)),
        (np.zeros((2, 16), np.float16), np.zeros((2, 16), np.float32)),
    ],
)
def test_misfits_are_refused(a: np.ndarray, b: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"expected|no tensor-core"):
        gemm(a, b)


def test_a_misfitting_accumulator_is_refused() -> None:
    zeros = np.zeros((2, 16), np.float16)
    with pytest.raises(ValueError, match="expected c"):
        gemm(zeros, zeros, np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("out", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_f32_sums_in_any_order_keep_within_their_bound(out: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 512), (24, 512)))
    bound = f32_error_bound(a, b, out)
    for order in (np.arange(512), np.arange(512)[::-1], rng.permutation(512)):
        sums = np.zeros((16, 24), np.float32)
        for k in order:
            sums += a[:, k, None].astype(np.float32) * b[:, k].astype(np.float32)
        assert (np.abs(sums.astype(out).astype(np.float64) - gemm_f64(a, b)) <= bound).all()
    # One product left out is beyond it.
    less = gemm_f64(a[:, 1:], b[:, 1:])
    assert (np.abs(less - gemm_f64(a, b)) > bound).any()

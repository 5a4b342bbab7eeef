"""Products that the tensor core rounds at each step or not at all: integers of 4 bits, single bits, f64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.isa.numerics.exact import fma_f64
from hopsim.isa.numerics.mma_plain import mma_bits, mma_double, mma_integer
from hopsim.isa.numerics.rounding import Rounding


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_products_of_nibbles(seed: int, a_signed: bool, b_signed: bool) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 16, (16, 64), np.uint8), rng.integers(0, 16, (8, 64), np.uint8)
    c = rng.integers(0, 2**32, (16, 8), np.uint32)
    left, right = (
        np.where(signed & (one > 7), one.astype(np.int64) - 16, one)
        for signed, one in ((a_signed, a), (b_signed, b))
    )
    exact = left @ right.T + c.view(np.int32)
    got = mma_integer(a, b, c, a_signed=a_signed, b_signed=b_signed, bits=4)
    assert (got == (exact & 0xFFFFFFFF)).all()
    clamped = mma_integer(
        a, b, c, a_signed=a_signed, b_signed=b_signed, bits=4, satfinite=True, instruction_k=64
    )
    assert (clamped.view(np.int32) == np.clip(exact, -(2**31), 2**31 - 1)).all()


@given(st.integers(0, 2**32 - 1))
def test_products_of_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (16, 128), np.uint8), rng.integers(0, 2, (8, 128), np.uint8)
    c = rng.integers(0, 2**32, (16, 8), np.uint32)
    both = (a[:, None] & b).sum(-1)
    other = (a[:, None] ^ b).sum(-1)
    assert (mma_bits(a, b, c, is_xor=False) == (c + both) % 2**32).all()
    assert (mma_bits(a, b, c, is_xor=True) == (c + other) % 2**32).all()


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_f64_products_are_fused_in_the_order_of_k(rounding: Rounding) -> None:
    """Each step is exact but for one rounding; another order gives other bits."""
    rng = np.random.default_rng(3)
    a, b, c = (
        rng.standard_normal(shape) * 2.0 ** rng.integers(-30, 30, shape)
        for shape in ((4, 8), (3, 8), (4, 3))
    )
    got = mma_double(*(one.view(np.uint64) for one in (a, b, c)), rounding)
    turned = mma_double(
        *(one.view(np.uint64) for one in (a[:, ::-1].copy(), b[:, ::-1].copy(), c)), rounding
    )
    for row, column in np.ndindex(4, 3):
        total = float(c[row, column])
        for left, right in zip(a[row].tolist(), b[column].tolist(), strict=True):
            bits = fma_f64(left, right, total, rounding)
            total = float(np.uint64(bits).view(np.float64))
        assert got.view(np.float64)[row, column] == total
    assert (got != turned).any()

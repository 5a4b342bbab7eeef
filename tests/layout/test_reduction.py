"""Edges by hand; the bits of every operation and type are in tests/silicon/layout."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.errors import MachineFault
from hopsim.layout.reduction import LEGAL_TYPES, combine
from hopsim.layout.tensormap_types import TensorDataType

T = TensorDataType


def once(op: str, data_type: TensorDataType, old: int, new: int) -> int:
    raw = np.dtype(f"u{data_type.itemsize}")
    return int(combine(op, data_type, np.array([old], raw), np.array([new], raw))[0])


@pytest.mark.parametrize(
    ("op", "data_type", "old", "new", "expected"),
    [
        ("inc", T.UINT32, 4, 5, 5),
        ("inc", T.UINT32, 5, 5, 0),
        ("dec", T.UINT32, 0, 9, 9),
        ("dec", T.UINT32, 10, 9, 9),
        ("dec", T.UINT32, 9, 9, 8),
        ("add", T.INT32, 0x7FFFFFFF, 1, 0x80000000),
        ("min", T.INT32, 0xFFFFFFFF, 1, 0xFFFFFFFF),
        ("min", T.UINT32, 0xFFFFFFFF, 1, 1),
        ("max", T.INT64, 1 << 63, 0, 0),
        ("xor", T.UINT64, 0xF0, 0xFF, 0x0F),
        ("min", T.FLOAT16, 0x0000, 0x8000, 0x8000),
        ("max", T.BFLOAT16, 0x8000, 0x0000, 0x0000),
        ("max", T.FLOAT16, 0x7E00, 0xFBFF, 0xFBFF),
        ("max", T.BFLOAT16, 0x7FC0, 0x7F81, 0x7FFF),
        ("add", T.FLOAT16, 0x7BFF, 0x5000, 0x7C00),
        ("add", T.FLOAT16, 0x0001, 0x0001, 0x0002),
        ("add", T.BFLOAT16, 0x3F80, 0x3B80, 0x3F80),
        ("add", T.FLOAT32, 1, 1, 2),
        ("add", T.FLOAT32_FTZ, 1, 1, 0),
        ("add", T.FLOAT32_FTZ, 0x80000001, 0x80000000, 0x80000000),
        ("add", T.FLOAT32, 0x7F800000, 0xFF800000, 0x7FFFFFFF),
        ("add", T.FLOAT64, 0x7FF0000000000000, 0xFFF0000000000000, 0xFFF8000000000000),
    ],
)
def test_edges(op: str, data_type: TensorDataType, old: int, new: int, expected: int) -> None:
    assert once(op, data_type, old, new) == expected


def bf16_value(bits: int) -> Fraction:
    sign = -1 if bits >> 15 else 1
    exponent, fraction = bits >> 7 & 0xFF, bits & 0x7F
    if exponent == 0:
        return sign * Fraction(fraction) * Fraction(2) ** (1 - 127 - 7)
    return sign * Fraction(128 + fraction) * Fraction(2) ** (exponent - 127 - 7)


@settings(deadline=None)
@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_bf16_add_is_correctly_rounded(old: int, new: int) -> None:
    exponent = 0x7F80
    if old & exponent == exponent or new & exponent == exponent:
        return
    exact = bf16_value(old) + bf16_value(new)
    got = once("add", T.BFLOAT16, old, new)
    if got & 0x7FFF == exponent:
        assert abs(exact) >= (Fraction(511, 2) * Fraction(2) ** (254 - 127 - 7))
        return
    below, above = max((got & 0x7FFF) - 1, 0), min((got & 0x7FFF) + 1, 0x7F7F)
    error = abs(abs(exact) - bf16_value(got & 0x7FFF))
    for other in (below, above):
        distance = abs(abs(exact) - bf16_value(other))
        assert error <= distance
        if error == distance and other != got & 0x7FFF:
            assert got & 1 == 0


def test_what_is_illegal_says_what_is_legal() -> None:
    with pytest.raises(
        MachineFault, match=r"add is illegal for a tensor map of uint8, expected one"
    ):
        once("add", T.UINT8, 1, 1)
    with pytest.raises(MachineFault, match="none, no such operation"):
        once("mul", T.UINT32, 1, 1)
    assert LEGAL_TYPES["inc"] == {T.UINT32}

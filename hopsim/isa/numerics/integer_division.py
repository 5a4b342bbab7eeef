"""Quotients and remainders of integers on raw bits; factories as in `hopsim.isa.numerics.integer`.

    >>> make_div(32, signed=True)(0xFFFFFFF9, 2) == 0xFFFFFFFD  # -7 / 2 = -3
    True

Source: PTX ISA 8.7 "div", "rem".
"""

from __future__ import annotations

import numpy as np

from hopsim.isa.numerics.integer import Binary, full_array, magnitude, signed_int
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Value


def _divide_ints(a: int, b: int) -> tuple[int, int]:
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        quotient = -quotient
    return quotient, a - quotient * b


def _divide_arrays(a: Array, b: Array, signed: bool) -> tuple[Array, Array]:
    """Truncated quotient and remainder of raw bits where b is not 0 (elsewhere: divided by 1)."""
    safe = np.where(b == 0, np.ones_like(b), b)
    if not signed:
        return a // safe, a % safe
    left, right = magnitude(a), magnitude(safe)
    quotient, remainder = left // right, left % right
    top = 8 * a.itemsize - 1
    negative = (a ^ safe) >> top != 0
    quotient = np.where(negative, np.negative(quotient), quotient)
    return quotient, np.where(a >> top != 0, np.negative(remainder), remainder)


def make_div(width: int, signed: bool) -> Binary:
    """`div`: truncates toward zero; the smallest number over -1 wraps to itself.

    A zero divisor gives all ones (PTX ISA 8.7 "div": machine-specific; recorded on an H100, every width).
    """
    mask = (1 << width) - 1
    sign = 1 << (width - 1 if signed else width)

    def div(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                return mask
            if a < sign and b < sign:  # neither is negative
                return a // b
            return _divide_ints(signed_int(a, width), signed_int(b, width))[0] & mask
        left, right = full_array(a, width), full_array(b, width)
        return np.where(
            right == 0, DTYPES[width].type(mask), _divide_arrays(left, right, signed)[0]
        )

    return div


def make_rem(width: int, signed: bool) -> Binary:
    """`rem`: the remainder takes the sign of the dividend.

    A zero divisor gives all ones (PTX ISA 8.7 "rem": machine-specific; recorded on an H100, every width).
    """
    mask = (1 << width) - 1
    sign = 1 << (width - 1 if signed else width)

    def rem(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                return mask
            if a < sign and b < sign:  # neither is negative
                return a % b
            return _divide_ints(signed_int(a, width), signed_int(b, width))[1] & mask
        left, right = full_array(a, width), full_array(b, width)
        return np.where(
            right == 0, DTYPES[width].type(mask), _divide_arrays(left, right, signed)[1]
        )

    return rem

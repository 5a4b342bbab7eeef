"""Products of integers on raw bits: mul, mad, mul24, mad24, dp4a, dp2a; factories as in `hopsim.isa.numerics.integer`.

    >>> make_mul_hi(32, signed=True)(0xFFFFFFFF, 2) == 0xFFFFFFFF  # the high half of -2
    True

Source: PTX ISA 8.7 "mul", "mad", "mul24", "mad24", "dp4a", "dp2a".
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hopsim.isa.numerics.integer import (
    SIGNED_DTYPES,
    Binary,
    Ternary,
    full_array,
    make_add_sat,
    signed_int,
)
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Value


def make_mul_lo(width: int) -> Binary:
    """`mul.lo`: the low half of the product (the same for signed and unsigned)."""
    mask = (1 << width) - 1

    def mul_lo(a: Value, b: Value) -> Value:
        product = a * b
        return product & mask if isinstance(product, int) else product

    return mul_lo


def _multiply_high_u64(a: Array, b: Array) -> Array:
    """High 64 bits of the unsigned 128-bit product, from four 32-bit partial products."""
    low32 = 0xFFFFFFFF
    a0, a1, b0, b1 = a & low32, a >> 32, b & low32, b >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)  # at most (2**32-1)**2 + 2**32-1 < 2**64
    other = a0 * b1 + (middle & low32)
    return a1 * b1 + (middle >> 32) + (other >> 32)


def multiply_high(a: Array, b: Array, width: int, signed: bool) -> Array:
    """The high half of the product of two arrays of raw bits."""
    if width < 64:
        wide = _multiply_wide(a, b, width, signed)
        return (wide >> width).astype(DTYPES[width])
    high = _multiply_high_u64(a, b)
    if signed:
        # a_signed = a - 2**64 [a < 0], so the high half loses b where a < 0, and a where b < 0.
        high = high - np.where(a >> 63 != 0, b, 0) - np.where(b >> 63 != 0, a, 0)
    return high


def _multiply_wide(a: Array, b: Array, width: int, signed: bool) -> Array:
    if signed:
        wide = SIGNED_DTYPES[2 * width]
        narrow = SIGNED_DTYPES[width]
        return (a.view(narrow).astype(wide) * b.view(narrow).astype(wide)).view(DTYPES[2 * width])
    return a.astype(DTYPES[2 * width]) * b.astype(DTYPES[2 * width])


def make_mul_hi(width: int, signed: bool) -> Binary:
    """`mul.hi`: the high half of the double-width product."""
    mask = (1 << width) - 1

    def mul_hi(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            if signed:
                return (signed_int(a, width) * signed_int(b, width) >> width) & mask
            return a * b >> width
        return multiply_high(full_array(a, width), full_array(b, width), width, signed)

    return mul_hi


def make_mul_wide(width: int, signed: bool) -> Binary:
    """`mul.wide`: the whole product, twice as wide as its operands (16 or 32 bits)."""
    if width not in (16, 32):
        raise ValueError(f"mul.wide takes 16- or 32-bit operands, got {width}")
    sign = 1 << (width - 1)
    mask = (1 << 2 * width) - 1

    def mul_wide(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            return ((a ^ sign) - sign) * ((b ^ sign) - sign) & mask if signed else a * b
        return _multiply_wide(full_array(a, width), full_array(b, width), width, signed)

    return mul_wide


def _make_mad(multiply: Binary, result_width: int) -> Ternary:
    mask = (1 << result_width) - 1

    def mad(a: Value, b: Value, c: Value) -> Value:
        total = multiply(a, b) + c
        return total & mask if isinstance(total, int) else total

    return mad


def make_mad_hi(width: int, signed: bool) -> Ternary:
    """`mad.hi`: high half of a * b, plus c, wrapping."""
    return _make_mad(make_mul_hi(width, signed), width)


def make_mad_hi_sat() -> Ternary:
    """`mad.hi.sat.s32`: the sum clamps to the signed range."""
    multiply, add = make_mul_hi(32, signed=True), make_add_sat(32)
    return lambda a, b, c: add(multiply(a, b), c)


def make_mul24(half: Literal["lo", "hi"], signed: bool) -> Binary:
    """`mul24`: bits 31 to 0 or 47 to 16 of the product of the low 24 bits of each operand (an H200 gives the same)."""

    def low(value: Value) -> Value:
        if isinstance(value, int):
            bits = value & 0xFFFFFF
            return bits - (bits >> 23 << 24) if signed else bits
        bits = value.astype(np.int64) & 0xFFFFFF
        return bits - (bits >> 23 << 24) if signed else bits

    def mul24(a: Value, b: Value) -> Value:
        product = low(a) * low(b)
        if half == "hi":
            product = product >> 16
        if isinstance(product, int):
            return product & 0xFFFFFFFF
        return product.astype(np.uint32)

    return mul24


def make_mad24(half: Literal["lo", "hi"], signed: bool) -> Ternary:
    """`mad24`: `mul24` plus a 32-bit addend, wrapping."""
    return _make_mad(make_mul24(half, signed), 32)


def make_mad24_hi_sat() -> Ternary:
    """`mad24.hi.sat.s32`."""
    multiply, add = make_mul24("hi", signed=True), make_add_sat(32)
    return lambda a, b, c: add(multiply(a, b), c)


def make_dp4a(a_signed: bool, b_signed: bool) -> Ternary:
    """`dp4a`: c + the dot product of four bytes, wrapping at 32 bits."""

    def dp4a(a: Value, b: Value, c: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int) and isinstance(c, int):
            total = c
            for shift in (0, 8, 16, 24):
                left, right = a >> shift & 0xFF, b >> shift & 0xFF
                left = (left ^ 0x80) - 0x80 if a_signed else left
                right = (right ^ 0x80) - 0x80 if b_signed else right
                total += left * right
            return total & 0xFFFFFFFF
        products = _parts(a, 8, a_signed) * _parts(b, 8, b_signed)
        return products.sum(axis=1, dtype=np.int32).view(np.uint32) + c

    return dp4a


def make_dp2a(a_signed: bool, b_signed: bool, half: Literal["lo", "hi"]) -> Ternary:
    """`dp2a`: c + two 16-bit parts of a times the low or high two bytes of b, wrapping at 32 bits."""
    first = 0 if half == "lo" else 2

    def dp2a(a: Value, b: Value, c: Value) -> Value:
        left = _parts(a, 16, a_signed)
        right = _parts(b, 8, b_signed)[:, first : first + 2]
        total = (left * right).sum(axis=1, dtype=np.int32).view(np.uint32)
        if isinstance(a, int) and isinstance(b, int) and isinstance(c, int):
            return int(total[0]) + c & 0xFFFFFFFF
        return total + c

    return dp2a


def _parts(value: Value, part_bits: int, signed: bool) -> Array:
    """Split 32-bit words into numbers of `part_bits`, int32 array (lanes, 32 / part_bits)."""
    dtype = SIGNED_DTYPES[part_bits] if signed else DTYPES[part_bits]
    words = np.ascontiguousarray(full_array(value, 32))
    return words.view(dtype).reshape(len(words), -1).astype(np.int32)

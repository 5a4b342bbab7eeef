"""Floating-point minimum and maximum, sign bits, comparisons and tests of PTX on raw bits.

    >>> make_max("f32")(0x7FC00000, 0xBF800000) == 0xBF800000  # max(NaN, -1.0)
    True
    >>> make_compare("ltu", "f32")(0x7FC00000, 0)
    True

Source: PTX ISA 8.7 "Floating Point Instructions" (min, max, neg, abs, copysign, testp), "Floating Point
Comparisons".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import numpy as np

from hopsim.isa.numerics.floating import Binary, Unary, element, finish
from hopsim.isa.numerics.rounding import flush_subnormal, lift, some, to_float64
from hopsim.isa.values import Array, Predicate, Value

FloatComparison = Literal[
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"
]  # fmt: skip
FloatProperty = Literal["finite", "infinite", "number", "notanumber", "normal", "subnormal"]


def _order_key(words: Array, width: int) -> Array:
    """Map bits to unsigned integers in the order of the numbers, -0 just below +0; its own inverse is below."""
    sign = np.array(1 << (width - 1), words.dtype)
    return np.where(words & sign != 0, ~words, words | sign)


def _from_order_key(keys: Array, width: int) -> Array:
    sign = np.array(1 << (width - 1), keys.dtype)
    return np.where(keys & sign != 0, keys ^ sign, ~keys)


def _make_extreme(
    type_name: str, largest: bool, ftz: bool, propagate_nan: bool, xorsign_abs: bool
) -> Binary:
    fmt, _ = element(type_name)
    width, magnitude_mask = fmt.width_bits, fmt.sign_bit - 1
    choose = np.maximum if largest else np.minimum

    def kernel(a: Array, b: Array) -> Array:
        if width == 32 and not xorsign_abs:
            result = choose(a.view(np.float32), b.view(np.float32))
            # numpy has it right but for a NaN and for zeros of different signs.
            if not some(np.isnan(result)) and not some((a | b) & magnitude_mask == 0):
                return result.view(np.uint32)
        sign = (a ^ b) & fmt.sign_bit if xorsign_abs else None
        if xorsign_abs:
            a, b = a & magnitude_mask, b & magnitude_mask
        result = _from_order_key(choose(_order_key(a, width), _order_key(b, width)), width)
        a_nan, b_nan = a & magnitude_mask > fmt.infinity, b & magnitude_mask > fmt.infinity
        if some(a_nan) or some(b_nan):
            a_nan, b_nan = np.broadcast_arrays(a_nan, b_nan)
            result = np.where(a_nan, b, np.where(b_nan, a, result))
        if sign is not None:
            result = result | sign
        if some(a_nan) or some(b_nan):
            nan = (a_nan | b_nan) if propagate_nan else (a_nan & b_nan)
            if width == 64:  # both are NaN: b, made quiet
                result[nan] = np.broadcast_to(b, result.shape)[nan] | (1 << 51)
            else:
                result[nan] = fmt.canonical_nan
        return result

    return finish(kernel, type_name, ftz)


def make_min(
    type_name: str, *, ftz: bool = False, propagate_nan: bool = False, xorsign_abs: bool = False
) -> Binary:
    """`min{.ftz}{.NaN}{.xorsign.abs}`: the number where one operand is NaN, unless `.NaN`; -0 < +0."""
    return _make_extreme(type_name, False, ftz, propagate_nan, xorsign_abs)


def make_max(
    type_name: str, *, ftz: bool = False, propagate_nan: bool = False, xorsign_abs: bool = False
) -> Binary:
    """`max{.ftz}{.NaN}{.xorsign.abs}`: the number where one operand is NaN, unless `.NaN`; -0 < +0."""
    return _make_extreme(type_name, True, ftz, propagate_nan, xorsign_abs)


def _sign_mask(type_name: str) -> int:
    fmt, parts = element(type_name)
    return fmt.sign_bit if parts == 1 else fmt.sign_bit << fmt.width_bits | fmt.sign_bit


def _make_sign_change(type_name: str, ftz: bool, change: Callable[[Array], Array]) -> Unary:
    """Change signs of numbers; a NaN becomes the canonical NaN, in f64 it is made quiet.

    Source: recorded on an H100, tests/silicon/probes (PTX ISA 8.7 leaves NaN open).
    """
    fmt, _ = element(type_name)
    magnitude, infinity = fmt.sign_bit - 1, fmt.infinity

    def kernel(words: Array) -> Array:
        nan = words & magnitude > infinity
        result = change(words)
        if some(nan):
            result[nan] = words[nan] | (1 << 51) if fmt.name == "f64" else fmt.canonical_nan
        return result

    return finish(kernel, type_name, ftz)


def make_neg(type_name: str, *, ftz: bool = False) -> Unary:
    """`neg{.ftz}`."""
    sign = element(type_name)[0].sign_bit

    def flip(words: Array) -> Array:
        return words ^ sign

    return _make_sign_change(type_name, ftz, flip)


def make_abs(type_name: str, *, ftz: bool = False) -> Unary:
    """`abs{.ftz}`."""
    keep = element(type_name)[0].sign_bit - 1

    def clear(words: Array) -> Array:
        return words & keep

    return _make_sign_change(type_name, ftz, clear)


def make_copysign(type_name: str) -> Binary:
    """`copysign d, a, b`: the magnitude of b with the sign of a."""
    sign = _sign_mask(type_name)
    return lambda a, b: a & sign | b & (sign - 1)


_Test: TypeAlias = Callable[[Array, Array], Array]
_COMPARISONS: Final[dict[str, _Test]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: (x < y) | (x > y),
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "equ": lambda x, y: ~((x < y) | (x > y)),
    "neu": lambda x, y: x != y,
    "ltu": lambda x, y: ~(x >= y),
    "leu": lambda x, y: ~(x > y),
    "gtu": lambda x, y: ~(x <= y),
    "geu": lambda x, y: ~(x < y),
    "num": lambda x, y: (x == x) & (y == y),
    "nan": lambda x, y: (x != x) | (y != y),
}


def make_compare(
    comparison: FloatComparison, type_name: str, *, ftz: bool = False
) -> Callable[[Value, Value], Predicate]:
    """One comparison of `setp` on f16, bf16, f32 or f64; the forms with `u` hold where an operand is NaN."""
    fmt, parts = element(type_name)
    if parts != 1:
        raise ValueError(f"compare the halves of {type_name} one by one")
    test = _COMPARISONS[comparison]

    def kernel(a: Array, b: Array) -> Array:
        if ftz:
            a, b = flush_subnormal(a, fmt), flush_subnormal(b, fmt)
        if fmt.name == "f32":
            return test(a.view(np.float32), b.view(np.float32))
        return test(to_float64(a, fmt), to_float64(b, fmt))

    return lift(kernel, fmt.width_bits)


def make_testp(prop: FloatProperty, type_name: str) -> Callable[[Value], Predicate]:
    """`testp`: zeros count as normal."""
    fmt, _ = element(type_name)
    infinity, hidden = fmt.infinity, 1 << (fmt.fraction_bits + fmt.dropped_bits)
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": lambda m: m < infinity,
        "infinite": lambda m: m == infinity,
        "number": lambda m: m <= infinity,
        "notanumber": lambda m: m > infinity,
        "normal": lambda m: (m < infinity) & ((m >= hidden) | (m == 0)),
        "subnormal": lambda m: (m < hidden) & (m != 0),
    }
    test = tests[prop]

    def kernel(a: Array) -> Array:
        return test(a & (fmt.sign_bit - 1))

    return lift(kernel, fmt.width_bits)

"""The `.approx` and `.full` functions of PTX, as ptxas builds them from the multi-function unit (`mufu`).

All give the hardware's own bits.

    >>> hex(make_approximate("ex2", "f32", ftz=True)(0x40400000))  # 2**3
    '0x41000000'

Source: PTX ISA 8.7 "Floating Point Instructions", "Half Precision Floating Point Instructions"; how ptxas 13.0 scales
operands and results; recorded on an H100, tests/silicon/probes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from hopsim.isa.numerics import mufu
from hopsim.isa.numerics.floating import (
    Binary,
    Unary,
    element,
    finish,
    make_add,
    make_fma,
    make_mul,
)
from hopsim.isa.numerics.formats import FloatFormat
from hopsim.isa.numerics.rounding import Float64Array, flush_subnormal, round_float64, to_float64
from hopsim.isa.values import Array

Function = Literal["ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"]
_OnFloat64 = Callable[[Float64Array], Float64Array]

_UPPER_WORD: Final = np.uint64(0xFFFFFFFF00000000)


def _ex2_with_subnormals(x: Float64Array) -> Float64Array:
    """2**x where results may be subnormal: the square of 2**(x / 2)."""
    root = mufu.ex2(x * 0.5)
    return np.where(x < -126, root * root, mufu.ex2(x))


def _lg2_with_subnormals(x: Float64Array) -> Float64Array:
    """The logarithm where x may be subnormal: of 2**24 x, less 24."""
    return np.where(x < 2.0**-126, mufu.lg2(x * 2.0**24) - 24.0, mufu.lg2(x))


_FLUSHING: Final[dict[str, _OnFloat64]] = {
    "ex2": mufu.ex2,
    "lg2": mufu.lg2,
    "rcp": mufu.rcp,
    "rsqrt": mufu.rsqrt,
    "sqrt": mufu.sqrt,
    "sin": mufu.sin,
    "cos": mufu.cos,
    "tanh": mufu.tanh,
}
_KEEPING: Final = _FLUSHING | {"ex2": _ex2_with_subnormals, "lg2": _lg2_with_subnormals}


def make_approximate(function: Function, type_name: str, *, ftz: bool = False) -> Unary:
    """`{ex2,lg2,rcp,rsqrt,sqrt,sin,cos,tanh}.approx{.ftz}` on f32; ex2 and tanh on halves; rcp and rsqrt on f64."""
    fmt, _ = element(type_name)
    if type_name == "f64":
        return _upper_word(function, fmt)
    if type_name == "f32":
        compute = (_FLUSHING if ftz else _KEEPING)[function]

        def kernel(a: Array) -> Array:
            return round_float64(compute(to_float64(a, fmt)), fmt)

        return finish(kernel, type_name, ftz)
    if function == "tanh":

        def from_table(a: Array) -> Array:
            return mufu.tanh_half(a, fmt)

        return finish(from_table, type_name, ftz)

    def truncated(a: Array) -> Array:
        result = mufu.ex2(to_float64(a, fmt))
        beyond = result >= 2.0 ** (fmt.bias + 1)
        return round_float64(np.where(beyond, np.inf, result), fmt, "rz")

    return finish(truncated, type_name, ftz)


def _upper_word(function: Function, fmt: FloatFormat) -> Unary:
    """`{rcp,rsqrt}.approx.ftz.f64`: of the upper 32 bits of the operand; the low 32 bits of the result are zero."""
    compute = _FLUSHING[function]

    def kernel(a: Array) -> Array:
        word = flush_subnormal(a, fmt) & _UPPER_WORD
        result = compute(word.view(np.float64)).view(np.uint64)
        result = np.where(np.isnan(result.view(np.float64)), np.uint64(fmt.sign_bit - 1), result)
        return flush_subnormal(result, fmt) & _UPPER_WORD

    return finish(kernel, "f64", ftz=False)


def make_rsqrt_f64() -> Unary:
    """`rsqrt.approx.f64`: one step of third order behind the approximation of the upper word.

    Subnormals are scaled by 2**54 first.
    Source: the instructions of ptxas for sm_90 (MUFU.RSQ64H, DMUL, DFMA); recorded bits in tests/silicon/probes.
    """
    fmt, _ = element("f64")
    estimate = _upper_word("rsqrt", fmt)
    add, multiply, fma = make_add("f64"), make_mul("f64"), make_fma("f64")

    def constant(value: float, like: Array) -> Array:
        return np.full_like(like, np.float64(value).view(np.uint64))

    def kernel(a: Array) -> Array:
        value = a.view(np.float64)
        is_subnormal = (value > 0) & (value < 2.0**-1022)
        is_plain = (value > 0) & (value < np.inf)
        # Lanes that take no step are given 1: no product of theirs overflows.
        x = np.where(is_plain, a, constant(1.0, a))
        x = np.where(is_subnormal, multiply(x, constant(2.0**54, a)), x)
        y = estimate(x)
        square = np.bitwise_xor(multiply(y, y), np.uint64(fmt.sign_bit))
        error = fma(x, square, constant(1.0, a))
        slope = fma(error, constant(0.375, a), constant(0.5, a))
        root = fma(slope, multiply(y, error), y)
        root = np.where(is_subnormal, multiply(root, constant(2.0**27, a)), root)
        special = np.where(value < 0, constant(-np.nan, a), constant(0.0, a))
        special = np.where(value == 0, constant(np.inf, a) | a, special)
        special = np.where(np.isnan(value), add(a, a), special)
        return np.where(is_plain, root, special)

    return finish(kernel, "f64", ftz=False)


def make_divide(*, ftz: bool = False, full: bool = False) -> Binary:
    """`div.{approx,full}{.ftz}.f32`: a times the reciprocal of b.

    `.approx` multiplies by a reciprocal that is 0 for 2**126 < |b| < 2**128: there the result is a zero, or NaN for an
    infinite a; that zero has the sign of a * b.  `.full` scales b first.
    """
    fmt, _ = element("f32")

    def kernel(a: Array, b: Array) -> Array:
        x, y = to_float64(a, fmt), to_float64(b, fmt)
        inverse = mufu.rcp(y)
        if not full:
            inverse = np.where(np.abs(inverse) < 2.0**-126, np.copysign(0.0, inverse), inverse)
        return round_float64(x * inverse, fmt)

    return finish(kernel, "f32", ftz)

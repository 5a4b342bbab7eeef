"""The `.approx` and `.full` functions of PTX, as the correctly rounded value: our best estimate of their bits.

Guess: PTX states only error bounds, and the hardware's tables are not public.  `DISTANCE` says how far the
hardware was found from these values.

    >>> hex(make_approximate("ex2", "f32", ftz=True)(0x40400000))  # 2**3
    '0x41000000'

Source: PTX ISA 8.7 "Floating Point Instructions", "Half Precision Floating Point Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from hopsim.isa.numerics.floating import Binary, Unary, element, finish
from hopsim.isa.numerics.rounding import Float64Array, flush_subnormal, round_float64, to_float64
from hopsim.isa.values import Array

Function = Literal["ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"]

# Largest distance from the exact value, f32.  Source: measured on H200 (ptxas 13.0), 65,536 inputs each: ex2 on
# [-100, 100], lg2, rcp, rsqrt, sqrt on [0.25, 4], sin and cos on [-6.28, 6.28], tanh on a normal distribution
# of width 2; div on 2,048 pairs.
DISTANCE: Final[dict[str, str]] = {
    "ex2": "2 units in the last place",
    "lg2": "absolute 2**-21.8",
    "rcp": "1 unit in the last place",
    "rsqrt": "1 unit in the last place",
    "sqrt": "1 unit in the last place",
    "sin": "absolute 2**-20.5",
    "cos": "absolute 2**-20.4",
    "tanh": "relative 2**-16.5",
    "div": "2 units in the last place",
}


def _reciprocal(x: Float64Array) -> Float64Array:
    return 1.0 / x


def _reciprocal_root(x: Float64Array) -> Float64Array:
    return 1.0 / np.sqrt(x)


_FUNCTIONS: Final[dict[str, Callable[[Float64Array], Float64Array]]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": _reciprocal,
    "rsqrt": _reciprocal_root,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}


def make_approximate(function: Function, type_name: str, *, ftz: bool = False) -> Unary:
    """`{ex2,lg2,rcp,rsqrt,sqrt,sin,cos,tanh}.approx{.ftz}` on f32, f16, bf16 and their pairs.

    On f64 (`rcp`, `rsqrt`) the low 32 bits of the result are zero.
    """
    fmt, _ = element(type_name)
    compute = _FUNCTIONS[function]
    if type_name == "f64":

        def kernel64(a: Array) -> Array:
            result = compute(flush_subnormal(a, fmt).view(np.float64)).view(np.uint64)
            result = np.where(
                np.isnan(result.view(np.float64)), np.uint64(fmt.sign_bit - 1), result
            )
            return flush_subnormal(result, fmt) & np.uint64(0xFFFFFFFF00000000)

        return finish(kernel64, type_name, ftz=False)

    def kernel(a: Array) -> Array:
        return round_float64(compute(to_float64(a, fmt)), fmt)

    return finish(kernel, type_name, ftz)


def make_divide(*, ftz: bool = False, full: bool = False) -> Binary:
    """`div.{approx,full}{.ftz}.f32`: a times the reciprocal of b rounded to 24 bits.

    94 of 100 results are the hardware's (measured on H200); a / b rounded once gives 75 of 100.
    `.approx` multiplies by a reciprocal that is 0 for 2**126 < |b| < 2**128: there the result is a zero, or NaN
    for an infinite a; that zero has the sign of a * b (measured on H200).
    """
    fmt, _ = element("f32")

    def kernel(a: Array, b: Array) -> Array:
        x, y = to_float64(a, fmt), to_float64(b, fmt)
        inverse = 1.0 / y
        split = inverse * 536870913.0  # 2**29 + 1 (Veltkamp): the upper part has 24 bits
        rounded = split - (split - inverse)
        quotient = np.where(np.isfinite(inverse) & (x != 0), x * rounded, x / y)
        if not full:
            vanishing = (np.abs(y) > 2.0**126) & (np.abs(y) < 2.0**128)
            if vanishing.any():
                quotient = np.where(vanishing, x * np.copysign(0.0, y), quotient)
        return round_float64(quotient, fmt)

    return finish(kernel, "f32", ftz)

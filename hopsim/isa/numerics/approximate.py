"""The `.approx` and `.full` functions of PTX, as the correctly rounded value: our best estimate of their bits.

Guess: PTX states only error bounds; the tables of the hardware are not public.  A correctly rounded value is
within each bound, and differs from the hardware's by a few last places at most, save `tanh`, whose bound
is wide.  `BOUNDS` holds what PTX promises.

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

# Largest error that PTX states for f32: "relative", or "absolute" within the range named.
BOUNDS: Final[dict[str, str]] = {
    "ex2": "relative 2**-22.5",
    "lg2": "absolute 2**-22 for inputs in (0.5, 2), else relative 2**-22",
    "rcp": "1 unit in the last place",
    "rsqrt": "relative 2**-22.9",
    "sqrt": "relative 2**-23",
    "sin": "absolute 2**-20.5 for inputs in [-2 pi, 2 pi]",
    "cos": "absolute 2**-20.5 for inputs in [-2 pi, 2 pi]",
    "tanh": "relative 2**-11",
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
                np.isnan(result.view(np.float64)), np.uint64(fmt.canonical_nan), result
            )
            return flush_subnormal(result, fmt) & np.uint64(0xFFFFFFFF00000000)

        return finish(kernel64, type_name, ftz=False)

    def kernel(a: Array) -> Array:
        return round_float64(compute(to_float64(a, fmt)), fmt)

    return finish(kernel, type_name, ftz)


def make_divide(*, ftz: bool = False, full: bool = False) -> Binary:
    """`div.{approx,full}{.ftz}.f32`.

    `.approx` multiplies by a reciprocal that is 0 for 2**126 < |b| < 2**128: there the result is a zero, or NaN
    for an infinite a.  Guess: that zero has the sign of a * b.
    """
    fmt, _ = element("f32")

    def kernel(a: Array, b: Array) -> Array:
        x, y = to_float64(a, fmt), to_float64(b, fmt)
        quotient = x / y
        if not full:
            vanishing = (np.abs(y) > 2.0**126) & (np.abs(y) < 2.0**128)
            if vanishing.any():
                quotient = np.where(vanishing, x * np.copysign(0.0, y), quotient)
        return round_float64(quotient, fmt)

    return finish(kernel, "f32", ftz)

"""The multi-function unit's own bits: ex2, lg2, rcp, rsqrt, sqrt, sin, cos and tanh of f32, and tanh of halves.

The unit interpolates in tables that NVIDIA does not publish.  What it looks up is short: the mantissa, or a fixed-point
argument.  An H100's answers for every value of it, at most 2**24 of them, tell the whole function; they are kept packed,
some 1.6 MB in all.  Exponents, signs and quadrants follow rules that were found on one sample of answers and hold on
others.

    >>> float(rcp(np.array([3.0]))[0]) * 2**25  # 1 / 3 correctly rounded is 11184811
    11184811.0

Source: `recorded/*.npz`, made on an H100 SXM by `hopsim record --part tables`; tests/silicon/probes for the rules.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.formats import FloatFormat
from hopsim.isa.numerics.rounding import Float64Array
from hopsim.isa.values import Array

Integers = NDArray[np.int64]

MANTISSAS: Final = 1 << 23
_FRACTION: Final = MANTISSAS - 1
_DROPPED: Final = (1 << 29) - 1
"""Low bits of a float64 that a float32 does not have."""
_TURN: Final = float(np.array(0x3E22F983, np.uint32).view(np.float32))
"""1 / (2 pi) in f32, by which ptxas multiplies angles."""
_TANH_STRIDES: Final = (16, 16, 16, 16, 16, 16, 16, 16, 8, 4, 8)
"""Inputs of one answer of tanh, by exponent from -8 to 2: the low bits of the mantissa are not looked at."""
_TANH_FIRST: Final = -8
_NEIGHBOURS: Final = {
    "ex2": (1.0, 1),
    "rcp": (1.0, 1),
    "rsqrt": (1.0, 2),
    "sqrt": (1.0, 2),
    "lg2": (0.5, 2),
}
"""First input, and how many times 2**23 floats from there on."""
FUNCTIONS: Final = (*_NEIGHBOURS, "sin", "tanh")


def inputs(function: str) -> NDArray[np.float32]:
    """Return the f32 inputs whose answers are kept, in order."""
    if function == "sin":
        turns = (np.arange(MANTISSAS) + 0.5) * 2.0**-25
        return (turns / _TURN).astype(np.float32)
    if function == "tanh":
        pieces = [
            np.arange(0, MANTISSAS, stride) + ((127 + _TANH_FIRST + position) << 23)
            for position, stride in enumerate(_TANH_STRIDES)
        ]
        return np.concatenate(pieces).astype(np.uint32).view(np.float32)
    first, times = _NEIGHBOURS[function]
    start = np.array(first, np.float32).view(np.uint32)
    return (start + np.arange(times * MANTISSAS, dtype=np.uint32)).view(np.float32)


def pack(answers: NDArray[np.uint32]) -> dict[str, NDArray[np.generic]]:
    """Return the second differences of neighbouring answers: small, because the functions are smooth."""
    bent = np.diff(answers.astype(np.int64), n=2)
    far = np.flatnonzero(np.abs(bent) > 127)
    steps = bent.copy()
    steps[far] = 0
    return {
        "first": answers[:2].astype(np.int64),
        "steps": steps.astype(np.int8),
        "places": far.astype(np.int32),
        "jumps": bent[far],
    }


def unpack(packed: dict[str, NDArray[np.generic]]) -> NDArray[np.uint32]:
    """Return what `pack` packed."""
    first = packed["first"].astype(np.int64)
    answers = np.empty(len(packed["steps"]) + 2, np.int64)
    answers[0], answers[1] = first[0], first[1] - first[0]
    answers[2:] = packed["steps"]
    answers[packed["places"].astype(np.int64) + 2] = packed["jumps"]
    np.cumsum(answers[1:], out=answers[1:])
    return np.cumsum(answers, out=answers).astype(np.uint32)


@cache
def answers(function: str) -> NDArray[np.float32]:
    """Return what the unit gives for `inputs(function)`; decoding takes a quarter of a second, once."""
    return unpack(_recorded(function)).view(np.float32)


@cache
def _recorded(name: str) -> dict[str, NDArray[np.generic]]:
    source = resources.files("hopsim.isa.numerics") / "recorded" / f"{name}.npz"
    with resources.as_file(source) as path, np.load(path) as arrays:
        return dict(arrays)


def _looked_up(function: str, index: Integers) -> Float64Array:
    return answers(function)[index].astype(np.float64)


def _parts(x: Float64Array) -> tuple[Integers, Integers]:
    """Return (mantissa bits, exponent) of positive finite numbers of at most 24 significant bits."""
    mantissa, exponent = np.frexp(x)
    return ((mantissa * 2 - 1) * MANTISSAS).astype(np.int64), exponent.astype(np.int64) - 1


def _truncated(x: Float64Array) -> Float64Array:
    """Return x rounded towards zero to 24 bits."""
    return (x.view(np.int64) & ~_DROPPED).view(np.float64)


def ex2(x: Float64Array) -> Float64Array:
    """2**x; results below 2**-126 are 0."""
    known = np.abs(x) < 256
    size = np.abs(np.where(known, x, 0.0))
    # 23 bits of fraction, truncated; a negative fraction is complemented bit by bit.
    fixed = np.floor(size * MANTISSAS).astype(np.int64)
    whole = (fixed & _FRACTION) == 0
    fixed = np.where(x < 0, np.where(whole, -fixed, -1 - fixed), fixed)
    exponent = fixed >> 23
    result = np.ldexp(_looked_up("ex2", fixed & _FRACTION), exponent - 1)
    return np.where(known, np.where(exponent < -126, 0.0, result), np.exp2(x))


def lg2(x: Float64Array) -> Float64Array:
    """The logarithm to base 2, truncated to 24 bits."""
    known = np.isfinite(x) & (x > 0)
    index, exponent = _parts(np.where(known, x, 1.0))
    above = exponent + _looked_up("lg2", MANTISSAS + index)
    below = exponent + 1 + _looked_up("lg2", index)
    return np.where(known, _truncated(np.where(exponent >= 0, above, below)), np.log2(x))


def rcp(x: Float64Array) -> Float64Array:
    """1 / x."""
    known = np.isfinite(x) & (x != 0)
    index, exponent = _parts(np.where(known, np.abs(x), 1.0))
    result = np.ldexp(_looked_up("rcp", index), -exponent)
    return np.where(known, np.copysign(result, x), 1.0 / x)


def rsqrt(x: Float64Array) -> Float64Array:
    """1 over the square root."""
    known = np.isfinite(x) & (x > 0)
    return np.where(known, _root("rsqrt", np.where(known, x, 1.0), -1), 1.0 / np.sqrt(x))


def sqrt(x: Float64Array) -> Float64Array:
    """The square root."""
    known = np.isfinite(x) & (x > 0)
    return np.where(known, _root("sqrt", np.where(known, x, 1.0), 1), np.sqrt(x))


def _root(function: str, x: Float64Array, sign: int) -> Float64Array:
    """Return the answer for [1, 4), scaled by the half of the even part of the exponent."""
    index, exponent = _parts(x)
    odd = exponent & 1
    return np.ldexp(_looked_up(function, index + odd * MANTISSAS), sign * (exponent - odd >> 1))


def sin(x: Float64Array) -> Float64Array:
    """The sine of radians."""
    quadrant, rising, falling = _quarters(x)
    result = np.choose(quadrant, [rising, falling, -rising, -falling])
    return np.where(np.isfinite(x), np.where(np.signbit(x), -result, result), np.nan)


def cos(x: Float64Array) -> Float64Array:
    """The cosine of radians."""
    quadrant, rising, falling = _quarters(x)
    result = np.choose(quadrant, [falling, -rising, -falling, rising])
    return np.where(np.isfinite(x), result, np.nan)


def _quarters(x: Float64Array) -> tuple[Integers, Float64Array, Float64Array]:
    """Return the quadrant of |x|, and the sine of the angle in it and of what the angle lacks to a quarter turn.

    Turns have 25 bits of fraction, truncated; the lack of an angle is its complement bit by bit.
    """
    turns = _truncated(np.abs(np.where(np.isfinite(x), x, 0.0)) * _TURN)
    fixed = np.floor(np.mod(turns, 1.0) * 2.0**25).astype(np.int64)
    angle = fixed & _FRACTION
    falling = np.where(angle == 0, 1.0, _looked_up("sin", _FRACTION - angle))
    return fixed >> 23, _looked_up("sin", angle), falling


_TANH_SHIFTS: Final = np.array([stride.bit_length() - 1 for stride in _TANH_STRIDES])
_TANH_STARTS: Final = np.cumsum([0] + [MANTISSAS // stride for stride in _TANH_STRIDES[:-1]])


def tanh(x: Float64Array) -> Float64Array:
    """The hyperbolic tangent: x itself below 2**-8, 1 from 8 on."""
    size = np.abs(x)
    known = (size >= 2.0**_TANH_FIRST) & (size < 8)
    index, exponent = _parts(np.where(known, size, 1.0))
    piece = exponent - _TANH_FIRST
    place = _TANH_STARTS[piece] + (index >> _TANH_SHIFTS[piece])
    beyond = np.where(size >= 8, 1.0, size)
    return np.copysign(np.where(known, _looked_up("tanh", place), beyond), x)


def tanh_half(word: Array, fmt: FloatFormat) -> Array:
    """The hyperbolic tangent of f16 or bf16 words."""
    table: Array = _recorded("tanh_halves")[fmt.name]
    sign = word & fmt.sign_bit
    size = word ^ sign
    known = size < len(table)  # up to infinity; the rest are NaNs
    result = table[np.where(known, size, 0)] | sign
    return np.where(known, result, word.dtype.type(fmt.canonical_nan))

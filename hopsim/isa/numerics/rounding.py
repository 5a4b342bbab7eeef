"""Rounding: from exact or round-to-odd float64 to any narrower format, in any PTX rounding mode.

The pattern of every correctly rounded operation on f32, f16, bf16: compute in float64 with the sign of its
error, make the float64 *odd* (truncate, then set the last bit where bits were lost), round that once.
An odd number of 53 bits rounds to p <= 51 bits as the exact number would, in every mode.

    >>> hex(round_float64(np.array([1.0 + 2.0**-24 + 2.0**-52]), F32, "rn")[0])
    '0x3f800001'

Source: PTX ISA 8.7 "Floating Point Instructions" (modifiers .rn .rz .rm .rp); Boldo and Melquiond,
"Emulation of FMA and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd" (2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.formats import BF16, F32, F64, FloatFormat
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Value

Rounding = Literal["rn", "rz", "rm", "rp", "rna"]
Kernel: TypeAlias = Callable[..., Array]
Float64Array = NDArray[np.float64]

_NATIVE: Final[dict[str, np.dtype[Any]]] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


def lift(kernel: Kernel, width: int, parts: int = 1) -> Callable[..., Any]:
    """Make a function of registers from a kernel on arrays of words of `width` bits.

    Int operands become arrays of one element, which broadcast; all ints in, an int (or bool) out.
    With `parts` = 2 a register holds two words and the kernel sees them side by side.
    """
    register = DTYPES[width * parts]
    word = DTYPES[width]

    def call_plain(*operands: Value) -> Any:
        lanes = False
        arrays: list[Array] = []
        for x in operands:
            if isinstance(x, np.ndarray):
                lanes = True
                arrays.append(x)
            else:
                arrays.append(np.array([x], register))
        with np.errstate(all="ignore"):
            result = kernel(*arrays)
        return result if lanes else result[0].item()

    def call_parts(*operands: Value) -> Any:
        lanes = next((len(x) for x in operands if isinstance(x, np.ndarray)), 0)
        arrays = [
            np.ascontiguousarray(x).view(word)
            if isinstance(x, np.ndarray)
            else np.full(max(lanes, 1), x, register).view(word)
            for x in operands
        ]
        with np.errstate(all="ignore"):
            result = kernel(*arrays).view(register)
        return result if lanes else result[0].item()

    return call_plain if parts == 1 else call_parts


def some(mask: NDArray[np.bool_]) -> bool:
    """Whether any is true; three times as fast as `mask.any()` for a warp."""
    return np.count_nonzero(mask) != 0


def to_float64(bits: Array, fmt: FloatFormat) -> Float64Array:
    """The numbers that raw bits of f16, bf16, tf32, f32 or f64 mean, exactly."""
    if fmt.name in _NATIVE:
        return bits.view(_NATIVE[fmt.name]).astype(np.float64)
    if fmt.width_bits == 16:
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def two_sum(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Rounded sum and its exact error (Knuth); the error is NaN where the sum is not finite."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Rounded product and its exact error (Dekker), barring under- and overflow of the partial products."""
    product = a * b
    a_high, b_high = a * 134217729.0, b * 134217729.0  # 2**27 + 1 (Veltkamp)
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def to_odd(values: Float64Array, errors: Float64Array) -> Float64Array:
    """Truncate values + errors (|errors| below one last place) and set the last bit where it is inexact."""
    inexact = np.abs(errors) > 0  # False for NaN
    if not some(inexact):
        return values
    # np.array: a result of an operation on one-element arrays stays an array
    words = np.array(values).view(np.int64)
    beyond = inexact & ((errors < 0) != (values < 0))  # values lies beyond the exact number
    return ((words - beyond) | inexact).view(np.float64)


def round_float64(values: Float64Array, fmt: FloatFormat, rounding: Rounding = "rn") -> Array:
    """Round to raw bits of f16, bf16, tf32 or f32; NaN becomes the canonical NaN.

    Overflow follows IEEE 754: Inf, or the largest number where the mode rounds toward it.
    """
    if fmt.name in ("f16", "f32"):
        bits = _round_native(values, fmt, rounding)
    else:
        words = _odd_float32(values)
        bits = drop_low_bits(words, 16 if fmt is BF16 else 13, rounding)
        bits = bits.astype(np.uint16) if fmt is BF16 else bits << 13
    return set_canonical_nan(bits, np.isnan(values), fmt)


def set_canonical_nan(bits: Array, where: NDArray[np.bool_], fmt: FloatFormat) -> Array:
    """Put the canonical NaN where asked, in place, and return `bits`."""
    if some(where):
        bits[where] = fmt.canonical_nan
    return bits


def set_nan_f64(bits: Array, operands: list[Array]) -> Array:
    """Put the f64 NaN of an operation, in place: the last listed operand that is NaN, made quiet, wins.

    An invalid operation on numbers gives 0xFFF8000000000000.  Source: recorded on an H100, tests/silicon/probes.
    """
    magnitude, infinity = np.uint64(F64.sign_bit - 1), np.uint64(F64.infinity)
    invalid = bits & magnitude > infinity
    if some(invalid):
        bits[invalid] = F64.canonical_nan
        for words in operands:
            nan = np.broadcast_to(words & magnitude > infinity, bits.shape)
            bits[nan] = np.broadcast_to(words, bits.shape)[nan] | np.uint64(1 << 51)
    return bits


def _round_native(values: Float64Array, fmt: FloatFormat, rounding: Rounding) -> Array:
    nearest = values.astype(_NATIVE[fmt.name])
    bits = nearest.view(DTYPES[fmt.width_bits])
    if rounding == "rn":
        return bits
    back = nearest.astype(np.float64)
    if rounding == "rz":
        return bits - (np.abs(back) > np.abs(values)).astype(bits.dtype)
    # Move one pattern toward the mode's infinity where nearest went the other way.  A pattern grows
    # with its magnitude, so the direction depends on the sign, which nearest always keeps.
    negative = np.signbit(nearest)
    if rounding == "rp":
        move = np.where(back < values, np.where(negative, -1, 1), 0)
    elif rounding == "rm":
        move = np.where(back > values, np.where(negative, 1, -1), 0)
    else:
        raise ValueError(f"no rounding .{rounding} to {fmt.name}")
    return bits + move.astype(bits.dtype)


def _odd_float32(values: Float64Array) -> NDArray[np.uint32]:
    """Bits of float32 rounded to odd; overflow gives the largest number, which is odd."""
    nearest = values.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint32)
    inexact = back != values
    beyond = (np.abs(back) > np.abs(values)).astype(np.uint32)
    return (bits - beyond) | (inexact & ~np.isnan(values)).astype(np.uint32)


def drop_low_bits(words: NDArray[np.uint32], count: int, rounding: Rounding) -> NDArray[np.uint32]:
    """Round sign-and-magnitude words to a multiple of 2**count and shift it out; not for NaN."""
    last, shift, one = np.uint32((1 << count) - 1), np.uint32(count), np.uint32(1)
    half = np.uint32(1 << (count - 1))
    if rounding == "rn":
        words = words + (((words >> shift) & one) + (half - one))
    elif rounding == "rna":
        words = words + half
    elif rounding == "rp":
        words = words + np.where(words >> np.uint32(31) == 0, last, np.uint32(0))
    elif rounding == "rm":
        words = words + np.where(words >> np.uint32(31) != 0, last, np.uint32(0))
    return words >> shift


def flush_subnormal(bits: Array, fmt: FloatFormat = F32) -> Array:
    """`.ftz`: subnormal numbers become zero of the same sign."""
    tiny = bits & fmt.infinity == 0
    return np.where(tiny, bits & fmt.sign_bit, bits) if some(tiny) else bits


def saturate(bits: Array, fmt: FloatFormat) -> Array:
    """`.sat`: clamp to [0.0, 1.0]; NaN, -0 and negative numbers become +0."""
    magnitude = bits & (fmt.sign_bit - 1)
    zero = (magnitude > fmt.infinity) | (bits >= fmt.sign_bit)
    return np.where(zero, 0, np.minimum(bits, fmt.one)).astype(bits.dtype)


def clamp_negative(bits: Array, fmt: FloatFormat) -> Array:
    """`.relu`: negative numbers and -0 become +0; NaN becomes the canonical NaN."""
    is_nan = bits & (fmt.sign_bit - 1) > fmt.infinity
    positive = np.where(bits >= fmt.sign_bit, 0, bits).astype(bits.dtype)
    return set_canonical_nan(positive, is_nan, fmt)

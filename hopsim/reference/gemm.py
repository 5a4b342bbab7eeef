"""C = A B^T as Hopper's tensor cores sum it, in integer significands and shifts.

This is the judge of `hopsim.isa.numerics.tensor_core` and shares no code with it: there products are
floating-point numbers scaled and truncated, here they are integers shifted.  It imports nothing of hopsim.

    >>> a = np.ones((2, 16), np.float16); b = np.full((3, 16), 2, np.float16)
    >>> gemm(a, b)[0, 0]
    np.float32(32.0)

Source: hopsim's measurements of wgmma and mma.sync on H100 SXM and H200 (`docs/numerics.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

Matrix = NDArray[Any]
Int64 = NDArray[np.int64]
Unit = Literal["wgmma", "mma.sync"]


@dataclass(frozen=True, slots=True)
class _Format:
    """How to read a pattern: fields, and how many low bits to ignore."""

    exponent_bits: int
    fraction_bits: int
    k_step: int
    ignored_bits: int = 0
    has_inf: bool = True

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1


_FORMATS: Final[dict[str, _Format]] = {
    "float16": _Format(5, 10, 16),
    "bfloat16": _Format(8, 7, 16),
    "float32": _Format(8, 10, 8, ignored_bits=13),  # tf32
    "float8_e4m3fn": _Format(4, 3, 32, has_inf=False),
    "float8_e5m2": _Format(5, 2, 32),
}
_LARGEST_FP8: Final = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
_F32_ROUNDING: Final = 2.0**-24
"""Largest relative error of one rounding to nearest."""
_ROUNDING: Final = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
_F32: Final = _Format(8, 23, 0)
_INFINITY: Final = 0x7F800000
_NAN: Final = 0x7FFFFFFF
_SIGN: Final = 0x80000000
_ABSENT: Final = -16000  # exponent of a zero; the sum of two fits int16
_LOWEST_E: Final = -133  # E never falls below: recorded on an H100
_ROWS: Final = 64  # rows of C in flight: with 512 columns a work array of int32 is 128 KiB


def gemm(
    a: Matrix,
    b: Matrix,
    c: Matrix | None = None,
    dtype: DTypeLike | None = None,
    numerics: Literal["hopper", "float32"] = "hopper",
    k_step: int | None = None,
    *,
    out_dtype: DTypeLike | None = None,
    unit: Unit = "wgmma",
) -> Matrix:
    """Return C + A B^T, summed by one chain of tensor-core instructions along K for each output.

    Args:
        a, b: (M, K) and (N, K), of float16, bfloat16, float32 (read as tf32), float8_e4m3fn,
            float8_e5m2 (the two may be mixed), int8 or uint8.
        c: (M, N), float32 (int32 for integers); None means zero.
        dtype: reads a and b as this type, if they are given as something wider.
        numerics: "hopper" for the bits of the hardware, "float32" for an IEEE approximation.
        k_step: elements of K that one instruction sums; by default the instruction's own.
        out_dtype: converts the result to nearest even (fp8: saturating); default is the accumulator's type.
        unit: `mma.sync` differs from `wgmma` on fp8 only.
    Returns: (M, N), float32 or int32, or `out_dtype`.
    Raises: ValueError: shapes or types do not fit.
    """
    if dtype is not None:
        a, b = a.astype(dtype), b.astype(dtype)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"expected a (M, K) and b (N, K), got {a.shape} and {b.shape}")
    if c is not None and c.shape != (a.shape[0], b.shape[0]):
        raise ValueError(f"expected c of shape {(a.shape[0], b.shape[0])}, got {c.shape}")
    if a.dtype.kind in "iu" and a.dtype.itemsize == 1:
        return _convert(_gemm_integer(a, b, c), out_dtype)
    a_format, b_format = _FORMATS.get(a.dtype.name), _FORMATS.get(b.dtype.name)
    if a_format is None or b_format is None or a_format.k_step != b_format.k_step:
        raise ValueError(f"no tensor-core instruction for {a.dtype.name} times {b.dtype.name}")
    if numerics == "float32":
        with np.errstate(all="ignore"):
            total = a.astype(np.float32) @ b.astype(np.float32).T
            return _convert(total if c is None else total + c.astype(np.float32), out_dtype)
    start = np.zeros((len(a), len(b)), np.uint32)
    if c is not None:
        start[...] = np.ascontiguousarray(c, np.float32).view(np.uint32)
    if unit == "mma.sync" and a_format.k_step == 32:
        bits = _gemm_fp8_mma_sync(a, b, start, k_step or a_format.k_step)
    else:
        bits = _gemm_hopper(
            _decode(a, a_format), _decode(b, b_format), start, (a_format, b_format), k_step
        )
    return _convert(bits.view(np.float32), out_dtype)


def gemm_f64(a: Matrix, b: Matrix, c: Matrix | None = None) -> NDArray[np.float64]:
    """Return C + A B^T in float64: the yardstick for how far a result is from the truth.

    float32 operands are taken whole, not as tf32.
    """
    with np.errstate(all="ignore"):
        total = a.astype(np.float64) @ b.astype(np.float64).T
        return total if c is None else total + c.astype(np.float64)


def f32_error_bound(a: Matrix, b: Matrix, out_dtype: DTypeLike) -> NDArray[np.float64]:
    """Return how far A B^T may be from `gemm_f64` where its sums are f32, added in any order, and rounded once.

    Args:
        a, b: (M, K) and (N, K).  out_dtype: type of the result.
    Returns: (M, N).

    Source: Higham, "Accuracy and Stability of Numerical Algorithms", 3.1.
    """
    exact = gemm_f64(a, b)
    magnitude = gemm_f64(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
    rounding = _ROUNDING.get(np.dtype(out_dtype).name, _F32_ROUNDING)
    return 2 * a.shape[1] * _F32_ROUNDING * magnitude + rounding * np.abs(exact) + _F32_ROUNDING


def _convert(result: Matrix, out_dtype: DTypeLike | None) -> Matrix:
    if out_dtype is None:
        return result
    target = np.dtype(out_dtype)
    largest = _LARGEST_FP8.get(target.name)
    with np.errstate(all="ignore"):
        if largest is not None:
            result = np.clip(result, -largest, largest)  # NaN stays
        return result.astype(target)


def _gemm_integer(a: Matrix, b: Matrix, c: Matrix | None) -> NDArray[np.int32]:
    """Exact modulo 2**32 (s8 and u8 operands)."""
    total = a.astype(np.int64) @ b.astype(np.int64).T
    if c is not None:
        total = total + c.astype(np.int64)
    return total.astype(np.int32)


class _Side(NamedTuple):
    """One operand's fields, (rows, K)."""

    magnitude: NDArray[np.int32]  # significand, 0 for specials
    sign: NDArray[np.int32]  # 1 or -1
    exponent: NDArray[np.int16]  # of the leading significand position; _ABSENT for zeros
    nan: NDArray[np.bool_]
    inf: NDArray[np.bool_]

    def special_columns(self) -> NDArray[np.bool_]:
        """Which k hold any special."""
        return np.logical_or.reduce(self.nan | self.inf, axis=0)


def _decode(x: Matrix, fmt: _Format) -> _Side:
    words = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").astype(np.int64)
    return _fields(words >> fmt.ignored_bits, fmt)


def _fields(words: Int64, fmt: _Format) -> _Side:
    fraction = words & ((1 << fmt.fraction_bits) - 1)
    field = words >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1)
    negative = words >> (fmt.fraction_bits + fmt.exponent_bits) != 0
    top = field == (1 << fmt.exponent_bits) - 1
    if fmt.has_inf:
        nan, inf = top & (fraction != 0), top & (fraction == 0)
    else:
        nan, inf = top & (fraction == (1 << fmt.fraction_bits) - 1), np.zeros_like(top)
    magnitude = np.where(field == 0, fraction, fraction | 1 << fmt.fraction_bits)
    magnitude = np.where(nan | inf, 0, magnitude)
    exponent = np.where(magnitude == 0, _ABSENT, np.maximum(field, 1) - fmt.bias)
    return _Side(
        magnitude.astype(np.int32),
        np.where(negative, -1, 1).astype(np.int32),
        exponent.astype(np.int16),
        nan,
        inf,
    )


def _gemm_hopper(
    a: _Side,
    b: _Side,
    start: NDArray[np.uint32],
    formats: tuple[_Format, _Format],
    k_step: int | None,
) -> NDArray[np.uint32]:
    fraction = formats[0].fraction_bits + formats[1].fraction_bits
    keep, cleared = (13, 10) if formats[0].k_step == 32 else (25, 0)
    step = k_step or formats[0].k_step
    depth = a.magnitude.shape[1]
    special = a.special_columns() | b.special_columns()
    # K first, so that one k is one contiguous row of b.
    b_magnitude, b_exponent = (np.ascontiguousarray(x.T) for x in (b.magnitude, b.exponent))
    b_sign = np.ascontiguousarray(b.sign.T)
    result = start.copy()
    for row in range(0, len(start), _ROWS):
        rows = slice(row, row + _ROWS)
        d = result[rows]
        for k in range(0, depth, step):
            ks = range(k, min(k + step, depth))
            c = _fields(d.astype(np.int64), _F32)
            largest = np.maximum(c.exponent, np.int16(_LOWEST_E))
            for i in ks:
                np.maximum(largest, a.exponent[rows, i, None] + b_exponent[i], out=largest)
            total = _aligned_c(c, largest, keep)
            # Each term is below 2**(F + 2); int32 holds their sum if len(ks) * 2**(F + 2) <= 2**31.
            dtype = np.int32 if len(ks) << keep + 2 <= 1 << 31 else np.int64
            products = np.zeros(total.shape, dtype)
            for i in ks:
                # |product| < 2**22 moves left to F fraction bits (27 bits in all), then right to E.
                term = (a.magnitude[rows, i, None] << (keep - fraction)) * b_magnitude[i]
                down = largest - (a.exponent[rows, i, None] + b_exponent[i])
                term >>= np.minimum(down, 31)
                term *= a.sign[rows, i, None] * b_sign[i]
                products += term
            total += products
            d = _pack(total, largest, keep, cleared)
            hot = [i for i in ks if special[i]]
            if hot or c.nan.any() or c.inf.any():
                _overlay(d, a, b, c, rows, hot)
        result[rows] = d
    return result


def _gemm_fp8_mma_sync(
    a: Matrix, b: Matrix, start: NDArray[np.uint32], step: int
) -> NDArray[np.uint32]:
    """Hopper has no fp8 `mma.sync`: two f16 instructions from zero, on k in pairs, then c is added."""
    f16 = _FORMATS["float16"]
    d = start.view(np.float32)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float16), b.astype(np.float16)
        for k in range(0, a.shape[1], step):
            ks = np.arange(k, min(k + step, a.shape[1]))
            total = np.zeros(start.shape, np.uint32)
            for part in (ks[ks & 2 == 0], ks[ks & 2 != 0]):
                sides = _decode(x[:, part], f16), _decode(y[:, part], f16)
                total = _gemm_hopper(*sides, total, (f16, f16), step // 2)
            d = total.view(np.float32) + d
    return np.where(np.isnan(d), np.uint32(_NAN), d.view(np.uint32))


def _aligned_c(c: _Side, largest: NDArray[np.int16], keep: int) -> Int64:
    """The accumulator in units of 2**(E - F), truncated toward zero."""
    down = np.minimum(largest - c.exponent, 40).astype(np.int64)  # 49 bits are gone before 63
    return (c.magnitude.astype(np.int64) << keep >> _F32.fraction_bits + down) * c.sign


def _pack(total: Int64, largest: NDArray[np.int16], keep: int, cleared: int) -> NDArray[np.uint32]:
    """Truncate total * 2**(largest - keep) to f32."""
    magnitude = np.abs(total)
    length = np.frexp(magnitude.astype(np.float64))[1]  # bit length: exact below 2**53
    unit = largest.astype(np.int64) - keep
    top = np.maximum(unit + length - 1, -126)
    drop = top - _F32.fraction_bits - unit
    significand = np.where(
        drop >= 0, magnitude >> np.clip(drop, 0, 62), magnitude << np.clip(-drop, 0, 30)
    )
    # The significand's own leading bit raises the exponent field by one where it is normal.
    bits = ((top + 126) << _F32.fraction_bits) + significand
    bits = np.minimum(bits, _INFINITY) & -(1 << cleared)
    bits = np.where(significand == 0, 0, np.where(total < 0, bits | _SIGN, bits))
    return bits.astype(np.uint32)


def _overlay(
    d: NDArray[np.uint32], a: _Side, b: _Side, c: _Side, rows: slice, ks: list[int]
) -> None:
    """Put the NaN and Inf of one instruction over its finite sums, in place."""
    nan = c.nan.copy()
    plus, minus = c.inf & (c.sign > 0), c.inf & (c.sign < 0)
    for k in ks:
        a_nan, a_inf, a_sign = a.nan[rows, k, None], a.inf[rows, k, None], a.sign[rows, k, None]
        b_nan, b_inf, b_sign = b.nan[:, k], b.inf[:, k], b.sign[:, k]
        a_zero = ~a_nan & ~a_inf & (a.magnitude[rows, k, None] == 0)
        b_zero = ~b_nan & ~b_inf & (b.magnitude[:, k] == 0)
        nan |= a_nan | b_nan | (a_inf & b_zero) | (a_zero & b_inf)
        inf = (a_inf | b_inf) & ~nan
        positive = a_sign * b_sign > 0
        plus |= inf & positive
        minus |= inf & ~positive
    d[plus] = _INFINITY
    d[minus] = _INFINITY | _SIGN
    d[nan | (plus & minus)] = _NAN

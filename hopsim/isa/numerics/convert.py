"""`cvt`: every conversion between integers and floats of PTX on raw bits.

    >>> pack = make_cvt("bf16x2", "f32", "rn")
    >>> hex(pack(0x3F800000, 0x40000000))  # a = 1.0 goes to the upper half, b = 2.0 to the lower
    '0x3f804000'

What becomes of a NaN is not PTX's to say, but is recorded on an H100 for every pair:

- f64 on either side keeps sign and payload and makes it quiet (`.ftz` from f32: from the canonical NaN);
- bf16 to f32 and f32 to f32 without rounding only move bits; `.rna.tf32` only drops bits;
- all else gives the canonical NaN; to an integer see `_make_float_to_integer`.

Source: PTX ISA 8.7 "Data Movement and Conversion Instructions: cvt".
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

import numpy as np

from hopsim.isa.numerics.convert_floats import (
    INTEGER_ROUNDINGS,
    Convert,
    float_rounding,
    make_float,
)
from hopsim.isa.numerics.convert_pairs import make_pair
from hopsim.isa.numerics.exact import round_fraction
from hopsim.isa.numerics.formats import FORMATS, FloatFormat
from hopsim.isa.numerics.integer import SIGNED_DTYPES
from hopsim.isa.numerics.rounding import (
    Float64Array,
    Rounding,
    flush_subnormal,
    lift,
    round_float64,
    saturate,
    some,
    to_float64,
)
from hopsim.isa.types import DTYPES, TYPES, ScalarType
from hopsim.isa.values import Array, Value


def make_cvt(
    dtype: str, stype: str, rounding: str = "", modifiers: Collection[str] = ()
) -> Convert:
    """Return the function of `cvt{.rounding}{.modifiers}.dtype.stype`.

    Args:
        dtype, stype: PTX type names without the dot.
        rounding: `rn rz rm rp rna`, `rni rzi rmi rpi`, or empty.
        modifiers: of `ftz sat satfinite relu`.
    Returns: a function of one register, or of two (a, b) where two f32 become a pair (a to the upper half).
    Raises: ValueError: there is no such conversion.
    """
    unknown = set(modifiers) - {"ftz", "sat", "satfinite", "relu"}
    if unknown:
        raise ValueError(f"cvt has no modifier .{sorted(unknown)[0]}")
    if dtype.endswith("x2"):
        return make_pair(dtype, stype, rounding, modifiers)
    destination, source = _scalar(dtype), _scalar(stype)
    if destination.kind != "float" and source.kind != "float":
        return _make_integer(destination, source, "sat" in modifiers)
    if destination.kind != "float":
        return _make_float_to_integer(destination, FORMATS[stype], rounding, modifiers)
    if source.kind != "float":
        return _make_integer_to_float(FORMATS[dtype], source, rounding, modifiers)
    return make_float(FORMATS[dtype], FORMATS[stype], rounding, modifiers)


def _scalar(name: str) -> ScalarType:
    found = TYPES.get(name)
    if found is None or found.kind in ("pred", "packed", "bits") or found.width_bits < 8:
        raise ValueError(f"cvt does not convert .{name}")
    return found


# ------------------------------------------------------------------------------------------ integers


def _range(kind: ScalarType) -> tuple[int, int]:
    if kind.is_signed:
        return -(1 << (kind.width_bits - 1)), (1 << (kind.width_bits - 1)) - 1
    return 0, kind.mask


def _make_integer(destination: ScalarType, source: ScalarType, sat: bool) -> Convert:
    """Extend by the source's sign, then truncate; `.sat` clamps to the destination's range."""
    sign = 1 << (source.width_bits - 1) if source.is_signed else 0
    source_mask, mask = source.mask, destination.mask
    low, high = _range(destination)
    word, result = DTYPES[source.width_bits], DTYPES[destination.width_bits]

    def convert(a: Value) -> Value:
        if isinstance(a, int):
            number = ((a & source_mask) ^ sign) - sign
            return (min(max(number, low), high) if sat else number) & mask
        numbers = a.astype(word, copy=False)
        if sign:
            numbers = numbers.view(SIGNED_DTYPES[source.width_bits])
        if sat:
            least, greatest = _range(source)
            numbers = np.clip(numbers, max(low, least), min(high, greatest))
        return numbers.astype(result)

    return convert


# ---------------------------------------------------------------------------------- float to integer


def _make_float_to_integer(
    destination: ScalarType, fmt: FloatFormat, rounding: str, modifiers: Collection[str]
) -> Convert:
    """Round to an integer and clamp; NaN gives 0, or the top bit alone where f64 or 64 bits are involved."""
    if rounding not in INTEGER_ROUNDINGS:
        raise ValueError(f"cvt.{destination.name}.{fmt.name} needs .rni .rzi .rmi or .rpi")
    round_integral = INTEGER_ROUNDINGS[rounding]
    ftz = "ftz" in modifiers and fmt.name == "f32"
    width = destination.width_bits
    low, high = _range(destination)
    wide = np.dtype(np.int64 if destination.is_signed else np.uint64)
    result_dtype = DTYPES[width]
    of_nan = 1 << (width - 1) if fmt.name == "f64" or width == 64 else 0

    def kernel(a: Array) -> Array:
        values = round_integral(to_float64(flush_subnormal(a, fmt) if ftz else a, fmt))
        inside = (values > low) & (values < high)  # False for NaN; float(2**63 - 1) is 2**63
        numbers = np.where(inside, values, 0.0).astype(wide)
        result = numbers.astype(result_dtype)
        if some(~inside):
            result[values >= high] = high
            result[values <= low] = low & destination.mask
            result[np.isnan(values)] = of_nan
        return result

    return lift(kernel, fmt.width_bits)


# ---------------------------------------------------------------------------------- integer to float


def _make_integer_to_float(
    fmt: FloatFormat, source: ScalarType, rounding: str, modifiers: Collection[str]
) -> Convert:
    mode = float_rounding(rounding, f"cvt.{fmt.name}.{source.name}")
    sat = "sat" in modifiers
    number_dtype = (SIGNED_DTYPES if source.is_signed else DTYPES)[source.width_bits]

    def kernel(a: Array) -> Array:
        numbers = a.view(number_dtype)
        if fmt.name == "f64":
            result = _integers_to_f64(numbers, mode)
        else:
            result = round_float64(_odd_integers(numbers), fmt, mode)
        return saturate(result, fmt) if sat else result

    return lift(kernel, source.width_bits)


def _odd_integers(numbers: Array) -> Float64Array:
    """Integers as float64, rounded to odd where they have more than 53 bits."""
    if numbers.itemsize < 8:
        return numbers.astype(np.float64)
    top = numbers >> 53
    small = (top == 0) | (top == -1) if numbers.dtype.kind == "i" else top == 0
    # The shift floors: setting the last bit where bits were lost makes it odd for both signs.
    odd = ((numbers >> 11) | ((numbers & 0x7FF) != 0)).astype(np.float64) * 2048.0
    return np.where(small, np.where(small, numbers, 0).astype(np.float64), odd)


def _integers_to_f64(numbers: Array, mode: Rounding) -> Array:
    nearest = numbers.astype(np.float64).view(np.uint64)
    if mode == "rn" or numbers.itemsize < 8:
        return nearest
    fmt = FORMATS["f64"]
    rounded = [round_fraction(Fraction(int(x)), fmt, mode) if x else 0 for x in numbers]
    return np.array(rounded, np.uint64)

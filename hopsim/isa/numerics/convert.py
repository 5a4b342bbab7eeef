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

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Any, Final, TypeAlias, cast

import ml_dtypes
import numpy as np

from hopsim.isa.numerics.exact import round_fraction
from hopsim.isa.numerics.formats import E4M3, FORMATS, FloatFormat
from hopsim.isa.numerics.integer import SIGNED_DTYPES
from hopsim.isa.numerics.rounding import (
    Float64Array,
    Kernel,
    Rounding,
    clamp_negative,
    drop_low_bits,
    flush_subnormal,
    lift,
    round_float64,
    saturate,
    set_canonical_nan,
    some,
    to_float64,
)
from hopsim.isa.numerics.tensor_core import decode
from hopsim.isa.types import DTYPES, TYPES, ScalarType
from hopsim.isa.values import Array, Value

Convert: TypeAlias = Callable[..., Value]

_INTEGER_ROUNDINGS: Final[dict[str, Callable[[Float64Array], Float64Array]]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_ML_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


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
        return _make_pair(dtype, stype, rounding, modifiers)
    destination, source = _scalar(dtype), _scalar(stype)
    if destination.kind != "float" and source.kind != "float":
        return _make_integer(destination, source, "sat" in modifiers)
    if destination.kind != "float":
        return _make_float_to_integer(destination, FORMATS[stype], rounding, modifiers)
    if source.kind != "float":
        return _make_integer_to_float(FORMATS[dtype], source, rounding, modifiers)
    return _make_float(FORMATS[dtype], FORMATS[stype], rounding, modifiers)


def _scalar(name: str) -> ScalarType:
    found = TYPES.get(name)
    if found is None or found.kind in ("pred", "packed", "bits") or found.width_bits < 8:
        raise ValueError(f"cvt does not convert .{name}")
    return found


def _lift(kernel: Kernel, source_bits: int) -> Convert:
    return lift(kernel, source_bits)


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
    if rounding not in _INTEGER_ROUNDINGS:
        raise ValueError(f"cvt.{destination.name}.{fmt.name} needs .rni .rzi .rmi or .rpi")
    round_integral = _INTEGER_ROUNDINGS[rounding]
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

    return _lift(kernel, fmt.width_bits)


# ---------------------------------------------------------------------------------- integer to float


def _make_integer_to_float(
    fmt: FloatFormat, source: ScalarType, rounding: str, modifiers: Collection[str]
) -> Convert:
    mode = _float_rounding(rounding, f"cvt.{fmt.name}.{source.name}")
    sat = "sat" in modifiers
    number_dtype = (SIGNED_DTYPES if source.is_signed else DTYPES)[source.width_bits]

    def kernel(a: Array) -> Array:
        numbers = a.view(number_dtype)
        if fmt.name == "f64":
            result = _integers_to_f64(numbers, mode)
        else:
            result = round_float64(_odd_integers(numbers), fmt, mode)
        return saturate(result, fmt) if sat else result

    return _lift(kernel, source.width_bits)


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


# ------------------------------------------------------------------------------------ float to float


def _float_rounding(rounding: str, what: str) -> Rounding:
    if rounding not in ("rn", "rz", "rm", "rp", "rna"):
        raise ValueError(f"{what} needs a rounding mode, got {rounding or 'none'}")
    return rounding


def _make_float(
    destination: FloatFormat, source: FloatFormat, rounding: str, modifiers: Collection[str]
) -> Convert:
    """Between f16, bf16, tf32, f32, f64; an integral rounding rounds in the source's own format."""
    what = f"cvt.{destination.name}.{source.name}"
    integral = _INTEGER_ROUNDINGS.get(rounding)
    widens = (
        destination.fraction_bits >= source.fraction_bits
        and destination.exponent_bits >= source.exponent_bits
    )
    mode: Rounding = "rn"
    # Compilers also write cvt.bf16.f16: to nearest even (recorded on an H100).
    implied = not rounding and (widens or (destination.name, source.name) == ("bf16", "f16"))
    if not integral and not implied:
        mode = _float_rounding(rounding, what)
    ftz = "ftz" in modifiers
    if destination is source and not rounding and not modifiers:
        return _same if destination.width_bits > 16 else _lift(_quiet(destination), 16)
    if destination.name == "f32" and source.width_bits == 16 and not integral and not modifiers:
        return _lift(_widen_half(source), 16)
    keeps_nan = "f64" in (destination.name, source.name)
    narrow = _narrowing_kernel(destination, source, mode)

    # Directed rounding to f16 sees the subnormal all the same.  Source: recorded on an H100, tests/silicon/probes.
    flushes = (
        ftz
        and source.name == "f32"
        and (destination.name, mode) not in (("f16", "rm"), ("f16", "rp"))
    )

    def kernel(a: Array) -> Array:
        if flushes:
            a = flush_subnormal(a, source)
        if integral or widens:
            values = to_float64(a, source)
            values = integral(values) if integral else values
            result = _from_float64(values, destination, mode)
        else:
            result = narrow(a)
        if keeps_nan:
            _keep_nan(result, a, destination, source, canonical=ftz and source.name == "f32")
        if ftz and destination.name == "f32":
            result = flush_subnormal(result, destination)
        return _modify(result, destination, modifiers)

    return _lift(kernel, source.width_bits)


def _keep_nan(
    result: Array, a: Array, destination: FloatFormat, source: FloatFormat, canonical: bool
) -> None:
    """Give NaN results the sign and the quiet payload of their source, in place."""
    nan = a & (source.sign_bit - 1) > source.infinity
    if not some(nan):
        return
    words = a[nan].astype(np.uint64)
    if canonical:
        words[:] = source.canonical_nan
    up = destination.fraction_bits - source.fraction_bits
    fraction = words & ((1 << source.fraction_bits) - 1)
    fraction = fraction << up if up >= 0 else fraction >> -up
    sign = np.where(words & source.sign_bit != 0, np.uint64(destination.sign_bit), np.uint64(0))
    quiet = destination.infinity | 1 << (destination.fraction_bits - 1)
    result[nan] = (fraction | sign | quiet).astype(result.dtype)


def _widen_half(source: FloatFormat) -> Kernel:
    """f16 or bf16 to f32, exact."""

    def widen(a: Array) -> Array:
        values = decode(a, source)
        if source.name == "bf16":
            return values.view(np.uint32)  # NaN and all: the bits move
        return set_canonical_nan(values.view(np.uint32), np.isnan(values), FORMATS["f32"])

    return widen


def _same(a: Value) -> Value:
    return a


def _quiet(fmt: FloatFormat) -> Kernel:
    """f16 or bf16 to itself: only a NaN changes, into the canonical one."""

    def quiet(a: Array) -> Array:
        return set_canonical_nan(a.copy(), a & (fmt.sign_bit - 1) > fmt.infinity, fmt)

    return quiet


def _from_float64(values: Float64Array, fmt: FloatFormat, mode: Rounding) -> Array:
    if fmt.name == "f64":
        return set_canonical_nan(np.array(values).view(np.uint64), np.isnan(values), fmt)
    return round_float64(values, fmt, mode)


def _modify(bits: Array, fmt: FloatFormat, modifiers: Collection[str]) -> Array:
    if "relu" in modifiers:
        bits = clamp_negative(bits, fmt)
    if "sat" in modifiers:
        bits = saturate(bits, fmt)
    if "satfinite" in modifiers and fmt.name == "tf32":
        # .rna: one step down from Inf, and from every NaN too.  Source: recorded on an H100, tests/silicon/probes.
        top = bits & fmt.infinity == fmt.infinity
        bits = np.where(top, bits - np.uint32(1 << fmt.dropped_bits), bits)
    elif "satfinite" in modifiers:
        infinite = bits & (fmt.sign_bit - 1) == fmt.infinity
        bits = np.where(infinite, bits & fmt.sign_bit | fmt.largest, bits).astype(bits.dtype)
    return bits


def _narrowing_kernel(destination: FloatFormat, source: FloatFormat, mode: Rounding) -> Kernel:
    """Float to a format with fewer fraction or exponent bits, in one rounding; shortcuts from f32."""
    if source.name == "f32" and destination.name in ("bf16", "tf32"):
        return _truncating_kernel(destination, mode)
    if source.name == "f32" and destination.name == "f16" and mode == "rn":

        def to_f16(a: Array) -> Array:
            half = a.view(np.float32).astype(np.float16)
            return set_canonical_nan(half.view(np.uint16), np.isnan(half), destination)

        return to_f16

    def general(a: Array) -> Array:
        return round_float64(to_float64(a, source), destination, mode)

    return general


def _truncating_kernel(destination: FloatFormat, mode: Rounding) -> Kernel:
    """f32 to bf16 or tf32: same exponents, so rounding is on the pattern."""
    if destination.name == "bf16" and mode == "rn":
        bfloat16 = _ML_DTYPES["bf16"]

        def to_bf16(a: Array) -> Array:
            half = a.view(np.float32).astype(bfloat16).view(np.uint16)
            return set_canonical_nan(half, half & 0x7FFF > 0x7F80, destination)

        return to_bf16
    count = 23 - destination.fraction_bits

    def truncate(a: Array) -> Array:
        kept = drop_low_bits(a, count, mode)
        result = kept << 13 if destination.name == "tf32" else kept.astype(np.uint16)
        nan = a & 0x7FFFFFFF > 0x7F800000
        if mode == "rna":
            return np.where(nan, a & np.uint32(0xFFFFE000), result)
        return set_canonical_nan(result, nan, destination)

    return truncate


# --------------------------------------------------------------------------------------------- pairs


def _make_pair(dtype: str, stype: str, rounding: str, modifiers: Collection[str]) -> Convert:
    """Conversions to f16x2, bf16x2, e4m3x2, e5m2x2."""
    what = f"cvt.{dtype}.{stype}"
    fmt = FORMATS.get(dtype.removesuffix("x2"))
    if fmt is None or fmt.width_bits > 16:
        raise ValueError(f"{what} is not a conversion")
    mode = _float_rounding(rounding, what)
    if fmt.width_bits == 8 and (mode != "rn" or "satfinite" not in modifiers):
        raise ValueError(f"{what} needs .rn.satfinite")
    if stype == "f32":
        if fmt.width_bits == 8:
            return _pack_two(_to_fp8_kernel(fmt), fmt, modifiers)
        return _pack_two(_narrowing_kernel(fmt, FORMATS["f32"], mode), fmt, modifiers)
    if stype.endswith("x2") and fmt.name == "f16" and stype in ("e4m3x2", "e5m2x2"):
        return _expand_fp8(FORMATS[stype.removesuffix("x2")], modifiers)
    if stype in ("f16x2", "bf16x2") and fmt.width_bits == 8:
        return _fp8_from_pair(fmt, FORMATS[stype.removesuffix("x2")], modifiers)
    raise ValueError(f"{what} is not a conversion")


def _to_fp8_kernel(fmt: FloatFormat) -> Kernel:
    """f32 to e4m3 or e5m2, to nearest even, saturating."""
    small = _ML_DTYPES[fmt.name]
    largest = 448.0 if fmt is E4M3 else 57344.0

    def convert(a: Array) -> Array:
        values = a.view(np.float32)
        clipped = np.clip(values, np.float32(-largest), np.float32(largest))  # NaN stays
        bits = clipped.astype(small).view(np.uint8)
        return set_canonical_nan(bits, np.isnan(values), fmt)

    return convert


def _pack_two(kernel: Kernel, fmt: FloatFormat, modifiers: Collection[str]) -> Convert:
    """Two f32 registers to one register: a to the upper half, b to the lower."""
    packed_dtype = DTYPES[2 * fmt.width_bits]
    plain = not modifiers or (fmt.width_bits == 8 and set(modifiers) == {"satfinite"})

    def pack(a: Value, b: Value) -> Value:
        lanes = len(a) if isinstance(a, np.ndarray) else len(b) if isinstance(b, np.ndarray) else 1
        both = np.empty((lanes, 2), np.uint32)  # the lower half comes first in memory
        both[:, 0] = b
        both[:, 1] = a
        with np.errstate(all="ignore"):
            halves = kernel(both)
            if not plain:
                halves = _modify_pair(halves, fmt, modifiers)
        packed = np.ascontiguousarray(halves).view(packed_dtype)[:, 0]
        if isinstance(a, int) and isinstance(b, int):
            return int(packed[0])
        return packed

    return pack


def _modify_pair(bits: Array, fmt: FloatFormat, modifiers: Collection[str]) -> Array:
    if fmt.width_bits == 16:
        return _modify(bits, fmt, modifiers)
    if "relu" not in modifiers:
        return bits
    nan = bits & 0x7F == fmt.canonical_nan if fmt is E4M3 else bits & 0x7F > fmt.infinity
    positive = np.where(bits >> 7 != 0, np.uint8(0), bits)
    return set_canonical_nan(positive, nan, fmt)


def _expand_fp8(fmt: FloatFormat, modifiers: Collection[str]) -> Convert:
    """e4m3x2 or e5m2x2 (16 bits) to f16x2: exact."""
    half = FORMATS["f16"]
    values = decode(np.arange(256, dtype=np.uint8), fmt)
    table = values.astype(np.float16).view(np.uint16)
    set_canonical_nan(table, np.isnan(values), half)
    if "relu" in modifiers:
        table = clamp_negative(table, half)

    def expand(a: Value) -> Value:
        if isinstance(a, int):
            return int(table[a >> 8 & 0xFF]) << 16 | int(table[a & 0xFF])
        return table[np.ascontiguousarray(a).view(np.uint8)].view(np.uint32)

    return cast(Convert, expand)


def _fp8_from_pair(fmt: FloatFormat, source: FloatFormat, modifiers: Collection[str]) -> Convert:
    """f16x2 (or bf16x2) to e4m3x2 or e5m2x2 in 16 bits."""
    kernel = _to_fp8_kernel(fmt)

    def convert(a: Array) -> Array:
        words = np.ascontiguousarray(a).view(np.uint16)
        bits = kernel(decode(words, source).view(np.uint32))
        return _modify_pair(bits, fmt, modifiers).view(np.uint16)

    return _lift(convert, 32)

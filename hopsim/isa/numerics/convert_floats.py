"""`cvt` between floating-point formats: one value at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from hopsim.isa.numerics.decoding import decode
from hopsim.isa.numerics.formats import FORMATS, FloatFormat
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
from hopsim.isa.values import Array, Value

Convert: TypeAlias = Callable[..., Value]

_BFLOAT16: Final[np.dtype[Any]] = np.dtype(ml_dtypes.bfloat16)
INTEGER_ROUNDINGS: Final[dict[str, Callable[[Float64Array], Float64Array]]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def float_rounding(rounding: str, what: str) -> Rounding:
    """Return a rounding mode of `cvt` to a floating-point format.

    Args:
        what: the instruction.
    Raises: ValueError: it is none of them.
    """
    if rounding not in ("rn", "rz", "rm", "rp", "rna"):
        raise ValueError(f"{what} needs a rounding mode, got {rounding or 'none'}")
    return rounding


def make_float(
    destination: FloatFormat, source: FloatFormat, rounding: str, modifiers: Collection[str]
) -> Convert:
    """Return `cvt` between f16, bf16, tf32, f32, f64; an integral rounding rounds in the source's own format.

    Raises: ValueError: it needs a rounding mode.
    """
    what = f"cvt.{destination.name}.{source.name}"
    integral = INTEGER_ROUNDINGS.get(rounding)
    widens = (
        destination.fraction_bits >= source.fraction_bits
        and destination.exponent_bits >= source.exponent_bits
    )
    mode: Rounding = "rn"
    # Compilers also write cvt.bf16.f16: to nearest even (recorded on an H100).
    implied = not rounding and (widens or (destination.name, source.name) == ("bf16", "f16"))
    if not integral and not implied:
        mode = float_rounding(rounding, what)
    ftz = "ftz" in modifiers
    if destination is source and not rounding and not modifiers:
        return _same if destination.width_bits > 16 else lift(_quiet(destination), 16)
    if destination.name == "f32" and source.width_bits == 16 and not integral and not modifiers:
        return lift(_widen_half(source), 16)
    keeps_nan = "f64" in (destination.name, source.name)
    narrow = narrowing_kernel(destination, source, mode)

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
        return modify(result, destination, modifiers)

    return lift(kernel, source.width_bits)


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


def modify(bits: Array, fmt: FloatFormat, modifiers: Collection[str]) -> Array:
    """Apply `.relu`, `.sat` and `.satfinite` to results of 16 bits and more."""
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


def narrowing_kernel(destination: FloatFormat, source: FloatFormat, mode: Rounding) -> Kernel:
    """Return what rounds once to a format with fewer fraction or exponent bits; there are shortcuts from f32."""
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

        def to_bf16(a: Array) -> Array:
            half = a.view(np.float32).astype(_BFLOAT16).view(np.uint16)
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


__all__ = [
    "INTEGER_ROUNDINGS",
    "Convert",
    "float_rounding",
    "make_float",
    "modify",
    "narrowing_kernel",
]

"""`cvt` to and from pairs: f16x2, bf16x2, e4m3x2, e5m2x2 in one register."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, cast

import ml_dtypes
import numpy as np

from hopsim.isa.numerics.convert_floats import Convert, float_rounding, modify, narrowing_kernel
from hopsim.isa.numerics.decoding import decode
from hopsim.isa.numerics.formats import E4M3, FORMATS, FloatFormat
from hopsim.isa.numerics.rounding import Kernel, clamp_negative, lift, set_canonical_nan
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Value

_FP8: Final[dict[str, np.dtype[Any]]] = {
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


def make_pair(dtype: str, stype: str, rounding: str, modifiers: Collection[str]) -> Convert:
    """Return `cvt` to f16x2, bf16x2, e4m3x2 or e5m2x2, from two f32 or from a pair.

    Raises: ValueError: there is no such conversion, or not with this rounding and these modifiers.
    """
    what = f"cvt.{dtype}.{stype}"
    fmt = FORMATS.get(dtype.removesuffix("x2"))
    if fmt is None or fmt.width_bits > 16:
        raise ValueError(f"{what} is not a conversion")
    mode = float_rounding(rounding, what)
    if fmt.width_bits == 8 and (mode != "rn" or "satfinite" not in modifiers):
        raise ValueError(f"{what} needs .rn.satfinite")
    if stype == "f32":
        if fmt.width_bits == 8:
            return _pack_two(_to_fp8_kernel(fmt), fmt, modifiers)
        return _pack_two(narrowing_kernel(fmt, FORMATS["f32"], mode), fmt, modifiers)
    if stype.endswith("x2") and fmt.name == "f16" and stype in ("e4m3x2", "e5m2x2"):
        return _expand_fp8(FORMATS[stype.removesuffix("x2")], modifiers)
    if stype in ("f16x2", "bf16x2") and fmt.width_bits == 8:
        return _fp8_from_pair(fmt, FORMATS[stype.removesuffix("x2")], modifiers)
    raise ValueError(f"{what} is not a conversion")


def _to_fp8_kernel(fmt: FloatFormat) -> Kernel:
    """f32 to e4m3 or e5m2, to nearest even, saturating."""
    small = _FP8[fmt.name]
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
        return modify(bits, fmt, modifiers)
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

    return lift(convert, 32)


__all__ = ["make_pair"]

"""Raw bits of operands as float32, exactly: f16, bf16, tf32, f32 and the two of 8 bits."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.formats import FORMATS, FloatFormat
from hopsim.isa.numerics.mma_kinds import FP8
from hopsim.isa.values import Array

FloatArray = NDArray[np.float32]


def _fp8_table(name: str) -> FloatArray:
    fmt = FORMATS[name]
    table = np.empty(256, np.float32)
    for bits in range(256):
        field = bits >> fmt.fraction_bits & (1 << fmt.exponent_bits) - 1
        fraction = bits & (1 << fmt.fraction_bits) - 1
        top = field == (1 << fmt.exponent_bits) - 1
        if top and (fmt.has_inf or fraction == (1 << fmt.fraction_bits) - 1):
            value = np.inf if fmt.has_inf and fraction == 0 else np.nan
        else:
            significand = fraction | (1 << fmt.fraction_bits if field else 0)
            value = significand * 2.0 ** (max(field, 1) - fmt.bias - fmt.fraction_bits)
        table[bits] = -value if bits >> 7 else value
    return table


_FP8_VALUES: Final = {name: _fp8_table(name) for name in FP8}


def decode(bits: Array, fmt: FloatFormat) -> FloatArray:
    """Return the numbers that raw bits mean, exactly, as float32 (NaN and Inf included; not for f64)."""
    if fmt.name in _FP8_VALUES:
        return _FP8_VALUES[fmt.name].take(bits)
    if fmt.name == "f16":
        return bits.view(np.float16).astype(np.float32)
    if fmt.name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if fmt.name == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32)
    return bits.view(np.float32)


__all__ = ["FloatArray", "decode"]

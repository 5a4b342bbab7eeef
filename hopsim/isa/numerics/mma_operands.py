"""Operands of the tensor core: numbers with their exponents, shifted to where float32 can hold products of them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.decoding import FloatArray, decode
from hopsim.isa.numerics.formats import FloatFormat
from hopsim.isa.values import Array

ExponentArray = NDArray[np.int16]

ZERO_EXPONENT: Final = -8000
"""Of a zero: two of them still fit int16, and every real exponent is above."""
_NEAR_ONE: Final = 16  # operands whose largest exponent is this near to 0 are not shifted


def _exponents(values: FloatArray, smallest: int) -> ExponentArray:
    """Exponents of finite numbers, subnormals of the source format at its smallest; zeros far below."""
    magnitude = values.view(np.uint32) & 0x7FFFFFFF
    exponents = (magnitude >> 23).astype(np.int16)
    exponents -= 127
    np.maximum(exponents, smallest, out=exponents)
    exponents[magnitude == 0] = ZERO_EXPONENT
    return exponents


class Operand(NamedTuple):
    """One decoded operand, K first: arrays (K, batch, rows)."""

    values: FloatArray  # NaN and Inf replaced by 0
    scaled: FloatArray  # values * 2**-shift
    exponents: ExponentArray  # of scaled
    shift: int  # 0, or what brings the largest exponent to 0 where it is far from 0
    specials: FloatArray | None  # the numbers with NaN and Inf, where there are any

    def cut(self, batch: slice, rows: slice) -> Operand:
        """Return a part, all of K."""
        return self._replace(
            values=self.values[:, batch, rows],
            scaled=self.scaled[:, batch, rows],
            exponents=self.exponents[:, batch, rows],
            specials=None if self.specials is None else self.specials[:, batch, rows],
        )


def operand(bits: Array, fmt: FloatFormat, negate: bool) -> Operand:
    """Decode an operand.

    Args:
        bits: raw, (batch, rows, K).
        fmt: its format.
        negate: whether to flip the sign of each element.
    """
    values = decode(np.ascontiguousarray(np.moveaxis(bits, -1, 0)), fmt)
    if negate:
        values = -values
    specials = None
    finite = np.isfinite(values)
    if not finite.all():
        specials = values
        values = np.where(finite, values, np.float32(0))
    exponents = _exponents(values, fmt.smallest_exponent)
    shift = int(exponents.max(initial=ZERO_EXPONENT))
    if abs(shift) <= _NEAR_ONE or shift == ZERO_EXPONENT:
        return Operand(values, values, exponents, 0, specials)
    exponents = np.where(exponents == ZERO_EXPONENT, exponents, exponents - np.int16(shift))
    half = shift // 2  # two steps, because 2**-shift alone may be subnormal
    scaled = values * np.float32(2.0**-half) * np.float32(2.0 ** (half - shift))
    return Operand(values, scaled, exponents, shift, specials)


__all__ = ["ZERO_EXPONENT", "ExponentArray", "Operand", "operand"]

"""The floating-point formats of Hopper, as data.

    >>> F16.bias, F16.smallest_exponent, hex(E4M3.canonical_nan)
    (15, -14, '0x7f')

Source: PTX ISA 8.7 "Fundamental Types", "Alternate Floating-Point Data Formats"; OCP 8-bit Floating Point
Specification 1.0 for e4m3 and e5m2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """One binary floating-point format.

    Args:
        name: PTX type name.
        width_bits: bits of its register image (tf32 lives in 32 bits).
        exponent_bits: width of the exponent field.
        fraction_bits: stored fraction bits that count.
        dropped_bits: low bits of the register image that are ignored (13 for tf32).
        has_inf: False for e4m3, whose all-ones exponent is finite but for the all-ones fraction.
        canonical_nan: the NaN that arithmetic returns (f64: of invalid operations only).
    """

    name: str
    width_bits: int
    exponent_bits: int
    fraction_bits: int
    canonical_nan: int
    dropped_bits: int = 0
    has_inf: bool = True

    @property
    def bias(self) -> int:
        """The exponent bias."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def smallest_exponent(self) -> int:
        """Exponent of the smallest normal number and of all subnormals."""
        return 1 - self.bias

    @property
    def largest_exponent(self) -> int:
        """Exponent of the largest finite number."""
        return self.bias if self.has_inf else self.bias + 1

    @property
    def sign_bit(self) -> int:
        """The sign bit as a mask."""
        return 1 << (self.width_bits - 1)

    @property
    def mask(self) -> int:
        """All bits of the register image."""
        return (1 << self.width_bits) - 1

    @property
    def infinity(self) -> int:
        """Bits of +Inf (of the all-ones exponent with zero fraction)."""
        return ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.dropped_bits)

    @property
    def largest(self) -> int:
        """Bits of the largest finite number."""
        step = 1 << self.dropped_bits
        return self.infinity - step if self.has_inf else self.sign_bit - 2 * step

    @property
    def one(self) -> int:
        """Bits of 1.0."""
        return self.bias << (self.fraction_bits + self.dropped_bits)


F16: Final = FloatFormat("f16", 16, 5, 10, 0x7FFF)
BF16: Final = FloatFormat("bf16", 16, 8, 7, 0x7FFF)
TF32: Final = FloatFormat("tf32", 32, 8, 10, 0x7FFFE000, dropped_bits=13)
F32: Final = FloatFormat("f32", 32, 8, 23, 0x7FFFFFFF)
F64: Final = FloatFormat("f64", 64, 11, 52, 0xFFF8000000000000)
E4M3: Final = FloatFormat("e4m3", 8, 4, 3, 0x7F, has_inf=False)
E5M2: Final = FloatFormat("e5m2", 8, 5, 2, 0x7F)

FORMATS: Final[dict[str, FloatFormat]] = {
    row.name: row for row in (F16, BF16, TF32, F32, F64, E4M3, E5M2)
}

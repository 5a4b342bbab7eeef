"""Exact scalar arithmetic for what float64 cannot carry: f64 itself, fused or in directed rounding.

Slow (microseconds a lane) and simple: numbers are fractions, rounded once.

    >>> hex(round_fraction(Fraction(1, 3), F64, "rn"))
    '0x3fd5555555555555'
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from hopsim.isa.numerics.formats import F64, FloatFormat
from hopsim.isa.numerics.rounding import Rounding


def round_fraction(value: Fraction, fmt: FloatFormat, rounding: Rounding) -> int:
    """Bits of a nonzero rational number rounded once; overflow as IEEE 754 has it."""
    sign, magnitude = value < 0, abs(value)
    top = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** top:
        top -= 1
    unit = max(top, fmt.smallest_exponent) - fmt.fraction_bits
    scaled = magnitude / Fraction(2) ** unit
    significand, rest = divmod(scaled.numerator, scaled.denominator)
    if rest:
        away = (rounding == "rp" and not sign) or (rounding == "rm" and sign)
        if rounding == "rn":
            twice = 2 * rest
            away = twice > scaled.denominator or (
                twice == scaled.denominator and significand % 2 == 1
            )
        significand += away
    # The hidden bit of a normal significand adds one to the exponent field by itself.
    field = unit + fmt.fraction_bits - fmt.smallest_exponent
    bits = (field << fmt.fraction_bits) + significand
    if bits >= fmt.infinity:
        toward_zero = rounding == "rz" or rounding == ("rm", "rp")[sign]
        bits = fmt.largest if toward_zero else fmt.infinity
    return bits | (fmt.sign_bit if sign else 0)


def fma_f64(a: float, b: float, c: float, rounding: Rounding) -> int:
    """Bits of a * b + c of finite numbers, rounded once."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return round_fraction(exact, F64, rounding)
    product_negative = bool(np.signbit(a) != np.signbit(b))
    c_negative = bool(np.signbit(c))
    same = product_negative == c_negative
    negative = c_negative if same else rounding == "rm"
    return F64.sign_bit if negative else 0


def divide_f64(a: float, b: float, rounding: Rounding) -> int:
    """Bits of a / b of finite numbers, b not 0, rounded once."""
    if a:
        return round_fraction(Fraction(a) / Fraction(b), F64, rounding)
    return F64.sign_bit if np.signbit(a) != np.signbit(b) else 0


def sqrt_f64(a: float, rounding: Rounding) -> int:
    """Bits of the square root of a positive finite number, rounded once."""
    exact = Fraction(a)
    # 2**-1074 is the finest float64 and all denominators are powers of two: this scale makes an integer.
    scaled = exact.numerator * (2**2400 // exact.denominator)
    root = isqrt(scaled)
    sticky = root * root != scaled
    return round_fraction(Fraction(2 * root + sticky, 2**1201), F64, rounding)

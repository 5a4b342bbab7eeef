"""Floating point by fractions and by search: an oracle that shares nothing with the vectorised code.

Rounding looks for the neighbouring patterns by bisection over all patterns of the format, whose values grow
with the pattern.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from hopsim.isa.numerics.formats import FORMATS, FloatFormat

INF = "inf"
NAN = "nan"
Number = Fraction | str  # a fraction, or "inf", "-inf", "nan"


@cache
def value(bits: int, name: str) -> Number:
    """The number that bits mean; -0 is Fraction(0)."""
    fmt = FORMATS[name]
    bits >>= fmt.dropped_bits
    width = fmt.exponent_bits + fmt.fraction_bits
    sign, magnitude = bits >> width, bits & ((1 << width) - 1)
    field, fraction = magnitude >> fmt.fraction_bits, magnitude & ((1 << fmt.fraction_bits) - 1)
    if field == (1 << fmt.exponent_bits) - 1:
        if fmt.has_inf:
            return NAN if fraction else ("-inf" if sign else INF)
        if fraction == (1 << fmt.fraction_bits) - 1:
            return NAN
    significand = fraction if field == 0 else fraction + (1 << fmt.fraction_bits)
    number = significand * Fraction(2) ** (max(field, 1) - fmt.bias - fmt.fraction_bits)
    return -number if sign else number


def sign_of(bits: int, name: str) -> int:
    return bits >> (FORMATS[name].width_bits - 1)


def round_to(number: Fraction, name: str, mode: str, zero_sign: int = 0) -> int:
    """Bits of a finite number in the format; ties to even in rn, away in rna; IEEE overflow."""
    fmt = FORMATS[name]
    if number == 0:
        return fmt.sign_bit if zero_sign else 0
    negative, magnitude = number < 0, abs(number)
    step = 1 << fmt.dropped_bits
    low, high = 0, fmt.largest // step
    while low < high:  # the largest pattern whose value is not above
        middle = (low + high + 1) // 2
        if value(middle * step, name) <= magnitude:
            low = middle
        else:
            high = middle - 1
    below = value(low * step, name)
    assert isinstance(below, Fraction)
    chosen = low
    if below != magnitude:
        above = _next_value(low, fmt, below)
        up = {
            "rz": False,
            "rm": negative,
            "rp": not negative,
            "rn": magnitude - below > above - magnitude
            or (magnitude - below == above - magnitude and low % 2 == 1),
            "rna": magnitude - below >= above - magnitude,
        }[mode]
        chosen = low + up
    return chosen * step | (fmt.sign_bit if negative else 0)


def _next_value(pattern: int, fmt: FloatFormat, below: Fraction) -> Fraction:
    """The value after a pattern; after the largest number, what an unbounded exponent would give."""
    step = 1 << fmt.dropped_bits
    above = value((pattern + 1) * step, fmt.name)
    if isinstance(above, Fraction):
        return above
    previous = value((pattern - 1) * step, fmt.name)
    assert isinstance(previous, Fraction)
    return 2 * below - previous


def patterns(name: str, count: int, seed: int) -> np.ndarray:
    """Bits to try: specials, ends of ranges, near 1, random patterns, and small integers."""
    fmt = FORMATS[name]
    rng = np.random.default_rng([seed, fmt.width_bits, fmt.fraction_bits])
    step = 1 << fmt.dropped_bits
    hidden = 1 << (fmt.fraction_bits + fmt.dropped_bits)
    edges = [
        0, step, 2 * step, hidden - step, hidden, hidden + step, fmt.one, fmt.one - step,
        fmt.one + step, fmt.largest, fmt.largest - step, fmt.canonical_nan,
    ]  # fmt: skip
    if fmt.has_inf:
        edges += [fmt.infinity, fmt.infinity + step]
    edges += [x | fmt.sign_bit for x in edges]
    raw = rng.integers(0, fmt.mask, count, np.uint64, endpoint=True)
    near = np.uint64(fmt.one) + (rng.integers(-4, 5, count) * hidden).astype(np.uint64)
    near = near + rng.integers(0, hidden, count, np.uint64)
    near = (near & np.uint64(fmt.sign_bit - 1)) | (raw & np.uint64(fmt.sign_bit))
    few = near & ~np.uint64((hidden >> 3) - 1)  # few significant bits: ties and exact results
    mixed = np.where(rng.random(count) < 0.4, near, np.where(rng.random(count) < 0.5, few, raw))
    words = np.concatenate([np.array(edges, np.uint64), mixed.astype(np.uint64)])
    return rng.permutation(words)[:count].astype(f"u{fmt.width_bits // 8}")

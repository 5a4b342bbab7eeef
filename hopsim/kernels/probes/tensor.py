"""What the probes of wgmma and mma.sync share: type combinations, matrices, decisive vectors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hopsim.isa.numerics.formats import FORMATS, FloatFormat
from hopsim.isa.values import Array
from hopsim.kernels.probes.bits import DISTRIBUTIONS, below, matrix, words

FP8 = ("e4m3", "e5m2")
INT8 = ("s8", "u8")
INTEGER_DISTRIBUTIONS = ("raw", "extreme")
CORNERS = ("normal", "special", "subnormal", "corners")


@dataclass(frozen=True, slots=True)
class Types:
    """One combination of operand and result types.

    Args:
        d: accumulator and result.  a, b: operands.
        saturate: `.satfinite` (integers).
    """

    d: str
    a: str
    b: str
    saturate: bool = False

    @property
    def name(self) -> str:
        """A name for labels: `f32_bf16_bf16`."""
        return f"{self.d}_{self.a}_{self.b}" + ("_sat" if self.saturate else "")

    @property
    def is_integer(self) -> bool:
        """Whether the operands are 8-bit integers."""
        return self.d == "s32"

    @property
    def element_bits(self) -> int:
        """Width of an element of A and B."""
        return 8 if self.is_integer else FORMATS[self.a].width_bits

    @property
    def distributions(self) -> tuple[str, ...]:
        """What to fill the matrices with."""
        return INTEGER_DISTRIBUTIONS if self.is_integer else DISTRIBUTIONS


TYPES = (
    Types("f32", "f16", "f16"),
    Types("f16", "f16", "f16"),
    Types("f32", "bf16", "bf16"),
    Types("f32", "tf32", "tf32"),
    *(Types(d, a, b) for d in ("f32", "f16") for a in FP8 for b in FP8),
    *(Types("s32", a, b, saturate) for a in INT8 for b in INT8 for saturate in (False, True)),
)

Case = tuple[Array, Array, Array]
"""A (rows, K), B (N, K) and C (rows, N), raw bits."""


def case(types: Types, distribution: str, rows: int, n: int, k: int, seed: int) -> Case:
    """Return random matrices of one distribution.

    For integers: any bytes, or bytes at the ends of their range and an accumulator near those of s32.
    """
    if types.is_integer:
        a, b = (_bytes(distribution, seed + i, (count, k)) for i, count in enumerate((rows, n)))
        c = words(seed + 2, rows * n).reshape(rows, n)
        if distribution == "extreme":
            near = np.uint64(0x7FFFFFFF) + below(seed + 3, rows * n, 2).reshape(rows, n).astype(
                np.uint64
            )
            c = near ^ (c & np.uint64(0xFFFF))
        return a, b, c.astype(np.uint32)
    formats = FORMATS[types.a], FORMATS[types.b], FORMATS[types.d]
    return (
        matrix(formats[0], distribution, seed, (rows, k)),
        matrix(formats[1], distribution, seed + 10, (n, k)),
        matrix(formats[2], distribution, seed + 20, (rows, n), is_c=True),
    )


def _bytes(distribution: str, seed: int, shape: tuple[int, int]) -> Array:
    count = shape[0] * shape[1]
    if distribution == "raw":
        found = words(seed, count) & np.uint64(0xFF)
    else:
        table = np.array([0, 1, 0x7F, 0x80, 0xFF, 0xFE, 0x81, 0x7E], np.uint64)
        found = table[below(seed, count, len(table))]
    return found.astype(np.uint8).reshape(shape)


# --- decisive vectors -----------------------------------------------------------------------------


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


# (a, b, c): sums on which rules that agree elsewhere differ. Elements not listed are 0.
_P = _power
VECTORS: tuple[tuple[tuple[Fraction, ...], tuple[Fraction, ...], Fraction | None], ...] = (
    # a product of zero and something huge
    ((_P(0) * 0, _P(-15)), (_P(127), _P(-15)), _P(0) * 0),
    ((_P(0) * 0, _P(-6)), (_P(8), _P(-6)), _P(0) * 0),
    ((_P(0) * 0, _P(-7)), (_P(15), _P(-7)), _P(0) * 0),
    ((_P(0) * 0, _P(-14)), (_P(15), _P(-12)), _P(0) * 0),
    # a zero accumulator, and floors under the exponent
    ((_P(-12), _P(-20)), (_P(-13), _P(-20)), _P(0) * 0),
    ((_P(-66), 15 * _P(-76)), (_P(-66), 15 * _P(-76)), _P(0) * 0),
    ((7 * _P(-76), 15 * _P(-79)), (73 * _P(-82), 15 * _P(-80)), _P(0) * 0),
    ((_P(-12), _P(-24)), (_P(-13), _P(-23)), _P(0) * 0),
    # the sign of a sum that rounds to zero; None: -0
    ((_P(-75),), (-_P(-75),), _P(0) * 0),
    ((_P(-14),), (-_P(-24),), _P(0) * 0),
    ((_P(0) * 0,), (_P(0) * 0,), None),
    ((_P(0), _P(0)), (_P(0), -_P(0)), None),
    ((_P(-8),), (-_P(-8),), None),
    # truncation against rounding of one far term, both signs
    ((_P(8), _P(-6)), (_P(8), _P(-6)), _P(0) * 0),
    ((-_P(8), -_P(-6)), (_P(8), _P(-6)), _P(0) * 0),
    ((_P(0),), (_P(0),), _P(-24) * 3),
    ((_P(0),), (_P(0),), -_P(-24) * 3),
)  # fmt: skip


def encode(value: Fraction, fmt: FloatFormat) -> int | None:
    """Return the bits of a value, None where the format cannot hold it exactly."""
    sign = fmt.sign_bit if value < 0 else 0
    magnitude = abs(value)
    if magnitude == 0:
        return 0
    exponent = fmt.smallest_exponent
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    units = magnitude / Fraction(2) ** (exponent - fmt.fraction_bits)
    if units.denominator != 1 or exponent > fmt.largest_exponent:
        return None
    field = int(units) + ((exponent - fmt.smallest_exponent) << fmt.fraction_bits)
    return sign | field << fmt.dropped_bits


def decisive(types: Types, rows: int, n: int, k: int) -> list[Case]:
    """Return cases whose row i of A, row i of B and row i of C hold decisive vector i, eight to a case."""
    formats = FORMATS[types.a], FORMATS[types.b], FORMATS[types.d]
    found: list[tuple[list[int], list[int], int]] = []
    for left, right, start in VECTORS:
        a = [encode(value, formats[0]) for value in left]
        b = [encode(value, formats[1]) for value in right]
        c = formats[2].sign_bit if start is None else encode(start, formats[2])
        plain_a, plain_b = [x for x in a if x is not None], [x for x in b if x is not None]
        if c is not None and len(plain_a) == len(a) and len(plain_b) == len(b):
            found.append((plain_a, plain_b, c))
    one = [fmt.one for fmt in formats[:2]]
    if (
        types.a == "tf32"
    ):  # NaN whose payload lies in the dropped bits only, and dropped bits as such
        found += [
            ([0x7F800001], [one[1]], 0),
            ([0x7FBFFFFF], [one[1]], 0),
            ([0x3F801FFF], [one[1]], 0),
        ]
    cases: list[Case] = []
    for start in range(0, len(found), 8):
        dtype = {8: np.uint8, 16: np.uint16, 32: np.uint32}
        a = np.zeros((rows, k), dtype[formats[0].width_bits])
        b = np.zeros((n, k), dtype[formats[1].width_bits])
        c = np.zeros((rows, n), dtype[formats[2].width_bits])
        for row, (left, right, value) in enumerate(found[start : start + 8]):
            a[row, : len(left)], b[row, : len(right)], c[row] = left, right, value
        cases.append((a, b, c))
    return cases

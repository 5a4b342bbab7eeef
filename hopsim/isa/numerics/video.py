"""The SIMD video instructions of PTX: a word as four bytes or two halves, one operation on each.

    >>> make_absolute_differences(8, False, False, False)(0x01FF0507, 0x02010505, 0)
    33423362
    >>> hex(_), hex(make_absolute_differences(8, False, False, False, add=True)(0x01FF0507, 0x02010505, 10))
    ('0x1fe0002', '0x10b')

Source: PTX ISA 8.7 "SIMD Video Instructions".
"""

from __future__ import annotations

import numpy as np

from hopsim.isa.numerics.integer import SIGNED_DTYPES, Ternary, full_array
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Value


def _parts(value: Value, part_bits: int, signed: bool) -> Array:
    """Split 32-bit words into numbers, int64 array (lanes, 32 / part_bits)."""
    dtype = SIGNED_DTYPES[part_bits] if signed else DTYPES[part_bits]
    words = np.ascontiguousarray(full_array(value, 32))
    return words.view(dtype).reshape(len(words), -1).astype(np.int64)


def make_absolute_differences(
    part_bits: int, d_signed: bool, a_signed: bool, b_signed: bool, *, sat: bool = False, add: bool = False
) -> Ternary:  # fmt: skip
    """`vabsdiff2`, `vabsdiff4`: the absolute difference of each pair of parts.

    Args:
        part_bits: 8 or 16.
        d_signed, a_signed, b_signed: whether the parts of the result and the operands are signed.
        sat: clamp each difference to the range of the result's parts; otherwise it wraps.
        add: return the sum of the differences and c, wrapping at 32 bits; otherwise c has no part in the result.
    """
    low = -(1 << (part_bits - 1)) if d_signed else 0
    high = low + (1 << part_bits) - 1

    def absolute_differences(a: Value, b: Value, c: Value) -> Value:
        parts = np.abs(_parts(a, part_bits, a_signed) - _parts(b, part_bits, b_signed))
        if sat:
            parts = np.clip(parts, low, high)
        if add:
            result = parts.sum(axis=1).astype(np.uint32) + full_array(c, 32)
        else:
            result = parts.astype(DTYPES[part_bits]).view(np.uint32)[:, 0]
        whole = isinstance(a, int) and isinstance(b, int) and isinstance(c, int)
        return int(result[0]) if whole else result

    return absolute_differences

"""The integer arithmetic of PTX on raw bits: factories that bind width and signedness once.

`make_add(32)` returns a callable for `add.{u,s,b}32`.  Every callable is polymorphic as registers are
(`hopsim.isa.values`): Python ints in, Python int out; any array in, array of the unsigned dtype out.
Results are always masked to their width, so ints never leak high bits and arrays simply wrap.

Products live in `hopsim.isa.numerics.integer_products`, quotients in `hopsim.isa.numerics.integer_division`, bit-field
instructions in `hopsim.isa.numerics.bitfield`, carries in `hopsim.isa.numerics.carry`.

    >>> make_add(32)(0xFFFFFFFF, 2)
    1

Source: PTX ISA 8.7 "Integer Arithmetic Instructions", "Comparison and Selection Instructions".
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Predicate, Value

Unary: TypeAlias = Callable[[Value], Value]
Binary: TypeAlias = Callable[[Value, Value], Value]
Ternary: TypeAlias = Callable[[Value, Value, Value], Value]
Compare: TypeAlias = Callable[[Value, Value], Predicate]
Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"]

SIGNED_DTYPES: Final[dict[int, np.dtype[np.signedinteger[Any]]]] = {
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}


def signed_int(value: int, width: int) -> int:
    """Read the low `width` bits of a Python int as two's complement."""
    sign = 1 << (width - 1)
    return ((value & (2 * sign - 1)) ^ sign) - sign


def as_number(value: Value, width: int, signed: bool) -> Value:
    """View bits as the number they mean: a Python int, or an array of the signed or unsigned dtype."""
    if isinstance(value, np.ndarray):
        return value.view(SIGNED_DTYPES[width]) if signed else value
    return signed_int(value, width) if signed else value


def full_array(value: Value, width: int) -> Array:
    """Return an array of the width's dtype; a Python int becomes a broadcastable one-element array."""
    return value if isinstance(value, np.ndarray) else np.array([value], DTYPES[width])


def make_add(width: int) -> Binary:
    """`add`, wrapping."""
    mask = (1 << width) - 1

    def add(a: Value, b: Value) -> Value:
        total = a + b
        return total & mask if isinstance(total, int) else total

    return add


def make_sub(width: int) -> Binary:
    """`sub`, wrapping."""
    mask = (1 << width) - 1

    def sub(a: Value, b: Value) -> Value:
        difference = a - b
        return difference & mask if isinstance(difference, int) else difference

    return sub


def _make_saturating(width: int, operation: Callable[[Any, Any], Any]) -> Binary:
    low, high, mask = -(1 << (width - 1)), (1 << (width - 1)) - 1, (1 << width) - 1

    def saturating(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            exact = operation(signed_int(a, width), signed_int(b, width))
            return min(max(exact, low), high) & mask
        left = full_array(a, width).view(SIGNED_DTYPES[width]).astype(np.int64)
        right = full_array(b, width).view(SIGNED_DTYPES[width]).astype(np.int64)
        return np.clip(operation(left, right), low, high).astype(DTYPES[width])

    return saturating


def make_add_sat(width: int = 32) -> Binary:
    """`add.sat.s32` (and the halves of 16-bit forms): clamps to the signed range."""
    return _make_saturating(width, operator.add)


def make_sub_sat(width: int = 32) -> Binary:
    """`sub.sat.s32`: clamps to the signed range."""
    return _make_saturating(width, operator.sub)


def make_sad(width: int, signed: bool) -> Ternary:
    """`sad`: c + |a - b|, wrapping."""
    mask = (1 << width) - 1
    low, high = make_min(width, signed), make_max(width, signed)

    def sad(a: Value, b: Value, c: Value) -> Value:
        difference = high(a, b) - low(a, b)
        if isinstance(difference, int):
            # Below 0 where the signs of the two differ; then it does not fit the dtype of an addend array.
            difference &= mask
        total = difference + c
        return total & mask if isinstance(total, int) else total

    return sad


def magnitude(value: Array) -> Array:
    """Return the magnitudes of raw bits taken as signed; the smallest number stays itself."""
    return np.where(value >> (8 * value.itemsize - 1) != 0, np.negative(value), value)


def make_neg(width: int) -> Unary:
    """`neg`: two's complement."""
    mask = (1 << width) - 1

    def neg(a: Value) -> Value:
        return -a & mask if isinstance(a, int) else np.negative(a)

    return neg


def make_abs(width: int) -> Unary:
    """`abs`: the smallest number stays itself."""
    mask, sign = (1 << width) - 1, 1 << (width - 1)

    def absolute(a: Value) -> Value:
        if isinstance(a, int):
            return -a & mask if a & sign else a
        return magnitude(a)

    return absolute


def make_min(width: int, signed: bool) -> Binary:
    """`min`."""
    bias = 1 << (width - 1) if signed else 0

    def minimum(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            return a if (a ^ bias) <= (b ^ bias) else b
        if not signed:
            return np.minimum(a, b)
        return np.minimum(as_number(a, width, True), as_number(b, width, True)).view(DTYPES[width])

    return minimum


def make_max(width: int, signed: bool) -> Binary:
    """`max`."""
    bias = 1 << (width - 1) if signed else 0

    def maximum(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            return a if (a ^ bias) >= (b ^ bias) else b
        if not signed:
            return np.maximum(a, b)
        return np.maximum(as_number(a, width, True), as_number(b, width, True)).view(DTYPES[width])

    return maximum


def make_relu(binary: Binary, width: int) -> Binary:
    """`.relu` of a signed integer operation: a negative result becomes 0 (`min.relu.s32`)."""
    clamp = make_max(width, signed=True)
    return lambda a, b: clamp(binary(a, b), 0)


def make_compare(comparison: Comparison, width: int, signed: bool = False) -> Compare:
    """One integer comparison of `setp`: bool for ints, an array of bool otherwise.

    `lo ls hi hs` are the unsigned spellings of `lt le gt ge`.
    """
    compare = _COMPARISONS[comparison]
    if not signed or comparison in ("eq", "ne"):
        return compare
    bias = 1 << (width - 1)  # flipping the sign bit maps signed order onto unsigned order
    return lambda a, b: compare(a ^ bias, b ^ bias)


def make_packed16(half: Callable[..., Value]) -> Callable[..., Value]:
    """Lift a 16-bit operation to the two halves of a 32-bit register (`max.u16x2`, `add.s16x2`)."""

    def packed(*operands: Value) -> Value:
        arrays = [x for x in operands if isinstance(x, np.ndarray)]
        if not arrays:
            low = half(*(x & 0xFFFF for x in operands))
            return low | half(*(x >> 16 for x in operands)) << 16
        count = len(arrays[0])
        halves = [
            np.ascontiguousarray(x).view(np.uint16)
            if isinstance(x, np.ndarray)
            else np.full(count, x, np.uint32).view(np.uint16)
            for x in operands
        ]
        result = half(*halves)
        assert isinstance(result, np.ndarray)
        return result.view(np.uint32)

    return packed

"""The integer arithmetic of PTX on raw bits: factories that bind width and signedness once.

`make_add(32)` returns a callable for `add.{u,s,b}32`.  Every callable is polymorphic as registers are
(`hopsim.isa.values`): Python ints in, Python int out; any array in, array of the unsigned dtype out.
Results are always masked to their width, so ints never leak high bits and arrays simply wrap.

Bit-field instructions live in `hopsim.isa.numerics.bitfield`, carries in `hopsim.isa.numerics.carry`.

    >>> make_add(32)(0xFFFFFFFF, 2)
    1
    >>> make_div(32, signed=True)(0xFFFFFFF9, 2) == 0xFFFFFFFD  # -7 / 2 = -3
    True

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


def make_mul_lo(width: int) -> Binary:
    """`mul.lo`: the low half of the product (the same for signed and unsigned)."""
    mask = (1 << width) - 1

    def mul_lo(a: Value, b: Value) -> Value:
        product = a * b
        return product & mask if isinstance(product, int) else product

    return mul_lo


def _multiply_high_u64(a: Array, b: Array) -> Array:
    """High 64 bits of the unsigned 128-bit product, from four 32-bit partial products."""
    low32 = 0xFFFFFFFF
    a0, a1, b0, b1 = a & low32, a >> 32, b & low32, b >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)  # at most (2**32-1)**2 + 2**32-1 < 2**64
    other = a0 * b1 + (middle & low32)
    return a1 * b1 + (middle >> 32) + (other >> 32)


def multiply_high(a: Array, b: Array, width: int, signed: bool) -> Array:
    """The high half of the product of two arrays of raw bits."""
    if width < 64:
        wide = _multiply_wide(a, b, width, signed)
        return (wide >> width).astype(DTYPES[width])
    high = _multiply_high_u64(a, b)
    if (
        signed
    ):  # a_signed = a - 2**64 [a < 0], so the high half loses b where a < 0, and a where b < 0
        high = high - np.where(a >> 63 != 0, b, 0) - np.where(b >> 63 != 0, a, 0)
    return high


def _multiply_wide(a: Array, b: Array, width: int, signed: bool) -> Array:
    if signed:
        wide = SIGNED_DTYPES[2 * width]
        narrow = SIGNED_DTYPES[width]
        return (a.view(narrow).astype(wide) * b.view(narrow).astype(wide)).view(DTYPES[2 * width])
    return a.astype(DTYPES[2 * width]) * b.astype(DTYPES[2 * width])


def make_mul_hi(width: int, signed: bool) -> Binary:
    """`mul.hi`: the high half of the double-width product."""
    mask = (1 << width) - 1

    def mul_hi(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            if signed:
                return (signed_int(a, width) * signed_int(b, width) >> width) & mask
            return a * b >> width
        return multiply_high(full_array(a, width), full_array(b, width), width, signed)

    return mul_hi


def make_mul_wide(width: int, signed: bool) -> Binary:
    """`mul.wide`: the whole product, twice as wide as its operands (16 or 32 bits)."""
    if width not in (16, 32):
        raise ValueError(f"mul.wide takes 16- or 32-bit operands, got {width}")
    sign = 1 << (width - 1)
    mask = (1 << 2 * width) - 1

    def mul_wide(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            return ((a ^ sign) - sign) * ((b ^ sign) - sign) & mask if signed else a * b
        return _multiply_wide(full_array(a, width), full_array(b, width), width, signed)

    return mul_wide


def _make_mad(multiply: Binary, result_width: int) -> Ternary:
    mask = (1 << result_width) - 1

    def mad(a: Value, b: Value, c: Value) -> Value:
        total = multiply(a, b) + c
        return total & mask if isinstance(total, int) else total

    return mad


def make_mad_hi(width: int, signed: bool) -> Ternary:
    """`mad.hi`: high half of a * b, plus c, wrapping."""
    return _make_mad(make_mul_hi(width, signed), width)


def make_mad_hi_sat() -> Ternary:
    """`mad.hi.sat.s32`: the sum clamps to the signed range."""
    multiply, add = make_mul_hi(32, signed=True), make_add_sat(32)
    return lambda a, b, c: add(multiply(a, b), c)


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


def _divide_ints(a: int, b: int) -> tuple[int, int]:
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        quotient = -quotient
    return quotient, a - quotient * b


def _magnitude(value: Array) -> Array:
    return np.where(value >> (8 * value.itemsize - 1) != 0, np.negative(value), value)


def _divide_arrays(a: Array, b: Array, signed: bool) -> tuple[Array, Array]:
    """Truncated quotient and remainder of raw bits where b is not 0 (elsewhere: divided by 1)."""
    safe = np.where(b == 0, np.ones_like(b), b)
    if not signed:
        return a // safe, a % safe
    left, right = _magnitude(a), _magnitude(safe)
    quotient, remainder = left // right, left % right
    top = 8 * a.itemsize - 1
    negative = (a ^ safe) >> top != 0
    quotient = np.where(negative, np.negative(quotient), quotient)
    return quotient, np.where(a >> top != 0, np.negative(remainder), remainder)


def make_div(width: int, signed: bool) -> Binary:
    """`div`: truncates toward zero; the smallest number over -1 wraps to itself.

    A zero divisor gives all ones (PTX ISA 8.7 "div": machine-specific; recorded on an H100, every width).
    """
    mask = (1 << width) - 1
    sign = 1 << (width - 1 if signed else width)

    def div(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                return mask
            if a < sign and b < sign:  # neither is negative
                return a // b
            return _divide_ints(signed_int(a, width), signed_int(b, width))[0] & mask
        left, right = full_array(a, width), full_array(b, width)
        return np.where(
            right == 0, DTYPES[width].type(mask), _divide_arrays(left, right, signed)[0]
        )

    return div


def make_rem(width: int, signed: bool) -> Binary:
    """`rem`: the remainder takes the sign of the dividend.

    A zero divisor gives all ones (PTX ISA 8.7 "rem": machine-specific; recorded on an H100, every width).
    """
    mask = (1 << width) - 1
    sign = 1 << (width - 1 if signed else width)

    def rem(a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                return mask
            if a < sign and b < sign:  # neither is negative
                return a % b
            return _divide_ints(signed_int(a, width), signed_int(b, width))[1] & mask
        left, right = full_array(a, width), full_array(b, width)
        return np.where(
            right == 0, DTYPES[width].type(mask), _divide_arrays(left, right, signed)[1]
        )

    return rem


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
        return _magnitude(a)

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


def make_dp4a(a_signed: bool, b_signed: bool) -> Ternary:
    """`dp4a`: c + the dot product of four bytes, wrapping at 32 bits."""

    def dp4a(a: Value, b: Value, c: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int) and isinstance(c, int):
            total = c
            for shift in (0, 8, 16, 24):
                left, right = a >> shift & 0xFF, b >> shift & 0xFF
                left = (left ^ 0x80) - 0x80 if a_signed else left
                right = (right ^ 0x80) - 0x80 if b_signed else right
                total += left * right
            return total & 0xFFFFFFFF
        products = _parts(a, 8, a_signed) * _parts(b, 8, b_signed)
        return products.sum(axis=1, dtype=np.int32).view(np.uint32) + c

    return dp4a


def make_dp2a(a_signed: bool, b_signed: bool, half: Literal["lo", "hi"]) -> Ternary:
    """`dp2a`: c + two 16-bit parts of a times the low or high two bytes of b, wrapping at 32 bits."""
    first = 0 if half == "lo" else 2

    def dp2a(a: Value, b: Value, c: Value) -> Value:
        left = _parts(a, 16, a_signed)
        right = _parts(b, 8, b_signed)[:, first : first + 2]
        total = (left * right).sum(axis=1, dtype=np.int32).view(np.uint32)
        if isinstance(a, int) and isinstance(b, int) and isinstance(c, int):
            return int(total[0]) + c & 0xFFFFFFFF
        return total + c

    return dp2a


def _parts(value: Value, part_bits: int, signed: bool) -> Array:
    """Split 32-bit words into numbers of `part_bits`, int32 array (lanes, 32 / part_bits)."""
    dtype = SIGNED_DTYPES[part_bits] if signed else DTYPES[part_bits]
    words = np.ascontiguousarray(full_array(value, 32))
    return words.view(dtype).reshape(len(words), -1).astype(np.int32)

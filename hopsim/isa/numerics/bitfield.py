"""Shifts and bit fields, cnot and prmt of PTX on raw bits: factories like those of `integer`.

    >>> make_shl(32)(1, 40), make_bfe(32, signed=True)(0x0F0, 4, 4) == 0xFFFFFFFF
    (0, True)

Source: PTX ISA 8.7 "Logic and Shift Instructions", "Integer Arithmetic Instructions" (bfe, bfi, bfind,
brev, clz, fns, popc, szext, bmsk), "Data Movement and Conversion Instructions" (prmt).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from hopsim.isa.numerics.integer import (
    SIGNED_DTYPES,
    Binary,
    Ternary,
    Unary,
    full_array,
)
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Value

Quaternary = Callable[[Value, Value, Value, Value], Value]

PrmtMode = Literal["", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]

# The byte selectors that the special modes of prmt use, by the low two bits of the control word.
_PRMT_SELECTORS: Final[dict[str, tuple[int, int, int, int]]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
_REVERSED_BYTE: Final = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)


def make_cnot(width: int) -> Unary:
    """`cnot`: 1 where the operand is 0, else 0."""

    def cnot(a: Value) -> Value:
        return int(a == 0) if isinstance(a, int) else (a == 0).astype(DTYPES[width])

    return cnot


def _shift_amount(amount: Value, width: int) -> Array:
    """Clamp to the width before narrowing; numpy then shifts every bit out, as PTX does."""
    return np.minimum(full_array(amount, 32), width).astype(DTYPES[width])


def make_shl(width: int) -> Binary:
    """`shl`: amounts (32 bits, unsigned) of the width or more give 0."""
    mask = (1 << width) - 1

    def shl(a: Value, b: Value) -> Value:
        if isinstance(b, int):
            if b >= width:
                return 0 if isinstance(a, int) else np.zeros_like(a)
            return a << b & mask if isinstance(a, int) else a << b
        return full_array(a, width) << _shift_amount(b, width)

    return shl


def make_shr(width: int, signed: bool) -> Binary:
    """`shr`: unsigned fills with 0, signed with the sign; larger amounts clamp to the width."""
    mask = (1 << width) - 1
    sign = 1 << (width - 1) if signed else 0
    signed_dtype, dtype = SIGNED_DTYPES[width], DTYPES[width]

    def shr(a: Value, b: Value) -> Value:
        if isinstance(b, int):
            if isinstance(a, int):
                return (a ^ sign) - sign >> min(b, width) & mask if signed else a >> b
            if signed:
                return (a.view(signed_dtype) >> min(b, width - 1)).view(dtype)
            return a >> b if b < width else np.zeros_like(a)
        amount = _shift_amount(b, width)
        if signed:
            words = full_array(a, width).view(signed_dtype)
            return (words >> amount.astype(signed_dtype)).view(dtype)
        return full_array(a, width) >> amount

    return shr


def make_shf(direction: Literal["l", "r"], mode: Literal["clamp", "wrap"]) -> Ternary:
    """`shf`: shift the 64-bit value [b:a] (b on top); `l` keeps the top word, `r` the bottom one."""
    left = direction == "l"

    def shf(a: Value, b: Value, c: Value) -> Value:
        if isinstance(c, int):
            amount: Any = c & 31 if mode == "wrap" else min(c, 32)
        else:
            amount = (c & 31 if mode == "wrap" else np.minimum(c, 32)).astype(np.uint64)
        if isinstance(a, int) and isinstance(b, int) and isinstance(c, int):
            pair = b << 32 | a
            return (pair << amount >> 32 if left else pair >> amount) & 0xFFFFFFFF
        words = full_array(b, 32).astype(np.uint64) << 32 | full_array(a, 32)
        # The top word of a left shift by n is the bottom word of a right shift by 32 - n.
        return (words >> ((32 - amount) if left else amount)).astype(np.uint32)

    return shf


def _field_limit(width: int) -> int:
    """The bits of position and length that count: 8 of them, or all in the emulated 64-bit forms.

    Source: PTX ISA 8.7 "bfe", "bfi" (32 bits); recorded on an H100 (64 bits).
    """
    return 0xFF if width == 32 else 0xFFFFFFFF


def make_bfe(width: int, signed: bool) -> Ternary:
    """`bfe`: field of c bits at position b; signed fills with its top bit.

    A field that leaves the word takes the word's top bit as its sign; an empty field is 0.
    """
    shl, shr = make_shl(width), make_shr(width, signed)
    mask, limit = (1 << width) - 1, _field_limit(width)

    def bfe(a: Value, b: Value, c: Value) -> Value:
        if isinstance(b, int) and isinstance(c, int):
            pos, length = b & limit, min(c & limit, width)
            if not signed:
                field = mask >> (width - length)
                return (a >> pos if isinstance(a, int) else shr(a, pos)) & field
            if length == 0:
                return 0 if isinstance(a, int) else np.zeros_like(a)
            up = width - min(pos + length, width)
            return shr(shl(a, up), up + pos)
        # int64: a position near 2**32 plus a length must not wrap.
        position = (full_array(b, 32) & limit).astype(np.int64)
        size = (full_array(c, 32) & limit).astype(np.int64)
        up_shift = width - np.minimum(position + size, width)
        field_bits = shr(shl(full_array(a, width), up_shift), up_shift + position)
        return np.where(size == 0, DTYPES[width].type(0), field_bits)

    return bfe


def make_bfi(width: int) -> Quaternary:
    """`bfi f, a, b, c, d`: put the low d bits of a into b at position c."""
    shl = make_shl(width)
    mask, limit = (1 << width) - 1, _field_limit(width)

    def bfi(a: Value, b: Value, c: Value, d: Value) -> Value:
        if isinstance(c, int) and isinstance(d, int):
            pos, length = min(c & limit, width), min(d & limit, width)
            field = ((1 << length) - 1) << pos & mask
            return b & (mask ^ field) | shl(a, pos) & field
        position, size = full_array(c, 32) & limit, full_array(d, 32) & limit
        ones = shl(1, size)
        fields = shl(ones - 1, position)  # size >= width: 0 - 1 wraps to all ones
        return b & (fields ^ mask) | shl(full_array(a, width), position) & fields

    return bfi


def _top_bit(words: Array, width: int) -> Array:
    """Position of the highest set bit, int64; -1 for 0.  Exact: halves below 2**32 are exact in float64."""
    high = words >> 32 if width == 64 else np.zeros_like(words)
    low = words & 0xFFFFFFFF if width == 64 else words
    part = np.where(high != 0, high, low).astype(np.float64).view(np.int64)
    return np.where(words == 0, -1, (part >> 52) - 1023 + 32 * (high != 0))


def make_bfind(width: int, signed: bool, shiftamt: bool = False) -> Unary:
    """`bfind`: position of the top bit that is not a sign bit, u32; 0xFFFFFFFF if there is none.

    With `.shiftamt`: how far to shift left to bring that bit to the top.
    """
    mask, sign = (1 << width) - 1, 1 << (width - 1)

    def bfind(a: Value) -> Value:
        if isinstance(a, int):
            top = (a ^ mask if signed and a & sign else a).bit_length() - 1
            return 0xFFFFFFFF if top < 0 else width - 1 - top if shiftamt else top
        words = np.where(a & sign != 0, a ^ mask, a) if signed else a
        tops = _top_bit(words, width)
        found = width - 1 - tops if shiftamt else tops
        return np.where(tops < 0, 0xFFFFFFFF, found).astype(np.uint32)

    return bfind


def make_clz(width: int) -> Unary:
    """`clz`: leading zeros, u32; the width for 0."""

    def clz(a: Value) -> Value:
        if isinstance(a, int):
            return width - a.bit_length()
        return (width - 1 - _top_bit(a, width)).astype(np.uint32)

    return clz


def make_popc(width: int) -> Unary:
    """`popc`: number of set bits, u32."""
    del width

    def popc(a: Value) -> Value:
        return a.bit_count() if isinstance(a, int) else np.bitwise_count(a).astype(np.uint32)

    return popc


def make_fns() -> Ternary:
    """`fns`: position of the n-th set bit of a mask from a base on, u32; 0xFFFFFFFF if there is none.

    A negative n counts down; with n = 0 only the bit at the base itself counts.  A base past 31 finds nothing.
    The least n gives 0, whatever the others are: so an H100 does (tests/silicon/probes/scalar.npz).
    """

    def nth(mask: int, base: int, n: int) -> int:
        if n == 1 << 31:
            return 0
        if base > 31:
            return _NONE
        if n == 0:
            return base if mask >> base & 1 else _NONE
        places = range(base, 32) if n < 1 << 31 else range(base, -1, -1)
        found = [place for place in places if mask >> place & 1]
        count = n if n < 1 << 31 else (1 << 32) - n
        return found[count - 1] if count <= len(found) else _NONE

    def fns(mask: Value, base: Value, n: Value) -> Value:
        if isinstance(mask, int) and isinstance(base, int) and isinstance(n, int):
            return nth(mask, base, n)
        given = np.broadcast_arrays(*(np.asarray(one, np.uint32) for one in (mask, base, n)))
        return np.array(
            [nth(*one) for one in zip(*(a.tolist() for a in given), strict=True)], np.uint32
        )

    return fns


_NONE: Final = 0xFFFFFFFF


def make_brev(width: int) -> Unary:
    """`brev`: bit reversal."""
    size = width // 8

    def brev(a: Value) -> Value:
        if isinstance(a, int):
            return int.from_bytes(a.to_bytes(size, "little").translate(_TRANSLATE), "big")
        rows = np.ascontiguousarray(a).view(np.uint8).reshape(len(a), size)
        reversed_rows = np.ascontiguousarray(_REVERSED_BYTE[rows][:, ::-1])
        return reversed_rows.view(DTYPES[width]).reshape(len(a))

    return brev


_TRANSLATE: Final = _REVERSED_BYTE.tobytes()


def make_prmt(mode: PrmtMode = "") -> Ternary:
    """`prmt`: four bytes out of the eight of (b, a); with no mode each selector nibble also may copy a sign."""

    def prmt(a: Value, b: Value, c: Value) -> Value:
        if isinstance(c, int):
            selector = _PRMT_SELECTORS[mode][c & 3] if mode else c & 0xFFFF
            nibbles = [selector >> shift & 15 for shift in (0, 4, 8, 12)]
            if isinstance(a, int) and isinstance(b, int):
                return _permute_int(b << 32 | a, nibbles)
            pair = _byte_pairs(a, b)
            chosen = pair[:, [n & 7 for n in nibbles]]
            for byte, nibble in enumerate(nibbles):
                if nibble & 8:
                    chosen[:, byte] = np.where(chosen[:, byte] & 0x80, 0xFF, 0)
            return np.ascontiguousarray(chosen).view(np.uint32).reshape(len(pair))
        control = np.array(_PRMT_SELECTORS[mode], np.uint32)[c & 3] if mode else c
        fields = control[:, None] >> np.array([0, 4, 8, 12], np.uint32) & 15
        pair = np.broadcast_to(_byte_pairs(a, b), (len(control), 8))
        taken = np.take_along_axis(pair, (fields & 7).astype(np.intp), axis=1)
        signs = np.where(taken & 0x80 != 0, np.uint8(0xFF), np.uint8(0))
        return np.where(fields & 8 != 0, signs, taken).view(np.uint32).reshape(len(control))

    return prmt


def _permute_int(pair: int, nibbles: list[int]) -> int:
    result = 0
    for position, nibble in enumerate(nibbles):
        byte = pair >> 8 * (nibble & 7) & 0xFF
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * position
    return result


def _byte_pairs(a: Value, b: Value) -> Array:
    """The eight bytes of (b, a), least significant first, array (lanes, 8)."""
    words = full_array(b, 32).astype(np.uint64) << 32 | full_array(a, 32)
    return words.view(np.uint8).reshape(len(words), 8)


def make_lop3(table: int) -> Ternary:
    """`lop3.b32` with the 8-bit truth table `table` (index: a * 4 + b * 2 + c)."""
    if not 0 <= table <= 0xFF:
        raise ValueError(f"lop3 takes an 8-bit table, got {table:#x}")
    terms = [index for index in range(8) if table >> index & 1]
    complement = len(terms) > 4
    if complement:
        terms = [index for index in range(8) if not table >> index & 1]
    flips = [tuple(0 if i >> bit & 1 else 0xFFFFFFFF for bit in (2, 1, 0)) for i in terms]

    def lop3(a: Value, b: Value, c: Value) -> Value:
        result: Any = (a ^ a) | (b ^ b) | (c ^ c)  # zero, of the operands' common shape
        for flip_a, flip_b, flip_c in flips:
            result = result | (a ^ flip_a) & (b ^ flip_b) & (c ^ flip_c)
        return result ^ 0xFFFFFFFF if complement else result

    return lop3


def _field_size(value: Value, mode: Literal["clamp", "wrap"]) -> Value:
    if mode == "wrap":
        return value & 31
    return min(value, 32) if isinstance(value, int) else np.minimum(value, 32)


def make_bmsk(mode: Literal["clamp", "wrap"]) -> Binary:
    """`bmsk.b32`: b ones starting at bit a; both clamp to 32 or wrap modulo 32."""
    shl = make_shl(32)
    full = make_bfi(32)

    def bmsk(a: Value, b: Value) -> Value:
        start, size = _field_size(a, mode), _field_size(b, mode)
        if isinstance(start, int) and isinstance(size, int):
            return shl((1 << size) - 1, start)
        return full(0xFFFFFFFF, 0, start, size)

    return bmsk


def make_szext(mode: Literal["clamp", "wrap"], signed: bool) -> Binary:
    """`szext.{u32,s32}`: extend the low b bits of a; b clamps to 32 or wraps modulo 32."""
    extract = make_bfe(32, signed)
    return lambda a, b: extract(a, 0, _field_size(b, mode))

"""Inputs of probes as raw bits: edges of every type, and random bits that no library version changes.

Random bits come from PCG64's raw stream, which numpy promises to keep; nothing here uses its distributions.

>>> words(7, 2).tolist()
[11530976094092348043, 16550673365885938325]
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.formats import FORMATS, FloatFormat
from hopsim.isa.types import TYPES
from hopsim.isa.values import Array

Words = NDArray[np.uint64]

_SHIFTS = (
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    17,
    24,
    31,
    32,
    33,
    47,
    63,
    64,
    65,
    127,
    255,
    256,
    0xFFFF,
    0x80000000,
    0xFFFFFFFF,
)
# f32 patterns at which some conversion changes its mind: halves, limits of integers and of narrower floats, ties.
_F32 = (
    0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0x40600000, 0x3EFFFFFF, 0x3F000001, 0x42FF0000, 0x42FEFFFF,
    0x437F0000, 0x437F8000, 0x43800000, 0x46FFFE00, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x477FFF80, 0x4B000001,
    0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000, 0x5EFFFFFF, 0x5F000000,
    0xDF000000, 0x5F7FFFFF, 0x5F800000, 0x387FE000, 0x38800000, 0x33800000, 0x33000000, 0x33000001, 0x32FFFFFF,
    0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F7F7FFF, 0x7F7F8000, 0x7F7F0000, 0x3F801000, 0x3F803000,
    0x3F800FFF, 0x3F801001, 0x7F7FF000, 0x43E00000, 0x43E80000, 0x43E7FFFF, 0x43F00000, 0x47600000, 0x47700000,
    0x476FFFFF, 0x3B800000, 0x3B000000, 0x3A800000, 0x37800000, 0x37000000, 0x36800000, 0x3CFFFFFF, 0x00400000,
    0x00000002, 0x80400000, 0x7F802000, 0x7FBFFFFF, 0x7FC00001, 0xFFC12345, 0x40490FDB, 0xC0490FDB, 0x3FC90FDB,
    0x42FC0000, 0x42FE0000, 0x43000000, 0xC2FC0000, 0xC2FE0000, 0xC3160000, 0x7E800000, 0x7F000000, 0x7E800001,
)  # fmt: skip


def words(seed: int, count: int) -> Words:
    """Return `count` random 64-bit words."""
    return np.asarray(np.random.PCG64(seed).random_raw(count), np.uint64)


def below(seed: int, count: int, limit: int) -> NDArray[np.int64]:
    """Return `count` numbers from 0 to limit - 1."""
    return ((words(seed, count) >> np.uint64(33)) % np.uint64(limit)).astype(np.int64)


def _float_edges(fmt: FloatFormat) -> list[int]:
    step = 1 << fmt.dropped_bits
    smallest_normal = step << fmt.fraction_bits
    nan = fmt.infinity | step
    core = [
        0, step, smallest_normal - step, smallest_normal, fmt.one, fmt.one + step, fmt.one - step, fmt.largest,
        fmt.infinity, fmt.canonical_nan, nan, 3 * step,
    ]  # fmt: skip
    found = [bits | sign for bits in core for sign in (0, fmt.sign_bit)]
    half, two = fmt.one - smallest_normal, fmt.one + smallest_normal
    found += [
        half,
        two,
        two + smallest_normal,
        half + step,
        half | fmt.sign_bit,
        two | fmt.sign_bit,
    ]
    found += [fmt.infinity | (fmt.infinity & -fmt.infinity) - step, fmt.sign_bit | nan | step << 1]
    return found


@lru_cache(maxsize=64)
def edges(name: str) -> tuple[int, ...]:
    """Return the telling values of a type, the most telling first.

    `name` is a PTX type, or `shift` (amounts and positions) or `pred`.
    """
    if name == "pred":
        return (0, 1)
    if name == "shift":
        return _SHIFTS
    kind = TYPES[name]
    if name in FORMATS:
        found = _float_edges(FORMATS[name])
        if name in ("f32", "tf32"):
            found += _F32
        if name == "f64":
            as_f32 = np.array(_F32, np.uint32).view(np.float32)
            found += np.asarray(as_f32[~np.isnan(as_f32)], np.float64).view(np.uint64).tolist()
            found += [
                0x47EFFFFFEFFFFFFF,
                0x47EFFFFFF0000000,
                0x36A0000000000000,
                0x3690000000000001,
            ]
        return tuple(dict.fromkeys(found))
    if kind.kind == "packed" and name[:-2] in FORMATS:
        part = FORMATS[name[:-2]]
        singles = edges(part.name)
        pairs = [low | singles[-1 - i] << part.width_bits for i, low in enumerate(singles)]
        return tuple(dict.fromkeys(pairs + [low << part.width_bits | 1 for low in singles]))
    width = kind.width_bits
    top, ones = 1 << (width - 1), (1 << width) - 1
    found = [0, 1, ones, top, top - 1, 2, ones - 1, top + 1, 3, 7, 10, ones // 3, ones // 5]
    found += [255, 256, 127, 128, 0x7F80 & ones, 0xFF00 & ones, top | 1, ones ^ 0x80]
    if width > 16:
        found += [
            0xFFFF,
            0x10000,
            0x7FFF,
            0x8000,
            0xFFFF8000 & ones,
            0xFFFFFF80 & ones,
            16777217,
            33554435,
        ]
    if width > 32:
        found += [
            ones ^ 0xFFFF,
            1 << 32,
            (1 << 32) - 1,
            (1 << 31) - 1,
            ones << 31 & ones,
            (1 << 53) + 1,
            (1 << 54) + 6,
        ]
    return tuple(dict.fromkeys(found))


def operands(name: str, position: int | None, count: int) -> Words:
    """Return `count` values of a type for operand number `position`, in 64-bit words.

    The first half pairs the sixteen most telling values of neighbouring positions with each other, or (position None:
    the only operand) holds all telling values; the rest mixes all telling values and random bits.
    """
    telling = np.array(edges(name), np.uint64)
    index = np.arange(count)
    if position is None:
        result = telling[index % len(telling)]
        position = 4
    else:
        core = telling[:16]
        order = (index // 16, index % 16, (index * 7 + index // 16) % 16, (index * 5 + 3) % 16)[
            position
        ]
        result = core[order % len(core)]
    seed = sum(map(ord, name)) * 10 + position
    rest = slice(count // 2, count)
    size = count - count // 2
    random = words(seed, size)
    if name == "shift":
        random = random % np.uint64(70)
    choice = below(seed + 1, size, 2).astype(np.bool_)
    pick = telling[(np.arange(size) + below(seed + 2, size, 3)) % len(telling)]
    mixed = np.where(choice, random, pick)
    if name in FORMATS and FORMATS[name].width_bits > 8:
        mixed = np.where(
            below(seed + 3, size, 3) == 0, moderate(FORMATS[name], seed + 4, size), mixed
        )
    result[rest] = mixed
    width = {"pred": 1, "shift": 32}.get(name) or TYPES[name].width_bits
    return result & np.uint64((1 << width) - 1)


def moderate(fmt: FloatFormat, seed: int, count: int, reach: int = 20) -> Words:
    """Return bits of floats whose exponents lie within `reach` of that of 1."""
    reach = min(reach, fmt.bias - 1)
    random = words(seed, count)
    field_bits = fmt.fraction_bits + fmt.dropped_bits
    exponent = (random >> np.uint64(40)) % np.uint64(2 * reach + 1) + np.uint64(fmt.bias - reach)
    fraction = (
        random & np.uint64((1 << field_bits) - 1)
        if field_bits < 40
        else _wide(seed, count, field_bits)
    )
    sign = random >> np.uint64(63) << np.uint64(fmt.width_bits - 1)
    return sign | exponent << np.uint64(field_bits) | fraction


def _wide(seed: int, count: int, bits: int) -> Words:
    return words(seed + 1, count) & np.uint64((1 << bits) - 1)


# --- matrices -------------------------------------------------------------------------------------

DISTRIBUTIONS = ("normal", "wide", "subnormal", "special", "cancel", "raw", "huge", "corners")
_DTYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def matrix(
    fmt: FloatFormat, distribution: str, seed: int, shape: tuple[int, int], *, is_c: bool = False
) -> Array:
    """Return a matrix of raw bits.

    Args:
        distribution: one of `DISTRIBUTIONS`: ordinary numbers; exponents over the middle half of the range;
            mostly subnormals; NaN, Inf and zeros among ordinary numbers; pairs along K that cancel; any bits; an
            accumulator far above or below the products; zeros, subnormals and powers of two at the ends of the range.
        is_c: whether it is the accumulator.
    """
    count = shape[0] * shape[1]
    random = words(seed, count)
    step_bits = fmt.fraction_bits + fmt.dropped_bits
    ones = np.uint64((1 << step_bits) - 1)
    if distribution == "raw":
        bits = random & np.uint64(fmt.mask)
    elif distribution == "normal":
        bits = moderate(fmt, seed, count, 3)
    elif distribution == "wide":
        bits = moderate(fmt, seed, count, fmt.bias // 2)
    elif distribution == "subnormal":
        exponent = np.where(below(seed + 1, count, 4) > 0, 0, below(seed + 2, count, 4)).astype(
            np.uint64
        )
        bits = (
            random >> np.uint64(63) << np.uint64(fmt.width_bits - 1)
            | exponent << np.uint64(step_bits)
            | random & ones
        )
    elif distribution == "huge":
        near = moderate(fmt, seed, count, 3)
        far = moderate(fmt, seed, count, 1) + np.uint64((fmt.bias * 3 // 4) << step_bits)
        bits = np.where(below(seed + 1, count, 2) == 0, near, far) if is_c else near
    elif distribution == "special":
        table = np.array(_float_edges(fmt), np.uint64)
        rare = below(seed + 1, count, 24 if is_c else 48) == 0
        bits = np.where(
            rare, table[below(seed + 2, count, len(table))], moderate(fmt, seed, count, 3)
        )
    elif distribution == "cancel":
        bits = moderate(fmt, seed, count, 1).reshape(shape)
        if is_c:
            bits = moderate(fmt, seed, count, 1)
        else:
            bits[:, 1::2] = bits[:, 0::2] ^ np.uint64(fmt.sign_bit) * (
                below(seed + 1, bits[:, 1::2].size, 2)
                .reshape(bits[:, 1::2].shape)
                .astype(np.uint64)
            )
    else:
        table = np.array(
            [b for b in _float_edges(fmt) if b & (fmt.sign_bit - 1) < fmt.infinity], np.uint64
        )
        powers = below(seed + 1, count, (1 << fmt.exponent_bits) - 1).astype(
            np.uint64
        ) << np.uint64(step_bits)
        bits = np.where(
            below(seed + 2, count, 2) == 0, table[below(seed + 3, count, len(table))], powers
        )
    return np.ascontiguousarray(bits.reshape(shape).astype(_DTYPES[fmt.width_bits]))

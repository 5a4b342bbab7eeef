"""Integer instructions against plain Python arithmetic: all-int calls, all-array calls and mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.isa.numerics import bitfield, carry, integer, integer_division, integer_products
from hopsim.isa.types import DTYPES

WIDTHS = (8, 16, 32, 64)


def signed(x: int, width: int) -> int:
    return x - (1 << width) if x >> (width - 1) else x


def number(x: int, width: int, is_signed: bool) -> int:
    return signed(x, width) if is_signed else x


def truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def words(width: int, seed: int, count: int = 96) -> list[int]:
    """Random words, many of them small, near the ends, or with few bits."""
    rng = np.random.default_rng([width, seed])
    top = (1 << width) - 1
    edges = [
        0,
        1,
        2,
        3,
        top,
        top - 1,
        top >> 1,
        (top >> 1) + 1,
        (top >> 1) + 2,
        31,
        32,
        33,
        64,
        255,
    ]
    drawn = [int(x) for x in rng.integers(0, top, count, np.uint64, endpoint=True)]
    drawn = [x >> int(s) for x, s in zip(drawn, rng.integers(0, width, count), strict=True)]
    return [x & top for x in (edges + drawn)[:count]] if seed == 0 else drawn[::-1][:count]


def check(
    function: Callable[..., object],
    oracle: Callable[..., int],
    *columns: list[int],
    widths: tuple[int, ...],
    result: int,
) -> None:
    """The function agrees with the oracle on ints, on arrays, and with each operand in turn an int."""
    dtypes = [DTYPES[w] for w in widths]
    want = [oracle(*row) for row in zip(*columns, strict=True)]
    got = [function(*row) for row in zip(*columns, strict=True)]
    assert got == want
    assert {type(x) for x in got} == {type(want[0])}
    arrays = [np.array(c, d) for c, d in zip(columns, dtypes, strict=True)]
    out = function(*arrays)
    assert isinstance(out, np.ndarray)
    assert out.dtype == (np.bool_ if isinstance(want[0], bool) else DTYPES[result])
    assert out.tolist() == want
    if len(columns) > 1:
        for fixed in range(len(columns)):
            for value in columns[fixed][::12]:
                mixed = [value if i == fixed else a for i, a in enumerate(arrays)]
                expected = [
                    oracle(*(value if i == fixed else x for i, x in enumerate(row)))
                    for row in zip(*columns, strict=True)
                ]
                out = function(*mixed)
                assert isinstance(out, np.ndarray)
                assert out.tolist() == expected


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("is_signed", [True, False])
def test_binary_arithmetic(width: int, is_signed: bool) -> None:
    a, b = words(width, 0), words(width, 1)
    mask = (1 << width) - 1

    def n(x: int) -> int:
        return number(x, width, is_signed)

    cases: dict[str, tuple[Callable[..., object], Callable[[int, int], int]]] = {
        "add": (integer.make_add(width), lambda x, y: (x + y) & mask),
        "sub": (integer.make_sub(width), lambda x, y: (x - y) & mask),
        "mul.lo": (integer_products.make_mul_lo(width), lambda x, y: x * y & mask),
        "mul.hi": (
            integer_products.make_mul_hi(width, is_signed), lambda x, y: n(x) * n(y) >> width & mask,
        ),
        "min": (integer.make_min(width, is_signed), lambda x, y: min(n(x), n(y)) & mask),
        "max": (integer.make_max(width, is_signed), lambda x, y: max(n(x), n(y)) & mask),
        "div": (
            integer_division.make_div(width, is_signed),
            lambda x, y: truncated(n(x), n(y)) & mask if y else mask,
        ),
        "rem": (
            integer_division.make_rem(width, is_signed),
            lambda x, y: (n(x) - n(y) * truncated(n(x), n(y))) & mask if y else mask,
        ),
    }  # fmt: skip
    for function, oracle in cases.values():
        check(function, oracle, a, b, widths=(width, width), result=width)
        check(function, oracle, b, a, widths=(width, width), result=width)


@pytest.mark.parametrize("width", WIDTHS)
def test_unary_arithmetic(width: int) -> None:
    a = words(width, 0)
    mask = (1 << width) - 1
    check(integer.make_neg(width), lambda x: -x & mask, a, widths=(width,), result=width)
    check(
        integer.make_abs(width), lambda x: abs(signed(x, width)) & mask, a,
        widths=(width,), result=width,
    )  # fmt: skip
    check(bitfield.make_cnot(width), lambda x: int(x == 0), a, widths=(width,), result=width)


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("is_signed", [True, False])
def test_wide_products(width: int, is_signed: bool) -> None:
    a, b = words(width, 0), words(width, 1)
    mask = (1 << 2 * width) - 1

    def n(x: int) -> int:
        return number(x, width, is_signed)

    check(
        integer_products.make_mul_wide(width, is_signed), lambda x, y: n(x) * n(y) & mask, a, b,
        widths=(width, width), result=2 * width,
    )  # fmt: skip


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("is_signed", [True, False])
def test_three_operand_arithmetic(width: int, is_signed: bool) -> None:
    columns = words(width, 0), words(width, 1), words(width, 2)
    mask = (1 << width) - 1

    def n(x: int) -> int:
        return number(x, width, is_signed)

    cases = (
        (
            integer_products.make_mad_hi(width, is_signed),
            lambda x, y, z: ((n(x) * n(y) >> width) + z) & mask,
        ),
        (integer.make_sad(width, is_signed), lambda x, y, z: (abs(n(x) - n(y)) + z) & mask),
    )
    for function, oracle in cases:
        check(function, oracle, *columns, widths=(width,) * 3, result=width)


def test_saturating_sums() -> None:
    a, b = words(32, 0), words(32, 1)

    def clamp(x: int) -> int:
        return min(max(x, -(2**31)), 2**31 - 1) & 0xFFFFFFFF

    check(
        integer.make_add_sat(), lambda x, y: clamp(signed(x, 32) + signed(y, 32)), a, b,
        widths=(32, 32), result=32,
    )  # fmt: skip
    check(
        integer.make_sub_sat(), lambda x, y: clamp(signed(x, 32) - signed(y, 32)), a, b,
        widths=(32, 32), result=32,
    )  # fmt: skip
    check(
        integer_products.make_mad_hi_sat(),
        lambda x, y, z: clamp((signed(x, 32) * signed(y, 32) >> 32) + signed(z, 32)),
        a, b, words(32, 2), widths=(32, 32, 32), result=32,
    )  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("is_signed", [True, False])
def test_comparisons(width: int, is_signed: bool) -> None:
    a, b = words(width, 0), words(width, 1)
    b[::5] = a[::5]
    oracles: dict[integer.Comparison, Callable[[int, int], bool]] = {
        "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
    }  # fmt: skip
    for name, oracle in oracles.items():
        check(
            integer.make_compare(name, width, is_signed),
            lambda x, y, f=oracle: f(number(x, width, is_signed), number(y, width, is_signed)),
            a, b, widths=(width, width), result=width,
        )  # fmt: skip
    for spelling, plain in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
        left, right = integer.make_compare(spelling, width), oracles[plain]
        check(left, right, a, b, widths=(width, width), result=width)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_shifts(width: int) -> None:
    a = words(width, 0)
    amounts = [*range(70), 255, 256, 2**16, 2**16 + 1, 2**32 - 1, *words(32, 3)][: len(a)]
    mask = (1 << width) - 1
    cases = (
        (bitfield.make_shl(width), lambda x, s: (x << min(s, 64)) & mask),
        (bitfield.make_shr(width, signed=False), lambda x, s: x >> s),
        (bitfield.make_shr(width, signed=True), lambda x, s: signed(x, width) >> s & mask),
    )
    for function, oracle in cases:
        check(function, oracle, a, amounts, widths=(width, 32), result=width)


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(mode) -> None:
    a, b = words(32, 0), words(32, 1)
    amounts = [*range(60), 255, 2**31, *words(32, 3)][: len(a)]

    def amount(s: int) -> int:
        return s & 31 if mode == "wrap" else min(s, 32)

    check(
        bitfield.make_shf("l", mode),
        lambda x, y, s: ((y << 32 | x) << amount(s) >> 32) & 0xFFFFFFFF,
        a, b, amounts, widths=(32, 32, 32), result=32,
    )  # fmt: skip
    check(
        bitfield.make_shf("r", mode), lambda x, y, s: (y << 32 | x) >> amount(s) & 0xFFFFFFFF,
        a, b, amounts, widths=(32, 32, 32), result=32,
    )  # fmt: skip


def bfe_by_bits(a: int, pos: int, length: int, width: int, is_signed: bool) -> int:
    """The loop of the PTX manual, in our own words; 64-bit forms take position and length whole."""
    msb = width - 1
    if width == 32:
        pos, length = pos & 255, length & 255
    fill = 0 if not is_signed or length == 0 else a >> min(pos + length - 1, msb) & 1
    result = 0
    for i in range(width):
        bit = a >> (pos + i) & 1 if i < length and pos + i <= msb else fill
        result |= bit << i
    return result


def bfi_by_bits(a: int, b: int, pos: int, length: int, width: int) -> int:
    if width == 32:
        pos, length = pos & 255, length & 255
    for i in range(min(length, width)):
        if pos + i < width:
            b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return b


@pytest.mark.parametrize("width", [32, 64])
def test_bit_fields(width: int) -> None:
    a, b = words(width, 0), words(width, 1)
    rng = np.random.default_rng(4)
    pos = [
        0,
        0,
        31,
        32,
        63,
        64,
        255,
        256,
        257,
        2**32 - 1,
        5,
        *(int(x) for x in rng.integers(0, 70, len(a))),
    ][: len(a)]
    size = [
        0,
        32,
        1,
        32,
        64,
        1,
        255,
        256,
        9,
        7,
        2**32 - 1,
        *(int(x) for x in rng.integers(0, 70, len(a))),
    ][: len(a)]
    for is_signed in (False, True):
        check(
            bitfield.make_bfe(width, is_signed),
            lambda x, p, n, s=is_signed: bfe_by_bits(x, p, n, width, s),
            a, pos, size, widths=(width, 32, 32), result=width,
        )  # fmt: skip
    check(
        bitfield.make_bfi(width), lambda x, y, p, n: bfi_by_bits(x, y, p, n, width),
        a, b, pos, size, widths=(width, width, 32, 32), result=width,
    )  # fmt: skip


def top_bit(a: int, width: int, is_signed: bool) -> int:
    if is_signed and a >> (width - 1):
        a ^= (1 << width) - 1
    return a.bit_length() - 1


@pytest.mark.parametrize("width", [32, 64])
def test_bit_counts(width: int) -> None:
    a = words(width, 0)
    for is_signed in (False, True):
        check(
            bitfield.make_bfind(width, is_signed),
            lambda x, s=is_signed: top_bit(x, width, s) & 0xFFFFFFFF, a, widths=(width,), result=32,
        )  # fmt: skip
        check(
            bitfield.make_bfind(width, is_signed, shiftamt=True),
            lambda x, s=is_signed: 0xFFFFFFFF if (t := top_bit(x, width, s)) < 0 else width - 1 - t,
            a, widths=(width,), result=32,
        )  # fmt: skip
    check(bitfield.make_clz(width), lambda x: width - x.bit_length(), a, widths=(width,), result=32)
    check(bitfield.make_popc(width), lambda x: bin(x).count("1"), a, widths=(width,), result=32)
    check(
        bitfield.make_brev(width), lambda x: int(f"{x:0{width}b}"[::-1], 2), a,
        widths=(width,), result=width,
    )  # fmt: skip


def prmt_by_bytes(a: int, b: int, selectors: list[int]) -> int:
    pair = (b << 32 | a).to_bytes(8, "little")
    out = [pair[s & 7] if s < 8 else (255 if pair[s & 7] > 127 else 0) for s in selectors]
    return int.from_bytes(bytes(out), "little")


def test_prmt() -> None:
    a, b, c = words(32, 0), words(32, 1), words(32, 2)
    check(
        bitfield.make_prmt(),
        lambda x, y, s: prmt_by_bytes(x, y, [s >> i & 15 for i in (0, 4, 8, 12)]),
        a, b, c, widths=(32, 32, 32), result=32,
    )  # fmt: skip
    by_mode = {  # PTX ISA 8.7 "prmt": bytes d.b3 d.b2 d.b1 d.b0 for control 0, 1, 2, 3
        "f4e": ("3210", "4321", "5432", "6543"), "b4e": ("5670", "6701", "7012", "0123"),
        "rc8": ("0000", "1111", "2222", "3333"), "ecl": ("3210", "3211", "3222", "3333"),
        "ecr": ("0000", "1110", "2210", "3210"), "rc16": ("1010", "3232", "1010", "3232"),
    }  # fmt: skip
    for mode, rows in by_mode.items():
        check(
            bitfield.make_prmt(mode),
            lambda x, y, s, rows=rows: prmt_by_bytes(x, y, [int(d) for d in rows[s & 3][::-1]]),
            a, b, c, widths=(32, 32, 32), result=32,
        )  # fmt: skip


def test_lop3_equals_its_truth_table() -> None:
    for table in range(256):
        lop3 = bitfield.make_lop3(table)
        got = lop3(0xF0, 0xCC, 0xAA)
        assert isinstance(got, int)
        assert got & 0xFF == table
        array = lop3(np.array([0xF0F0F0F0], np.uint32), 0xCCCCCCCC, 0xAAAAAAAA)
        assert isinstance(array, np.ndarray)
        assert array.tolist() == [table * 0x01010101]


@pytest.mark.parametrize("a_signed", [True, False])
@pytest.mark.parametrize("b_signed", [True, False])
def test_dot_products(a_signed: bool, b_signed: bool) -> None:
    a, b, c = words(32, 0), words(32, 1), words(32, 2)

    def part(x: int, i: int, bits: int, s: bool) -> int:
        return number(x >> (bits * i) & ((1 << bits) - 1), bits, s)

    check(
        integer_products.make_dp4a(a_signed, b_signed),
        lambda x, y, z: (z + sum(part(x, i, 8, a_signed) * part(y, i, 8, b_signed) for i in range(4)))
        & 0xFFFFFFFF,
        a, b, c, widths=(32, 32, 32), result=32,
    )  # fmt: skip
    for half, base in (("lo", 0), ("hi", 2)):
        check(
            integer_products.make_dp2a(a_signed, b_signed, half),
            lambda x, y, z, k=base: (
                z + sum(part(x, i, 16, a_signed) * part(y, k + i, 8, b_signed) for i in range(2))
            ) & 0xFFFFFFFF,
            a, b, c, widths=(32, 32, 32), result=32,
        )  # fmt: skip


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_masks_and_extensions(mode) -> None:
    a, b = words(32, 0), [*range(40), *words(32, 1)][:96]

    def limit(x: int) -> int:
        return x & 31 if mode == "wrap" else min(x, 32)

    check(
        bitfield.make_bmsk(mode),
        lambda x, n: (((1 << limit(n)) - 1) << limit(x)) & 0xFFFFFFFF,
        b, [x >> 1 for x in b[::-1]], widths=(32, 32), result=32,
    )  # fmt: skip
    for is_signed in (False, True):
        check(
            bitfield.make_szext(mode, is_signed),
            lambda x, n, s=is_signed: bfe_by_bits(x, 0, limit(n), 32, s),
            a, b, widths=(32, 32), result=32,
        )  # fmt: skip


def test_packed_halves() -> None:
    a, b = words(32, 0), words(32, 1)
    for is_signed in (True, False):
        check(
            integer.make_packed16(integer.make_max(16, is_signed)),
            lambda x, y, s=is_signed: sum(
                (max(number(x >> i & 0xFFFF, 16, s), number(y >> i & 0xFFFF, 16, s)) & 0xFFFF) << i
                for i in (0, 16)
            ),
            a, b, widths=(32, 32), result=32,
        )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**192 - 1), st.integers(0, 2**192 - 1), st.sampled_from([32, 64]))
def test_carry_chains_equal_long_sums(x: int, y: int, width: int) -> None:
    mask, limbs = (1 << width) - 1, 192 // width
    for make, first, want in (
        (carry.make_add_carry, False, (x + y) % 2**192),
        (carry.make_sub_carry, True, (x - y) % 2**192),
    ):
        step = make(width)
        flag, flags = first, np.array([first])
        total = array_total = 0
        for i in range(limbs):
            a, b = x >> (i * width) & mask, y >> (i * width) & mask
            value, flag = step(a, b, flag)
            words_, flags = step(np.array([a], DTYPES[width]), b, flags)
            assert isinstance(value, int)
            assert isinstance(flag, bool)
            assert isinstance(words_, np.ndarray)
            total |= value << (i * width)
            array_total |= int(words_[0]) << (i * width)
        assert total == array_total == want


def test_a_64_bit_product_from_mad_carry() -> None:
    low = carry.make_mad_carry(32, "lo", signed=False)
    high = carry.make_mad_carry(32, "hi", signed=False)
    a, b, c = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF_00000003
    first, flag = low(a, b, c & 0xFFFFFFFF, False)
    second, flag = high(a, b, c >> 32, flag)
    assert (second << 32 | first) == (a * b + c) & 0xFFFFFFFF_FFFFFFFF
    assert flag is True


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_products_of_24_bits(half: Literal["lo", "hi"], is_signed: bool) -> None:
    """What the formula says; an H200 gave the same (tests/silicon/h200/probes/factors.npz)."""

    def product(a: int, b: int) -> int:
        whole = number(a & 0xFFFFFF, 24, is_signed) * number(b & 0xFFFFFF, 24, is_signed)
        return (whole >> 16 if half == "hi" else whole) & 0xFFFFFFFF

    a, b, c = (words(32, seed) for seed in (51, 52, 53))
    check(integer_products.make_mul24(half, is_signed), product, a, b, widths=(32, 32), result=32)
    check(
        integer_products.make_mad24(half, is_signed), lambda x, y, z: (product(x, y) + z) & 0xFFFFFFFF,
        a, b, c, widths=(32, 32, 32), result=32,
    )  # fmt: skip

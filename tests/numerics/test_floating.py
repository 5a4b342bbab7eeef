"""Floating-point instructions against exact fractions, bit for bit, in every rounding mode."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from hopsim.isa.numerics import approximate, floating, ordering
from hopsim.isa.numerics.formats import FORMATS
from tests.numerics.float_oracle import INF, NAN, patterns, round_to, sign_of, value

ROUNDINGS = ["rn", "rz", "rm", "rp"]
CASES = [
    (name, mode)
    for name in ("f16", "bf16", "f32", "f64")
    for mode in (ROUNDINGS if name in ("f32", "f64") else ["rn"])
]


def infinite(negative: int, name: str) -> int:
    return FORMATS[name].infinity | (FORMATS[name].sign_bit if negative else 0)


def nan_of(words: tuple[int, ...], name: str) -> int:
    """The NaN of an operation on the words, strongest first: f64 keeps payloads (measured on H200)."""
    if name == "f64":
        for word in words:
            if value(word, name) == NAN:
                return word | 1 << 51
    return FORMATS[name].canonical_nan


def fma(a: int, b: int, c: int, name: str, mode: str) -> int:
    nan = FORMATS[name].canonical_nan
    x, y, z = (value(w, name) for w in (a, b, c))
    product_sign = sign_of(a, name) ^ sign_of(b, name)
    if NAN in (x, y, z):
        return nan_of((b, c, a), name)
    if isinstance(x, str) or isinstance(y, str):
        if x == 0 or y == 0:
            return nan
        if isinstance(z, str) and sign_of(c, name) != product_sign:
            return nan
        return infinite(product_sign, name)
    if isinstance(z, str):
        return c
    same = product_sign == sign_of(c, name)
    zero_sign = product_sign if same else int(mode == "rm")
    return round_to(x * y + z, name, mode, zero_sign)


def add(a: int, b: int, name: str, mode: str) -> int:
    if NAN in (value(a, name), value(b, name)):
        return nan_of((b, a), name)
    return fma(a, FORMATS[name].one, b, name, mode)


def subtract(a: int, b: int, name: str, mode: str) -> int:
    if NAN in (value(a, name), value(b, name)):
        return nan_of((b, a), name)
    return add(a, b ^ FORMATS[name].sign_bit, name, mode)


def mul(a: int, b: int, name: str, mode: str) -> int:
    x, y = value(a, name), value(b, name)
    sign = sign_of(a, name) ^ sign_of(b, name)
    if NAN in (x, y):
        return nan_of((b, a), name)
    if (isinstance(x, str) and y == 0) or (isinstance(y, str) and x == 0):
        return FORMATS[name].canonical_nan
    if isinstance(x, str) or isinstance(y, str):
        return infinite(sign, name)
    return round_to(x * y, name, mode, sign)


def div(a: int, b: int, name: str, mode: str) -> int:
    x, y = value(a, name), value(b, name)
    sign = sign_of(a, name) ^ sign_of(b, name)
    if NAN in (x, y):
        return nan_of((a, b), name)
    if (x == 0 and y == 0) or (isinstance(x, str) and isinstance(y, str)):
        return FORMATS[name].canonical_nan
    if isinstance(x, str) or y == 0:
        return infinite(sign, name)
    if isinstance(y, str):
        return FORMATS[name].sign_bit if sign else 0
    return round_to(x / y, name, mode, sign)


def sqrt(a: int, name: str, mode: str) -> int:
    x = value(a, name)
    if x == 0:
        return a
    if x == NAN:
        return nan_of((a,), name)
    if isinstance(x, str):
        return infinite(0, name) if x == INF else FORMATS[name].canonical_nan
    if x < 0:
        return FORMATS[name].canonical_nan
    scaled = x * Fraction(4) ** 1200
    assert scaled.denominator == 1
    root = isqrt(scaled.numerator)
    # Half a unit up where inexact: on the right side of every representable number and midpoint.
    exact = root * root == scaled.numerator
    return round_to(Fraction(2 * root + (not exact), 2 * 2**1200), name, mode)


def compare(
    function: Callable[..., object], oracle: Callable[..., int], *columns: np.ndarray
) -> None:
    """On arrays, on ints, and with one operand uniform."""
    want = [oracle(*(int(x) for x in row)) for row in zip(*columns, strict=True)]
    got = function(*columns)
    assert isinstance(got, np.ndarray)
    assert got.dtype == columns[0].dtype
    different = [i for i, (g, w) in enumerate(zip(got.tolist(), want, strict=True)) if g != w]
    shown = [([hex(c[i]) for c in columns], hex(got[i]), hex(want[i])) for i in different[:4]]
    assert not different, shown
    for i in range(0, len(want), 37):
        single = function(*(int(c[i]) for c in columns))
        assert type(single) is int
        assert single == want[i]
    if len(columns) > 1:
        mixed = function(int(columns[0][3]), *columns[1:])
        assert isinstance(mixed, np.ndarray)
        assert mixed[3] == want[3]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_add_sub_mul(name: str, mode) -> None:
    a, b = patterns(name, 400, 1), patterns(name, 400, 2)
    sign = FORMATS[name].sign_bit
    compare(floating.make_add(name, mode), lambda x, y: add(x, y, name, mode), a, b)
    near = a ^ np.array(sign, a.dtype)
    near[::3] += 1
    compare(floating.make_add(name, mode), lambda x, y: add(x, y, name, mode), a, near)
    compare(floating.make_sub(name, mode), lambda x, y: subtract(x, y, name, mode), a, b)
    compare(floating.make_mul(name, mode), lambda x, y: mul(x, y, name, mode), a, b)


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_fma_rounds_once(name: str, mode) -> None:
    a, b, c = (patterns(name, 500, seed) for seed in (3, 4, 5))
    function = floating.make_fma(name, mode)
    compare(function, lambda x, y, z: fma(x, y, z, name, mode), a, b, c)
    # c close to -a * b: cancellation leaves the product's own low bits.
    product = np.array(
        [mul(int(x), int(y), name, "rn") for x, y in zip(a, b, strict=True)], a.dtype
    )
    compare(
        function, lambda x, y, z: fma(x, y, z, name, mode),
        a, b, product ^ np.array(FORMATS[name].sign_bit, a.dtype),
    )  # fmt: skip


def test_fma_that_float64_gets_wrong() -> None:
    a, c = 0x3F800800, 0x1C800000  # 1 + 2**-12, 2**-70
    assert hex(floating.make_fma("f32")(a, a, c)) == "0x3f801001"


@pytest.mark.parametrize(("name", "mode"), [case for case in CASES if case[0] in ("f32", "f64")])
def test_div_rcp_sqrt(name: str, mode) -> None:
    a, b = patterns(name, 400, 6), patterns(name, 400, 7)
    one = FORMATS[name].one
    compare(floating.make_div(name, mode), lambda x, y: div(x, y, name, mode), a, b)
    compare(floating.make_rcp(name, mode), lambda x: div(one, x, name, mode), a)
    compare(floating.make_sqrt(name, mode), lambda x: sqrt(x, name, mode), a)
    squares = np.array([mul(int(x), int(x), name, "rn") for x in b], a.dtype)
    compare(floating.make_sqrt(name, mode), lambda x: sqrt(x, name, mode), squares)


def flushed(bits: int) -> int:
    return bits & 0x80000000 if bits & 0x7F800000 == 0 else bits


def saturated(bits: int, name: str) -> int:
    x, fmt = value(bits, name), FORMATS[name]
    if x == INF:
        return fmt.one
    if isinstance(x, str) or x <= 0:
        return 0
    return min(bits, fmt.one)


def test_ftz_and_sat() -> None:
    a, b = patterns("f32", 400, 8), patterns("f32", 400, 9)
    tiny = (a & np.uint32(0x81FFFFFF)) | np.uint32(0x00400000)
    for x in (a, tiny):
        for y in (b, tiny):
            compare(
                floating.make_add("f32", "rn", ftz=True),
                lambda p, q: flushed(add(flushed(p), flushed(q), "f32", "rn")), x, y,
            )  # fmt: skip
            compare(
                floating.make_mul("f32", "rz", ftz=True, sat=True),
                lambda p, q: saturated(flushed(mul(flushed(p), flushed(q), "f32", "rz")), "f32"),
                x, y,
            )  # fmt: skip
    half = patterns("f16", 400, 10)
    compare(
        floating.make_add("f16", sat=True), lambda p, q: saturated(add(p, q, "f16", "rn"), "f16"),
        half, half[::-1].copy(),
    )  # fmt: skip


def relu(bits: int, name: str) -> int:
    if value(bits, name) == NAN:
        return FORMATS[name].canonical_nan
    return 0 if sign_of(bits, name) else bits


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_packed_halves_and_relu(name: str) -> None:
    columns = [patterns(name, 400, seed) for seed in (11, 12, 13)]
    registers = [c.view(np.uint32) for c in columns]

    def packed(*words: int) -> int:
        low = fma(*(w & 0xFFFF for w in words), name, "rn")
        high = fma(*(w >> 16 for w in words), name, "rn")
        return relu(high, name) << 16 | relu(low, name)

    compare(floating.make_fma(f"{name}x2", relu=True), packed, *registers)
    assert ordering.make_neg(f"{name}x2")(0x12348001) == 0x92340001
    assert ordering.make_abs(f"{name}x2")(0x92348001) == 0x12340001


def extreme(a: int, b: int, name: str, largest: bool, nan_wins: bool) -> int:
    x, y = value(a, name), value(b, name)
    if x == NAN or y == NAN:
        if nan_wins or (x == NAN and y == NAN):
            return nan_of((b, a), name)
        return b if x == NAN else a

    def key(number, bits: int) -> tuple[float | Fraction, int]:
        return (float(number) if isinstance(number, str) else number, -sign_of(bits, name))

    first = key(x, a) < key(y, b)
    return (b if first else a) if largest else (a if first else b)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_min_max(name: str) -> None:
    a, b = patterns(name, 500, 14), patterns(name, 500, 15)
    b[::4] = a[::4] ^ np.array(FORMATS[name].sign_bit, a.dtype)
    for nan_wins in (False, True) if name != "f64" else (False,):
        compare(
            ordering.make_min(name, propagate_nan=nan_wins),
            lambda x, y, w=nan_wins: extreme(x, y, name, False, w), a, b,
        )  # fmt: skip
        compare(
            ordering.make_max(name, propagate_nan=nan_wins),
            lambda x, y, w=nan_wins: extreme(x, y, name, True, w), a, b,
        )  # fmt: skip
    sign = FORMATS[name].sign_bit
    assert ordering.make_min(name)(0, sign) == ordering.make_min(name)(sign, 0) == sign
    assert ordering.make_max(name)(0, sign) == ordering.make_max(name)(sign, 0) == 0
    one = FORMATS[name].one
    xorsign = ordering.make_min(name, xorsign_abs=True)
    assert xorsign(one | sign, one + 1) == one | sign
    quiet = FORMATS[name].infinity | one >> 1
    assert xorsign(quiet | sign, one) == one | sign  # the NaN's sign counts: measured on H200
    negated = quiet if name == "f64" else FORMATS[name].canonical_nan
    assert ordering.make_neg(name)(quiet) == ordering.make_abs(name)(quiet) == negated
    assert ordering.make_copysign(name)(sign, one) == one | sign
    assert ordering.make_abs(name)(one | sign) == one
    assert ordering.make_neg(name)(one) == one | sign
    if name == "f32":
        assert ordering.make_neg(name, ftz=True)(5) == sign
        assert ordering.make_abs(name, ftz=True)(sign | 5) == 0
        assert ordering.make_max(name, ftz=True)(5, sign) == 0


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_comparisons(name: str) -> None:
    a, b = patterns(name, 300, 16), patterns(name, 300, 17)
    b[::4] = a[::4]
    ordered = {
        "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
        "num": lambda x, y: True,
    }  # fmt: skip
    unordered = {
        "equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge", "nan": "num",
    }  # fmt: skip

    def number(bits: int) -> float | Fraction:
        v = value(bits, name)
        return float(v) if isinstance(v, str) else v

    for comparison in (*ordered, *unordered):
        function = ordering.make_compare(comparison, name)
        got = function(a, b)
        assert isinstance(got, np.ndarray)
        for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            has_nan = NAN in (value(x, name), value(y, name))
            if comparison in ordered:
                want = not has_nan and bool(ordered[comparison](number(x), number(y)))
            elif comparison == "nan":
                want = has_nan
            else:
                want = has_nan or bool(ordered[unordered[comparison]](number(x), number(y)))
            assert got[i] == want, (comparison, hex(x), hex(y))
        assert function(int(a[0]), int(b[0])) is bool(got[0])
    assert ordering.make_compare("gt", "f32", ftz=True)(5, 0) is False


def test_testp() -> None:
    words = np.array([0, 0x80000000, 1, 0x3F800000, 0x7F800000, 0x7FC00000], np.uint32)
    want = {
        "finite": [1, 1, 1, 1, 0, 0], "infinite": [0, 0, 0, 0, 1, 0], "number": [1, 1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 0, 1], "normal": [1, 1, 0, 1, 0, 0],
        "subnormal": [0, 0, 1, 0, 0, 0],
    }  # fmt: skip
    for prop, row in want.items():
        got = ordering.make_testp(prop, "f32")(words)
        assert isinstance(got, np.ndarray)
        assert got.tolist() == [bool(x) for x in row]


APPROXIMATE = {
    # Exact results and specials: inputs and outputs as f32 numbers.
    "ex2": [(3.0, 8.0), (-1.0, 0.5), (0.0, 1.0), (np.inf, np.inf), (-np.inf, 0.0), (200.0, np.inf)],
    "lg2": [
        (8.0, 3.0),
        (0.5, -1.0 + 2.0**-23),  # so says the hardware
        (1.0, 0.0),
        (0.0, -np.inf),
        (np.inf, np.inf),
        (-1.0, np.nan),
    ],
    "rcp": [(4.0, 0.25), (-0.0, -np.inf), (np.inf, 0.0), (np.nan, np.nan)],
    "rsqrt": [(4.0, 0.5), (0.0, np.inf), (-0.0, -np.inf), (np.inf, 0.0), (-4.0, np.nan)],
    "sqrt": [(4.0, 2.0), (-0.0, -0.0), (np.inf, np.inf), (-1.0, np.nan)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (np.inf, np.nan)],
    "cos": [(0.0, 1.0), (-np.inf, np.nan)],
    "tanh": [(0.0, 0.0), (np.inf, 1.0), (-np.inf, -1.0), (np.nan, np.nan)],
}


@pytest.mark.parametrize("function", list(APPROXIMATE))
def test_approximations_at_exact_points(function) -> None:
    pairs = np.array(APPROXIMATE[function], np.float32)
    x, want = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]).view(np.uint32)
    want[np.isnan(pairs[:, 1])] = 0x7FFFFFFF
    got = approximate.make_approximate(function, "f32")(x.view(np.uint32))
    np.testing.assert_array_equal(got, want)


def test_approximations_flush_and_pack() -> None:
    assert approximate.make_approximate("lg2", "f32", ftz=True)(1) == 0xFF800000
    assert approximate.make_approximate("ex2", "f32", ftz=True)(0xC3000000) == 0  # 2**-128
    assert approximate.make_approximate("ex2", "f32")(0xC3000000) == 0x00200000
    assert approximate.make_approximate("ex2", "f16x2")(0x3C000000) == 0x40003C00
    assert approximate.make_approximate("tanh", "bf16x2")(0x7F80FF80) == 0x3F80BF80
    assert approximate.make_approximate("rcp", "f64")(0x4008000000000000) == 0x3FD5555500000000
    assert approximate.make_approximate("rsqrt", "f64")(0xC002000000000000) == 0x7FFFFFFF00000000


def test_approximate_division() -> None:
    full, approx = approximate.make_divide(full=True), approximate.make_divide()
    assert full(0x3F800000, 0x40400000) == approx(0x3F800000, 0x40400000) == 0x3EAAAAAB
    huge = 0x7F000000  # 2**127
    assert full(huge, huge) == 0x3F800000
    assert approx(huge, huge) == 0
    assert approx(0x7F800000, huge) == 0x7FFFFFFF

"""`cvt` against exact fractions, bit for bit."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, trunc

import numpy as np
import pytest

from hopsim.isa.numerics.convert import make_cvt
from hopsim.isa.numerics.formats import FORMATS
from hopsim.isa.types import DTYPES, TYPES
from tests.numerics.float_oracle import INF, NAN, patterns, round_to, sign_of, value

INTEGERS = [f"{kind}{width}" for kind in "us" for width in (8, 16, 32, 64)]
FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGRAL = {"rni": round, "rzi": trunc, "rmi": floor, "rpi": ceil}


def integers(name: str, count: int = 200) -> np.ndarray:
    width = TYPES[name].width_bits
    rng = np.random.default_rng([width, ord(name[0])])
    top = (1 << width) - 1
    edges = [0, 1, 2, top, top - 1, top >> 1, (top >> 1) + 1, (top >> 1) - 1, 0x7F, 0x80, 0xFF]
    raw = rng.integers(0, top, count, np.uint64, endpoint=True)
    raw >>= rng.integers(0, width, count).astype(np.uint64)
    ties = np.array([(1 << s) + (1 << t) for s in range(30, 64, 3) for t in range(8)], np.uint64)
    words = np.concatenate(
        [np.array(edges, np.uint64) & np.uint64(top), raw, ties & np.uint64(top)]
    )
    return words.astype(DTYPES[width])


def number(bits: int, name: str) -> int:
    width = TYPES[name].width_bits
    return bits - (1 << width) if TYPES[name].is_signed and bits >> (width - 1) else bits


def limits(name: str) -> tuple[int, int]:
    width = TYPES[name].width_bits
    return (
        (-(1 << (width - 1)), (1 << (width - 1)) - 1) if name[0] == "s" else (0, (1 << width) - 1)
    )


def check(function, oracle, words: np.ndarray, result_width: int) -> None:
    want = [oracle(int(x)) for x in words]
    got = function(words)
    assert isinstance(got, np.ndarray)
    assert got.dtype == DTYPES[result_width]
    wrong = [(hex(x), hex(g), hex(w)) for x, g, w in zip(words, got, want, strict=True) if g != w]
    assert not wrong, wrong[:5]
    for i in range(0, len(words), 31):
        single = function(int(words[i]))
        assert type(single) is int
        assert single == want[i]


@pytest.mark.parametrize("stype", INTEGERS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_to_integer(dtype: str, stype: str) -> None:
    width = TYPES[dtype].width_bits
    mask, (low, high) = (1 << width) - 1, limits(dtype)
    words = integers(stype)
    check(make_cvt(dtype, stype), lambda x: number(x, stype) & mask, words, width)
    check(
        make_cvt(dtype, stype, modifiers=["sat"]),
        lambda x: min(max(number(x, stype), low), high) & mask, words, width,
    )  # fmt: skip


@pytest.mark.parametrize("mode", list(INTEGRAL))
@pytest.mark.parametrize("stype", FLOATS)
def test_float_to_integer(stype: str, mode: str) -> None:
    for dtype in INTEGERS:
        width = TYPES[dtype].width_bits
        low, high = limits(dtype)

        def oracle(bits: int, dtype: str = dtype, width: int = width) -> int:
            x, (low, high) = value(bits, stype), limits(dtype)
            if x == NAN:
                return 1 << (width - 1) if stype == "f64" or width == 64 else 0
            if isinstance(x, str):
                result = high if x == INF else low
            else:
                result = min(max(INTEGRAL[mode](x), low), high)
            return result & ((1 << width) - 1)

        near = [Fraction(v) + d for v in (low, high, 0) for d in (0, Fraction(1, 2), -1, 1, -0.5)]
        ends = [round_to(Fraction(v), stype, "rn") for v in near]
        words = np.concatenate(
            [patterns(stype, 200, 1), np.array(ends, patterns(stype, 1, 1).dtype)]
        )
        check(make_cvt(dtype, stype, mode), oracle, words, width)
    assert make_cvt("s32", "f32", "rpi", ["ftz"])(1) == 0
    assert make_cvt("s32", "f32", "rpi")(1) == 1


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_integer_to_float(dtype: str, mode: str) -> None:
    for stype in INTEGERS:
        check(
            make_cvt(dtype, stype, mode),
            lambda x, s=stype: round_to(Fraction(number(x, s)), dtype, mode),
            integers(stype), FORMATS[dtype].width_bits,
        )  # fmt: skip


def nan_of(bits: int, dtype: str, stype: str, mode: str) -> int:
    """What each pair makes of a NaN, as measured on H200."""
    fmt, source = FORMATS[dtype], FORMATS[stype]
    if "f64" in (dtype, stype):
        fraction = Fraction(bits & ((1 << source.fraction_bits) - 1), 1 << source.fraction_bits)
        payload = int(fraction * 2**fmt.fraction_bits) | 1 << (fmt.fraction_bits - 1)
        return payload | fmt.infinity | (fmt.sign_bit if sign_of(bits, stype) else 0)
    if (dtype, stype) == ("f32", "bf16"):
        return bits << 16
    return bits & 0xFFFFE000 if mode == "rna" else fmt.canonical_nan


def narrowed(bits: int, dtype: str, stype: str, mode: str) -> int:
    x, fmt = value(bits, stype), FORMATS[dtype]
    if dtype == stype:  # recorded on an H100: 16-bit types give the canonical NaN
        return fmt.canonical_nan if x == NAN and fmt.width_bits == 16 else bits
    if x == NAN:
        return nan_of(bits, dtype, stype, mode)
    sign = sign_of(bits, stype)
    if isinstance(x, str):
        return fmt.infinity | (fmt.sign_bit if sign else 0)
    return round_to(x, dtype, mode, sign)


@pytest.mark.parametrize("stype", FLOATS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_to_float(dtype: str, stype: str) -> None:
    words = patterns(stype, 500, 2)
    width = FORMATS[dtype].width_bits
    widens = (dtype, stype) in [("f32", "f16"), ("f32", "bf16")] or dtype in (stype, "f64")
    for mode in [""] if widens else ["rn", "rz", "rm", "rp"]:
        check(
            make_cvt(dtype, stype, mode), lambda x, m=mode: narrowed(x, dtype, stype, m or "rn"),
            words, width,
        )  # fmt: skip


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_tf32(mode: str) -> None:
    check(
        make_cvt("tf32", "f32", mode), lambda x: narrowed(x, "tf32", "f32", mode),
        patterns("f32", 600, 3), 32,
    )  # fmt: skip
    saturating = make_cvt("tf32", "f32", "rna", ["satfinite"])
    assert saturating(0x7F7FFFFF) == saturating(0x7F800000) == 0x7F7FE000
    assert saturating(0xFFC00123) == 0xFFBFE000  # measured on H200
    assert make_cvt("tf32", "f32", "rn", ["relu"])(0xFFC00000) == 0x7FFFE000


@pytest.mark.parametrize("mode", list(INTEGRAL))
@pytest.mark.parametrize("name", FLOATS)
def test_round_to_integral_value(name: str, mode: str) -> None:
    def oracle(bits: int) -> int:
        x = value(bits, name)
        if isinstance(x, str):
            return nan_of(bits, name, name, "") if x == NAN else bits
        return round_to(Fraction(INTEGRAL[mode](x)), name, "rn", sign_of(bits, name))

    check(make_cvt(name, name, mode), oracle, patterns(name, 400, 4), FORMATS[name].width_bits)


def test_sat_and_ftz_on_f32() -> None:
    sat = make_cvt("f32", "f32", modifiers=["sat"])
    words = np.array([0x7FC00000, 0xBF800000, 0x80000000, 0x3F000000, 0x40000000, 1], np.uint32)
    assert sat(words).tolist() == [0, 0, 0, 0x3F000000, 0x3F800000, 1]
    assert make_cvt("f64", "f32", modifiers=["ftz"])(0x80000001) == 0x8000000000000000
    assert make_cvt("f64", "f32", modifiers=["ftz"])(0xFF800001) == 0x7FFFFFFFE0000000
    assert make_cvt("f32", "f32", modifiers=["ftz"])(0xFF800001) == 0x7FFFFFFF
    assert make_cvt("f64", "f32", modifiers=["sat"])(0x7FC00000) == 0
    assert make_cvt("f32", "f32", "rpi", ["ftz"])(0x00000001) == 0
    assert make_cvt("f16", "f32", "rn", ["ftz"])(0x33000001) == 1  # not subnormal as f32


def pair_oracle(a: int, b: int, dtype: str, stype: str, mode: str, relu: bool, finite: bool) -> int:
    fmt, packed = FORMATS[dtype], 0
    for bits, shift in ((a, fmt.width_bits), (b, 0)):
        x = value(bits, stype)
        if finite and x != NAN:
            largest = value(fmt.largest, dtype)
            assert isinstance(largest, Fraction)
            clipped = largest if x == INF else -largest if x == "-inf" else x
            assert isinstance(clipped, Fraction)
            half = round_to(min(max(clipped, -largest), largest), dtype, mode, sign_of(bits, stype))
        else:
            half = narrowed(bits, dtype, stype, mode)
        if relu and x != NAN and half & fmt.sign_bit:
            half = 0
        packed |= half << shift
    return packed


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    ("dtype", "mode"), [("f16", "rn"), ("f16", "rz"), ("bf16", "rn"), ("bf16", "rz"),
                        ("e4m3", "rn"), ("e5m2", "rn")],
)  # fmt: skip
def test_packs_from_f32(dtype: str, mode: str, relu: bool) -> None:
    fmt = FORMATS[dtype]
    finite = fmt.width_bits == 8
    modifiers = [m for m, on in (("satfinite", finite), ("relu", relu)) if on]
    function = make_cvt(f"{dtype}x2", "f32", mode, modifiers)
    rng = np.random.default_rng(6)
    # Half of the inputs are within the narrow format's range, many of them on ties.
    spread = np.exp2(rng.integers(fmt.smallest_exponent - 5, fmt.largest_exponent + 1, 600))
    inside = (np.round(rng.standard_normal(600) * 16) / 16 * spread).astype(np.float32)
    a = np.concatenate([patterns("f32", 600, 5), inside.view(np.uint32)])
    b = rng.permutation(a)
    want = [
        pair_oracle(int(x), int(y), dtype, "f32", mode, relu, finite)
        for x, y in zip(a, b, strict=True)
    ]
    got = function(a, b)
    assert isinstance(got, np.ndarray)
    assert got.dtype == DTYPES[2 * fmt.width_bits]
    assert got.tolist() == want
    assert function(int(a[0]), int(b[0])) == want[0]
    assert function(int(a[0]), b)[0] == want[0]
    assert function(a, int(b[0]))[0] == want[0]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("fp8", ["e4m3", "e5m2"])
def test_fp8_pairs_to_and_from_halves(fp8: str, relu: bool) -> None:
    modifiers = ["relu"] if relu else []
    expand = make_cvt("f16x2", f"{fp8}x2", "rn", modifiers)
    words = (np.arange(256, dtype=np.uint16) * 256) | np.arange(256, dtype=np.uint16)[::-1]
    want = [pair_oracle(int(w) >> 8, int(w) & 255, "f16", fp8, "rn", relu, False) for w in words]
    assert expand(words).tolist() == want
    assert expand(int(words[77])) == want[77]
    narrow = make_cvt(f"{fp8}x2", "f16x2", "rn", ["satfinite", *modifiers])
    halves = np.arange(65536, dtype=np.uint32)[::7]
    pairs = halves << 16 | halves[::-1]
    want = [
        pair_oracle(int(p) >> 16, int(p) & 0xFFFF, fp8, "f16", "rn", relu, True) for p in pairs[::9]
    ]
    assert narrow(pairs)[::9].tolist() == want
    assert narrow(int(pairs[0])) == want[0]


@pytest.mark.parametrize(
    ("dtype", "stype", "rounding", "modifiers"),
    [
        ("s32", "f32", "", ()), ("f32", "s32", "", ()), ("f16", "f32", "", ()),
        ("e4m3x2", "f32", "rn", ()), ("f16x2", "s32", "rn", ()), ("b32", "u32", "", ()),
        ("f32", "f16", "", ("clip",)), ("s8x2", "f32", "rn", ()),
    ],
)  # fmt: skip
def test_what_ptx_does_not_have_is_refused(
    dtype: str, stype: str, rounding: str, modifiers
) -> None:
    with pytest.raises(ValueError, match="cvt"):
        make_cvt(dtype, stype, rounding, modifiers)

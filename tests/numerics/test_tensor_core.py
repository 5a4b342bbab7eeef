"""The vectorised tensor core against the scalar oracle, bit for bit, and the decisive vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hopsim.isa.numerics.decoding import decode
from hopsim.isa.numerics.formats import FORMATS
from hopsim.isa.numerics.mma_kinds import MMA_SYNC, WGMMA, DFormat
from hopsim.isa.numerics.mma_plain import mma_float32, mma_integer
from hopsim.isa.numerics.tensor_core import mma, mma_chain
from tests.numerics.tensor_core_oracle import (
    DISTRIBUTIONS,
    chain_bits,
    draw,
    encode,
    fp8_mma_sync_bits,
)

UNITS = {"wgmma": WGMMA, "mma.sync": MMA_SYNC}
FORMS = [
    (unit, pair, d_name)
    for unit, table in UNITS.items()
    for pair in table
    for d_name in ("f32", "f16")
    if d_name == "f32" or pair[0] not in ("bf16", "tf32")
]


def oracle(a, b, c, unit: str, pair: tuple[str, str], d_name: str) -> np.ndarray:
    kind = UNITS[unit][pair]
    if kind.through_f16:
        return fp8_mma_sync_bits(a, b, c, *pair, d_name)
    cleared = kind.cleared_low_bits if d_name == "f32" else 0
    return chain_bits(a, b, c, *pair, d_name, kind.fraction_bits, cleared, kind.instruction_k)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(("unit", "pair", "d_name"), FORMS, ids=lambda x: str(x))
def test_equals_the_scalar_model(
    unit: str, pair: tuple[str, str], d_name: DFormat, distribution: str
) -> None:
    kind = UNITS[unit][pair]
    for links, seed in ((1, 11), (4, 12)):
        a, b, c = draw(distribution, *pair, d_name, 10, 12, links * kind.instruction_k, seed)
        want = oracle(a, b, c, unit, pair, d_name)
        np.testing.assert_array_equal(mma_chain(a, b, c, kind, d_name), want)


@pytest.mark.parametrize("pair", list(WGMMA), ids=str)
@pytest.mark.parametrize("log_scale", [-60, -45, -30, -17, 17, 40, 58])
def test_operands_far_from_one(pair: tuple[str, str], log_scale: int) -> None:
    """The float32 path shifts such operands; c is drawn near the products, below and above them."""
    rng = np.random.default_rng(abs(log_scale))
    kind = WGMMA[pair]
    fa, fb = (FORMATS[name] for name in pair)
    scale = 2.0 ** np.clip(log_scale, fa.smallest_exponent - 2, fa.largest_exponent - 3)
    a = encode(rng.standard_normal((9, kind.instruction_k)) * scale, fa, rng)
    b = encode(rng.standard_normal((11, kind.instruction_k)) * scale, fb, rng)
    spread = np.exp2(rng.integers(-30, 30, (9, 11)))
    c = encode(rng.standard_normal((9, 11)) * scale * scale * spread, FORMATS["f32"], rng)
    want = oracle(a, b, c, "wgmma", pair, "f32")
    np.testing.assert_array_equal(mma(a, b, c, kind), want)


@pytest.mark.parametrize("pair", list(WGMMA), ids=str)
def test_zero_rows_and_sparse_operands(pair: tuple[str, str]) -> None:
    """Outputs with few or no nonzero products, and accumulators that are zero, -0 or subnormal."""
    rng = np.random.default_rng(5)
    kind = WGMMA[pair]
    a, b, c = draw("wide", *pair, "f32", 12, 16, 2 * kind.instruction_k, 7)
    a[rng.random(a.shape) < 0.8] = 0
    b[rng.random(b.shape) < 0.8] = 0
    a[3], b[4] = 0, FORMATS[pair[1]].sign_bit
    c[:, ::4] = 0
    c[:, 1::4] = 0x80000000
    c[:, 2::4] = rng.integers(1, 1 << 23, c[:, 2::4].shape)
    np.testing.assert_array_equal(mma_chain(a, b, c, kind), oracle(a, b, c, "wgmma", pair, "f32"))


def test_many_blocks_and_batches_equal_single_ones() -> None:
    kind = WGMMA[("bf16", "bf16")]
    a, b, c = draw("normal", "bf16", "bf16", "f32", 130, 520, 32, 3)
    whole = mma_chain(a, b, c, kind)
    for m, n in ((0, 0), (63, 255), (64, 256), (129, 519), (100, 300)):
        single = mma_chain(a[m : m + 1], b[n : n + 1], c[m : m + 1, n : n + 1], kind)
        assert single[0, 0] == whole[m, n]
    batch = mma_chain(a[:128].reshape(8, 16, 32), b[:64].reshape(8, 8, 32), None, kind)
    for i in range(8):
        alone = mma_chain(a[16 * i : 16 * i + 16], b[8 * i : 8 * i + 8], None, kind)
        np.testing.assert_array_equal(batch[i], alone)


def test_negated_operands_flip_signs_only() -> None:
    kind = WGMMA[("f16", "f16")]
    a, b, c = draw("specials", "f16", "f16", "f32", 16, 16, 16, 9)
    want = mma(a ^ np.uint16(0x8000), b, c, kind)
    np.testing.assert_array_equal(mma(a, b, c, kind, negate_a=True), want)
    np.testing.assert_array_equal(mma(a, b, c, kind, negate_b=True), want)


def bits_of(value: Fraction, name: str) -> int:
    """The exact bits of a number that the format holds."""
    fmt = FORMATS[name]
    sign, magnitude = value < 0, abs(value)
    if magnitude == 0:
        return 0
    exponent = fmt.smallest_exponent
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    significand = magnitude / Fraction(2) ** (exponent - fmt.fraction_bits)
    assert significand.denominator == 1, f"{value} is not a {name}"
    bits = ((exponent - fmt.smallest_exponent) << fmt.fraction_bits) + int(significand)
    return (bits << fmt.dropped_bits) | (fmt.sign_bit if sign else 0)


TWO = Fraction(2)
DECISIVE = {
    "zero times huge, bf16": ("bf16", "f32", [0, TWO**-15], [TWO**127, TWO**-15], 0x30800000),
    "zero times huge, tf32": ("tf32", "f32", [0, TWO**-15], [TWO**127, TWO**-15], 0x30800000),
    "zero times huge, e4m3": ("e4m3", "f32", [0, TWO**-6], [TWO**8, TWO**-6], 0x39800000),
    "zero times huge, e5m2": ("e5m2", "f32", [0, TWO**-7], [TWO**15, TWO**-7], 0x38800000),
    "zero times huge, f16": ("f16", "f32", [0, TWO**-14], [TWO**15, TWO**-12], 0x32800000),
    "zero accumulator, f16": (
        "f16", "f16", [TWO**-12, TWO**-20], [TWO**-13, TWO**-20], 0x0001,
    ),
    "zero accumulator, bf16": (
        "bf16", "f32", [TWO**-66, *15 * [TWO**-76]], [TWO**-66, *15 * [TWO**-76]], 0x00020001,
    ),
    "floor -133": (
        "bf16", "f32", [7 * TWO**-76, *15 * [TWO**-79]], [73 * TWO**-82, *15 * [TWO**-80]], 0x00000000,
    ),
    "floor -21": ("f16", "f16", [TWO**-12, TWO**-24], [TWO**-13, TWO**-23], 0x0000),
    "above floor -133": ("bf16", "f32", [7 * TWO**-76, TWO**-76], [73 * TWO**-82, TWO**-82], 1),
    "above floor -21": ("f16", "f16", [TWO**-12, TWO**-23], [TWO**-13, TWO**-23], 0x0001),
    "sign of zero": ("bf16", "f32", [TWO**-75], [-(TWO**-75)], 0x00000000),
}  # fmt: skip


@pytest.mark.parametrize("name", list(DECISIVE))
def test_decisive_vector(name: str) -> None:
    fmt, d_name, a_values, b_values, want = DECISIVE[name]
    kind = WGMMA[(fmt, fmt)]
    dtype = f"u{FORMATS[fmt].width_bits // 8}"
    a, b = np.zeros((1, kind.instruction_k), dtype), np.zeros((1, kind.instruction_k), dtype)
    for k, (x, y) in enumerate(zip(a_values, b_values, strict=True)):
        a[0, k], b[0, k] = bits_of(Fraction(x), fmt), bits_of(Fraction(y), fmt)
    assert hex(mma(a, b, None, kind, d_name)[0, 0]) == hex(want)


def test_tf32_ignores_a_nan_payload_in_the_dropped_bits() -> None:
    a, b = np.zeros((1, 8), np.uint32), np.zeros((1, 8), np.uint32)
    a[0, 0], b[0, 0] = 0x7F800001, 0x3F800000
    assert mma(a, b, None, WGMMA[("tf32", "tf32")])[0, 0] == 0x7F800000


@pytest.mark.parametrize(("unit", "pair", "d_name"), FORMS, ids=lambda x: str(x))
def test_minus_zero_accumulator_gives_plus_zero(
    unit: str, pair: tuple[str, str], d_name: DFormat
) -> None:
    kind = UNITS[unit][pair]
    zeros = np.zeros((1, kind.instruction_k), f"u{FORMATS[pair[0]].width_bits // 8}")
    c = np.array([[FORMATS[d_name].sign_bit]], f"u{FORMATS[d_name].width_bits // 8}")
    assert mma(zeros, zeros, c, kind, d_name)[0, 0] == 0


def test_the_full_scale_sum_that_almost_fills_int32() -> None:
    kind = WGMMA[("f16", "f16")]
    largest = np.full((1, 16), 0x7BFF, np.uint16)
    c = np.array([[0x507FFFFF]], np.uint32)
    want = oracle(largest, largest, c, "wgmma", ("f16", "f16"), "f32")
    np.testing.assert_array_equal(mma(largest, largest, c, kind), want)
    want = oracle(largest, largest ^ 0x8000, c, "wgmma", ("f16", "f16"), "f32")
    np.testing.assert_array_equal(mma(largest, largest ^ np.uint16(0x8000), c, kind), want)


def test_float32_mode_is_near_and_says_nothing_about_bits() -> None:
    a, b, c = draw("normal", "bf16", "bf16", "f32", 16, 24, 64, 1)
    exact = decode(a, FORMATS["bf16"]).astype(float) @ decode(b, FORMATS["bf16"]).astype(float).T
    got = mma_float32(a, b, c, WGMMA[("bf16", "bf16")]).view(np.float32)
    np.testing.assert_allclose(got, exact + c.view(np.float32), rtol=1e-4, atol=1e-4)
    c16 = c.astype(np.uint16) & np.uint16(0x3FFF)
    e4m3 = WGMMA[("e4m3", "e4m3")]
    ones = np.full((2, 32), 0x38, np.uint8)
    got16 = mma_float32(ones, ones, c16[:2, :2] * 0, e4m3, "f16", negate_b=True)
    np.testing.assert_array_equal(got16.view(np.float16), np.full((2, 2), -32.0, np.float16))


@pytest.mark.parametrize("a_signed", [True, False])
@pytest.mark.parametrize("b_signed", [True, False])
def test_integer_products_wrap(a_signed: bool, b_signed: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 256, (5, 320), np.uint8), rng.integers(0, 256, (7, 320), np.uint8)
    c = rng.integers(0, 2**32, (5, 7), np.uint32)
    left = a.view(np.int8).astype(object) if a_signed else a.astype(object)
    right = b.view(np.int8).astype(object) if b_signed else b.astype(object)
    want = (c.astype(object) + left @ right.T) % 2**32
    got = mma_integer(a, b, c, a_signed=a_signed, b_signed=b_signed)
    np.testing.assert_array_equal(got.astype(object), want)


def test_integer_satfinite_clamps_each_instruction() -> None:
    a, b = np.full((1, 64), 100, np.uint8), np.full((1, 64), 100, np.uint8)
    b[0, 32:] = 156  # -100
    c = np.array([[0x7FFFFFFF]], np.uint32)
    got = mma_integer(a, b, c, a_signed=True, b_signed=True, satfinite=True)
    assert got[0, 0] == 0x7FFFFFFF - 320000
    wrapped = mma_integer(a, b, c, a_signed=True, b_signed=True)
    assert wrapped[0, 0] == 0x7FFFFFFF

"""The scalar model of the Hopper tensor core, in Python integers, one output at a time.

Slow and literal: the oracle that the vectorised `hopsim.isa.numerics.tensor_core` must equal.  Also the
input distributions that both are tried on.
"""

from __future__ import annotations

import numpy as np

from hopsim.isa.numerics.formats import FORMATS, FloatFormat
from tests.numerics.float_oracle import round_to, value

# Measured on H200: the largest exponent is taken to be at least this, by result format.
FLOOR = {"f32": -133, "f16": -21}
NAN = "nan"
INF = "inf"
FINITE = "finite"


def classify(bits: int, fmt: FloatFormat) -> tuple[str, int, int, int]:
    """Return class, sign, significand (integer) and exponent; value = significand * 2**(exponent - fraction)."""
    bits >>= fmt.dropped_bits
    fraction = bits & ((1 << fmt.fraction_bits) - 1)
    field = (bits >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    sign = bits >> (fmt.fraction_bits + fmt.exponent_bits)
    if field == (1 << fmt.exponent_bits) - 1:
        if fmt.has_inf:
            return (INF if fraction == 0 else NAN), sign, 0, 0
        if fraction == (1 << fmt.fraction_bits) - 1:
            return NAN, sign, 0, 0
    if field == 0:
        return FINITE, sign, fraction, fmt.smallest_exponent
    return FINITE, sign, fraction + (1 << fmt.fraction_bits), field - fmt.bias


def output_bits(
    a: list[int],
    b: list[int],
    c: int,
    a_name: str,
    b_name: str,
    d_name: str,
    keep: int,
    cleared: int,
) -> int:
    """Bits of round(c + sum a[k] b[k]) with `keep` fraction bits below the largest exponent."""
    fa, fb, fd = FORMATS[a_name], FORMATS[b_name], FORMATS[d_name]
    # Each term: sign, integer significand, its fraction bits, exponent.
    terms: list[tuple[int, int, int, int]] = []
    infinities: set[int] = set()
    nan = False
    for x, y in zip(a, b, strict=True):
        class_x, sign_x, sig_x, exp_x = classify(x, fa)
        class_y, sign_y, sig_y, exp_y = classify(y, fb)
        if NAN in (class_x, class_y):
            nan = True
        elif INF in (class_x, class_y):
            if (class_x == FINITE and sig_x == 0) or (class_y == FINITE and sig_y == 0):
                nan = True
            else:
                infinities.add(sign_x ^ sign_y)
        elif sig_x and sig_y:
            terms.append(
                (sign_x ^ sign_y, sig_x * sig_y, fa.fraction_bits + fb.fraction_bits, exp_x + exp_y)
            )
    class_c, sign_c, sig_c, exp_c = classify(c, fd)
    if class_c == NAN:
        nan = True
    elif class_c == INF:
        infinities.add(sign_c)
    elif sig_c:
        terms.append((sign_c, sig_c, fd.fraction_bits, exp_c))
    if nan or len(infinities) == 2:
        return fd.canonical_nan
    if infinities:
        return fd.infinity | (fd.sign_bit if infinities.pop() else 0)
    if not terms:
        return 0
    top = max(FLOOR[d_name], *(exponent for *_, exponent in terms))
    total = 0
    for sign, significand, fraction, exponent in terms:
        up = keep - fraction + exponent - top
        aligned = significand << up if up >= 0 else significand >> -up
        total += -aligned if sign else aligned
    return pack(total, top - keep, fd, nearest=d_name == "f16", cleared=cleared)


def pack(total: int, exponent: int, fmt: FloatFormat, nearest: bool, cleared: int) -> int:
    """Round total * 2**exponent toward zero, or to nearest even; zero is always +0."""
    sign, magnitude = total < 0, abs(total)
    if magnitude == 0:
        return 0
    top = max(exponent + magnitude.bit_length() - 1, fmt.smallest_exponent)
    down = top - fmt.fraction_bits - exponent  # bits to drop so that the unit is the format's
    if down <= 0:
        significand = magnitude << -down
    else:
        significand, rest = magnitude >> down, magnitude & ((1 << down) - 1)
        half = 1 << (down - 1)
        if nearest and (rest > half or (rest == half and significand & 1)):
            significand += 1
    if significand == 0:
        return 0
    # Adding the significand to the field of (top - 1) carries into the next exponent by itself.
    bits = ((top - fmt.smallest_exponent) << fmt.fraction_bits) + significand
    bits = min(bits, fmt.infinity) & ~((1 << cleared) - 1)
    return (bits | fmt.sign_bit) if sign and bits else bits


def fp8_mma_sync_bits(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, a_name: str, b_name: str, d_name: str
) -> np.ndarray:
    """fp8 `mma.sync` as the assembler makes it: f16, two instructions from zero, then c is added."""
    lookup = {}
    for name in (a_name, b_name):
        values = [value(bits, name) for bits in range(256)]
        lookup[name] = np.array(
            [FORMATS["f16"].canonical_nan if v == "nan"
             else FORMATS["f16"].infinity | (v == "-inf") << 15 if isinstance(v, str)
             else round_to(v, "f16", "rn", bits >> 7) for bits, v in enumerate(values)], np.uint16,
        )  # fmt: skip
    x, y = lookup[a_name][a], lookup[b_name][b]
    result = c.copy()
    k = np.arange(32)
    for start in range(0, a.shape[1], 32):
        total = np.zeros_like(c)
        for part in (k[k & 2 == 0], k[k & 2 != 0]):
            ks = start + part
            total = chain_bits(x[:, ks], y[:, ks], total, "f16", "f16", d_name, 25, 0, 16)
        flat = zip(total.ravel().tolist(), result.ravel().tolist(), strict=True)
        sums = [add_bits(t, r, d_name) for t, r in flat]
        result = np.array(sums, c.dtype).reshape(c.shape)
    return result


def add_bits(x: int, y: int, name: str) -> int:
    """IEEE addition to nearest even."""
    p, q, fmt = value(x, name), value(y, name), FORMATS[name]
    if isinstance(p, str) or isinstance(q, str):
        if "nan" in (p, q) or {p, q} == {"inf", "-inf"}:
            return fmt.canonical_nan
        return x if isinstance(p, str) else y
    return round_to(p + q, name, "rn", int(x == y == fmt.sign_bit))


DISTRIBUTIONS = ("normal", "wide", "subnormal", "specials", "cancel", "raw", "huge_c")


def encode(values: np.ndarray, fmt: FloatFormat, rng: np.random.Generator) -> np.ndarray:
    """Round float64 numbers to bits of `fmt`, crudely (test inputs only): truncation, saturating."""
    exponent = np.frexp(np.abs(values))[1] - 1
    clamped = np.clip(exponent, fmt.smallest_exponent, fmt.largest_exponent)
    significand = np.floor(np.ldexp(np.abs(values), fmt.fraction_bits - clamped))
    significand = np.minimum(significand, 2.0 ** (fmt.fraction_bits + 1) - 1).astype(np.int64)
    bits = ((clamped - fmt.smallest_exponent).astype(np.int64) << fmt.fraction_bits) + significand
    bits = np.where(values == 0, 0, bits)
    bits = np.minimum(bits, (fmt.largest >> fmt.dropped_bits))
    bits = (bits << fmt.dropped_bits) | np.where(np.signbit(values), fmt.sign_bit, 0)
    if fmt.dropped_bits:  # rubbish that the tensor core must ignore
        bits = bits | rng.integers(0, 1 << fmt.dropped_bits, bits.shape)
    return bits.astype(f"u{fmt.width_bits // 8}")


def draw(
    distribution: str, a_name: str, b_name: str, d_name: str, m: int, n: int, k: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bits of a (m, k), b (n, k), c (m, n)."""
    rng = np.random.default_rng([seed, DISTRIBUTIONS.index(distribution)])
    fa, fb, fd = FORMATS[a_name], FORMATS[b_name], FORMATS[d_name]

    def raw(fmt: FloatFormat, shape: tuple[int, int]) -> np.ndarray:
        return rng.integers(0, fmt.mask, shape, np.uint64, endpoint=True).astype(
            f"u{fmt.width_bits // 8}"
        )

    def normal(fmt: FloatFormat, shape: tuple[int, int]) -> np.ndarray:
        return encode(rng.standard_normal(shape), fmt, rng)

    def wide(fmt: FloatFormat, shape: tuple[int, int]) -> np.ndarray:
        # Not the largest exponents of bf16 and tf32: those give Inf; `raw` and `huge_c` have them.
        low, high = fmt.smallest_exponent - fmt.fraction_bits, min(fmt.largest_exponent, 20)
        values = rng.standard_normal(shape) * np.exp2(rng.integers(low, high, shape, endpoint=True))
        return encode(values, fmt, rng)

    def subnormal(fmt: FloatFormat, shape: tuple[int, int]) -> np.ndarray:
        bits = rng.integers(0, 3 << fmt.fraction_bits, shape) << fmt.dropped_bits
        return (bits | np.where(rng.random(shape) < 0.5, fmt.sign_bit, 0)).astype(
            f"u{fmt.width_bits // 8}"
        )

    def specials(fmt: FloatFormat, shape: tuple[int, int]) -> np.ndarray:
        bits = normal(fmt, shape)
        top = fmt.infinity if fmt.has_inf else fmt.canonical_nan
        for pattern, chance in ((0, 0.3), (top, 0.01), (fmt.canonical_nan, 0.005)):
            hit = rng.random(shape) < chance
            sign = np.where(rng.random(shape) < 0.5, fmt.sign_bit, 0)
            bits = np.where(hit, pattern | sign, bits).astype(bits.dtype)
        return bits

    makers = {"wide": wide, "subnormal": subnormal, "specials": specials, "raw": raw}
    make = makers.get(distribution, normal)
    a, b, c = make(fa, (m, k)), make(fb, (n, k)), make(fd, (m, n))
    if distribution == "cancel":  # the second half of K undoes the first, but for a few last bits
        half = k // 2
        a[:, half : 2 * half] = a[:, :half] ^ fa.sign_bit
        b[:, half : 2 * half] = b[:, :half] ^ (rng.random((n, half)) < 0.1).astype(b.dtype)
        c = encode(rng.standard_normal((m, n)) * 2.0**-12, fd, rng)
    if distribution == "huge_c":
        c = encode(rng.standard_normal((m, n)) * 2.0 ** (fd.largest_exponent - 1), fd, rng)
        scale = 2.0 ** min(fa.largest_exponent - 1, fd.largest_exponent // 2)
        a = encode(rng.standard_normal((m, k)) * scale, fa, rng)
    return a, b, c


def chain_bits(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    a_name: str,
    b_name: str,
    d_name: str,
    keep: int,
    cleared: int,
    step_k: int,
) -> np.ndarray:
    """The whole matrix of outputs, by `output_bits`."""
    result = c.copy()
    for m in range(a.shape[0]):
        for n in range(b.shape[0]):
            d = int(c[m, n])
            for k in range(0, a.shape[1], step_k):
                row, column = a[m, k : k + step_k].tolist(), b[n, k : k + step_k].tolist()
                d = output_bits(row, column, d, a_name, b_name, d_name, keep, cleared)
            result[m, n] = d
    return result

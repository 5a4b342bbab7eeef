"""The Hopper tensor core, bit for bit: fused sums with truncated alignment, one rounding an instruction.

One instruction computes, for every output, d = round(c + sum over k of a[k] b[k]):

1. products are exact, exponents added and not renormalised; E is the largest exponent among the
   products that are not zero and c if it is not zero, but at least -133 (f32 result) or -21 (f16);
2. every term is truncated toward zero to F fraction bits below 2**E, and the terms are added exactly;
3. the sum is truncated to f32 (fp8 inputs of wgmma: low 10 bits cleared too) or rounded to nearest even f16.

The work is done on (K, M, N) blocks with numpy: outer products in float32 (every product has at most 22
significant bits), a power-of-two scale, a truncating cast to int32.  Why each step is exact is said where
it is taken.  Where float32 could lose an exponent the same steps run in float64.  NaN and Inf are laid
over the finite result.

    >>> kind = WGMMA[("bf16", "bf16")]
    >>> a = np.full((64, 16), 0x3F80, np.uint16); b = np.full((8, 16), 0x4000, np.uint16)  # 1.0, 2.0
    >>> hex(mma(a, b, None, kind)[0, 0])  # 16 * 2.0
    '0x42000000'

Source: hopsim's measurements on H100 SXM and H200 (`docs/numerics.md`); MMA-Sim (arXiv 2511.10909);
Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores" (arXiv 2512.07004).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.decoding import decode
from hopsim.isa.numerics.floating import make_add
from hopsim.isa.numerics.formats import FORMATS
from hopsim.isa.numerics.mma_kinds import WGMMA, DFormat, MmaKind
from hopsim.isa.numerics.mma_operands import ZERO_EXPONENT, ExponentArray, Operand, operand
from hopsim.isa.values import Array

# E is never below these, by result format.  Recorded on an H100 (`decisive`): for f32 a product of 2**-158 counts and one of
# 2**-159 does not, for f16 2**-46 and 2**-47.
_EXPONENT_FLOOR: Final = {"f32": -133, "f16": -21}
_NO_TERM: Final = -4000  # a largest exponent below this means that no term is nonzero
_FLOAT32_FLOOR: Final = -60  # see _Chain._step_float32
_BLOCK: Final = 1 << 15  # elements of a work array: the three, 320 KiB, stay in a 1 MiB L2


class _Chain:
    """One chain of instructions over one block of outputs (batch, M, N); holds its work arrays."""

    def __init__(self, a: Operand, b: Operand, kind: MmaKind, d_format: DFormat) -> None:
        self.kind = kind
        self.d_format: DFormat = d_format
        self.a, self.b = a, b
        self.shift = a.shift + b.shift
        self.has_specials = a.specials is not None or b.specials is not None
        batch, rows, columns = a.values.shape[1], a.values.shape[2], b.values.shape[2]
        self.shape = (batch, rows, columns)
        depth = max(1, min(kind.instruction_k, _BLOCK // (batch * rows * columns)))
        self.depth = depth
        self.exponents = np.empty((depth, *self.shape), np.int16)
        self.products = np.empty((depth, *self.shape), np.float32)
        self.truncated = np.empty((depth, *self.shape), np.int32)
        self.largest = np.empty(self.shape, np.int16)
        self.scale = np.empty(self.shape, np.int32)
        self.total = np.empty(self.shape, np.int32)
        self.wide = np.empty(self.shape, np.float64)
        # int32 holds an instruction's products if k * (2 - ulp)**2 * 2**F stays below 2**31: k = 16 at
        # F = 25 just does, because a significand is at most 2 - 2**-10.
        self.fits_int32 = kind.instruction_k << kind.fraction_bits + 2 <= 1 << 31

    def step(self, start: int, stop: int, c: Array) -> Array:
        """One instruction: products of k in [start, stop) and the accumulator bits c to result bits."""
        of_products = self._largest_exponent(start, stop)
        d = None
        if self.fits_int32 and self.d_format == "f32" and not self.has_specials:
            d = self._step_float32(start, stop, c, of_products)
        return self._step_float64(start, stop, c, of_products) if d is None else d

    def _largest_exponent(self, start: int, stop: int) -> ExponentArray:
        """Largest relative exponent among the nonzero products of k in [start, stop)."""
        largest = self.largest
        largest.fill(2 * ZERO_EXPONENT)
        for k in range(start, stop, self.depth):
            end = min(k + self.depth, stop)
            sums = self.exponents[: end - k]
            a, b = self.a.exponents[k:end, :, :, None], self.b.exponents[k:end, :, None, :]
            np.add(a, b, out=sums)
            for row in sums:
                np.maximum(largest, row, out=largest)
        return largest

    def _step_float32(
        self, start: int, stop: int, c: Array, of_products: ExponentArray
    ) -> Array | None:
        """The step in float32 and int32; None where these might not be exact.

        With every output's E in [-60, 90] relative to `shift` and in [-90, 90] itself:

        - A product of exponent e >= E - 27 >= -87 has a last bit of at least 2**-109 and factors of at
          least 2**-105: float32 holds them exactly.  Any other product, even if float32 rounded or
          flushed it or its factors, stays below 2**(E - 25) and truncates to 0.
        - A subnormal c is as good as zero: it is below 2**(E - 60).
        - Scales are normal; scaled terms are below 2**(F + 2) <= 2**27 and keep their 22 or 24 bits.
        - d is at least 2**(E - 25) or zero, and below 2**(E + 8): neither subnormal nor infinite.
        """
        # The upper half of a little-endian word has the whole exponent field; 255 is NaN or Inf.
        field = (c.view(np.uint16)[..., 1::2] & 0x7F80).view(np.int16) >> 7
        highest = int(field.max())
        field -= 127 + self.shift
        largest = np.maximum(of_products, field, out=field)
        lowest, top = int(largest.min()), int(largest.max())
        if highest == 255 or top > min(90, 90 - self.shift):
            return None
        floor = max(_FLOAT32_FLOOR, -90 - self.shift)
        if lowest < floor:
            low = largest < floor
            if ((of_products > _NO_TERM) | (c & 0x7FFFFFFF != 0))[low].any():
                return None
            np.maximum(largest, floor, out=largest)  # there every term is zero
        np.subtract(127 + self.kind.fraction_bits, largest, out=self.scale, dtype=np.int32)
        np.left_shift(self.scale, 23, out=self.scale)
        scale = self.scale.view(np.float32)
        total = self.total
        total.fill(0)
        for k in range(start, stop, self.depth):
            end = min(k + self.depth, stop)
            products, truncated = self.products[: end - k], self.truncated[: end - k]
            a, b = self.a.scaled[k:end, :, :, None], self.b.scaled[k:end, :, None, :]
            np.multiply(a, b, out=products)
            np.multiply(products, scale, out=products)
            np.copyto(truncated, products, casting="unsafe")  # toward zero
            for row in truncated:
                np.add(total, row, out=total)
        if self.shift:
            self.scale -= self.shift << 23  # from here on absolute
        products, truncated, wide = self.products[0], self.truncated[0], self.wide
        np.multiply(c.view(np.float32), scale, out=products)
        np.copyto(truncated, products, casting="unsafe")
        np.add(total, truncated, out=wide, dtype=np.float64)
        _keep_24_bits(wide)
        np.subtract(254 << 23, self.scale, out=self.scale)  # the scale's reciprocal, 2**(E - F)
        result = wide.astype(np.float32)
        result *= scale
        bits = result.view(np.uint32)
        _clear_low_bits(bits, self.kind)
        return bits

    def _step_float64(self, start: int, stop: int, c: Array, of_products: ExponentArray) -> Array:
        """The step in float64, for all inputs."""
        c_value, c_exponent, c_special = _accumulator(c, self.d_format)
        largest = np.maximum(of_products, c_exponent - np.int16(self.shift)).astype(np.int64)
        largest += self.shift
        # Where there is no term any E will do, since the sum is 0.
        np.maximum(largest, _EXPONENT_FLOOR[self.d_format], out=largest)
        unit = _power_of_two(largest - self.kind.fraction_bits)
        # Products lie in [2**-266, 2**256] with at most 22 bits; terms / unit are below 2**(F + 2) and the
        # sum below 2**33: all exact.
        scale = 1 / unit
        total = np.trunc(c_value * scale)
        for k in range(start, stop):
            a = self.a.values[k, :, :, None].astype(np.float64)
            b = self.b.values[k, :, None, :].astype(np.float64)
            product = a * b
            product *= scale
            total += np.trunc(product, out=product)
        total += 0.0  # -0, from c alone, becomes +0
        d = _round(total, unit, self.kind, self.d_format)
        if c_special or self.has_specials:
            self._lay_specials(start, stop, c, d)
        return d

    def _lay_specials(self, start: int, stop: int, c: Array, d: Array) -> None:
        """Overwrite the outputs that NaN or Inf reach, in place."""
        a = (self.a.values if self.a.specials is None else self.a.specials)[start:stop]
        b = (self.b.values if self.b.specials is None else self.b.specials)[start:stop]
        a, b = np.moveaxis(a, 0, 2), np.moveaxis(b, 0, 1)  # (batch, M, k), (batch, k, N)
        c_value = c.view(np.float16 if self.d_format == "f16" else np.float32)
        nan = np.any(np.isnan(a), axis=2, keepdims=True) | np.any(
            np.isnan(b), axis=1, keepdims=True
        )
        nan = nan | np.isnan(c_value) | _meet((np.isinf(a), b == 0), (a == 0, np.isinf(b)))
        plus_a, minus_a, plus_b, minus_b = a == np.inf, a == -np.inf, b == np.inf, b == -np.inf
        plus = (c_value == np.inf) | _meet(
            (plus_a, b > 0), (minus_a, b < 0), (a > 0, plus_b), (a < 0, minus_b)
        )
        minus = (c_value == -np.inf) | _meet(
            (plus_a, b < 0), (minus_a, b > 0), (a > 0, minus_b), (a < 0, plus_b)
        )
        fmt = FORMATS[self.d_format]
        d[plus] = fmt.infinity
        d[minus] = fmt.infinity | fmt.sign_bit
        d[nan | (plus & minus)] = fmt.canonical_nan


def _meet(*pairs: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """For each output, whether some k has both conditions of some pair: counted by a matrix product."""
    left = np.concatenate([pair[0] for pair in pairs], axis=2).astype(np.float32)
    right = np.concatenate([pair[1] for pair in pairs], axis=1).astype(np.float32)
    return np.matmul(left, right) > 0


def _power_of_two(exponents: NDArray[np.int64]) -> NDArray[np.float64]:
    """2.0 ** exponents, for exponents of normal float64 numbers; overwrites its argument."""
    exponents += 1023
    exponents <<= 52
    return exponents.view(np.float64)


def _accumulator(c: Array, d_format: DFormat) -> tuple[NDArray[np.float64], ExponentArray, bool]:
    """Value (specials as 0), exponent, and whether any is special."""
    fmt = FORMATS[d_format]
    field_max = (1 << fmt.exponent_bits) - 1
    magnitude = c & (fmt.sign_bit - 1)
    field = (magnitude >> fmt.fraction_bits).astype(np.int16)
    special = int(field.max()) == field_max
    value = c.view(np.float16 if d_format == "f16" else np.float32).astype(np.float64)
    exponent = np.maximum(field, np.int16(1))
    exponent -= fmt.bias
    exponent[magnitude == 0] = 2 * ZERO_EXPONENT
    if special:
        where = field == field_max
        value[where] = 0
        exponent[where] = 2 * ZERO_EXPONENT
    return value, exponent, special


def _keep_24_bits(total: NDArray[np.float64]) -> None:
    """Truncate toward zero to 24 significant bits, in place."""
    words = total.view(np.uint64)
    words &= np.uint64(0xFFFFFFFFE0000000)


def _clear_low_bits(bits: NDArray[np.uint32], kind: MmaKind) -> None:
    if kind.cleared_low_bits:
        bits &= np.uint32(0xFFFFFFFF << kind.cleared_low_bits & 0xFFFFFFFF)


def _round(
    total: NDArray[np.float64], unit: NDArray[np.float64], kind: MmaKind, d_format: DFormat
) -> Array:
    """Round `total * unit` to the result format; total is an exact integer below 2**36."""
    if d_format == "f16":
        bits = (total * unit).astype(np.float16).view(np.uint16)
        bits[bits == 0x8000] = 0  # a negative sum that rounds to zero gives +0
        return bits
    _keep_24_bits(total)
    total *= unit
    tiny = np.abs(total) < 2.0**-126
    if tiny.any():
        total[tiny] = np.trunc(total[tiny] * 2.0**149) * 2.0**-149 + 0.0  # + 0.0 makes -0 +0
    result = total.astype(np.float32).view(np.uint32)  # exact, or 2**128 and more: Inf
    _clear_low_bits(result, kind)
    return result


def mma_chain(
    a: Array,
    b: Array,
    c: Array | None,
    kind: MmaKind,
    d_format: DFormat = "f32",
    *,
    instruction_k: int | None = None,
    negate_a: bool = False,
    negate_b: bool = False,
) -> Array:
    """Return the bits of C + A B^T, summed by a chain of instructions along K, one rounding each.

    Args:
        a: raw bits (..., M, K), uint8/16/32 as the format is wide.
        b: raw bits (..., N, K); leading axes equal those of a.
        c: raw bits (..., M, N), uint32 (f32) or uint16 (f16); None means +0 (`scale-d` = 0).
        kind: a row of `WGMMA` or `MMA_SYNC`.
        instruction_k: elements of one instruction; default is the kind's.  K must be a multiple.
        negate_a, negate_b: `imm-scale` = -1: flips the sign of each element first (recorded on an H100).
    Returns: raw bits (..., M, N), uint32 or uint16.
    """
    step_k = kind.instruction_k if instruction_k is None else instruction_k
    *lead, rows, depth = a.shape
    columns = b.shape[-2]
    assert b.shape == (*lead, columns, depth), (a.shape, b.shape)
    assert depth % step_k == 0, f"K = {depth} is not a multiple of the instruction's {step_k}"
    if kind.through_f16:
        return _chain_through_f16(a, b, c, kind, d_format, step_k, negate_a != negate_b)
    if step_k != kind.instruction_k:
        kind = replace(kind, instruction_k=step_k)
    dtype = np.uint16 if d_format == "f16" else np.uint32
    batch = int(np.prod(lead, dtype=np.int64))
    result = np.zeros((batch, rows, columns), dtype)
    if c is not None:
        result[...] = c.reshape(batch, rows, columns)
    a3, b3 = a.reshape(batch, rows, depth), b.reshape(batch, columns, depth)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        left = operand(a3, FORMATS[kind.a], negate_a)
        right = operand(b3, FORMATS[kind.b], negate_b)
        for where_batch, where_rows, where_columns in _blocks(batch, rows, columns):
            block_a = left.cut(where_batch, where_rows)
            block_b = right.cut(where_batch, where_columns)
            chain = _Chain(block_a, block_b, kind, d_format)
            where = (where_batch, where_rows, where_columns)
            d = np.ascontiguousarray(result[where])
            for k in range(0, depth, step_k):
                d = chain.step(k, k + step_k, d)
            result[where] = d
    return result.reshape(*lead, rows, columns)


def _chain_through_f16(
    a: Array,
    b: Array,
    c: Array | None,
    kind: MmaKind,
    d_format: DFormat,
    step_k: int,
    negate: bool,
) -> Array:
    """fp8 `mma.sync`, which Hopper does not have: the assembler converts the operands to f16.

    Two f16 instructions chain from zero: first the elements k with bit 1 clear (the low halves of the
    operand registers), then the others.  An ordinary add to nearest brings in c.
    """
    half_k = step_k // 2
    order = np.arange(step_k).reshape(-1, 2, 2).swapaxes(0, 1).reshape(-1)
    f16 = replace(WGMMA[("f16", "f16")], instruction_k=half_k)
    with np.errstate(over="ignore", invalid="ignore"):
        left = decode(a, FORMATS[kind.a]).astype(np.float16).view(np.uint16)
        right = decode(b, FORMATS[kind.b]).astype(np.float16).view(np.uint16)
    add = make_add(d_format)
    d = c
    for k in range(0, a.shape[-1], step_k):
        block = k + order
        total = mma_chain(left[..., block], right[..., block], None, f16, d_format, negate_a=negate)
        d = total if d is None else add(total, d)
    if not isinstance(d, np.ndarray):
        raise ValueError("a chain needs at least one instruction")
    return d


def mma(
    a: Array,
    b: Array,
    c: Array | None,
    kind: MmaKind,
    d_format: DFormat = "f32",
    *,
    negate_a: bool = False,
    negate_b: bool = False,
) -> Array:
    """Return the bits of one instruction: `mma_chain` with K = one instruction's K, whatever its length."""
    return mma_chain(
        a, b, c, kind, d_format, instruction_k=a.shape[-1], negate_a=negate_a, negate_b=negate_b
    )


def _blocks(batch: int, rows: int, columns: int) -> list[tuple[slice, slice, slice]]:
    """Cut the outputs into blocks of at most 64 x 256, or whole batches of small tiles."""
    if rows * columns <= 4096:
        count = max(1, 16384 // (rows * columns))
        return [
            (slice(i, i + count), slice(0, rows), slice(0, columns)) for i in range(0, batch, count)
        ]
    return [
        (slice(i, i + 1), slice(m, m + 64), slice(n, n + 256))
        for i in range(batch)
        for m in range(0, rows, 64)
        for n in range(0, columns, 256)
    ]

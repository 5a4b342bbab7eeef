"""Matrix products without the tensor core's own rounding: integers, bits, f64, and the float32 approximation.

Operands are laid out as in `hopsim.isa.numerics.tensor_core`: a (..., M, K), b (..., N, K), c (..., M, N).

Source: PTX ISA 8.7 "wgmma.mma_async", "mma" (integer types wrap, or clamp with `.satfinite`); f64 as recorded on an H200
(tests/silicon/h200/probes/mma_double.npz).
"""

from __future__ import annotations

import numpy as np

from hopsim.isa.numerics.decoding import FloatArray, decode
from hopsim.isa.numerics.floating import make_fma
from hopsim.isa.numerics.formats import FORMATS
from hopsim.isa.numerics.mma_kinds import DFormat, MmaKind
from hopsim.isa.numerics.rounding import Rounding
from hopsim.isa.values import Array


def mma_float32(
    a: Array,
    b: Array,
    c: Array | None,
    kind: MmaKind,
    d_format: DFormat = "f32",
    *,
    negate_a: bool = False,
    negate_b: bool = False,
) -> Array:
    """Return bits of C + A B^T in ordinary float32: fast, near, and not what the hardware gives.

    Takes what `mma_chain` takes.  The order of the sum is that of the BLAS library.
    """
    with np.errstate(all="ignore"):
        left, right = decode(a, FORMATS[kind.a]), decode(b, FORMATS[kind.b])
        total = np.matmul(-left if negate_a != negate_b else left, np.swapaxes(right, -1, -2))
        if d_format == "f16":
            if c is not None:
                total += c.view(np.float16)
            return total.astype(np.float16).view(np.uint16)
        if c is not None:
            total += np.ascontiguousarray(c).view(np.float32)
        return total.view(np.uint32)


def mma_integer(
    a: Array,
    b: Array,
    c: Array | None,
    *,
    a_signed: bool,
    b_signed: bool,
    satfinite: bool = False,
    instruction_k: int = 32,
    bits: int = 8,
) -> Array:
    """Return the s32 bits of C + A B^T for integer operands of 8 or 4 bits.

    Args:
        a, b: raw bits, uint8, an element each.
        c: raw bits, uint32; None means 0.
        satfinite: clamp each instruction's sum to s32 instead of wrapping.
        instruction_k: elements that one instruction sums; matters only with `satfinite`.
        bits: of an element.
    """
    left = _integers(a, a_signed, bits)
    right = np.swapaxes(_integers(b, b_signed, bits), -1, -2)
    shape = (*a.shape[:-1], b.shape[-2])
    total = np.zeros(shape, np.int64) if c is None else c.view(np.int32).astype(np.int64)
    # 256 products of at most 255 * 255 stay below 2**24: the float32 matrix product is exact.
    step = instruction_k if satfinite else 256
    for k in range(0, a.shape[-1], step):
        products = np.matmul(left[..., k : k + step], right[..., k : k + step, :])
        total += products.astype(np.int64)
        if satfinite:
            np.clip(total, -(2**31), 2**31 - 1, out=total)
    return total.astype(np.uint32)  # modulo 2**32


def _integers(elements: Array, is_signed: bool, bits: int) -> FloatArray:
    """Return what raw bits stand for."""
    if not is_signed:
        return elements.astype(np.float32)
    unused = np.uint8(8 - bits)
    return ((elements << unused).view(np.int8) >> unused).astype(np.float32)


def mma_bits(a: Array, b: Array, c: Array, *, is_xor: bool) -> Array:
    """Return the s32 bits of C plus how many bits are set in the conjunction of each row of A and of B.

    Args:
        a, b: 0 or 1, uint8.
        c: raw bits, uint32.
        is_xor: count where they differ instead.
    """
    left, right = a.astype(np.int32), b.astype(np.int32)
    count = np.matmul(left, np.swapaxes(right, -1, -2))
    if is_xor:
        count = left.sum(-1)[..., :, None] + right.sum(-1)[..., None, :] - 2 * count
    return c + count.astype(np.uint32)


def mma_double(a: Array, b: Array, c: Array, rounding: Rounding = "rn") -> Array:
    """Return the f64 bits of C + A B^T: fused multiply-adds in the order of K, a rounding each.

    Args:
        a, b, c: raw bits, uint64.
    """
    fma = make_fma("f64", rounding)
    total: Array = c.reshape(-1)
    for k in range(a.shape[-1]):
        left, right = np.broadcast_arrays(a[..., :, None, k], b[..., None, :, k])
        total = np.asarray(fma(left.reshape(-1), right.reshape(-1), total))
    return total.reshape(c.shape)

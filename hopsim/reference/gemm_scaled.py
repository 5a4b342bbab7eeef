"""The fp8 product with fine-grained scales, in the order of `hopsim.kernels.fp8_scaled`: the same bits.

    >>> import ml_dtypes
    >>> a = np.ones((2, 128), ml_dtypes.float8_e4m3fn)
    >>> scale = np.full((2, 1), 0.5, np.float32)
    >>> gemm_scaled(a, a, scale, scale[:1])[0, 0]
    np.float32(32.0)

Source: DeepGEMM (github.com/deepseek-ai/DeepGEMM), fp8_gemm.cuh.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hopsim.isa.numerics.floating import make_fma
from hopsim.reference.gemm import gemm

F32 = NDArray[np.float32]

BLOCK: Final = 128
_FMA = make_fma("f32")


def gemm_scaled(
    a: NDArray[Any],
    b: NDArray[Any],
    a_scales: F32,
    b_scales: F32,
    out_dtype: DTypeLike | None = None,
) -> NDArray[Any]:
    """Return the sum over blocks of 128 k of a_scale * b_scale * (A B^T over the block), in f32.

    Args:
        a: (M, K) fp8.  b: (N, K) fp8.
        a_scales: (M, K / 128).  b_scales: (N / 128, K / 128), each rounded up.
        out_dtype: converts the result to nearest even.
    """
    total = np.zeros((len(a), len(b)), np.float32)
    block_of = np.arange(len(b)) // BLOCK
    for block in range(a_scales.shape[1]):
        columns = slice(block * BLOCK, (block + 1) * BLOCK)
        part = gemm(a[:, columns], b[:, columns])
        factor = a_scales[:, block, None] * b_scales[block_of, block]
        words = (np.ascontiguousarray(x).view(np.uint32) for x in (part, factor, total))
        total = np.asarray(_FMA(*words)).view(np.float32)
    return total if out_dtype is None else total.astype(out_dtype)


def dequantised(q: NDArray[Any], scales: F32, rows: int) -> NDArray[np.float64]:
    """Return q (M, K) times its scales, exactly.

    Args:
        scales: (M / rows, K / 128).  rows: rows that share a scale.
    """
    by_row = np.repeat(scales.astype(np.float64), rows, axis=0)[: q.shape[0]]
    return q.astype(np.float64) * np.repeat(by_row, BLOCK, axis=1)[:, : q.shape[1]]

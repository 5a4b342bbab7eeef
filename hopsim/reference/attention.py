"""Forward attention in the order of operations of `hopsim.kernels.attention`: the same bits.

Blocks of K and V are walked from the last to the first with an online softmax; scores and outputs
are chains of tensor-core instructions (`hopsim.reference.gemm`), everything else is f32.

    >>> import ml_dtypes
    >>> q = np.ones((1, 2, 64), ml_dtypes.bfloat16)
    >>> attention(q, q, q)[0, 0, 0]
    1

Source: FlashAttention-3, arXiv 2407.08608, algorithm 2.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.approximate import make_approximate
from hopsim.isa.numerics.floating import make_fma
from hopsim.reference.gemm import gemm

F32 = NDArray[np.float32]

_LOWEST: Final = np.float32(-(2.0**100))
_EX2 = make_approximate("ex2", "f32", ftz=True)
_FMA = make_fma("f32")


def attention(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    *,
    causal: bool = False,
    block_q: int = 128,
    block_kv: int = 128,
) -> NDArray[Any]:
    """Return softmax(Q K^T / sqrt(d)) V for each head, in the type of `q`.

    Args:
        q: (heads, seq_q, d).  k, v: (heads, seq_kv, d), of the same 16-bit type.
        causal: row i sees columns up to i + seq_kv - seq_q; a row that sees nothing gives 0.
        block_q, block_kv: rows of a tile and of a block: they decide the order of operations.
    """
    out = np.empty(q.shape, q.dtype)
    offset = k.shape[1] - q.shape[1]
    for head in range(q.shape[0]):
        for first in range(0, q.shape[1], block_q):
            rows = slice(first, first + block_q)
            out[head, rows] = _tile(
                q[head, rows], k[head], v[head], first + offset if causal else None,
                block_q, block_kv,
            )  # fmt: skip
    return out


def attention_f64(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], *, causal: bool = False
) -> NDArray[np.float64]:
    """Return attention in float64, the yardstick for how far a result is from the truth."""
    x, y, z = (part.astype(np.float64) for part in (q, k, v))
    scores = x @ y.transpose(0, 2, 1) / math.sqrt(q.shape[2])
    if causal:
        seen = np.tri(q.shape[1], k.shape[1], k.shape[1] - q.shape[1], dtype=np.bool_)
        scores[:, ~seen] = -np.inf
    peak = scores.max(axis=2, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(peak), peak, 0))
    total = weights.sum(axis=2, keepdims=True)
    return (weights @ z) / np.where(total == 0, 1, total)


def _tile(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    diagonal: int | None,
    block_q: int,
    block_kv: int,
) -> NDArray[Any]:
    """Return the rows of one CTA; `diagonal` is the last column that the first row sees."""
    rows, length = len(q), len(k)
    seen = length if diagonal is None else max(1, min(diagonal + block_q, length))
    limit = np.full(rows, length)
    if diagonal is not None:
        limit = np.minimum(diagonal + np.arange(rows) + 1, length)
    scale = np.float32(math.log2(math.e) / math.sqrt(q.shape[1]))
    peak = np.full(rows, _LOWEST)
    total = np.zeros((rows, 4), np.float32)
    output: F32 | None = None
    for start in range((seen - 1) // block_kv * block_kv, -1, -block_kv):
        scores = gemm(q, _block(k, start, block_kv))
        columns = start + np.arange(block_kv)
        scores = np.where(columns < limit[:, None], scores, np.float32(-np.inf))
        above = np.maximum(peak, scores.max(axis=1))
        alpha = _ex2((peak - above) * scale)
        peak = above
        shift = peak * -scale
        weights = _ex2(_fma(scores, scale, shift[:, None]))
        total = _sums(total * alpha[:, None], weights)
        if output is not None:
            output = output * alpha[:, None]
        output = gemm(weights.astype(q.dtype), _block(v, start, block_kv).T, output)
    assert output is not None, (rows, length)
    whole = (total[:, 0] + total[:, 1]) + (total[:, 2] + total[:, 3])
    with np.errstate(divide="ignore"):
        norm = np.where(whole == 0, np.float32(0), np.float32(1) / whole)
    return (output * norm[:, None]).astype(q.dtype)


def _block(x: NDArray[Any], start: int, block: int) -> NDArray[Any]:
    """Return rows from `start` on, with zeros past the end, as TMA brings them."""
    found = np.zeros((block, x.shape[1]), x.dtype)
    part = x[start : start + block]
    found[: len(part)] = part
    return found


def _sums(total: F32, weights: F32) -> F32:
    """Add the weights of a block to the sums of the four lanes that hold a row, column by column."""
    rows, columns = weights.shape
    of_lane = weights.reshape(rows, columns // 8, 4, 2).transpose(1, 3, 0, 2).reshape(-1, rows, 4)
    for part in of_lane:
        total = total + part
    return total


def _ex2(x: F32) -> F32:
    return np.asarray(_EX2(np.ascontiguousarray(x).view(np.uint32))).view(np.float32)


def _fma(a: F32, b: np.float32, c: F32) -> F32:
    whole = np.broadcast_to(c, a.shape).copy().view(np.uint32)
    factor = np.full(a.shape, b, np.float32).view(np.uint32)
    found = _FMA(np.ascontiguousarray(a).view(np.uint32), factor, whole)
    return np.asarray(found).view(np.float32)

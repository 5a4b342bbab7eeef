"""Quantisation to e4m3 with scales: of each row and 128 of K, of each 128 x 128, or of a whole tensor.

A scale is the largest magnitude of its block divided by 448, the largest e4m3 number; x is near
scale * q.

>>> quantised, scale = by_tensor(np.array([[224.0, -1.0]], np.float32))
>>> quantised.astype(float).tolist(), float(scale)
([[448.0, -2.0]], 0.5)
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Quantised = NDArray[Any]
F32 = NDArray[np.float32]

BLOCK = 128
LARGEST = 448.0
"""Largest e4m3 number. Source: Micikevicius et al., FP8 Formats for Deep Learning, arXiv 2209.05433."""

_E4M3: np.dtype[Any] = np.dtype(ml_dtypes.float8_e4m3fn)


def by_row(x: F32) -> tuple[Quantised, F32]:
    """Return x (rows, K) in e4m3 and its scales (rows, K / 128): DeepGEMM's `per_token_cast_to_fp8`."""
    return _blocks(x, 1)


def by_block(x: F32) -> tuple[Quantised, F32]:
    """Return x (rows, K) in e4m3 and its scales (rows / 128, K / 128): `per_block_cast_to_fp8`."""
    return _blocks(x, BLOCK)


def by_tensor(x: F32) -> tuple[Quantised, np.float32]:
    """Return x in e4m3 and its one scale."""
    scale = _scale(np.abs(x).max(initial=0))
    return (x / scale).astype(_E4M3), np.float32(scale)


def _scale(largest: Any) -> Any:
    return np.where(largest == 0, 1, largest / LARGEST).astype(np.float32)


def _blocks(x: F32, rows: int) -> tuple[Quantised, F32]:
    m, k = x.shape
    down, along = -(-m // rows), -(-k // BLOCK)
    padded = np.zeros((down * rows, along * BLOCK), np.float32)
    padded[:m, :k] = x
    parts = padded.reshape(down, rows, along, BLOCK)
    scales: F32 = _scale(np.abs(parts).max(axis=(1, 3)))
    scaled = (parts / scales[:, None, :, None]).reshape(padded.shape)
    return scaled[:m, :k].astype(_E4M3), scales

"""A convolution as a GEMM of pixels moved by each place in the filter: the judge of im2col copies and of kernels with them.

>>> x = np.ones((1, 3, 3, 16), np.float16); w = np.ones((2, 3, 3, 16), np.float16)
>>> convolution(x, w, padding=(1, 1), slice_channels=16)[0, :, :, 0].tolist()
[[64.0, 96.0, 64.0], [96.0, 144.0, 96.0], [64.0, 96.0, 64.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.reference.gemm import gemm

Pair = tuple[int, int]


def columns(
    x: NDArray[Any],
    extent: Pair,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> NDArray[Any]:
    """Return the pixels under each place of the filter for each pixel of the output: (images, P, Q, R, S, channels).

    Args:
        x: (images, H, W, channels); what lies outside is zero.
    """
    wide = np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    p, q = (
        (wide.shape[axis + 1] - (extent[axis] - 1) * dilation[axis] - 1) // stride[axis] + 1
        for axis in (0, 1)
    )
    found = np.zeros((x.shape[0], p, q, *extent, x.shape[3]), x.dtype)
    for r in range(extent[0]):
        for s in range(extent[1]):
            top, left = r * dilation[0], s * dilation[1]
            rows = slice(top, top + (p - 1) * stride[0] + 1, stride[0])
            found[:, :, :, r, s] = wide[:, rows, left : left + (q - 1) * stride[1] + 1 : stride[1]]
    return found


def convolution(
    x: NDArray[Any],
    w: NDArray[Any],
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    slice_channels: int = 64,
) -> NDArray[Any]:
    """Return the convolution in f32, summed as the tensor cores sum: by places of the filter, each by slices of channels.

    Args:
        x: (images, H, W, channels).  w: (filters, R, S, channels).
        slice_channels: channels of a stage, filled with zeros where a tensor has fewer.

    Returns: (images, P, Q, filters), f32.
    """
    filters, r, s, channels = w.shape
    moved = columns(x, (r, s), stride=stride, padding=padding, dilation=dilation)
    missing = -channels % slice_channels
    fill = ((0, 0), (0, missing))
    a = np.pad(moved.reshape(-1, channels), fill).reshape(-1, r * s * (channels + missing))
    b = np.pad(w.reshape(-1, channels), fill).reshape(filters, -1)
    return gemm(a, b).reshape(*moved.shape[:3], filters)

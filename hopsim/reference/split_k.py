"""C = A B^T with K in parts: each part one chain of the tensor core, the parts added in f32 (int32 for integers).

>>> a = np.ones((1, 64), np.float16)
>>> add(parts(a, a, [range(0, 16), range(16, 64)]))
array([[64.]], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.reference.gemm import gemm

Sums = NDArray[np.float32] | NDArray[np.int32]
MOST_UNORDERED_PARTS: Final = 5
"""More have so many orders (720 and up) that nobody wants to try them all."""


def parts(a: NDArray[Any], b: NDArray[Any], ranges: Iterable[range]) -> list[Sums]:
    """Return the sum of each range of k, shape (M, N): a and b are (M, K) and (N, K)."""
    return [gemm(a[:, ks.start : ks.stop], b[:, ks.start : ks.stop]) for ks in ranges]


def add(terms: Sequence[Sums]) -> Sums:
    """Return the sum of the terms from first to last, each addition rounded to nearest even."""
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return total


def add_to_zero(
    terms: Sequence[NDArray[np.float32]], *, flushes: bool = False
) -> list[NDArray[np.float32]]:
    """Return all that additions to a zeroed C may give, in whatever order the terms arrive.

    Args:
        flushes: f32 atomics in global memory take subnormals for zeros.

    Raises: ValueError: there are more than `MOST_UNORDERED_PARTS` terms.
    Source: PTX ISA 8.7 "atom" (`.f32` in global memory flushes subnormal operands and results).
    """
    if len(terms) > MOST_UNORDERED_PARTS:
        raise ValueError(f"expected at most {MOST_UNORDERED_PARTS} terms, got {len(terms)}")
    read = [_flush(term) for term in terms] if flushes else list(terms)
    found: list[NDArray[np.float32]] = []
    for order in permutations(read):
        total = np.zeros_like(read[0])
        for term in order:
            total = _flush(total + term) if flushes else total + term
        found.append(total)
    return found


def _flush(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return subnormals as zeros of their sign."""
    small = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), values), values).astype(np.float32)

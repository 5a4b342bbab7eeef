"""One launch of a kernel that nvcc compiled, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One launch.

    Args:
        kernel: in the set's `.cu`.
        size: what tells it from other launches of the kernel.
        grid, block: extents.
        outputs: shapes and types, the first parameters of the kernel; zeros before the launch.
        inputs: arrays and numbers, the parameters after them, also those that it uses as scratch.
    """

    kernel: str
    size: str
    grid: Shape
    block: Shape
    outputs: Sequence[tuple[Shape, Any]]
    inputs: Callable[[], Sequence[Array | np.generic]]

    @property
    def name(self) -> str:
        """Kernel and size."""
        return f"{self.kernel} {self.size}"


def floats(*shape: int, seed: int = 1) -> Array:
    """Return normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bfloats(*shape: int, seed: int = 1) -> Array:
    """Return normal numbers as the words of bf16: float32 without its lower half."""
    return (floats(*shape, seed=seed).view(np.uint32) >> 16).astype(np.uint16)


def integers(below: int, *shape: int, dtype: Any = np.int32, seed: int = 2) -> Array:
    """Return integers from 0 on."""
    return np.random.default_rng(seed).integers(0, below, shape).astype(dtype)


def i32(value: int) -> np.int32:
    """Return a parameter of 32 bits."""
    return np.int32(value)

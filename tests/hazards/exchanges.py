"""Exchanges between threads as CUDA programs have them, compiled by nvcc: how they are launched, and what is right of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hopsim as hs

DATA = Path(__file__).parents[1] / "data" / "nvcc"
X = np.random.default_rng(3).integers(-50, 50, 2048).astype(np.int32)
LANES = np.arange(32, dtype=np.int32)
ORDERS: list[dict[str, Any]] = [
    {"schedule": "in-order"},
    {"schedule": "seeded", "seed": 1},
    {"schedule": "seeded", "seed": 2},
    {"schedule": "adversarial"},
]


def words(count: int) -> NDArray[np.int32]:
    return np.zeros(count, np.int32)


def rows(count: int, width: int) -> NDArray[np.int32]:
    return X[: count * width].reshape(count, width)


@dataclass(frozen=True)
class Exchange:
    """A kernel, how it is launched, what its last array holds, and the rule that its flaw breaks.

    Args:
        flaw: found in every order.
        wanted: the array, or whether one is right.
    """

    name: str
    flaw: str
    arrays: Callable[[], list[Any]]
    wanted: NDArray[Any] | Callable[[NDArray[Any]], bool]
    grid: int = 1
    block: int = 64
    cluster: int = 1


def launch(
    module: hs.Module, exchange: Exchange, order: dict[str, Any]
) -> tuple[hs.LaunchResult, NDArray[Any]]:
    gpu = hs.Gpu()
    given = [gpu.array(one) if isinstance(one, np.ndarray) else one for one in exchange.arrays()]
    result = gpu.launch(
        module[exchange.name], exchange.grid, exchange.block, exchange.cluster, given, timing=False, max_cycles=500_000,
        **order,
    )  # fmt: skip
    return result, given[-1].numpy()


def check_right(module: hs.Module, exchange: Exchange, order: dict[str, Any]) -> None:
    """Assert that a kernel without a flaw is clean, and writes what is wanted."""
    result, y = launch(module, exchange, order)
    assert list(result.hazards) == []
    assert result.verdict == "clean"
    wanted = exchange.wanted
    assert wanted(y) if callable(wanted) else (y == np.ravel(wanted)).all()


def check_flawed(module: hs.Module, exchange: Exchange, order: dict[str, Any]) -> None:
    """Assert that the rule which a kernel's flaw breaks is among those that are told."""
    result, _ = launch(module, exchange, order)
    assert exchange.flaw in {hazard.rule for hazard in result.hazards if hazard.level == "hazard"}
    assert result.verdict == "hazard"

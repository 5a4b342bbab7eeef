"""Exchanges between threads as CUDA programs have them (tests/data/nvcc/exchanges.cu), compiled by nvcc: right, and with a flaw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs
from tests.hazards.exchanges import (
    DATA,
    LANES,
    ORDERS,
    Exchange,
    X,
    check_flawed,
    check_right,
    rows,
    words,
)

RIGHT, FLAWED = hs.load(DATA / "exchanges.ptx"), hs.load(DATA / "exchanges_bad.ptx")


def small_graph() -> list[Any]:
    """Return arguments of a search from node 0: edges by node, the first front, its size, levels, steps."""
    heads, nodes = [0, 2, 4, 6, 7, 8, 8, 8, 8], [1, 2, 3, 4, 4, 5, 6, 7]
    count, levels = words(8), words(8) - 1
    count[0], levels[0] = 1, 0
    return [
        np.array(heads, np.int32),
        np.array(nodes, np.int32),
        words(128),
        count,
        np.int32(4),
        levels,
    ]


def kept(values: NDArray[Any]) -> NDArray[np.int32]:
    return np.sort(values[values % 3 == 0])


THREES = kept(X[:128])

EXCHANGES = [
    Exchange("last_block", "HS216", lambda: [X[:384], words(3), words(1).view(np.uint32), words(1)],
             X[:384].sum(keepdims=True), 3, 128),
    Exchange("lock", "HS500", lambda: [words(1), words(64)], words(64) + 6, 3),
    Exchange("flagged", "HS216", lambda: [words(1), words(64), words(64)], np.arange(64) * 5, 2),
    Exchange("ring", "HS216", lambda: [X[:1024], words(256), words(1), words(1), words(1024)], X[:1024] + 1, 2),
    Exchange("queue", "HS216", lambda: [words(8), words(8), words(2), words(24)], np.arange(24) * 10, 4),
    Exchange("stack", "HS216", lambda: [words(64), words(64), words(1), words(32)],
             lambda y: len(set(y.tolist()) & set(range(0, 192, 3))) == 32, 2, 32),
    Exchange("look_back", "HS216", lambda: [X[:512], words(4), words(4), words(4), words(512)],
             np.cumsum(X[:512]), 4, 128),
    Exchange("steps", "HS500", lambda: [words(192), words(1), words(192)], np.arange(192)[::-1], 3),
    Exchange("search", "HS500", small_graph, np.array([0, 1, 1, 2, 2, 2, 3, 3]), 2, 32),
    Exchange("compact", "HS500", lambda: [X[:128], words(1), words(128)],
             lambda y: bool((np.sort(y[: len(THREES)]) == THREES).all()), 1, 128),
    Exchange("transpose", "HS502", lambda: [X, words(2048)],
             X.reshape(8, 8, 32)[:, LANES % 8, np.arange(8)[:, None] * 4 + LANES // 8], 1, 128),
    Exchange("last_warp", "HS216", lambda: [X[:256], words(1)], X[:256].sum(keepdims=True), 1, 256),
    Exchange("ping_pong", "HS501", lambda: [X[:128], words(128)], rows(4, 32)[:, ::-1]),
    Exchange("partitioned", "HS006", lambda: [X[:576], words(96)], rows(6, 96).sum(0)[::-1], 1, 128),
    Exchange("copied", "HS006", lambda: [X[:768], words(128)], rows(6, 128).sum(0)[::-1], 1, 128),
    Exchange("bulk", "HS101", lambda: [X[:768], words(768)], X[:768] + 1, 1, 128),
    Exchange("bulk_sums", "HS303", lambda: [X[:192], words(64), words(1), words(64)], rows(3, 64).sum(0), 3),
    Exchange("histogram", "HS401", lambda: [X[:256], words(64)], np.bincount(X[:256] & 63, minlength=64), 2, 128, 2),
    Exchange("neighbours", "HS001", lambda: [X[:128], words(128)], np.roll(rows(4, 32), 1, 0)[:, LANES ^ 1], 4, 32, 4),
    Exchange("peer_copy", "HS101", lambda: [X[:256], words(256)], rows(2, 128)[::-1], 2, 128, 2),
    Exchange("multicast", "HS405", lambda: [X[:384], words(128)], np.tile(rows(6, 64).sum(0), 2), 2, 96, 2),
    Exchange("swapped_sum", "HS500", lambda: [X[:64], np.zeros(1)], X[:64].sum(keepdims=True).astype(float), 2, 32),
    Exchange("warp_sums", "HS502", lambda: [X[:64], words(2)], rows(2, 32).sum(1)),
    Exchange("staged", "HS017", lambda: [X[:384], words(64)], rows(6, 64).sum(0)[::-1]),
    Exchange("roles", "HS501", lambda: [X[:256], words(64)], rows(4, 64).sum(0)[::-1], 1, 128),
    Exchange("pushed", "HS500", lambda: [X[:128], words(128)], rows(2, 64)[::-1, ::-1], 2, 64, 2),
]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(map(str, order.values())))
@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)
def test_right(exchange: Exchange, order: dict[str, Any]) -> None:
    check_right(RIGHT, exchange, order)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(map(str, order.values())))
@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)
def test_flawed(exchange: Exchange, order: dict[str, Any]) -> None:
    check_flawed(FLAWED, exchange, order)


def test_none_is_left_out() -> None:
    assert [exchange.name for exchange in EXCHANGES] == list(RIGHT) == list(FLAWED)

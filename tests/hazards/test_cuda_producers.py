"""Producers and consumers as public Hopper kernels have them (tests/data/nvcc/producers.cu): right, and with a flaw."""

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

RIGHT, FLAWED = hs.load(DATA / "producers.ptx"), hs.load(DATA / "producers_bad.ptx")
WIDE = np.arange(128)


def halos() -> NDArray[np.int32]:
    values = rows(4, 32).copy()
    for _ in range(6):
        values = values * 3 + np.roll(values, 1, 0)
    return values


def pushed() -> NDArray[np.int32]:
    values = rows(2, 64).copy()
    for step in range(3):
        values = values + (values + step)[::-1, ::-1]
    return values


def attended() -> NDArray[np.int32]:
    """Return the sums of both warpgroups, and what they add up in turn."""
    queries, keys = rows(8, 128)[:2], rows(8, 128)[2:]
    own = 2 * keys.sum(0)[WIDE ^ 1]
    return np.concatenate([own, own, 2 * (keys.sum(0) * queries.sum(0))])


EXCHANGES = [
    Exchange("attention", "HS104", lambda: [X[:1024], words(384)], attended(), 1, 384),
    Exchange("tiles", "HS306", lambda: [X[:1152], words(384)], X[:1152].reshape(3, 3, 128).sum(1), 1, 256),
    Exchange("told_copies", "HS017", lambda: [X[:768], words(32)], rows(24, 32).sum(0)[LANES ^ 1]),
    Exchange("ring_of_halos", "HS006", lambda: [X[:128], words(128)], halos(), 4, 32, 4),
    Exchange("drawn_tiles", "HS208", lambda: [X[:384], words(1), words(384)], X[:384] + 1, 2),
    Exchange("scaled", "HS104", lambda: [X, words(192)], rows(6, 32) * X[1024:1216].reshape(6, 32)[:, LANES ^ 1], 1, 96),
    Exchange("sent_row", "HS108", lambda: [X[:128], words(128), words(1), words(128)], X[:128] * 2, 2, 32),
    Exchange("guide_sums", "HS216", lambda: [X[:192], words(3), words(1)], X[:192].sum(keepdims=True), 3),
    Exchange("kittens", "HS306", lambda: [X[:768], words(768)], rows(6, 128)[:, WIDE ^ 1] + 1, 1, 256),
    Exchange("peer_bulk", "HS301", lambda: [X[:128], words(128)], pushed(), 2, 64, 2),
    Exchange("remote_write", "HS101", lambda: [X[:128], words(128)], rows(2, 64)[::-1] + 1, 2, 64, 2),
    Exchange("growing_count", "HS500", lambda: [X[:192], words(192), words(1), words(192)],
             np.roll(X[191::-1] + 1, -64), 3),
    Exchange("taken_in_turn", "HS216", lambda: [words(1), words(1)], np.array([64]), 2, 32),
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
    assert not any(callable(exchange.wanted) for exchange in EXCHANGES)

"""Loads of several warps in the data pipe of L1: when one of a warp leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.timing.load_bursts import LoadBursts
from hopsim.hw.timing.shared_memory import SharedPipe

CONFIG = load("h100-sxm")
ALONE = CONFIG.l1.warp_interval_cycles
SOON = CONFIG.l1.latency_cycles / 2


def pipe() -> SharedPipe:
    return SharedPipe(CONFIG.smem)


def test_loads_of_a_warp_leave_one_after_the_other() -> None:
    unit, bursts = pipe(), LoadBursts(CONFIG.l1)
    begin, end = bursts.take(unit, 0.0, 32, 4, 100.0)
    assert (begin, end) == (100.0, 100.0 + 8 * ALONE)
    # Issued while the first is under way: behind it, and not behind those of other warps.
    assert bursts.take(unit, end, 32, 4, 101.0) == (end, end + 8 * ALONE)
    assert unit.free == 100.0 + 64
    assert bursts.take(unit, 200.0, 32, 4, 200.0 + SOON)[0] == 200.0 + SOON


def test_what_follows_a_wait_begins_when_all_warps_have_been_served() -> None:
    unit, bursts = pipe(), LoadBursts(CONFIG.l1)
    _, end = bursts.take(unit, 0.0, 1000, 4, 0.0)
    assert end < 1000.0
    waited = end + CONFIG.l1.latency_cycles
    assert bursts.take(unit, end, 32, 4, waited)[0] == 1000.0
    # Nobody else's loads are left.
    assert bursts.take(unit, end, 32, 4, 5000.0)[0] == 5000.0


@given(st.integers(1, 8), st.integers(1, 32), st.floats(0.0, 1e4))
def test_warps_get_what_the_pipe_gives(warps: int, loads: int, away: float) -> None:
    unit, bursts = pipe(), LoadBursts(CONFIG.l1)
    time = end = 0.0
    rounds = 20
    for _ in range(rounds):
        for _ in range(loads):
            _, end = bursts.take(unit, end, 8 * warps, warps, time)
        time = end + CONFIG.l1.latency_cycles + away
    alone = loads * 8 * ALONE + CONFIG.l1.latency_cycles + away
    served = loads * 8.0 * warps
    # Nobody waits but for the pipe, which serves no more than it can.
    assert time == pytest.approx((rounds - 1) * max(alone, served) + alone)

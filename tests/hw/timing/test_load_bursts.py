"""Loads of several warps in the data pipe of L1: how much they stand in each other's way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.timing.load_bursts import LoadBursts, response
from hopsim.hw.timing.shared_memory import SharedPipe

TIMES = st.floats(1.0, 1e4)


@given(st.integers(1, 16), TIMES, TIMES, TIMES)
def test_a_counter_serves_no_more_than_it_can(
    customers: int, service: float, away: float, more: float
) -> None:
    found = response(customers, service, away)
    assert 1.0 <= found <= customers
    # All of them go through it in a round, and one alone has nobody to wait for.
    assert found * service + away >= customers * service * (1 - 1e-9)
    assert response(1, service, away) == 1.0
    assert response(customers, service, away + more) <= found
    assert response(customers + 1, service, away) >= found


def test_two_customers_as_worked_out_by_hand() -> None:
    # Alone a round takes 40, of which 10 at the counter: the other is found there in a quarter of all cases.
    assert response(2, 10.0, 30.0) == pytest.approx(1.25)


def pipe() -> SharedPipe:
    return SharedPipe(load("h100-sxm").smem)


def test_warps_begin_together_and_drift_apart_while_they_wait() -> None:
    unit, bursts = pipe(), LoadBursts()
    assert bursts.take(unit, 0, 32, 4, 100.0) == (100.0, 132.0)
    # Of the same burst: behind it, whenever it is issued.
    assert bursts.take(unit, 0, 32, 4, 101.0) == (132.0, 164.0)
    begin, end = bursts.take(unit, 0, 32, 4, 464.0)
    assert begin == 464.0
    assert end - begin == pytest.approx(8 * response(4, 16.0, 300.0))
    assert 8.0 < end - begin < 16.0
    assert unit.free == 464.0 + 32


def test_a_burst_begins_when_the_pipe_has_served_others() -> None:
    unit, bursts = pipe(), LoadBursts()
    bursts.take(unit, 0, 400, 4, 0.0)
    assert bursts.take(unit, 1, 32, 4, 10.0) == (400.0, 432.0)


def test_who_waits_for_the_same_lines_goes_on_together() -> None:
    unit, bursts = pipe(), LoadBursts()
    bursts.take(unit, 0, 32, 4, 0.0)
    _, end = bursts.take(unit, 0, 32, 4, 1000.0)
    later = bursts.meet(0, 4)
    assert end + later == pytest.approx(1032.0)
    assert bursts.meet(0, 4) == 0.0
    assert bursts.take(unit, 0, 32, 4, 1001.0) == (1032.0, 1064.0)

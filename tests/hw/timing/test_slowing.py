"""Arithmetic that slows wgmma."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.hw.timing.slowing import MOST_LOST, Slowed


def slowed(*runs: tuple[float, float, float]) -> Slowed:
    found = Slowed()
    for start, end, lost in runs:
        found.add(start, end, lost, 0.0)
    return found


def test_nothing_costs_nothing() -> None:
    assert not slowed()
    assert slowed().after(10.0, 64.0) == 74.0


@pytest.mark.parametrize(
    ("start", "cycles", "end"),
    [
        (0.0, 50.0, 50.0),  # before it
        (100.0, 40.0, 160.0),  # in it: two of three cycles are left
        (50.0, 90.0, 160.0),  # into it
        (170.0, 60.0, 240.0),  # out of it
        (0.0, 300.0, 333.0),  # across it
        (200.0, 64.0, 264.0),  # after it
    ],
)
def test_products_lose_what_falls_into_a_run(start: float, cycles: float, end: float) -> None:
    assert slowed((100.0, 199.0, 33.0)).after(start, cycles) == pytest.approx(end, abs=0.7)


def test_runs_of_two_warps_add_up() -> None:
    both = slowed((0.0, 100.0, 30.0), (50.0, 150.0, 40.0))
    assert both.after(0.0, 150.0) == pytest.approx(150.0 + 30.0 + 40.0)
    # A run that has been forgotten costs nothing more.
    both.add(500.0, 600.0, 10.0, now=120.0)
    assert both.after(0.0, 50.0 + 60.0) == pytest.approx(50.0 + 60.0 / 0.6)


def test_a_run_that_ends_early_costs_less() -> None:
    found = Slowed()
    run = found.add(0.0, 100.0, 50.0, 0.0)
    assert found.after(0.0, 100.0) == 150.0
    run.end = 40.0
    assert found.after(0.0, 100.0) == 120.0


def test_products_come_through_in_the_end() -> None:
    assert slowed((0.0, 100.0, 300.0)).after(0.0, 10.0) == pytest.approx(
        100.0 + 10.0 - 100.0 * (1.0 - MOST_LOST)
    )


RUN = st.tuples(st.integers(0, 400), st.integers(1, 200), st.floats(0.1, 0.9)).map(
    lambda one: (float(one[0]), float(one[0] + one[1]), one[1] * one[2])
)


@given(st.lists(RUN, max_size=6), st.integers(0, 500), st.integers(1, 300), st.integers(1, 300))
def test_products_one_after_the_other_end_as_all_at_once(
    runs: list[tuple[float, float, float]], start: int, first: int, second: int
) -> None:
    found = slowed(*runs)
    between = found.after(start, first)
    end = found.after(between, second)
    assert end == pytest.approx(found.after(start, first + second))
    assert start + first + second <= end + 1e-6
    assert end <= start + first + second + sum(lost for _, _, lost in runs) + 1e-6

"""A way that many lines take at once, against small steps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.hw.timing.stream import Stream

STEP = 0.005
# (When it begins, how long it takes to ask, work); what is asked for at once, between those that begin or end.
REQUESTS = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from([1.0, 4.0]), st.integers(1, 12))
    | st.tuples(
        st.integers(0, 20).map(lambda begin: begin + 0.5), st.just(0.0), st.integers(1, 12)
    ),
    min_size=1,
    max_size=8,
)
Request = tuple[float, float, int]


def small_steps(
    requests: list[Request], rate: float, gathering: float, mixing: float
) -> list[float]:
    """Return when the last line of each comes."""
    left = time = 0.0
    first: dict[int, float] = {}
    end: dict[int, float] = {}

    def wait() -> float:
        if not gathering:
            return left / rate
        level = left / (rate * gathering)
        return gathering * (level / -math.expm1(-level) - 1.0) if level > 1e-9 else 0.0

    while len(end) < len(requests):
        for number, (begin, takes, work) in enumerate(requests):
            if not takes and begin - STEP / 2 <= time < begin + STEP / 2:
                left += work
                first[number] = time + wait()
        for number, (begin, takes, _) in enumerate(requests):
            if number not in first and time >= begin + takes - STEP / 2:
                first[number] = time + wait()
        for number, could in first.items():
            if number not in end and time >= could - STEP / 2:
                end[number] = could + mixing * wait()
        asked = sum(
            work / takes
            for begin, takes, work in requests
            if takes and begin <= time + STEP / 2 < begin + takes
        )
        given = rate * (1.0 - math.exp(-left / (rate * gathering))) if gathering else rate
        left = max(0.0, left + (asked - given) * STEP)
        time += STEP
    return [end[number] for number in range(len(requests))]


@settings(max_examples=25, deadline=None)
@given(REQUESTS, st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([0.0, 0.5, 1.0]))
def test_lines_come_as_in_small_steps(
    requests: list[Request], gathering: float, mixing: float
) -> None:
    way = Stream(2.0, gathering, mixing)
    passages = [way.ask(begin, begin + takes, work) for begin, takes, work in requests]
    found = [passage.expected(1000.0) for passage in passages]
    assert found == pytest.approx(small_steps(requests, 2.0, gathering, mixing), abs=0.06)


@settings(max_examples=25, deadline=None)
@given(REQUESTS, st.lists(st.floats(0, 60), max_size=8))
def test_it_does_not_matter_when_it_is_looked_at(
    requests: list[Request], looks: list[float]
) -> None:
    """What is not known yet is never said to come later than it does."""
    ways = [Stream(2.0, 1.0, 0.5) for _ in range(2)]
    once, often = (
        [way.ask(begin, begin + takes, work) for begin, takes, work in requests] for way in ways
    )
    ends = [passage.expected(1000.0) for passage in once]
    for now in sorted(looks):
        for passage, end in zip(often, ends, strict=True):
            assert passage.expected(now) <= end + 1e-6
    assert [passage.expected(1000.0) for passage in often] == pytest.approx(ends, abs=1e-6)


def test_at_full_rate_nothing_is_lost() -> None:
    way = Stream(3.0, 10.0, 0.5)
    last = [way.ask(10.0 * number, 10.0 * number + 8.0, 60.0) for number in range(100)][-1]
    # 6,000 at 3 a cycle, but for what it gives less in the beginning.
    assert 2000.0 < last.expected(1e5) < 2040.0


def test_a_request_alone_comes_as_it_is_asked_for() -> None:
    way = Stream(100.0, 50.0, 0.5)
    assert way.ask(7.0, 107.0, 100.0).expected(1e4) == pytest.approx(107.0, abs=0.5)

"""A way is never taken twice at once, and is never idle while somebody waits for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopsim.hw.timing.way import Way

HORIZON = 4000


class Slots:
    """The same, cycle by cycle."""

    def __init__(self) -> None:
        self.taken = [False] * HORIZON

    def take(self, begin: int, work: int) -> int:
        return self._mark(range(begin, HORIZON), work)

    def take_late(self, begin: int, now: int, work: int) -> int:
        for cycle in reversed(range(begin, now)):
            if work and not self.taken[cycle]:
                self.taken[cycle] = True
                work -= 1
        return self._mark(range(now, HORIZON), work) - now if work else 0

    def _mark(self, cycles: range, work: int) -> int:
        """Take so many of the first idle cycles; return when the last of them is over."""
        idle = [cycle for cycle in cycles if not self.taken[cycle]][:work]
        for cycle in idle:
            self.taken[cycle] = True
        return idle[-1] + 1


WORK = st.integers(1, 20)
STEP = st.tuples(st.booleans(), st.integers(0, 12), st.integers(-60, 60), WORK)


@given(st.lists(STEP, max_size=40))
def test_it_is_what_a_table_of_cycles_says(steps: list[tuple[bool, int, int, int]]) -> None:
    """What comes late began before, what is asked for begins now or later."""
    way, slots = Way(1.0), Slots()
    now = 0
    for is_late, later, apart, work in steps:
        now += later
        if is_late:
            begin = max(0, now - abs(apart))
            assert way.take_late(begin, now, work) == slots.take_late(begin, now, work)
        else:
            begin = max(now, now + apart)
            assert way.take(begin, work) == slots.take(begin, work)


def test_what_is_asked_for_far_ahead_keeps_nobody_waiting() -> None:
    """A TMA engine that is full begins with a box later; others have the way until then."""
    way = Way(1.0)
    assert way.take(100.0, 10.0) == 110.0
    assert way.take(0.0, 10.0) == 10.0
    assert way.take_late(0.0, 10.0, 30.0) == 30.0
    assert way.take(0.0, 70.0) == 120.0


def test_a_rate_is_work_a_cycle() -> None:
    way = Way(4.0)
    assert way.take(10.0, 40.0) == 20.0
    assert way.take_late(0.0, 30.0, 80.0) == 0.0
    assert way.take_late(0.0, 30.0, 4.0) == 1.0


def test_what_came_before_it_was_asked_for_is_as_late_as_what_has_just_come() -> None:
    way = Way(1.0)
    way.take(0.0, 10.0)
    assert way.take_late(50.0, 40.0, 5.0) == 5.0


def test_idle_times_are_forgotten_in_the_end() -> None:
    way = Way(1.0)
    for number in range(1000):
        way.take(10.0 * number, 5.0)
    assert way.take_late(0.0, 10_000.0, 5.0) == 0.0
    assert way.take_late(0.0, 10_000.0, 10_000.0) > 8_700.0

"""A way is never taken twice at once, and is never idle while late work could have used it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopsim.hw.timing.way import Way

HORIZON = 4000


class Slots:
    """The same, cycle by cycle."""

    def __init__(self) -> None:
        self.taken = [False] * HORIZON
        self.free = 0

    def take(self, begin: int, work: int) -> int:
        first = max(begin, self.free)
        self._mark(first, work)
        return self.free

    def take_late(self, begin: int, now: int, work: int) -> int:
        self.free = max(self.free, now)
        for cycle in reversed(range(begin, now)):
            if work and not self.taken[cycle]:
                self.taken[cycle] = True
                work -= 1
        if not work:
            return 0
        self._mark(self.free, work)
        return self.free - now

    def _mark(self, first: int, work: int) -> None:
        assert not any(self.taken[first : first + work])
        self.taken[first : first + work] = [True] * work
        self.free = first + work


WORK = st.integers(1, 20)
STEP = st.tuples(st.booleans(), st.integers(0, 12), st.integers(0, 60), WORK)


@given(st.lists(STEP, max_size=40))
def test_it_is_what_a_table_of_cycles_says(steps: list[tuple[bool, int, int, int]]) -> None:
    way, slots = Way(1.0), Slots()
    now = 0
    for is_late, later, before, work in steps:
        now += later
        begin = max(0, now - before)
        if is_late:
            assert way.take_late(begin, now, work) == slots.take_late(begin, now, work)
        else:
            assert way.take(now, work) == slots.take(now, work)
        assert way.free == slots.free


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

from __future__ import annotations

from hopsim.hw.timing.issue import IssuePorts, ports_of


def test_warps_belong_to_subpartitions_by_number() -> None:
    assert ports_of(range(4, 8), 4) == ((0, 1), (1, 1), (2, 1), (3, 1))
    assert ports_of([5], 4) == ((1, 1),)
    assert ports_of(range(6), 4) == ((0, 2), (1, 2), (2, 1), (3, 1))


def test_alone_a_run_takes_its_slots() -> None:
    ports = IssuePorts(4)
    own = ports_of(range(4), 4)
    ports.admit(own)
    assert ports.book(own, 10.0, 7.0) == 17.0
    assert ports.book(own, 17.0, 3.0) == 20.0


def test_a_short_run_waits_for_its_share_only() -> None:
    ports = IssuePorts(1)
    for _ in range(3):
        ports.admit(((0, 1),))
    assert ports.book(((0, 1),), 0.0, 1000.0) == 1000.0
    # One of the two other warps has something to issue: once for each of the five.
    assert ports.book(((0, 1),), 0.0, 5.0) == 10.0
    # Then both have, and later the first alone.
    assert ports.book(((0, 1),), 0.0, 5.0) == 15.0
    assert ports.book(((0, 1),), 20.0, 5.0) == 30.0
    assert ports.free == [1015.0]


def test_different_subpartitions_do_not_meet() -> None:
    ports = IssuePorts(4)
    ports.admit(((0, 1),))
    ports.admit(((1, 1),))
    assert ports.book(((0, 1),), 0.0, 100.0) == 100.0
    assert ports.book(((1, 1),), 0.0, 100.0) == 100.0

from __future__ import annotations

from typing import Any

import pytest

from hopsim.hw.timing.load_runs import (
    ADDED_AHEAD,
    REGISTERS_AHEAD,
    SCOREBOARDS,
    Deferred,
    deferred_loads,
)
from tests.hw.timing.kernels import kernel

WORDS = "{%r1,%r2,%r3,%r4}"
KEEP = "st.global.u32 [%rd1],%r0; ret;"


def found(body: str) -> list[Deferred]:
    program: Any = kernel(body).program(True)
    return list(deferred_loads(program).values())


def add(
    count: int, load: str = "ld.global.u32 %r1,[%rd0];", use: str = "add.u32 %r0,%r0,%r1;"
) -> str:
    return (load + use) * count + KEEP


def test_loads_that_are_used_at_once_are_waited_for_together() -> None:
    first, second, third = found(add(3))
    assert first.results == second.results == third.results
    assert not first.inputs
    # The sum so far waits for the load before.
    assert second.inputs == third.inputs == frozenset(first.results)


def test_one_load_is_waited_for_where_it_is_used() -> None:
    assert not found(add(1))


def test_a_load_whose_address_was_loaded_waits() -> None:
    assert not found("ld.global.u64 %rd2,[%rd0]; add.u64 %rd0,%rd0,%rd2;" * 3 + KEEP)


@pytest.mark.parametrize(
    "load", ["ld.volatile.global.u32 %r1,[%rd0];", "ld.acquire.gpu.global.u32 %r1,[%rd0];"]
)
def test_loads_in_order_are_no_run(load: str) -> None:
    assert not found(add(3, load))


def test_a_store_or_a_barrier_ends_a_run() -> None:
    assert not found(add(1).replace("ret;", "") + add(1))
    assert not found(("ld.global.u32 %r1,[%rd0]; add.u32 %r0,%r0,%r1; bar.sync 0;") * 3 + KEEP)


@pytest.mark.parametrize(
    ("load", "use", "registers"),
    [
        (f"ld.global.v4.u32 {WORDS},[%rd0];", "add.u32 %r0,%r0,%r1;", ADDED_AHEAD),
        (f"ld.shared.v4.u32 {WORDS},[%rd0];", "add.u32 %r0,%r0,%r1;", REGISTERS_AHEAD),
        (f"ld.global.v4.u32 {WORDS},[%rd0];", "add.u32 %r0,%r0,%r5;", REGISTERS_AHEAD),
    ],
    ids=["global, each added", "shared, each added", "global, none used"],
)
def test_registers_end_a_run(load: str, use: str, registers: int) -> None:
    most = registers // 4
    assert len(found(add(most, load, use))) == most
    # One is waited for; those after it are a run again.
    assert len(found(add(most + 1, load, use))) == most
    assert len(found(add(most + 4, load, use))) == most + 3


def test_of_more_loads_than_scoreboards_all_are_waited_for_with_the_last() -> None:
    assert not any(one.run for one in found(add(SCOREBOARDS)))
    *before, last = found(add(SCOREBOARDS + 1))
    assert not any(one.run for one in before)
    assert set(last.run) == {result for one in before for result in one.results}

from __future__ import annotations

from typing import Any

import pytest

from hopsim.hw.timing.load_runs import (
    ADDED_AHEAD,
    REGISTERS_AHEAD,
    SCOREBOARDS,
    Deferred,
    load_runs,
)
from tests.hw.timing.kernels import kernel

WORDS = "{%r1,%r2,%r3,%r4}"
KEEP = "st.global.u32 [%rd1],%r0; ret;"


def found(body: str) -> list[Deferred]:
    program: Any = kernel(body).program(True)
    return list(load_runs(program).deferred.values())


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


def runs(body: str) -> Any:
    return load_runs(kernel(body).program(True))


COPY = "ld.global.u32 %r{0},[%rd0+{1}]; st.shared.u32 [%r0+{1}],%r{0};"


def test_loads_of_global_memory_pass_stores_to_shared_memory() -> None:
    body = "".join(COPY.format(1 + i, 4 * i) for i in range(3))
    found = runs(body + "bar.sync 0; ret;")
    assert len(found.deferred) == 3
    # Two stores lie between the loads; what they would have waited for is waited for behind the last load.
    first, second = sorted(found.posted)
    assert (first, second) == (1, 3)
    (behind,) = found.awaited
    assert behind == 5
    assert found.awaited[behind] == found.posted[first] | found.posted[second]
    assert len(found.awaited[behind]) == 2


@pytest.mark.parametrize(
    "between",
    [
        "st.global.u32 [%rd1],%r1;",  # may be where the next load reads
        "st.volatile.shared.u32 [%r0],%r1;",
        "bar.sync 0;",
        "st.shared.u32 [%r0],%r1; add.u32 %r5,%r1,1;",  # arithmetic that waits for the load
    ],
)
def test_loads_pass_nothing_else(between: str) -> None:
    found = runs(f"ld.global.u32 %r1,[%rd0]; {between} ld.global.u32 %r2,[%rd0+4]; {KEEP}")
    assert not found.posted
    assert not found.awaited


def test_loads_of_shared_memory_do_not_pass_stores_to_it() -> None:
    body = "ld.shared.u32 %r1,[%r0]; st.shared.u32 [%r0+64],%r1; ld.shared.u32 %r2,[%r0+4];"
    assert not runs(body + KEEP).posted


def test_a_load_whose_address_was_loaded_passes_no_store() -> None:
    body = "ld.global.u64 %rd2,[%rd0]; st.shared.u64 [%r0],%rd2; ld.global.u32 %r2,[%rd2];"
    assert not runs(body + KEEP).posted

from __future__ import annotations

from typing import Any

import pytest

from hopsim.config import load
from hopsim.hw.timing.load_runs import (
    ADDED_AHEAD,
    REGISTERS_AHEAD,
    SCOREBOARDS,
    UNROLLED,
    Deferred,
    load_runs,
    unrolled_loops,
)
from hopsim.hw.timing.register_room import room_for_loads, taken
from tests.hw.timing.kernels import kernel

CONFIG = load("h100-sxm")
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


def test_what_becomes_a_branch_to_software_ends_a_run() -> None:
    """ptxas moves no load over the branch to the slow path, and so waits for what stands before it."""
    one = "ld.global.u32 %r1,[%rd0]; cvt.rn.f32.u32 %f1,%r1; OPERATION"
    use = "cvt.rzi.u32.f32 %r1,%f1; add.u32 %r0,%r0,%r1;"
    for operation, count in (("rcp.rn.f32 %f1,%f1;", 0), ("rcp.approx.f32 %f1,%f1;", 3)):
        assert len(found(one.replace("OPERATION", operation + use) * 3 + KEEP)) == count


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


LOOP = """
$turn: {pragma}
ld.global.u32 %r1,[%rd0]; mul.wide.u32 %rd4,%r1,4; add.s64 %rd4,%rd4,%rd1;
ld.global.u32 %r2,[%rd4]; ld.global.u32 %r3,[%rd2]; add.s32 %r0,%r2,%r3; add.s32 %r5,%r5,%r0; {more}
add.s64 %rd0,%rd0,4; add.s64 %rd2,%rd2,4; sub.s32 %r4,%r4,{step}; setp.ne.s32 %p0,%r4,0; @%p0 bra $turn;
st.global.u32 [%rd1],%r5; ret;
"""


def loop(
    pragma: str = "", more: str = "", room: int | None = 16, step: str = "1"
) -> list[Deferred]:
    """Return the loads of a loop over elements by index, and their factors."""
    found = kernel(LOOP.format(pragma=pragma, more=more, step=step))
    program: Any = found.program(True)
    loops = unrolled_loops(program, found.kept_loops)
    return list(load_runs(program, room, loops).deferred.values())


def test_a_load_whose_address_is_loaded_comes_behind_the_others() -> None:
    index, value, factor = loop()
    assert not index.address
    assert value.address
    assert value.address <= set(index.results)
    assert not factor.address
    assert set(value.results) <= factor.inputs
    # Where registers are short already, it is waited for.
    assert not any(one.address for one in loop(room=None))


def test_several_turns_of_a_loop_that_loads_are_issued_together() -> None:
    index, *_, factor = loop()
    assert index.turns == UNROLLED
    # The sum is carried from turn to turn.
    assert index.carried <= set(factor.results)
    assert index.carried <= factor.inputs
    # An index and a factor of each turn wait in registers.
    assert loop(room=3 * 2)[0].turns == 3
    assert loop(room=3)[0].turns == 1


def test_a_chase_waits_for_each_turn() -> None:
    hop = "ld.global.u32 %r7,[%rd0]; ld.global.u64 %rd0,[%rd0+8];"
    assert all(one.turns == 1 for one in loop(more=hop))


def test_a_loop_that_goes_on_by_a_register_is_not_unrolled() -> None:
    assert loop()[0].turns == UNROLLED
    assert loop(step="%r6")[0].turns == 1


@pytest.mark.parametrize(
    ("pragma", "more"),
    [('.pragma "nounroll";', ""), ("", "st.global.u32 [%rd3],%r0;"), ("", "bar.sync 0;")],
    ids=["as asked", "a store", "a barrier"],
)
def test_other_loops_stay_as_they_are(pragma: str, more: str) -> None:
    assert all(one.turns == 1 for one in loop(pragma, more))


def test_a_branch_that_a_load_decides_waits_for_it() -> None:
    body = "ld.global.u32 %r1,[%rd0]; ld.global.u32 %r2,[%rd0+4];"
    assert len(found(body + KEEP)) == 2
    assert not found(body + "setp.eq.s32 %p0,%r2,0; @%p0 bra $out;" + KEEP + "$out: ret;")


def test_registers_of_a_thread_of_a_full_sm_are_for_loads() -> None:
    device = CONFIG.device
    assert room_for_loads(device, 24, None) == 16
    assert room_for_loads(device, 24, 128) == 16
    # 32 CTAs of a warp leave each thread twice as many.
    assert room_for_loads(device, 24, 32) == 32
    assert room_for_loads(device, 40, None) is None


def test_what_is_computed_from_loads_of_shared_memory_takes_registers_too() -> None:
    body = "ld.shared.v2.f32 {%f1,%f2},[%r0]; mul.f32 %f3,%f1,%f1; fma.rn.f32 %f4,%f3,%f2,%f1; add.f32 %f0,%f0,%f4;"
    program: Any = kernel(body * 2 + "st.global.f32 [%rd1],%f0; ret;").program(True)
    assert taken(program[1]) == 3

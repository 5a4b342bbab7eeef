from __future__ import annotations

from typing import Any

import pytest

from hopsim.config import load
from hopsim.hw.timing.basic_blocks import Placed, after_tests, placed
from hopsim.hw.timing.costs import CostTable
from hopsim.hw.timing.heads import Head
from hopsim.hw.timing.stalls import Stall
from tests.hw.timing.kernels import kernel, launch

CONFIG = load("h100-sxm")
SUMS = ", ".join(f"%acc{number}" for number in range(32))
MULTIPLY = (
    f"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{SUMS}}}, %rd0, %rd1, %p0, 1, 1, 0, 0;"
)
COPY = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%r10], [%rd2, {%r11, %r12}], [%r13];"
)
WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


def made(body: str) -> list[Placed]:
    return placed(kernel(body).program(True))


def opcodes(one: Placed) -> list[str]:
    return [".".join(each.instruction.opcode[:2]) for each in one.instructions]


def beside_the_first_wgmma(body: str) -> list[str]:
    """Return what is issued between the first wgmma of a body and the next instruction that is shared."""
    return next(opcodes(one)[1:] for one in made(body) if opcodes(one)[:1] == ["wgmma.mma_async"])


def test_what_a_later_instruction_needs_is_issued_after_the_first_wgmma() -> None:
    body = f"{MULTIPLY} {MULTIPLY} {WAIT} add.u32 %r1,%r0,%r0; bar.sync 0; st.shared.u32 [%r0],%r1; ret;"
    assert beside_the_first_wgmma(body) == ["add.u32"]


@pytest.mark.parametrize(
    "late",
    [
        # A sum is not there yet.
        "add.f32 %f1,%acc0,%acc1; st.shared.f32 [%r0],%f1;",
        # Nor what is made of it.
        "add.f32 %f1,%acc0,%acc1; add.f32 %f2,%f1,%f1; st.shared.f32 [%r0],%f2;",
        # Nor what comes out of memory.
        "ld.shared.u32 %r1,[%r0]; add.u32 %r2,%r1,%r1; st.shared.u32 [%r0],%r2;",
        # It would overwrite what is read before.
        "st.shared.u32 [%r0],%r1; add.u32 %r1,%r0,%r0; st.shared.u32 [%r0],%r1;",
        # Nobody here needs it.
        "add.u32 %r1,%r1,16;",
    ],
)
def test_what_depends_and_what_nobody_waits_for_stays(late: str) -> None:
    assert beside_the_first_wgmma(f"{MULTIPLY} {WAIT} {late} ret;") == []


def test_sums_of_another_group_may_be_what_a_wait_is_for() -> None:
    others = ", ".join(f"%acc{number}" for number in range(32, 64))
    before = MULTIPLY.replace(SUMS, others)
    largest = "max.f32 %f1,%acc40,%acc41; st.shared.f32 [%r0],%f1;"
    commit = "wgmma.commit_group.sync.aligned;"
    found = made(
        f"{before} {commit} @%p2 bra L; L: {MULTIPLY} {commit} wgmma.wait_group.sync.aligned 1; {largest} ret;"
    )
    assert [opcodes(one)[1:] for one in found if opcodes(one)[:1] == ["wgmma.mma_async"]] == [
        [],
        [],
    ]


def test_an_operand_of_a_wgmma_is_made_in_another_register() -> None:
    step = "add.s64 %rd0,%rd0,2;"
    assert beside_the_first_wgmma(
        f"{MULTIPLY} {step} {MULTIPLY} {step} {MULTIPLY} {WAIT} ret;"
    ) == [
        "add.s64",
        "add.s64",
    ]


def test_a_copy_of_an_elected_thread_is_prepared_there() -> None:
    first, second = (f"elect.sync %r{n}|%p{n},-1; @%p{n} {COPY}" for n in (1, 2))
    found = made(f"{MULTIPLY} {WAIT} bar.sync 0; {first} bar.sync 0; {second} ret;")
    beside = next(one for one in found if opcodes(one)[:1] == ["wgmma.mma_async"])
    assert opcodes(beside)[1:] == ["elect.sync", "elect.sync"]
    assert beside.prepares == 2
    assert [one.prepared for one in found if opcodes(one)[:1] == ["cp.async"]] == [True, True]
    # Alone it is as long as ever.
    assert not any(one.prepared or one.prepares for one in made(f"{first} ret;"))


def test_nothing_passes_a_reading_of_the_clock() -> None:
    body = "add.u32 %r2,%r0,%r0; st.shared.u32 [%r0],%r2; ret;"
    assert beside_the_first_wgmma(f"{MULTIPLY} {WAIT} {body}") == ["add.u32"]
    assert beside_the_first_wgmma(f"{MULTIPLY} {WAIT} mov.u32 %r1,%clock; {body}") == []


def test_nothing_is_moved_out_of_a_block() -> None:
    body = "add.u32 %r1,%r0,%r0; st.shared.u32 [%r0],%r1; ret;"
    assert beside_the_first_wgmma(f"{MULTIPLY} {WAIT} @%p2 bra L; L: {body}") == []


def test_every_instruction_stays_in_the_program() -> None:
    elect = "elect.sync %r1|%p1,-1;"
    body = (
        f"add.u32 %r5,%r0,1; bar.sync 0; {MULTIPLY} add.s64 %rd0,%rd0,2; {MULTIPLY} {WAIT} add.u32 %r11,%r0,%r5;"
        f"bar.sync 0; {elect} @%p1 {COPY} add.u32 %r6,%r6,1; setp.lt.u32 %p2,%r6,9; @%p2 bra L; L: ret;"
    )
    program: Any = kernel(body).program(True)
    before = [id(one) for segment in program for one in segment.instructions]
    after = [id(one) for here in placed(program) for one in here.instructions]
    assert sorted(before) == sorted(after)
    assert before != after


# -- barriers ------------------------------------------------------------------------------------------


def test_arithmetic_before_a_barrier_is_issued_after_it() -> None:
    found = made("add.u32 %r1,%r0,1; add.u32 %r2,%r1,1; bar.sync 0; st.shared.u32 [%r0],%r2; ret;")
    assert opcodes(next(one for one in found if opcodes(one)[:1] == ["bar.sync"])) == [
        "bar.sync", "add.u32", "add.u32",
    ]  # fmt: skip


def test_what_follows_one_barrier_does_not_go_past_the_next() -> None:
    found = made("bar.sync 0; add.u32 %r1,%r0,1; bar.sync 0; st.shared.u32 [%r0],%r1; ret;")
    assert [opcodes(one) for one in found if opcodes(one)[:1] == ["bar.sync"]] == [
        ["bar.sync", "add.u32"], ["bar.sync"],
    ]  # fmt: skip


def test_the_number_of_a_barrier_is_known_before_it() -> None:
    found = made("and.b32 %r1,%r0,7; bar.sync %r1, 32; ret;")
    assert [opcodes(one) for one in found] == [["and.b32"], ["bar.sync", "ret"]]


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_a_warp_computes_while_it_waits_for_the_others(warps: int) -> None:
    barrier = CONFIG.barrier
    wait = barrier.bar_sync_latency_cycles + barrier.bar_sync_warp_cycles * warps

    def block(count: int) -> tuple[float, float]:
        chain = "add.u32 %r1,%r1,%r0;" * count
        program = kernel(f"bar.sync 0; {chain} st.shared.u32 [%r0],%r1; ret;").program(True)
        costs = CostTable(CONFIG, program, 32 * warps).segments
        cost = next(one for one in costs if one.block_stall is Stall.BARRIER)
        return cost.block, cost.span

    alone, issue = block(0)
    assert alone == wait
    few, span = block(2)
    assert few + span == wait + issue
    many, longer = block(16)
    assert many == 0.0
    assert longer > wait


def test_the_same_holds_for_a_warp_that_came_early() -> None:
    """One warp is late by a chain; both have arithmetic after the barrier, which takes no more time than the barrier."""
    late = "add.u32 %r1,%r1,%r0;" * 64
    body = (
        "mov.u32 %r2,%tid.x; shr.u32 %r2,%r2,5; setp.eq.u32 %p1,%r2,0; @%p1 bra.uni L; {late} L: bar.sync 0; {after}"
        " st.shared.u32 [%r3],%r1; ret;"
    )
    few = "add.u32 %r1,%r1,%r0;" * 3
    cycles = [
        launch(body.format(late=late, after=after), block=64, shared_bytes=64, warm="code").cycles
        for after in ("", few)
    ]
    assert cycles[1] - cycles[0] <= 1


# -- waits ---------------------------------------------------------------------------------------------


TEST = "W: mbarrier.try_wait.parity.shared::cta.b64 %p0,[%r0],%r1; @!%p0 bra W;"


def test_what_follows_a_test_passes_while_it_is_answered() -> None:
    chain = "add.u32 %r2,%r2,%r3;" * 4
    program: Any = kernel(f"{TEST} {chain} st.shared.u32 [%r0],%r2; ret;").program(True)
    costs = CostTable(CONFIG, program).segments
    (after,) = after_tests(program)
    assert costs[after].head is Head.NONE
    assert costs[after].span == 0.0
    assert costs[after].slots > 0.0
    # Come to in another way too, it takes its time.
    program = kernel(f"@%p3 bra A; {TEST} A: {chain} st.shared.u32 [%r0],%r2; ret;").program(True)
    assert after_tests(program) == frozenset()


def copies(count: int) -> str:
    """Return sums of 64 bits, a barrier, and copies by threads of what lies there."""
    sums = "".join(f"add.s64 %rd{10 + n},%rd{20 + n},%rd2; " for n in range(count))
    copied = "".join(f"cp.async.cg.shared.global [%r{n}],[%rd{10 + n}],16; " for n in range(count))
    return f"{sums}bar.sync 0; {copied}cp.async.commit_group; ret;"


def test_four_addresses_of_copies_by_threads_go_under_a_wgmma_and_each_other_before_its_copy() -> (
    None
):
    found = made(f"{MULTIPLY} {MULTIPLY} {WAIT} {copies(7)}")
    here = [opcodes(one) for one in found if opcodes(one)]
    first = next(one for one in here if one[0] == "wgmma.mma_async")
    assert first == ["wgmma.mma_async", *["add.s64"] * 4]
    assert [one for one in here if one[0] == "cp.async"] == [
        *[["cp.async"]] * 3,
        *[["cp.async", "add.s64"]] * 3,
        ["cp.async"],
        # The commit.
        ["cp.async", "ret"],
    ]


def test_where_nothing_multiplies_addresses_of_copies_stay_where_they_are() -> None:
    found = [opcodes(one) for one in made(copies(6)) if opcodes(one)]
    assert found == [["bar.sync", *["add.s64"] * 6], *[["cp.async"]] * 6, ["cp.async", "ret"]]


def test_an_address_does_not_pass_what_overwrites_its_operands() -> None:
    body = (
        f"{MULTIPLY} {WAIT} ld.shared.u64 %rd30,[%r0]; add.s64 %rd10,%rd30,%rd2; "
        "ld.shared.u64 %rd30,[%r1]; cp.async.cg.shared.global [%r2],[%rd10],16; ret;"
    )
    here = [opcodes(one) for one in made(body)]
    assert ["ld.shared", "add.s64"] in here
    assert ["ld.shared"] in here

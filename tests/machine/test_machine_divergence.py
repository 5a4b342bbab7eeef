"""Threads that part ways and meet again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.machine.programs import ORDERS, TIMED, expect

LANES = np.arange(32)


def test_if_else_meets_again() -> None:
    body = """
    setp.lt.u32 %p1, %t, 10;
    @%p1 bra LOW;
    add.u32 %r1, %t, 1000;
    bra.uni DONE;
    LOW: mul.lo.u32 %r1, %t, 7;
    DONE: activemask.b32 %r2;
    st.global.u32 [%mine], %r1;
    setp.ne.u32 %p2, %r2, -1;
    @%p2 st.global.u32 [%mine], %r2;
    """
    expect(body, np.where(LANES < 10, LANES * 7, LANES + 1000))


def test_nested_conditions_with_one_meeting_point() -> None:
    body = """
    mov.u32 %r1, 0;
    and.b32 %r2, %t, 1;  setp.ne.u32 %p1, %r2, 0;
    and.b32 %r2, %t, 2;  setp.ne.u32 %p2, %r2, 0;
    and.b32 %r2, %t, 4;  setp.ne.u32 %p3, %r2, 0;
    @!%p1 bra DONE;
    add.u32 %r1, %r1, 1;
    @!%p2 bra DONE;
    add.u32 %r1, %r1, 2;
    @!%p3 bra DONE;
    add.u32 %r1, %r1, 4;
    DONE:
    ld.global.u32 %r3, [%mine];
    add.u32 %r3, %r3, %r1;
    activemask.b32 %r4;
    shr.u32 %r4, %r4, 31;
    mad.lo.u32 %r3, %r4, 100, %r3;
    st.global.u32 [%mine], %r3;
    """
    one, two, four = LANES & 1, LANES >> 1 & 1, LANES >> 2 & 1
    # The 100 says that the lanes are together again, lane 31 included.
    expect(body, one + one * two * 2 + one * two * four * 4 + 100)


def test_nested_conditions_with_their_own_meeting_points() -> None:
    body = """
    mov.u32 %r1, 0;
    setp.lt.u32 %p1, %t, 20;
    @!%p1 bra ELSE;
      setp.lt.u32 %p2, %t, 8;
      @!%p2 bra INNER;
        add.u32 %r1, %r1, 1;
      INNER:
      activemask.b32 %r5;
      popc.b32 %r5, %r5;
      add.u32 %r1, %r1, %r5;
      bra DONE;
    ELSE:
      activemask.b32 %r5;
      popc.b32 %r5, %r5;
      mul.lo.u32 %r1, %r5, 1000;
    DONE:
    activemask.b32 %r6;
    popc.b32 %r6, %r6;
    mad.lo.u32 %r1, %r6, 65536, %r1;
    st.global.u32 [%mine], %r1;
    """
    inner = np.where(LANES < 8, 21, 20)
    expect(body, np.where(LANES < 20, inner, 12000) + 32 * 65536)


def test_loops_run_as_often_as_each_lane_wants() -> None:
    body = """
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    LOOP:
    setp.ge.u32 %p1, %r2, %t;
    @%p1 bra DONE;
    add.u32 %r2, %r2, 1;
    add.u32 %r1, %r1, %r2;
    bra LOOP;
    DONE:
    activemask.b32 %r3;
    setp.eq.u32 %p2, %r3, -1;
    selp.u32 %r4, 0x10000, 0, %p2;
    add.u32 %r1, %r1, %r4;
    st.global.u32 [%mine], %r1;
    """
    expect(body, LANES * (LANES + 1) // 2 + 0x10000)


def test_do_while_with_a_store_inside() -> None:
    body = """
    and.b32 %r5, %t, 3;
    LOOP:
    ld.global.u32 %r1, [%mine];
    add.u32 %r1, %r1, 3;
    st.global.u32 [%mine], %r1;
    sub.u32 %r5, %r5, 1;
    setp.ge.s32 %p1, %r5, 0;
    @%p1 bra LOOP;
    """
    expect(body, 3 * ((LANES & 3) + 1))


def test_break_and_continue() -> None:
    # for (i = 0; i < 10; i++) { if (i == tid % 7) continue; if (i > tid / 4) break; sum += i; }
    body = """
    rem.u32 %r1, %t, 7;
    shr.u32 %r2, %t, 2;
    mov.u32 %r3, 0;
    mov.u32 %r4, 0;
    LOOP:
    setp.ge.u32 %p1, %r3, 10;
    @%p1 bra DONE;
    setp.eq.u32 %p2, %r3, %r1;
    @%p2 bra NEXT;
    setp.gt.u32 %p3, %r3, %r2;
    @%p3 bra DONE;
    add.u32 %r4, %r4, %r3;
    NEXT:
    add.u32 %r3, %r3, 1;
    bra LOOP;
    DONE:
    st.global.u32 [%mine], %r4;
    """

    def lane(tid: int) -> int:
        total = 0
        for i in range(10):
            if i == tid % 7:
                continue
            if i > tid // 4:
                break
            total += i
        return total

    expect(body, [lane(tid) for tid in range(32)])


def test_lanes_that_leave_early() -> None:
    body = """
    st.global.u32 [%mine], %t;
    setp.lt.u32 %p1, %t, 5;
    @%p1 ret;
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p2, %r1, 1;
    @%p2 bra ODD;
    mov.u32 %r2, 100;
    st.global.u32 [%mine], %r2;
    setp.gt.u32 %p3, %t, 20;
    @%p3 exit;
    bra DONE;
    ODD:
    mov.u32 %r2, 200;
    DONE:
    add.u32 %r2, %r2, 1;
    st.global.u32 [%mine], %r2;
    """
    expected = np.where(LANES & 1, 201, np.where(LANES > 20, 100, 101))
    expect(body, np.where(LANES < 5, LANES, expected))


def test_all_lanes_of_one_side_leave() -> None:
    body = """
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra HIGH;
    st.global.u32 [%mine], 7;
    ret;
    HIGH:
    activemask.b32 %r1;
    st.global.u32 [%mine], %r1;
    """
    expect(body, np.where(LANES < 16, 0xFFFF, 7))


def test_exit_inside_nested_branches() -> None:
    # Lanes leave at different depths; those who stay must not wait for them.
    body = """
    mov.u32 %r9, 0;
    setp.ge.u32 %p1, %t, 16;
    @%p1 bra JOIN;
      setp.ge.u32 %p2, %t, 8;
      @%p2 bra INNER;
        setp.ge.u32 %p3, %t, 4;
        @%p3 exit;
        setp.ge.u32 %p4, %t, 2;
        @!%p4 exit;
        add.u32 %r9, %r9, 1;
      INNER:
      add.u32 %r9, %r9, 10;
    JOIN:
    add.u32 %r9, %r9, 100;
    activemask.b32 %r8;
    popc.b32 %r8, %r8;
    mad.lo.u32 %r9, %r8, 1000, %r9;
    st.global.u32 [%mine], %r9;
    """
    value = np.where(LANES >= 16, 100, np.where(LANES >= 8, 110, 111)) + 26000
    expect(body, np.where((LANES < 2) | ((LANES >= 4) & (LANES < 8)), 0, value))


def test_predicated_loads_stores_and_atomics() -> None:
    body = """
    and.b32 %r1, %t, 3;
    setp.eq.u32 %p1, %r1, 2;
    mov.u32 %r2, 55;
    @%p1 ld.global.u32 %r2, [%mine];
    add.u32 %r2, %r2, %t;
    @!%p1 st.global.u32 [%mine], %r2;
    mov.u32 %r3, 9;
    @%p1 atom.global.add.u32 %r3, [%mine], 1000;
    @%p1 st.global.u32 [%mine], %r3;
    @%p1 red.global.add.u32 [%mine], %t;
    """
    chosen = LANES % 4 == 2
    expect(body, np.where(chosen, 5 + LANES, 55 + LANES), fill=5)


def test_guards_on_pairs_and_vectors_keep_the_other_lanes() -> None:
    body = """
    setp.lt.u32 %p1, %t, 12;
    mov.u32 %r1, 1; mov.u32 %r2, 2;
    mov.b64 %rd1, {%t, %word};
    @%p1 mov.b64 {%r1, %r2}, %rd1;
    mad.lo.u32 %r1, %r1, 100, %r2;
    setp.eq.u32 %p2|%p3, %t, %t;
    @%p1 setp.gt.u32 %p2|%p3, %t, 5;
    selp.u32 %r3, 10000, 0, %p2;
    selp.u32 %r4, 20000, 0, %p3;
    add.u32 %r1, %r1, %r3;
    add.u32 %r1, %r1, %r4;
    st.global.u32 [%mine], %r1;
    """
    low = LANES * 101 + np.where(LANES > 5, 10000, 20000)
    expect(body, np.where(LANES < 12, low, 102 + 10000))


def test_labels_at_the_end_of_blocks_and_shadowed_names() -> None:
    body = """
    mov.u32 %r1, %t;
    {
    .reg .pred P1;
    setp.gt.u32 P1, %t, 3;
    @P1 bra DONE;
    add.u32 %r1, %r1, 50;
    DONE:
    }
    {
    .reg .pred P1;
    setp.gt.u32 P1, %t, 6;
    @P1 bra DONE;
    add.u32 %r1, %r1, 500;
    DONE:
    }
    st.global.u32 [%mine], %r1;
    bra LAST;
    st.global.u32 [%mine], 0;
    LAST:
    """
    expect(body, LANES + np.where(LANES > 3, 0, 50) + np.where(LANES > 6, 0, 500))


def test_uniform_branches_follow_all_lanes() -> None:
    body = """
    mov.u32 %r1, 3;
    LOOP:
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra.uni LOOP;
    @!%p1 bra.uni DONE;
    trap;
    DONE: st.global.u32 [%mine], %t;
    """
    expect(body, LANES)


@pytest.mark.parametrize("block", [1, 31, 33, 48, 127, 160])
def test_blocks_that_are_no_multiple_of_a_warp(block: int) -> None:
    body = """
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p1, %r1, 1;
    mov.u32 %r2, 10;
    @%p1 bra DONE;
    mov.u32 %r2, 20;
    DONE:
    bar.sync 0;
    add.u32 %r2, %r2, %t;
    st.global.u32 [%mine], %r2;
    """
    tid = np.arange(block)
    expect(body, tid + np.where(tid & 1, 10, 20), block=block)


# What parts a warp for nothing: both ways of it end at the same place at once.
NOTHING = {
    "branch": "@%p1 bra NEXT; NEXT:",
    "not, and an empty block": "@!%p1 bra NEXT; { } NEXT:",
    "call of nothing": "@%p1 call nothing;",
}


@pytest.mark.parametrize("block", [32, 33, 64, 96, 128, 160, 256])
@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
def test_every_warp_goes_on_from_a_branch_to_the_next_statement(nothing: str, block: int) -> None:
    body = f"""
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p1, %r1, 0;
    {nothing}
    activemask.b32 %r2;
    popc.b32 %r2, %r2;
    bar.sync 0;
    mad.lo.u32 %r3, %t, 100, %r2;
    st.global.u32 [%mine], %r3;
    """
    tids = np.arange(block)
    together = np.minimum(block - tids // 32 * 32, 32)
    expect(
        body, tids * 100 + together, block=block, orders=(*ORDERS, TIMED),
        module=".func nothing() { ret; }",
    )  # fmt: skip


def test_only_some_warps_part_at_a_branch_to_the_next_statement() -> None:
    body = """
    and.b32 %r1, %t, 65;
    setp.eq.u32 %p1, %r1, 65;
    @%p1 bra NEXT;
    NEXT:
    activemask.b32 %r2;
    popc.b32 %r2, %r2;
    st.global.u32 [%mine], %r2;
    """
    expect(body, np.full(256, 32), block=256, orders=(*ORDERS, TIMED))


def test_warps_part_at_a_branch_and_go_on_together_after_a_barrier() -> None:
    body = """
    .shared .align 4 .b32 box[128];
    shr.u32 %r1, %t, 5;
    mov.u32 %r2, box;
    mad.lo.u32 %r2, %t, 4, %r2;
    setp.eq.u32 %p1, %r1, 2;
    @%p1 bra TWO;
    setp.eq.u32 %p2, %r1, 3;
    @%p2 bra THREE;
    st.shared.u32 [%r2], 100;
    bra MEET;
    TWO: st.shared.u32 [%r2], 200;
    bra MEET;
    THREE: st.shared.u32 [%r2], 300;
    MEET:
    bar.sync 0;
    xor.b32 %r3, %t, 96;
    mov.u32 %r4, box;
    mad.lo.u32 %r4, %r3, 4, %r4;
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%mine], %r5;
    """
    warp = np.arange(128) // 32
    stored = np.select([warp == 2, warp == 3], [200, 300], 100)
    expect(body, stored[np.arange(128) ^ 96], block=128)


# --- independent thread scheduling ----------------------------------------------------------------


def test_a_lane_spins_on_a_flag_that_another_lane_of_its_warp_sets_in_the_other_branch() -> None:
    body = """
    .shared .align 4 .b32 flag;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [flag], 0;
    bar.warp.sync -1;
    setp.eq.u32 %p2, %t, 3;
    @%p2 bra SPIN;
    setp.eq.u32 %p3, %t, 9;
    @%p3 st.volatile.shared.u32 [flag], 77;
    bra DONE;
    SPIN:
    ld.volatile.shared.u32 %r1, [flag];
    setp.eq.u32 %p4, %r1, 0;
    @%p4 bra SPIN;
    st.global.u32 [%mine], %r1;
    DONE:
    """
    expect(body, np.where(LANES == 3, 77, 0))


def test_a_lane_spins_on_a_flag_that_the_others_set_after_the_meeting_point() -> None:
    # The lanes at DONE must not wait for lane 3 for ever: it waits for one of them.
    body = """
    .shared .align 4 .b32 flag;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [flag], 0;
    bar.warp.sync -1;
    setp.ne.u32 %p2, %t, 3;
    @%p2 bra DONE;
    SPIN:
    ld.volatile.shared.u32 %r1, [flag];
    setp.eq.u32 %p4, %r1, 0;
    @%p4 bra SPIN;
    st.global.u32 [%mine], %r1;
    DONE:
    setp.eq.u32 %p3, %t, 9;
    @%p3 st.volatile.shared.u32 [flag], 77;
    """
    expect(body, np.where(LANES == 3, 77, 0))


def test_a_spin_lock_taken_by_every_lane_of_a_warp() -> None:
    # The classic that hangs without independent thread scheduling.
    body = """
    .shared .align 4 .b32 lock;
    .shared .align 4 .b32 total;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [lock], 0;
    @%p1 st.shared.u32 [total], 0;
    bar.sync 0;
    TRY:
    atom.shared.cas.b32 %r1, [lock], 0, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra TRY;
    ld.volatile.shared.u32 %r2, [total];
    add.u32 %r2, %r2, %t;
    st.volatile.shared.u32 [total], %r2;
    membar.cta;
    atom.shared.exch.b32 %r3, [lock], 0;
    bar.sync 0;
    ld.shared.u32 %r4, [total];
    st.global.u32 [%mine], %r4;
    """
    expect(body, np.full(40, 40 * 39 // 2), block=40)


def test_lanes_that_count_how_often_they_try_get_the_lock_too() -> None:
    # No turn of the loop is like the one before.
    body = """
    mov.u32 %r5, 0;
    TRY:
    add.u32 %r5, %r5, 1;
    atom.global.cas.b32 %r1, [%out+128], 0, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra TRY;
    ld.volatile.global.u32 %r2, [%out+132];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%out+132], %r2;
    membar.gl;
    atom.global.exch.b32 %r3, [%out+128], 0;
    min.u32 %r5, %r5, 1;
    st.global.u32 [%mine], %r5;
    """
    expect(body, [*[1] * 32, 0, 32], orders=(*ORDERS, TIMED))


def test_lanes_that_look_at_a_clock_while_they_wait_for_a_lane_of_their_warp() -> None:
    body = """
    setp.eq.u32 %p1, %t, 5;
    @%p1 bra OVER;
    LOOK:
    ld.relaxed.gpu.global.u32 %r1, [%out+128];
    mov.u32 %r2, %clock;
    xor.b32 %r4, %r4, %r2;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra LOOK;
    OVER:
    st.relaxed.gpu.global.u32 [%out+128], 7;
    st.global.u32 [%mine], 1;
    """
    expect(body, [*[1] * 32, 7], orders=(*ORDERS, TIMED))


def test_a_lane_waits_on_an_mbarrier_that_lanes_beyond_the_meeting_point_complete() -> None:
    body = """
    .shared .align 8 .b64 bar;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 31;
    bar.warp.sync -1;
    setp.ne.u32 %p2, %t, 5;
    @%p2 bra DONE;
    WAIT:
    mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
    @!%p3 bra WAIT;
    st.global.u32 [%mine], 66;
    ret;
    DONE:
    mbarrier.arrive.shared.b64 _, [bar];
    """
    expect(body, np.where(LANES == 5, 66, 0))

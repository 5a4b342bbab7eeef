"""Named barriers of a CTA and the barrier of a cluster."""

from __future__ import annotations

import numpy as np
import pytest

from tests.machine.programs import UNTIMED, expect, fault_of


def test_bar_sync_orders_shared_memory() -> None:
    body = """
    .shared .align 4 .b32 box[160];
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    LOOP:
    add.u32 %r3, %t, %r5;
    st.shared.u32 [%r2], %r3;
    bar.sync 0;
    sub.u32 %r4, 159, %t;
    mad.lo.u32 %r4, %r4, 4, %r1;
    ld.shared.u32 %r7, [%r4];
    add.u32 %r6, %r6, %r7;
    bar.sync 0;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 5;
    @%p1 bra LOOP;
    st.global.u32 [%mine], %r6;
    """
    expect(body, 5 * (159 - np.arange(160)) + 10, block=160)


def test_ids_and_counts_from_registers_and_partial_counts() -> None:
    # Pairs of warps meet on a barrier of their own: id = warp / 2 + 1, count 64.
    body = """
    .shared .align 4 .b32 box[256];
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    shr.u32 %r3, %t, 6;
    add.u32 %r3, %r3, 1;
    mov.u32 %r4, 64;
    st.shared.u32 [%r2], %t;
    bar.sync %r3, %r4;
    xor.b32 %r5, %t, 63;
    mad.lo.u32 %r5, %r5, 4, %r1;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%mine], %r6;
    """
    tid = np.arange(256)
    expect(body, tid ^ 63, block=256)


def test_producers_arrive_and_consumers_sync() -> None:
    # Warps 0 and 1 fill a slot, warp 2 reads it: full = barrier 1, empty = barrier 2, 96 threads each.
    body = """
    .shared .align 4 .b32 box[64];
    mov.u32 %r1, box;
    shr.u32 %r2, %t, 5;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    setp.eq.u32 %p1, %r2, 2;
    @%p1 bra CONSUMER;
    PRODUCE:
    bar.sync 2, 96;
    mad.lo.u32 %r3, %t, 4, %r1;
    mad.lo.u32 %r4, %r5, 1000, %t;
    st.shared.u32 [%r3], %r4;
    bar.arrive 1, 96;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 4;
    @%p2 bra PRODUCE;
    bra DONE;
    CONSUMER:
    bar.arrive 2, 96;
    CONSUME:
    bar.sync 1, 96;
    mad.lo.u32 %r3, %t, 4, %r1;
    ld.shared.u32 %r4, [%r3+-256];
    ld.shared.u32 %r7, [%r3+-128];
    add.u32 %r6, %r6, %r4;
    add.u32 %r6, %r6, %r7;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 4;
    @%p2 bar.arrive 2, 96;
    @%p2 bra CONSUME;
    st.global.u32 [%mine], %r6;
    DONE:
    """
    lane = np.arange(32)
    total = 2 * 1000 * (0 + 1 + 2 + 3) + 4 * (lane + lane + 32)
    expect(body, [*[0] * 64, *total], block=96)


@pytest.mark.parametrize("spelling", ["bar", "barrier", "barrier.aligned"])
def test_barrier_reductions(spelling: str) -> None:
    body = """
    setp.lt.u32 %p1, %t, 40;
    bar.red.popc.u32 %r1, 0, %p1;
    setp.eq.u32 %p2, %t, 70;
    bar.red.or.pred %p3, 1, 96, %p2;
    bar.red.and.pred %p4, 0, %p1;
    bar.red.and.pred %p5, 0, !%p2;
    setp.lt.u32 %p6, %t, 96;
    bar.red.and.pred %p7, 3, 96, %p6;
    selp.u32 %r2, 1000, 0, %p3;
    selp.u32 %r3, 2000, 0, %p4;
    selp.u32 %r4, 4000, 0, %p5;
    selp.u32 %r5, 8000, 0, %p7;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    add.u32 %r1, %r1, %r4;
    add.u32 %r1, %r1, %r5;
    st.global.u32 [%mine], %r1;
    """
    name, _, aligned = spelling.partition(".")
    for operation in ("popc", "and", "or"):
        whole = f"{name}.red.{operation}" + (f".{aligned}" if aligned else "")
        body = body.replace(f"bar.red.{operation}", whole)
    expect(body, np.full(96, 40 + 1000 + 8000), block=96)


def test_warps_that_exited_are_not_waited_for_without_a_count() -> None:
    body = """
    shr.u32 %r1, %t, 5;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 ret;
    bar.sync 0;
    st.global.u32 [%mine], %r1;
    """
    expect(body, np.repeat([0, 0, 2, 3], 32), block=128)


def test_a_warp_with_lanes_that_exited_arrives_as_a_whole() -> None:
    # PTX counts arrivals by warps: 64 threads, though five lanes are gone.
    body = """
    .shared .align 4 .b32 box;
    setp.eq.u32 %p2, %t, 63;
    @%p2 st.shared.u32 [box], 9;
    setp.lt.u32 %p1, %t, 5;
    @%p1 ret;
    bar.sync 1, 64;
    ld.shared.u32 %r1, [box];
    st.global.u32 [%mine], %r1;
    """
    expect(body, np.where(np.arange(64) < 5, 0, 9), block=64)


def test_the_last_warp_may_be_smaller_than_the_count_says() -> None:
    body = """
    bar.sync 1, 64;
    st.global.u32 [%mine], 1;
    """
    expect(body, np.full(40, 1), block=40)


def test_barrier_sync_in_different_branches_of_a_warp() -> None:
    # The form without .aligned: lanes of a warp arrive at different instructions.
    body = """
    .shared .align 4 .b32 box[64];
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], %t;
    and.b32 %r3, %t, 1;
    setp.eq.u32 %p1, %r3, 1;
    @%p1 bra ODD;
    barrier.sync 1, 64;
    mov.u32 %r4, 100;
    bra DONE;
    ODD:
    barrier.sync 1, 64;
    mov.u32 %r4, 200;
    DONE:
    xor.b32 %r5, %t, 33;
    mad.lo.u32 %r5, %r5, 4, %r1;
    ld.shared.u32 %r6, [%r5];
    add.u32 %r6, %r6, %r4;
    st.global.u32 [%mine], %r6;
    """
    tid = np.arange(64)
    expect(body, (tid ^ 33) + np.where(tid & 1, 200, 100), block=64)


def test_lanes_that_exit_complete_the_arrival_of_their_warp() -> None:
    body = """
    and.b32 %r3, %t, 1;
    setp.eq.u32 %p1, %r3, 1;
    @%p1 bra ODD;
    barrier.sync 1, 64;
    st.global.u32 [%mine], 5;
    ret;
    ODD:
    ld.global.u32 %r1, [%mine];
    ret;
    """
    expect(body, np.where(np.arange(64) & 1, 0, 5), block=64)


def test_a_branch_that_only_whole_warps_take_may_hold_an_aligned_barrier() -> None:
    body = """
    setp.lt.u32 %p1, %t, 64;
    @!%p1 bra DONE;
    bar.sync 5, 64;
    st.global.u32 [%mine], 1;
    DONE:
    """
    expect(body, np.where(np.arange(128) < 64, 1, 0), block=128)


def test_an_aligned_barrier_in_a_branch_of_a_warp_is_a_fault() -> None:
    body = """
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LOW;
    bar.sync 0;
    bra DONE;
    LOW:
    bar.sync 0;
    DONE:
    """
    text = fault_of(body, block=64, orders=UNTIMED[:1])
    assert text == (
        "cta (0,0,0) warp 0 lanes 0-15: aligned barrier 0 executed by 16 lanes of cta (0,0,0) warp 0 lanes 0-15\n"
        "  try: use barrier.sync (not aligned), or let the warp converge first\n"
        '  (PTX ISA 8.7, "bar, barrier")'
    )
    for order in UNTIMED[1:]:
        assert "executed by 16 lanes of cta (0,0,0) warp" in fault_of(
            body, block=64, orders=[order]
        )


def test_a_divergent_guard_on_an_aligned_barrier_is_a_fault() -> None:
    text = fault_of("setp.lt.u32 %p1, %t, 4;\n@%p1 bar.sync 2, 32;\nst.global.u32 [%mine], 1;")
    assert text == (
        "cta (0,0,0) warp 0 lanes 0-3: aligned barrier 2 executed by 4 lanes of cta (0,0,0) warp 0 lanes 0-3\n"
        "  try: use barrier.sync (not aligned), or let the warp converge first\n"
        '  (PTX ISA 8.7, "bar, barrier")'
    )


def test_counts_that_differ_are_a_fault() -> None:
    body = """
    shr.u32 %r1, %t, 5;
    add.u32 %r1, %r1, 1;
    shl.b32 %r1, %r1, 5;
    bar.sync 1, %r1;
    """
    # Warp 0 completes its barrier of 32 alone; the others disagree.
    text = fault_of(body, block=128, orders=UNTIMED[:1])
    assert "barrier 1 is used with" in text
    assert text.endswith(
        '  try: give every participant of one barrier the same count\n  (PTX ISA 8.7, "bar, barrier")'
    )


@pytest.mark.parametrize(
    ("barrier", "what"),
    [
        ("mov.u32 %r1, 16; bar.sync %r1;", "barrier 16 does not exist: expected 0 to 15"),
        (
            "mov.u32 %r1, 40; bar.sync 1, %r1;",
            "barrier thread count 40 must be a positive multiple of 32",
        ),
        ("bar.sync %t;", "barrier number differs between lanes of one warp"),
        ("bar.arrive 1, 0;", "barrier thread count 0 must be a positive multiple of 32"),
    ],
)
def test_illegal_ids_and_counts(barrier: str, what: str) -> None:
    assert fault_of(barrier).startswith(f"cta (0,0,0) warp 0: {what}")


def test_too_many_arrivals_are_a_fault() -> None:
    # Half of warp 0 has arrived when warps 1 and 2 fill the count; the other half passes it.
    body = """
    .shared .align 4 .b32 flag;
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LATE;
    barrier.arrive 1, 64;
    setp.eq.u32 %p2, %t, 64;
    @%p2 st.volatile.shared.u32 [flag], 1;
    bra END;
    LATE:
    ld.volatile.shared.u32 %r1, [flag];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra LATE;
    barrier.arrive 1, 64;
    END:
    """
    text = fault_of(body, block=96, orders=UNTIMED[:1])
    assert text.startswith(
        "cta (0,0,0) warp 0 lanes 0-15: 96 threads arrived on barrier 1, which waits for 64"
    )


def test_warps_beyond_the_count_arrive_for_the_next_use() -> None:
    # However many warps step together: they count one by one, and the last two begin a use of their own.
    expect("bar.arrive 1, 64;\nst.global.u32 [%mine], %t;", np.arange(96), block=96)
    expect("bar.arrive 1, 96;\nst.global.u32 [%mine], %t;", np.arange(160), block=160)
    body = "bar.sync 1, 64;\nst.global.u32 [%mine], %t;"
    expect(body, np.arange(128), block=128)


# --- clusters -------------------------------------------------------------------------------------


def test_the_cluster_barrier_orders_shared_memory_of_peers() -> None:
    body = """
    .shared .align 4 .b32 box[32];
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    mov.u32 %r3, %cluster_ctarank;
    mad.lo.u32 %r4, %r3, 100, %t;
    st.shared.u32 [%r2], %r4;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    add.u32 %r5, %r3, 1;
    and.b32 %r5, %r5, 3;
    mapa.shared::cluster.u32 %r6, %r2, %r5;
    ld.shared::cluster.u32 %r7, [%r6];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    st.global.u32 [%mine], %r7;
    """
    rank = np.arange(8) & 3
    expected = ((rank + 1 & 3)[:, None] * 100 + np.arange(32)).reshape(-1)
    expect(body, expected, grid=8, cluster=4)


def test_stores_and_atomics_reach_peers() -> None:
    body = """
    .shared .align 8 .b32 box[2];
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [box], 0;
    @%p1 st.shared.u32 [box+4], 0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r1, box;
    mapa.shared::cluster.u32 %r2, %r1, 0;
    atom.shared::cluster.add.u32 %r3, [%r2], %t;
    red.relaxed.cluster.shared::cluster.add.u32 [%r2+4], 1;
    mov.u64 %rd1, box;
    cvta.shared.u64 %rd1, %rd1;
    mapa.u64 %rd2, %rd1, 0;
    atom.add.u32 %r4, [%rd2+4], 1;
    getctarank.u64 %r8, %rd2;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared::cluster.u32 %r5, [%r2];
    ld.shared::cluster.u32 %r6, [%r2+4];
    add.u32 %r5, %r5, %r6;
    add.u32 %r5, %r5, %r8;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.u32 [%mine], %r5;
    """
    expect(body, np.full(3 * 64, 3 * 64 * 63 // 2 + 2 * 3 * 64), grid=3, block=64, cluster=3)


def test_arrive_work_and_wait_later() -> None:
    body = """
    .shared .align 4 .b32 box;
    mov.u32 %r2, %cluster_ctarank;
    add.u32 %r2, %r2, 7;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [box], %r2;
    barrier.cluster.arrive.release;
    mov.u32 %r3, 0;
    WORK: add.u32 %r3, %r3, 1; ld.global.u32 %r9, [%mine]; setp.lt.u32 %p2, %r3, %t; @%p2 bra WORK;
    barrier.cluster.wait.acquire;
    mov.u32 %r4, box;
    mov.u32 %r5, %cluster_ctarank;
    xor.b32 %r5, %r5, 1;
    mapa.shared::cluster.u32 %r6, %r4, %r5;
    ld.shared::cluster.u32 %r7, [%r6];
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.u32 [%mine], %r7;
    """
    expect(body, np.repeat([8, 7], 32), grid=2, cluster=2)


def test_threads_that_exit_are_not_waited_for_by_the_cluster() -> None:
    # CTA 1 arrives and leaves without waiting; half of CTA 0 leaves without arriving.
    body = """
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra LEAVES;
    setp.lt.u32 %p2, %t, 32;
    @%p2 ret;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.u32 [%mine], 3;
    ret;
    LEAVES:
    barrier.cluster.arrive;
    """
    expect(
        body,
        np.where((np.arange(128) >= 32) & (np.arange(128) < 64), 3, 0),
        grid=2,
        block=64,
        cluster=2,
    )


def test_an_arrival_of_threads_that_left_does_not_stand_for_those_who_did_not_arrive() -> None:
    # CTA 1 arrives and exits at once. CTA 0 must still bring all its own threads before anybody passes.
    body = """
    .shared .align 4 .b32 seen;
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra LEAVES;
    setp.lt.u32 %p2, %t, 32;
    @!%p2 bra LATE;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared.u32 %r2, [seen];
    st.global.u32 [%mine], %r2;
    ret;
    LATE:
    mov.u32 %r3, 0;
    WORK: add.u32 %r3, %r3, 1; ld.global.u32 %r9, [%mine]; setp.lt.u32 %p2, %r3, 200; @%p2 bra WORK;
    st.shared.u32 [seen], 6;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
    LEAVES:
    barrier.cluster.arrive;
    """
    expect(body, np.where(np.arange(128) < 32, 6, 0), grid=2, block=64, cluster=2)


def test_the_rules_of_the_cluster_barrier() -> None:
    assert fault_of("barrier.cluster.wait;").startswith(
        "cta (0,0,0) warp 0: barrier.cluster.wait without an arrive before it"
    )
    text = fault_of(
        "barrier.cluster.arrive;\nbarrier.cluster.arrive.relaxed;",
        grid=2,
        cluster=2,
        orders=UNTIMED[:1],
    )
    assert "barrier.cluster.arrive twice without a wait between" in text
    text = fault_of("setp.lt.u32 %p1, %t, 3;\n@%p1 barrier.cluster.arrive.aligned;")
    assert "barrier.cluster.arrive.aligned executed by 3 lanes of a warp" in text


def test_the_address_of_a_cta_that_is_not_there_faults_when_it_is_used() -> None:
    """nvcc moves mapa in front of the branch that guards its use, and ptxas makes it a byte permutation."""
    body = """
    .shared .align 8 .b32 box[2];
    setp.lt.u32 %p1, %t, 0;
    mov.u32 %r1, box;
    mapa.shared::cluster.u32 %r2, %r1, RANK;
    GUARD st.shared::cluster.u32 [%r2], %t;
    getctarank.shared::cluster.u32 %r3, %r2;
    st.global.u32 [%mine], %r3;
    """
    for rank, kept in (("2", 2), ("-1", 255)):
        unused = body.replace("RANK", rank).replace("GUARD", "@%p1")
        expect(unused, np.full(64, kept), grid=2, block=32, cluster=2)
    used = body.replace("RANK", "2").replace("GUARD", "")
    text = fault_of(used, grid=2, cluster=2, orders=UNTIMED[:1])
    assert "names CTA rank 2, but the cluster has 2" in text

"""Programs that cannot go on end as `deadlock`, with the story; programs that only seem stuck go on."""

from __future__ import annotations

import numpy as np
import pytest

from hopsim.findings import Deadlock
from tests.machine.programs import (
    IN_ORDER,
    UNTIMED,
    Order,
    build,
    each_order,
    expect,
    launch,
    line_of,
)

INIT = """
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
setp.eq.u32 %p39, %t, 0;
@%p39 mbarrier.init.shared.b64 [full], COUNT;
@%p39 mbarrier.init.shared.b64 [empty], 1;
bar.sync 0;
"""


def deadlock(body: str, order: Order = IN_ORDER, **options: object) -> Deadlock:
    result, _, _ = launch(body, order, **options)
    assert result.verdict == "deadlock"
    assert result.exit_code == 3
    assert result.deadlock is not None
    return result.deadlock


def test_a_missing_arrive() -> None:
    body = INIT.replace("COUNT", "2") + """
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra WAIT;
    setp.eq.u32 %p2, %t, 40;
    @%p2 mbarrier.arrive.shared.b64 _, [full];
    ret;
    WAIT:
    mbarrier.try_wait.parity.shared.b64 %p3, [full], 0;
    @!%p3 bra WAIT;
    """  # fmt: skip
    kernel = build(body)
    waited, arrived = line_of(kernel, "try_wait"), line_of(kernel, "arrive.shared.b64 _, [full]")
    for name, order in each_order():
        story = deadlock(body, order, block=64)
        (wait,) = story.waiting
        assert (wait.cta, wait.warp, wait.lanes, wait.kind, wait.line) == (
            (0, 0, 0),
            0,
            0xFFFFFFFF,
            "mbarrier",
            waited,
        ), name
        assert (wait.address, wait.phase, wait.parity) == (0x400, 0, 0)
        assert (wait.pending_arrivals, wait.expected_arrivals, wait.tx_bytes) == (1, 2, 0)
        assert story.in_flight == ()
        assert story.barriers == (
            "mbarrier 0x400 of cta (0,0,0): phase 0 open, 1 of 2 arrivals missing, tx 0; "
            f"warp 0 waits for parity 0 at :{waited}",
        )
        assert story.history == (
            f"mbarrier 0x400 of cta (0,0,0), phase 0: warp 1 arrived at :{arrived}; warp 1 exited",
        )
        assert story.chains == ("warp 0 -> mbarrier 0x400 -> warp 1 (exited)",)


def test_a_wrong_parity() -> None:
    body = INIT.replace("COUNT", "32") + """
    mbarrier.arrive.shared.b64 _, [full];
    WAIT:
    mbarrier.try_wait.parity.shared.b64 %p3, [full], 1;
    @!%p3 bra WAIT;
    """  # fmt: skip
    for _, order in each_order():
        story = deadlock(body, order)
        (wait,) = story.waiting
        assert (wait.phase, wait.parity, wait.pending_arrivals) == (1, 1, 32)
        assert "phase 1 open, 32 of 32 arrivals missing" in story.barriers[0]
        assert "warp 0 arrived (32)" in story.history[0]


def test_missing_bytes() -> None:
    body = INIT.replace("COUNT", "1") + """
    @%p39 mbarrier.arrive.expect_tx.shared.b64 _, [full], 64;
    @%p39 mbarrier.complete_tx.shared::cta.b64 [full], 48;
    WAIT:
    mbarrier.try_wait.parity.shared.b64 %p3, [full], 0;
    @!%p3 bra WAIT;
    """  # fmt: skip
    for _, order in each_order():
        story = deadlock(body, order)
        assert all((wait.pending_arrivals, wait.tx_bytes) == (0, 16) for wait in story.waiting)
        assert "0 of 1 arrivals missing, tx 16" in story.barriers[0]
        assert "expected 64 bytes" in story.history[0]
        assert "48 bytes came" in story.history[0]


def test_a_ring_of_two_roles_that_wait_for_each_other() -> None:
    # The producer waits for `empty`, the consumer for `full`: nobody primed the ring.
    body = INIT.replace("COUNT", "1") + """
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra PRODUCER;
    CONSUME:
    mbarrier.try_wait.parity.shared.b64 %p3, [full], 0;
    @!%p3 bra CONSUME;
    mbarrier.arrive.shared.b64 _, [empty];
    ret;
    PRODUCER:
    mbarrier.try_wait.parity.shared.b64 %p4, [empty], 0;
    @!%p4 bra PRODUCER;
    mbarrier.arrive.shared.b64 _, [full];
    """  # fmt: skip
    for _, order in each_order():
        story = deadlock(body, order, block=64)
        assert [wait.warp for wait in story.waiting] == [0, 1]
        assert story.chains == ("warp 0 -> mbarrier 0x408 -> warp 1 -> mbarrier 0x400 -> warp 0",)


def test_a_named_barrier_that_never_completes() -> None:
    body = """
    setp.lt.u32 %p1, %t, 32;
    @%p1 ret;
    bar.sync 3, 96;
    """
    for _, order in each_order():
        story = deadlock(body, order, block=96 - 32)
        (wait,) = story.waiting
        assert (wait.kind, wait.address, wait.warp) == ("bar", 3, 1)
        assert (wait.pending_arrivals, wait.expected_arrivals) == (64, 96)
        assert story.barriers == (
            f"barrier 3 of cta (0,0,0): 64 of 96 threads missing; warp 1 waits for it at :{wait.line}",
        )
        assert story.chains == ("warp 1 -> barrier 3 -> warp 0 (exited)",)


def test_a_named_barrier_whose_count_is_reached_by_fewer_warps() -> None:
    # A third warp completes it, however many step together; the fourth waits for a next use.
    body = """
    setp.lt.u32 %p1, %t, 64;
    @%p1 bra ARRIVE;
    bar.sync 3, 96;
    ret;
    ARRIVE:
    bar.arrive 3, 96;
    """
    for _, order in each_order(UNTIMED[:1]):
        (wait,) = deadlock(body, order, block=128).waiting
        assert (wait.kind, wait.address, wait.warp) in [("bar", 3, 2), ("bar", 3, 3)]
        assert (wait.pending_arrivals, wait.expected_arrivals) == (64, 96)


def test_two_named_barriers_taken_in_the_wrong_order() -> None:
    body = """
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra ONE;
    bar.sync 2, 64;
    bar.sync 1, 64;
    ret;
    ONE:
    bar.sync 1, 64;
    bar.sync 2, 64;
    """
    for _, order in each_order():
        story = deadlock(body, order, block=64)
        assert story.chains == ("warp 0 -> barrier 1 -> warp 1 -> barrier 2 -> warp 0",)


def test_a_cluster_barrier_that_a_cta_never_reaches() -> None:
    body = """
    .shared .align 8 .b64 bar;
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra STUCK;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
    STUCK:
    setp.eq.u32 %p2, %t, 0;
    @%p2 mbarrier.init.shared.b64 [bar], 1;
    bar.warp.sync -1;
    W: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
    @!%p3 bra W;
    """
    for _, order in each_order():
        story = deadlock(body, order, grid=2, cluster=2)
        first, second = story.waiting
        assert (first.kind, first.phase, first.pending_arrivals, first.expected_arrivals) == (
            "barrier.cluster",
            0,
            32,
            64,
        )
        assert second.kind == "mbarrier"
        assert (
            "cluster barrier of cluster 0: phase 0 open, 32 of 64 threads missing"
            in story.barriers[0]
        )
        assert any("-> cluster barrier -> cta (1,0,0) warp 0 ->" in line for line in story.chains)


def test_setmaxnreg_starvation() -> None:
    body = """
    setp.lt.u32 %p1, %t, 128;
    @%p1 bra LOW;
    setmaxnreg.inc.sync.aligned.u32 240;
    ret;
    LOW:
    setmaxnreg.dec.sync.aligned.u32 120;
    ret;
    """
    for _, order in each_order():
        story = deadlock(body, order, block=256, directives=".maxntid 256, 1, 1\n.maxnreg 128")
        assert {wait.kind for wait in story.waiting} == {"setmaxnreg"}
        assert [wait.warp for wait in story.waiting] == [4, 5, 6, 7]
        assert "warps 4-7 want 240 registers a thread" in story.barriers[0]


def test_a_warpgroup_of_which_a_warp_never_comes_to_wgmma() -> None:
    body = """
    .shared .align 8 .b64 bar;
    setp.eq.u32 %p39, %t, 0;
    @%p39 mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
    setp.ge.u32 %p1, %t, 96;
    @!%p1 bra MMA;
    W: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
    @!%p3 bra W;
    MMA:
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, 0x4000004000010040, 0x4000004000010040, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    """
    for _, order in each_order():
        story = deadlock(body, order, block=128, shared_bytes=8192)
        assert {wait.kind for wait in story.waiting} == {"mbarrier", "collective"}
        assert any(
            "wgmma.mma_async: warps 0-2 wait for the rest of warpgroup 0" in line
            for line in story.barriers
        )


def test_lanes_that_wait_for_a_lane_of_their_warp() -> None:
    body = """
    .shared .align 8 .b64 bar;
    setp.eq.u32 %p39, %t, 0;
    @%p39 mbarrier.init.shared.b64 [bar], 1;
    bar.warp.sync -1;
    @!%p39 bra ALL;
    W: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
    @!%p3 bra W;
    ALL:
    vote.sync.all.pred %p4, %p3, -1;
    """
    for _, order in each_order():
        story = deadlock(body, order)
        assert [(wait.kind, wait.lanes) for wait in story.waiting] == [
            ("mbarrier", 1),
            ("collective", 0xFFFFFFFE),
        ]


# --- spinning for ever ----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [32, 64])
def test_a_spin_on_memory_that_nobody_writes(block: int) -> None:
    body = """
    SPIN:
    ld.volatile.global.u32 %r1, [%out];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra SPIN;
    """
    kernel = build(body)
    for name, order in each_order():
        story = deadlock(body, order, block=block)
        assert {wait.kind for wait in story.waiting} == {"spin"}, name
        assert {wait.line for wait in story.waiting} == {line_of(kernel, "ld.volatile")}, name
        assert story.barriers[0].startswith("memory: ")
        assert "nobody changes what they read" in story.barriers[0]


def test_a_spin_that_counts_in_local_memory_ends() -> None:
    body = """
    .local .align 4 .b32 rounds;
    st.local.u32 [rounds], 0;
    SPIN:
    ld.local.u32 %r1, [rounds];
    add.u32 %r1, %r1, 1;
    st.local.u32 [rounds], %r1;
    setp.lt.u32 %p1, %r1, 3000;
    @%p1 bra SPIN;
    st.global.u32 [%out], %r1;
    """
    expect(body, [3000])


def test_a_branch_to_itself() -> None:
    for _, order in each_order():
        story = deadlock("SELF: bra SELF;", order)
        assert [wait.kind for wait in story.waiting] == ["spin"]


def test_a_lock_that_its_holder_never_gives_back() -> None:
    body = """
    SPIN:
    atom.global.cas.b32 %r1, [%out], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra SPIN;
    """
    for _, order in each_order():
        story = deadlock(body, order, grid=3, block=32)
        assert {wait.kind for wait in story.waiting} == {"spin"}


def test_spinning_test_wait_and_waiting_try_wait_together() -> None:
    body = INIT.replace("COUNT", "1") + """
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra PARK;
    SPIN:
    mbarrier.test_wait.parity.shared.b64 %p3, [full], 0;
    @!%p3 bra SPIN;
    ret;
    PARK:
    mbarrier.try_wait.parity.shared.b64 %p3, [full], 0;
    @!%p3 bra PARK;
    """  # fmt: skip
    for name, order in each_order():
        story = deadlock(body, order, block=64)
        assert sorted(wait.kind for wait in story.waiting) == ["mbarrier", "spin"], name


def test_a_spin_that_an_operation_in_flight_ends_is_none() -> None:
    # test_wait never parks: the copy must land although a warp keeps stepping.
    body = INIT.replace("COUNT", "1") + """
    .shared .align 16 .b8 box[128];
    mov.u32 %r1, box;
    mov.u32 %r2, full;
    @%p39 mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;
    ld.param.u64 %rd1, [p0];
    @%p39 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 128, [%r2];
    SPIN:
    mbarrier.test_wait.parity.shared.b64 %p3, [full], 0;
    @!%p3 bra SPIN;
    mad.lo.u32 %r1, %t, 4, %r1;
    ld.shared.u32 %r3, [%r1];
    st.global.u32 [%mine], %r3;
    """  # fmt: skip
    data = np.arange(32, dtype=np.uint32) * 3
    for name, order in each_order():
        result, got, _ = launch(body, order, inputs=[data])
        assert result.deadlock is None, name
        assert np.array_equal(got, data), name


def test_a_long_loop_without_effect_is_no_deadlock() -> None:
    body = """
    mov.u32 %r1, 0;
    LOOP:
    ld.global.u32 %r2, [%out];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 20000;
    @%p1 bra LOOP;
    st.global.u32 [%mine], %r1;
    """
    for _, order in each_order(UNTIMED[:2]):
        result, got, _ = launch(body, order)
        assert result.deadlock is None
        assert got.tolist() == [20000] * 32


def test_a_timeout_by_the_clock_is_no_deadlock() -> None:
    body = """
    mov.u64 %rd1, %clock64;
    LOOP:
    ld.volatile.global.u32 %r2, [%out+4];
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra DONE;
    nanosleep.u32 20;
    mov.u64 %rd2, %clock64;
    sub.u64 %rd3, %rd2, %rd1;
    setp.lt.u64 %p1, %rd3, 5000;
    @%p1 bra LOOP;
    DONE:
    st.global.u32 [%out], 7;
    """
    for _, order in each_order():
        result, got, _ = launch(body, order, block=1)
        assert result.deadlock is None
        assert got[0] == 7


def test_a_run_is_ended_by_its_limit_of_steps() -> None:
    body = """
    LOOP:
    atom.global.add.u32 %r1, [%out], 1;
    bra LOOP;
    """
    for _, order in each_order(UNTIMED):
        result, _, _ = launch(body, order, max_cycles=3000)
        assert result.verdict == "not-modelled"
        assert "the run was ended by its limit of cycles or steps" in [
            note.why for note in result.not_modelled
        ]


def test_the_step_limit_is_checked_even_inside_a_turn() -> None:
    result, got, _ = launch(
        "L: atom.global.add.u32 %r1, [%out], 1; bra L;", block=1, max_cycles=100
    )
    assert result.verdict == "not-modelled"
    assert got[0] <= 200

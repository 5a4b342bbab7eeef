"""mbarriers in full: phases, parity, pending and tx-count, every form of arrive and wait, remote arrives, misuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopsim.hw.machine.barriers import TX_LIMIT, BarrierMisuse, Mbarrier
from tests.machine.programs import IN_ORDER, UNTIMED, expect, fault_of, launch

LANES = np.arange(32)
INIT = """
.shared .align 8 .b64 bar[4];
.shared .align 4 .b32 box[32];
setp.eq.u32 %p39, %t, 0;
@%p39 mbarrier.init.shared.b64 [bar], COUNT;
bar.sync 0;
"""


def with_barrier(count: int, body: str) -> str:
    return INIT.replace("COUNT", str(count)) + body


def wait(parity: str = "0", bar: str = "bar", label: str = "WAIT") -> str:
    return f"""
    {label}:
    mbarrier.try_wait.parity.shared.b64 %p38, [{bar}], {parity};
    @!%p38 bra {label};
    """


def test_a_fresh_barrier_passes_parity_one_and_blocks_parity_zero() -> None:
    body = """
    mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    mbarrier.try_wait.parity.shared.b64 %p3, [bar], 1;
    selp.u32 %r1, 1, 0, %p1;
    selp.u32 %r2, 2, 0, %p2;
    selp.u32 %r3, 4, 0, %p3;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    st.global.u32 [%mine], %r1;
    """
    expect(with_barrier(1, body), np.full(32, 5))


def test_phases_alternate_while_all_threads_arrive_and_wait() -> None:
    body = """
    mov.u32 %r1, 0;
    mov.u32 %r6, 0;
    mov.u32 %r2, box;
    and.b32 %r9, %t, 31;
    mad.lo.u32 %r3, %r9, 4, %r2;
    LOOP:
    setp.lt.u32 %p2, %t, 32;
    add.u32 %r4, %t, %r1;
    @%p2 st.shared.u32 [%r3], %r4;
    mbarrier.arrive.shared.b64 _, [bar];
    and.b32 %r5, %r1, 1;
    """ + wait("%r5") + """
    sub.u32 %r7, 31, %r9;
    mad.lo.u32 %r7, %r7, 4, %r2;
    ld.shared.u32 %r8, [%r7];
    add.u32 %r6, %r6, %r8;
    bar.sync 1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 7;
    @%p1 bra LOOP;
    st.global.u32 [%mine], %r6;
    """  # fmt: skip
    expect(with_barrier(96, body), np.tile(7 * (31 - LANES) + 21, 3), block=96)


def test_waiting_for_a_state_and_the_pending_count_in_it() -> None:
    body = """
    mbarrier.arrive.shared.b64 %rd1, [bar];
    mbarrier.pending_count.b64 %r1, %rd1;
    WAIT:
    mbarrier.try_wait.shared.b64 %p1, [bar], %rd1;
    @!%p1 bra WAIT;
    mbarrier.test_wait.shared.b64 %p2, [bar], %rd1;
    @%p2 st.global.u32 [%mine], %r1;
    """
    # Lanes arrive in order, whatever warps do: each sees what is left before it.
    for order in UNTIMED:
        _, got, _ = launch(with_barrier(64, body), order, block=64, out=64)
        assert sorted(got.tolist()) == list(range(1, 65)), order


def test_counts_of_arrive_and_of_several_barriers() -> None:
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared::cta.b64 [bar+8], 12;
    @%p1 mbarrier.init.shared::cta.b64 [bar+16], 4;
    bar.warp.sync -1;
    // Lane n arrives on barrier n % 3 with the count that fills it: 8 * 1, 4 * 3, 4 * 1.
    rem.u32 %r1, %t, 3;
    mov.u32 %r2, bar;
    mad.lo.u32 %r3, %r1, 8, %r2;
    setp.lt.u32 %p2, %t, 12;
    setp.eq.u32 %p3, %r1, 1;
    and.pred %p4, %p2, %p3;
    @%p4 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r3], 3;
    not.pred %p5, %p3;
    and.pred %p5, %p5, %p2;
    @%p5 mbarrier.arrive.shared.b64 %rd1, [%r3];
    """ + wait("0") + wait("0", "bar+8", "W2") + wait("0", "bar+16", "W3") + """
    st.global.u32 [%mine], 1;
    """  # fmt: skip
    expect(with_barrier(4, body), np.full(32, 1))


def test_lanes_that_wait_on_different_barriers() -> None:
    body = """
    setp.lt.u32 %p1, %t, 4;
    mov.u32 %r2, bar;
    mad.lo.u32 %r3, %t, 8, %r2;
    @%p1 mbarrier.init.shared.b64 [%r3], 1;
    bar.sync 0;
    setp.lt.u32 %p2, %t, 32;
    @!%p2 bra ARRIVE;
    and.b32 %r4, %t, 3;
    mad.lo.u32 %r3, %r4, 8, %r2;
    WAIT4:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0;
    @!%p3 bra WAIT4;
    st.global.u32 [%mine], %r4;
    ret;
    ARRIVE:
    setp.lt.u32 %p4, %t, 36;
    @%p4 mbarrier.arrive.shared.b64 _, [%r3+-256];
    """
    expect(with_barrier(1, body), [*np.tile([0, 1, 2, 3], 8), *[0] * 32], block=64)


def test_expected_bytes_hold_the_phase_open() -> None:
    body = """
    setp.eq.u32 %p1, %t, 0;
    @!%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 96;
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    @%p2 trap;
    mbarrier.complete_tx.shared::cta.b64 [bar], 64;
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    @%p2 trap;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 32;
    """ + wait() + """
    st.global.u32 [%mine], 3;
    """  # fmt: skip
    expect(with_barrier(1, body), np.full(32, 3))


def test_bytes_may_arrive_before_they_are_expected() -> None:
    # The tx-count is negative for a while; an arrival is still pending, so that the phase stays open.
    body = """
    setp.eq.u32 %p1, %t, 0;
    @!%p1 bra WAIT;
    mbarrier.complete_tx.shared::cta.b64 [bar], 48;
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    @%p2 trap;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 48;
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    @%p2 trap;
    mbarrier.arrive.shared.b64 _, [bar];
    """ + wait() + """
    st.global.u32 [%mine], 4;
    """  # fmt: skip
    expect(with_barrier(1, body), np.full(32, 4))


def test_arrive_drop_lowers_the_count_of_later_phases() -> None:
    body = """
    setp.lt.u32 %p1, %t, 20;
    @%p1 bra STAYS;
    mbarrier.arrive_drop.shared.b64 _, [bar];
    st.global.u32 [%mine], 9;
    ret;
    STAYS:
    mov.u32 %r1, 0;
    LOOP:
    mbarrier.arrive.shared.b64 %rd1, [bar];
    """ + wait("%r1") + """
    xor.b32 %r1, %r1, 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 5;
    @%p2 bra LOOP;
    mbarrier.arrive.noComplete.shared.b64 %rd3, [bar], 0x0;
    """  # fmt: skip
    body = body.replace("mov.u32 %r1, 0;", "mov.u32 %r1, 0; mov.u32 %r2, 0;")
    body = body.replace(
        "    mbarrier.arrive.noComplete.shared.b64 %rd3, [bar], 0x0;\n",
        "    st.global.u32 [%mine], %r2;\n",
    )
    expect(with_barrier(32, body), np.where(LANES < 20, 5, 9))


def test_no_complete_takes_part_in_a_phase() -> None:
    body = """
    setp.eq.u32 %p1, %t, 0;
    @!%p1 bra WAIT;
    mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 2;
    mbarrier.pending_count.b64 %r1, %rd1;
    st.global.u32 [%out], %r1;
    mbarrier.arrive.shared.b64 %rd1, [bar];
    """ + wait() + """
    add.u64 %mine, %mine, 4;
    st.global.u32 [%mine], 1;
    """  # fmt: skip
    expect(with_barrier(3, body), [3, *[1] * 32])


def test_remote_arrives_and_expects_in_a_cluster() -> None:
    # Every CTA arrives on the barrier of the next one; each waits on its own.
    body = """
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    mov.u32 %r1, %cluster_ctarank;
    add.u32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 3;
    selp.u32 %r2, 0, %r2, %p1;
    mov.u32 %r3, bar;
    mapa.shared::cluster.u32 %r4, %r3, %r2;
    setp.eq.u32 %p2, %t, 5;
    setp.eq.u32 %p3, %t, 6;
    mapa.shared::cluster.u32 %r5, %r3, %r1;
    @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
    @%p3 mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r4], 16;
    setp.eq.u32 %p4, %t, 9;
    @%p4 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r4], 16;
    """ + wait() + """
    st.global.u32 [%mine], %r1;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    """  # fmt: skip
    expect(with_barrier(2, body), np.repeat([0, 1, 2], 32), grid=3, cluster=3)


def test_a_remote_arrive_on_the_own_barrier_of_a_cluster_of_one() -> None:
    body = """
    mov.u32 %r3, bar;
    mapa.shared::cluster.u32 %r4, %r3, 0;
    mbarrier.arrive.shared::cluster.b64 _, [%r4];
    mov.u64 %rd1, bar;
    cvta.shared.u64 %rd1, %rd1;
    mbarrier.arrive.b64 %rd2, [%rd1];
    """ + wait() + """
    st.global.u32 [%mine], 2;
    """  # fmt: skip
    expect(with_barrier(64, body), np.full(32, 2))


def test_a_single_peek_that_returns_false_goes_on() -> None:
    # Nobody arrives before the peek is over: try_wait must return false some time.
    body = """
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0, 1000;
    @%p1 trap;
    bar.sync 0;
    setp.eq.u32 %p2, %t, 0;
    @%p2 mbarrier.arrive.shared.b64 _, [bar];
    """ + wait() + """
    st.global.u32 [%mine], 6;
    """  # fmt: skip
    expect(with_barrier(1, body), np.full(64, 6), block=64)


def test_a_wait_that_gives_up_after_so_many_tries() -> None:
    body = """
    mov.u32 %r1, 0;
    TRY:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @%p1 trap;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 20;
    @%p2 bra TRY;
    st.global.u32 [%mine], %r1;
    """
    expect(with_barrier(1, body), np.full(32, 20))


def test_inval_and_a_new_life() -> None:
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.arrive.shared.b64 _, [bar];
    """ + wait() + """
    bar.sync 0;
    @%p1 mbarrier.inval.shared.b64 [bar];
    @%p1 st.shared.u64 [bar], 1234;
    bar.sync 0;
    ld.shared.u32 %r1, [bar];
    bar.sync 0;
    @%p1 mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    mbarrier.arrive.shared.b64 _, [bar];
    """ + wait("0", "bar", "AGAIN") + """
    st.global.u32 [%mine], %r1;
    """  # fmt: skip
    expect(with_barrier(1, body), np.full(32, 1234))


def test_a_second_init_without_inval_starts_over() -> None:
    # Triton 3.6 does this on barriers that nobody uses any more.
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 2;
    @%p1 mbarrier.arrive.shared.b64 _, [bar], 2;
    """ + wait() + "st.global.u32 [%mine], 1;"  # fmt: skip
    expect(with_barrier(7, body), np.full(32, 1))


# --- misuse ---------------------------------------------------------------------------------------

MISUSE = [
    ("mbarrier.arrive.shared.b64 _, [bar+8];", "there is no mbarrier at shared offset 0x408 of cta (0,0,0)",
     "mbarrier.init it first (and make the init visible to this thread)"),
    ("mbarrier.inval.shared.b64 [bar];\nmbarrier.arrive.shared.b64 _, [bar];",
     "there is no mbarrier at shared offset 0x400 of cta (0,0,0) after the mbarrier.inval at :29",
     "let all who use it be through before :29: pass a barrier in front of it"),
    ("mbarrier.arrive.shared.b64 _, [bar], 4;", "4 arrivals on mbarrier 0x400, but phase 0 needs only 3 more of 3",
     "initialise the mbarrier with the number of arrivals of each phase, or arrive less often"),
    ("mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n" * 4,
     "1 arrival on mbarrier 0x400, but phase 0 needs only 0 more of 3",
     "before arriving for the next phase, wait until this one is over and its slot is empty, with a parity that flips each "
     "time the ring wraps around; or initialise the mbarrier with the number of arrivals of each phase, or arrive less often"),
    ("mbarrier.arrive.shared.b64 _, [bar], 0;", "an arrive count of 0: expected 1 to 1048575", ""),
    ("mbarrier.init.shared.b64 [bar+8], 0;", "mbarrier count 0 is outside 1..1048575", ""),
    ("mbarrier.init.shared.b64 [bar+12], 1;", "mbarrier address 0x40c is not aligned to 8 bytes", ""),
    ("mbarrier.init.shared.b64 [bar+4096], 1;", "mbarrier address 0x1400 is outside shared memory (1184 bytes)", ""),
    ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;",
     "the tx-count of mbarrier 0x400 is 1048576, outside -1048575..1048575", "expect at most 1 MiB - 1 bytes a phase"),
    ("mbarrier.complete_tx.shared::cta.b64 [bar], 1048576;",
     "the tx-count of mbarrier 0x400 is -1048576, outside -1048575..1048575", "expect at most 1 MiB - 1 bytes a phase"),
    ("mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 3;",
     "mbarrier.arrive.noComplete is the last arrival of phase 0 of mbarrier 0x400",
     "the arrival that completes a phase must not say .noComplete"),
    (".local .b64 own; mov.u64 %rd1, own; cvta.local.u64 %rd1, %rd1;\nmbarrier.arrive.b64 %rd2, [%rd1];",
     "address 0x720000000000 is in local memory, expected shared", ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "what", "hint"), MISUSE)
def test_misuse_is_told_exactly(code: str, what: str, hint: str) -> None:
    text = fault_of(with_barrier(3, code), block=1)
    head, _, rest = text.partition("\n")
    assert head.startswith("cta (0,0,0) warp 0 lane 0: ")
    assert head.removeprefix("cta (0,0,0) warp 0 lane 0: ").endswith(what)
    if hint:
        assert rest.startswith(f"  try: {hint}")


def test_waits_on_the_barrier_of_a_peer_are_refused() -> None:
    body = """
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u64 %rd1, bar;
    cvta.shared.u64 %rd1, %rd1;
    mov.u32 %r2, %cluster_ctarank;
    xor.b32 %r2, %r2, 1;
    mapa.u64 %rd2, %rd1, %r2;
    setp.eq.u32 %p1, %r2, 1;
    @%p1 mbarrier.try_wait.parity.b64 %p2, [%rd2], 0;
    barrier.cluster.arrive; barrier.cluster.wait;
    """
    assert fault_of(with_barrier(1, body), grid=2, cluster=2) == (
        "cta (0,0,0) warp 0: wait on mbarrier 0x400 of another CTA (1,0,0)\n"
        "  try: only arrive on remote mbarriers; wait on the one in your own CTA\n"
        '  (PTX ISA 8.7, "mbarrier.test_wait")'
    )


@pytest.mark.parametrize("what", ["init", "inval"])
def test_a_barrier_with_waiters_is_not_taken_away(what: str) -> None:
    operand = ", 1" if what == "init" else ""
    body = """
    setp.ge.u32 %p1, %t, 32;
    @%p1 bra OTHER;
    """ + wait() + f"""
    ret;
    OTHER:
    mov.u32 %r1, 0;
    LATER: ld.global.u32 %r2, [%out]; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 100; @%p2 bra LATER;
    setp.eq.u32 %p3, %t, 32;
    @%p3 mbarrier.{what}.shared.b64 [bar]{operand};
    """  # fmt: skip
    text = fault_of(with_barrier(1, body), block=64, orders=[IN_ORDER])
    assert text == (
        f"cta (0,0,0) warp 1 lane 0: mbarrier.{what} of mbarrier 0x400 while cta (0,0,0) warp 0 waits on it\n"
        f'  try: let everybody who waits on it pass first\n  (PTX ISA 8.7, "mbarrier.{what}")'
    )


# --- the object against a model -------------------------------------------------------------------


@dataclass
class Model:
    """PTX's description, word for word: counts of the current phase, and what later phases expect."""

    expected: int
    pending: int = 0
    tx: int = 0
    phase: int = 0

    def __post_init__(self) -> None:
        self.pending = self.expected

    def settle(self) -> bool:
        if self.pending or self.tx:
            return False
        self.phase += 1
        self.pending = self.expected
        return True


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(1, 4)),
        st.tuples(st.just("drop"), st.integers(1, 2)),
        st.tuples(st.just("expect"), st.integers(0, 3).map(lambda n: n * 16)),
        st.tuples(st.just("complete"), st.integers(1, 3).map(lambda n: n * 16)),
        st.tuples(st.just("add"), st.integers(1, 2)),
        st.tuples(st.just("far"), st.just(TX_LIMIT)),
    ),
    max_size=40,
)


# (On a loaded machine it may take long to make up lists, and no example is slow by itself.)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(1, 6), OPERATIONS)
def test_the_object_behaves_as_described(count: int, operations: list[tuple[str, int]]) -> None:
    barrier = Mbarrier(None, 0x400, count)  # type: ignore[arg-type]
    model = Model(count)
    for what, amount in operations:
        misuse = False
        completed = expected_completion = False
        try:
            if what in ("arrive", "drop"):
                completed = barrier.arrive(amount, what == "drop")
            elif what == "expect":
                barrier.expect(amount)
            elif what in ("complete", "far"):
                completed = barrier.complete(amount)
            else:
                barrier.add_pending(amount)
        except BarrierMisuse:
            misuse = True
        if what in ("arrive", "drop"):
            assert misuse == (amount > model.pending)
            if misuse:
                return
            model.pending -= amount
            model.expected -= amount if what == "drop" else 0
            expected_completion = model.settle()
        elif what == "expect":
            model.tx += amount
            assert misuse == (abs(model.tx) > TX_LIMIT)
        elif what in ("complete", "far"):
            model.tx -= amount
            assert misuse == (abs(model.tx) > TX_LIMIT)
            if not misuse:
                expected_completion = model.settle()
        else:
            model.pending += amount
        if misuse:
            return
        assert completed == expected_completion
        assert (barrier.pending, barrier.tx, barrier.phase) == (
            model.pending,
            model.tx,
            model.phase,
        )
        # A parity says something about the current phase and the one before it.
        assert barrier.parity_done(model.phase & 1) is False
        assert barrier.parity_done((model.phase + 1) & 1) is True

"""Atomics on shared memory that are loops of compare and swap: which ones, and how long lanes and warps wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.config import load
from tests.hw.timing.kernels import launch

CONFIG = load("h100-sxm")
TURN, WIDE = CONFIG.smem.swap_cycles, CONFIG.smem.swap_64_cycles
GAP, LOOK = CONFIG.smem.swap_gap_cycles, CONFIG.smem.swap_look_cycles
REMOTE = CONFIG.dsmem.swap_cycles
WORDS = ".shared .align 16 .b8 words[1024];"


def took(opcode: str, *, shift: int = 3, mask: int = 0, lanes: int = 32, warps: int = 1) -> float:
    """Return the cycles of a CTA for an atomic of each of some lanes of its warps at words by their number."""
    register = "%rd5" if opcode.endswith("64") else "%r5"
    result = f"{register}," if opcode.startswith("atom") else ""
    body = f"""
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; and.b32 %r8,%r9,31; mov.u32 %r1,words; mov.u32 %r5,1; mov.u64 %rd5,1;
    mad.lo.u32 %r2,%r9,8,%r1; setp.lt.u32 %p2,%r9,32; @%p2 st.shared.v2.b32 [%r2],{{0,0}};
    and.b32 %r3,%r8,{mask}; shl.b32 %r3,%r3,{shift}; add.u32 %r1,%r1,%r3; cvt.u64.u32 %rd6,%r1; cvta.shared.u64 %rd6,%rd6;
    setp.ge.u32 %p1,%r8,{lanes}; bar.sync 0;
    mov.u64 %rd10,%clock64;
    @%p1 bra DONE;
    {opcode} {result}[{"%r1" if "shared" in opcode else "%rd6"}],{register};
    DONE: bar.sync 0;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10;
    mul.wide.u32 %rd2,%r9,8; add.u64 %rd2,%rd0,%rd2; st.global.u64 [%rd2],%rd12; ret;"""
    chip = hs.Gpu("h100-sxm")
    out = chip.array(np.zeros(32 * warps, np.uint64))
    launch(body, gpu=chip, block=32 * warps, args=[out], declarations=WORDS)
    return float(out.numpy().max())


BEFORE = took("red.shared.add.u32", mask=31)
"""What such a kernel takes with an atomic that is one machine instruction."""


def more(opcode: str, **options: int) -> float:
    return took(opcode, **options) - BEFORE


@pytest.mark.parametrize(
    ("opcode", "turn"),
    [
        ("red.shared.add.f32", TURN), ("atom.shared::cta.add.f32", TURN), ("red.shared.add.noftz.f16x2", TURN),
        ("red.shared.add.noftz.bf16x2", TURN), ("red.shared.add.u64", WIDE), ("red.shared.max.s64", WIDE),
        ("atom.shared.and.b64", WIDE), ("red.shared.add.f64", WIDE),
    ],
)  # fmt: skip
def test_a_turn_for_each_lane_on_a_word(opcode: str, turn: float) -> None:
    assert more(opcode, mask=31) == pytest.approx(turn, abs=15)
    assert more(opcode, mask=15) == pytest.approx(2 * turn, abs=15)
    assert more(opcode) == pytest.approx(32 * turn, abs=15)


@pytest.mark.parametrize(
    "opcode",
    ["red.shared.add.u32", "red.shared.max.s32", "red.shared.and.b32", "red.shared.inc.u32"],
)
def test_integers_of_32_bits_are_done_at_once(opcode: str) -> None:
    assert more(opcode) < TURN / 2


def test_exchanges_of_64_bits_are_done_at_once() -> None:
    assert more("atom.shared.exch.b64") < WIDE / 2


def test_warps_follow_each_other_sooner_than_lanes() -> None:
    one = more("red.shared.add.f32", lanes=1)
    assert more("red.shared.add.f32", lanes=1, warps=8) - one == pytest.approx(7 * GAP, abs=30)
    assert GAP < TURN


def test_an_address_whose_place_is_not_known_is_looked_at_first() -> None:
    own = more("red.shared.add.f32", mask=31)
    assert more("red.add.f32", mask=31) == pytest.approx(own + LOOK, abs=15)


CLUSTER = """
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; mov.u32 %r1,words; mov.u32 %r5,1; mov.u64 %rd5,1;
    mad.lo.u32 %r2,%r9,8,%r1; st.shared.v2.b32 [%r2],{{0,0}};
    mov.u32 %r7,%cluster_ctarank; mapa.shared::cluster.u32 %r2,%r1,0;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u64 %rd10,%clock64;
    setp.lt.u32 %p1,%r7,{first}; @%p1 bra DONE;
    red.shared::cluster.{what} [%r2],{register};
    DONE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10;
    mad.lo.u32 %r9,%r7,32,%r9; mul.wide.u32 %rd2,%r9,8; add.u64 %rd2,%rd0,%rd2; st.global.u64 [%rd2],%rd12; ret;"""


def in_cluster(what: str, first: int, ctas: int = 4) -> float:
    """Return the cycles until all CTAs from the one of rank `first` on have added to a word of the first one."""
    register = "%rd5" if what.endswith("64") else "%r5"
    chip = hs.Gpu("h100-sxm")
    out = chip.array(np.zeros(32 * ctas, np.uint64))
    body = CLUSTER.format(what=what, first=first, register=register)
    launch(
        body, gpu=chip, grid=ctas, cluster=ctas, block=32, args=[out], declarations=WORDS
    )  # fmt: skip
    return float(out.numpy().max())


def test_in_another_cta_a_turn_is_two_trips() -> None:
    nobody = in_cluster("add.f32", first=4)
    one = in_cluster("add.f32", first=3)
    assert one - nobody == pytest.approx(32 * REMOTE + LOOK, rel=0.02)
    # Those of other CTAs wait for the same word.
    assert in_cluster("add.f32", first=1) - one == pytest.approx(2 * 32 * REMOTE, rel=0.02)


def test_integers_of_other_ctas_are_added_where_they_are() -> None:
    nobody = in_cluster("add.u32", first=4)
    for what in ("add.u32", "add.u64"):
        assert in_cluster(what, first=1) - nobody < REMOTE

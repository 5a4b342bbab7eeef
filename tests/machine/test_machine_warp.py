"""Collectives of a warp: partial masks, lanes in different strands, warps that part and fuse."""

from __future__ import annotations

import numpy as np
import pytest

from hopsim.errors import ValuesNeeded
from hopsim.events import Observer, StrandEvent
from hopsim.isa.program.kernel import loads
from tests.machine.programs import HEAD, UNTIMED, build, expect, fault_of, gpu, launch

LANES = np.arange(32)


def test_shfl_in_all_modes_and_segments() -> None:
    for mode, c, source in (
        ("up", 0x0000, lambda n: n - 3),
        ("down", 0x001F, lambda n: n + 3),
        ("bfly", 0x001F, lambda n: n ^ 3),
        ("idx", 0x001F, lambda n: 3),
        ("up", 0x1800, lambda n: n - 3),
        ("down", 0x1807, lambda n: n + 3),
        ("bfly", 0x1803, lambda n: n ^ 3),
        ("idx", 0x1807, lambda n: (n & 0x18) | 3),
    ):
        segment, clamp = c >> 8, c & 31
        expected = []
        for lane in range(32):
            low = lane & segment
            limit = low | (clamp & ~segment)
            j = source(lane)
            inside = j >= limit if mode == "up" else j <= limit
            j = j if inside else lane
            expected.append((j * 11 & 0xFFFF) | inside << 16)
        body = f"""
        mul.lo.u32 %r1, %t, 11;
        shfl.sync.{mode}.b32 %r2|%p1, %r1, 3, {c}, -1;
        selp.u32 %r3, 0x10000, 0, %p1;
        or.b32 %r2, %r2, %r3;
        st.global.u32 [%mine], %r2;
        """
        expect(body, expected, orders=UNTIMED[:2])


def test_shfl_of_a_uniform_value_still_tells_what_is_out_of_range() -> None:
    body = """
    mov.u32 %r1, 9;
    shfl.sync.idx.b32 %r2|%p1, %r1, 5, 3, -1;
    selp.u32 %r3, 100, 0, %p1;
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%mine], %r2;
    """
    expect(body, np.full(32, 9))


def test_halves_of_a_warp_exchange_in_different_branches() -> None:
    body = """
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LOW;
    shfl.sync.idx.b32 %r2, %t, 20, 31, 0xffff0000;
    bra DONE;
    LOW:
    shfl.sync.bfly.b32 %r2, %t, 1, 31, 0x0000ffff;
    DONE:
    st.global.u32 [%mine], %r2;
    """
    expect(body, np.where(LANES < 16, LANES ^ 1, 20))


def test_lanes_from_different_branches_gather_at_a_collective() -> None:
    # The lanes part, and meet again at the label; the mask is full, so all must be there.
    body = """
    and.b32 %r1, %t, 3;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, 1;
    @%p1 bra ZERO;
    setp.eq.u32 %p2, %r1, 1;
    @%p2 bra ONE;
    mov.u32 %r2, 50;
    bra MEET;
    ZERO: mov.u32 %r2, 7;
    bra MEET;
    ONE: mov.u32 %r2, 30;
    MEET:
    redux.sync.add.u32 %r3, %r2, -1;
    st.global.u32 [%mine], %r3;
    """
    expect(body, np.full(32, 8 * 7 + 8 * 30 + 16 * 50))


def test_a_collective_inside_a_loop_with_lane_dependent_trip_counts() -> None:
    # Lane n makes n % 4 + 1 rounds; in round k the lanes still in the loop vote with their own mask.
    body = """
    and.b32 %r1, %t, 3;
    mov.u32 %r2, 0;
    mov.u32 %r5, 0;
    LOOP:
    mov.u32 %r3, 0xffffffff;
    setp.eq.u32 %p1, %r2, 1;  @%p1 mov.u32 %r3, 0xeeeeeeee;
    setp.eq.u32 %p1, %r2, 2;  @%p1 mov.u32 %r3, 0xcccccccc;
    setp.eq.u32 %p1, %r2, 3;  @%p1 mov.u32 %r3, 0x88888888;
    setp.gt.u32 %p2, %t, 15;
    vote.sync.ballot.b32 %r4, %p2, %r3;
    add.u32 %r5, %r5, %r4;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p3, %r2, %r1;
    @%p3 bra LOOP;
    st.global.u32 [%mine], %r5;
    """
    rounds = [0xFFFF0000, 0xEEEE0000, 0xCCCC0000, 0x88880000]
    expect(body, [sum(rounds[: (lane & 3) + 1]) & 0xFFFFFFFF for lane in range(32)])


@pytest.mark.parametrize("mode", ["all", "any", "uni"])
def test_votes(mode: str) -> None:
    body = f"""
    setp.lt.u32 %p1, %t, 40;
    setp.lt.u32 %p2, %t, 3;
    setp.gt.u32 %p3, %t, 40;
    vote.sync.{mode}.pred %p4, %p1, -1;
    vote.sync.{mode}.pred %p5, %p2, -1;
    vote.sync.{mode}.pred %p6, %p3, -1;
    selp.u32 %r1, 1, 0, %p4;
    selp.u32 %r2, 2, 0, %p5;
    selp.u32 %r3, 4, 0, %p6;
    or.b32 %r1, %r1, %r2;
    or.b32 %r1, %r1, %r3;
    st.global.u32 [%mine], %r1;
    """
    answer = {"all": 1, "any": 3, "uni": 5}[mode]
    expect(body, np.full(32, answer))


def test_match_and_the_groups_it_makes() -> None:
    # match.any gives each lane the mask of its own group; the groups then reduce by themselves.
    body = """
    rem.u32 %r1, %t, 5;
    match.any.sync.b32 %r2, %r1, -1;
    redux.sync.add.u32 %r3, %t, %r2;
    elect.sync %r4|%p1, %r2;
    selp.u32 %r5, 1000, 0, %p1;
    add.u32 %r3, %r3, %r5;
    vote.sync.ballot.b32 %r6, %p1, %r2;
    shfl.sync.idx.b32 %r7, %r6, %t, 31, %r2;
    popc.b32 %r6, %r6;
    mad.lo.u32 %r3, %r6, 100000, %r3;
    mad.lo.u32 %r3, %r4, 1000000, %r3;
    st.global.u32 [%mine], %r3;
    """
    group = LANES % 5
    total = np.array([LANES[group == g].sum() for g in group])
    expect(body, total + np.where(LANES < 5, 1000, 0) + 100000 + group * 1000000)


def test_match_all() -> None:
    body = """
    mov.u32 %r1, 5;
    match.all.sync.b32 %r2|%p1, %r1, -1;
    match.all.sync.b32 %r3|%p2, %t, -1;
    selp.u32 %r4, 1, 0, %p1;
    selp.u32 %r5, 2, 0, %p2;
    add.u32 %r4, %r4, %r5;
    and.b32 %r2, %r2, 0xf0;
    add.u32 %r4, %r4, %r2;
    add.u32 %r4, %r4, %r3;
    st.global.u32 [%mine], %r4;
    """
    expect(body, np.full(32, 0xF0 + 1))


def test_redux_folds_the_lanes_of_the_mask() -> None:
    values = ((LANES * 2654435761) ^ 0x9E3779B9) & 0xFFFFFFFF
    signed = values.astype(np.uint32).view(np.int32)
    chosen = slice(4, 12)
    results = {
        "add.u32": int(values[chosen].sum()) & 0xFFFFFFFF,
        "min.u32": int(values[chosen].min()),
        "max.s32": int(signed[chosen].max()) & 0xFFFFFFFF,
        "min.s32": int(signed[chosen].min()) & 0xFFFFFFFF,
        "and.b32": int(np.bitwise_and.reduce(values[chosen])),
        "or.b32": int(np.bitwise_or.reduce(values[chosen])),
        "xor.b32": int(np.bitwise_xor.reduce(values[chosen])),
    }
    for op, result in results.items():
        body = f"""
        mul.lo.u32 %r1, %t, 2654435761;
        xor.b32 %r1, %r1, 0x9e3779b9;
        setp.ge.u32 %p1, %t, 4;
        setp.lt.u32 %p2, %t, 12;
        and.pred %p1, %p1, %p2;
        @!%p1 bra DONE;
        redux.sync.{op} %r2, %r1, 0xff0;
        st.global.u32 [%mine], %r2;
        DONE:
        """
        expect(body, np.where((LANES >= 4) & (LANES < 12), result, 0), orders=UNTIMED[:3])


def test_elect_takes_one_lane_of_the_mask() -> None:
    body = """
    setp.ge.u32 %p1, %t, 7;
    @!%p1 bra DONE;
    elect.sync %r1|%p2, 0xffffff80;
    @%p2 st.global.u32 [%mine], 1;
    mul.lo.u32 %r1, %r1, 10;
    @!%p2 st.global.u32 [%mine], %r1;
    DONE:
    """
    expect(body, np.where(LANES == 7, 1, np.where(LANES > 7, 70, 0)))


def test_bar_warp_sync_lets_lanes_meet_from_different_places() -> None:
    body = """
    .shared .align 4 .b32 box[32];
    mov.u32 %r1, box;
    mad.lo.u32 %r1, %t, 4, %r1;
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LOW;
    add.u32 %r2, %t, 100;
    st.shared.u32 [%r1], %r2;
    bar.warp.sync -1;
    ld.shared.u32 %r3, [%r1+-64];
    bra DONE;
    LOW:
    add.u32 %r2, %t, 200;
    st.shared.u32 [%r1], %r2;
    bar.warp.sync -1;
    ld.shared.u32 %r3, [%r1+64];
    DONE:
    st.global.u32 [%mine], %r3;
    """
    expect(body, np.where(LANES < 16, LANES + 116, LANES + 184))


def test_bar_warp_sync_of_part_of_a_warp() -> None:
    body = """
    .shared .align 4 .b32 box[8];
    setp.ge.u32 %p1, %t, 8;
    @%p1 bra DONE;
    setp.ge.u32 %p2, %t, 4;
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    @%p2 bra HIGH;
    st.shared.u32 [%r2], %t;
    HIGH:
    @%p2 st.shared.u32 [%r2], 77;
    bar.warp.sync 0xff;
    xor.b32 %r3, %t, 7;
    mad.lo.u32 %r3, %r3, 4, %r1;
    ld.shared.u32 %r4, [%r3];
    add.u32 %r4, %r4, 1;
    st.global.u32 [%mine], %r4;
    DONE:
    """
    expect(body, np.where(LANES < 4, 78, np.where(LANES < 8, (LANES ^ 7) + 1, 0)))


COLLECTIVES = {
    "shfl.sync.bfly.b32 %r2, {value}, 16, 31, -1;": np.where(LANES < 16, LANES + 116, 7),
    "vote.sync.ballot.b32 %r2, {odd}, -1;": np.full(32, 0xAAAA0000),
    "match.any.sync.b32 %r2, {value}, -1;": np.where(LANES < 16, 0xFFFF, 1 << LANES),
    "match.any.sync.b64 %r2, {long}, -1;": np.where(LANES < 16, 0xFFFF, 1 << LANES),
    "redux.sync.max.u32 %r2, {value}, -1;": np.full(32, 131),
    "elect.sync %r2|%p9, -1;\n@%p9 mov.u32 %r2, 50;": np.where(LANES == 0, 50, 0),
}


@pytest.mark.parametrize("instruction", COLLECTIVES, ids=lambda text: text.split()[0])
def test_lanes_exchange_from_two_places(instruction: str) -> None:
    # Lanes 0-7 and 8-15 come to the first place one after the other; what follows tells the places apart.
    low = instruction.format(value="7", odd="%p7", long="%rd7")
    high = instruction.format(value="%r6", odd="%p6", long="%rd6")
    body = f"""
    add.u32 %r6, %t, 100;
    and.b32 %r5, %t, 1;
    setp.eq.u32 %p6, %r5, 1;
    setp.ne.u32 %p7, %t, %t;
    cvt.u64.u32 %rd6, %r6;
    mov.b64 %rd7, 0x700000007;
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LOW;
    {high}
    add.u32 %r2, %r2, 1000;
    bra DONE;
    LOW:
    setp.lt.u32 %p2, %t, 8;
    @%p2 ld.global.u32 %r3, [%mine];
    {low}
    add.u32 %r2, %r2, 2000;
    DONE:
    st.global.u32 [%mine], %r2;
    """
    expect(body, COLLECTIVES[instruction] + np.where(LANES < 16, 2000, 1000))


def test_lanes_with_other_qualifiers_do_not_meet() -> None:
    body = """
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LOW;
    shfl.sync.idx.b32 %r2, %t, 0, 31, -1;
    bra DONE;
    LOW:
    shfl.sync.up.b32 %r2, %t, 1, 0, -1;
    DONE:
    """
    for order in UNTIMED:
        story = launch(body, order)[0].deadlock
        assert story is not None
        assert [(wait.kind, wait.lanes) for wait in story.waiting] == [
            ("collective", 0xFFFF),
            ("collective", 0xFFFF0000),
        ]


def test_data_from_another_place_needs_values() -> None:
    body = """
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LOW;
    ld.global.u32 %r3, [%mine];
    shfl.sync.idx.b32 %r2, %r3, 0, 31, -1;
    bra DONE;
    LOW:
    shfl.sync.idx.b32 %r2, %t, 0, 31, -1;
    DONE:
    """
    with pytest.raises(ValuesNeeded, match="depends on data"):
        launch(body, values=False, timing=True)


def test_lanes_that_exit_are_not_waited_for() -> None:
    # Lanes 0-7 wait at the vote for lanes 8-15, which leave instead: the rest of the mask is enough.
    body = """
    setp.ge.u32 %p1, %t, 16;
    @%p1 bra HIGH;
    setp.ge.u32 %p2, %t, 8;
    @%p2 exit;
    HIGH:
    vote.sync.ballot.b32 %r1, 1, -1;
    st.global.u32 [%mine], %r1;
    """
    expect(body, np.where((LANES < 8) | (LANES >= 16), 0xFFFF00FF, 0))


def test_lanes_of_two_masks_do_not_mix_at_one_instruction() -> None:
    # Odd and even lanes arrive at the same redux at different times, each with their own mask.
    body = """
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p1, %r1, 1;
    mov.u32 %r2, 0x55555555;
    @%p1 mov.u32 %r2, 0xaaaaaaaa;
    and.b32 %r6, %t, 7;
    mov.u32 %r7, 0;
    SKEW:
    add.u32 %r7, %r7, 1;
    ld.global.u32 %r9, [%mine];
    setp.lt.u32 %p3, %r7, %r6;
    @%p3 bra SKEW;
    redux.sync.max.u32 %r3, %t, %r2;
    st.global.u32 [%mine], %r3;
    """
    expect(body, np.where(LANES & 1, 31, 30))


def test_lanes_outside_the_mask_are_a_fault() -> None:
    assert fault_of("shfl.sync.idx.b32 %r1, %t, 0, 31, 0xffff;") == (
        "cta (0,0,0) warp 0: shfl.sync: executed by lanes 0xffff0000, which are not in its mask 0xffff\n"
        "  try: each thread that executes it must be named in its own mask"
    )


def test_activemask_of_parted_lanes() -> None:
    body = """
    setp.lt.u32 %p1, %t, 9;
    @%p1 bra LOW;
    activemask.b32 %r1;
    bra DONE;
    LOW:
    activemask.b32 %r1;
    DONE:
    st.global.u32 [%mine], %r1;
    """
    expect(body, np.where(LANES < 9, 0x1FF, 0xFFFFFE00))


def test_lanemasks_and_ids() -> None:
    body = """
    mov.u32 %r1, %lanemask_lt;
    mov.u32 %r2, %lanemask_ge;
    add.u32 %r1, %r1, %r2;
    mov.u32 %r3, %laneid;
    mov.u32 %r4, %warpid;
    mad.lo.u32 %r3, %r4, 32, %r3;
    sub.u32 %r3, %t, %r3;
    add.u32 %r1, %r1, %r3;
    mov.u32 %r5, %lanemask_eq;
    mov.u32 %r6, %lanemask_le;
    mov.u32 %r7, %lanemask_gt;
    add.u32 %r6, %r6, %r7;
    sub.u32 %r6, %r6, %r1;
    add.u32 %r5, %r5, %r6;
    st.global.u32 [%mine], %r5;
    """
    expect(body, np.tile(1 << LANES, 2), block=64)


def test_three_dimensions_of_grid_and_block() -> None:
    body = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mad.lo.u32 %r2, %r3, %r5, %r2;
    mad.lo.u32 %r1, %r2, %r4, %r1;
    mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %ctaid.z;
    mov.u32 %r9, %nctaid.x; mov.u32 %r10, %nctaid.y;
    mad.lo.u32 %r7, %r8, %r10, %r7;
    mad.lo.u32 %r6, %r7, %r9, %r6;
    mad.lo.u32 %r1, %r6, 24, %r1;
    mul.wide.u32 %rd1, %r1, 4;
    add.u64 %rd1, %rd1, %out;
    mad.lo.u32 %r2, %r3, 100, %r1;
    st.global.u32 [%rd1], %r2;
    """
    n = np.arange(2 * 2 * 3 * 24)
    expect(body, n + n % 24 // 6 * 100, grid=(2, 3, 2), block=(3, 2, 4))


@pytest.mark.parametrize("schedule", ["timed", "in-order", "seeded", "adversarial"])
def test_an_empty_kernel_ends(schedule: str) -> None:
    empty = loads(f"{HEAD}\n.visible .entry empty()\n{{\n}}\n")["empty"]
    assert gpu().launch(empty, 2, 160, schedule=schedule).verdict == "clean"


@pytest.mark.parametrize(
    ("body", "fragments"),
    [
        ("setp.gt.u32 %p1, %t, 63;\n@%p1 exit; // first\nst.global.u32 [%mine], %t;", ["ret;", "first"]),
        ("setp.gt.u32 %p1, %t, 7;\n@%p1 ret; // first\nst.global.u32 [%mine], %t;", ["ret;", "first"]),
        ("@!%p1 bra OUT;\nOUT:", ["ret;"]),
    ],
)  # fmt: skip
def test_threads_exit_at_a_line(body: str, fragments: list[str]) -> None:
    class Exits(Observer):
        def __init__(self) -> None:
            self.found: dict[int, int] = {}

        def strand(self, event: StrandEvent) -> None:
            if event.what == "exited":
                self.found[event.line] = self.found.get(event.line, 0) + len(event.agent[1])

    kernel = build("setp.eq.u32 %p1, %t, %t;\n" + body)
    seen = Exits()
    launch(kernel, out=128, block=128, observers=[seen])
    lines = [n for n, line in enumerate(kernel.module.lines, 1) for f in fragments if f in line]
    assert sum(seen.found.values()) == 128
    assert set(seen.found) <= set(lines)
    assert len(seen.found) == len(fragments)

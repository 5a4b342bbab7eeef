"""What an SM uses for the first time: code, jumps, parameters, the first fence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.config import HardwareConfig, load
from hopsim.hw.timing.costs import ADDRESSES, CostTable, SegmentCost
from hopsim.hw.timing.first_touch import FirstTouch
from hopsim.isa.machine_code import INSTRUCTION_BYTES
from tests.hw.timing.kernels import kernel

CONFIG = load("h100-sxm")
ISSUE, FENCE = CONFIG.issue, CONFIG.fence
PARAMS = ".param .u64 out, .param .align 64 .b8 far[256], .param .u32 last"
LINE = ISSUE.constant_line_bytes
LOOP = "AGAIN: add.u32 %r1,%r1,1; setp.lt.u32 %p1,%r1,8; @%p1 bra AGAIN; ret;"


def costs_of(body: str, params: str = ".param .u64 out") -> list[SegmentCost]:
    made = kernel(body, params)
    offsets = {one.name: one.offset for one in made.params}
    return CostTable(CONFIG, made.program(True), 32, offsets).segments


def touch(costs: list[SegmentCost], config: HardwareConfig = CONFIG) -> FirstTouch:
    return FirstTouch(config, costs, sm_count=2)


def fetch(costs: list[SegmentCost]) -> float:
    """Return the cycles that code takes on its way."""
    return sum(cost.instructions for cost in costs) * ISSUE.fetch_interval_cycles


def test_code_comes_once_to_each_sm() -> None:
    costs = costs_of(LOOP)
    unit = touch(costs)
    every = range(len(costs))
    for sm in range(2):
        assert unit.first(sm, every) == pytest.approx(fetch(costs))
        assert unit.first(sm, every) == 0.0


def far(bytes_before: int) -> tuple[FirstTouch, list[SegmentCost]]:
    """Return a program of two blocks, the second one so far from the begin."""
    before = "fma.rn.f32 %f1,%f1,%f1,%f1;" * (bytes_before // INSTRUCTION_BYTES)
    costs = costs_of(f"@%p1 bra OVER; {before} OVER: add.u32 %r2,%r2,1; ret;")
    return touch(costs), costs


@pytest.mark.parametrize(("gap", "share"), [(12, None), (32, None), (100, 1.0), (500, 1.0)])
def test_a_jump_waits_no_longer_than_for_code_that_is_near(gap: int, share: float | None) -> None:
    unit, costs = far(gap * INSTRUCTION_BYTES)
    assert unit.first(0, [0]) == pytest.approx(fetch(costs[:1]))
    jumped = unit.first(0, [2]) - fetch(costs[2:3])
    expected = gap * ISSUE.jump_interval_cycles if share is None else ISSUE.jump_latency_cycles
    assert jumped == pytest.approx(expected)


def test_code_far_from_the_begin_comes_in_chunks() -> None:
    """Recorded on an H200: of the jumps to the same 16 KiB the first takes hundreds of cycles."""
    ahead, chunk = ISSUE.launched_code_bytes, ISSUE.code_chunk_bytes
    for place, chunks in ((ahead // 2, 0), (ahead + chunk // 2, 1), (ahead + 5 * chunk, 1)):
        unit, costs = far(place)
        unit.first(0, [0])
        waits = ISSUE.jump_latency_cycles + chunks * ISSUE.code_chunk_latency_cycles
        assert unit.first(0, [2]) - fetch(costs[2:3]) == pytest.approx(waits)
    # What is run through in order comes in time.
    unit, costs = far(ahead + 5 * chunk)
    assert unit.first(0, range(len(costs))) == pytest.approx(fetch(costs))


def test_code_comes_slower_to_all_sms_at_once() -> None:
    costs = costs_of(LOOP)
    alone, all_at_once = (FirstTouch(CONFIG, costs, 2, busy).first(0, [0]) for busy in (0.0, 1.0))
    assert all_at_once / alone == pytest.approx(
        ISSUE.fetch_interval_all_cycles / ISSUE.fetch_interval_cycles
    )
    half = FirstTouch(CONFIG, costs, 2, 0.5).first(0, [0])
    assert half == pytest.approx((alone + all_at_once) / 2)


def test_a_jump_over_code_that_nobody_has_waits_for_it() -> None:
    costs = costs_of(
        "@%p1 bra OVER; add.u32 %r1,%r1,1; bra LAST; OVER: add.u32 %r2,%r2,1; LAST: ret;"
    )
    unit = touch(costs)
    assert unit.first(0, [0]) == pytest.approx(fetch(costs[:1]))
    jumped = unit.first(0, [2])
    over = costs[1].instructions * ISSUE.jump_interval_cycles
    assert jumped == pytest.approx(fetch(costs[2:3]) + over)
    # What lies before it came later: no jump leads there.
    assert unit.first(0, [1]) == pytest.approx(fetch(costs[1:2]))
    assert unit.first(0, [0, 1, 2]) == 0.0


def test_a_segment_knows_the_lines_of_its_parameters() -> None:
    body = """
    ld.param.u64 %rd0,[out]; ld.param.u32 %r0,[far]; ld.param.u32 %r1,[far+60]; ld.param.u32 %r2,[far+64];
    ld.param.u32 %r3,[last]; add.u32 %r4,%r0,%r1; add.u32 %r5,%r2,%r3; add.u64 %rd1,%rd0,8; ret;"""
    (found,) = {cost.parameters for cost in costs_of(body, PARAMS) if cost.parameters}
    # `out` has the first line, `far` begins in the second.
    assert found == {0, 1, 2, (LINE + 256) // LINE}
    (address,) = {
        cost.parameters for cost in costs_of("mov.b64 %rd0,far; ret;", PARAMS) if cost.parameters
    }
    assert address == {ADDRESSES}


def test_a_line_of_parameters_comes_once_to_each_sm() -> None:
    costs = costs_of(
        "ld.param.u32 %r0,[far]; ld.param.u32 %r1,[far+128]; add.u32 %r2,%r0,%r1; ret;", PARAMS
    )
    unit = touch(costs)
    for sm in range(2):
        expected = fetch(costs) + 2 * ISSUE.constant_latency_cycles
        assert unit.first(sm, range(len(costs))) == pytest.approx(expected)
    assert unit.first(1, range(len(costs))) == 0.0


def test_another_segment_reads_lines_that_are_there() -> None:
    body = """
        ld.param.u32 %r0,[far]; add.u32 %r2,%r0,1; setp.eq.u32 %p0,%r2,7; @%p0 bra NEXT; bar.sync 0;
        NEXT: ld.param.u32 %r1,[far+{}]; add.u32 %r3,%r1,1; ret;"""
    for offset, more in ((4, 0.0), (LINE, ISSUE.constant_latency_cycles)):
        costs = costs_of(body.format(offset), PARAMS)
        unit = touch(costs)
        total = sum(unit.first(0, [number]) for number in range(len(costs)))
        assert total == pytest.approx(fetch(costs) + ISSUE.constant_latency_cycles + more)


@pytest.mark.parametrize(
    ("fence", "reaches"),
    [
        ("fence.acq_rel.cluster;", True), ("fence.acq_rel.gpu;", True), ("fence.proxy.async;", True),
        ("fence.acq_rel.cta;", False), ("fence.proxy.async.shared::cta;", False),
        ("barrier.cluster.arrive.relaxed.aligned;", False),
    ],
)  # fmt: skip
def test_the_first_fence_beyond_the_cta_takes_longer(fence: str, reaches: bool) -> None:
    costs = costs_of(f"{fence} {fence} ret;")
    unit = touch(costs)
    more = FENCE.first_cycles if reaches else 0
    assert unit.first(0, range(len(costs))) == pytest.approx(fetch(costs) + more)
    assert any(cost.fences for cost in costs) == reaches


def test_fences_of_the_other_kind_are_another_first() -> None:
    costs = costs_of(
        "fence.proxy.async; fence.acq_rel.gpu; fence.proxy.async; fence.acq_rel.cluster; ret;"
    )
    assert touch(costs).first(0, range(len(costs))) == pytest.approx(
        fetch(costs) + 2 * FENCE.first_cycles
    )


SLOWER = {
    "fetch": ("issue", {"fetch_interval_cycles": 9.0}), "jump": ("issue", {"jump_latency_cycles": 900}),
    "passing": ("issue", {"jump_interval_cycles": 9.0}), "chunks": ("issue", {"launched_code_bytes": 64}),
    "constants": ("issue", {"constant_latency_cycles": 900}), "fences": ("fence", {"first_cycles": 900}),
}  # fmt: skip
PROGRAM = f"""
    ld.param.u64 %rd0,[out]; add.u64 %rd1,%rd0,8; setp.eq.u32 %p0,%r0,1; @%p0 bra OVER; fence.acq_rel.gpu; ld.param.u32 %r1,[last]; add.u32 %r4,%r1,1;
    OVER: fence.proxy.async; ld.param.u32 %r2,[far]; add.u32 %r5,%r2,%r2; {LOOP}"""


@pytest.mark.parametrize("change", SLOWER)
@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 100)), max_size=20))
def test_slower_first_uses_never_help(change: str, uses: list[tuple[int, int]]) -> None:
    group, values = SLOWER[change]
    costs = costs_of(PROGRAM, PARAMS)
    part = getattr(CONFIG, group).model_copy(update=values)
    usual, slower = touch(costs), touch(costs, CONFIG.model_copy(update={group: part}))
    for sm, number in uses:
        numbers = [number % len(costs)]
        first = usual.first(sm, numbers)
        assert 0.0 <= first <= slower.first(sm, numbers)
        assert usual.first(sm, numbers) == 0.0


@pytest.mark.parametrize("predicate", [False, np.zeros(32, np.bool_)], ids=["one", "a lane"])
def test_who_passes_a_fence_by_does_not_begin_it(predicate: Any) -> None:
    """A fence by a predicate is the first for the warps of the thread that executes it."""
    costs = costs_of("setp.eq.u32 %p0,%r0,0; @%p0 fence.proxy.async; ret;")
    (fence,) = (number for number, cost in enumerate(costs) if cost.fences)
    guard = costs[fence].guard
    assert guard is not None
    registers: list[Any] = [0] * (guard[0] + 1)
    unit = touch(costs)
    every = range(len(costs))
    registers[guard[0]] = predicate
    assert unit.passed(every, registers) == [fence]
    assert unit.first(0, every, [fence]) == pytest.approx(fetch(costs))
    registers[guard[0]] = True
    assert unit.passed(every, registers) == []
    assert unit.first(0, every) == FENCE.first_cycles
    assert unit.first(0, every) == 0.0

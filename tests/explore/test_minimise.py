"""Making a schedule small: delta debugging by itself, and recorded runs that are repeated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.explore.case import Arguments, Device
from hopsim.explore.decisions import Held, chained
from hopsim.explore.examine import examine
from hopsim.explore.minimise import minimise, smallest
from hopsim.explore.sweep import ADVERSARIAL, IN_ORDER, Hardware, Order, orders, plan_of, run, sweep
from hopsim.isa.program.kernel import Kernel, loads

RACE = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %t, %v;
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 32;
    @%p st.global.b32 [%out], 7;
    setp.eq.u32 %p, %t, 0;
    @%p ld.global.b32 %v, [%out];
    @%p st.global.b32 [%out+4], %v;
    ret;
}
"""
HARDWARE = Hardware()


@dataclass(frozen=True)
class RaceCase:
    grid: int = 1
    block: int = 64
    cluster: None = None
    shared_bytes: int = 0

    def kernel(self) -> Kernel:
        return loads(RACE)["k"]

    def arguments(self, gpu: Device) -> Arguments:
        out = gpu.array(np.zeros(2, np.uint32))
        return Arguments([out], {"out": out})


@given(st.sets(st.integers(0, 60), min_size=1, max_size=5), st.integers(61, 90))
def test_exactly_the_needed_items_remain(needed: set[int], count: int) -> None:
    kept, is_minimal = smallest(range(count), lambda chosen: needed <= set(chosen), 5000)
    assert (set(kept), is_minimal) == (needed, True)


def test_an_end_of_tries_is_told() -> None:
    kept, is_minimal = smallest(range(64), lambda chosen: {3, 60} <= set(chosen), 4)
    assert {3, 60} <= set(kept)
    assert not is_minimal


def test_nothing_is_kept_when_nothing_is_needed() -> None:
    assert smallest(range(9), lambda chosen: True) == ([], True)


@pytest.mark.parametrize("order", [IN_ORDER, Order("seeded", 3), ADVERSARIAL], ids=str)
def test_all_holds_together_repeat_a_run(order: Order) -> None:
    case = RaceCase()
    first = run(case, case.kernel(), plan_of(order), order, HARDWARE)
    again = run(case, case.kernel(), Held(chained(first.turns)), order, HARDWARE)
    assert again.ending.bits == first.ending.bits
    assert [p for turn in again.turns for p in turn.points] == [
        p for turn in first.turns for p in turn.points
    ]


def test_one_decision_explains_a_race() -> None:
    case = RaceCase()
    kernel = case.kernel()
    baseline = run(case, kernel, plan_of(IN_ORDER), IN_ORDER, HARDWARE).ending
    late = [one.order for one in sweep(case, orders(16), HARDWARE) if one.differs(baseline)]
    assert late
    found = minimise(case, kernel, late[0], baseline, HARDWARE)
    assert found.is_minimal
    ((held, until),) = found.holds
    assert (held.who, held.line, until.who, until.line) == (0, 14, 32, 12)
    assert found.ending.differs(baseline)


def test_examine_tells_the_rule_and_the_changed_bits() -> None:
    checked = examine(RaceCase(), seeds=16)
    assert [hazard.rule for hazard in checked.result.hazards] == ["HS500"]
    got, expected = checked.schedules.changed["out"]
    assert {tuple(got.tolist()), tuple(expected.tolist())} == {(7, 0), (7, 7)}

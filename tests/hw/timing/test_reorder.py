from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.timing.in_order import InOrder
from hopsim.hw.timing.machine_code import MachineCode
from hopsim.hw.timing.reorder import reordered
from hopsim.isa.forms.bound import BoundInstruction
from tests.hw.timing.kernels import kernel

CONFIG = load("h100-sxm")
LATENCY, INTERVAL = CONFIG.issue.latency_cycles, CONFIG.issue.interval_cycles


def segment(body: str) -> tuple[list[BoundInstruction], InOrder]:
    program: Any = kernel(body).program(True)
    return list(program[0].instructions), InOrder(CONFIG, MachineCode(CONFIG, program))


def opcodes(instructions: Sequence[BoundInstruction]) -> list[str]:
    return [".".join(one.instruction.opcode[:2]) for one in instructions]


def test_a_chain_makes_room_for_what_does_not_belong_to_it() -> None:
    chain = "ex2.approx.f32 %f1,%f1;" * 4
    others = "".join(f"add.f32 %f{number},%f0,%f0;" for number in range(2, 12))
    found, unit = segment(f"{chain} {others} ret;")
    assert opcodes(found)[:4] == ["ex2.approx"] * 4
    order = unit.order(found, has_head=False)
    assert order[-1] is found[-1]
    assert opcodes(order)[:3] == ["ex2.approx", "add.f32", "add.f32"]
    assert unit.run(order, dynamic=False).clock < unit.run(found, dynamic=False).clock


def test_two_chains_run_side_by_side() -> None:
    chains = "add.f32 %f1,%f1,%f0;" * 8 + "add.f32 %f2,%f2,%f0;" * 8
    found, unit = segment(f"{chains} ret;")
    one = 7 * LATENCY["fp32"]
    assert unit.run(found, dynamic=False).clock >= 2 * one
    assert unit.run(unit.order(found, has_head=False), dynamic=False).clock <= one + 4


def test_divisions_run_side_by_side() -> None:
    """Each is a dozen instructions on several pipes: the next begins when these are issued, not when the result is there."""
    divisions = "".join(
        f"rem.s32 %r{n},%r{n},%r0; mul.lo.s32 %r{n},%r{n},%r1;" for n in range(2, 10)
    )
    found, unit = segment(f"{divisions} ret;")
    order = unit.order(found, has_head=False)
    assert opcodes(order)[:8] == ["rem.s32"] * 8
    lengths, waits = CONFIG.issue.sequence, CONFIG.issue.sequence_latency_cycles
    issued = lengths["rem_s32"] + 7 * lengths["rem_s32_again"]
    clock = unit.run(order, dynamic=False).clock
    assert issued < clock < issued + waits["rem_s32_again"] + 8 * INTERVAL["imad"]
    assert unit.run(found, dynamic=False).clock > clock + 7 * waits["rem_s32_again"] / 2


def test_heads_and_ends_stay_where_they_are() -> None:
    body = "bar.sync 0; ex2.approx.f32 %f1,%f0; add.f32 %f2,%f1,%f0; add.f32 %f3,%f0,%f0; add.f32 %f4,%f0,%f0; ret;"
    program: Any = kernel(body).program(True)
    found = next(list(one.instructions) for one in program if one.head is not None)
    unit = InOrder(CONFIG, MachineCode(CONFIG, program))
    order = unit.order(found, has_head=True)
    assert order[0] is found[0]
    assert order[-1] is found[-1]
    assert sorted(map(id, order)) == sorted(map(id, found))


INSTRUCTIONS = (
    "add.f32 %f{0},%f{1},%f{2};",
    "ex2.approx.f32 %f{0},%f{1};",
    "max.f32 %f{0},%f{1},%f{2};",
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(INSTRUCTIONS), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)
        ),
        min_size=1,
        max_size=24,
    )
)
def test_values_stay_what_they_are(chosen: list[tuple[str, int, int, int]]) -> None:
    """Whatever the order, each instruction reads what the same one wrote."""
    found, unit = segment("".join(text.format(*which) for text, *which in chosen) + "ret;")
    order = unit.order(found, has_head=False)
    assert sorted(map(id, order)) == sorted(map(id, found))

    def sources(instructions: Sequence[BoundInstruction]) -> dict[int, dict[int, int]]:
        writer: dict[int, int] = {}
        read: dict[int, dict[int, int]] = {}
        for one in instructions:
            read[id(one)] = {register: writer.get(register, 0) for register in one.reads}
            writer.update(dict.fromkeys(one.writes, id(one)))
        read[0] = writer
        return read

    assert sources(order) == sources(found)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_instructions_are_left_alone(count: int) -> None:
    found, _ = segment("ex2.approx.f32 %f1,%f0;" * count + "ret;")
    assert (
        reordered(
            found, False, lambda one: 4.0, lambda one: 1.0, lambda one: 1.0, lambda one: "alu"
        )
        == found
    )


# -- beside working tensor cores ----------------------------------------------------------------------


def crowded(body: str) -> tuple[float, float]:
    """Return how many times longer one warp, and the issue port, take beside working tensor cores."""
    found, unit = segment(f"{body} ret;")
    alone, beside = unit.run(found, dynamic=False), unit.run(found, dynamic=False, crowded=True)
    return beside.clock / alone.clock, beside.slots / alone.slots


def independent(text: str, count: int = 16) -> str:
    return "".join(text.format(number) for number in range(1, count + 1))


def test_slow_pipes_are_slower_beside_the_tensor_cores() -> None:
    ratio = CONFIG.issue.crowded_interval_cycles["alu"] / INTERVAL["alu"]
    warp, port = crowded(independent("max.f32 %f{0},%f0,%f0;"))
    assert warp == pytest.approx(ratio, rel=0.06)
    assert port == pytest.approx(ratio, rel=0.06)


def test_a_warp_of_fp32_has_gaps_that_others_fill() -> None:
    warp, port = crowded(independent("add.f32 %f{0},%f0,%f0;"))
    assert warp == pytest.approx(CONFIG.issue.crowded_gap_cycles, rel=0.06)
    assert port == pytest.approx(CONFIG.issue.crowded_interval_cycles["fp32"], rel=0.06)


def test_pipes_stand_in_each_others_way_beside_the_tensor_cores() -> None:
    adds, maxima = "add.f32 %f{0},%f0,%f0;", "max.f32 %f1{0},%f0,%f0;"
    found, unit = segment(independent(adds, 8) + independent(maxima, 8) + "ret;")
    beside = unit.run(found, dynamic=False, crowded=True)
    each = CONFIG.issue.crowded_interval_cycles["alu"] + CONFIG.issue.crowded_mixed_cycles
    assert beside.slots == pytest.approx(8 * each + 1)


def lost(body: str) -> float:
    """Return the cycles that products lose beside arithmetic."""
    found, unit = segment(f"{body} ret;")
    assert unit.run(found, dynamic=False).lost == 0.0
    return unit.run(found, dynamic=False, crowded=True).lost


def test_fp32_costs_products_what_slower_pipes_among_it_do_not() -> None:
    each = CONFIG.issue.products_lost_cycles
    adds, products = "add.f32 %f{0},%f0,%f0;", "fma.rn.f32 %f1{0},%f0,%f0,%f0;"
    maxima = "max.f32 %f2{0},%f0,%f0;"
    assert lost(independent(adds, 8)) == pytest.approx(8 * each["fp32"])
    assert lost(independent(products, 8)) == pytest.approx(8 * each["fma"])
    assert lost(independent(maxima, 8)) == 0.0
    assert lost(independent(adds, 8) + independent(maxima, 8)) == 0.0
    # Half of them follow each other.
    mixed = independent(adds, 4) + independent(products, 4) + independent(maxima, 4)
    assert lost(mixed) == pytest.approx(2 * each["fp32"] + 2 * each["fma"])


def test_wide_sums_are_slow_beside_products_and_cost_them() -> None:
    text = "mul.wide.u32 %rd1,%r1,16;" + "".join(
        f"add.s64 %rd{number},%rd2,%rd1; ld.global.u32 %r2,[%rd{number}];" for number in range(3, 7)
    )
    code = kernel(text + "ret;").program(True)
    found = [one for part in code for one in part.instructions if one.form.unit == "alu"]
    unit = InOrder(CONFIG, MachineCode(CONFIG, code))
    beside = unit.run(found, dynamic=False, crowded=True)
    assert beside.lost == 4 * CONFIG.issue.products_lost_cycles["imad_wide"]
    assert beside.slots == pytest.approx(4 * CONFIG.issue.crowded_interval_cycles["imad_wide"])

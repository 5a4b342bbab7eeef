"""Which pipe has what several can do."""

from __future__ import annotations

from typing import Any

import pytest

from hopsim.hw.timing.pipe_choice import SHARE, multiplied
from hopsim.kernels.micro.clocked import slopes
from tests.hw.timing.kernels import kernel
from tests.hw.timing.recorded import ROWS, simulated

LOGIC = "lop3.b32 %r9,%r9,%r8,%r7,0x6a;"
PRODUCT = "fma.rn.f32 %f1,%f1,%f2,%f3;"
EITHER = "shl.b32 %r1,%r2,3; add.s32 %r3,%r4,%r5; add.s32 %r6,%r4,7; selp.u32 %r10,1,0,%p1; add.s32 %r11,%r10,%r5;"


def given(body: str) -> list[str]:
    program: Any = kernel(f"{body} ret;").program(True)
    chosen = multiplied(program, frozenset())
    return [
        bound.instruction.opcode[0]
        for segment in program
        for bound in segment.instructions
        if id(bound) in chosen
    ]


def test_the_multiplier_helps_an_alu_that_has_more_to_do() -> None:
    assert given(LOGIC * 3 + EITHER + PRODUCT) == ["shl", "add", "add", "selp", "add"]
    assert not given(LOGIC * 3 + EITHER + PRODUCT * 3)


@pytest.mark.parametrize(
    "alone",
    ["shl.b32 %r1,%r2,%r3;", "add.s64 %rd1,%rd2,%rd3;", "selp.u32 %r1,%r2,0,%p1; add.s32 %r1,%r1,%r1;"],
)  # fmt: skip
def test_what_only_the_alu_does_stays(alone: str) -> None:
    assert alone.split(".")[0] not in given(alone + LOGIC * 3)


def test_of_sums_alone_one_in_five_stays() -> None:
    sums = SHARE + 1
    assert len(given("add.s32 %r1,%r2,%r3;" * 2 * sums + "ret;" + LOGIC)) == 2 * SHARE


@pytest.mark.parametrize(("warps", "within"), [(8, 0.2), (16, 0.2)])
def test_mixes_take_what_they_took_on_an_h100(warps: int, within: float) -> None:
    found = slopes(simulated(f"pipes_w{warps}", "pipes"))
    recorded = ROWS[f"pipes_w{warps}"]["slopes"]
    # (Registers that are written again and again keep predicates from being joined here, not by ptxas.)
    labels = recorded.keys() - {"two setp, selp, add"}
    assert {one: found[one] for one in labels} == pytest.approx(
        {one: recorded[one] for one in labels}, rel=within
    )

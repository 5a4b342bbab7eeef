"""Programs that do not end are cut off, whatever they do meanwhile, and other orders are not waited for either."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from hopsim.explore.case import Arguments, Device
from hopsim.explore.examine import check_once, examine
from hopsim.explore.sweep import IN_ORDER, LONGER_STEPS, Hardware, plan_of, run
from hopsim.hw.machine import untimed
from hopsim.isa.program.kernel import Kernel, loads

HEAD = """.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 smem[];
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %out;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    mov.u32 %r1, %tid.x;
"""
COUNTS_ALONE = "LOOP:\n add.u32 %r1, %r1, 1;\n bra LOOP;\n"
COPIES = " mov.u32 %r2, smem;\nLOOP:\n cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 16;\n bra LOOP;\n"
ONE_WAY_ONLY = (
    " setp.lt.u32 %p, %r1, 32;\n @!%p bra READ;\n st.global.b32 [%out], 1;\n ret;\n"
    "READ:\n ld.global.b32 %r0, [%out];\n setp.ne.u32 %p, %r0, 0;\n @%p bra DONE;\n" + COUNTS_ALONE
    + "DONE:\n"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    text: str
    grid: int = 1
    block: int = 64
    cluster: int | None = None
    shared_bytes: int = 128

    def kernel(self) -> Kernel:
        return loads(HEAD + self.text + " ret;\n}\n")["k"]

    def arguments(self, gpu: Device) -> Arguments:
        out = gpu.array(np.zeros(64, np.uint32))
        return Arguments([out], {"out": out})


def test_a_loop_that_meets_nobody_comes_to_the_limit() -> None:
    case = Program(COUNTS_ALONE)
    result, _ = check_once(case, case.kernel(), max_steps=2000)
    (note,) = result.not_modelled
    assert result.verdict == "not-modelled"
    assert (note.why, note.text) == (
        "the run was ended by its limit of cycles or steps", "add.u32 %r1, %r1, 1;",
    )  # fmt: skip


def test_a_loop_that_issues_for_ever_is_ended_by_what_is_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(untimed, "FLYING_MAX", 100)
    case = Program(COPIES, block=32)
    done = run(case, case.kernel(), plan_of(IN_ORDER), IN_ORDER, Hardware())
    assert done.ending.ended == "cap"
    assert done.steps < 2000


def test_an_order_without_end_is_told_and_not_made_small() -> None:
    found = examine(Program(ONE_WAY_ONLY), seeds=6)
    assert found.schedules.baseline.ended == "finished"
    assert {one.ended for one in found.schedules.differing} == {"cap"}
    assert found.schedules.shown is not None
    assert found.schedules.minimal is None
    in_order = run(
        Program(ONE_WAY_ONLY), Program(ONE_WAY_ONLY).kernel(), plan_of(IN_ORDER), IN_ORDER, Hardware()
    )  # fmt: skip
    assert in_order.limit < 2 * LONGER_STEPS

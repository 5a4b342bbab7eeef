"""A flag that is read without waiting is right by luck in order; another order is judged, and names the rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hopsim.explore.case import Arguments, Device
from hopsim.explore.examine import check_once, examine
from hopsim.isa.program.kernel import Kernel, loads

LOOKS_ONCE = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %cta, %seen, %v;
    .reg .b64 %out;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    mov.u32 %cta, %ctaid.x;
    setp.ne.u32 %p, %cta, 0;
    @%p bra READER;
    st.global.b32 [%out+128], 7;
    st.release.gpu.global.b32 [%out], 1;
    ret;
READER:
    ld.acquire.gpu.global.b32 %seen, [%out];
    ld.global.b32 %v, [%out+128];
    st.global.b32 [%out+64], %v;
    ret;
}
"""


@dataclass(frozen=True, slots=True)
class Program:
    grid: int = 2
    block: int = 1
    cluster: int | None = None
    shared_bytes: int = 0

    def kernel(self) -> Kernel:
        return loads(LOOKS_ONCE)["k"]

    def arguments(self, gpu: Device) -> Arguments:
        out = gpu.array(np.zeros(64, np.uint32))
        return Arguments([out], {"out": out})


def test_the_order_that_differs_is_judged() -> None:
    case = Program()
    in_order, _ = check_once(case, case.kernel())
    assert in_order.verdict == "clean"
    found = examine(case, seeds=8)
    assert found.schedules.shown is not None
    assert found.result.verdict == "hazard"
    assert [hazard.rule for hazard in found.result.hazards] == ["HS500"]
    assert (found.result.schedule, found.result.seed) == ("seeded", found.schedules.shown.seed)

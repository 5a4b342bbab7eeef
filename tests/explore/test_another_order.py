"""What is right by luck in order: another order is judged, and names the rule, whether or not it ends otherwise."""

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
# The CTA that comes last adds up what all wrote; only CTA 1 fences before it reads.
LAST_ADDS = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %cta, %ticket, %v<2>;
    .reg .b64 %out, %mine;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    mov.u32 %cta, %ctaid.x;
    mad.wide.u32 %mine, %cta, 4, %out;
    st.global.b32 [%mine+128], 7;
    fence.acq_rel.gpu;
    atom.relaxed.gpu.global.add.u32 %ticket, [%out], 1;
    setp.eq.u32 %p, %ticket, 0;
    @%p ret;
    setp.eq.u32 %p, %cta, 0;
    @%p bra ADD;
    fence.acq_rel.gpu;
ADD:
    ld.global.b32 %v0, [%out+128];
    ld.global.b32 %v1, [%out+132];
    add.u32 %v0, %v0, %v1;
    st.global.b32 [%out+64], %v0;
    ret;
}
"""


@dataclass(frozen=True, slots=True)
class Program:
    text: str = LOOKS_ONCE
    grid: int = 2
    block: int = 1
    cluster: int | None = None
    shared_bytes: int = 0

    def kernel(self) -> Kernel:
        return loads(self.text)["k"]

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


def test_an_order_in_which_another_cta_takes_a_path_is_judged() -> None:
    case = Program(LAST_ADDS)
    in_order, _ = check_once(case, case.kernel())
    assert in_order.verdict == "clean"
    found = examine(case, seeds=8)
    assert found.schedules.shown is None
    assert [hazard.rule for hazard in found.result.hazards] == ["HS216"]
    assert found.result.schedule == "seeded"
    mended = Program(LAST_ADDS.replace("@%p bra ADD;", ""))
    assert examine(mended, seeds=8).result.verdict == "clean"

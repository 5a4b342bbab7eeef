"""Copies of more than a CPC has room for, whose arrival on an mbarrier is asked for before they are on their way."""

from __future__ import annotations

from typing import Final

import numpy as np

import hopsim as hs
from hopsim.config import load

CTAS: Final = 132
THREADS: Final = 256
COPIES: Final = 32
BYTES: Final = THREADS * COPIES * 16
"""Of each CTA: more than the even part of one of six SMs."""

PTX: Final = f"""
.version 8.7
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry last(.param .u64 from, .param .u64 to)
.reqntid {THREADS}
{{
    .reg .pred %p<3>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<8>;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, memory;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r2+{BYTES}], {THREADS};
    bar.sync 0;
    ld.param.u64 %rd0, [from];
    mad.wide.u32 %rd0, %r1, {BYTES}, %rd0;
    mad.wide.u32 %rd0, %r0, 16, %rd0;
    mad.lo.u32 %r3, %r0, 16, %r2;
{
    "".join(
        f'''    cp.async.cg.shared.global [%r3+{THREADS * 16 * place}], [%rd0+{THREADS * 16 * place}], 16;
'''
        for place in range(COPIES)
    )
}
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2+{BYTES}];
$wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2+{BYTES}], 0;
    @!%p1 bra $wait;
    ld.shared.u32 %r4, [%r3+{THREADS * 16 * (COPIES - 1)}];
    ld.param.u64 %rd1, [to];
    mad.lo.u32 %r5, %r1, {THREADS}, %r0;
    mad.wide.u32 %rd1, %r5, 4, %rd1;
    st.global.u32 [%rd1], %r4;
    ret;
}}
"""


def test_an_arrival_lands_after_copies_that_waited_for_room() -> None:
    assert load("h100-sxm").l2.on_way_per_cpc_bytes / 6 < BYTES
    gpu = hs.Gpu()
    words = np.arange(CTAS * BYTES // 4, dtype=np.uint32)
    source, target = gpu.array(words), gpu.array(np.zeros(CTAS * THREADS, np.uint32))
    result = gpu.launch(
        hs.loads(PTX)["last"], (CTAS, 1), THREADS, args=[source, target], shared_bytes=BYTES + 64
    )
    assert result.verdict == "clean"
    rows = words.reshape(CTAS, COPIES, THREADS, 4)
    np.testing.assert_array_equal(target.numpy().reshape(CTAS, THREADS), rows[:, -1, :, 0])

"""Generic accesses whose lanes point into several state spaces take the data pipe for each space, and come with the last."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from tests.hw.timing.kernels import launch

# A chain of loads, each behind the answer of the one before; lanes below COUNT look into shared memory.
CHAIN = """
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    mov.u64 %rd3, box;
    cvta.shared.u64 %rd3, %rd3;
    add.u64 %rd3, %rd3, %rd2;
    mov.u32 %r2, 0;
    st.u32 [%rd3], %r2;
    st.global.u32 [%rd1], %r2;
    setp.lt.u32 %p1, %r1, COUNT;
    selp.b64 %rd4, %rd3, %rd1, %p1;
    mov.u32 %r3, 0;
LOOP:
    ld.u32 %r4, [%rd4];
    cvt.u64.u32 %rd5, %r4;
    add.u64 %rd4, %rd4, %rd5;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 64;
    @%p2 bra LOOP;
    st.global.u32 [%rd1], %r4;
    ret;
"""


def cycles(in_shared: int) -> int:
    gpu = hs.Gpu()
    result = launch(
        CHAIN.replace("COUNT", str(in_shared)), gpu=gpu, declarations=".shared .align 4 .b32 box[32];",
        args=[gpu.array(np.zeros(32, np.uint32))],
    )  # fmt: skip
    assert result.cycles is not None
    return result.cycles


def test_lanes_in_two_spaces_wait_for_the_slower_one() -> None:
    shared, both, outside = cycles(32), cycles(16), cycles(0)
    assert shared < outside - 64
    assert both == pytest.approx(outside, abs=4)

"""Runs without values compute what decides: counts, pointers, tiles and maps out of memory, and only these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hopsim.errors import ValuesNeeded
from hopsim.launch.arrays import TensorMap
from hopsim.runtime.gpu import Gpu
from tests.machine.programs import build, line_of

WORDS = np.arange(1, 65, dtype=np.uint32)
INIT = """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b64 bar;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
setp.eq.u32 %p1, %t, 0;
@%p1 mbarrier.init.shared::cta.b64 [bar], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
"""
FETCH = """
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 128, [%r2];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra WAIT;
"""
# %r20 turns, each of which takes some time.
LOOP = """
AGAIN:
setp.eq.u32 %p3, %r20, 0;
@%p3 bra DONE;
bar.sync 0;
sub.u32 %r20, %r20, 1;
bra AGAIN;
DONE:
"""
# A value that no run without values computes.
MATRIX = ".shared .align 16 .b8 rows[512]; mov.u32 %r50, rows; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r30}, [%r50]; mov.b32 %f0, %r30;"


def cycles(body: str, values: bool, params: int = 1, **options: Any) -> float:
    """Run one warp twice as long as words of the first input say; the second input holds the address of the first."""
    device = Gpu()
    first = device.array(WORDS)
    pointers = device.array(np.array([first.address], np.uint64))
    out = device.array(np.zeros(1024, np.uint32))
    args = [out, first, pointers][: params + 1]
    result = device.launch(
        build(body, params), 4, 64, args=args, values=values, check=False, **options
    )
    assert result.cycles is not None
    return result.cycles


@pytest.mark.parametrize(
    "body",
    [
        "ld.param.u64 %rd1, [p0]; ld.global.nc.u32 %r20, [%rd1+128];" + LOOP,
        "ld.param.u64 %rd2, [p1]; ld.global.u64 %rd1, [%rd2]; ld.global.u32 %r20, [%rd1+64];" + LOOP,
        "ld.param.u64 %rd1, [p0]; atom.global.add.u32 %r20, [%rd1+16], 7; and.b32 %r20, %r20, 31;" + LOOP,
        # A tile that one thread takes for all.
        INIT + "ld.param.u64 %rd1, [p0]; @%p1 atom.global.add.u32 %r3, [%rd1], 7; @%p1 st.shared.u32 [tile], %r3; "
        "bar.sync 0; ld.shared.u32 %r20, [tile]; and.b32 %r20, %r20, 31;" + LOOP,
        # Bytes that a copy brings, and a store over them.
        INIT + "ld.param.u64 %rd1, [p0];" + FETCH
        + "ld.global.u32 %r3, [%rd1+40]; st.shared.u32 [tile], %r3; bar.sync 0; ld.shared.u32 %r20, [tile];" + LOOP,
        # A count that was kept in local memory.
        ".local .align 4 .b8 kept[8]; mov.u32 %r5, kept; ld.param.u64 %rd1, [p0]; ld.global.u32 %r3, [%rd1+40]; "
        "st.local.u32 [%r5], %r3; ld.local.u32 %r20, [%r5];" + LOOP,
        # Flags that others raise by a reduction.
        "ld.param.u64 %rd1, [p0]; red.release.gpu.global.add.u32 [%rd1+256], 0; red.release.gpu.global.add.u32 [%out], 1; "
        "LOOK: ld.acquire.gpu.global.u32 %r20, [%out]; setp.ne.u32 %p3, %r20, 256; @%p3 bra LOOK;",
        # A register that holds data elsewhere.
        MATRIX + "mov.b32 %r20, %r30; st.global.u32 [%mine], %r20; mov.u32 %r20, 5;" + LOOP,
        "mov.u32 %r6, 0; TURN:" + MATRIX + "st.global.u32 [%mine], %r30; mov.u32 %r30, 3; mov.u32 %r20, %r30;" + LOOP
        + "add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, %r30; @%p4 bra TURN;",
        # The carry flag, which data has had before.
        MATRIX + "add.cc.u32 %r3, %r30, 5; addc.u32 %r4, %r30, 0; st.global.u32 [%mine], %r4; "
        "add.cc.u32 %r6, %t, 0xffffffff; addc.u32 %r20, 1, 0;" + LOOP,
    ],
    ids=["count", "pointer", "counter", "tile", "stored", "local", "flag", "reused", "reused_in_turns", "carry"],
)  # fmt: skip
def test_what_decides_is_computed(body: str) -> None:
    body = body.replace("[%rd1+256]", "[%rd1+252]")
    assert cycles(body, values=False, params=2) == cycles(body, values=True, params=2)


@pytest.mark.parametrize(
    "body",
    [
        # A result of a matrix instruction.
        MATRIX + "setp.gt.f32 %p3, %f0, 0f3f800000; @%p3 bra OVER; bar.sync 0; OVER: //here",
        # Bytes that a copy brought.
        INIT + "ld.param.u64 %rd1, [p0];" + FETCH + "ld.shared.u32 %r20, [tile+64]; //here\n" + LOOP,
        # Global and shared bytes that it went to.
        MATRIX + "st.global.f32 [%mine], %f0; ld.global.u32 %r20, [%mine]; //here\n" + LOOP,
        INIT + MATRIX + "st.shared.f32 [tile], %f0; bar.sync 0; ld.shared.u32 %r20, [tile]; //here\n"
        + LOOP,
        MATRIX + "red.global.add.f32 [%out], %f0; ld.global.u32 %r20, [%out]; //here\n" + LOOP,
        "ld.param.u64 %rd1, [p0]; .shared .align 16 .b8 row[16]; mov.u32 %r1, row; cp.async.ca.shared.global [%r1], [%rd1], 16; "
        "cp.async.wait_all; bar.sync 0; ld.shared.u32 %r20, [row]; //here\n" + LOOP,
        "ld.param.u64 %rd1, [p0]; .shared .align 16 .b8 row[16]; ld.global.u32 %r20, [%rd1]; and.b32 %r20, %r20, 0; "
        "st.shared.u32 [row], %r20; mov.u32 %r1, row; cp.async.ca.shared.global [%r1], [%rd1], 16; "
        "cp.async.wait_all; bar.sync 0; ld.shared.u32 %r20, [row]; //here\n" + LOOP,
        "ld.param.u64 %rd1, [p0]; " + INIT + "st.shared.u32 [tile], %t; fence.proxy.async; bar.sync 0; "
        "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 16; @%p1 cp.async.bulk.commit_group; "
        "@%p1 cp.async.bulk.wait_group 0; bar.sync 0; ld.global.u32 %r20, [%out]; //here\n" + LOOP,
    ],
    ids=["matrix", "copied", "global", "shared", "reduced", "cp_async", "cp_async_over", "bulk_store"],
)  # fmt: skip
def test_what_is_not_computed_decides_nothing(body: str) -> None:
    line = line_of(build(body, 1), "//here")
    with pytest.raises(ValuesNeeded, match=rf"test\.ptx:{line}:"):
        cycles(body, values=False)


OVER = (
    MATRIX
    + "setp.gt.f32 %p3, %f0, 0f3f800000; mov.f32 %f1, 0f00000000; @%p3 bra OVER; //here\nrcp.rn.f32 %f1, %f0; OVER: "
)


def test_a_branch_on_data_over_computations_is_not_taken() -> None:
    found: list[float | None] = []
    for values in (True, False):
        device = Gpu()
        out = device.array(np.zeros(1024, np.uint32))
        # The matrix is zero: all lanes divide.
        body = OVER + "st.global.f32 [%mine], %f1;"
        result = device.launch(build(body, 0), 4, 64, args=[out], values=values, check=False)
        found.append(result.cycles)
    assert found[0] is not None
    assert found[0] == found[1]
    line = line_of(build(body, 0), "//here")
    told = [note.why for note in result.not_modelled]
    assert any(f"were not taken (:{line})" in why for why in told), told


def test_what_is_computed_behind_a_branch_on_data_is_data() -> None:
    body = (
        OVER.replace("rcp.rn.f32 %f1, %f0;", "mov.u32 %r20, 4; mov.u32 %r21, 3;")
        + "mov.u32 %r21, 3;"
    )
    assert cycles("mov.u32 %r20, 2;" + body + LOOP.replace("%r20", "%r21"), values=False)
    with pytest.raises(ValuesNeeded):
        cycles("mov.u32 %r20, 2;" + body + LOOP, values=False)


@pytest.mark.parametrize(
    "inside", ["bar.sync 0;", "st.global.u32 [%mine], %r0;", "@%p3 bra OVER; mov.u32 %r3, 1;"]
)
def test_a_branch_on_data_over_more_needs_values(inside: str) -> None:
    body = OVER.replace("rcp.rn.f32 %f1, %f0;", inside)
    with pytest.raises(ValuesNeeded):
        cycles(body, values=False)


def test_a_map_that_is_edited_on_the_device() -> None:
    body = (
        INIT
        + """
    ld.param.u64 %rd1, [p0];
    ld.param.u64 %rd2, [p1];
    @%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%rd2], %rd1;
    ld.global.u32 %r5, [%rd1+12];
    @%p1 tensormap.replace.tile.global_dim.global.b1024.b32 [%rd2], 1, %r5;
    fence.proxy.tensormap::generic.release.gpu;
    fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r0, %r0}], [%r2];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    """
    )
    found: list[float | None] = []
    for values in (True, False):
        device = Gpu()
        words, out = device.array(WORDS), device.array(np.zeros(64, np.uint32))
        raw = device.encode(TensorMap(words, box=(32, 1), dims=(32, 2), strides=(128,)))
        held = device.array(np.frombuffer(raw, np.uint8))
        kernel = build(body.replace("%r0,", "%r6,").replace("%r0}", "%r6}"), 2)
        args = [out, words, held]
        found.append(device.launch(kernel, 1, 64, args=args, values=values, check=False).cycles)
    assert found[0] is not None
    assert found[0] == found[1]

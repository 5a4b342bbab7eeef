"""Pipes of an SM that all of its CTAs share: mma.sync, and the data pipe that ldmatrix and cp.async take."""

from __future__ import annotations

import pytest

from hopsim.config import load
from tests.hw.timing.kernels import launch
from tests.hw.timing.test_schedule import clocked

CONFIG = load("h100-sxm")
SMS = 132
MATRICES = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4},[%r0];"


def test_a_warp_comes_to_a_barrier_when_the_pipe_has_taken_its_products() -> None:
    count = 32
    products = "".join(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{d}}},{{%r1,%r2,%r3,%r4}},{{%r5,%r6}},{{{d}}};".format(
            d=",".join(f"%acc{4 * one + value}" for value in range(4))
        )
        for one in range(count)
    )
    before = "".join(f"mov.u32 %r{number},%r60;" for number in range(1, 7))
    before += "".join(f"mov.f32 %acc{number},0f00000000;" for number in range(4 * count))
    flop = 2 * 16 * 8 * 16
    each = flop / (CONFIG.mma_sync.flop_per_clk["bf16"] / CONFIG.device.subpartitions)
    met = clocked(products + "bar.sync 0;", before) - clocked("bar.sync 0;", before)
    assert met == pytest.approx((count - 1) * each, abs=12)
    # Nothing holds instructions that meet nobody.
    assert clocked(products + "add.u32 %r7,%r60,%r60;", before) < met / 2


@pytest.mark.parametrize("warps", [1, 4])
def test_ctas_of_an_sm_use_the_data_pipe_side_by_side(warps: int) -> None:
    # Each link of the chain leaves the pipe idle for most of its latency.
    body = "mov.u32 %r0,buf;" + (MATRICES + "and.b32 %r1,%r1,0; add.u32 %r0,%r0,%r1;") * 64 + "ret;"
    declarations = ".shared .align 16 .b8 buf[1024];"
    one, two = (
        launch(body, grid=ctas, block=32 * warps, declarations=declarations, warm="code").cycles
        for ctas in (SMS, 2 * SMS)
    )
    chain = 64 * CONFIG.smem.ldmatrix_latency_cycles
    assert one > chain
    assert two - one < chain / 8


def test_copies_of_half_rows_take_the_data_pipe_no_longer_than_those_of_rows() -> None:
    copies, threads = 12, 128
    size = 16 * threads
    # The same lines each time, so that only the pipe counts; what `ldmatrix` reads stands behind the last copy.
    body = "".join(f"cp.async.cg.shared.global [%r10+{n * size}],[%rd1],16;" for n in range(copies))
    body += MATRICES + "add.u32 %r5,%r1,%r2;"

    def wait_behind(lanes_a_row: int) -> int:
        before = f"""
        mov.u32 %r0,buf; mad.lo.u32 %r10,%r60,16,%r0;
        ld.param.u64 %rd1,[out];
        and.b32 %r11,%r60,{lanes_a_row - 1}; div.u32 %r12,%r60,{lanes_a_row};
        mul.lo.u32 %r11,%r11,16; mad.lo.u32 %r11,%r12,128,%r11; cvt.u64.u32 %rd2,%r11; add.u64 %rd1,%rd1,%rd2;
        bar.sync 0;"""
        declarations = f".shared .align 16 .b8 buf[{copies * size}];"
        return clocked(body, before, block=threads, declarations=declarations)

    whole, half = wait_behind(8), wait_behind(4)
    assert whole >= 0.9 * copies * 16 * threads / CONFIG.smem.bandwidth_bytes_per_clk
    assert half == pytest.approx(whole, abs=4)

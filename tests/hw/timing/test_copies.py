"""Copies in kernels: plain bulk copies, cp.async, distributed shared memory, and what they count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.config import load
from hopsim.hw.timing.l2 import L2Cache
from tests.hw.timing.kernels import launch

CONFIG = load("h100-sxm")
TMA = CONFIG.tma
# What threads receive; the TMA engine has a rate of its own.
PORT = CONFIG.l2.bandwidth_per_sm_bytes_per_clk


def miss(lines: int) -> float:
    """Return the cycles until the slowest of some lines is there from device memory."""
    dram = CONFIG.dram
    return dram.latency_cycles + dram.latency_spread_cycles * lines / (lines + 1)


def bulk_load(count_bytes: int, copies: int = 1) -> str:
    one = "".join(
        f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+{k * count_bytes}], "
        f"[%rd1+{k * count_bytes}], {count_bytes}, [%r0];"
        for k in range(copies)
    )
    return f"""
    mov.u32 %r9,%tid.x; setp.ne.u32 %p3,%r9,0; @%p3 bra END;
    ld.param.u64 %rd0,[out]; mov.u64 %rd1,%rd0; mov.u32 %r0,bar; mov.u32 %r1,tile;
    mbarrier.init.shared.b64 [%r0],1; fence.proxy.async;
    mov.u64 %rd10,%clock64;
    mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r0],{count_bytes * copies};
    {one}
    W: mbarrier.try_wait.parity.shared::cta.b64 %p0,[%r0],0; @!%p0 bra W;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10; st.global.u64 [%rd0],%rd12;
    END: ret;"""


SHARED = ".shared .align 128 .b8 tile[65536]; .shared .align 8 .b64 bar;"


NO_REFRESH = {"dram.refresh": "0cycles"}


def timed(body: str, **options: Any) -> tuple[int, Any]:
    gpu = hs.Gpu("h100-sxm", overrides={**NO_REFRESH, **options.pop("overrides", {})})
    out = gpu.array(np.zeros(32768, np.uint64))
    result = launch(body, gpu=gpu, args=[out], declarations=SHARED, **options)
    return int(out.numpy()[0]), result


def test_a_bulk_load_from_dram() -> None:
    cycles, result = timed(bulk_load(1024))
    expected = (
        1024 / TMA.bandwidth_bytes_per_clk
        + miss(8)
        + TMA.latency_cycles
        + CONFIG.mbarrier.wakeup_latency_cycles
    )
    assert cycles == pytest.approx(expected, abs=40)
    assert result.counters["hopsim__tma_bytes.sum"] == 1024
    assert result.counters["dram__bytes_read.sum"] == 1024


def test_bulk_loads_stream_at_the_rate_of_the_engine() -> None:
    one, _ = timed(bulk_load(4096))
    four, result = timed(bulk_load(4096, 4))
    gap = max(4096 / TMA.bandwidth_bytes_per_clk, TMA.issue_interval_cycles)
    assert four - one == pytest.approx(3 * gap, abs=12)
    assert result.counters["hopsim__l2_requested_bytes.sum"] == 4 * 4096


def test_a_bulk_store_reads_then_writes() -> None:
    body = """
    mov.u32 %r9,%tid.x; setp.ne.u32 %p3,%r9,0; @%p3 bra END;
    ld.param.u64 %rd0,[out]; mov.u32 %r1,tile; st.shared.u32 [%r1],%r9; fence.proxy.async;
    mov.u64 %rd10,%clock64;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0+4096],[%r1],2048;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group{read} 0;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10; st.global.u64 [%rd0],%rd12;
    END: ret;"""
    options = {"values": True}
    read, _ = timed(body.replace("{read}", ".read"), **options)
    written, result = timed(body.replace("{read}", ""), **options)
    sent = TMA.store_read_latency_cycles + 2048 / TMA.store_bandwidth_bytes_per_clk
    assert read == pytest.approx(sent, abs=20)
    assert written - read == pytest.approx(TMA.store_latency_cycles, abs=20)
    assert result.counters["lts__t_sectors_op_write.sum"] >= 2048 // 32 + 1


CP_ASYNC = """
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; mov.u32 %r1,tile; mad.lo.u32 %r1,%r9,16,%r1;
    mul.wide.u32 %rd1,%r9,16; add.u64 %rd1,%rd0,%rd1;
    mov.u64 %rd10,%clock64;
    cp.async.cg.shared.global [%r1],[%rd1],16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10;
    mul.wide.u32 %rd2,%r9,8; add.u64 %rd2,%rd0,%rd2; st.global.u64 [%rd2],%rd12; ret;"""


def test_cp_async_takes_a_miss_and_a_shared_write() -> None:
    cycles, result = timed(CP_ASYNC, block=128)
    # A line at a time is looked up, and written to shared memory.
    expected = 16 + miss(16) + 2048 / PORT + CONFIG.smem.latency_cycles
    assert cycles == pytest.approx(expected, abs=30)
    assert result.counters["dram__bytes_read.sum"] == 2048


@pytest.mark.parametrize(
    ("rows", "bringing", "again"), [(16, 8, 0), (16, 2, 0), (1, 8, 4 * 3 * 128)]
)
def test_only_lanes_that_bring_the_same_bytes_ask_again(
    rows: int, bringing: int, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four rows of eight lanes a warp; lanes that write zeros (source size 0) ask for nothing."""
    asked: list[int] = []

    def read_again(l2: L2Cache, now: float, start: float, lines: Any, count: int, sm: int) -> float:
        asked.append(count)
        return start

    monkeypatch.setattr(L2Cache, "read_again", read_again)
    body = f"""
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; mov.u32 %r1,tile; mad.lo.u32 %r1,%r9,16,%r1;
    and.b32 %r2,%r9,7; setp.lt.u32 %p1,%r2,{bringing}; selp.b32 %r3,16,0,%p1;
    shr.u32 %r4,%r9,3; min.u32 %r4,%r4,{rows - 1}; mul.wide.u32 %rd1,%r4,128;
    mul.wide.u32 %rd2,%r2,16; add.u64 %rd1,%rd1,%rd2; add.u64 %rd1,%rd1,%rd0;
    cp.async.cg.shared.global [%r1],[%rd1],16,%r3; cp.async.commit_group; cp.async.wait_group 0; ret;"""
    chip = hs.Gpu("h100-sxm")
    data = chip.array(np.zeros(2048, np.uint8))
    tile = ".shared .align 16 .b8 tile[2048];"
    launch(body, gpu=chip, block=128, args=[data], declarations=tile)
    assert asked == [again] * bool(again)


def test_cp_async_arrive_follows_the_copies() -> None:
    body = """
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; mov.u32 %r0,bar; mov.u32 %r1,tile; mad.lo.u32 %r1,%r9,16,%r1;
    setp.eq.u32 %p1,%r9,0; @%p1 mbarrier.init.shared.b64 [%r0],32; bar.sync 0;
    mul.wide.u32 %rd1,%r9,16; add.u64 %rd1,%rd0,%rd1;
    mov.u64 %rd10,%clock64;
    cp.async.cg.shared.global [%r1],[%rd1],16;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r0];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p0,[%r0],0; @!%p0 bra W;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10;
    mul.wide.u32 %rd2,%r9,8; add.u64 %rd2,%rd0,%rd2; st.global.u64 [%rd2],%rd12; ret;"""
    cycles, _ = timed(body, block=32)
    assert miss(1) < cycles < miss(64) + 200


CLUSTER = """
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; mov.u32 %r1,tile; mad.lo.u32 %r1,%r9,4,%r1;
    st.shared.u32 [%r1],%r9;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r2,%r1,{rank};
    mov.u64 %rd10,%clock64;
    ld.shared::cluster.u32 %r3,[%r2]; add.u32 %r4,%r3,%r3;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r5,%cluster_ctarank; setp.ne.u32 %p1,%r5,0; @%p1 bra END;
    mul.wide.u32 %rd2,%r9,8; add.u64 %rd2,%rd0,%rd2; st.global.u64 [%rd2],%rd12;
    END: ret;"""


def test_a_load_from_a_peer_takes_the_network() -> None:
    local, _ = timed(CLUSTER.format(rank=0), grid=2, cluster=2, block=32)
    remote, result = timed(CLUSTER.format(rank=1), grid=2, cluster=2, block=32)
    assert local == pytest.approx(CONFIG.smem.latency_cycles, abs=12)
    transfer = 128 / CONFIG.dsmem.bandwidth_per_sm_bytes_per_clk
    assert remote == pytest.approx(CONFIG.dsmem.latency_cycles + transfer, abs=12)
    # CTA 1 reads its own memory by the same rank.
    assert result.counters["hopsim__dsmem_bytes.sum"] == 128


def test_atomics_go_to_l2() -> None:
    body = """
    ld.param.u64 %rd0,[out]; mov.u64 %rd10,%clock64;
    atom.global.add.u32 %r1,[%rd0+1024],1; add.u32 %r2,%r1,%r1;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10; st.global.u64 [%rd0],%rd12; ret;"""
    cycles, result = timed(body, block=32)
    assert cycles == pytest.approx(miss(1), abs=20)
    assert result.counters["lts__t_sectors_op_write.sum"] >= 2


LEAVING = """
    ld.param.u64 %rd0,[out]; mov.u32 %r9,%tid.x; mov.u32 %r1,tile; setp.eq.u32 %p2,%r9,0;
    mov.u64 %rd10,%clock64;
    @%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd0+4096],[%r1],2048;
    @%p2 cp.async.bulk.commit_group;
    {wait}
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u64 %rd11,%clock64; sub.u64 %rd12,%rd11,%rd10; @%p2 st.global.u64 [%rd0],%rd12;
    ret;"""


@pytest.mark.parametrize(
    ("warps", "wait", "waits"),
    [
        (2, "@%p2 cp.async.bulk.wait_group 0;", True),
        (1, "@%p2 cp.async.bulk.wait_group 0;", False),
        (2, "", False),
    ],
)
def test_who_waited_for_stores_waits_for_the_fence_of_the_others(
    warps: int, wait: str, waits: bool
) -> None:
    early, late = (
        timed(
            LEAVING.format(wait=wait), block=32 * warps, overrides={"fence.again": f"{again}cycles"}
        )[0]
        for again in (3000, 4000)
    )
    assert late - early == (1000 if waits else 0)

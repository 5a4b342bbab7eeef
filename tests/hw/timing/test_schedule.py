"""The timed schedule on small kernels: times that can be worked out by hand, and what must hold for any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hopsim as hs
from hopsim.config import load
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import launch as gemm
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.measured.workloads.recording import INSTRUCTIONS
from tests.hw.timing.kernels import launch

CONFIG = load("h100-sxm")


def clocked(body: str, before: str = "", **options: Any) -> int:
    """Return the cycles between two reads of %clock64 around `body`, less an empty pair's."""
    gpu = hs.Gpu("h100-sxm", overrides=options.pop("overrides", None))
    out = gpu.array(np.zeros(1024, np.uint64))

    def run(inside: str) -> int:
        text = f"""
        ld.param.u64 %rd30,[out]; mov.u32 %r60,%tid.x; mul.wide.u32 %rd31,%r60,8;
        add.u64 %rd30,%rd30,%rd31;
        {before}
        mov.u64 %rd28,%clock64;
        {inside}
        mov.u64 %rd29,%clock64;
        sub.u64 %rd29,%rd29,%rd28; st.global.u64 [%rd30],%rd29; ret;"""
        launch(text, gpu=gpu, args=[out], warm="code", **options)
        return int(out.numpy()[0])

    return run(body) - run("")


def test_an_empty_kernel_costs_the_launch_overhead() -> None:
    overhead = CONFIG.launch.kernel_overhead_cycles
    assert overhead <= launch("ret;", grid=132, block=384).cycles <= overhead + 20
    # Recorded on an H100 (tests/silicon/judging/empty_kernel.json): 5,452, 9,100 and, one CTA an SM at a time, 6,716 cycles.
    assert launch("ret;", grid=1056, block=128).cycles == pytest.approx(5452, rel=0.03)
    assert launch("ret;", grid=4096, block=128).cycles == pytest.approx(9100, rel=0.03)
    alone = CONFIG.device.shared_per_cta_max_bytes
    assert launch("ret;", grid=1056, block=384, shared_bytes=alone).cycles == pytest.approx(
        6716, rel=0.06
    )


def test_dependent_additions_take_their_latency() -> None:
    chain = "add.u32 %r1,%r1,%r1;" * 20
    assert clocked(chain) == pytest.approx(20 * CONFIG.issue.latency_cycles["alu"], abs=6)


def test_shared_load_latency_and_conflicts() -> None:
    smem = CONFIG.smem.latency_cycles
    declarations = ".shared .align 16 .b8 buf[8192];"
    before = "mov.u32 %r0,buf; mov.u32 %r2,%tid.x; mad.lo.u32 %r1,%r2,{stride},%r0; st.shared.u32 [%r1],%r2;"
    times = {
        stride: clocked(
            "ld.shared.u32 %r3,[%r1]; and.b32 %r3,%r3,0; add.u32 %r1,%r1,%r3;" * 4
            # A reading of the clock waits for no arithmetic.
            + "st.shared.u32 [%r1],%r2;",
            before.format(stride=stride),
            declarations=declarations,
        )
        for stride in (4, 8, 128)
    }
    assert times[4] == pytest.approx(4 * (smem + 2 * CONFIG.issue.latency_cycles["alu"]), abs=16)
    # Recorded on an H100: two cycles for each further wavefront.
    assert times[8] - times[4] == pytest.approx(4 * 2, abs=2)
    # The first load also waits for what is left of the store before it.
    assert 4 * 62 <= times[128] - times[4] <= 5 * 62


def test_global_load_misses_then_hits() -> None:
    body = "ld.global.u32 %r1,[%rd30]; add.u32 %r2,%r1,%r1;"
    cold = clocked(body)
    l1, spread = CONFIG.l1.latency_cycles, CONFIG.dram.latency_spread_cycles
    assert cold == pytest.approx(CONFIG.dram.latency_cycles + spread * 8 / 9 + l1, rel=0.05)
    warm = clocked(body, "ld.global.u32 %r1,[%rd30]; add.u32 %r2,%r1,%r1;")
    assert warm == pytest.approx(CONFIG.l1.latency_cycles, abs=8)
    relaxed = "ld.relaxed.gpu.global.u32 %r1,[%rd30]; add.u32 %r2,%r1,%r1;"
    through = clocked(relaxed, relaxed)
    assert through == pytest.approx(CONFIG.l2.latency_near_cycles + l1, abs=16)


ACC = ", ".join(f"%acc{k}" for k in range(128))


def wgmma(n: int, count: int = 1) -> str:
    registers = ", ".join(f"%acc{k}" for k in range(n // 2))
    one = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{registers}}}, %rd1, %rd2, %p1, 1, 1, 0, 0;"
    return (
        "wgmma.fence.sync.aligned;" + one * count
        + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    )  # fmt: skip


MATRICES = {"declarations": ".shared .align 1024 .b8 tile[32768];", "block": 128, "values": False}


CONSTANT_CLOCK = {
    "clock.loaded": "1.98GHz", "clock.drop": "1Hz", "clock.change": "0.01ns", "clock.gpc_spread": "0.001%",
}  # fmt: skip
"""Cycles are those of the SM, whatever it does: one CTA leaves GPCs idle, which count those of the highest clock."""


def wgmma_time(n: int, count: int, **options: Any) -> float:
    """Return the cycles of a launch that executes `count` wgmmas, less those of one that executes none."""
    options = {**MATRICES, "warm": "code", **options}
    options["overrides"] = {**CONSTANT_CLOCK, **options.get("overrides", {})}
    before = "mov.u64 %rd1, 4611686293305360384; mov.u64 %rd2, 4611686293305360448; setp.eq.u32 %p1, 0, 0;"
    full = launch(before + wgmma(n, count) + "ret;", **options)
    return full.cycles - launch(before + "ret;", **options).cycles


@pytest.mark.parametrize("n", [64, 128, 256])
def test_one_wgmma_and_its_wait(n: int) -> None:
    """Recorded on an H100: 54 + N/2 cycles from the fence to the end of the wait."""
    assert wgmma_time(n, 1) == pytest.approx(54 + n / 2, abs=4)


def test_a_chain_of_wgmmas_runs_at_the_rate() -> None:
    assert wgmma_time(128, 40) - wgmma_time(128, 8) == pytest.approx(32 * 64, abs=4)


def test_two_warpgroups_share_the_tensor_core() -> None:
    one = wgmma_time(256, 16)
    assert wgmma_time(256, 16, block=256) - one == pytest.approx(16 * 128, abs=40)


def test_code_is_fetched_once_by_each_sm() -> None:
    """Recorded on an H100: the first pass over straight code takes 1.4 to 1.5 cycles an instruction longer on all SMs."""
    code = "fma.rn.f32 %f1,%f1,%f1,%f1;" * 200 + "ret;"
    cold, warm = (launch(code, grid=132, warm=state).cycles for state in ("nothing", "code"))
    assert cold - warm == pytest.approx(200 * CONFIG.issue.fetch_interval_all_cycles, abs=20)
    # A second CTA on each SM finds it.
    second = [launch(code, grid=264, warm=state).cycles for state in ("nothing", "code")]
    assert second[0] - second[1] <= cold - warm + 20


def test_warm_memory_is_found_in_l2() -> None:
    gpu = hs.Gpu("h100-sxm")
    data = gpu.array(np.zeros(1 << 16, np.uint32))
    body = """
    ld.param.u64 %rd1,[out]; mov.u32 %r1,%tid.x; mul.wide.u32 %rd2,%r1,4; add.u64 %rd1,%rd1,%rd2;
    ld.global.u32 %r2,[%rd1]; add.u32 %r2,%r2,1; st.global.u32 [%rd1],%r2; ret;"""
    runs = {
        state: launch(body, gpu=gpu, args=[data], warm=state)
        for state in ("nothing", "code", "memory")
    }
    assert runs["memory"].counters["dram__bytes_read.sum"] == 0
    assert runs["nothing"].counters["dram__bytes_read.sum"] == 128
    assert runs["memory"].cycles < runs["code"].cycles < runs["nothing"].cycles
    with pytest.raises(hs.errors.LaunchError, match="expected one of nothing, code, memory"):
        launch(body, gpu=gpu, args=[data], warm="hot")


def test_stores_beside_copies_do_not_run_away() -> None:
    """A store that a busy L2 holds is followed by copies: they wait for their time, and others go before them."""
    problem = GemmProblem(2048, 1920, 192)
    kernel = build("mma-multistage", problem, (128, 128, 64), 3)
    text = kernel.ptx
    at = text.index("cp.async.cg", text.index("K_LOOP:"))
    mark = """
        { .reg .b64 %mark, %all, %to; .reg .b32 %one; .reg .pred %first;
          mov.u32 %one, %tid.x; setp.eq.u32 %first, %one, 0; mov.u32 %one, %ctaid.x; mov.u64 %all, marks;
          mad.wide.u32 %to, %one, 8, %all; mov.u64 %mark, %clock64; @%first st.global.u64 [%to], %mark; }
        """
    marked = text[:at] + mark + text[at:]
    marked = marked.replace(".visible", ".global .align 8 .b64 marks[256];\n.visible", 1)
    a, b = (np.zeros(shape, ml_dtypes.bfloat16) for shape in (problem.a_shape, problem.b_shape))
    cycles: list[int] = []
    for ptx in (text, marked):
        done = gemm(
            hs.Gpu(), replace(kernel, ptx=ptx), a, b, values=False, check=False, max_cycles=30_000
        )
        assert done.result.cycles is not None
        cycles.append(done.result.cycles)
    plain, stored = cycles
    assert 0.9 * plain < stored < 1.1 * plain


def test_warps_that_leave_a_loop_count_its_turns_no_more() -> None:
    def instructions(turns: str) -> int:
        text = f"""
        ld.param.u64 %rd1,[out]; mov.u32 %r1,%tid.x; shr.u32 %r1,%r1,5; mov.u32 %r2,0;
        AGAIN:
        add.u32 %r2,%r2,1; xor.b32 %r3,%r3,%r2; setp.lt.u32 %p1,%r2,{turns}; @%p1 bra AGAIN;
        st.global.u32 [%rd1],%r3; ret;"""
        gpu = hs.Gpu("h100-sxm")
        out = gpu.array(np.zeros(1, np.uint32))
        return int(launch(text, gpu=gpu, args=[out], block=8 * 32).counters[INSTRUCTIONS])

    # Warp w goes round w times, but once at least.
    together = [instructions(str(max(warp, 1))) for warp in range(8)]
    assert 8 * instructions("%r1") == sum(together)
    assert together[7] > together[1]

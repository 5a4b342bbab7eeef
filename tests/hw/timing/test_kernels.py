"""Whole kernels under the timed schedule: what is counted, and what may not change it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hopsim as hs
from hopsim.config import load
from hopsim.hw.timing.schedule import TimedSchedule
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.launch.options import SCHEDULES
from tests.hw.timing.kernels import launch

CONFIG = load("h100-sxm")
SIZE = (256, 512, 256)


class Spans:
    """A recorder that keeps everything."""

    def __init__(self) -> None:
        self.spans: list[tuple[Any, str, float, float]] = []
        self.flows: list[tuple[str, Any, float, Any, float]] = []

    def span(self, track: Any, name: str, start: float, stop: float, **args: object) -> None:
        self.spans.append((track, name, start, stop))

    def flow(
        self, name: str, source: Any, start: float, target: Any, stop: float, op: int | None = None
    ) -> None:
        assert (op is not None) is (name == "bytes")
        self.flows.append((name, source, start, target, stop))


def gemm(
    size: tuple[int, int, int] = SIZE,
    overrides: Any = None,
    *,
    values: bool = False,
    **options: Any,
) -> Any:
    m, n, k = size
    shape = {"tile": (128, 128, 64), "stages": 3, **options}
    made = build(shape.pop("schedule", "warp-specialized"), GemmProblem(m, n, k), **shape)
    gpu = hs.Gpu("h100-sxm", overrides=overrides)
    kind = ml_dtypes.bfloat16
    random = np.random.default_rng(1)
    arrays = {
        "A": gpu.array(random.integers(-2, 3, (m, k)).astype(kind)),
        "B": gpu.array(random.integers(-2, 3, (n, k)).astype(kind)),
        "C": gpu.empty((m, n), kind),
    }
    maps = [hs.TensorMap(arrays[s.operand], box=s.box, swizzle=s.swizzle) for s in made.maps]
    args = [*maps, *(np.uint32(x) for x in made.scalars)]
    result = gpu.launch(
        hs.loads(made.ptx)[made.entry],
        grid=made.grid, block=made.block, cluster=made.cluster, args=args, shared_bytes=made.shared_bytes,
        values=values, check=False, numerics="float32",
    )  # fmt: skip
    return result, arrays


def test_bytes_of_a_gemm() -> None:
    result, _ = gemm()
    m, n, k = SIZE
    counters = result.counters
    tiles = (m // 128) * (n // 128)
    assert counters["dram__bytes_read.sum"] == 2 * (m * k + n * k)
    assert counters["dram__bytes_write.sum"] == 0
    assert counters["hopsim__l2_requested_bytes.sum"] == tiles * 2 * (128 * k + 128 * k)
    assert counters["hopsim__l2_dirty_bytes_left.sum"] == 2 * m * n
    assert counters["hopsim__tma_bytes.sum"] == tiles * (2 * 256 * k + 2 * 128 * 128)
    # m64n128k16: 4 warps count one instruction each.
    assert counters["sm__inst_executed_pipe_tensor_op_gmma.sum"] == tiles * (k // 16) * 2 * 4
    assert counters["l1tex__data_bank_conflicts_pipe_lsu.sum"] == 0
    assert counters["gpc__cycles_elapsed.max"] == result.cycles
    # Writes are looked up twice when their home is the other half.
    assert 1.3 < counters["lts__t_sectors_op_write.sum"] * 32 / (2 * m * n) < 1.7


def test_time_does_not_depend_on_values() -> None:
    timing, _ = gemm(values=False)
    full, arrays = gemm(values=True)
    assert full.cycles == timing.cycles
    assert full.stalls == timing.stalls
    assert full.counters == timing.counters
    a, b, c = (arrays[x].numpy().astype(np.float32) for x in "ABC")
    assert np.array_equal(c, (a @ b.T).astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize("schedule", ["pipelined", "warp-specialized"])
def test_the_same_run_twice_is_the_same(schedule: str) -> None:
    first, _ = gemm(schedule=schedule)
    second, _ = gemm(schedule=schedule)
    assert first.json() == second.json()


def test_stalls_are_shares() -> None:
    result, _ = gemm()
    assert sum(result.stalls.values()) == pytest.approx(1.0)
    assert {"selected", "gmma", "mbarrier"} <= result.stalls.keys()
    assert all(share > 0 for share in result.stalls.values())


@pytest.mark.parametrize(
    "change",
    [
        {"dram.latency": "1200cycles"},
        {"dram.bandwidth": "200GB/s"},
        {"l2.bandwidth": "100B/clk"},
        {"tma.latency": "600cycles"},
        {"mbarrier.wakeup_latency": "300cycles"},
        {"tensor.latency_base": "400cycles"},
        {"launch.kernel_overhead": "9000cycles"},
    ],
)
def test_slower_parts_make_the_kernel_slower(change: dict[str, str]) -> None:
    usual, _ = gemm()
    slower, _ = gemm(overrides=change)
    assert slower.cycles > usual.cycles
    assert slower.counters["dram__bytes_read.sum"] == usual.counters["dram__bytes_read.sum"]


def test_an_ideal_memory_leaves_the_tensor_core() -> None:
    ideal = {
        "dram.latency": "0cycles", "dram.bandwidth": "1000000B/clk", "l2.bandwidth": "1000000B/clk",
        "l2.latency_near": "0cycles", "l2.latency_far": "0cycles", "tma.latency": "0cycles",
        "tma.bandwidth": "1000000B/clk", "tma.issue_interval": "0cycles", "l2.bandwidth_per_sm": "1000000B/clk",
        "tma.rank_extra": ["0cycles"] * 5, "clock.loaded": "1.98GHz", "clock.drop": "1Hz",
    }  # fmt: skip
    size = (128, 128, 4096)
    usual, _ = gemm(size)
    best, _ = gemm(size, overrides=ideal)
    # 64 k-blocks of two m64n128: 4 k-steps, 64 cycles each.
    tensor = (4096 // 16) * 2 * 64
    overhead = CONFIG.launch.kernel_overhead_cycles
    assert best.cycles < usual.cycles
    assert tensor + overhead < best.cycles < 1.1 * tensor + overhead + 1500


def test_clusters_multicast_read_l2_once() -> None:
    alone, _ = gemm()
    pairs, _ = gemm(cluster=(2, 1))
    requested = "hopsim__l2_requested_bytes.sum"
    # Two CTAs along M share B: a quarter of all bytes is saved.
    assert pairs.counters[requested] == alone.counters[requested] * 3 // 4
    assert pairs.counters["dram__bytes_read.sum"] == alone.counters["dram__bytes_read.sum"]


def test_dram_traffic_grows_when_l2_is_small() -> None:
    size = (2048, 2048, 128)
    usual, _ = gemm(size)
    small, _ = gemm(size, overrides={"l2.capacity": "256KiB"})
    assert small.counters["dram__bytes_read.sum"] > usual.counters["dram__bytes_read.sum"]
    assert small.counters["dram__bytes_write.sum"] > 0
    written = (
        small.counters["dram__bytes_write.sum"] + small.counters["hopsim__l2_dirty_bytes_left.sum"]
    )
    # One line of each set was there before.
    assert written == 2 * 2048 * 2048 + (256 << 10) // 16


# -- ends of a run ---------------------------------------------------------------------------------

WAIT_FOREVER = """
mov.u32 %r0, bar;
mov.u32 %r1, 1;
mbarrier.init.shared.b64 [%r0], %r1;
W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0;
@!%p0 bra W;
ret;"""


def test_a_wait_for_nothing_is_a_deadlock() -> None:
    result = launch(WAIT_FOREVER, declarations=".shared .align 8 .b64 bar;")
    assert result.verdict == "deadlock"
    assert result.deadlock.waiting[0].kind == "mbarrier"


SPIN = "ld.param.u64 %rd0,[out]; W: ld.relaxed.gpu.global.u32 %r0,[%rd0]; setp.eq.u32 %p0,%r0,0; @%p0 bra W;"


def flagged(body: str, words: int = 1, **options: Any) -> hs.LaunchResult:
    gpu = hs.Gpu("h100-sxm")
    return launch(body, gpu=gpu, args=[gpu.array(np.zeros(words, np.uint32))], **options)


def test_an_endless_loop_that_writes_is_ended_by_the_limit() -> None:
    body = "ld.param.u64 %rd0,[out]; W: atom.global.add.u32 %r0,[%rd0],1; bra W;"
    result = flagged(body, max_cycles=20_000)
    assert result.verdict == "not-modelled"
    assert 20_000 < result.cycles < 25_000


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (f"{SPIN} ret;", ["spin", "spin"]),
        # A backoff is no progress.
        (SPIN.replace("W:", "W: nanosleep.u32 3000;") + "ret;", ["spin", "spin"]),
        (f"mov.u32 %r1,%tid.x; setp.ge.u32 %p1,%r1,32; @%p1 bra J; {SPIN} J: bar.sync 0; ret;", ["bar", "spin"]),
        (
            f"mov.u32 %r1,bar; mov.u32 %r2,1; mov.u32 %r3,%tid.x; setp.eq.u32 %p1,%r3,0; @%p1 mbarrier.init.shared.b64"
            f" [%r1],%r2; bar.sync 0; setp.ge.u32 %p1,%r3,32; @%p1 bra P; {SPIN} P: mbarrier.try_wait.parity.shared.b64"
            " %p0,[%r1],0; @!%p0 bra P; ret;",
            ["mbarrier", "spin"],
        ),
    ],
)  # fmt: skip
def test_a_spin_on_what_nobody_changes_is_a_deadlock(body: str, kinds: list[str]) -> None:
    result = flagged(body, block=64, declarations=".shared .align 8 .b64 bar;")
    assert result.verdict == "deadlock"
    assert sorted(wait.kind for wait in result.deadlock.waiting) == kinds


def test_a_spin_on_ctas_that_start_later_is_none() -> None:
    # 132 of 133 CTAs fit; half of them exit after a while, so that the last one comes and sets the flag.
    body = f"""
    ld.param.u64 %rd0,[out]; mov.u32 %r1,%ctaid.x; setp.eq.u32 %p1,%r1,132; @%p1 bra WRITE;
    and.b32 %r1,%r1,1; setp.eq.u32 %p1,%r1,0; @%p1 bra LEAVE; {SPIN}
    LEAVE: nanosleep.u32 50000; ret;
    WRITE: mov.u32 %r2,1; st.release.gpu.global.u32 [%rd0],%r2; ret;"""
    assert flagged(body, grid=133, shared_bytes=200_000).deadlock is None


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_grid_barrier_of_more_ctas_than_fit_is_a_deadlock(schedule: str) -> None:
    body = """
    ld.param.u64 %rd0,[out]; mov.u32 %r1,%nctaid.x; red.release.gpu.global.add.u32 [%rd0],1;
    W: ld.acquire.gpu.global.u32 %r0,[%rd0]; setp.lt.u32 %p0,%r0,%r1; @%p0 bra W; ret;"""
    few = {"device.sm_count": 4, "device.gpc_sm_counts": [4]}
    for grid, missing in ((4, None), (6, 2)):
        gpu = hs.Gpu("h100-sxm", overrides=few)
        flag = gpu.array(np.zeros(1, np.uint32))
        result = launch(
            body, gpu=gpu, args=[flag], grid=grid, block=1, shared_bytes=200_000, schedule=schedule
        )
        if missing is None:
            assert result.deadlock is None
        else:
            assert result.deadlock.not_started == missing
            assert result.deadlock.chains == (
                "2 of 6 CTAs (never started) -> room: the chip holds only 4 at once -> those that wait",
            )


def test_a_spin_beside_a_long_sleep_or_loop_is_none() -> None:
    for late in (
        "nanosleep.u32 900000;",
        "N: add.u32 %r3,%r3,1; setp.lt.u32 %p2,%r3,60000; @%p2 bra N;",
    ):
        body = f"""
        mov.u32 %r3,0; mov.u32 %r1,%tid.x; setp.ge.u32 %p1,%r1,32; @%p1 bra WRITE; {SPIN} ret;
        WRITE: {late} ld.param.u64 %rd0,[out]; mov.u32 %r2,1; st.relaxed.gpu.global.u32 [%rd0],%r2; ret;"""
        assert flagged(body, block=64).deadlock is None, late


@pytest.mark.parametrize("time", ["20000", "%r5"])
def test_a_sleep_that_warps_pass_by_takes_none_of_their_time(time: str) -> None:
    body = f"""
    ld.param.u64 %rd0,[out]; mov.u32 %r1,%tid.x; mov.u32 %r5,20000; bar.sync 0; setp.ge.u32 %p1,%r1,128;
    @%p1 nanosleep.u32 {time}; mov.u32 %r2,%clock; mul.wide.u32 %rd1,%r1,4; add.u64 %rd2,%rd0,%rd1;
    st.global.u32 [%rd2],%r2; ret;"""
    gpu = hs.Gpu("h100-sxm")
    clocks = gpu.array(np.zeros(256, np.uint32))
    launch(body, gpu=gpu, args=[clocks], block=256)
    first, second = clocks.numpy()[[0, 128]].tolist()
    assert first < 10_000
    assert second - first == pytest.approx(20e-6 * CONFIG.device.clock_hz, rel=0.01)


def test_whoever_counts_its_tries_gives_up() -> None:
    body = WAIT_FOREVER.replace(
        "@!%p0 bra W;", "add.u32 %r2,%r2,1; setp.ge.u32 %p1,%r2,5; @%p1 ret; @!%p0 bra W;"
    ).replace("mov.u32 %r1, 1;", "mov.u32 %r1, 1; mov.u32 %r2, 0;")
    result = launch(body, declarations=".shared .align 8 .b64 bar;")
    assert result.deadlock is None
    assert result.cycles > 4 * CONFIG.mbarrier.suspend_limit_cycles


def test_a_flag_between_ctas_arrives() -> None:
    body = """
    ld.param.u64 %rd0,[out]; mov.u32 %r1,%ctaid.x; setp.eq.u32 %p1,%r1,0; @%p1 bra WRITE;
    W: ld.acquire.gpu.global.u32 %r0,[%rd0]; setp.eq.u32 %p0,%r0,0; @%p0 bra W; ret;
    WRITE: nanosleep.u32 5000; mov.u32 %r2,1; st.release.gpu.global.u32 [%rd0],%r2; ret;"""
    gpu = hs.Gpu("h100-sxm")
    flag = gpu.array(np.zeros(1, np.uint32))
    result = launch(body, gpu=gpu, args=[flag], grid=2)
    sleep = 5e-6 * CONFIG.device.clock_hz
    assert result.cycles == pytest.approx(CONFIG.launch.kernel_overhead_cycles + sleep, abs=1500)


def test_ctas_wait_for_room() -> None:
    body = "nanosleep.u32 1000; ret;"
    one = launch(body, grid=132, block=1024).cycles
    three = launch(body, grid=132 * 5, block=1024).cycles
    # Two CTAs of 32 warps fit an SM: five need three rounds.
    sleep = 1e-6 * CONFIG.device.clock_hz
    assert 2 * sleep < three - one < 2 * sleep + 2500


LANE_TIMES = "mov.u32 %r1,%tid.x; and.b32 %r1,%r1,31; mul.lo.u32 %r1,%r1,100;"


@pytest.mark.parametrize(
    ("body", "nanoseconds"),
    [
        ("mov.u32 %r1,3100; nanosleep.u32 %r1;", 3100),
        # The lane that sleeps longest holds its warp, of those that the guard lets sleep.
        (f"{LANE_TIMES} nanosleep.u32 %r1;", 3100),
        (f"{LANE_TIMES} setp.lt.u32 %p1,%r1,1500; @%p1 nanosleep.u32 %r1;", 1400),
        ("mov.u32 %r1,3100; setp.eq.u32 %p1,%r1,0; @%p1 nanosleep.u32 %r1;", 0),
        ("mov.u32 %r1,1000; nanosleep.u32 %r1; add.u32 %r1,%r1,1100; nanosleep.u32 %r1;", 3100),
        ("mov.u32 %r1,1000; nanosleep.u32 %r1; nanosleep.u32 2100;", 3100),
        # Lanes that part after a sleep leave at its end.
        (f"{LANE_TIMES} nanosleep.u32 %r1; setp.lt.u32 %p1,%r1,1500; mov.u32 %r2,2000; @%p1 bra A; nanosleep.u32 %r2; A:", 5100),
    ],
)  # fmt: skip
def test_a_sleep_takes_the_time_in_its_register(body: str, nanoseconds: int) -> None:
    cycles = launch(f"{body} ret;").cycles - launch("ret;").cycles
    assert cycles == pytest.approx(nanoseconds * 1e-9 * CONFIG.device.clock_hz, abs=400)


def test_named_barriers_release_together() -> None:
    body = """
    mov.u32 %r0,%tid.x; setp.lt.u32 %p0,%r0,32; @!%p0 bra L; nanosleep.u32 2000; L: bar.sync 0;
    ret;"""
    result = launch(body, block=256)
    assert result.stalls["barrier"] == pytest.approx(7 / 8, abs=0.1)


# -- the timeline ----------------------------------------------------------------------------------


def test_the_recorder_hears_tma_barriers_and_tensor_core(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Spans()

    class Listening(TimedSchedule):
        def __init__(self, config: Any, **options: Any) -> None:
            super().__init__(config, **{**options, "recorder": heard})

    monkeypatch.setattr("hopsim.hw.timing.schedule.TimedSchedule", Listening)
    result, _ = gemm()
    quiet = result.cycles
    kinds = {
        track[1].split(" ")[-1] if "mbarrier" not in track[1] else "mbarrier"
        for track, *_ in heard.spans
    }
    assert {"tma", "core", "mbarrier"} <= kinds
    assert any("warps" in track[1] for track, *_ in heard.spans)
    assert all(0 <= start <= stop for _, _, start, stop in heard.spans)
    names = {name for name, *_ in heard.flows}
    assert names == {"bytes", "mbarrier", "wgmma"}
    products = [flow for flow in heard.flows if flow[0] == "wgmma"]
    # 8 tiles, 4 k-blocks, one group each; from the consumer's track to the tensor core, forward in time.
    assert len(products) == 8 * 4
    assert all(
        "warps" in source[1] and target[1] == "tensor core" for _, source, _, target, _ in products
    )
    assert all(start <= stop for _, _, start, _, stop in products)
    runs: dict[Any, float] = {}
    for track, name, start, stop in heard.spans:
        if name == "run":
            assert start >= runs.get(track, 0.0), "stretches of work of a warp overlap"
            runs[track] = stop
    loads = sum(name == "tma load" for _, name, *_ in heard.spans)
    assert loads == 8 * (256 // 64) * 2
    monkeypatch.undo()
    assert gemm()[0].cycles == quiet


def test_warm_memory_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(warm: bool) -> Any:
        gpu = hs.Gpu("h100-sxm")
        data = gpu.array(np.zeros(32 * 1024, np.uint32))
        ranges = [(data.address, data.nbytes)] if warm else []

        class Warm(TimedSchedule):
            def __init__(self, config: Any, **options: Any) -> None:
                super().__init__(config, **{**options, "warm": ranges})

        body = """
        ld.param.u64 %rd0,[out]; mov.u32 %r0,%ctaid.x; mov.u32 %r1,%tid.x; mad.lo.u32 %r2,%r0,1024,%r1;
        mul.wide.u32 %rd1,%r2,4; add.u64 %rd0,%rd0,%rd1; ld.global.u32 %r3,[%rd0]; ret;"""
        with monkeypatch.context() as patch:
            patch.setattr("hopsim.hw.timing.schedule.TimedSchedule", Warm)
            return launch(body, gpu=gpu, args=[data], grid=32, block=1024)

    cold, warm = run(False), run(True)
    assert cold.counters["dram__bytes_read.sum"] == 128 * 1024
    assert warm.counters["dram__bytes_read.sum"] == 0
    assert warm.counters["lts__t_sector_hit_rate.pct"] == 100.0
    assert warm.cycles < cold.cycles

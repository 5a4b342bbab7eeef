"""Where warps spent their time by line: all of it is told, at the line that waited, and looking at it changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import launch_dry
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.tile import Tile
from hopsim.profile.gpu import ProfilingGpu
from hopsim.profile.sources import outermost
from hopsim.profile.times import LineTimes
from hopsim.report.lines import by_source

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
SUMS = (
    HEAD
    + """.file 1 "sums.cu"
.visible .entry sums(.param .u64 x, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    .shared .align 4 .b8 all[4];
    .loc 1 3 5
    ld.param.u64 %rd0, [x];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
    add.s64 %rd1, %rd0, %rd1;
    mov.f32 %f0, 0f00000000;
again:
    .loc 1 4 9
    ld.global.f32 %f1, [%rd1];
    .loc 1 5 9
    add.f32 %f0, %f0, %f1;
    sub.u32 %r0, %r0, 1;
    setp.ne.u32 %p, %r0, 0;
    @%p bra again;
    .loc 1 6 5
    bar.sync 0;
    st.global.f32 [%rd1], %f0;
    ret;
}
"""
)


def line_of(words: str) -> int:
    return 1 + next(k for k, line in enumerate(SUMS.splitlines()) if words in line)


def summed(times: LineTimes) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in times.lines:
        for reason, cycles in one.cycles.items():
            found[reason] = found.get(reason, 0.0) + cycles
    return found


@pytest.fixture(scope="module")
def sums() -> LineTimes:
    gpu = ProfilingGpu()
    x = gpu.array(np.arange(128, dtype=np.float32))
    gpu.launch(hs.loads(SUMS)["sums"], grid=2, block=64, args=[x, np.uint32(5)])
    return gpu.line_times


@pytest.mark.parametrize(
    ("schedule", "tile", "stages"),
    [
        ("warp-specialized", Tile(64, 64, 64), 4),
        ("pingpong", Tile(64, 128, 64), 4),
        ("mma-multistage", Tile(64, 64, 32), 3),
        ("wgmma-simple", Tile(64, 64, 64), 1),
    ],
)
def test_all_time_is_told_and_cycles_are_those_of_an_unwatched_run(
    schedule: str, tile: Tile, stages: int
) -> None:
    kernel = build(schedule, GemmProblem(256, 256, 256), tile, stages)
    gpu = ProfilingGpu()
    result = launch_dry(gpu, kernel)
    assert result.json() == launch_dry(hs.Gpu(), kernel).json()
    times = gpu.line_times
    found = summed(times)
    assert found.keys() == times.cycles.keys()
    for reason, cycles in times.cycles.items():
        assert found[reason] == pytest.approx(cycles, rel=1e-9), reason
        assert cycles / times.warp_cycles == pytest.approx(result.stalls[reason])


def test_who_waits_for_a_load_is_the_line_that_reads_it(sums: LineTimes) -> None:
    by_line = {one.line: one for one in sums.lines}
    reads = by_line[line_of("add.f32 %f0")]
    assert max(reads.cycles, key=lambda reason: reads.cycles[reason]) == "long_scoreboard"
    assert "long_scoreboard" not in by_line[line_of("ld.global.f32")].cycles
    assert sums.cycles["long_scoreboard"] == pytest.approx(
        sum(one.cycles.get("long_scoreboard", 0.0) for one in sums.lines)
    )
    assert "branch_resolve" in by_line[line_of("@%p bra")].cycles
    assert "barrier" in by_line[line_of("bar.sync")].cycles


def test_instructions_and_sources(sums: LineTimes) -> None:
    by_line = {one.line: one for one in sums.lines}
    warps = 2 * 2
    assert by_line[line_of("mul.wide.u32")].instructions == warps
    assert by_line[line_of("add.f32 %f0")].instructions == 5 * warps
    source = by_line[line_of("add.f32 %f0")].source
    assert (str(source), source and source.line) == ("sums.cu:5:9", 5)
    content = sums.content()
    assert content["lines"][0]["line"] == sums.lines[0].line
    assert sum(content["warp_cycles"].values()) == pytest.approx(sums.warp_cycles, abs=0.1)


def test_loads_whose_addresses_are_loaded_are_told_too() -> None:
    gather = SUMS.replace(
        "    ld.global.f32 %f1, [%rd1];\n",
        """    ld.global.u32 %r2, [%rd1];
    mad.wide.u32 %rd2, %r2, 4, %rd0;
    ld.global.f32 %f1, [%rd2];
    add.s64 %rd1, %rd1, 128;
""",
    )
    gpu = ProfilingGpu()
    x = gpu.array(np.zeros(1024, np.uint32))
    kernel = hs.loads(gather)["sums"]
    args = [x, np.uint32(12)]
    result = gpu.launch(kernel, grid=2, block=64, args=args)
    plain = hs.Gpu()
    other = plain.launch(
        kernel, grid=2, block=64, args=[plain.array(np.zeros(1024, np.uint32)), args[1]]
    )
    assert result.json() == other.json()
    found = summed(gpu.line_times)
    for reason, cycles in gpu.line_times.cycles.items():
        assert found[reason] == pytest.approx(cycles, rel=1e-9), reason
    assert found["long_scoreboard"] > 1000


def test_what_was_inlined_counts_where_it_was_called() -> None:
    text = SUMS.replace('.file 1 "sums.cu"', '.file 1 "sums.cu"\n.file 2 "lib.h"').replace(
        "    .loc 1 5 9\n", "    .loc 2 90 1, function_name $names, inlined_at 1 5 9\n"
    )
    text += ".section .debug_str { $names: .b8 0 }\n"
    gpu = ProfilingGpu()
    x = gpu.array(np.arange(64, dtype=np.float32))
    gpu.launch(hs.loads(text)["sums"], grid=1, block=64, args=[x, np.uint32(5)])
    times = gpu.line_times
    (added,) = [one for one in times.lines if one.text.startswith("add.f32")]
    assert (str(added.source), str(added.caller)) == ("lib.h:90:1", "sums.cu:5:9")
    assert set(by_source(times.lines)) == {f"sums.cu:{line}" for line in (3, 4, 5, 6)}
    cycles = sum(sum(reasons.values()) for _, reasons in by_source(times.lines).values())
    assert cycles == pytest.approx(times.warp_cycles)


def test_calls_in_a_circle_end() -> None:
    circle = [".loc 1 1 1, inlined_at 2 2 2", ".loc 2 2 2, inlined_at 1 1 1", "nop;"]
    assert [line for line, _ in outermost(circle)] == [3]


def test_without_a_timed_launch_there_are_none() -> None:
    gpu = ProfilingGpu()
    with pytest.raises(hs.LaunchError, match="no timed launch"):
        _ = gpu.line_times
    x = gpu.array(np.arange(64, dtype=np.float32))
    arguments = {"grid": 1, "block": 64, "args": [x, np.uint32(1)]}
    gpu.launch(hs.loads(SUMS)["sums"], **arguments)
    assert gpu.line_times.lines
    gpu.launch(hs.loads(SUMS)["sums"], schedule="in-order", **arguments)
    with pytest.raises(hs.LaunchError, match="no timed launch"):
        _ = gpu.line_times

"""The CUDA backend on a real device: `make test-gpu`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner

import hopsim as hs
from hopsim.cli.app import app
from hopsim.kernels.gemm.launch import run
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.measured.program import launch, operands, read
from hopsim.kernels.micro import recording as micro
from hopsim.kernels.probes import recording
from hopsim.launch.arrays import DeviceArray

pytestmark = pytest.mark.gpu

HEADER = """
.version 8.7
.target sm_90a
.address_size 64
"""
ADD = """
.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %i, %t, %c, %n, %a, %b;
    .reg .b64 %x, %y;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    mad.lo.s32 %i, %c, 128, %t;
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    mad.wide.u32 %x, %i, 4, %x;
    mad.wide.u32 %y, %i, 4, %y;
    ld.global.u32 %a, [%x];
    ld.global.u32 %b, [%y];
    add.u32 %a, %a, %b;
    st.global.u32 [%y], %a;
    ret;
}
"""
HANG = """
.visible .entry hang(.param .u64 x)
{
    .reg .pred %p;
    .reg .b32 %a;
    .reg .b64 %x;

    ld.param.u64 %x, [x];
again:
    ld.volatile.global.u32 %a, [%x];
    setp.eq.u32 %p, %a, 0;
    @%p bra again;
    ret;
}
"""
COPY = """
.extern .shared .align 1024 .b8 smem[];
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 out)
{
    .reg .pred %p, %q;
    .reg .b32 %s, %bar, %t, %a, %at;
    .reg .b64 %m, %out;

    mov.u32 %s, smem;
    add.u32 %bar, %s, 4096;
    mov.b64 %m, map;
    cvta.param.u64 %m, %m;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %p, %t, 0;
    @%p bra wait;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 4096;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%m, {8, 4}], [%bar];
wait:
    bar.sync 0;
again:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%bar], 0;
    @!%q bra again;
    ld.param.u64 %out, [out];
loop:
    shl.b32 %at, %t, 2;
    add.u32 %at, %at, %s;
    ld.shared.u32 %a, [%at];
    mad.wide.u32 %m, %t, 4, %out;
    st.global.u32 [%m], %a;
    add.u32 %t, %t, 128;
    setp.lt.u32 %p, %t, 1024;
    @%p bra loop;
    ret;
}
"""
FAULT = """
.visible .entry fault(.param .u64 x)
{
    .reg .b32 %a;
    .reg .b64 %x;

    ld.param.u64 %x, [x];
    add.u64 %x, %x, 0x7000000000000000;
    ld.volatile.global.u32 %a, [%x];
    st.volatile.global.u32 [%x], %a;
    ret;
}
"""
ARGS = """
entry = "{entry}"
grid = 1
block = 32
[arrays.x]
shape = [4]
dtype = "uint32"
fill = 0
[[args]]
kind = "array"
array = "x"
"""
PROGRAMS = Path(__file__).parents[1] / "silicon" / "judging" / "gemm_own.json"
CLUSTER = """
.visible .entry ranks(.param .u64 out)
{
    .reg .b32 %c, %r;
    .reg .b64 %out;

    ld.param.u64 %out, [out];
    mov.u32 %c, %ctaid.x;
    mov.u32 %r, %cluster_ctarank;
    mad.wide.u32 %out, %c, 4, %out;
    st.global.u32 [%out], %r;
    ret;
}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[hs.CudaGpu]:
    with hs.CudaGpu(0) as made:
        yield made


def test_facts(device: hs.CudaGpu) -> None:
    assert device.facts.capability == (9, 0)
    assert device.facts.sm_count > 100
    assert device.facts.shared_per_cta_bytes == 232448
    assert device.facts.driver[0].isdigit()


@pytest.mark.parametrize("compiler", ["driver", "ptxas"])
@pytest.mark.parametrize("isolate", [True, False])
def test_values(compiler: str, isolate: bool) -> None:
    kernel = hs.loads(HEADER + ADD)["add"]
    x, y = np.arange(1000, dtype=np.uint32), np.full(1000, 7, np.uint32)
    with hs.CudaGpu(0, compiler=compiler, isolate=isolate) as device:
        a, b = device.array(x), device.array(y)
        result = device.launch(kernel, grid=8, block=128, args=[a, b, np.uint32(900)])
        assert np.array_equal(b.numpy(), np.where(x < 900, x + 7, 7))
    assert result.time_us > 0
    assert result.config == device.config_name


def test_repeats_put_memory_back(device: hs.CudaGpu) -> None:
    kernel = hs.loads(HEADER + ADD)["add"]
    a, b = device.array(np.ones(1000, np.uint32)), device.array(np.zeros(1000, np.uint32))
    result = device.launch(
        kernel, grid=8, block=128, args=[a, b, np.uint32(1000)], repeats=20, measure_clock=True
    )
    assert np.array_equal(b.numpy(), np.ones(1000, np.uint32))
    assert 0 < result.counters["hopsim__time_us_warm"] < 1000
    assert 0.2e9 < result.clock_hz < 2.5e9
    assert result.cycles > 0


def copied(gpu: hs.Gpu | hs.CudaGpu, out: DeviceArray, a_map: hs.TensorMap) -> np.ndarray:
    gpu.launch(
        hs.loads(HEADER + COPY)["copy"],
        1,
        128,
        1,
        [a_map, out],
        4104,
        check=False,
        schedule="in-order",
    )
    return out.numpy()


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
def test_tensor_maps(device: hs.CudaGpu, swizzle: str) -> None:
    x = np.arange(100 * 80, dtype=np.float16).reshape(100, 80)
    inner = {"none": 64, "32B": 16, "64B": 32, "128B": 64}[swizzle]
    results = []
    for gpu in (device, hs.Gpu()):
        source = gpu.array(x)
        a_map = hs.TensorMap(
            source, box=(inner, 2048 // inner), swizzle=swizzle, l2_promotion="128B"
        )
        results.append(copied(gpu, gpu.array(np.zeros(1024, np.uint32)), a_map))
    assert np.array_equal(*results)
    assert results[0].any()


def test_clusters(device: hs.CudaGpu) -> None:
    kernel = hs.loads(HEADER + CLUSTER)["ranks"]
    for size in (1, 2, 4, 8, 16):
        out = device.array(np.full(32, 99, np.uint32))
        device.launch(kernel, grid=32, block=32, cluster=size, args=[out])
        assert np.array_equal(out.numpy(), np.arange(32) % size)


@pytest.mark.parametrize("schedule", ["pipelined", "warp-specialized"])
def test_a_gemm_gives_the_simulator_s_bits(device: hs.CudaGpu, schedule: str) -> None:
    problem = GemmProblem(200, 136, 160)
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((rows, 160)).astype(ml_dtypes.bfloat16) for rows in (200, 136))
    options = {"schedule": schedule, "tile": (64, 64, 64), "stages": 3}
    real = run(device, problem, a, b, **options)
    simulated = run(
        hs.Gpu(), problem, a, b, launch_options={"timing": False, "check": False}, **options
    )
    assert np.array_equal(real.c.view(np.uint16), simulated.c.view(np.uint16))


def test_a_hang_is_a_deadlock(device: hs.CudaGpu) -> None:
    flag = device.array(np.zeros(1, np.uint32))
    result = device.launch(hs.loads(HEADER + HANG)["hang"], 1, 32, args=[flag], time_limit_s=3.0)
    assert (result.verdict, result.exit_code) == ("deadlock", 3)
    with pytest.raises(hs.DeviceError, match="was lost"):
        flag.numpy()
    assert np.array_equal(device.array(np.arange(5)).numpy(), np.arange(5))


def test_an_illegal_access_is_an_error(device: hs.CudaGpu) -> None:
    kernel = hs.loads(HEADER + ADD)["add"]
    a = device.array(np.ones(1000, np.uint32))
    with pytest.raises(hs.DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        device.launch(kernel, grid=8, block=128, args=[a, None, np.uint32(1000)])
    assert "hs.Gpu()" in caught.value.hint
    b, c = device.array(np.ones(1000, np.uint32)), device.array(np.ones(1000, np.uint32))
    device.launch(kernel, grid=8, block=128, args=[b, c, np.uint32(1000)])
    assert np.array_equal(c.numpy(), np.full(1000, 2, np.uint32))


@pytest.mark.parametrize(
    ("ptx", "entry", "code", "words"),
    [
        (HANG, "hang", 3, "kernel hang was still running after 30 s"),
        (FAULT, "fault", 5, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_the_command_line_ends_with_its_exit_code(
    tmp_path: Path, ptx: str, entry: str, code: int, words: str
) -> None:
    (tmp_path / "k.ptx").write_text(HEADER + ptx)
    (tmp_path / "args.toml").write_text(ARGS.format(entry=entry))
    done = CliRunner().invoke(
        app,
        [
            "run",
            str(tmp_path / "k.ptx"),
            "--args",
            str(tmp_path / "args.toml"),
            "--backend",
            "cuda",
        ],
    )
    assert done.exit_code == code, done.output
    assert words in done.output
    # Nobody else was taken down.
    with hs.CudaGpu(0) as device:
        assert np.array_equal(device.array(np.arange(5)).numpy(), np.arange(5))


def test_a_recorded_probe_gives_the_same_bits_again(device: hs.CudaGpu) -> None:
    folder = Path(__file__).parents[1] / "silicon"
    for group in ("matrices", "atomic", "collective"):
        assert recording.replay(cast("Any", device), folder, group, timing=False) == []


def test_a_microbenchmark(device: hs.CudaGpu) -> None:
    (chosen,) = (one for one in micro.benchmarks("latencies") if one.name == "bar_sync_32")
    row = micro.run(cast("Any", device), chosen)
    assert row["slopes"]["bar.sync"] == pytest.approx(14.0, abs=1.0)


def test_the_clock_is_one_that_the_chip_can_have(device: hs.CudaGpu) -> None:
    program = read(json.loads(PROGRAMS.read_text())[0], PROGRAMS.parent)
    given = operands(device, program.dtype, program.out_dtype, (2048, 2048, 2048))
    result = launch(device, program, (2048, 2048, 2048), 256, given, repeats=20, measure_clock=True)
    assert 1e9 < result.clock_hz <= device.facts.clock_hz * 1.01
    assert 20 < result.time_us < 60


def test_text_that_the_driver_refuses(device: hs.CudaGpu) -> None:
    module = hs.loads(HEADER + ADD.replace("add.u32 %a, %a, %b", "add.f32.u32 %a, %a, %b"))
    a = device.array(np.ones(4, np.uint32))
    with pytest.raises(hs.DeviceError, match="CUDA_ERROR_INVALID_PTX"):
        device.launch(module["add"], 1, 128, args=[a, a, np.uint32(4)])

"""The CUDA backend without a GPU: errors, marshalling, and the life of the process that owns a device."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import hopsim as hs
from hopsim.cuda import assemble, gpu
from hopsim.cuda.client import WorkerProcess
from hopsim.cuda.requests import DriverFailure
from hopsim.isa.program.kernel import Kernel
from hopsim.layout.tensormap import TensorMapSpec

PTX = """
.version 8.7
.target sm_90a
.address_size 64
"""
ENTRY = """
.visible .entry {name}(.param .u64 out, .param .u32 n, .param .align 64 .b8 map[128])
{{
    ret;
}}
"""


def kernel(name: str, text: str = PTX) -> Kernel:
    return hs.loads(text + ENTRY.format(name=name))[name]


@pytest.fixture(scope="module")
def device() -> Iterator[hs.CudaGpu]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        patch.setattr(gpu, "DEVICE", "fake_device:FakeDevice")
        with hs.CudaGpu(0, time_limit_s=5.0) as made:
            yield made


def arguments(device: hs.CudaGpu) -> list[object]:
    out = device.array(np.zeros(64, np.uint32))
    source = device.array(np.zeros((64, 64), np.float16))
    return [
        out,
        np.uint32(7),
        hs.TensorMap(source, box=(64, 8), swizzle="128B", l2_promotion="256B"),
    ]


# --- what is missing ------------------------------------------------------------------------------


@pytest.mark.parametrize("isolate", [True, False])
def test_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, isolate: bool
) -> None:
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "__init__.py").write_text("")  # hides an installed cuda-bindings
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "cuda"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(hs.DeviceError, match="extra `cuda` is not installed") as caught:
        hs.CudaGpu(0, isolate=isolate)
    assert "pip install 'hopsim[cuda]'" in str(caught.value)
    assert caught.value.where == "CUDA device 0"


def test_a_device_that_is_not_there(device: hs.CudaGpu) -> None:
    with pytest.raises(hs.DeviceError, match="there is no device 9") as caught:
        hs.CudaGpu(9)
    assert caught.value.hint == "another number"


def test_a_process_that_does_not_start(device: hs.CudaGpu) -> None:
    with pytest.raises(hs.DeviceError, match="did not start: exit status 7"):
        hs.CudaGpu(8)


def test_the_compiler_is_one_of_two() -> None:
    with pytest.raises(hs.DeviceError, match="expected one of driver, ptxas"):
        hs.CudaGpu(0, compiler="nvcc")


def test_ptxas_missing_and_refusing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text('#!/bin/sh\necho "ptxas $4, line 3; error: no such thing" >&2\nexit 1\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(
        hs.DeviceError, match=r"ptxas mine\.ptx, line 3; error: no such thing"
    ) as caught:
        assemble.assemble("x", "mine.ptx")
    assert "/tmp" not in str(caught.value).replace(str(tmp_path), "")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(hs.DeviceError, match="ptxas is not on PATH"):
        assemble.assemble("x", "mine.ptx")


# --- arrays and launches --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.float32, np.uint8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
)
def test_arrays_keep_their_bytes(device: hs.CudaGpu, dtype: type) -> None:
    x = np.arange(24).astype(dtype).reshape(2, 3, 4)
    a = device.array(x)
    assert (a.shape, a.dtype, a.nbytes) == (x.shape, x.dtype, x.nbytes)
    assert np.array_equal(a.numpy().view(np.uint8), x.view(np.uint8))
    a.write(x + x)
    assert np.array_equal(a.numpy(), x + x)
    with pytest.raises(hs.LaunchError, match="make a new array"):
        a.write(np.zeros(3, np.float64))


def test_empty_and_freed(device: hs.CudaGpu) -> None:
    before = device.call("count")
    a, b = device.empty((3, 5), np.float32), device.array(np.zeros(0, np.int32))
    assert (a.shape, b.numpy().size, device.call("count")) == ((3, 5), 0, before + 2)
    del a, b
    gc.collect()
    assert device.call("count") == before


def test_parameters_arrive_as_the_entry_lays_them_out(device: hs.CudaGpu) -> None:
    args = arguments(device)
    result = device.launch(kernel("echo"), grid=(2, 3), block=32, args=args)
    out, source = args[0], args[2].array
    raw = out.numpy().view(np.uint8).tobytes()
    assert int.from_bytes(raw[:8], "little") == out.address
    assert int.from_bytes(raw[8:12], "little") == 7
    spec = TensorMapSpec.decode(raw[64:192])
    assert (spec.global_address, spec.dims, spec.box) == (source.address, (64, 64), (64, 8))
    assert spec.l2_promotion == 3
    assert (result.backend, result.config, result.grid, result.block) == (
        "cuda",
        "Fake H100",
        (2, 3, 1),
        (32, 1, 1),
    )
    assert (result.time_us, result.cycles, result.checked, result.exit_code) == (
        4.0,
        None,
        False,
        4,
    )
    assert result.not_modelled[0].why.startswith("check=False")
    assert result.counters == {
        "launch__registers_per_thread": 24, "hopsim__local_bytes_per_thread": 0, "hopsim__time_us_cold": 4.0,
    }  # fmt: skip
    assert '"backend": "cuda"' in result.json()


def test_repeats_and_clock(device: hs.CudaGpu) -> None:
    args = arguments(device)
    result = device.launch(kernel("echo"), 1, 32, args=args, repeats=3, measure_clock=True)
    assert (result.counters["hopsim__time_us_warm"], result.clock_hz, result.cycles) == (
        2.5,
        1.5e9,
        6000,
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"values": False}, "values=False"),
        ({"numerics": "float32"}, "numerics='float32'"),
        ({"trace": True}, "trace=True"),
        ({"observers": [1]}, "observers"),
        ({"measure_clock": True}, "measure_clock without repeats"),
        ({"grid": 0}, "grid 0"),
        ({"shared_bytes": 300_000}, "the limit is 232448"),
        ({"cluster": 3, "grid": 4}, "not a multiple of cluster"),
        ({"args": []}, "takes 3 arguments, got 0"),
        (
            {"args": [hs.Gpu().empty(64, np.uint32), np.uint32(5), None]},
            "got an array of another GPU",
        ),
    ],
)
def test_what_a_device_cannot_do(
    device: hs.CudaGpu, options: dict[str, object], words: str
) -> None:
    given = {"grid": 1, "block": 32, "args": arguments(device), **options}
    with pytest.raises(hs.LaunchError, match=words):
        device.launch(kernel("echo"), **given)


def test_text_that_the_driver_refuses(device: hs.CudaGpu) -> None:
    with pytest.raises(hs.DeviceError, match="INVALID_PTX\nline 3: no"):
        device.launch(kernel("echo", "// refused" + PTX), 1, 32, args=arguments(device))


# --- hangs, faults, crashes -----------------------------------------------------------------------


def test_a_hang_is_a_deadlock_and_the_process_is_replaced(device: hs.CudaGpu) -> None:
    args = arguments(device)
    result = device.launch(kernel("hang"), 1, 32, args=args, time_limit_s=0.2)
    assert (result.verdict, result.exit_code) == ("deadlock", 3)
    assert result.deadlock.in_flight == ("kernel hang was still running after 0.2 s on Fake H100",)
    assert "all arrays on it are lost" in result.not_modelled[1].why
    with pytest.raises(hs.DeviceError, match="was lost when the device's process was replaced"):
        args[0].numpy()
    with pytest.raises(hs.DeviceError, match="was lost"):  # also through a tensor map
        device.launch(
            kernel("echo"), 1, 32, args=[device.empty(64, np.uint32), np.uint32(1), args[2]]
        )
    assert device.launch(kernel("echo"), 1, 32, args=arguments(device)).time_us == 4.0


def test_a_fault_is_an_error_and_the_process_is_replaced(device: hs.CudaGpu) -> None:
    args = arguments(device)
    with pytest.raises(
        hs.DeviceError, match="ILLEGAL_ADDRESS; its process was ended, and all arrays"
    ):
        device.launch(kernel("fault"), 1, 32, args=args)
    with pytest.raises(hs.DeviceError, match="was lost"):
        device.launch(kernel("echo"), 1, 32, args=args)
    assert device.launch(kernel("echo"), 1, 32, args=arguments(device)).backend == "cuda"


def test_a_crash_is_an_error(device: hs.CudaGpu) -> None:
    with pytest.raises(hs.DeviceError, match=r"process ended \(exit status 11\), and all arrays"):
        device.launch(kernel("crash"), 1, 32, args=arguments(device))
    assert np.array_equal(device.array(np.arange(3)).numpy(), np.arange(3))


def test_the_process_ends_with_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    worker = WorkerProcess((0,), "fake_device:FakeDevice")
    number = worker.process_id
    assert worker.call("facts", limit_s=5.0).name == "Fake H100"
    with pytest.raises(DriverFailure, match="ILLEGAL"):
        raise DriverFailure("ILLEGAL", "x", True)
    del worker
    gc.collect()
    assert not Path(f"/proc/{number}").exists()


def test_without_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(gpu, "DEVICE", "fake_device:FakeDevice")
    with hs.CudaGpu(0, isolate=False) as device:
        assert (
            device.launch(kernel("echo"), 1, 32, args=arguments(device), timing=False).time_us
            is None
        )

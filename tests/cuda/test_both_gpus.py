"""The simulator and the CUDA backend take the same launches, and tell the same mistakes in the same words."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.cuda import gpu as cuda_gpu

PTX = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry empty(.param .u64 out, .param .u32 n)
{
    ret;
}
.visible .entry of_64(.param .u64 out, .param .u32 n) .reqntid 64
{
    ret;
}
"""
MODULE = hs.loads(PTX)


@pytest.fixture(scope="module")
def gpus() -> Iterator[tuple[hs.Gpu, hs.CudaGpu]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        patch.setattr(cuda_gpu, "DEVICE", "fake_device:FakeDevice")
        with hs.CudaGpu(0, isolate=False) as device:
            yield hs.Gpu(), device


def taken(launch: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, kind and default of each argument."""
    parameters = inspect.signature(launch).parameters.values()
    return [(one.name, one.kind, one.default) for one in parameters]


def test_both_take_the_same_arguments_with_the_same_defaults() -> None:
    ours, theirs = taken(hs.Gpu.launch), taken(hs.CudaGpu.launch)
    assert theirs[: len(ours)] == ours
    # What a device has besides is asked for by name, and does nothing unless it is.
    more = theirs[len(ours) :]
    assert [name for name, _, _ in more] == ["repeats", "measure_clock", "time_limit_s"]
    assert all(kind is inspect.Parameter.KEYWORD_ONLY and not given for _, kind, given in more)


@pytest.mark.parametrize("method", ["array", "empty", "owns", "encode"])
def test_both_take_the_same_of_arrays_and_maps(method: str) -> None:
    assert taken(getattr(hs.Gpu, method)) == taken(getattr(hs.CudaGpu, method))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kernel": "empty"},
        {"kernel": MODULE},
        {"schedule": "fastest"},
        {"numerics": "float64"},
        {"warm": "hot"},
        {"seed": 1.5},
        {"max_cycles": -1},
        {"max_cycles": "many"},
        {"trace": True, "schedule": "seeded"},
        {"trace": True, "timing": False},
        {"grid": 0},
        {"grid": (1, 2, 3, 4)},
        {"grid": (1, 65536)},
        {"block": 1025},
        {"block": 1.5},
        {"kernel": MODULE["of_64"], "block": 32},
        {"cluster": 2},
        {"cluster": 32, "grid": 32},
        {"shared_bytes": -1},
        {"shared_bytes": 232449},
        {"shared_bytes": None},
        {"args": []},
        {"args": [None, 1.0]},
        {"args": [None, np.uint64(1)]},
    ],
    ids=lambda given: ", ".join(given),
)
def test_both_tell_a_mistake_in_the_same_words(
    gpus: tuple[hs.Gpu, hs.CudaGpu], wrong: dict[str, Any]
) -> None:
    usual = {"kernel": MODULE["empty"], "grid": 1, "block": 32, "args": [None, np.uint32(0)]}
    told: list[tuple[str, str]] = []
    for gpu in gpus:
        with pytest.raises(hs.LaunchError) as caught:
            gpu.launch(**{**usual, **wrong})
        told.append((str(caught.value), caught.value.hint))
    assert told[0] == told[1]


def test_both_run_what_is_right(gpus: tuple[hs.Gpu, hs.CudaGpu]) -> None:
    for gpu in gpus:
        options: dict[str, Any] = {"warm": "code", "seed": np.int64(3), "max_cycles": 10**6}
        result = gpu.launch(MODULE["empty"], (1, 1), 32, None, [None, np.uint32(0)], 0, **options)
        assert result.is_finished

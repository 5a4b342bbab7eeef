"""What nvcc makes of CUB, cooperative groups, libcu++ and nvcuda::wmma (tests/data/nvcc/libraries.cu): results and races.

An H100 gave the same bits for all ten; `groups.cu` is held to what its source says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs
from hopsim.hazards.facts import CheckOptions

DATA = Path(__file__).parents[1] / "data" / "nvcc"
MODULE = hs.load(DATA / "libraries.ptx")
RNG = np.random.default_rng(7)
FLOATS = RNG.standard_normal(1024).astype(np.float32)
INTS = RNG.integers(-1000, 1000, 512).astype(np.int32)
LANES = np.arange(64)


def run(
    name: str,
    *arrays: NDArray[Any],
    grid: int = 1,
    block: int = 128,
    cluster: int = 1,
    module: hs.Module = MODULE,
    **options: Any,
) -> tuple[list[tuple[str, str]], NDArray[Any]]:
    """Launch a kernel; return (rule, level) of its findings, and its last array."""
    gpu = hs.Gpu()
    given = [gpu.array(one) for one in arrays]
    result = gpu.launch(module[name], grid, block, cluster, given, **options)
    assert result.verdict == "clean", result.hazards
    return [(one.rule, one.level) for one in result.hazards], given[-1].numpy()


def test_everything_is_modelled() -> None:
    assert [name for name in MODULE if MODULE[name].unsupported] == []


def test_block_reduce() -> None:
    found, sums = run("block_reduce", FLOATS[:512], np.zeros(2, np.float32), grid=2, block=256)
    assert found == []
    assert sums == pytest.approx(FLOATS[:512].reshape(2, 256).sum(1, dtype=np.float64), abs=1e-4)


def test_block_scan() -> None:
    found, sums = run("block_scan", INTS, np.zeros_like(INTS))
    assert found == []
    assert (sums == np.cumsum(INTS)).all()


def test_radix_sort() -> None:
    found, ordered = run("radix_sort", INTS.copy())
    assert found == []
    assert (ordered == np.sort(INTS)).all()


def test_histogram() -> None:
    values = (INTS & 0xFF).astype(np.uint8)
    found, counts = run("histogram", values, np.zeros(256, np.uint32))
    assert found == []
    assert (counts == np.bincount(values, minlength=256)).all()


def test_groups_of_threads() -> None:
    x = INTS[:64]
    found, y = run("groups", x, np.zeros(64, np.int32), block=64)
    warps = x.reshape(2, 32)
    wanted = np.repeat(warps.sum(1), 32) * 3 + np.repeat(x.reshape(8, 8).max(1), 8)
    wanted += (np.cumsum(warps, 1) - warps).ravel()
    wanted += np.where(LANES % 2, 16 * 1000 + LANES % 32 // 2, 0)
    assert found == []
    assert (y == wanted).all()


def test_a_cluster() -> None:
    found, y = run("cluster", np.zeros(64, np.int32), grid=2, block=32, cluster=2)
    assert found == []
    assert (y == (1 - LANES // 32) * 10 + LANES % 4 + 2).all()


def test_copies() -> None:
    zeros = np.zeros(256, np.float32)
    for name, wanted in (("group_copy", FLOATS[255::-1]), ("bulk_copy", FLOATS[:256] + 1)):
        found, y = run(name, FLOATS[:256], zeros, block=256)
        assert found == [], name
        assert (y == wanted).all(), name


def test_a_pipeline() -> None:
    """One lane of each warp says that all are through, after a `match` that orders nothing by PTX."""
    strict, _ = run(
        "pipeline", FLOATS, np.zeros(128, np.float32), check=CheckOptions(lane_values="nothing")
    )
    # Two stages, each with a barrier that is waited for and one that is arrived on.
    assert strict == [("HS214", "note")] * 4
    found, sums = run("pipeline", FLOATS, np.zeros(128, np.float32))
    assert found == []
    wanted = FLOATS.reshape(8, 128)[:, ::-1].astype(np.float64).sum(0)
    assert sums == pytest.approx(wanted, abs=1e-5)


def test_fragments() -> None:
    a, b = (RNG.integers(-8, 9, (16, 64)).astype(np.float16) for _ in "ab")
    found, c = run("fragments", a, b, np.zeros((16, 16), np.float32), block=32)
    assert found == []
    assert (c == 2 * a.astype(np.float32) @ b.astype(np.float32).T).all()


def test_groups_beyond_a_warp_and_of_some_lanes() -> None:
    module = hs.load(DATA / "groups.ptx")
    x = INTS[:128]
    found, y = run("wide_tiles", x, np.zeros(128, np.int32), module=module)
    tiles = x.reshape(2, 64)
    assert found == []
    assert (y.reshape(2, 64) == (tiles.sum(1) + tiles[:, 5])[:, None]).all()
    # The last warp to come goes on by what one of its lanes acquired.
    for order in ("adversarial", "seeded"):
        found, y = run(
            "wide_tiles", x, np.zeros(128, np.int32), module=module, schedule=order, seed=1
        )
        assert found == []
    found, y = run("odd_lanes", x, np.zeros(128, np.int32), module=module)
    wanted = np.zeros(128, np.int32)
    for warp in range(4):
        odd = [lane for lane in range(warp * 32, warp * 32 + 32) if x[lane] & 1]
        for place, lane in enumerate(odd):
            wanted[lane] = x[odd[-1]] + x[odd[max(place - 1, 0)]]
    assert found == []
    assert (y == wanted).all()

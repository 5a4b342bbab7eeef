"""Phases of GEMMs: clocks change nothing, the recording is of these programs, and the simulator spends its time alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.errors import HopsimError
from hopsim.kernels.gemm.expected import expected, is_admissible
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, arguments
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.silicon import operands
from hopsim.kernels.measured.ncu_export import middle
from hopsim.kernels.measured.phases import (
    MARKS,
    PHASES,
    PROFILES,
    Case,
    cases,
    lengths,
    run,
    with_clocks,
    with_rows,
)
from hopsim.kernels.probes.probe import load_module

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "phases.json").read_text())
QUICK = (
    "gemm_pipelined_bf16_bf16_128x128x64_s4_w1 512x512x512",
    "gemm_warp_specialized_fp16_fp16_256x128x64_s4_w2 512x512x512",
    "gemm_cooperative_e4m3_bf16_128x256x128_s4_w2 512x512x512",
)


def test_each_case_is_recorded_as_it_is() -> None:
    found = with_rows(ROWS)
    assert [case.name for case, _ in found] == [case.name for case in cases()]
    for case, row in found:
        assert row["grid"] == case.kernel.grid[0], case.name
        assert len(row["cycles"]) == PROFILES
        assert list(row["phases"]) == [*PHASES, "longest CTA"]
        # Phases are medians over CTAs: their sum is about a CTA's time, and that is less than the launch.
        total = sum(row["phases"][name] for name in PHASES)
        assert 0.6 * row["phases"]["longest CTA"] < total < 1.02 * row["phases"]["longest CTA"]
        assert row["phases"]["longest CTA"] < min(row["cycles"]) - 3500
        # The launch ends so long after its last SM, by the clock of the slowest GPC; others count more.
        slowest, active = (median(row[key]) for key in ("cycles_slowest_gpc", "cycles_active"))
        assert 3500 < slowest - active < 4650, case.name
        assert slowest < median(row["cycles"]) < 1.11 * slowest
    with pytest.raises(HopsimError, match="no longer those that were recorded"):
        with_rows(ROWS[1:])


@pytest.mark.parametrize("schedule", ["pipelined", "cooperative"])
def test_clocks_change_neither_bits_nor_order(schedule: str) -> None:
    problem = GemmProblem(136, 144, 200)
    kernel = build(schedule, problem, (128, 64, 64), 3, warpgroups=2)
    a, b = operands(problem)
    gpu = hs.Gpu()
    c = gpu.array(np.zeros((problem.m, problem.n), NUMPY_TYPES[problem.out_dtype]))
    clocks = gpu.array(np.zeros((kernel.grid[0] * kernel.block // 32, MARKS), np.uint64))
    given = [*arguments(kernel, gpu.array(a), gpu.array(b), c), clocks]
    text = load_module(with_clocks(kernel.ptx))[kernel.entry]
    result = gpu.launch(text, kernel.grid, kernel.block, 1, given, kernel.shared_bytes)
    assert (result.verdict, result.hazards) == ("clean", ())
    assert is_admissible(c.numpy(), expected(kernel, a, b)).all()
    table = clocks.numpy().astype(np.int64)
    assert (table[:, -1] > table[:, 0]).all()
    multiplies = table[:, 2] > 0
    assert multiplies.sum() == kernel.grid[0] * 8
    # The stores are those of one warp of each warpgroup.
    assert (np.diff(table[multiplies][:, :5], axis=1) > 0).all()


@pytest.mark.parametrize("name", QUICK)
def test_products_take_as_long_as_recorded(name: str) -> None:
    ((case, row),) = ((case, row) for case, row in with_rows(ROWS) if case.name == name)
    found, _ = run(hs.Gpu(), case, values=False, check=False)
    products = ("main loop", "last products")
    assert sum(found[one] for one in products) == pytest.approx(
        sum(row["phases"][one] for one in products), rel=0.04
    )
    ends = ("epilogue", "stores")
    assert sum(found[one] for one in ends) == pytest.approx(
        sum(row["phases"][one] for one in ends), rel=0.1
    )


@pytest.mark.parametrize("cluster", [(2, 1), (1, 2)])
def test_clocks_in_clusters(cluster: tuple[int, int]) -> None:
    kernel = build(
        "warp-specialized", GemmProblem(256, 256, 200), (128, 128, 64), 3, cluster=cluster
    )
    found, _ = run(hs.Gpu(), Case(kernel, with_clocks(kernel.ptx)), values=False, check=False)
    # The barriers of all are ready after a barrier of the cluster, and no CTA ends before the other.
    assert found["start"] > 1000
    assert found["longest CTA"] > 500 + sum(found[name] for name in PHASES)


def test_lengths_are_those_of_the_last_warp_and_the_middle_cta() -> None:
    # Three CTAs of two warps; the first warp of each does not multiply.
    rows: list[list[int]] = []
    for cta in range(3):
        at = 1000 * cta
        rows.append([at, at + 5, 0, 0, 0, 0, 0, at + 6])
        rows.append([at + 1, at + 9, *(at + 10 * number + cta for number in range(2, 7)), at + 90])
    found = lengths(np.array(rows, np.uint64), 3)
    assert found == {
        "start": 9.0, "first data": 12.0, "main loop": 10.0, "last products": 10.0, "epilogue": 10.0, "stores": 10.0,
        "longest CTA": 90.0,
    }  # fmt: skip
    assert middle([{"a": 3.0}, {"a": 1.0}, {"a": 2.0}]) == {"a": 2.0}


def test_a_kernel_without_the_phases_is_refused() -> None:
    kernel = build("mma-simple", GemmProblem(64, 64, 64), (64, 64, 16), 1)
    with pytest.raises(AssertionError, match="bar"):
        with_clocks(kernel.ptx)
    assert replace(Case(kernel, ""), ptx="x").name.endswith("64x64x64")

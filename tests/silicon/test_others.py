"""Kernels beside the ladder are predicted as measured: attention and fp8-scaled on an H100, convolutions on an H200."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any, cast

import pytest

from hopsim.kernels import others
from hopsim.kernels.convolution import launch as convolution
from hopsim.kernels.gemm import kernel as gemm
from hopsim.kernels.gemm import launch as gemm_launch
from hopsim.launch.device import Device
from hopsim.runtime.gpu import Gpu

FILE = Path(__file__).parent / "ladder" / "others.json"
RECORDED: dict[tuple[str, int], dict[str, Any]] = {
    (row["entry"], row["flop"]): row
    for row in json.loads(FILE.read_text(encoding="utf-8"))["kernels"]
}
WITHIN = {
    "attention_bf16_d64_kv128_s2": 0.03,
    "attention_bf16_d128_kv128_s2": 0.05,
    "attention_bf16_d128_kv128_s2_causal": 0.08,
    "fp8_scaled_bf16_128x128_s4_c1x1": 0.05,
    "fp8_scaled_bf16_128x160_s4_c1x1": 0.07,
}
"""By entry, of the smallest problem."""


def test_the_recorded_programs_are_those_of_today() -> None:
    gpu = cast(Device, Gpu())
    rows = [row for row, _ in others.cases(gpu)]
    assert {(row["entry"], row["flop"]): row["ptx_sha256"] for row in rows} == {
        key: row["ptx_sha256"] for key, row in RECORDED.items()
    }


@pytest.mark.parametrize("entry", WITHIN)
def test_the_smallest_problem_takes_as_long_as_recorded(entry: str) -> None:
    gpu = cast(Device, Gpu())
    row, go = next((row, go) for row, go in others.cases(gpu) if row["entry"] == entry)
    measured = median(RECORDED[entry, row["flop"]]["cycles"])
    assert go(values=False, check=False).cycles == pytest.approx(measured, rel=WITHIN[entry])


def on_an_h200(name: str) -> list[dict[str, Any]]:
    file = Path(__file__).parent / "h200" / "ladder" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))["kernels"]


CONVOLUTIONS = on_an_h200("convolutions")
CHOSEN = {0: 0.08, 9: 0.05, 11: 0.05, 12: 0.05}
"""Row, and within what: of the quickest to simulate."""


@pytest.mark.parametrize("name", ["convolutions", "waves"])
def test_what_an_h200_recorded_are_the_kernels_of_today(name: str) -> None:
    rows = [row for row, _ in others.SETS[name].cases(cast(Device, Gpu("h200-sxm")))]
    names = ("schedule", "entry", "flop", "grid", "ptx_sha256")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in on_an_h200(name)
    ]


def test_waves_of_few_products_are_too_quick_by_what_is_said_of_them() -> None:
    # D-SERVED: one tile an SM is told well with 64 columns, and badly with 256 that wait for each other's stores.
    gpu = cast(Device, Gpu("h200-sxm"))
    rows = on_an_h200("waves")
    found: dict[int, float] = {}
    for number in (10, 12):
        schedule, problem, tile, stages = others.WAVES[number]
        kernel = gemm.build(schedule, problem, tile, stages, warpgroups=2)
        cycles = gemm_launch.launch_dry(gpu, kernel, check=False).cycles
        assert cycles is not None
        found[problem.n] = cycles / median(rows[number]["cycles"]) - 1
    assert found[64] == pytest.approx(0, abs=0.06)
    assert found[256] == pytest.approx(-0.15, abs=0.04)


@pytest.mark.parametrize("number", CHOSEN)
def test_a_convolution_takes_as_long_as_recorded(number: int) -> None:
    gpu = cast(Device, Gpu("h200-sxm"))
    problem, tile, stages, persistent = others.CONVOLUTIONS[number]
    kernel = convolution.build(problem, tile, stages, persistent=persistent)
    got = convolution.launch_dry(gpu, kernel, check=False).cycles
    assert got == pytest.approx(median(CONVOLUTIONS[number]["cycles"]), rel=CHOSEN[number])

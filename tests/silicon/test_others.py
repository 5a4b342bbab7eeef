"""Kernels beside the ladder are predicted as measured: attention and fp8-scaled on an H100, convolutions on an H200."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any, cast

import pytest

from hopsim.kernels import others
from hopsim.kernels.convolution import launch as convolution
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


ON_AN_H200 = Path(__file__).parent / "h200" / "ladder" / "convolutions.json"
CONVOLUTIONS: list[dict[str, Any]] = json.loads(ON_AN_H200.read_text(encoding="utf-8"))["kernels"]
CHOSEN = {0: 0.08, 9: 0.05, 11: 0.05, 12: 0.05}
"""Row, and within what: of the quickest to simulate."""


def test_the_recorded_convolutions_are_those_of_today() -> None:
    rows = [row for row, _ in others.convolutions(cast(Device, Gpu("h200-sxm")))]
    names = ("entry", "flop", "grid", "images", "height", "channels", "filters", "ptx_sha256")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in CONVOLUTIONS
    ]


@pytest.mark.parametrize("number", CHOSEN)
def test_a_convolution_takes_as_long_as_recorded(number: int) -> None:
    gpu = cast(Device, Gpu("h200-sxm"))
    problem, tile, stages, persistent = others.CONVOLUTIONS[number]
    kernel = convolution.build(problem, tile, stages, persistent=persistent)
    got = convolution.launch_dry(gpu, kernel, check=False).cycles
    assert got == pytest.approx(median(CONVOLUTIONS[number]["cycles"]), rel=CHOSEN[number])

"""GEMMs of CUTLASS 3 as its host code launches them: the bits of an H100, no hazard, and its cycles as far as hopsim has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

import hopsim as hs
from hopsim.kernels.measured import captured
from hopsim.kernels.measured.captured import CYCLES, Captured

FOLDER = Path(__file__).parent
CASES = captured.load(FOLDER)
SMALL = (256, 384, 512)
ORDERS: Final[tuple[dict[str, Any], ...]] = (
    {"schedule": "in-order"},
    {"schedule": "seeded", "seed": 3},
    {"schedule": "adversarial"},
)
HABITS: Final[Mapping[str, set[str]]] = {
    # No fence.proxy.async between cp.async and the wgmma that reads what it brought.
    "cp_async_bf16_128x128x64": {"HS103"},
}
WITHIN: Final = 0.1
FURTHER: Final[Mapping[str, float]] = {
    "cooperative_bf16_no_smem_128x128x64_2x1": 0.25,
    "cp_async_bf16_128x128x64": 0.32,
    "pingpong_f16_bias_relu_128x128x64": 0.16,
    "pingpong_f16_sums_f16_64x128x64_1x2": 0.16,
    "stream_k_bf16_128x128x64": 0.2,
}
"""Programs that are further off: D-CUTLASS."""


def of_size(*sizes: tuple[int, int, int]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in CASES if case.size in sizes]


@pytest.mark.parametrize("case", of_size(SMALL))
def test_it_gives_the_bits_of_an_h100_and_nothing_is_found(case: Captured) -> None:
    result, digest = captured.run(hs.Gpu(), case)
    assert digest == case.row["d_sha256"]
    assert {one.rule for one in result.hazards if one.level == "hazard"} == HABITS.get(
        case.program, set()
    )
    assert result.cycles == pytest.approx(
        median(case.row["measured"][CYCLES]), rel=FURTHER.get(case.program, WITHIN)
    )
    alone, _ = captured.run(hs.Gpu(), case, values=False, check=False)
    assert alone.cycles == result.cycles


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS, ids=lambda one: one["schedule"])
@pytest.mark.parametrize("case", of_size(SMALL))
def test_it_does_so_in_any_order(case: Captured, order: dict[str, Any]) -> None:
    result, digest = captured.run(hs.Gpu(), case, **order)
    assert digest == case.row["d_sha256"]
    assert {one.rule for one in result.hazards if one.level == "hazard"} == HABITS.get(
        case.program, set()
    )


@pytest.mark.parametrize("case", of_size((512, 512, 512)))
def test_it_takes_the_time_of_an_h100(case: Captured) -> None:
    result, _ = captured.run(hs.Gpu(), case, values=False, check=False)
    within = FURTHER.get(case.program, WITHIN)
    assert result.cycles == pytest.approx(median(case.row["measured"][CYCLES]), rel=within)


def test_kept_predictions_are_of_these_launches() -> None:
    held = json.loads((FOLDER.parents[1] / "docs" / "cutlass.json").read_text(encoding="utf-8"))
    assert set(held["predicted"]) <= {case.name for case in CASES}

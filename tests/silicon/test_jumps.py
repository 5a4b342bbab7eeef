"""Jumps to code that nobody has executed take as long as on an H200."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import hopsim as hs
from hopsim.kernels.micro.recording import benchmarks, run

ROWS: dict[str, dict[str, Any]] = {
    row["name"]: row
    for row in json.loads((Path(__file__).parent / "h200" / "micro.json").read_text())
}
JUMPS = {one.name: one for one in benchmarks("jumps")}


def cycles(name: str) -> tuple[list[float], list[float]]:
    """Return what the jumps of the first pass take here and on silicon."""
    found = run(hs.Gpu("h200-sxm"), JUMPS[name], check=False)["cycles"]
    labels = [label for label in found if not label.startswith("pass 1")]
    return [found[label] for label in labels], [ROWS[name]["cycles"][label] for label in labels]


@pytest.mark.parametrize(
    ("gap", "rel"), [("512B_1", 0.1), ("512B_132", 0.15), ("2048B_1", 0.1), ("2048B_132", 0.1), ("32768B_1", 0.15), ("32768B_132", 0.25)]
)  # fmt: skip
def test_a_jump_takes_as_long_by_how_far_it_leads(gap: str, rel: float) -> None:
    here, there = cycles(f"jumps_over_{gap}")
    assert median(here[1:]) == pytest.approx(median(there[1:]), rel=rel)


@pytest.mark.parametrize("ctas", [1, 132])
@pytest.mark.parametrize("tour", ["tour1_1024B", "tour2_1024B", "tour1_2048B"])
def test_jumps_back_and_forth_take_as_long_in_all(tour: str, ctas: int) -> None:
    """The first jump into a chunk of code brings all of it."""
    here, there = cycles(f"jumps_{tour}_{ctas}")
    assert sum(here) == pytest.approx(sum(there), rel=0.15)
    assert (
        sum(one > 300 for one in here)
        == {"tour1_1024B": 1, "tour2_1024B": 1, "tour1_2048B": 3}[tour]
    )

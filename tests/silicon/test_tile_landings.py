"""When the first stages of walks around tiles land: as recorded, and here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hopsim as hs
from hopsim.kernels.micro import tile_landings
from hopsim.kernels.micro.recording import run
from hopsim.kernels.micro.tile_walks import TileWalk

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "micro.json").read_text())
LANDED: dict[str, list[float]] = {
    row["name"]: list(row["cycles"].values())
    for row in ROWS if row["name"].startswith("tile_landings_")
}  # fmt: skip
ALONE, ALL, FEW_ROWS_OF_A = "1x1", "12x11", "4x33"


def first(ctas: str, rows: int, depth: int) -> float:
    """Return when the first stage lands, in cycles."""
    return LANDED[f"tile_landings_{ctas}_{rows}r_{rows}r_d{depth}"][0]


@pytest.mark.parametrize("rows", [64, 128])
def test_stages_asked_for_later_hold_up_the_first_one(rows: int) -> None:
    """Recorded on an H100: of one SM alone by 27 to 33 cycles; where all ask, by as much with four stages as with two."""
    for depth in (2, 4):
        assert 27 <= first(ALONE, rows, depth) - first(ALONE, rows, 1) <= 33
        for ctas in (ALL, FEW_ROWS_OF_A):
            assert 80 <= first(ctas, rows, depth) - first(ctas, rows, 1) <= 190
    for ctas in (ALL, FEW_ROWS_OF_A):
        assert abs(first(ctas, rows, 4) - first(ctas, rows, 2)) < 35


@pytest.mark.parametrize(
    ("ctas", "rows", "depth", "within"),
    [
        (ALONE, 64, 1, 0.04), (ALONE, 64, 4, 0.05), (ALONE, 128, 2, 0.03), (ALONE, 128, 4, 0.05),
        (ALL, 64, 1, 0.065), (ALL, 64, 2, 0.06), (ALL, 128, 1, 0.05), (ALL, 128, 2, 0.1), (ALL, 128, 4, 0.12),
        (FEW_ROWS_OF_A, 64, 2, 0.08), (FEW_ROWS_OF_A, 64, 4, 0.12), (FEW_ROWS_OF_A, 128, 2, 0.06),
    ],
)  # fmt: skip
def test_stages_land_when_they_do_on_silicon(
    ctas: str, rows: int, depth: int, within: float
) -> None:
    one = TileWalk(*map(int, ctas.split("x")), rows, rows, depth)
    row = run(hs.Gpu(), tile_landings.benchmark(one), repeats=0, check=False, warm="code")
    assert list(row["cycles"].values()) == pytest.approx(LANDED[row["name"]], rel=within)

"""Boxes and rows asked for at a fixed pace: what SMs of a TPC, and CTAs of an SM, share by how late they ask."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import pytest

from hopsim.kernels.micro import paced
from tests.silicon.joined import FOLDER, recorded_share, rows, simulated

LAST: Final = {
    row["name"]: row["cycles"]["last box"]
    for row in json.loads((FOLDER / "micro.json").read_text(encoding="utf-8"))
    if row["name"].startswith("paced_")
}
SHARES: Final = {
    name: recorded_share(row) for name, row in rows().items() if name.startswith("paced_")
}
"""The first rounds, out of device memory, included."""


def assert_between(which: str, bounds: Sequence[tuple[int, float, float]]) -> None:
    """(How late, more than this, less than that) of the shares of some."""
    for late, least, most in bounds:
        assert least < SHARES[f"paced_{which}_late{late}"] < most, late


def test_all_are_recorded() -> None:
    names = [one.name for one in paced.shapes()]
    assert list(LAST) == list(SHARES) == names


@pytest.mark.parametrize("how", ["tma", "copies"])
def test_an_sm_shares_for_some_100_cycles(how: str) -> None:
    """Recorded on an H100: pairs share nearly all 25 cycles apart, half at 75, a tenth at 100; a GPC that is just full makes it no longer."""
    assert_between(
        f"{how}_tpc_every512",
        [
            (0, 0.5, 0.55), (25, 0.5, 0.54), (50, 0.57, 0.61), (75, 0.74, 0.8), (100, 0.93, 0.97), (150, 0.95, 0.97),
        ],
    )  # fmt: skip
    assert_between(
        f"{how}_tpc_every256",
        [(0, 0.5, 0.53), (100, 0.87, 0.89), (200, 0.9, 0.92), (400, 0.93, 0.95)],
    )


def test_ctas_of_an_sm_join_and_take_the_way_all_the_same() -> None:
    """Recorded on an H100: asked for more than an SM is given, they look up half, and get no more than boxes of their own.

    With 32 bytes a cycle for each SM they fall behind by 7 %; where there is room, they share as SMs do.
    """
    for late in (0, 200, 400):
        name = f"paced_tma_2_ctas_every512_late{late}"
        assert SHARES[name] < 0.6
        assert LAST[name] / (paced.BOXES * 512) == pytest.approx(1.068, abs=0.004)
    assert_between(
        "tma_2_ctas_every1024",
        [(0, 0.58, 0.6), (50, 0.64, 0.66), (100, 0.78, 0.8), (200, 0.95, 0.97)],
    )


@pytest.mark.parametrize(
    ("how", "late", "within", "comes"),
    [
        ("tma", 0, 0.05, 0.15), ("tma", 50, 0.09, 0.15), ("tma", 100, 0.09, 0.15),
        # What waits for its turn by cp.async comes later here (DEVIATIONS D-L2BW).
        ("copies", 0, 0.01, 0.25), ("copies", 50, 0.09, 0.33), ("copies", 100, 0.09, 0.33),
    ],
)  # fmt: skip
def test_the_later_one_asks_the_less_it_shares(
    how: str, late: int, within: float, comes: float
) -> None:
    name = f"paced_{how}_tpc_every512_late{late}"
    (one,) = (paced.benchmark(one) for one in paced.shapes() if one.name == name)
    share, figures = simulated(one)
    assert share == pytest.approx(SHARES[name], abs=within)
    # The last box is asked for when all before have had their time.
    asked = (paced.BOXES - 1) * 512
    assert figures["last box"] - asked == pytest.approx(LAST[name] - asked, rel=comes)

"""What each SM gets while all load tiles out of L2: SMs of small CPCs more, where much is on its way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

import hopsim as hs
from hopsim.kernels.micro import steady_walks
from hopsim.kernels.micro.recording import run

ROWS: Final[dict[str, dict[str, Any]]] = {
    row["name"]: row["cycles"]
    for row in json.loads((Path(__file__).parent / "micro.json").read_text(encoding="utf-8"))
    if row["name"].startswith("steady_")
}
ALL, LEAST, MOST = (
    "bytes a clock", "bytes a clock of an SM, 10 of 100 get less", "bytes a clock of an SM, 90 of 100 get less",
)  # fmt: skip
FULL_BYTES: Final = 100 << 10
"""On its way to each SM: less than this leaves room in every CPC."""


def on_way(one: steady_walks.SteadyWalk) -> int:
    ctas_per_sm = -(-one.ctas // 132)
    return ctas_per_sm * one.depth * one.stage_bytes


def test_sms_get_alike_until_a_cpc_is_full() -> None:
    """Recorded on an H100: a tenth of the SMs gets a third more than another where 128 KiB and more are on the way to each."""
    for one in steady_walks.shapes():
        spread = ROWS[one.name][MOST] / ROWS[one.name][LEAST]
        if on_way(one) > FULL_BYTES:
            assert 1.29 < spread < 1.7, one.name
        elif one.name == "steady_pairs_64r_d4":
            # The one exception, and why is not known.
            assert spread == pytest.approx(1.25, abs=0.01)
        elif not one.skew_cycles:
            assert spread < 1.2, one.name


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize(("depth", "within"), [(1, 0.03), (2, 0.05), (4, 0.05)])
def test_one_sm_alone(rows: int, depth: int, within: float) -> None:
    """Boxes of one SM hold each other up a little."""
    name = f"steady_alone_{rows}r_d{depth}"
    (one,) = (one for one in steady_walks.shapes() if one.name == name)
    found = run(hs.Gpu(), steady_walks.benchmark(one), 0, check=False)["cycles"]
    assert found[ALL] == pytest.approx(ROWS[name][ALL], rel=within)


def test_all_wait_longer_than_one_though_they_read_the_same() -> None:
    """Recorded on an H100: L2 has a quarter to look up, and yet boxes come 7 to 47 % later than to one SM alone."""
    for rows in (64, 128):
        for depth, least, most in ((1, 1.08, 1.12), (2, 1.06, 1.26), (4, 1.39, 1.48)):
            alone = ROWS[f"steady_alone_{rows}r_d{depth}"][ALL]
            together = ROWS[f"steady_all_{rows}r_d{depth}"][ALL]
            assert least < 132 * alone / together < most, (rows, depth)


def test_pairs_that_start_a_little_apart_come_together() -> None:
    """Recorded on an H100; what the model lacks (DEVIATIONS D-CPC): here 50 cycles are enough to keep them apart."""
    together = ROWS["steady_pairs_128r_d4"][ALL]
    for skew, share in ((20, 1.0), (50, 1.0), (100, 0.97), (200, 0.80), (400, 0.55)):
        assert ROWS[f"steady_pairs_128r_d4_skew{skew}"][ALL] / together == pytest.approx(
            share, abs=0.02
        )


@pytest.mark.parametrize(
    "name",
    [
        "steady_own_128r_d8",
        "steady_12x11_64r_64r_d4",
        "steady_12x11_128r_128r_d4",
        "steady_12x22_128r_128r_d2",
    ],
)
def test_all_sms_get_what_was_recorded(name: str) -> None:
    (one,) = (one for one in steady_walks.shapes() if one.name == name)
    found = run(hs.Gpu(), steady_walks.benchmark(one), 0, check=False)["cycles"]
    assert found[ALL] == pytest.approx(ROWS[name][ALL], rel=0.11)
    spread, recorded = (row[MOST] / row[LEAST] for row in (found, ROWS[name]))
    assert spread == pytest.approx(recorded, rel=0.16)

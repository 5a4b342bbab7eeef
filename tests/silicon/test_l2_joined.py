"""What SMs ask of L2 together: shares of look-ups, against Nsight Compute's of the same microbenchmarks."""

from __future__ import annotations

from typing import Final

import pytest

from hopsim.kernels.measured.l2_joined import chosen
from tests.silicon.joined import FOLDER, recorded_share, rows, simulated

ROWS: Final = rows()
WITHIN: Final = {
    "sharing_own_132_c1_d2_64r": 0.001,
    "sharing_pairs_132_c1_d1": 0.01,
    "sharing_fours_132_c1_d1_64r": 0.02,
    "sharing_all_132_c1_d4": 0.04,
    "tile_walk_tma_12x11_128r_128r_d1": 0.08,
    "tile_walk_tma_12x11_64r_64r_d4": 0.04,
    # Rows that begin within sectors: they take as long as on an H100, and share more here (D-TILES).
    "tile_walk_tma_12x11_64r_128r_d4_p4112": 0.09,
    # Lanes whose pairs lie in two sectors each: 1.5 times as many are asked for as without.
    "tile_walk_copies_12x11_64r_128r_d4_p4112": 0.15,
    # SMs outside of GPCs join what those of the smallest GPC ask for, which they do not on an H100 (D-CPC).
    "tile_walk_tma_4x4_128r_128r_d2": 0.16,
}
"""By name, how far the share of what is looked up may lie from the recorded one."""


def test_all_are_counted() -> None:
    names = [one.name for one in chosen()]
    assert names == list(ROWS)
    # Those at a fixed pace, and pairs, are newer than the recording on an H200.
    older = [name for name in names if not name.startswith(("paced_", "pair_walk_"))]
    assert older == list(rows(FOLDER / "h200"))


def test_four_sms_share_at_most() -> None:
    for name, row in ROWS.items():
        assert 0.25 <= recorded_share(row) <= 1.005, name


@pytest.mark.parametrize("name", WITHIN)
def test_shares_are_those_of_silicon(name: str) -> None:
    (one,) = (one for one in chosen() if one.name == name)
    share, _ = simulated(one, values=False)
    assert share == pytest.approx(recorded_share(ROWS[name]), abs=WITHIN[name])

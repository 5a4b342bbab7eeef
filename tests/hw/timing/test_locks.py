"""A lock goes from lane to lane of a warp as quickly as on an H100."""

from __future__ import annotations

import pytest

from tests.hw.timing.recorded import ROWS, simulated


def test_a_lock_goes_from_lane_to_lane() -> None:
    measured = ROWS["lock_in_a_warp"]["cycles"]
    cycles = simulated("lock_in_a_warp", "locks")
    assert cycles == pytest.approx(measured, rel=0.15)

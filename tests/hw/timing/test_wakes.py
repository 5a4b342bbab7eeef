"""Whoever waits for an mbarrier goes on as soon after an arrival as on an H100: a whole warp, and lanes apart from theirs."""

from __future__ import annotations

from typing import Final

import pytest

from hopsim.kernels.micro.clocked import slopes
from hopsim.kernels.micro.wakes import DELAYS
from tests.hw.timing.recorded import ROWS, simulated

FIRST: Final = 171.0
"""When lanes that are apart look first after they have begun to wait, in cycles."""
INTERVAL: Final = 148.4
"""From one look to the next."""


@pytest.mark.parametrize("name", ["wake_whole", "wake_alone"])
def test_who_waits_with_all_that_is_left_of_its_warp_is_woken(name: str) -> None:
    for cycles in (ROWS[name]["cycles"], simulated(name, "wakes")):
        after = [cycles[f"{delay}, goes on"] - cycles[f"{delay}, arrival"] for delay in DELAYS]
        assert after == pytest.approx([46] * len(DELAYS), abs=2)


@pytest.mark.parametrize("name", ["wake_apart", "wake_around"])
def test_lanes_that_others_of_their_warp_wait_for_look_from_time_to_time(name: str) -> None:
    # (Of lanes around whom others branched, one look after 4,000 cycles came half an interval early on an H100.)
    delays = DELAYS[:-1] if name == "wake_around" else DELAYS
    for cycles in (ROWS[name]["cycles"], simulated(name, "wakes")):
        for delay in delays:
            arrival, on = cycles[f"{delay}, arrival"], cycles[f"{delay}, goes on"]
            looks = round((on - FIRST) / INTERVAL)
            assert on == pytest.approx(FIRST + looks * INTERVAL, abs=20), delay
            # It is the first look that can see it.
            assert on - arrival > 40, delay
            assert looks == 0 or on - arrival < INTERVAL + 56, delay


def test_the_state_of_an_arrival_comes_as_late_as_recorded() -> None:
    (found,) = slopes(simulated("mbarrier_state", "wakes")).values()
    (recorded,) = ROWS["mbarrier_state"]["slopes"].values()
    assert found == pytest.approx(recorded, rel=0.1)

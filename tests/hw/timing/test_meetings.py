"""Atomics of all SMs on few words, and `match`, take as long as on an H100."""

from __future__ import annotations

from typing import Final

import pytest

from hopsim.kernels.micro.meetings import BESIDE
from tests.hw.timing.recorded import ROWS, simulated

WITHIN: Final = {
    "red_word_8": 0.01,
    "red_word_l1_8": 0.05,
    "red_line_8": 0.06,
    "red_sectors_8": 0.06,
    "red_sectors_at_512_8": 0.05,
    "red_random_256_8": 0.05,
    "red_random_256_at_512_8": 0.05,
    "red_random_4096_8": 0.2,
    "red_word_f32_8": 0.03,
    "cas_word_8": 0.03,
    "cas_random_256_8": 0.02,
    "cas_random_4096_8": 0.04,
    "cas_random_1m_8": 0.05,
}
"""How far the last of 132 SMs may lie from the recording, as a share."""
QUICK: Final = ("red_random_256_at_512_8", "cas_random_4096_8")


def latest(cycles: dict[str, float]) -> float:
    (found,) = (value for label, value in cycles.items() if label.endswith("latest SM"))
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in WITHIN],
)
def test_atomics_that_meet_take_as_long_as_recorded(name: str) -> None:
    recorded = latest(ROWS[f"meetings_{name}"]["cycles"])
    assert latest(simulated(f"meetings_{name}", "meetings")) == pytest.approx(
        recorded, rel=WITHIN[name]
    )


@pytest.mark.slow
def test_two_lines_take_as_long_as_one_where_they_have_a_unit_together() -> None:
    names = {behind: f"meetings_red_line_and_{behind}_8" for behind in BESIDE}
    for cycles in (
        {behind: latest(ROWS[name]["cycles"]) for behind, name in names.items()},
        {behind: latest(simulated(name, "meetings")) for behind, name in names.items()},
    ):
        together = {behind for behind, took in cycles.items() if took > 30_000}
        assert together == {1, 4, 5}
        for behind, took in cycles.items():
            assert took == pytest.approx(39_200 if behind in together else 19_700, rel=0.09)


@pytest.mark.parametrize("name", ["any_w1", "any_w4", "any_w16", "all_w1", "all_w16"])
def test_a_match_takes_as_long_for_each_value_as_recorded(name: str) -> None:
    found, recorded = simulated(f"match_{name}", "matches"), ROWS[f"match_{name}"]["cycles"]
    assert found.keys() == recorded.keys()
    for label, cycles in recorded.items():
        # A chain begins some 30 cycles late on an H100.
        assert found[label] == pytest.approx(cycles, rel=0.03, abs=32), label

"""Atomic units of L2: what a warp's lanes ask of them, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.timing.atomic_units import AtomicUnits, Does

L2 = load("h100-sxm").l2
BLOCK = 1024
LEAST, PART, WHOLE, AGAIN = (
    L2.atomic_request_cycles,
    L2.atomic_sector_cycles,
    L2.atomic_whole_sector_cycles,
    L2.atomic_again_cycles,
)
LANES = np.arange(32, dtype=np.uint64)
FLOAT = L2.atomic_float_cycles


def took(
    addresses: np.ndarray | int, lanes: int = 32, *, width: int = 4, does: Does = Does.ADD
) -> float:
    return AtomicUnits(L2).take(0.0, addresses, lanes, width=width, does=does)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (0 * LANES, PART + 31 * AGAIN),  # one word
        (LANES % 8 * 4, WHOLE + 3 * AGAIN),  # the words of a sector, each by four lanes
        (LANES * 4, 4 * WHOLE),  # the words of a line
        (LANES * 32, 16 * PART),  # a word of 32 sectors: 16 of each of two units
        (
            LANES * 32 + 512,
            8 * PART,
        ),  # half of them of one block, half of the next: eight of each of four
        (
            LANES * 32 + 256,
            16 * PART,
        ),  # lines 2, 3, 6 and 7 have a unit, 4 and 5 another, 8 and 9 a third
        (LANES * 128, 4 * LEAST),  # a word of 32 lines: four of each of eight units
        (LANES * BLOCK, LEAST),  # each its own unit
    ],
)
def test_what_a_warp_takes(addresses: np.ndarray, expected: float) -> None:
    base = np.uint64(0x7F00_0000_0000)
    assert took(addresses.astype(np.uint64) + base) == pytest.approx(expected)


def test_sums_of_floats_at_one_word_wait_for_each_other() -> None:
    assert took(0 * LANES, does=Does.ADD_FLOATS) == pytest.approx(32 * FLOAT)
    two_warps = np.concatenate([0 * LANES, LANES * 4])
    assert took(two_warps, 64, does=Does.ADD_FLOATS) == pytest.approx(33 * FLOAT)
    # Where few meet, other words take longer than one of them.
    assert took(LANES * 32, does=Does.ADD_FLOATS) == took(LANES * 32)
    assert FLOAT > AGAIN


def test_sectors_that_lanes_add_to_as_a_whole() -> None:
    pairs = LANES * 8
    assert took(pairs, width=8) == pytest.approx(8 * WHOLE)
    assert took(pairs, width=4) == pytest.approx(8 * PART)
    assert took(pairs * 2, width=8) == pytest.approx(8 * PART)


def test_words_that_are_compared_take_longer() -> None:
    assert took(LANES * 4, does=Does.COMPARE) == pytest.approx(4 * L2.atomic_compare_cycles)
    assert took(LANES * 32, does=Does.COMPARE) == pytest.approx(16 * L2.atomic_compare_cycles)


def test_one_address_for_all_is_that_of_each_lane() -> None:
    assert took(0x1000) == took(0 * LANES + np.uint64(0x1000))
    assert took(0x1000, 1) == LEAST


def test_warps_are_served_one_after_the_other_by_a_unit_and_beside_each_other_by_others() -> None:
    line = 4 * LANES

    def both(behind: int) -> float:
        units = AtomicUnits(L2)
        units.take(0.0, line, 32)
        return units.take(0.0, line + np.uint64(behind), 32)

    shared = [number for number in range(1, 9) if both(128 * number) == 8 * WHOLE]
    assert shared == [1, 4, 5]
    units = AtomicUnits(L2)
    assert units.take(0.0, line, 32) == 4 * WHOLE
    assert units.take(100.0, line, 32) == 100.0 + 4 * WHOLE


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 700), min_size=32, max_size=96), st.integers(0, 5))
def test_against_a_naive_count(words: list[int], base: int) -> None:
    addresses = [4 * word + base * 256 for word in words]
    busy: dict[tuple[int, bool], float] = {}
    for first in range(0, len(addresses), 32):
        warp = addresses[first : first + 32]
        for line in {one // 128 for one in warp}:
            cycles = 0.0
            for sector in {one // 32 for one in warp if one // 128 == line}:
                most = max(warp.count(one) for one in warp if one // 32 == sector)
                same = {one for one in warp if one // 32 == sector}
                cycles += (WHOLE if len(same) == 8 else PART) + (most - 1) * AGAIN
            unit = (line // 8, line % 8 in (0, 1, 4, 5))
            busy[unit] = busy.get(unit, 0.0) + max(cycles, LEAST)
    found = took(np.array(addresses, np.uint64), len(addresses))
    assert found == pytest.approx(max(busy.values()))

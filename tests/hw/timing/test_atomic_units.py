"""Atomic units of L2: what a warp's lanes ask of them, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.timing.atomic_units import AtomicUnits

L2 = load("h100-sxm").l2
UNIT = L2.atomic_unit_bytes
LEAST, SECTOR, AGAIN = (
    L2.atomic_request_cycles,
    L2.atomic_sector_cycles,
    L2.atomic_again_cycles,
)
LANES = np.arange(32, dtype=np.uint64)
FLOAT = L2.atomic_float_cycles


def took(addresses: np.ndarray | int, lanes: int = 32, *, floats: bool = False) -> float:
    return AtomicUnits(L2).take(0.0, addresses, lanes, floats=floats)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (0 * LANES, SECTOR + 31 * AGAIN),  # one word
        (LANES % 8 * 4, SECTOR + 3 * AGAIN),  # the words of a sector, each by four lanes
        (LANES * 4, 4 * SECTOR),  # the words of a line
        (LANES * 32, 16 * SECTOR),  # a word of 32 sectors: 16 of each of two units
        (LANES * 128, 4 * LEAST),  # a word of 32 lines: four of each of eight units
        (LANES * UNIT, LEAST),  # each its own unit
    ],
)
def test_what_a_warp_takes(addresses: np.ndarray, expected: float) -> None:
    base = np.uint64(0x7F00_0000_0000)
    assert took(addresses.astype(np.uint64) + base) == pytest.approx(expected)


def test_sums_of_floats_at_one_word_wait_for_each_other() -> None:
    assert took(0 * LANES, floats=True) == pytest.approx(32 * FLOAT)
    two_warps = np.concatenate([0 * LANES, LANES * 4])
    assert took(two_warps, 64, floats=True) == pytest.approx(33 * FLOAT)
    # Where few meet, other words take longer than one of them.
    assert took(LANES * 32, floats=True) == took(LANES * 32)
    assert FLOAT > AGAIN


def test_one_address_for_all_is_that_of_each_lane() -> None:
    assert took(0x1000) == took(0 * LANES + np.uint64(0x1000))
    assert took(0x1000, 1) == LEAST


def test_warps_are_served_one_after_the_other_by_a_unit_and_beside_each_other_by_others() -> None:
    units = AtomicUnits(L2)
    line = 4 * LANES
    assert units.take(0.0, line, 32) == 4 * SECTOR
    assert units.take(0.0, line + np.uint64(128), 32) == 8 * SECTOR
    assert units.take(0.0, line + np.uint64(UNIT), 32) == 4 * SECTOR
    assert units.take(100.0, line, 32) == 100.0 + 4 * SECTOR


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 700), min_size=32, max_size=96), st.integers(0, 5))
def test_against_a_naive_count(words: list[int], base: int) -> None:
    addresses = [4 * word + base * 256 for word in words]
    busy: dict[int, float] = {}
    for first in range(0, len(addresses), 32):
        warp = addresses[first : first + 32]
        for line in {one // 128 for one in warp}:
            cycles = 0.0
            for sector in {one // 32 for one in warp if one // 128 == line}:
                most = max(warp.count(one) for one in warp if one // 32 == sector)
                cycles += SECTOR + (most - 1) * AGAIN
            unit = line * 128 // UNIT
            busy[unit] = busy.get(unit, 0.0) + max(cycles, LEAST)
    found = took(np.array(addresses, np.uint64), len(addresses))
    assert found == pytest.approx(max(busy.values()))

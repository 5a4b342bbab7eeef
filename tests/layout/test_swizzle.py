from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.layout.swizzle import Swizzle, swizzle_address, swizzle_addresses

MODES = list(Swizzle)


def by_bits(address: int, mode: Swizzle) -> int:
    """The same rule, bit by bit: bit 4+i is xored with bit 7+i."""
    for i in range(mode.value):
        address ^= ((address >> (7 + i)) & 1) << (4 + i)
    return address


@pytest.mark.parametrize("mode", MODES)
def test_every_address_of_two_periods_matches_the_bit_rule(mode: Swizzle) -> None:
    addresses = np.arange(2048, dtype=np.int64)
    expected = [by_bits(int(a), mode) for a in addresses]
    assert swizzle_addresses(addresses, mode).tolist() == expected
    assert [swizzle_address(int(a), mode) for a in addresses] == expected


@pytest.mark.parametrize("mode", MODES)
def test_it_is_a_bijection_and_its_own_inverse_on_one_period(mode: Swizzle) -> None:
    addresses = np.arange(mode.period_bytes, dtype=np.int64)
    once = swizzle_addresses(addresses, mode)
    assert sorted(once.tolist()) == addresses.tolist()
    assert swizzle_addresses(once, mode).tolist() == addresses.tolist()


def test_first_column_of_a_128b_tile_walks_the_diagonal() -> None:
    assert [swizzle_address(row * 128, Swizzle.B128) % 128 // 16 for row in range(9)] == [
        0, 1, 2, 3, 4, 5, 6, 7, 0,
    ]  # fmt: skip


def test_64b_pairs_rows_and_32b_changes_every_fourth_row() -> None:
    rows64 = [swizzle_address(row * 64, Swizzle.B64) % 64 // 16 for row in range(9)]
    rows32 = [swizzle_address(row * 32, Swizzle.B32) % 32 // 16 for row in range(9)]
    assert rows64 == [0, 0, 1, 1, 2, 2, 3, 3, 0]
    assert rows32 == [0, 0, 0, 0, 1, 1, 1, 1, 0]


def test_widths_and_periods() -> None:
    assert [m.width_bytes for m in MODES] == [16, 32, 64, 128]
    assert [m.period_bytes for m in MODES] == [16, 256, 512, 1024]


@settings(deadline=None)
@given(st.integers(0, 2**20), st.integers(0, 255), st.sampled_from(MODES))
def test_whole_periods_pass_through(address: int, periods: int, mode: Swizzle) -> None:
    shift = periods * 1024
    assert swizzle_address(address + shift, mode) == swizzle_address(address, mode) + shift

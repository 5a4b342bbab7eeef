from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.timing.shared_memory import Banks, SharedPipe
from hopsim.kernels.micro.patterns import ELEMENTS, SHARED_WARPS

RECORDED = Path(__file__).parents[2] / "silicon" / "micro.json"
SMEM = load("h100-sxm").smem
LANES = np.arange(32, dtype=np.uint64)


@pytest.mark.parametrize(
    ("stride", "count_bytes", "expected"),
    [
        (4, 4, (1, 1)),  # consecutive words
        (8, 4, (2, 1)),  # every second word: two words in each even bank
        (128, 4, (32, 1)),  # a column of a 32-wide f32 array
        (132, 4, (1, 1)),  # the same, padded
        (0, 4, (1, 1)),  # broadcast
        (8, 8, (2, 2)),  # 64 bits a lane: half-warps
        (16, 16, (4, 4)),  # 128 bits a lane: quarters
        (128, 16, (32, 4)),  # rows of 128 bytes: eight lanes in the same four banks
        (144, 16, (4, 4)),
        (1, 1, (1, 1)),  # four lanes share a word
        (2, 2, (1, 1)),
        (256, 8, (32, 2)),
    ],
)
def test_known_patterns(stride: int, count_bytes: int, expected: tuple[int, int]) -> None:
    assert Banks(SMEM).wavefronts(0x400 + LANES * np.uint64(stride), count_bytes, 32) == expected


def test_one_address_for_all_is_one_wavefront_a_warp_and_two_of_16_bytes() -> None:
    assert Banks(SMEM).wavefronts(0x400, 4, 1) == (1, 1)
    assert Banks(SMEM).wavefronts(0x400, 8, 32) == (1, 1)
    assert Banks(SMEM).wavefronts(0x400, 16, 128) == (8, 8)


def recorded_patterns() -> list[Any]:
    """Each pattern of `shared_patterns_*`, with its wavefronts on an H100: cycles of eight warps, an eighth of them."""
    rows = {row["name"]: row for row in json.loads(RECORDED.read_text(encoding="utf-8"))}
    return [
        pytest.param(
            words, *pattern, rows[f"shared_patterns_v{words}"]["slopes"][label] / SHARED_WARPS,
            id=f"{words} words, {label}",
        )
        for words in (1, 2, 4)
        for label, pattern in ELEMENTS.items()
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "shift", "mask", "stride", "recorded"), recorded_patterns())
def test_lanes_that_read_the_same_in_pairs_take_the_recorded_wavefronts(
    words: int, shift: int, mask: int, stride: int, recorded: float
) -> None:
    lanes = np.arange(32, dtype=np.uint64)
    element = (lanes >> np.uint64(shift)) & np.uint64(mask)
    addresses = element * np.uint64(4 * words * stride)
    assert Banks(SMEM).wavefronts(addresses, 4 * words, 32)[0] == round(recorded)


def test_a_warpgroup_is_four_warps() -> None:
    lanes = np.arange(128, dtype=np.uint64)
    assert Banks(SMEM).wavefronts(lanes * np.uint64(4), 4, 128) == (4, 4)
    assert Banks(SMEM).wavefronts(lanes * np.uint64(128), 4, 128) == (128, 4)


def test_swizzled_rows_do_not_collide() -> None:
    """Eight lanes read one 16-byte column of rows of 128 bytes; the 128B swizzle spreads it over all banks."""
    row = np.arange(32, dtype=np.uint64)
    chunk = np.uint64(3) ^ (row & np.uint64(7))
    assert Banks(SMEM).wavefronts(row * np.uint64(128) + chunk * np.uint64(16), 16, 32) == (4, 4)


def phase_lanes(addresses: list[int], count_bytes: int) -> int:
    lanes = 32 // max(1, count_bytes // 4)
    if count_bytes > 4 and len(addresses) % 32 == 0:
        for distance in (1, 2):
            if all(addresses[lane] == addresses[lane ^ distance] for lane in range(len(addresses))):
                return 2 * lanes
    return lanes


def naive(addresses: list[int], count_bytes: int) -> int:
    lanes = phase_lanes(addresses, count_bytes)
    total = 0
    for first in range(0, len(addresses), lanes):
        words = {
            (a + 4 * k) // 4
            for a in addresses[first : first + lanes]
            for k in range(max(1, count_bytes // 4))
        }
        total += max(sum(1 for w in words if w % 32 == bank) for bank in range(32))
    return total


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.integers(0, 4000), min_size=1, max_size=64),
    st.sampled_from([0, 1, 2]),
)
def test_against_a_naive_count(count_bytes: int, places: list[int], paired: int) -> None:
    if paired:
        places = [places[(lane & ~paired) % len(places)] for lane in range(64)]
    addresses = [place * count_bytes for place in places]
    found, ideal = Banks(SMEM).wavefronts(
        np.array(addresses, np.uint64), count_bytes, len(addresses)
    )
    assert found == naive(addresses, count_bytes)
    assert ideal == -(-len(addresses) // phase_lanes(addresses, count_bytes))


def test_remembered_patterns_do_not_depend_on_the_row() -> None:
    banks = Banks(SMEM)
    pattern = LANES * np.uint64(64)
    first = banks.wavefronts(pattern, 4, 32)
    assert banks.wavefronts(pattern + np.uint64(128 * 77), 4, 32) == first
    assert banks.wavefronts(pattern + np.uint64(4), 4, 32) == first
    assert len(banks._seen) == 2


def test_the_pipe_serves_one_wavefront_a_cycle() -> None:
    pipe = SharedPipe(SMEM)
    assert pipe.book(10.0, 4, 1) == 14.0
    assert pipe.book(11.0, 2, 2) == 16.0
    assert pipe.book(100.0, 1, 1) == 101.0
    assert (pipe.wavefronts, pipe.conflicts, pipe.busy_cycles) == (7, 3, 7.0)


def test_what_is_not_counted_takes_the_pipe_too() -> None:
    pipe = SharedPipe(SMEM)
    assert pipe.book(0.0, 8, 8, counted=False) == 8.0
    assert (pipe.wavefronts, pipe.conflicts, pipe.busy_cycles) == (0, 0, 8.0)

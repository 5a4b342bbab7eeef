"""Metadata of sparse operands: where it lies, and what it says.  Its bits on silicon: tests/silicon, mma_sparse.npz."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.layout.sparse import (
    ELEMENT_BITS,
    gathered,
    metadata_map,
    metadata_of_rows,
    stored_places,
)

SHAPES = [
    ("f16", 16), ("bf16", 32), ("tf32", 8), ("tf32", 16), ("s8", 32), ("e4m3", 64), ("u8", 64), ("s4", 64), ("u4", 128),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "k"), SHAPES)
def test_each_place_of_the_contributing_lanes_has_one_chunk(kind: str, k: int) -> None:
    where = metadata_map(kind, k)
    units = k * ELEMENT_BITS[kind] // (16 if kind in ("f16", "bf16", "tf32") else 8)
    assert where.lanes.shape == (16, units // 4)
    held = set(zip(where.lanes.ravel().tolist(), where.nibbles.ravel().tolist(), strict=True))
    lanes = [4 * group + lane for group in range(8) for lane in range(where.contributing)]
    assert held == {(lane, nibble) for lane in lanes for nibble in range(8)}
    # Lanes of the group that has the row in an A fragment.
    assert (where.lanes // 4 == np.arange(16)[:, None] % 8).all()


@pytest.mark.parametrize(("kind", "k"), SHAPES)
def test_a_selector_says_which_lanes_of_four_are_read(kind: str, k: int) -> None:
    where = metadata_map(kind, k)
    assert where.selectors * where.contributing == 4
    for selector in range(where.selectors):
        registers = np.zeros(32, np.uint32)
        first = selector * where.contributing
        for lane in range(first, first + where.contributing):
            registers[lane::4] = 0xEEEEEEEE
        assert (metadata_of_rows(registers, kind, k, selector) == 0xE).all()
        others = [one for one in range(where.selectors) if one != selector]
        assert all((metadata_of_rows(registers, kind, k, one) == 0).all() for one in others)


def test_each_warp_of_a_warpgroup_has_its_rows() -> None:
    registers = np.repeat(np.arange(4, dtype=np.uint32) * 0x11111111, 32)
    rows = metadata_of_rows(registers, "bf16", 32, 0)
    assert rows.shape == (64, 8)
    assert (rows == np.arange(64)[:, None] // 16).all()


@pytest.mark.parametrize(
    ("kind", "nibbles", "places"),
    [
        ("bf16", [0x4, 0xD], [0, 1, 5, 7]),
        ("s8", [0x9, 0xE], [1, 2, 6, 7]),
        ("tf32", [0x4, 0xE], [0, 3]),
        ("s4", [0x8, 0xC], [0, 1, 4, 5, 8, 9, 14, 15]),
    ],
)
def test_places(kind: str, nibbles: list[int], places: list[int]) -> None:
    assert stored_places(np.array([nibbles], np.uint8), kind).tolist() == [places]


@given(st.lists(st.sampled_from([0x4, 0x8, 0xC, 0x9, 0xD, 0xE]), min_size=8, max_size=8))
def test_a_sparse_product_is_that_of_the_matrix_with_its_zeros(nibbles: list[int]) -> None:
    places = stored_places(np.array([nibbles], np.uint8), "s8")
    stored = np.arange(1, 17)
    whole = np.zeros(32, np.int64)
    whole[places[0]] = stored
    other = (np.arange(8 * 32).reshape(8, 32) * 37 % 101).astype(np.uint8)
    met = gathered(other, places)
    assert met.shape == (1, 8, 16)
    assert (met[0].astype(np.int64) @ stored == other.astype(np.int64) @ whole).all()

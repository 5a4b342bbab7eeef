"""Coalescing and the L1 cache against a plain count over sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.timing.global_access import Coalescer, L1Cache

CONFIG = load("h100-sxm")
LINE, SECTOR = CONFIG.l2.line_bytes, CONFIG.l2.sector_bytes
BASE = 1 << 40


def counted(addresses: list[int], count_bytes: int) -> tuple[dict[int, int], int, int]:
    """Return masks by line, sectors and passes, byte by byte."""
    masks: dict[int, int] = {}
    sectors: set[tuple[int, int]] = set()
    passes: set[tuple[int, int]] = set()
    for lane, address in enumerate(addresses):
        for byte in range(address, address + count_bytes):
            line = byte // LINE
            masks[line] = masks.get(line, 0) | 1 << byte % LINE // SECTOR
            sectors.add((lane // WARP, byte // SECTOR))
            passes.add((lane // WARP, line))
    return masks, len(sectors), len(passes)


@given(
    st.lists(st.integers(0, 600), min_size=1, max_size=128),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.integers(0, 40),
)
def test_touched_is_what_bytes_touch(places: list[int], count_bytes: int, shift: int) -> None:
    coalescer = Coalescer(LINE, SECTOR)
    # The second time the pattern is known, at another place.
    for base in (BASE, BASE + shift * LINE):
        addresses = [base + place * count_bytes for place in places]
        masks, sectors, passes = counted(addresses, count_bytes)
        touched = coalescer.touched(np.array(addresses, np.uint64), count_bytes, len(addresses))
        assert dict(zip(touched.lines.tolist(), touched.masks.tolist(), strict=True)) == masks
        assert touched.lines.tolist() == sorted(masks)
        assert (touched.sectors, touched.passes) == (sectors, passes)
        assert touched.whole == all(mask == 15 for mask in masks.values())


@given(st.lists(st.integers(0, 600), min_size=1, max_size=128), st.sampled_from([1, 2, 4, 8, 16]))
def test_stores_are_requests_of_whole_sectors_or_of_parts(
    places: list[int], count_bytes: int
) -> None:
    addresses = [BASE + place * count_bytes for place in places]
    written: dict[tuple[int, int], set[int]] = {}
    for lane, address in enumerate(addresses):
        for byte in range(address, address + count_bytes):
            written.setdefault((lane // WARP, byte // LINE), set()).add(byte)
    masked = masked_sectors = halved = 0
    for held in written.values():
        sectors = {byte // SECTOR for byte in held}
        if len(held) < len(sectors) * SECTOR:
            masked += 1
            masked_sectors += len(sectors)
            halved += len({byte // 4 for byte in held}) * 4 != len(held)
    touched = Coalescer(LINE, SECTOR).touched(
        np.array(addresses, np.uint64), count_bytes, len(addresses), is_store=True
    )
    assert touched.stored == (touched.sectors, len(written), masked, masked_sectors, halved)


def test_lines_of_warps_are_told_apart_where_addresses_go_down() -> None:
    addresses = BASE + np.arange(127, -1, -1, dtype=np.uint64) * np.uint64(LINE)
    touched = Coalescer(LINE, SECTOR).touched(addresses, 4, 128, is_store=True)
    assert touched.stored == (128, 128, 128, 128, 0)


def test_warps_that_read_the_same_rows_each_take_their_passes() -> None:
    rows = BASE + np.arange(8, dtype=np.uint64).repeat(4) * np.uint64(8192)
    touched = Coalescer(LINE, SECTOR).touched(np.tile(rows, 4), 4, 128)
    assert (len(touched.lines), touched.passes, touched.sectors) == (8, 32, 32)
    assert touched.masks.tolist() == [1] * 8


def test_one_address_for_all_is_a_pass_for_each_warp() -> None:
    touched = Coalescer(LINE, SECTOR).touched(BASE + 40, 4, 96)
    assert (touched.lines.tolist(), touched.masks.tolist(), touched.passes) == (
        [BASE // LINE],
        [2],
        3,
    )


def test_l1_holds_sectors_not_lines() -> None:
    cache = L1Cache(CONFIG.l1, CONFIG.l1.capacity_bytes - 2 * LINE, LINE)
    assert cache.capacity == 2

    def look_up(line: int, mask: int) -> int:
        return int(cache.look_up(np.array([line]), np.array([mask], np.uint8))[0])

    assert look_up(7, 0b0001) == 0b0001
    assert look_up(7, 0b0011) == 0b0010
    assert look_up(7, 0b0011) == 0
    look_up(8, 15)
    look_up(7, 1)
    look_up(9, 15)  # 8 has to go, it was used before 7
    assert look_up(7, 3) == 0
    assert look_up(8, 15) == 15
    cache.drop(np.array([8]))
    assert look_up(8, 2) == 2


def test_without_room_nothing_is_held() -> None:
    cache = L1Cache(CONFIG.l1, CONFIG.l1.capacity_bytes, LINE)
    for _ in range(2):
        assert cache.look_up(np.array([1, 2]), np.array([1, 15], np.uint8)).tolist() == [1, 15]


def test_a_pair_of_lanes_in_two_sectors_asks_for_each_alone() -> None:
    """Rows of 128 bytes, 16 bytes a lane: every second one begins in the middle of a sector, the last repeats it."""
    rows = BASE + np.array([0, 4112, 8224, 12336, 12336], np.uint64)
    lanes = (rows[:, None] + 16 * np.arange(8, dtype=np.uint64)).ravel()
    first = Coalescer(LINE, SECTOR).touched(lanes[:32], 16, 32)
    # Two rows of 4 sectors; of two rows of 5 each is asked for by a pair at least, three of them by two.
    assert (first.sectors, first.parts, first.uneven) == (18, 6, 4)
    again = Coalescer(LINE, SECTOR).touched(lanes, 16, 40)
    assert (again.parts, again.uneven) == (6, 4)
    assert Coalescer(LINE, SECTOR).touched(lanes[:32] + 16, 8, 32).parts == 0


def test_rows_of_banks_out_of_two_lines_are_told() -> None:
    """16 bytes a lane: rows of 128 bytes of which three of four begin within a line, then rows of 64 and of 256 bytes."""
    chunks = 16 * np.arange(8, dtype=np.uint64)
    places = BASE + np.array([0, 4128, 8256, 12384], np.uint64)
    coalescer = Coalescer(LINE, SECTOR)
    assert coalescer.touched((places[:, None] + chunks).ravel(), 16, 32).crossed == 3
    places = BASE + 4096 * np.arange(8, dtype=np.uint64)
    assert coalescer.touched((places[:, None] + chunks[:4]).ravel(), 16, 32).crossed == 0
    assert coalescer.touched(BASE + 16 * np.arange(32, dtype=np.uint64), 16, 32).crossed == 0

"""What L2 holds, against walks over sets about as large as it, which Nsight Compute counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from hopsim.config import load
from hopsim.hw.timing.l2_tags import L2Tags
from hopsim.kernels.measured.l2_walks import CHUNK_BYTES, SMS, WALKS, Walk, all_walks

FOLDER: Final = Path(__file__).parent
LINE: Final = 128
CHUNK: Final = CHUNK_BYTES // LINE


def rows(device: str) -> list[dict[str, Any]]:
    folder = {"h100-sxm": FOLDER, "h200-sxm": FOLDER / "h200"}[device]
    return json.loads((folder / "l2_walks.json").read_text(encoding="utf-8"))


def tags(device: str) -> L2Tags:
    config = load(device).l2
    unit = L2Tags(
        config.capacity_bytes, config.partitions, LINE, config.sector_bytes, config.ways, 0, config.set_spread
    )  # fmt: skip
    unit.cover(0, 256 << 20)
    return unit


def missed(device: str, walk: Walk) -> float:
    """Return which share of the later walks comes from device memory; SMs of both halves go step by step together."""
    unit = tags(device)
    # Of sets that all SMs walk over, one SM of each half stands for the others.
    parts = SMS if walk.is_own else unit.partition_count
    written = walk.set_bytes // LINE
    found = 0
    for number in range(WALKS):
        steps = range(walk.chunks)
        for step in reversed(steps) if walk.is_back and number % 2 else steps:
            for part in range(parts):
                first = (part * walk.chunks if walk.is_own else 0) + step
                lines = np.arange(first * CHUNK, (first + 1) * CHUNK, dtype=np.int64)
                found += unit.read(lines, part % 2)[0].missed
        if number == 0:
            for step in range(walk.written):
                for part in range(SMS):
                    first = written + (part * walk.written + step) * CHUNK
                    unit.write(np.arange(first, first + CHUNK, dtype=np.int64), 4 * CHUNK, part % 2)
    return walk.missed(found * LINE)


CASES: Final = {
    device: list(zip(all_walks(), rows(device), strict=True)) for device in ("h100-sxm", "h200-sxm")
}


@pytest.mark.parametrize("device", CASES)
def test_the_walks_are_those_of_now(device: str) -> None:
    for walk, row in CASES[device]:
        assert row["set_bytes"] == walk.set_bytes
        assert row["written_bytes"] == walk.written_bytes
        assert row["missed"] == pytest.approx(walk.missed(row["dram_read_bytes"]), abs=1e-3)


def wrong(device: str, *, is_own: bool, is_back: bool, written: bool) -> list[float]:
    """Return how far predicted shares lie from recorded ones."""
    return [
        missed(device, walk) - row["missed"]
        for walk, row in CASES[device]
        if (walk.is_own, walk.is_back, walk.written > 0) == (is_own, is_back, written)
    ]


def test_all_sms_walk_around_a_set() -> None:
    """From nothing to all of it, as the set grows from 23 to 32 MiB."""
    errors = np.abs(wrong("h100-sxm", is_own=False, is_back=False, written=False))
    assert errors.max() < 0.2
    assert errors.mean() < 0.08


@pytest.mark.parametrize(("device", "within"), [("h100-sxm", 0.05), ("h200-sxm", 0.03)])
def test_all_sms_walk_there_and_back(device: str, within: float) -> None:
    assert np.abs(wrong(device, is_own=False, is_back=True, written=False)).max() < within


@pytest.mark.parametrize(("device", "within"), [("h100-sxm", 0.05), ("h200-sxm", 0.03)])
def test_what_is_written_takes_room(device: str, within: float) -> None:
    assert np.abs(wrong(device, is_own=False, is_back=True, written=True)).max() < within


@pytest.mark.parametrize("device", CASES)
def test_parts_of_sms_stay_as_long_as_there_is_room(device: str) -> None:
    """Up to 31 MiB; beyond, walks around miss less on silicon and those back more: DEVIATIONS.md, D-L2EDGE."""
    small = [
        (walk, row) for walk, row in CASES[device] if walk.is_own and walk.set_bytes < 31 << 20
    ]
    assert len(small) == 6
    for walk, row in small:
        assert missed(device, walk) == 0.0
        assert row["missed"] < 0.002

"""Replay every recorded tensor-core result, and say how many there were."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopsim.isa.numerics.tensor_core import MMA_SYNC, WGMMA, mma_chain

FOLDER = Path(__file__).parents[1] / "silicon"
UNITS = {"wgmma": WGMMA, "mma.sync": MMA_SYNC}


def index() -> list[dict[str, Any]]:
    return tomllib.loads((FOLDER / "index.toml").read_text()).get("tensor_core", [])


@pytest.mark.parametrize("row", index(), ids=lambda row: row["file"])
def test_replay(row: dict[str, Any]) -> None:
    with np.load(FOLDER / row["file"]) as recorded:
        a, b, c, want = (recorded[name] for name in ("a", "b", "c", "d"))
    assert want.size > 0
    got = mma_chain(a, b, c, UNITS[row["unit"]][(row["a"], row["b"])], row["d"])
    np.testing.assert_array_equal(got, want)


def test_the_index_lists_exactly_the_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    listed = [row["file"] for row in index()]
    with capsys.disabled():
        print(f"\ntensor-core recordings replayed: {len(listed)}")
    assert len(set(listed)) == len(listed)
    assert sorted(listed) == sorted(p.name for p in FOLDER.glob("*.npz"))

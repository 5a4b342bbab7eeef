"""Streams of words as nvcc compiles them (tests/data/nvcc/elementwise.cu), against an H100's cycles."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopsim as hs

PTX = Path(__file__).parents[2] / "data" / "nvcc" / "elementwise.ptx"
RECORDED: dict[str, Any] = json.loads(PTX.with_suffix(".json").read_text(encoding="utf-8"))
# Arrays of each kernel, and elements of a thread; 0: 132 CTAs go over all of it.
KERNELS = {"vadd": (3, 1), "vadd4": (3, 4), "saxpy": (2, 1), "copy_stride": (2, 0)}
QUICK = 1 << 18
MOST_SIMULATED = 1 << 20
ERROR = {"vadd": 0.13, "vadd4": 0.174, "saxpy": 0.13, "copy_stride": 0.12}
"""The worst: 1,048,576 elements, all too quick: four by a thread 17.3 %, one 11.6 and 12.0 %."""


def cases() -> list[Any]:
    rows = [row for row in RECORDED["rows"] if row["elements"] <= MOST_SIMULATED]
    return [
        pytest.param(
            row,
            id=f"{row['kernel']}-{row['elements']}",
            marks=[pytest.mark.slow] if row["elements"] > QUICK else [],
        )
        for row in rows
    ]


def test_the_text_is_the_one_that_was_recorded() -> None:
    assert hashlib.sha256(PTX.read_bytes()).hexdigest() == RECORDED["ptx_sha256"]


@pytest.mark.parametrize("row", cases())
def test_it_takes_what_an_h100_takes(row: dict[str, Any]) -> None:
    arrays, each = KERNELS[row["kernel"]]
    n = row["elements"]
    gpu = hs.Gpu()
    given = [gpu.array(np.ones(n, np.float32)) for _ in range(arrays)]
    grid = n // 256 // each if each else 132
    kernel = hs.load(PTX)[row["kernel"]]
    result = gpu.launch(kernel, grid, 256, args=[*given, np.int32(n)], values=False)
    assert result.cycles == pytest.approx(row["cycles"], rel=ERROR[row["kernel"]])

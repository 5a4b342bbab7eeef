"""CUDA C++ kernels without a tensor core in mind: the bits of an H100, and its cycles as far as hopsim has them."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest

import hopsim as hs
from hopsim.errors import HopsimError
from hopsim.kernels.measured.workloads import recording as workloads
from hopsim.kernels.measured.workloads.case import Case
from hopsim.kernels.measured.workloads.recording import CYCLES, INSTRUCTIONS

FOLDER = Path(__file__).parent
FIRST = workloads.SETS["first"]
CONTENT = workloads.content_of(FIRST, FOLDER)
PAIRS = workloads.with_rows(FIRST, FOLDER, CONTENT)
QUICK_INSTRUCTIONS = 220_000
"""Of all warps: larger launches are on docs/workloads.md alone."""
WITHIN = 0.18
FURTHER = {
    "cluster_sums": 0.6,
    "sort_lists": 0.28,
    "spmv_rows": 0.5,
    "histogram_global": 0.31,
    "one_counter": 0.2,
}
"""Kernels that are further off: D-WORKLOADS says why."""


def small() -> list[Any]:
    return [
        pytest.param(case, row, id=case.name)
        for case, row in PAIRS
        if median(row[INSTRUCTIONS]) < QUICK_INSTRUCTIONS
    ]


@pytest.mark.parametrize(("case", "row"), small())
def test_it_writes_the_bits_of_an_h100_in_its_time(case: Case, row: dict[str, Any]) -> None:
    result, digest = workloads.run(hs.Gpu(), workloads.ptx_of(FIRST, FOLDER), case, check=False)
    assert digest == row["sha256"]
    within = FURTHER.get(case.kernel, WITHIN)
    assert result.cycles == pytest.approx(median(row[CYCLES]), rel=within)


def test_every_kernel_of_the_file_is_launched() -> None:
    entries = set(hs.load(FIRST.file(FOLDER, "ptx")))
    assert entries == {case.kernel for case, _ in PAIRS}


def test_rows_of_another_text_are_refused() -> None:
    with pytest.raises(HopsimError, match="no longer those that were recorded"):
        workloads.with_rows(FIRST, FOLDER, {**CONTENT, "ptx_sha256": "0" * 64})
    with pytest.raises(HopsimError, match="no longer those that were recorded"):
        workloads.with_rows(FIRST, FOLDER, {**CONTENT, "rows": CONTENT["rows"][1:]})

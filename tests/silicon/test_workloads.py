"""CUDA C++ kernels without a GEMM's schedule: the bits of an H100, and its cycles as far as hopsim has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

import hopsim as hs
from hopsim.errors import HopsimError
from hopsim.kernels.measured.workloads import recording as workloads
from hopsim.kernels.measured.workloads.case import Case
from hopsim.kernels.measured.workloads.recording import CYCLES, INSTRUCTIONS, SETS, WorkloadSet

FOLDER = Path(__file__).parent
CONTENT = {name: workloads.content_of(chosen, FOLDER) for name, chosen in SETS.items()}
PAIRS = {name: workloads.with_rows(SETS[name], FOLDER, CONTENT[name]) for name in SETS}
QUICK_INSTRUCTIONS: Final[Mapping[str, int]] = {"first": 220_000, "second": 60_000}
"""Of all warps: larger launches of the first set are on docs/workloads.md alone, those of the second are slow tests."""
MOST_INSTRUCTIONS: Final = 1_000_000
"""Larger ones of the second set, each of which takes minutes, are on that page alone too."""
WITHIN: Final = 0.18
FURTHER: Final[Mapping[str, Mapping[str, float]]] = {
    "first": {
        "sort_lists": 0.19,
        "spmv_warps": 0.19,
    },
    "second": {
        "attention_mma": 0.22,
        "bulk_ring": 0.24,
        "cluster_halo": 0.19,
        "fft_256": 0.37,
        "hash_insert": 0.33,
    },
}
"""Kernels that are further off: D-WORKLOADS says why."""


def launches() -> list[Any]:
    """Return what is replayed: of a set that is held out, all but three launches."""
    found: list[Any] = []
    for name, pairs in PAIRS.items():
        for case, row in pairs:
            size = median(row[INSTRUCTIONS])
            quick = size < QUICK_INSTRUCTIONS[name]
            if quick or (name == "second" and size < MOST_INSTRUCTIONS):
                marks = () if quick else (pytest.mark.slow,)
                found.append(pytest.param(SETS[name], case, row, id=case.name, marks=marks))
    return found


@pytest.mark.parametrize(("chosen", "case", "row"), launches())
def test_it_writes_the_bits_of_an_h100_in_its_time(
    chosen: WorkloadSet, case: Case, row: dict[str, Any]
) -> None:
    result, digest = workloads.run(
        hs.Gpu(), workloads.ptx_of(chosen, FOLDER), case, check=False
    )  # fmt: skip
    assert digest == row["sha256"]
    within = FURTHER[chosen.name].get(case.kernel, WITHIN)
    assert result.cycles == pytest.approx(median(row[CYCLES]), rel=within)


def test_the_second_set_was_predicted_before_it_was_recorded() -> None:
    held = workloads.held_predictions(SETS["second"], FOLDER)["cycles"]
    rows = {case.name: median(row[CYCLES]) for case, row in PAIRS["second"]}
    assert list(held) == list(rows)
    assert [name for name, cycles in held.items() if cycles is None] == ["cluster_edges 16 x 16"]
    errors = [abs(cycles / rows[name] - 1) for name, cycles in held.items() if cycles]
    assert sum(errors) / len(errors) == pytest.approx(0.1096, abs=5e-5)
    assert max(errors) == pytest.approx(0.4056, abs=5e-5)


@pytest.mark.parametrize("name", SETS)
def test_every_kernel_of_the_file_is_launched(name: str) -> None:
    entries = set(hs.load(SETS[name].file(FOLDER, "ptx")))
    assert entries == {case.kernel for case, _ in PAIRS[name]}


@pytest.mark.parametrize("name", SETS)
def test_rows_of_another_text_are_refused(name: str) -> None:
    content, rows = CONTENT[name], CONTENT[name]["rows"]
    for other in ({**content, "ptx_sha256": "0" * 64}, {**content, "rows": rows[1:]}):
        with pytest.raises(HopsimError, match="no longer those that were recorded"):
            workloads.with_rows(SETS[name], FOLDER, other)

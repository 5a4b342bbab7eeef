"""What another H100 took for the measured GEMMs: it is whole, and two devices agree but for some percent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hopsim.errors import DeviceError
from hopsim.kernels.gemm.recorded import compare_order, read_ladders
from hopsim.kernels.measured.again import (
    FILE,
    key,
    launched,
    read,
    record,
    rows_of,
)
from hopsim.kernels.measured.ncu import Profile
from hopsim.kernels.measured.record import CYCLES, PROFILES
from hopsim.kernels.measured.sets import load_sets

FOLDER = Path(__file__).parent
AGAIN = read(FOLDER)


def test_everything_was_measured_again() -> None:
    rows = json.loads((FOLDER / FILE).read_text())
    keys = [key(row["ptx_sha256"], (row["m"], row["n"], row["k"]), row["grid"]) for row in rows]
    assert list(zip((row["kernel"] for row in rows), keys, strict=True)) == launched(FOLDER)
    assert all(len(row["cycles"]) == PROFILES for row in rows)


@pytest.mark.parametrize(("role", "mean"), {"calibration": 0.025, "judging": 0.023}.items())
def test_two_devices_agree_but_for_some_percent(role: str, mean: float) -> None:
    off = [
        AGAIN[key(case.program.ptx_sha256, case.size, case.grid)] / case.cycles - 1
        for case in load_sets(FOLDER)
        if case.role == role and case.cycles is not None
    ]
    assert np.abs(off).mean() <= mean
    assert np.abs(off).max() <= 0.12
    assert abs(np.mean(off)) <= 0.002  # neither is the quicker one


def test_two_devices_put_the_steps_of_the_ladder_in_one_order() -> None:
    pairs, wrong = 0, 0
    for ladder in read_ladders(FOLDER / "ladder"):
        p = ladder.problem
        again = [AGAIN[key(step.ptx_sha256, (p.m, p.n, p.k), step.grid)] for step in ladder.steps]
        order = compare_order(again, [step.cycles or 0.0 for step in ladder.steps])
        pairs, wrong = pairs + order.pairs, wrong + len(order.wrong)
    assert (pairs, wrong) == (1244, 2)


def test_rows_of_what_was_profiled() -> None:
    expected = [("mm", key("0123456789abcdef01", (1, 2, 3), 4))]
    seen = [Profile("mm(int)", 4, {CYCLES: cycles}) for cycles in (30.0, 10.0, 20.0)]
    rows = rows_of(expected, seen)
    assert rows == [
        {"kernel": "mm", "ptx_sha256": "0123456789abcdef", "m": 1, "n": 2, "k": 3, "grid": 4,
         "cycles": [30.0, 10.0, 20.0]},
    ]  # fmt: skip
    with pytest.raises(DeviceError, match="3 launches were expected, got 2"):
        rows_of(expected, seen[:2])
    with pytest.raises(DeviceError, match="other kernels"):
        rows_of([("gemm", expected[0][1])], seen)


def test_programs_measured_in_two_sets_count_once(tmp_path: Path) -> None:
    row = {"kernel": "mm", "ptx_sha256": "0123456789abcdef", "m": 1, "n": 2, "k": 3, "grid": 4}
    rows = [{**row, "cycles": [10.0, 30.0]}, {**row, "cycles": [20.0]}]
    (tmp_path / FILE).write_text(json.dumps(rows))
    assert read(tmp_path) == {key("0123456789abcdef", (1, 2, 3), 4): 20.0}
    assert read(tmp_path / "none") == {}


def test_without_nsight_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match="ncu is not on PATH"):
        record(FOLDER, tmp_path / "ncu.csv", print)

"""The measured programs: what is recorded is whole, and each gives the bits on the simulator that it gave on silicon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.errors import ConfigError
from hopsim.kernels.measured.cases import OWN, SMALL, Case, own_cases, triton_cases
from hopsim.kernels.measured.ncu_export import middle, read_csv
from hopsim.kernels.measured.predict import predict, predict_all
from hopsim.kernels.measured.program import Program, describe, read
from hopsim.kernels.measured.record import METRICS, bits, together
from hopsim.kernels.measured.sets import Measured, load_sets

FOLDER = Path(__file__).parent
ROWS: list[dict[str, Any]] = [
    row
    for name in ("gemm_own.json", "gemm_triton.json")
    for row in json.loads((FOLDER / "judging" / name).read_text())
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["kernel"])
def test_c_has_the_bits_of_silicon(row: dict[str, Any]) -> None:
    program = read(row, FOLDER / "judging")
    kept = row["bits"]
    assert (kept["m"], kept["n"], kept["k"]) == SMALL
    case = Case(program, SMALL, kept["grid"])
    assert bits(hs.Gpu(), case, timing=False, check=False) == kept["c_sha256"]


def test_every_case_was_measured() -> None:
    cases = load_sets(FOLDER)
    assert {case.role for case in cases} == {"calibration", "judging"}
    judging = [case for case in cases if case.role == "judging"]
    assert len({case.program.name for case in judging}) == 27
    assert len(judging) == 190
    for case in judging:
        assert case.cycles is not None
        assert 4000 < case.cycles < 4e6
        assert case.spread is not None
        assert case.spread < 0.2
        assert set(METRICS) <= set(case.counters)
        assert case.clock_hz is not None
        assert 1e9 < case.clock_hz < 2e9
        assert case.cold_us is not None
        assert case.counters["gpu__time_duration.sum"] / 1e3 < 1.1 * case.cold_us


def test_the_hashes_are_those_of_the_texts(tmp_path: Path) -> None:
    row = dict(ROWS[0])
    program = read(row, FOLDER / "judging")
    assert describe(program)["ptx_sha256"] == row["ptx_sha256"]
    (tmp_path / "own").mkdir()
    (tmp_path / row["ptx"]).write_text(program.ptx + "\n")
    with pytest.raises(ConfigError, match="not the text that was measured"):
        read(row, tmp_path)
    with pytest.raises(ConfigError, match="cannot read"):
        read({**row, "ptx": "own/none.ptx"}, tmp_path)


def test_a_folder_without_measurements(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no measurements"):
        load_sets(tmp_path)


def test_what_is_recorded_next_time() -> None:
    own, triton = own_cases(), triton_cases(FOLDER / "judging")
    assert len({case.program.name for case in own}) == len(OWN)
    recorded = {
        (row["kernel"], one["m"], one["n"], one["k"]) for row in ROWS for one in row["measured"]
    }
    assert {(case.program.name, *case.size) for case in triton} <= recorded
    persistent = [case for case in triton if case.program.options["persistent"]]
    assert max(case.grid for case in persistent) == 132


def one(program: Program, size: tuple[int, int, int], grid: int) -> Measured:
    return Measured("judging", program, size, grid, 1000.0, None, None, None, None, {})


def test_predictions_are_those_of_one_process(tmp_path: Path) -> None:
    program = read(ROWS[0], FOLDER / "judging")
    cases = [one(program, (128, 128, 128), 1), one(program, (256, 128, 128), 2)]
    alone = [predict(case, "h100-sxm", {}) for case in cases]
    together_ = predict_all(cases, jobs=2)
    assert [p.cycles for p in alone] == [p.cycles for p in together_]
    assert alone[0].cycles is not None
    assert alone[0].counters["sm__inst_executed_pipe_tensor_op_gmma.sum"] > 0


def test_a_case_that_cannot_be_simulated_is_told() -> None:
    program = read(ROWS[0], FOLDER / "judging")
    found = predict(
        one(program, (128, 128, 128), 1), "h100-sxm", {"device.shared_per_cta_max": "1KiB"}
    )
    assert found.cycles is None
    assert "shared" in found.error


EXPORT = """==PROF== Connected to process 1
"ID","Kernel Name","Grid Size","gpc__cycles_elapsed.max","dram__bytes_read.sum","note"
"","","","cycle","byte",""
"0","gemm_x(A, B)","(8, 2, 1)","1,000","64",""
"1","gemm_x(A, B)","(8, 2, 1)","1,200","65","n/a"
"2","other","(1, 1, 1)","5","n/a",""
"""


def test_an_export_of_nsight_compute(tmp_path: Path) -> None:
    (tmp_path / "ncu.csv").write_text(EXPORT)
    found = read_csv(tmp_path / "ncu.csv")
    assert [(p.kernel, p.grid) for p in found] == [
        ("gemm_x(A, B)", (8, 2, 1)),
        ("gemm_x(A, B)", (8, 2, 1)),
        ("other", (1, 1, 1)),
    ]
    assert found[2].metrics == {"gpc__cycles_elapsed.max": 5.0}
    assert middle([p.metrics for p in found[:2]]) == {
        "gpc__cycles_elapsed.max": 1100.0,
        "dram__bytes_read.sum": 64.5,
    }
    # What one of them could not measure is the median of the others.
    assert middle([{"a": 3.0}, {"b": 1.0}, {"a": 5.0, "b": 4.0}]) == {"a": 4.0, "b": 2.5}
    assert together([dict(p.metrics) for p in found[:2]])[0] == [1000.0, 1200.0]


def test_operands_repeat_their_values() -> None:
    from hopsim.kernels.measured.program import operands

    values = np.arange(8, dtype=np.float32)
    made = operands(hs.Gpu(), "fp16", "fp16", (4, 3, 6), values)
    assert np.array_equal(made.a.numpy().ravel(), np.resize(values, 24).astype(np.float16))
    assert made.c.numpy().shape == (4, 3)

"""What was recorded on an H200: the same programs and the same bits as on an H100, with another memory system."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from hopsim.config import load
from hopsim.kernels.gemm.recorded import read_bits, read_ladders
from hopsim.kernels.measured.sets import load_sets
from hopsim.kernels.micro.recording import benchmarks
from hopsim.kernels.probes.recording import read_index

FOLDER = Path(__file__).parent / "h200"
H100 = FOLDER.parent


def rows(folder: Path, file: str) -> dict[str, dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((folder / file).read_text())
    return {row.get("name") or row["kernel"]: row for row in listed}


MICRO = rows(FOLDER, "micro.json")


def test_it_is_an_h200() -> None:
    index = read_index(FOLDER / "index.toml")
    assert {row["device"] for row in index} == {"NVIDIA H200"}
    files = {
        str(file.relative_to(FOLDER))
        for kind in ("json", "npz")
        for file in FOLDER.rglob(f"*.{kind}")
    }
    assert {row["file"] for row in index} == files


def test_microbenchmarks_are_those_of_now() -> None:
    made = {one.name: hashlib.sha256(one.ptx.encode()).hexdigest() for one in benchmarks()}
    assert len(MICRO) == 1061
    assert all(row["ptx_sha256"] == made[name] for name, row in MICRO.items())
    assert not [name for name, row in MICRO.items() if "error" in row]


def test_the_configuration_has_what_was_recorded() -> None:
    hardware = load("h200-sxm")
    slopes = MICRO["mbarrier_latency"]["slopes"]
    assert hardware.fence.gpu_cycles == round(slopes["fence.acq_rel.gpu"]) - 1
    assert hardware.fence.cluster_cycles == round(slopes["fence.acq_rel.cluster"]) - 1
    read = MICRO["plain_load_dram_132x1024K"]["bytes_per_clk"]["walk"]
    assert abs(hardware.dram.bandwidth_bytes_per_clk * hardware.dram.efficiency / read - 1) < 0.02


def test_hits_wait_behind_misses_of_lines_that_share_their_slice() -> None:
    """What the model lacks (DEVIATIONS D-HELD): half of the pages have their home where the SM asks."""
    together = ({0, 1, 4, 5}, {2, 3, 6, 7})
    for missed in range(8):
        cycles = MICRO[f"slices_behind_{missed}"]["cycles"]
        (alike,) = (lines for lines in together if missed in lines)
        for line in set(range(8)) - {missed}:
            held = cycles[f"line {line}, held"]
            assert 20 < held < 44 if line in alike else held == 0
            assert (cycles[f"line {line}"] > 390) is (line in alike)


def test_gemms_have_the_bits_that_an_h100_gives() -> None:
    for file in ("gemm_own.json", "gemm_triton.json"):
        here, there = rows(FOLDER / "judging", file), rows(H100 / "judging", file)
        assert {name: row["bits"] for name, row in here.items()} == {
            name: row["bits"] for name, row in there.items()
        }
    assert read_bits(FOLDER / "ladder")["bf16"] == read_bits(H100 / "ladder")["bf16"]


def test_measurements_can_be_compared() -> None:
    cases = load_sets(FOLDER)
    assert len(cases) == 190
    assert all(case.cycles for case in cases)
    ladders = read_ladders(FOLDER / "ladder")
    (large,) = (one for one in ladders if one.problem.m == 4096)
    assert large.cublas_cycles is not None
    best = min(step.cycles or 0.0 for step in large.steps)
    assert best < 1.02 * large.cublas_cycles

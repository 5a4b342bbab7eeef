"""Microbenchmarks: the recording is of these programs, and they run on the simulator."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.errors import HopsimError
from hopsim.kernels.micro.calibration import DERIVATIONS, Recordings, derive
from hopsim.kernels.micro.clocked import Benchmark, mean_of_rows, rates, slopes
from hopsim.kernels.micro.placement import times
from hopsim.kernels.micro.recording import GROUPS, benchmarks, figures, record, run

FOLDER = Path(__file__).parent
ROWS: list[dict[str, Any]] = json.loads((FOLDER / "micro.json").read_text())
EMPTY: list[dict[str, Any]] = json.loads((FOLDER / "judging" / "empty_kernel.json").read_text())
QUICK = (
    "arithmetic_2", "shared_memory_latency", "atomics", "setmaxnreg", "global_l1", "bar_sync_128", "cluster_2",
    "issue_w4", "cp_async_w1", "wgmma_bf16_n64_SS_w1", "wgmma_bf16_n8_RS_w1", "tma_load_8", "tma_store_8",
    "ping_pong_1", "ping_pong_2", "dsmem_load_c2_2", "dsmem_bulk_c2_2_4096B", "l2_map_sm0_dense", "l2_set_2MiB",
    "cta_cluster_16", "tma_load_l2_1x256K_8192B_d2", "tma_load_l2_2x256K_16384B_d4_m2", "tma_store_l2_1x128K_8192B_d4",
    "plain_load_l2_1x128K", "plain_store_l2_1x128K", "tma_load_strided_1_64r_d4", "tma_load_neighbours_2_c2_same_d1",
    "tma_load_pitch1056_1_64r", "code_4K_1_w1", "code_4K_1_w1_first", "tma_load_inside16_1_own_d4",
    "start_barrier_init_2_w4", "start_fence_proxy_2_w4", "start_jumps_1024B_1", "start_parameters_1_w1",
    "cold_boxes_16_128r_p1024", "cold_chain_1_16r_p8192_step1", "cold_chain_1_128r_p128_step1",
    "sequence_div_s32", "sequence_rem_u64", "sequence_div_rn_f64", "wgmma_ahead_n128_a2",
)  # fmt: skip


def test_each_benchmark_is_recorded_as_it_is() -> None:
    recorded = {row["name"]: row["ptx_sha256"] for row in ROWS}
    made = {one.name: hashlib.sha256(one.ptx.encode()).hexdigest() for one in benchmarks()}
    assert len(made) == len(benchmarks())
    assert made == recorded


@pytest.mark.parametrize("name", QUICK)
def test_it_runs_on_the_simulator(name: str) -> None:
    (chosen,) = (one for one in benchmarks() if one.name == name)
    row = run(hs.Gpu(), chosen, 0, check=False)
    (recorded,) = (one for one in ROWS if one["name"] == name)
    assert row["cycles"].keys() == recorded["cycles"].keys()
    assert all(value >= 0 for label, value in row["cycles"].items() if "ns" not in label)
    assert row.get("slopes", {}).keys() == recorded.get("slopes", {}).keys()


def test_no_recorded_clock_is_nonsense() -> None:
    for row in ROWS:
        assert "error" not in row, row["name"]
        for label, value in row["cycles"].items():
            assert -1e5 < value < 1e9, (row["name"], label)


def test_groups() -> None:
    assert sum(len(benchmarks(group)) for group in GROUPS) == len(benchmarks())
    with pytest.raises(HopsimError, match="no group 'nothing'"):
        benchmarks("nothing")


def test_slopes_and_rates() -> None:
    assert slopes({"add x64": 280, "add x192": 792, "whole": 9}) == {"add": 4.0}
    assert slopes({"one x1": 5}) == {}
    assert rates({"read": 200}, {"read": 12800}) == {"read": 64.0}
    table = np.array([[10, 4], [20, 8]], np.uint64)
    assert mean_of_rows(table, ("a", "b")) == {"a": 15.0, "b": 6.0}


def test_ctas_one_after_the_other() -> None:
    rows = [(0, 100, 200, 0, 50), (1, 5, 9, 1, 60), (0, 230, 300, 90, 120)]
    found = times(np.array(rows, np.uint64), ())
    assert found["SMs"] == 2
    assert found["cycles from end to next start, median"] == 30
    assert found["ns from first start to last"] == 90
    assert found["ns from first start to last end"] == 120


def test_a_benchmark_that_fails_does_not_end_the_others() -> None:
    good = next(one for one in benchmarks("latencies") if one.name == "bar_sync_32")
    bad = Benchmark(
        "bad", "too much shared memory", good.ptx, good.entry, good.labels, shared_bytes=1 << 20
    )
    told: list[str] = []
    rows = record(hs.Gpu(), [bad, good], 0, told.append, check=False)
    assert "shared" in rows[0]["error"]
    assert "bar.sync" in rows[1]["slopes"]
    assert [figures(row) for row in rows] == [rows[0]["error"], rows[1]["slopes"]]
    assert len(told) == 2


def test_numbers_that_microbenchmarks_decide() -> None:
    found = derive(Recordings(ROWS, EMPTY))
    assert len(found) == len(DERIVATIONS)
    assert found["smem.latency"][0] == "23cycles"
    assert found["issue.latency.mufu"][0] == "17cycles"
    assert found["smem.latency"][1].startswith("hopsim calibrate, tests/silicon/micro.json: ")
    with pytest.raises(KeyError, match="arithmetic_0"):
        derive(Recordings([], EMPTY))

"""Microbenchmarks are clean, except for findings that are meant: `hopsim.kernels.micro.findings` names all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hopsim.kernels.micro.clocked import Benchmark
from hopsim.kernels.micro.findings import INTENDED, intended_rules
from hopsim.kernels.micro.recording import benchmarks
from hopsim.mutate.subjects import benchmark_case
from hopsim.results import LaunchResult
from hopsim.runtime.gpu import Gpu

QUICK = (
    "cluster_2", "mbarrier_latency", "shared_rate_w8", "wgmma_bf16_n8_SS_w1", "tma_store_8", "tma_load_8",
    "dsmem_bulk_c2_2_128B", "l2_map_sm0_spread_after1",
    "tma_load_l2_2x256K_16384B_d4_m2", "start_fence_proxy_2_w4", "start_barrier_init_2_w4", "wgmma_ahead_n64_a2",
    "beside_wgmma_n64_SS_w4",
)  # fmt: skip
ALL = {one.name: one for one in benchmarks()}
"""Groups of one CTA or few; the others fill the device with one access over and over, which takes minutes to check."""
SMALL = ("latencies", "issue", "tensor", "copies", "remote", "sequences", "barriers", "queue")


def checked(one: Benchmark) -> LaunchResult:
    gpu, case = Gpu(), benchmark_case(one)
    return gpu.launch(
        case.kernel(), case.grid, case.block, case.cluster, case.arguments(gpu).args, case.shared_bytes,
        schedule="in-order",
    )  # fmt: skip


def assert_only_intended(one: Benchmark) -> None:
    result = checked(one)
    assert result.deadlock is None
    assert not result.not_modelled
    assert {hazard.rule for hazard in result.hazards} == intended_rules(one.name)


@pytest.mark.parametrize("name", QUICK)
def test_findings_are_those_that_are_meant(name: str) -> None:
    assert_only_intended(ALL[name])


@pytest.mark.slow
@pytest.mark.parametrize("group", SMALL)
def test_findings_of_whole_groups_are_those_that_are_meant(group: str) -> None:
    for one in benchmarks(group):
        assert_only_intended(one)


def test_the_table_speaks_of_benchmarks_that_there_are() -> None:
    for one in INTENDED:
        assert any(re.fullmatch(one.names, name) for name in ALL), one.names
        assert one.why


def test_the_page_of_hazards_explains_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hazards.md").read_text(encoding="utf-8")
    for one in INTENDED:
        names = one.names.replace("|", "\\|")
        assert f"| `{names}` | {one.rule} | {one.why} |\n" in page

"""Correct kernels are found clean under any order, beyond what their PTX deserves: our own GEMMs, and Triton's."""

from __future__ import annotations

from typing import Any

import pytest

from hopsim.hazards.facts import CheckOptions
from hopsim.kernels.gemm.launch import run
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.measured.program import Program
from hopsim.results import LaunchResult
from hopsim.runtime.gpu import Gpu
from tests.kernels import triton_programs
from tests.kernels.test_gemm_run import small_integers

ORDERS: list[dict[str, Any]] = [
    {"schedule": "in-order"},
    {"schedule": "seeded", "seed": 3},
    {"schedule": "adversarial"},
]
RAGGED = GemmProblem(200, 328, 160)
NARROW = GemmProblem(200, 328, 160, "e4m3")
HALF = GemmProblem(200, 328, 160, "fp16")
GEMMS: dict[str, tuple[GemmProblem, dict[str, Any]]] = {
    "pipelined": (RAGGED, {"schedule": "pipelined", "tile": (64, 64, 64), "stages": 3}),
    "pipelined by two warpgroups": (
        HALF,
        {"schedule": "pipelined", "tile": (128, 48, 32), "stages": 2, "warpgroups": 2},
    ),
    "warp-specialized": (RAGGED, {"tile": (64, 64, 64), "stages": 3}),
    "warp-specialized e4m3": (NARROW, {"tile": (128, 64, 128), "stages": 2, "warpgroups": 2}),
    "persistent": (
        RAGGED,
        {"tile": (64, 64, 64), "stages": 2, "persistent": True, "resident_ctas": 3},
    ),
    "cluster with releases of cluster scope": (
        RAGGED,
        {"tile": (64, 64, 32), "stages": 2, "cluster": (2, 1), "release_scope": "cluster"},
    ),
    "persistent cluster with releases of cluster scope": (
        RAGGED,
        {
            "tile": (64, 64, 32), "stages": 2, "cluster": (2, 2), "persistent": True, "resident_ctas": 4,
            "release_scope": "cluster",
        },
    ),
}  # fmt: skip
SERIALISED = {
    "mm_tma_bf16_128x128x64_s2_w8_al", "mm_tma_bf16_128x128x64_s4_w8_al", "mm_tma_bf16_128x256x64_s3_w8_al",
    "mm_tma_bf16_128x256x64_s4_w8_al", "mm_tma_bf16_256x128x64_s3_w8_al",
}  # fmt: skip


def run_gemm(problem: GemmProblem, options: dict[str, Any], launch: dict[str, Any]) -> LaunchResult:
    a, b, _ = small_integers(problem)
    gpu: Any = Gpu()
    return run(gpu, problem, a, b, launch_options=launch, **options).result


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order["schedule"])
@pytest.mark.parametrize("name", GEMMS)
def test_own_gemms_are_clean(name: str, order: dict[str, Any]) -> None:
    result = run_gemm(*GEMMS[name], order)
    assert (result.verdict, result.hazards) == ("clean", ())


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order["schedule"])
def test_releases_of_cta_scope_are_a_note(order: dict[str, Any]) -> None:
    # CUTLASS's habit: the arrive that hands a slot back to another CTA has the scope of its own CTA.
    options = {"tile": (64, 64, 32), "stages": 2, "cluster": (2, 2), "release_scope": "cta"}
    result = run_gemm(RAGGED, options, order)
    assert result.verdict == "clean"
    assert {(h.rule, h.level) for h in result.hazards} == {("HS217", "note")}
    strictly = run_gemm(RAGGED, options, {**order, "check": CheckOptions(mbarrier_scope="always")})
    assert strictly.verdict == "hazard"
    assert {(h.rule, h.level) for h in strictly.hazards} == {("HS217", "hazard")}


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order["schedule"])
@pytest.mark.parametrize("program", triton_programs.BF16, ids=lambda program: program.name)
def test_triton_kernels_are_clean(program: Program, order: dict[str, Any]) -> None:
    bm, bn, bk = program.tile
    size = (bm * 2 - 8, bn, bk * (program.options["stages"] + 2))
    result, is_exact = triton_programs.run(program, size, **order)
    assert is_exact
    assert result.verdict == "clean"
    # ptxas serialises the wgmma of five of them (C7515), and that is told.
    expected = [("HS014", "note")] if program.name in SERIALISED else []
    assert [(h.rule, h.level) for h in result.hazards] == expected

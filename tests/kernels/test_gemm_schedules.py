"""Every schedule: bits of the reference and no findings, over shapes, types, layouts and orders."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.expected import expected, is_admissible
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, launch
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.schedules import SCHEDULES
from hopsim.kernels.gemm.split_k import split_blocks
from hopsim.kernels.gemm.stream_k import shared_tiles, tile_parts
from hopsim.layout.swizzle import Swizzle
from hopsim.runtime.gpu import Gpu

IN_ORDER = {"schedule": "in-order"}
ORDERS: dict[str, dict[str, Any]] = {
    "in-order": IN_ORDER,
    "seeded": {"schedule": "seeded", "seed": 11},
    "adversarial": {"schedule": "adversarial"},
}


@dataclass(frozen=True)
class Case:
    """A schedule with a small configuration: several tiles a CTA where it is persistent."""

    schedule: str
    tile: tuple[int, int, int]
    stages: int
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    out: str = ""

    def __str__(self) -> str:
        more = "-".join(str(value) for value in self.options.values())
        return f"{self.schedule}-{more}"


CASES = [
    Case("mma-simple", (64, 64, 16), 1),
    Case("mma-multistage", (64, 64, 32), 3),
    Case("wgmma-simple", (64, 64, 64), 1),
    Case("wgmma-simple", (128, 64, 64), 1, {"a_in_registers": True, "warpgroups": 2}),
    Case("pipelined", (64, 64, 64), 3),
    Case("warp-specialized", (128, 64, 64), 2, {"warpgroups": 2}),
    Case("cooperative", (128, 64, 64), 2, {"resident_ctas": 2}),
    Case("pingpong", (64, 64, 64), 3, {"resident_ctas": 2}),
    Case("split-k", (64, 64, 32), 4, {"splits": 2, "reduction": "tma"}, "f32"),
    Case("split-k", (64, 64, 32), 4, {"splits": 2, "reduction": "atomic"}, "f32"),
    Case("split-k", (64, 64, 32), 4, {"splits": 2, "reduction": "dsmem"}),
    Case("stream-k", (64, 64, 32), 3, {"resident_ctas": 5}),
]
ids = [str(case) for case in CASES]


def operands(problem: GemmProblem) -> tuple[NDArray[Any], NDArray[Any]]:
    """A and B as they lie in memory: normal numbers, so that the order of additions shows."""
    rng = np.random.default_rng(problem.m + problem.k)
    kind = NUMPY_TYPES[problem.dtype]
    shapes = (problem.a_shape, problem.b_shape)
    a, b = (rng.standard_normal(shape).astype(np.float32).astype(kind) for shape in shapes)
    return a, b


def run(case: Case, problem: GemmProblem, how: dict[str, Any], **more: Any) -> Any:
    """Launch, compare bits, and return the result."""
    kernel = build(case.schedule, problem, case.tile, case.stages, **case.options, **more)
    a, b = operands(problem)
    done = launch(Gpu(), kernel, a, b, **how)
    wrong = ~is_admissible(done.c, expected(kernel, a, b))
    assert not wrong.any(), (int(wrong.sum()), np.argwhere(wrong)[:5])
    return done.result


def test_every_schedule_has_a_case() -> None:
    assert {case.schedule for case in CASES} == set(SCHEDULES)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_any_order_gives_the_reference_s_bits_and_no_findings(case: Case, order: str) -> None:
    result = run(case, GemmProblem(136, 72, 144, "bf16", case.out), ORDERS[order])
    assert (result.verdict, [h for h in result.hazards if h.level != "note"]) == ("clean", [])


@pytest.mark.parametrize("case", CASES, ids=ids)
@pytest.mark.parametrize("sizes", [(1, 8, 64), (64, 64, 64), (65, 200, 88), (200, 16, 256)])
def test_tiny_and_ragged_sizes(case: Case, sizes: tuple[int, int, int]) -> None:
    run(case, GemmProblem(*sizes, "bf16", case.out), {**IN_ORDER, "check": False})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("m", [5, 16, 40])
@pytest.mark.parametrize("case", CASES[1:], ids=ids[1:])
def test_few_rows_are_loaded_alone_and_nobody_finds_anything(
    case: Case, m: int, order: str
) -> None:
    problem = GemmProblem(m, 72, 144, "bf16", case.out)
    kernel = build(case.schedule, problem, case.tile, case.stages, **case.options)
    rows = -(-m // 8) * 8
    assert kernel.plan.a_rows == rows
    assert [one.box[1] for one in kernel.maps if one.operand == "A"] in ([rows], [])
    result = run(case, problem, ORDERS[order])
    assert (result.verdict, result.hazards) == ("clean", ())


@pytest.mark.parametrize(
    ("taken", "rules"),
    [
        ("fence.proxy.async.shared::cta;", {"HS102"}),
        ("bar.sync                7, 256;", {"HS208", "HS500"}),
    ],
)
def test_zeros_below_few_rows_need_their_fence_and_their_barrier(
    taken: str, rules: set[str]
) -> None:
    problem = GemmProblem(16, 72, 144)
    kernel = build("cooperative", problem, (128, 64, 64), 2, resident_ctas=2)
    # The first of them follows the zeros; the epilogue has others.
    before, found, after = kernel.ptx.partition(taken)
    assert found
    assert before.count("st.shared.v4.b32") == 8
    done = launch(Gpu(), replace(kernel, ptx=before + after), *operands(problem), **IN_ORDER)
    assert done.result.verdict == "hazard"
    assert {one.rule for one in done.result.hazards if one.level == "hazard"} == rules


def test_what_is_brought_by_several_or_lies_along_m_is_loaded_whole() -> None:
    few = GemmProblem(16, 256, 64)
    assert build("cooperative", few, (128, 64, 64), 2, cluster=(1, 2)).plan.a_rows == 0
    assert build("cooperative", few, (128, 64, 64), 2, cluster=(2, 1)).plan.a_rows == 16
    assert build("mma-simple", few, (64, 64, 16), 1).plan.a_rows == 0
    along_m = GemmProblem(16, 256, 64, "bf16", "", "MN", "K")
    assert build("pipelined", along_m, (64, 64, 64), 2).plan.a_rows == 0
    assert build("pipelined", few, (64, 64, 64), 2, a_rows=0).plan.a_rows == 0
    assert build("pipelined", GemmProblem(57, 256, 64), (64, 64, 64), 2).plan.a_rows == 0


@pytest.mark.parametrize("case", [case for case in CASES if "splits" not in case.options], ids=str)
def test_a_single_k_block(case: Case) -> None:
    run(case, GemmProblem(70, 72, 16), {**IN_ORDER, "check": False})


@pytest.mark.parametrize("case", CASES, ids=ids)
@pytest.mark.parametrize("dtype", ["fp16", "e4m3"])
def test_other_types(case: Case, dtype: str) -> None:
    if dtype == "e4m3":
        m, n, k = case.tile
        case = replace(case, tile=(m, n, 2 * k))
    run(case, GemmProblem(72, 136, 192, dtype, case.out), {**IN_ORDER, "check": False})


@pytest.mark.parametrize("swizzle", list(Swizzle))
@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("majors", [("K", "K"), ("K", "MN"), ("MN", "K"), ("MN", "MN")])
def test_every_layout_of_the_operands(
    swizzle: Swizzle, in_registers: bool, majors: tuple[Any, Any]
) -> None:
    case = Case(
        "wgmma-simple", (128, 64, 64), 1, {"swizzle": swizzle, "a_in_registers": in_registers}
    )
    result = run(case, GemmProblem(136, 72, 144, "bf16", "", *majors), IN_ORDER)
    assert result.verdict == "clean"


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("schedule", ["cooperative", "pingpong"])
def test_clusters_share_operands_of_either_major(schedule: str, cluster: tuple[int, int]) -> None:
    problem = GemmProblem(304, 264, 96, "bf16", "", "MN", "MN")
    options = {"cluster": cluster, "resident_ctas": 4, "order": "blocks-n"}
    result = run(Case(schedule, (128, 128, 64), 2, options), problem, ORDERS["seeded"])
    assert result.verdict == "clean"


@pytest.mark.parametrize("order", ["row", "column", "grouped", "blocks-m", "blocks-n"])
def test_every_tile_order_covers_c(order: str) -> None:
    case = Case(
        "pingpong", (64, 16, 32), 2, {"resident_ctas": 4, "order": order, "cluster": (2, 1)}
    )
    run(case, GemmProblem(260, 328, 32), {**IN_ORDER, "check": False})


@pytest.mark.parametrize("units", [1, 2, 3, 5])
def test_pingpong_with_few_tiles(units: int) -> None:
    case = Case("pingpong", (64, 64, 64), 2, {"resident_ctas": 1})
    assert run(case, GemmProblem(64 * units, 64, 192), ORDERS["seeded"]).verdict == "clean"


@pytest.mark.parametrize(("reduction", "splits"), [("tma", 3), ("atomic", 3), ("dsmem", 4)])
def test_more_splits(reduction: str, splits: int) -> None:
    out = "" if reduction == "dsmem" else "f32"
    case = Case(
        "split-k", (128, 64, 32), 6, {"splits": splits, "reduction": reduction, "warpgroups": 2}
    )
    run(case, GemmProblem(72, 72, 360, "bf16", out), {**ORDERS["seeded"], "check": False})


@pytest.mark.parametrize("ctas", [1, 2, 3, 4, 7])
def test_stream_k_cuts_tiles_anywhere(ctas: int) -> None:
    case = Case("stream-k", (128, 64, 32), 2, {"resident_ctas": ctas, "warpgroups": 2})
    run(case, GemmProblem(200, 136, 160), {"schedule": "seeded", "seed": ctas, "check": False})


def test_stream_k_is_data_parallel_where_the_grid_divides() -> None:
    problem = GemmProblem(256, 128, 200)
    a, b = operands(problem)
    results = [
        launch(
            Gpu(), build(name, problem, (64, 64, 64), 2, resident_ctas=4, **more), a, b, **IN_ORDER
        ).c
        for name, more in (("stream-k", {}), ("warp-specialized", {"persistent": True}))
    ]
    assert np.array_equal(*(c.view(np.uint16) for c in results))


@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 17))
def test_stream_k_parts_cover_each_tile_once(tiles: int, k_blocks: int, ctas: int) -> None:
    parts = tile_parts(tiles, k_blocks, ctas)
    assert [[k for part in runs for k in part] for runs in parts] == [list(range(k_blocks))] * tiles
    cut = sum(len(runs) > 1 for runs in parts)
    assert cut <= shared_tiles(tiles, ctas) < 2 * ctas
    if tiles % ctas == 0:
        assert cut == 0


@given(st.integers(1, 100), st.integers(1, 100))
def test_splits_are_even(k_blocks: int, splits: int) -> None:
    lengths = [len(blocks) for blocks in split_blocks(k_blocks, splits)]
    assert sum(lengths) == k_blocks
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[-1] <= 1


@settings(max_examples=12, deadline=None)
@given(
    m=st.integers(1, 150),
    n=st.integers(1, 20),
    k=st.integers(1, 30),
    index=st.integers(0, len(CASES) - 1),
    seed=st.integers(0, 1 << 16),
)
def test_any_size_on_any_schedule(m: int, n: int, k: int, index: int, seed: int) -> None:
    case = CASES[index]
    sizes = (m, 8 * n, 8 * k + 40)
    run(
        case,
        GemmProblem(*sizes, "bf16", case.out),
        {"schedule": "seeded", "seed": seed, "check": False},
    )


@pytest.mark.parametrize(
    ("schedule", "problem", "tile", "stages", "options", "message"),
    [
        ("split-k", ("bf16", "bf16"), (64, 64, 64), 2, {"splits": 2}, "sums in global memory need f32"),
        ("split-k", ("bf16", "f32"), (64, 64, 64), 2, {"splits": 9}, "9 splits need as many k-blocks, got 8"),
        ("split-k", ("bf16", "bf16"), (64, 64, 64), 4, {"splits": 3, "reduction": "dsmem"}, "adds up 2, 4 or 8"),
        ("split-k", ("bf16", "bf16"), (64, 256, 64), 1, {}, "stages must be 2 to"),
        ("split-k", ("bf16", "bf16"), (128, 128, 16), 2, {"splits": 2, "reduction": "dsmem"}, "must fit where"),
        ("pipelined", ("bf16", ""), (64, 64, 64), 2, {"splits": 2}, "hint: a schedule that takes it: split-k"),
        ("mma-simple", ("bf16", ""), (64, 48, 16), 1, {}, "tile n must be a multiple of 32"),
        ("mma-multistage", ("bf16", ""), (64, 64, 16), 3, {}, "tile k must be 64, 128 or 256 bytes"),
        ("cooperative", ("bf16", ""), (128, 64, 64), 3, {"warpgroups": 1}, "warpgroups must be 2 in"),
        ("mma-simple", ("bf16", ""), (64, 64, 16), 3, {}, "a schedule that takes it: mma-multistage, pipelined"),
        ("mma-simple", ("bf16", ""), (64, 48, 16), 1, {"cluster": (2, 1)}, "does not take cluster, got 2x1"),
        ("pipelined", ("bf16", ""), (64, 64, 64), 2, {"group_m": 4, "order": "row"}, "group_m is of the order grouped"),
        ("split-k", ("bf16", ""), (64, 64, 64), 2, {"reduction": "dsmem"}, "and splits is 1"),
    ],
)  # fmt: skip
def test_what_a_schedule_cannot_do(
    schedule: str, problem: tuple[str, str], tile: tuple[int, int, int], stages: int,
    options: dict[str, Any], message: str,
) -> None:  # fmt: skip
    with pytest.raises(LaunchError) as caught:
        build(schedule, GemmProblem(512, 512, 512, *problem), tile, stages, **options)
    assert message.removeprefix("hint: ") in str(caught.value)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_time_without_values(case: Case) -> None:
    """What a kernel waits for (flags included) is known without its data."""
    problem = GemmProblem(136, 72, 144, "bf16", case.out)
    kernel = build(case.schedule, problem, case.tile, case.stages, **case.options)
    a, b = operands(problem)
    results = [
        launch(Gpu(), kernel, a, b, values=values, check=False).result for values in (False, True)
    ]
    assert results[0].cycles == results[1].cycles


@pytest.mark.parametrize(("m", "rows", "hint"), [(20, 16, 24), (57, 8, 0), (128, 8, 0)])
def test_fewer_rows_than_m_has_are_refused(m: int, rows: int, hint: int) -> None:
    many = GemmProblem(m, 128, 128)
    with pytest.raises(LaunchError, match=f"a_rows={rows} leaves out rows of A") as caught:
        build("pipelined", many, (64, 64, 64), 2, a_rows=rows)
    assert caught.value.hint == f"a_rows={hint}, or leave it out"
    assert build("pipelined", many, (64, 64, 64), 2, a_rows=hint).plan.a_rows == hint

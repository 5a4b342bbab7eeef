from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.problem import INPUT_TYPES, GemmProblem, element_type
from hopsim.kernels.gemm.tile import Tile
from hopsim.kernels.ptx.limits import REGISTER_FILE, SHARED_LIMIT_BYTES
from hopsim.layout.swizzle import Swizzle

WS = "warp-specialized"


def plan(
    tile: tuple[int, int, int], dtype: str = "bf16", out: str = "bf16", **more: Any
) -> GemmPlan:
    options: dict[str, Any] = {"stages": 2, "warpgroups": 1, **more}
    return GemmPlan(element_type(dtype), element_type(out), Tile(*tile), **options)


def test_output_type_follows_the_input_type() -> None:
    outs = {t: GemmProblem(16, 16, 16, t).out_dtype for t in INPUT_TYPES}
    assert outs == {"bf16": "bf16", "fp16": "fp16", "e4m3": "bf16", "tf32": "f32", "int8": "s32"}
    assert GemmProblem(16, 16, 16, "f16", "fp32").out_dtype == "f32"
    assert GemmProblem(2, 3 * 8, 4 * 8).flops == 2 * 2 * 24 * 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 8, 8), "m must be from 1 to 2147483647, got 0"),
        ((8, 8, 1 << 31), "k must be from 1"),
        ((8, 8, 12), "row pitch of A and B must be a multiple of 16 bytes for TMA, got 24"),
        ((8, 8, 24, "e4m3"), "pad k to 32"),
        ((8, 12, 16), "row pitch of C must be a multiple of 16 bytes for TMA, got 24"),
        ((8, 8, 16, "fp4"), "element type must be one of bf16, fp16, e4m3, tf32, int8, f32, s32"),
        ((8, 8, 16, "f32"), "dtype must be one of bf16, fp16, e4m3, tf32, int8, got f32"),
        ((8, 16, 16, "e4m3", "e4m3"), "out_dtype must be one of bf16, fp16, f32, s32, got e4m3"),
        ((8, 16, 16, "int8", "f32"), "sums of int8 are s32 and cannot be stored as f32"),
        ((8, 16, 16, "bf16", "s32"), "sums of bf16 are f32 and cannot be stored as s32"),
    ],
)
def test_problems_that_tma_cannot_address(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        GemmProblem(*arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("schedule", "tile", "stages", "options", "message"),
    [
        ("naive", (64, 64, 64), 3, {}, "schedule must be one of"),
        ("pipelined", (64, 64, 64), 3, {"persistent": True}, "pipelined does not take persistent"),
        (
            "pipelined",
            (64, 64, 64),
            3,
            {"cluster": (2, 1)},
            "schedule pipelined does not take cluster",
        ),
        (
            "pingpong",
            (64, 64, 64),
            3,
            {"persistent": False},
            "schedule pingpong sets persistent to true itself, got false\n  try: leave it out, or a schedule that takes it: warp-specialized",
        ),
        ("wgmma-simple", (64, 64, 64), 2, {}, "stages must be 1 in schedule wgmma-simple, got 2"),
        (WS, (64, 64, 64), 2, {"order": "hilbert"}, "order must be one of row, column, grouped"),
        (WS, (64, 64, 64), 2, {"swizzle": Swizzle.NONE, "a_in_registers": True}, "not take a_in"),
        (WS, (64, 64, 32), 2, {"swizzle": Swizzle.B128}, "no multiple of a B128 line (64)"),
        (WS, (96, 64, 64), 3, {}, "tile m must be a multiple of 64"),
        (WS, (64, 64, 64), 3, {"warpgroups": 2}, "tile m must be a multiple of 128"),
        (WS, (320, 64, 64), 3, {}, "up to 256, got 320"),
        (
            WS,
            (64, 64, 64),
            3,
            {"warpgroups": 3},
            "warpgroups must be 1 or 2 in schedule warp-specialized, got 3",
        ),
        (WS, (64, 264, 64), 3, {}, "tile n must be a multiple of 8 from 8 to 256, got 264"),
        (WS, (64, 272, 64), 3, {}, "got 272"),
        (
            WS,
            (64, 64, 48),
            3,
            {},
            "tile k of 48 bf16 is 96 bytes, expected 32, 64 or a multiple of",
        ),
        (WS, (64, 64, 8), 3, {}, "tile k of 8 bf16 is 16 bytes"),
        (WS, (64, 64, 64), 1, {}, "stages must be 2 to 64 to overlap copy and product"),
        (WS, (64, 64, 64), 3, {"group_m": 0}, "group_m must be at least 1, got 0"),
        (WS, (64, 64, 64), 3, {"cluster": (4, 1)}, "cluster must be (1,1), (2,1), (1,2) or (2,2)"),
        (WS, (64, 48, 64), 3, {"cluster": (2, 1)}, None),
        (WS, (64, 80, 64), 3, {"cluster": (2, 1)}, None),
        (WS, (64, 64, 64), 3, {"release_scope": "gpu"}, "release_scope must be cta or cluster"),
        (WS, (64, 64, 64), 3, {"resident_ctas": 0}, "resident_ctas must be at least 1, got 0"),
        (WS, (64, 64, 64), 3, {"store_buffers": 2}, "store_buffers must be 1 to 1"),
        (WS, (128, 256, 64), 3, {}, "of 255 registers\n  try: two warpgroups, or a smaller tile"),
        (WS, (128, 256, 64), 3, {}, "needs 256 accumulators a thread, expected at most 192"),
        (WS, (256, 208, 64), 2, {"warpgroups": 2}, "of 255 registers\n  try: a smaller tile"),
        (
            WS,
            (128, 256, 64),
            5,
            {"warpgroups": 2},
            "bytes of shared memory, expected at most 232448",
        ),
    ],
)
def test_configurations_that_the_hardware_refuses(
    schedule: str,
    tile: tuple[int, int, int],
    stages: int,
    options: dict[str, Any],
    message: str | None,
) -> None:
    problem = GemmProblem(512, 512, 512)
    if message is None:
        assert build(schedule, problem, tile, stages, **options).cluster == 2
        return
    with pytest.raises(LaunchError) as caught:
        build(schedule, problem, tile, stages, **options)
    assert message in str(caught.value)


def test_numbers_of_a_two_warpgroup_tile() -> None:
    p = plan((128, 256, 64), stages=4, warpgroups=2, has_producer=True, cluster=(2, 1))
    assert (p.swizzle, p.a.boxes, p.k_steps) == (Swizzle.B128, 1, 4)
    assert (p.a_box, p.b_box, p.c_box) == ((64, 128), (64, 128), (64, 64))
    assert (p.warpgroup_m, p.m_atoms, p.accumulators) == (64, 1, 128)
    assert (p.stage_bytes, p.b_offset) == (49152, 16384)
    assert (p.c_boxes, p.store_buffers) == (4, 2)
    assert (p.staging_offset, p.full_offset, p.empty_offset) == (196608, 229376, 229408)
    assert p.shared_bytes == 229440
    assert (p.consumer_registers, p.entry_registers) == (192, 160)


def test_numbers_of_a_tile_with_few_rows_of_a() -> None:
    p = plan((128, 64, 128), stages=3, warpgroups=2, a_rows=24)
    assert (p.a_box, p.b_box, p.a.boxes) == ((64, 24), (64, 64), 2)
    assert (p.stage_bytes, p.loaded_bytes) == ((128 + 64) * 256, (24 + 64) * 256)
    assert p.a.slab_bytes == 128 * 128
    assert plan((64, 64, 64)).loaded_bytes == plan((64, 64, 64)).stage_bytes


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"a_rows": 12},
            "A of tile 64x64x64: of 64 rows a multiple of 8 less can be loaded, got 12",
        ),
        ({"a_rows": 64}, "of 64 rows a multiple of 8 less can be loaded, got 64"),
        ({"a_rows": 16, "cluster": (1, 2)}, "only a K-major operand that one CTA brings"),
        ({"a_rows": 16, "a_major": "MN"}, "only a K-major operand that one CTA brings"),
    ],
)
def test_rows_that_cannot_be_loaded_alone(more: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        plan((64, 64, 64), **more)
    assert message in str(caught.value)


def test_wide_k_takes_several_slabs_and_narrow_k_a_narrow_swizzle() -> None:
    wide, narrow = plan((64, 64, 128)), plan((64, 64, 32))
    assert (wide.swizzle, wide.a.boxes, wide.a_box) == (Swizzle.B128, 2, (64, 64))
    assert (narrow.swizzle, narrow.a.boxes, narrow.a_box) == (Swizzle.B64, 1, (32, 64))
    fp8 = plan((64, 64, 128), "e4m3")
    assert (fp8.swizzle, fp8.a.boxes, fp8.k_steps) == (Swizzle.B128, 1, 4)
    assert plan((64, 48, 64)).c_box == (16, 64)
    assert plan((64, 72, 64)).c_box == (72, 64)
    assert plan((64, 64, 128), "e4m3", promotes=True).sums == 64
    assert plan((64, 64, 64), out="f32").c_box == (32, 64)


@given(
    m=st.sampled_from([64, 128, 192, 256]),
    n=st.integers(1, 16).map(lambda i: 16 * i),
    k_bytes=st.sampled_from([32, 64, 128, 256, 384]),
    dtype=st.sampled_from(["bf16", "e4m3"]),
    out=st.sampled_from(["bf16", "f32"]),
    stages=st.integers(2, 8),
    warpgroups=st.integers(1, 2),
    cluster=st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)]),
    has_producer=st.booleans(),
)
def test_every_plan_is_refused_or_fits_and_is_aligned(
    m: int, n: int, k_bytes: int, dtype: str, out: str, stages: int, warpgroups: int,
    cluster: tuple[int, int], has_producer: bool,
) -> None:  # fmt: skip
    k = k_bytes // element_type(dtype).size
    try:
        p = plan(
            (m, n, k), dtype, out, stages=stages, warpgroups=warpgroups, cluster=cluster,
            has_producer=has_producer,
        )  # fmt: skip
    except LaunchError:
        return
    assert p.shared_bytes <= SHARED_LIMIT_BYTES
    assert p.stage_bytes == (m + n) * k_bytes
    period = p.swizzle.period_bytes
    assert p.a.slab_bytes % period == p.b.slab_bytes % period == p.stage_bytes % period == 0
    for rows in (p.a_box[1], p.b_box[1]):
        assert rows * p.swizzle.width_bytes % period == 0
        assert rows <= 256
    assert p.staging_offset % 1024 == p.c_box_bytes % 1024 == 0
    assert p.full_offset % 8 == 0
    assert p.c_boxes * p.c_box[0] * p.c_box[1] * warpgroups == m * n
    assert p.entry_registers * p.threads <= REGISTER_FILE
    assert p.consumer_registers >= p.entry_registers or not has_producer

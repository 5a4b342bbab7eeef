"""Worked cases of DeepGEMM's rules, each followed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hopsim.kernels import choose
from hopsim.kernels.ptx.limits import SHARED_LIMIT_BYTES


@pytest.mark.parametrize(
    ("sizes", "dtype", "wanted"),
    [
        # 32 x 16 tiles = 512 = 3.9 waves; every smaller tile needs more. M is large: B to two CTAs.
        ((4096, 4096, 4096), "bf16", ("cooperative", "128x256x64", 4, (2, 1), "blocks-m")),
        ((4096, 4096, 4096), "e4m3", ("cooperative", "128x256x128", 4, (2, 1), "blocks-m")),
        # 256 x 16: 512 tiles as well; 128x256 came first and is not narrower
        ((8192, 8192, 8192), "bf16", ("cooperative", "128x256x64", 4, (2, 1), "blocks-m")),
        # one wave whatever the tile: 64x32 gives 2 x 66 = 132 CTAs, a full one. M is small.
        ((128, 2112, 7168), "bf16", ("warp-specialized", "64x32x64", 16, (1, 1), "blocks-m")),
        # 128x144: 32 x 4 = 128 CTAs in one wave, where 128x128 needs 160
        ((4096, 576, 7168), "bf16", ("cooperative", "128x144x64", 6, (2, 1), "blocks-m")),
        # 8 x 16 = 128 CTAs of 64x32; rows are the larger side, so A goes to two CTAs
        ((512, 512, 512), "bf16", ("warp-specialized", "64x32x64", 8, (1, 2), "blocks-n")),
        # a single tile takes no more stages than k-blocks
        ((16, 16, 64), "bf16", ("warp-specialized", "64x16x64", 2, (1, 1), "blocks-m")),
    ],
)
def test_worked_cases(sizes: tuple[int, int, int], dtype: str, wanted: tuple[Any, ...]) -> None:
    found = choose(*sizes, dtype)
    options = found.options
    got = (found.schedule, str(found.tile), found.stages, options["cluster"], options["order"])
    assert got == wanted


def test_no_multicast_on_an_odd_number_of_sms() -> None:
    found = choose(4096, 4096, 4096, sms=131)
    assert found.options["cluster"] == (1, 1)
    assert "cluster 1x1: 131 SMs do not divide by 2" in found.reasons


def test_no_multicast_below_512_rows() -> None:
    assert choose(511, 4096, 4096).options["cluster"] == (1, 1)
    assert choose(512, 4096, 4096).options["cluster"] != (1, 1)


def test_f32_results_take_no_256_rows() -> None:
    for sizes in ((4096, 2048, 512), (8192, 1024, 512)):
        assert choose(*sizes, out_dtype="f32").tile.m < 256


def test_reasons_are_a_line_for_each_part() -> None:
    assert choose(4096, 4096, 4096).reasons == (
        "tile 128x256x64: 4 waves on 132 SMs, the fewest of 40 tiles; 116 CTAs in the last, the most "
        "of those; k of one 128-byte line",
        "schedule cooperative: 2 warpgroups for 128 rows",
        "cluster 2x1: B, the larger side of the tile, is multicast to two CTAs; M = 4096 is at least "
        "512 and 132 SMs divide by 2",
        "4 stages: the most that fit 232,448 bytes (229,440 used)",
        "order blocks-m: 16 tiles along M at a time, whose rows of A stay in L2",
    )


@pytest.mark.parametrize("m", [1, 64, 100, 1000, 4096])
@pytest.mark.parametrize("n", [24, 576, 2112, 24576])
@pytest.mark.parametrize("k", [64, 512, 7168])
def test_every_choice_can_be_built_and_takes_one_more_stage_at_most(m: int, n: int, k: int) -> None:
    found = choose(m, n, k)
    kernel = found.build()
    assert kernel.shared_bytes <= SHARED_LIMIT_BYTES
    # the next stage would not fit, or there is no k-block for it
    has_all_blocks = kernel.plan.stages >= min(16, -(-k // found.tile.k))
    staged = 2 * kernel.plan.warpgroups * kernel.plan.c_box_bytes
    least = kernel.plan.full_offset - kernel.plan.warpgroups * kernel.plan.staging_bytes + staged
    assert has_all_blocks or least + kernel.plan.stage_bytes > SHARED_LIMIT_BYTES - 1024

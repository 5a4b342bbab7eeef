"""Speed of the tensor core's arithmetic: nanoseconds a multiply-accumulate, by type and tile.

pytest benchmarks/test_tensor_core_speed.py
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hopsim.isa.numerics.convert import make_cvt
from hopsim.isa.numerics.mma_kinds import MMA_SYNC, WGMMA
from hopsim.isa.numerics.mma_plain import mma_float32
from hopsim.isa.numerics.tensor_core import mma_chain
from hopsim.reference import gemm

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
}


def operand(name: str, rows: int, depth: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal((rows, depth)).astype(DTYPES[name])
    return values.view(f"u{values.itemsize}")


def report(benchmark: Any, macs: int) -> None:
    benchmark.extra_info["ns_per_mac"] = round(benchmark.stats.stats.min * 1e9 / macs, 3)
    print(f" {benchmark.extra_info['ns_per_mac']} ns a multiply-accumulate")


@pytest.mark.parametrize("columns", [64, 128, 256])
@pytest.mark.parametrize("name", list(DTYPES))
def test_one_wgmma_group(benchmark: Any, name: str, columns: int) -> None:
    """64 x N with 128 bytes of K: what one k-block of a GEMM issues."""
    depth = 128 // DTYPES[name].itemsize
    a, b = operand(name, 64, depth, 1), operand(name, columns, depth, 2)
    c = np.zeros((64, columns), np.uint32)
    benchmark(mma_chain, a, b, c, WGMMA[(name, name)])
    report(benchmark, 64 * columns * depth)


def test_long_chain(benchmark: Any) -> None:
    a, b = operand("bf16", 64, 1024, 1), operand("bf16", 256, 1024, 2)
    benchmark(mma_chain, a, b, None, WGMMA[("bf16", "bf16")])
    report(benchmark, 64 * 256 * 1024)


def test_tiny_scale_goes_through_float64(benchmark: Any) -> None:
    a, b = operand("bf16", 64, 64, 1), operand("bf16", 256, 64, 2)
    c = np.full((64, 256), 0x7F000000, np.uint32)  # 2**127: beyond the float32 path
    benchmark(mma_chain, a, b, c, WGMMA[("bf16", "bf16")])
    report(benchmark, 64 * 256 * 64)


def test_mma_sync_batch(benchmark: Any) -> None:
    """32 warps' m16n8k16 at once."""
    a = operand("bf16", 512, 16, 1).reshape(32, 16, 16)
    b = operand("bf16", 256, 16, 2).reshape(32, 8, 16)
    benchmark(mma_chain, a, b, None, MMA_SYNC[("bf16", "bf16")])
    report(benchmark, 32 * 16 * 8 * 16)


def test_float32_mode(benchmark: Any) -> None:
    a, b = operand("bf16", 64, 64, 1), operand("bf16", 256, 64, 2)
    benchmark(mma_float32, a, b, None, WGMMA[("bf16", "bf16")])
    report(benchmark, 64 * 256 * 64)


@pytest.mark.parametrize("name", ["bf16", "e4m3"])
def test_reference_256_cubed(benchmark: Any, name: str) -> None:
    a, b = (operand(name, 256, 256, seed).view(DTYPES[name]) for seed in (1, 2))
    benchmark(gemm, a, b)
    report(benchmark, 256**3)


def test_epilogue_pack_of_a_warpgroup(benchmark: Any) -> None:
    pack = make_cvt("bf16x2", "f32", "rn")
    x = np.random.default_rng(1).standard_normal(128).astype(np.float32).view(np.uint32)
    benchmark(pack, x, x)

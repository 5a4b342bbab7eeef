"""Times of kernels beside the ladder on a real device, as plain data for JSON.

Attention and fp8-scaled; convolutions; GEMMs of few products a tile in more and more waves of CTAs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.errors import HopsimError
from hopsim.kernels.attention import launch as attention
from hopsim.kernels.attention.plan import AttentionProblem
from hopsim.kernels.convolution import launch as convolution
from hopsim.kernels.convolution.problem import ConvProblem
from hopsim.kernels.fp8_scaled import launch as scaled
from hopsim.kernels.fp8_scaled.scaled import BLOCK
from hopsim.kernels.gemm import launch as gemm
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.launch.device import Device
from hopsim.results import LaunchResult

ATTENTION: Final = tuple(
    (AttentionProblem(heads, length, length, head_dim, causal), block_kv)
    for heads, length in ((16, 1024), (16, 4096), (4, 16384))
    for head_dim in (64, 128)
    for causal in (False, True)
    for block_kv in (128, 176)
)
"""Problems, and rows of K and V in a stage."""
SCALED: Final = tuple(
    (GemmProblem(*size, "e4m3"), tile, stages, cluster)
    for size in ((1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192))
    for tile, stages, cluster in (
        ((128, 128), 4, (1, 1)), ((128, 160), 4, (1, 1)), ((128, 128), 4, (2, 1)), ((64, 128), 4, (1, 1)),
    )
)  # fmt: skip

_POINT: Final[dict[str, Any]] = {"extent": (1, 1), "padding": (0, 0)}
_WIDE: Final[dict[str, Any]] = {"dilation": (2, 2), "padding": (2, 2)}
CONVOLUTIONS: Final = (
    (ConvProblem(2, 28, 28, 128, 128), (128, 128), 4, False),
    (ConvProblem(32, 56, 56, 64, 64), (128, 64), 4, False),
    (ConvProblem(32, 56, 56, 64, 64), (256, 64), 4, False),
    (ConvProblem(32, 56, 56, 256, 64, **_POINT), (128, 64), 4, False),
    (ConvProblem(32, 56, 56, 64, 256, **_POINT), (128, 256), 2, False),
    (ConvProblem(32, 28, 28, 128, 128), (128, 128), 4, False),
    (ConvProblem(32, 28, 28, 128, 128), (128, 128), 4, True),
    (ConvProblem(32, 28, 28, 256, 256, stride=(2, 2)), (128, 128), 4, False),
    (ConvProblem(32, 14, 14, 256, 256), (128, 128), 4, False),
    (ConvProblem(32, 14, 14, 256, 256), (128, 256), 3, False),
    (ConvProblem(32, 14, 14, 512, 512, **_WIDE), (128, 256), 3, True),
    (ConvProblem(32, 7, 7, 512, 512), (64, 128), 4, False),
    (ConvProblem(32, 7, 7, 512, 512), (128, 128), 4, False),
    (ConvProblem(8, 112, 112, 64, 64, extent=(7, 7), stride=(2, 2), padding=(3, 3)), (128, 64), 4, False),
)  # fmt: skip
"""Problems of ResNet-50's shapes and some beside them, tile, stages, and whether CTAs are persistent."""

WAVE: Final = 132
"""Tiles of a wave: one for each SM."""
WAVES: Final = tuple(
    (schedule, GemmProblem(int(WAVE * waves) * tile[0], n, k), tile, stages)
    for waves in (0.25, 0.5, 1, 1.5, 2, 3, 4, 6)
    for schedule, n, k, tile, stages in (
        ("warp-specialized", 256, 64, (128, 256, 64), 2), ("warp-specialized", 256, 256, (128, 256, 64), 3),
        ("warp-specialized", 64, 256, (128, 64, 64), 4), ("warp-specialized", 128, 128, (128, 128, 64), 2),
        ("pipelined", 128, 128, (128, 128, 64), 2),
    )
)  # fmt: skip
"""Schedule, problem, tile and stages: every tile has rows of A of its own, and all columns of B."""

Launch = Callable[..., LaunchResult]
Cases = Iterator[tuple[dict[str, Any], Launch]]


def convolutions(gpu: Device) -> Cases:
    """Give what each convolution is, and what launches it on random numbers with options of `gpu.launch`."""
    values = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
    for problem, tile, stages, persistent in CONVOLUTIONS:
        kernel = convolution.build(problem, tile, stages, persistent=persistent)
        kind = NUMPY_TYPES[problem.dtype]
        x = np.resize(values.astype(kind), problem.x_shape)
        w = np.resize(values[::-1].astype(kind), problem.w_shape)

        def go(kernel: Any = kernel, x: Any = x, w: Any = w, **options: Any) -> Any:
            return convolution.launch(gpu, kernel, x, w, **options).result

        words = {
            name: getattr(problem, name)
            for name in (
                "images", "height", "width", "channels", "filters", "extent", "stride", "padding", "dilation",
            )
        }  # fmt: skip
        more = {"tile": list(tile), "stages": stages, "persistent": persistent}
        yield {**_row("convolution", kernel, problem.flops), **words, **more}, go


def waves(gpu: Device) -> Cases:
    """Give what each GEMM of some waves is, and what launches it, as `convolutions` does."""
    values = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
    for schedule, problem, tile, stages in WAVES:
        kernel = build(schedule, problem, tile, stages, warpgroups=2)
        kind = NUMPY_TYPES[problem.dtype]
        a = np.resize(values.astype(kind), problem.a_shape)
        b = np.resize(values[::-1].astype(kind), problem.b_shape)

        def go(kernel: Any = kernel, a: Any = a, b: Any = b, **options: Any) -> Any:
            return gemm.launch(gpu, kernel, a, b, **options).result

        words = {
            "m": problem.m,
            "n": problem.n,
            "k": problem.k,
            "tile": list(tile),
            "stages": stages,
        }
        yield {**_row(schedule, kernel, problem.flops), **words}, go


def cases(gpu: Device) -> Cases:
    """Give what each kernel of attention and fp8-scaled is, and what launches it, as `convolutions` does."""
    values = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
    for problem, block_kv in ATTENTION:
        kernel = attention.build(problem, block_kv=block_kv)
        kind = attention.NUMPY_TYPES[problem.dtype]
        shape = (problem.heads, problem.seq_q, problem.head_dim)
        q, k, v = (np.resize(np.roll(values, i).astype(kind), shape) for i in range(3))

        def go(kernel: Any = kernel, q: Any = q, k: Any = k, v: Any = v, **options: Any) -> Any:
            return attention.launch(gpu, kernel, q, k, v, **options).result

        words = {
            "heads": problem.heads, "seq": problem.seq_q, "head_dim": problem.head_dim, "causal": problem.causal,
            "block_kv": block_kv, "dtype": problem.dtype,
        }  # fmt: skip
        yield {**_row("attention", kernel, problem.flops), **words}, go
    for problem, tile, stages, cluster in SCALED:
        kernel = scaled.build(problem, tile, stages, cluster=cluster)
        kind = NUMPY_TYPES["e4m3"]
        a = np.resize(values.astype(kind), (problem.m, problem.k))
        b = np.resize(values[::-1].astype(kind), (problem.n, problem.k))
        blocks = -(-problem.k // BLOCK)
        scales = np.abs(values) + 0.5
        a_scales = np.resize(scales, (problem.m, blocks))
        b_scales = np.resize(scales, (-(-problem.n // BLOCK), blocks))

        def run(
            kernel: Any = kernel, a: Any = a, b: Any = b, a_scales: Any = a_scales, b_scales: Any = b_scales,
            **options: Any,
        ) -> Any:  # fmt: skip
            return scaled.launch(gpu, kernel, a, b, a_scales, b_scales, **options).result

        words = {
            "m": problem.m, "n": problem.n, "k": problem.k, "tile": list(tile), "stages": stages,
            "cluster": list(cluster),
        }  # fmt: skip
        yield {**_row("fp8-scaled", kernel, problem.flops), **words}, run


def _row(
    schedule: str,
    kernel: attention.AttentionKernel | scaled.ScaledKernel | convolution.ConvKernel | GemmKernel,
    flops: int,
) -> dict[str, Any]:
    return {
        "schedule": schedule, "entry": kernel.entry, "flop": flops,
        "ptx_sha256": hashlib.sha256(kernel.ptx.encode()).hexdigest(), "grid": math.prod(kernel.grid),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelSet:
    """Kernels that are recorded together: what they are, and what gives them."""

    what: str
    cases: Callable[[Device], Cases]


SETS: Final = {
    "others": KernelSet("attention and fp8-scaled", cases),
    "convolutions": KernelSet("convolutions", convolutions),
    "waves": KernelSet("GEMMs of few products a tile, in waves of CTAs", waves),
}
"""By the name of the file that has their recordings."""


def times(gpu: Device, name: str, repeats: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Time every kernel of a set by events, with L2 flushed and back to back."""
    rows: list[dict[str, Any]] = []
    for row, go in SETS[name].cases(gpu):
        rows.append(row)
        try:
            result = go(repeats=repeats, measure_clock=True)
        except HopsimError as error:
            row["error"] = error.what
        else:
            row["time_us_l2_flushed"] = result.time_us
            row["time_us_back_to_back"] = result.counters.get("hopsim__time_us_warm")
            row["clock_hz_back_to_back"] = result.clock_hz
        rate = row["flop"] / row["time_us_l2_flushed"] / 1e6 if row.get("time_us_l2_flushed") else 0
        say(f"{row['entry']} {row['grid']}: {row.get('error') or f'{rate:.1f} TFLOP/s'}")
    return rows

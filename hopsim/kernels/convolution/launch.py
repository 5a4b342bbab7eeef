"""`build` and `run`: a convolution on a device, simulated or real, through the runtime's protocol.

problem = ConvProblem(images=2, height=28, width=28, channels=128, filters=128)
done = run(hopsim.Gpu("h100-sxm"), problem, x, w)
done.y, done.result.cycles
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.convolution.forward import emit_forward
from hopsim.kernels.convolution.problem import ConvProblem
from hopsim.kernels.gemm.frame import SHARED_SYMBOL
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.plan import GemmPlan, Tile
from hopsim.kernels.gemm.problem import element_type
from hopsim.kernels.gemm.scheduler import H100_CTAS
from hopsim.kernels.ptx.text import module_text
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.launch.device import Device
from hopsim.results import LaunchResult

SLICE = 64
"""Channels of one load: 128 bytes, one row of the swizzle."""


@dataclass(frozen=True, slots=True)
class ConvKernel:
    """A built kernel: PTX, and how to launch it for its problem."""

    problem: ConvProblem
    plan: GemmPlan
    ptx: str
    entry: str
    grid: tuple[int, int, int]
    block: int
    shared_bytes: int

    @property
    def cluster(self) -> int:
        """CTAs of a cluster: none shares its loads."""
        return 1


@dataclass(frozen=True, slots=True)
class ConvRun:
    """A finished launch: the output in the problem's type, the result, and what was launched."""

    y: NDArray[Any]
    result: LaunchResult
    kernel: ConvKernel


def build(
    problem: ConvProblem,
    tile: tuple[int, int] = (128, 128),
    stages: int = 4,
    *,
    warpgroups: int | None = None,
    persistent: bool = False,
) -> ConvKernel:
    """Return the kernel of a problem.

    Args:
        tile: pixels and filters that a CTA computes at a time.
        stages: slots of the ring.
        warpgroups: that compute; by default one for each 64 pixels, two at most.
        persistent: a CTA an SM walks over the tiles.

    Raises: LaunchError: the hardware cannot do it.
    """
    pixels, filters = tile
    dtype = element_type(problem.dtype)
    plan = GemmPlan(
        dtype=dtype, out_dtype=dtype, tile=Tile(pixels, filters, SLICE), stages=stages,
        warpgroups=warpgroups or min(2, max(1, pixels // 64)), persistent=persistent, has_producer=True,
    )  # fmt: skip
    tiles = -(-problem.pixels // pixels) * -(-problem.filters // filters)
    parts = ["convolution", dtype.name, "x".join(map(str, problem.extent))]
    for name, pair, usual in (
        ("stride", problem.stride, (1, 1)),
        ("pad", problem.padding, (0, 0)),
        ("dilation", problem.dilation, (1, 1)),
    ):
        if pair != usual:
            parts.append(f"{name}{pair[0]}x{pair[1]}")
    parts.append(
        f"{plan.tile}_s{stages}_w{plan.warpgroups}" + ("_persistent" if persistent else "")
    )
    entry = "_".join(parts)
    return ConvKernel(
        problem=problem,
        plan=plan,
        ptx=module_text(emit_forward(entry, problem, plan), SHARED_SYMBOL),
        entry=entry,
        grid=(min(tiles, H100_CTAS[1]) if persistent else tiles, 1, 1),
        block=plan.threads,
        shared_bytes=plan.shared_bytes,
    )


def run(
    gpu: Device,
    problem: ConvProblem,
    x: NDArray[Any],
    w: NDArray[Any],
    *,
    tile: tuple[int, int] = (128, 128),
    stages: int = 4,
    launch_options: Mapping[str, Any] | None = None,
    **build_options: Any,
) -> ConvRun:
    """Build the kernel, launch it on `gpu`, and return the convolution of `x` with `w`.

    Args:
        x: shape (images, height, width, channels).  w: (filters, R, S, channels).  Of the problem's type.
        tile, stages, build_options: see `build`.
        launch_options: handed to `gpu.launch`.

    Raises: LaunchError: see `build`; or an operand's shape or type is not the problem's.
    """
    return launch(
        gpu, build(problem, tile, stages, **build_options), x, w, **(launch_options or {})
    )


def launch(
    gpu: Device, kernel: ConvKernel, x: NDArray[Any], w: NDArray[Any], **options: Any
) -> ConvRun:
    """Launch a built kernel; `options` are handed to `gpu.launch`.

    Raises: LaunchError: an operand's shape or type is not the problem's.
    """
    problem = kernel.problem
    kind = NUMPY_TYPES[problem.dtype]
    for name, got, shape in (("x", x, problem.x_shape), ("w", w, problem.w_shape)):
        if got.shape != shape or got.dtype != kind:
            raise LaunchError(
                f"{name} must be {kind} {shape}, got {got.dtype} {got.shape}",
                where="convolution",
                hint="images by H by W by channels, and filters by R by S by channels",
            )
    y = gpu.array(np.full(problem.out_shape, np.nan, kind))
    result = _launch(gpu, kernel, gpu.array(x), gpu.array(w), y, options)
    return ConvRun(y.numpy(), result, kernel)


def launch_dry(gpu: Device, kernel: ConvKernel, **options: Any) -> LaunchResult:
    """Launch a built kernel for its time and order alone; nobody fills or reads the arrays, so that they take no memory.

    Raises: LaunchError.
    """
    problem = kernel.problem
    kind = NUMPY_TYPES[problem.dtype]
    y, x, w = (
        gpu.empty(shape, kind) for shape in (problem.out_shape, problem.x_shape, problem.w_shape)
    )
    return _launch(gpu, kernel, x, w, y, {**options, "values": False})


def _launch(
    gpu: Device,
    kernel: ConvKernel,
    x: DeviceArray,
    w: DeviceArray,
    y: DeviceArray,
    options: Mapping[str, Any],
) -> LaunchResult:
    return gpu.launch(
        loads(kernel.ptx)[kernel.entry],
        grid=kernel.grid,
        block=kernel.block,
        cluster=kernel.cluster,
        args=arguments(kernel, x, w, y),
        shared_bytes=kernel.shared_bytes,
        **options,
    )


def arguments(kernel: ConvKernel, x: DeviceArray, w: DeviceArray, y: DeviceArray) -> list[Any]:
    """Return the arguments of a launch, in the order of the entry's parameters."""
    problem, plan = kernel.problem, kernel.plan
    _, p, q, filters = problem.out_shape
    size = plan.dtype.size
    slices = -(-problem.channels // SLICE)
    stride_h, stride_w = problem.stride
    return [
        TensorMap(
            x, (SLICE, plan.tile.m), "128B", element_strides=(1, stride_w, stride_h, 1), l2_promotion="256B",
            lower_corner=problem.lower_corner, upper_corner=problem.upper_corner,
        ),
        TensorMap(
            w, (SLICE, 1, plan.tile.n), "128B", dims=(problem.channels, problem.taps, filters),
            strides=(problem.channels * size, problem.channels * size * problem.taps), l2_promotion="256B",
        ),
        TensorMap(
            y, plan.c_box, f"{plan.c_swizzle.width_bytes}B" if plan.c_swizzle else "none", dims=(filters, problem.pixels),
            strides=(filters * size,), l2_promotion="256B",
        ),
        *map(np.uint32, (problem.pixels, filters, problem.taps * slices * SLICE, p, q, problem.channels)),
    ]  # fmt: skip

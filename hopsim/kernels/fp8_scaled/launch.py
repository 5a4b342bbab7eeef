"""`build` and `run`: the scaled fp8 product on a device, simulated or real.

problem = GemmProblem(512, 768, 1024, "e4m3")
a, a_scales = quantise.by_row(x)
b, b_scales = quantise.by_block(y)
done = run(hopsim.Gpu("h100-sxm"), problem, a, b, a_scales, b_scales)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.fp8_scaled.scaled import BLOCK, ScaledPlan, emit_fp8_scaled
from hopsim.kernels.gemm.frame import SHARED_SYMBOL
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.problem import GemmProblem, element_type
from hopsim.kernels.gemm.scheduler import grid_ctas
from hopsim.kernels.gemm.tile import Tile
from hopsim.kernels.ptx.limits import SHARED_LIMIT_BYTES, SMS
from hopsim.kernels.ptx.text import module_text
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.launch.device import Device
from hopsim.results import LaunchResult

_SCALES_OF_16_BYTES = 4


@dataclass(frozen=True, slots=True)
class ScaledKernel:
    """A built kernel: PTX, and how to launch it for its problem."""

    problem: GemmProblem
    plan: ScaledPlan
    ptx: str
    entry: str
    grid: tuple[int, int, int]
    block: int
    cluster: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class ScaledRun:
    """A finished launch: C, the result, and what was launched."""

    c: NDArray[Any]
    result: LaunchResult
    kernel: ScaledKernel


def build(
    problem: GemmProblem,
    tile: tuple[int, int] = (128, 128),
    stages: int = 4,
    *,
    cluster: tuple[int, int] = (1, 1),
    order: str = "grouped",
    group_m: int = 8,
    resident_ctas: int | None = None,
) -> ScaledKernel:
    """Return the kernel of a problem of type e4m3.

    Args:
        tile: rows (64 or 128) and columns (8 to 192 in steps of 8) of C for a CTA.
        stages: slots of the ring, 128 of K each.
        cluster, order, group_m: as `hopsim.kernels.gemm.kernel.build` takes them.
        resident_ctas: CTAs of the persistent grid; by default one for each of 132 SMs.

    Raises: LaunchError: the hardware cannot do it.
    """
    if problem.dtype != "e4m3":
        raise LaunchError(
            f"fp8-scaled multiplies e4m3, got {problem.dtype}",
            where="fp8-scaled",
            hint="the other schedules, which have no scales, take all types",
        )
    rows, columns = tile
    if rows not in (64, 128):
        raise LaunchError(f"tile m must be 64 or 128, got {rows}", where="fp8-scaled")
    gemm = GemmPlan(
        dtype=element_type(problem.dtype),
        out_dtype=element_type(problem.out_dtype),
        tile=Tile(rows, columns, BLOCK),
        stages=stages,
        warpgroups=rows // 64,
        cluster=cluster,
        persistent=True,
        order=order,
        group_m=group_m,
        has_producer=True,
        promotes=True,
    )
    plan = ScaledPlan(gemm)
    shared_bytes = plan.shared_bytes(problem.k)
    if shared_bytes > SHARED_LIMIT_BYTES:
        raise LaunchError(
            f"tile {gemm.tile} with {stages} stages and the scales of K = {problem.k} needs "
            f"{shared_bytes} bytes of shared memory, expected at most {SHARED_LIMIT_BYTES}",
            where="fp8-scaled",
            hint="fewer stages",
        )
    shape = f"{rows}x{columns}_s{stages}_c{cluster[0]}x{cluster[1]}"
    entry = f"fp8_scaled_{gemm.out_dtype.name}_{shape}"
    return ScaledKernel(
        problem=problem,
        plan=plan,
        ptx=module_text(emit_fp8_scaled(entry, plan), SHARED_SYMBOL),
        entry=entry,
        grid=(grid_ctas(problem, gemm, resident_ctas or SMS), 1, 1),
        block=gemm.threads,
        cluster=gemm.cluster_size,
        shared_bytes=shared_bytes,
    )


def run(
    gpu: Device,
    problem: GemmProblem,
    a: NDArray[Any],
    b: NDArray[Any],
    a_scales: NDArray[np.float32],
    b_scales: NDArray[np.float32],
    tile: tuple[int, int] = (128, 128),
    stages: int = 4,
    *,
    cluster: tuple[int, int] = (1, 1),
    **options: Any,
) -> ScaledRun:
    """Build the kernel, launch it on `gpu`, and return C; see `launch`.

    Raises: LaunchError: see `build` and `launch`.
    """
    kernel = build(problem, tile, stages, cluster=cluster)
    return launch(gpu, kernel, a, b, a_scales, b_scales, **options)


def launch(
    gpu: Device,
    kernel: ScaledKernel,
    a: NDArray[Any],
    b: NDArray[Any],
    a_scales: NDArray[np.float32],
    b_scales: NDArray[np.float32],
    **options: Any,
) -> ScaledRun:
    """Launch a built kernel; `options` are handed to `gpu.launch`.

    Args:
        a: (m, k).  b: (n, k).  Both e4m3.
        a_scales: (m, k / 128).  b_scales: (n / 128, k / 128), each rounded up.

    Raises: LaunchError: an operand's shape or type is not the problem's.
    """
    args, c = arguments(gpu, kernel, a, b, a_scales, b_scales)
    result = gpu.launch(
        loads(kernel.ptx)[kernel.entry],
        grid=kernel.grid,
        block=kernel.block,
        cluster=kernel.cluster,
        args=args,
        shared_bytes=kernel.shared_bytes,
        **options,
    )
    return ScaledRun(c.numpy(), result, kernel)


def arguments(
    gpu: Device,
    kernel: ScaledKernel,
    a: NDArray[Any],
    b: NDArray[Any],
    a_scales: NDArray[np.float32],
    b_scales: NDArray[np.float32],
) -> tuple[list[Any], DeviceArray]:
    """Return the arguments of a launch, in the order of the entry's parameters, and C among them.

    Raises: LaunchError: an operand's shape or type is not the problem's.
    """
    p, gemm = kernel.problem, kernel.plan.gemm
    blocks = -(-p.k // BLOCK)
    fp8, f32 = NUMPY_TYPES["e4m3"], NUMPY_TYPES["f32"]
    for name, got, shape, kind in (
        ("A", a, (p.m, p.k), fp8),
        ("B", b, (p.n, p.k), fp8),
        ("scales of A", a_scales, (p.m, blocks), f32),
        ("scales of B", b_scales, (-(-p.n // BLOCK), blocks), f32),
    ):
        if got.shape != shape or got.dtype != kind:
            raise LaunchError(
                f"{name} must be {kind} {shape}, got {got.dtype} {got.shape}", where="fp8-scaled"
            )
    c = gpu.array(np.full((p.m, p.n), np.nan).astype(NUMPY_TYPES[p.out_dtype]))
    # TMA wants whole 16 bytes from row to row: the scales of A lie k-block after k-block, padded.
    pitch = -(-p.m // _SCALES_OF_16_BYTES) * _SCALES_OF_16_BYTES
    along_m = np.zeros((blocks, pitch), np.float32)
    along_m[:, : p.m] = a_scales.T
    args = [
        _map(gpu.array(a), gemm.a_box, gemm.a.swizzle.width_bytes),
        _map(gpu.array(b), gemm.b_box, gemm.b.swizzle.width_bytes),
        _map(c, gemm.c_box, gemm.c_swizzle.width_bytes),
        _map(gpu.array(along_m), (gemm.tile.m, 1), 0),
        gpu.array(b_scales),
        *(np.uint32(size) for size in (p.m, p.n, p.k)),
    ]
    return args, c


def _map(array: DeviceArray, box: tuple[int, int], swizzle_bytes: int) -> TensorMap:
    swizzle = f"{swizzle_bytes}B" if swizzle_bytes >= 32 else "none"
    return TensorMap(array, box=box, swizzle=swizzle, l2_promotion="256B")

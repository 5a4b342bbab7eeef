"""`run`: a GEMM on a device, simulated or real, through the runtime's protocol.

gpu = hopsim.Gpu("h100-sxm")
problem = GemmProblem(512, 512, 512)
done = run(gpu, problem, a, b, schedule="pipelined", tile=(128, 128, 64), stages=4)
done.c, done.result.cycles
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.gemm.kernel import GemmKernel, MapSpec, build
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.tile import Tile
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.launch.device import Device
from hopsim.results import LaunchResult

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp16": np.dtype(np.float16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "tf32": np.dtype(np.float32),
    "int8": np.dtype(np.int8),
    "s32": np.dtype(np.int32),
    "f32": np.dtype(np.float32),
}


@dataclass(frozen=True, slots=True)
class GemmRun:
    """A finished launch: C (its type is `problem.out_dtype`), the result, and what was launched."""

    c: NDArray[Any]
    result: LaunchResult
    kernel: GemmKernel


def run(
    gpu: Device,
    problem: GemmProblem,
    a: NDArray[Any],
    b: NDArray[Any],
    *,
    schedule: str = "warp-specialized",
    tile: Tile | tuple[int, int, int] = (128, 128, 64),
    stages: int = 4,
    launch_options: Mapping[str, Any] | None = None,
    **build_options: Any,
) -> GemmRun:
    """Build a kernel for `problem`, launch it on `gpu`, and return C = A B^T.

    Args:
        a: shape (m, k), or (k, m) where A is MN-major.  b: shape (n, k) or (k, n).  Both of the
            problem's type.
        schedule, tile, stages, build_options: see `build`.
        launch_options: handed to `gpu.launch` (schedule, seed, values, ...).

    Raises: LaunchError: see `build`; or an operand's shape or type is not the problem's.
    """
    kernel = build(schedule, problem, tile, stages, **build_options)
    return launch(gpu, kernel, a, b, **(launch_options or {}))


def launch(
    gpu: Device, kernel: GemmKernel, a: NDArray[Any], b: NDArray[Any], **options: Any
) -> GemmRun:
    """Launch a built kernel on `gpu` and return C; `options` are handed to `gpu.launch`.

    Raises: LaunchError: an operand's shape or type is not the problem's.
    """
    problem = kernel.problem
    _check_operand("A", a, problem.a_shape, problem.dtype)
    _check_operand("B", b, problem.b_shape, problem.dtype)
    kind = NUMPY_TYPES[problem.out_dtype]
    unwritten = 0 if kernel.adds_to_c else np.iinfo(np.int32).min if kind.kind == "i" else np.nan
    c = gpu.array(np.full((problem.m, problem.n), unwritten, kind))
    result = _launch(gpu, kernel, gpu.array(a), gpu.array(b), c, options)
    return GemmRun(c.numpy(), result, kernel)


def launch_dry(gpu: Device, kernel: GemmKernel, **options: Any) -> LaunchResult:
    """Launch a built kernel for its time and order alone; nobody fills or reads A, B and C, so that they take no memory.

    Raises: LaunchError.  ValuesNeeded: the kernel branches on data.
    """
    problem = kernel.problem
    kind, c_kind = NUMPY_TYPES[problem.dtype], NUMPY_TYPES[problem.out_dtype]
    # C first, as in `launch`: where operands lie decides which channels of memory they meet.
    c = gpu.empty((problem.m, problem.n), c_kind)
    a, b = gpu.empty(problem.a_shape, kind), gpu.empty(problem.b_shape, kind)
    return _launch(gpu, kernel, a, b, c, {**options, "values": False})


def _launch(
    gpu: Device,
    kernel: GemmKernel,
    a: DeviceArray,
    b: DeviceArray,
    c: DeviceArray,
    options: Mapping[str, Any],
) -> LaunchResult:
    return gpu.launch(
        loads(kernel.ptx)[kernel.entry],
        grid=kernel.grid,
        block=kernel.block,
        cluster=kernel.cluster,
        args=arguments(kernel, a, b, c, buffers(gpu, kernel)),
        shared_bytes=kernel.shared_bytes,
        **options,
    )


def buffers(gpu: Device, kernel: GemmKernel) -> list[DeviceArray]:
    """Return the further memory that a kernel needs, zeroed."""
    return [gpu.array(np.zeros(one.words, np.uint32)) for one in kernel.buffers]


def arguments(
    kernel: GemmKernel,
    a: DeviceArray,
    b: DeviceArray,
    c: DeviceArray,
    more: Sequence[DeviceArray] = (),
) -> list[Any]:
    """Return the arguments of a launch, in the order of the entry's parameters.

    Args:
        more: see `buffers`.
    """
    operands = {"A": a, "B": b, "C": c}
    maps = [tensor_map(operands[spec.operand], spec) for spec in kernel.maps]
    pointers = [operands[name] for name in kernel.pointers]
    return [*maps, *pointers, *more, *(np.uint32(value) for value in kernel.scalars)]


def tensor_map(array: DeviceArray, spec: MapSpec) -> TensorMap:
    """Return the runtime's tensor map over `array` as `spec` describes it."""
    return TensorMap(
        array,
        box=spec.box,
        swizzle=spec.swizzle,
        dims=spec.dims,
        strides=spec.strides_bytes,
        l2_promotion=spec.l2_promotion,
    )


def _check_operand(name: str, got: NDArray[Any], shape: tuple[int, int], dtype: str) -> None:
    wanted = NUMPY_TYPES[dtype]
    if got.shape != shape or got.dtype != wanted:
        raise LaunchError(
            f"{name} must be {wanted} {shape}, got {got.dtype} {got.shape}",
            where="gemm",
            hint="astype() for the type; B is given as (n, k), transposed",
        )

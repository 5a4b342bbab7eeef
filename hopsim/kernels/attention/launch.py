"""`build` and `run`: attention on a device, simulated or real, through the runtime's protocol.

problem = AttentionProblem(heads=16, seq_q=1024, seq_kv=1024, head_dim=128, causal=True)
done = run(hopsim.Gpu("h100-sxm"), problem, q, k, v)
done.o, done.result.cycles
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.attention.forward import SHARED_SYMBOL, emit_forward
from hopsim.kernels.attention.plan import (
    BLOCK_Q,
    SLAB,
    THREADS,
    WARPGROUP_ROWS,
    AttentionPlan,
    AttentionProblem,
)
from hopsim.kernels.ptx.text import module_text
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.launch.device import Device
from hopsim.results import LaunchResult

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp16": np.dtype(np.float16),
}


@dataclass(frozen=True, slots=True)
class AttentionKernel:
    """A built kernel: PTX, and how to launch it for its problem."""

    problem: AttentionProblem
    plan: AttentionPlan
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
class AttentionRun:
    """A finished launch: O in the problem's type, the result, and what was launched."""

    o: NDArray[Any]
    result: LaunchResult
    kernel: AttentionKernel


def build(problem: AttentionProblem, *, block_kv: int = 128, stages: int = 2) -> AttentionKernel:
    """Return the kernel of a problem.

    Args:
        block_kv: rows of K and V in a stage.  stages: slots of each ring.

    Raises: LaunchError: the hardware cannot do it.
    """
    plan = AttentionPlan(problem.head_dim, problem.causal, problem.dtype, block_kv, stages)
    causal = "_causal" if plan.causal else ""
    entry = f"attention_{plan.dtype}_d{plan.head_dim}_kv{block_kv}_s{stages}{causal}"
    return AttentionKernel(
        problem=problem,
        plan=plan,
        ptx=module_text(emit_forward(entry, plan), SHARED_SYMBOL),
        entry=entry,
        grid=(-(-problem.seq_q // BLOCK_Q), problem.heads, 1),
        block=THREADS,
        shared_bytes=plan.shared_bytes,
    )


def run(
    gpu: Device,
    problem: AttentionProblem,
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    *,
    block_kv: int = 128,
    stages: int = 2,
    **options: Any,
) -> AttentionRun:
    """Build the kernel, launch it on `gpu`, and return O = softmax(Q K^T / sqrt(d)) V.

    Args:
        q: shape (heads, seq_q, head_dim).  k, v: (heads, seq_kv, head_dim).  Of the problem's type.
        options: handed to `gpu.launch`.

    Raises: LaunchError: see `build`; or an operand's shape or type is not the problem's.
    """
    return launch(gpu, build(problem, block_kv=block_kv, stages=stages), q, k, v, **options)


def launch(
    gpu: Device,
    kernel: AttentionKernel,
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    **options: Any,
) -> AttentionRun:
    """Launch a built kernel; `options` are handed to `gpu.launch`.

    Raises: LaunchError: an operand's shape or type is not the problem's.
    """
    args, o = arguments(gpu, kernel, q, k, v)
    result = _launch(gpu, kernel, args, options)
    return AttentionRun(o.numpy(), result, kernel)


def launch_dry(gpu: Device, kernel: AttentionKernel, **options: Any) -> LaunchResult:
    """Launch a built kernel for its time and order alone; nobody fills or reads Q, K, V and O, so that they take no memory.

    Raises: LaunchError.
    """
    kind = NUMPY_TYPES[kernel.problem.dtype]
    q, k, v, o = (gpu.empty(shape, kind) for shape in _shapes(kernel.problem).values())
    args = _arguments(kernel, q, k, v, o)
    return _launch(gpu, kernel, args, {**options, "values": False})


def _launch(
    gpu: Device, kernel: AttentionKernel, args: list[Any], options: Mapping[str, Any]
) -> LaunchResult:
    return gpu.launch(
        loads(kernel.ptx)[kernel.entry],
        grid=kernel.grid,
        block=kernel.block,
        cluster=1,
        args=args,
        shared_bytes=kernel.shared_bytes,
        **options,
    )


def arguments(
    gpu: Device, kernel: AttentionKernel, q: NDArray[Any], k: NDArray[Any], v: NDArray[Any]
) -> tuple[list[Any], DeviceArray]:
    """Return the arguments of a launch, in the order of the entry's parameters, and O among them.

    Raises: LaunchError: an operand's shape or type is not the problem's.
    """
    kind = NUMPY_TYPES[kernel.problem.dtype]
    shapes = _shapes(kernel.problem)
    for name, got in (("Q", q), ("K", k), ("V", v)):
        if got.shape != shapes[name] or got.dtype != kind:
            raise LaunchError(
                f"{name} must be {kind} {shapes[name]}, got {got.dtype} {got.shape}",
                where="attention",
            )
    o = gpu.array(np.full(shapes["O"], np.nan, kind))
    return _arguments(kernel, gpu.array(q), gpu.array(k), gpu.array(v), o), o


def _shapes(problem: AttentionProblem) -> dict[str, tuple[int, int, int]]:
    """Return the shapes of Q, K, V and O."""
    by_query = (problem.heads, problem.seq_q, problem.head_dim)
    by_key = (problem.heads, problem.seq_kv, problem.head_dim)
    return {"Q": by_query, "K": by_key, "V": by_key, "O": by_query}


def _arguments(
    kernel: AttentionKernel, q: DeviceArray, k: DeviceArray, v: DeviceArray, o: DeviceArray
) -> list[Any]:
    problem, plan = kernel.problem, kernel.plan
    return [
        _map(q, BLOCK_Q),
        _map(k, plan.block_kv),
        _map(v, plan.block_kv),
        _map(o, WARPGROUP_ROWS),
        np.uint32(problem.seq_q),
        np.uint32(problem.seq_kv),
        np.float32(problem.scale_log2),
    ]


def _map(array: DeviceArray, rows: int) -> TensorMap:
    """Return the map of one slab of `rows` rows of one head; rows past a head's end are clipped."""
    return TensorMap(array, box=(SLAB, rows, 1), swizzle="128B", l2_promotion="256B")

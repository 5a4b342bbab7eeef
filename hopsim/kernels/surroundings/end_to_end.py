"""What surrounds a kernel, with its cost: launches one after the other, and their sum.

done = run_maps(hopsim.Gpu("h100-sxm"), problem, a, b, "edited")
[launch.name for launch in done.launches], done.cycles
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.gemm.frame import SHARED_SYMBOL
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, tensor_map
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.ptx.text import module_text
from hopsim.kernels.surroundings.maps import (
    MAP_BYTES,
    WAYS,
    WORKSPACE_BYTES,
    emit_copy_map,
    emit_gemm,
    staging_offset,
)
from hopsim.launch.arrays import TensorMap
from hopsim.launch.device import Device
from hopsim.results import LaunchResult


@dataclass(frozen=True, slots=True)
class NamedLaunch:
    """One launch of a sequence."""

    name: str
    result: LaunchResult


@dataclass(frozen=True, slots=True)
class Sequence:
    """Launches of one stream, one after the other.

    Args:
        c: what the last one computed.
        launches: in order.
    """

    c: NDArray[Any]
    launches: tuple[NamedLaunch, ...]

    @property
    def cycles(self) -> int | None:
        """Cycles from the first to the last, each with its launch overhead; None if untimed."""
        found = [one.result.cycles for one in self.launches]
        return None if None in found else sum(cycles for cycles in found if cycles is not None)

    @property
    def verdict(self) -> str:
        """The worst verdict of all."""
        return worst_verdict(self.launches)


def worst_verdict(launches: tuple[NamedLaunch, ...]) -> str:
    """Return the worst verdict of some launches."""
    order = ("clean", "not-modelled", "hazard", "deadlock")
    return max((one.result.verdict for one in launches), key=order.index)


def run_maps(
    gpu: Device,
    problem: GemmProblem,
    a: NDArray[Any],
    b: NDArray[Any],
    way: str,
    *,
    tile: tuple[int, int, int] = (128, 128, 64),
    stages: int = 4,
    warpgroups: int = 2,
    prefetches: bool = True,
    **options: Any,
) -> Sequence:
    """Run a GEMM whose tensor maps come in one of the `WAYS`.

    Args:
        a: (m, k).  b: (n, k).  Both of the problem's type, K-major.
        options: handed to `gpu.launch`.

    Raises: LaunchError: there is no such way, or the hardware cannot do it.
    """
    if way not in WAYS:
        raise LaunchError(f"way must be one of {', '.join(WAYS)}, got {way!r}", where="maps")
    kernel = build("warp-specialized", problem, tile, stages, warpgroups=warpgroups)
    kind = NUMPY_TYPES[problem.out_dtype]
    arrays = [
        gpu.array(a), gpu.array(b), gpu.array(np.zeros((problem.m, problem.n), kind)),
    ]  # fmt: skip
    maps = [tensor_map(array, spec) for array, spec in zip(arrays, kernel.maps, strict=True)]
    launches: list[NamedLaunch] = []
    shared_bytes = kernel.shared_bytes
    args: list[Any] = list(maps)
    if way == "copied":
        copier = loads(module_text(emit_copy_map("copy_map"), SHARED_SYMBOL))["copy_map"]
        args = [gpu.array(np.zeros(MAP_BYTES, np.uint8)) for _ in maps]
        for one, to in zip(maps, args, strict=True):
            result = gpu.launch(copier, (1, 1, 1), 32, 1, [one, to], 0, **options)
            launches.append(NamedLaunch("copy_map", result))
    elif way == "edited":
        workspace = np.zeros(kernel.grid[0] * WORKSPACE_BYTES, np.uint8)
        args = [*_templates(gpu, kernel), *arrays, gpu.array(workspace)]
        shared_bytes = staging_offset(kernel.plan) + WORKSPACE_BYTES
    name = f"gemm_maps_{way}"
    text = module_text(emit_gemm(name, kernel.plan, way, prefetches=prefetches), SHARED_SYMBOL)
    args += [np.uint32(value) for value in kernel.scalars]
    result = gpu.launch(
        loads(text)[name], kernel.grid, kernel.block, kernel.cluster, args, shared_bytes, **options
    )
    return Sequence(arrays[2].numpy(), (*launches, NamedLaunch(name, result)))


def _templates(gpu: Device, kernel: GemmKernel) -> list[TensorMap]:
    """Return maps with the right type, box and swizzle over memory that nobody is to touch."""
    templates: list[TensorMap] = []
    for spec in kernel.maps:
        empty = gpu.array(np.zeros(spec.box[::-1], NUMPY_TYPES[spec.dtype]))
        templates.append(TensorMap(empty, spec.box, spec.swizzle, l2_promotion=spec.l2_promotion))
    return templates

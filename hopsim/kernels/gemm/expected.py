"""What C a kernel should give, bit for bit, by `hopsim.reference`: its order of additions included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.kernels.gemm.kernel import GemmKernel
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.order import unit_of, walk_order
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.scheduler import units
from hopsim.kernels.gemm.split_k import split_blocks
from hopsim.kernels.gemm.stream_k import tile_parts
from hopsim.reference.gemm import f32_error_bound, gemm, gemm_f64
from hopsim.reference.split_k import add, add_to_zero, parts


def expected(kernel: GemmKernel, a: NDArray[Any], b: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the results that the kernel may give, each (m, n) of C's type; one unless CTAs race to add.

    Args:
        a, b: as they lie in memory, see `GemmProblem.a_shape`.
    """
    problem, plan = kernel.problem, kernel.plan
    out = NUMPY_TYPES[problem.out_dtype]
    a, b = _k_major(problem, a, b)
    if kernel.buffers:
        return [_stream_k(kernel, a, b).astype(out)]
    if plan.splits == 1:
        unit = "mma.sync" if kernel.schedule.startswith("mma") else "wgmma"
        return [gemm(a, b, out_dtype=out, unit=unit)]
    k_blocks = -(-problem.k // plan.tile.k)
    terms = parts(a, b, (_elements(kernel, run) for run in split_blocks(k_blocks, plan.splits)))
    if plan.adds_to_c:
        floats = [term.astype(np.float32) for term in terms]
        return list(add_to_zero(floats, flushes=plan.reduction == "atomic"))
    return [add(terms).astype(out)]


def is_admissible(got: NDArray[Any], admissible: list[NDArray[Any]]) -> NDArray[np.bool_]:
    """Return for each element whether one of the admissible results has its bits."""
    bits = np.dtype(f"u{got.dtype.itemsize}")
    hits = [got.view(bits) == one.view(bits) for one in admissible]
    return np.logical_or.reduce(hits)


def f32_error(
    c: NDArray[Any], problem: GemmProblem, a: NDArray[Any], b: NDArray[Any]
) -> tuple[float, bool]:
    """Return how far C is from the product in float64 at most, and whether f32 sums in any order can be that far off.

    Args:
        a, b: as they lie in memory, see `GemmProblem.a_shape`.
    """
    a, b = _k_major(problem, a, b)
    error = np.abs(c.astype(np.float64) - gemm_f64(a, b))
    is_within = bool((error <= f32_error_bound(a, b, c.dtype)).all())
    return (float(np.nanmax(error)) if error.size else 0.0), is_within


def _k_major(
    problem: GemmProblem, a: NDArray[Any], b: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return A as (m, k) and B as (n, k)."""
    return a if problem.a_major == "K" else a.T, b if problem.b_major == "K" else b.T


def _elements(kernel: GemmKernel, blocks: range) -> range:
    """Return the elements of K of a run of k-blocks."""
    step = kernel.plan.tile.k
    return range(blocks.start * step, min(blocks.stop * step, kernel.problem.k))


def _stream_k(kernel: GemmKernel, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    problem, plan = kernel.problem, kernel.plan
    along_m, along_n = units(problem, plan)
    k_blocks = -(-problem.k // plan.tile.k)
    along, group = walk_order(plan.order, plan.group_m, plan.cluster)
    sums = np.int32 if problem.dtype == "int8" else np.float32
    c = np.zeros((problem.m, problem.n), sums)
    for tile, runs in enumerate(
        tile_parts(math.prod((along_m, along_n)), k_blocks, kernel.grid[0])
    ):
        i, j = unit_of(tile, along_m, along_n, group, along)
        rows = slice(i * plan.tile.m, (i + 1) * plan.tile.m)
        columns = slice(j * plan.tile.n, (j + 1) * plan.tile.n)
        c[rows, columns] = add(parts(a[rows], b[columns], (_elements(kernel, run) for run in runs)))
    return c

"""How far fp8 products are from exact: `fp8-scaled` beside `fp8` with the tensor core's own sums.

a, b = operands(problem, seed=0, spread=4)
compare(hopsim.Gpu("h100-sxm"), problem, a, b)      # two Outcomes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.kernels.fp8_scaled import launch as scaled
from hopsim.kernels.fp8_scaled import quantise
from hopsim.kernels.gemm import launch as plain
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.launch.device import Device
from hopsim.reference.gemm import gemm as reference
from hopsim.reference.gemm_scaled import BLOCK, dequantised, gemm_scaled
from hopsim.results import LaunchResult

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
MOST_SPREAD: Final = 48
"""Sums of products of 2^48 are below 2^127 with any K."""


@dataclass(frozen=True, slots=True)
class Error:
    """A distance from exact, in units of the root mean square of each row of the exact values.

    Args:
        relative: root mean square.
        worst: the largest.
    """

    relative: float
    worst: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One kernel's run.

    Args:
        name: "fp8-scaled" or "fp8".
        result: of the launch.
        is_exact: whether C has the bits of the reference.
        sums: C against the exact product of the same fp8 numbers and scales: how it was summed.
        whole: C against the exact product of the numbers before quantisation.
    """

    name: str
    result: LaunchResult
    is_exact: bool
    sums: Error
    whole: Error


def operands(problem: GemmProblem, seed: int, spread: float) -> tuple[F32, F32]:
    """Return A (m, k) and B (n, k): normal numbers times a power of two for each row and 128 of K.

    Args:
        spread: those powers are uniform from 2^0 to 2^spread.

    Raises: LaunchError: a spread below 0, or one whose products leave float32.
    """
    if not 0 <= spread <= MOST_SPREAD:
        raise LaunchError(f"spread must be from 0 to {MOST_SPREAD}, got {spread:g}", where="fp8")
    rng = np.random.default_rng(seed)

    def one(rows: int) -> F32:
        values = rng.standard_normal((rows, problem.k))
        powers = rng.uniform(0, spread, (rows, -(-problem.k // BLOCK)))
        return (values * np.exp2(powers).repeat(BLOCK, 1)[:, : problem.k]).astype(np.float32)

    return one(problem.m), one(problem.n)


def compare(
    gpu: Device,
    problem: GemmProblem,
    a: F32,
    b: F32,
    tile: tuple[int, int] = (128, 128),
    stages: int = 4,
    **options: Any,
) -> tuple[Outcome, Outcome]:
    """Run both kernels on the same numbers: scales of each block against one scale a tensor.

    Args:
        problem: of type e4m3; f32 for C shows the sums themselves.
        a: (m, k).  b: (n, k).
        options: handed to `gpu.launch`.
    """
    truth = a.astype(np.float64) @ b.astype(np.float64).T
    kind = NUMPY_TYPES[problem.out_dtype]

    qa, sa = quantise.by_row(a)
    qb, sb = quantise.by_block(b)
    fine = scaled.run(gpu, problem, qa, qb, sa, sb, tile, stages, **options)
    exact = dequantised(qa, sa, 1) @ dequantised(qb, sb, BLOCK).T
    one = _outcome(
        "fp8-scaled", fine.result, fine.c, gemm_scaled(qa, qb, sa, sb, kind), 1.0, exact, truth
    )

    (qa, a_scale), (qb, b_scale) = quantise.by_tensor(a), quantise.by_tensor(b)
    coarse = plain.run(
        gpu, problem, qa, qb, schedule="warp-specialized", tile=(*tile, BLOCK), stages=stages,
        warpgroups=tile[0] // 64, persistent=True, launch_options=options,
    )  # fmt: skip
    factor = float(a_scale) * float(b_scale)
    exact = qa.astype(np.float64) @ qb.astype(np.float64).T * factor
    other = _outcome(
        "fp8", coarse.result, coarse.c, reference(qa, qb, out_dtype=kind), factor, exact, truth
    )
    return one, other


def _outcome(
    name: str,
    result: LaunchResult,
    c: NDArray[Any],
    expected: NDArray[Any],
    factor: float,
    exact: F64,
    truth: F64,
) -> Outcome:
    bits = f"u{c.dtype.itemsize}"
    got = c.astype(np.float64) * factor
    is_exact = np.array_equal(c.view(bits), expected.view(bits))
    return Outcome(name, result, is_exact, error(got, exact), error(got, truth))


def error(got: F64, exact: F64) -> Error:
    """Return the distance of `got` from `exact`, both (rows, columns)."""
    size = np.sqrt(np.mean(exact**2, axis=1, keepdims=True))
    away = np.abs(got - exact) / np.where(size == 0, 1, size)
    return Error(float(np.sqrt(np.mean(away**2))), float(away.max(initial=0)))

"""The Triton kernels of the project, and a launch of one with operands from a generator."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hopsim as hs
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.measured.program import Operands, Program, Size, launch, operands, read_all
from hopsim.reference import gemm

TESTS = Path(__file__).parents[1]
JUDGING = TESTS / "silicon" / "judging"
BF16 = list(read_all(TESTS / "data" / "triton_bf16" / "triton_bf16.json"))
"""The ten that the timing is calibrated on; all load and store by TMA."""
OTHERS = list(read_all(JUDGING / "triton" / "programs.json", JUDGING))
"""The ten that judge it: fp16 and e4m3, persistent ones, and ones that load by cp.async."""


@cache
def problem(size: Size, dtype: str, out_dtype: str) -> tuple[NDArray[Any], NDArray[Any], bytes]:
    """Return A, B and the bytes that C must have, by the independent reference."""
    m, n, k = size
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.standard_normal((rows, k)).astype(NUMPY_TYPES[dtype]) for rows in (m, n))
    return a, b, gemm(a, b, out_dtype=NUMPY_TYPES[out_dtype]).tobytes()


def run(
    program: Program, size: Size, grid: int | None = None, **options: Any
) -> tuple[hs.LaunchResult, bool]:
    """Launch a kernel; return what was found, and whether C has the reference's bits."""
    gpu = hs.Gpu()
    a, b, exact = problem(size, program.dtype, program.out_dtype)
    unwritten = np.full(size[:2], np.nan).astype(NUMPY_TYPES[program.out_dtype])
    given = Operands(gpu.array(a), gpu.array(b), gpu.array(unwritten))
    result = launch(gpu, program, size, grid or program.triton_grid(size), given, **options)
    return result, given.c.numpy().tobytes() == exact


def json_of(program: Program, size: Size) -> str:
    """Return what a timed launch without values says."""
    gpu = hs.Gpu()
    given = operands(gpu, program.dtype, program.out_dtype, size)
    return launch(gpu, program, size, program.triton_grid(size), given, values=False).json()

"""How the time of a simulation grows with the problem: `python benchmarks/scaling.py [LARGEST]` prints a table.

Timing only, one core, the 128x256x64 warp-specialized kernel; and with values up to 1024.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import hopsim as hs
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, launch
from hopsim.kernels.gemm.problem import GemmProblem

SIZES = (512, 1024, 2048, 4096, 8192)
LARGEST_WITH_VALUES = 1024


def measure(size: int, values: bool) -> tuple[float, int]:
    """Return (processor seconds, predicted cycles) of one square GEMM."""
    kernel = build(
        "warp-specialized", GemmProblem(size, size, size), (128, 256, 64), 4, warpgroups=2
    )
    operand = np.zeros((size, size), NUMPY_TYPES["bf16"])
    if values:
        operand = (
            np.random.default_rng(0)
            .standard_normal((size, size), dtype=np.float32)
            .astype(operand.dtype)
        )
    gpu = hs.Gpu("h100-sxm")
    began = time.process_time()
    done = launch(gpu, kernel, operand, operand, values=values, check=False)
    assert done.result.cycles is not None
    return time.process_time() - began, done.result.cycles


def main() -> None:
    """Print the table."""
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]
    print("| size | cycles | timing only, s | cycles/s | with exact bits, s |")
    print("|---|---|---|---|---|")
    for size in SIZES:
        if size > largest:
            break
        seconds, cycles = measure(size, values=False)
        exact = f"{measure(size, values=True)[0]:.1f}" if size <= LARGEST_WITH_VALUES else "-"
        print(
            f"| {size} | {cycles:,} | {seconds:.2f} | {cycles / seconds:,.0f} | {exact} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

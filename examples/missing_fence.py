"""A missing proxy fence: right numbers here, wrong ones on silicon now and then, and a finding that says what to add.

The epilogue writes C to shared memory with ordinary stores, then TMA reads it.  TMA reads through another proxy:
a barrier orders the threads, but only `fence.proxy.async` makes their stores visible to it.
"""

from dataclasses import replace

import numpy as np

import hopsim as hs
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, launch
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.report.hazards import hazard_findings

PROBLEM = GemmProblem(64, 64, 128, "bf16")


def without_the_fence(kernel: GemmKernel) -> GemmKernel:
    """Delete the fence between the stores to shared memory and the TMA store: one line of PTX."""
    lines = kernel.ptx.splitlines()
    kept = [line for line in lines if "fence.proxy.async.shared::cta;" not in line]
    assert len(kept) == len(lines) - 1
    return replace(kernel, ptx="\n".join(kept))


def main() -> None:
    a = np.ones((PROBLEM.m, PROBLEM.k), NUMPY_TYPES["bf16"])
    b = np.ones((PROBLEM.n, PROBLEM.k), NUMPY_TYPES["bf16"])
    good = build("pipelined", PROBLEM, (64, 16, 64), stages=2)
    for name, kernel in (("as built", good), ("without the fence", without_the_fence(good))):
        done = launch(hs.Gpu(), kernel, a, b)
        print(
            f"{name}: verdict {done.result.verdict}, C right: {bool((done.c == PROBLEM.k).all())}"
        )
    print()
    print(hazard_findings(done.result.hazards, "gemm.ptx"))


if __name__ == "__main__":
    main()

"""A deadlock tells its story: who waits, on which barrier, in which phase, and what is missing.

In the warp-specialized GEMM a consumer hands a slot of the ring back with an arrival on its `empty` mbarrier.  Take the
arrival out: the producer fills the ring once, waits for the first slot to come back, and waits for ever.
"""

from dataclasses import replace

import numpy as np

import hopsim as hs
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, launch
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.report.deadlock import deadlock_story

PROBLEM = GemmProblem(64, 64, 512, "bf16")


def without_the_arrival(kernel: GemmKernel) -> GemmKernel:
    """Delete every arrival that has no bytes to expect: those on the `empty` barriers."""
    lines = kernel.ptx.splitlines()
    kept = [line for line in lines if "mbarrier.arrive." not in line or "expect_tx" in line]
    print(f"deleted {len(lines) - len(kept)} arrivals, for example:")
    print("   ", next(line for line in lines if line not in kept).strip())
    return replace(kernel, ptx="\n".join(kept))


def main() -> None:
    a = np.ones((PROBLEM.m, PROBLEM.k), NUMPY_TYPES["bf16"])
    b = np.ones((PROBLEM.n, PROBLEM.k), NUMPY_TYPES["bf16"])
    kernel = without_the_arrival(build("warp-specialized", PROBLEM, (64, 64, 64), stages=3))
    done = launch(hs.Gpu(), kernel, a, b, schedule="in-order")

    print(f"\nverdict {done.result.verdict}, exit code {done.result.exit_code}\n")
    print(deadlock_story(done.result.deadlock))

    lines = kernel.ptx.splitlines()
    for line in sorted({wait.line for wait in done.result.deadlock.waiting}):
        print(f"\nline {line}: {lines[line - 1].strip()}")


if __name__ == "__main__":
    main()

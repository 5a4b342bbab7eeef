"""A Hopper GEMM, checked bit for bit: TMA, mbarriers, wgmma, and the tensor core's own rounding.

The tensor core does not sum as numpy does: it aligns the products of one instruction to the largest and cuts off what
falls below.  `hopsim.reference.gemm` sums in the same way with integers, in code that shares nothing with the machine.
"""

import numpy as np

import hopsim as hs
from hopsim.kernels.gemm.launch import NUMPY_TYPES, run
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.reference.gemm import gemm, gemm_f64


def main() -> None:
    rng = np.random.default_rng(0)
    print(
        f"{'type':5} {'schedule':17} {'bits equal':>12}   {'nearest float32 equal':>21}   {'error against float64':>21}"
    )
    for dtype in ("bf16", "fp16", "e4m3"):
        problem = GemmProblem(200, 328, 144, dtype, out_dtype="f32")
        a = rng.standard_normal((problem.m, problem.k)).astype(NUMPY_TYPES[dtype])
        b = rng.standard_normal((problem.n, problem.k)).astype(NUMPY_TYPES[dtype])
        expected = gemm(a, b)
        exact = gemm_f64(a, b)
        nearest = exact.astype(np.float32)
        for schedule in ("pipelined", "warp-specialized"):
            tile = (64, 64, 128 if dtype == "e4m3" else 64)
            done = run(hs.Gpu("h100-sxm"), problem, a, b, schedule=schedule, tile=tile, stages=3)
            bits = done.c.view(np.uint32)
            same = np.mean(bits == expected.view(np.uint32))
            same_nearest = np.mean(bits == nearest.view(np.uint32))
            error = np.abs(done.c - exact).max()
            print(f"{dtype:5} {schedule:17} {same:12.1%}   {same_nearest:21.0%}   {error:21.1e}")


if __name__ == "__main__":
    main()

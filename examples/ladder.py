"""The ladder: one GEMM by every schedule, simple to fast, and what bounds each (`hopsim ladder` draws it)."""

from __future__ import annotations

import hopsim as hs
from hopsim.config import load
from hopsim.kernels import choose
from hopsim.kernels.gemm.ladder import ladder
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.timing import time_step

M, N, K = 64, 256, 512

hardware = load("h100-sxm")
before = None
for step in ladder(GemmProblem(M, N, K), hardware):
    time = time_step(hs.Gpu("h100-sxm"), step, hardware)
    gain = f"{before / time.cycles - 1:+5.0%}" if before else "     "
    print(
        f"{step.name:17} {step.tile!s:11} {time.cycles:>7,} cycles {gain}  {time.bound:11} {step.words}"
    )
    before = time.cycles

print("\nwhat DeepGEMM's rules choose for 4096 x 4096 x 4096:")
for reason in choose(4096, 4096, 4096).reasons:
    print(" ", reason)

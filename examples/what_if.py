"""What if?  The same PTX on a changed machine: predicted cycles, where the time goes, and a timeline.

Numbers of the machine are in `configs/h100-sxm.toml`, each with its unit and source; an override replaces one of them.
Only time is asked here (`values=False`), so no data is moved and the runs are quick.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import hopsim as hs
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, launch
from hopsim.kernels.gemm.problem import GemmProblem

PROBLEM = GemmProblem(1024, 1024, 1024, "bf16")
MACHINES = {
    "H100": {},
    "half the HBM bandwidth": {"dram.bandwidth": "1.675TB/s"},
    "HBM twice as far": {"dram.latency": "1200cycles"},
    "tensor cores at half rate": {"tensor.flop_per_clk.bf16": "2048FLOP/clk"},
}


def main() -> None:
    a = np.zeros((PROBLEM.m, PROBLEM.k), NUMPY_TYPES["bf16"])
    b = np.zeros((PROBLEM.n, PROBLEM.k), NUMPY_TYPES["bf16"])
    print(f"{'machine':28} {'stages':>6} {'cycles':>8} {'TFLOP/s':>8}   most of the warps' time")
    for name, overrides in MACHINES.items():
        for stages in (2, 4):
            kernel = build("warp-specialized", PROBLEM, (128, 128, 64), stages, warpgroups=2)
            result = launch(hs.Gpu("h100-sxm", overrides), kernel, a, b, values=False).result
            rate = PROBLEM.flops / result.time_us / 1e6
            reason = max(result.stalls, key=result.stalls.__getitem__)
            print(
                f"{name:28} {stages:6} {result.cycles:8} {rate:8.1f}   {reason} {result.stalls[reason]:.0%}"
            )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gemm.perfetto.json"
        launch(hs.Gpu(), kernel, a, b, values=False, trace=True).result.save_trace(path)
        events = json.loads(path.read_text())["traceEvents"]
    tracks = [
        event["args"]["name"]
        for event in events
        if event["name"] == "thread_name" and event["pid"] == 1
    ]
    arrows = sum(event["ph"] == "s" for event in events)
    print(
        f"\nThe timeline, for https://ui.perfetto.dev, has {arrows} arrows.  Tracks of the first SM:"
    )
    barriers = [track for track in tracks if "mbarrier" in track]
    print("   ", ", ".join(track for track in tracks if track not in barriers and "#" not in track))
    print(f"    and {len(barriers)} mbarriers, from {barriers[0]} on")


if __name__ == "__main__":
    main()

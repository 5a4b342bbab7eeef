"""What SMs ask of L2 together: sectors that the unit in front of L2 joins, and look-ups of L2, counted by Nsight Compute.

`python -m hopsim.kernels.measured.l2_joined NOTHING` launches the microbenchmarks of two groups, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopsim.errors import DeviceError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.micro.clocked import Benchmark
from hopsim.kernels.micro.recording import benchmarks

GROUPS: Final = ("sharing", "tile_walks")
TO_SMS: Final = "lrc__xbar2gpc_sectors_op_read.sum"
JOINED: Final = "lrc__xbar2gpc_sectors_op_read_coalescing_achieved.sum"
FROM_L2: Final = "lrc__lrc2xbar_sectors_op_read.sum"
REPEATED: Final = "lrc__lrc2xbar_sectors_op_read_replayed.sum"
LOOK_UPS: Final = "lts__t_sectors_srcunit_tex.sum"
NAMES: Final = {
    TO_SMS: "sectors_to_gpcs", JOINED: "sectors_to_gpcs_joined", FROM_L2: "sectors_from_l2",
    REPEATED: "sectors_repeated", LOOK_UPS: "look_ups", "lts__t_requests_srcunit_tex.sum": "requests",
    "l1tex__m_xbar2l1tex_read_sectors.sum": "sectors_to_sms",
}  # fmt: skip
"""Metrics, and what a row calls them."""
NCU_LIMIT_S: Final = 420.0


def chosen() -> list[Benchmark]:
    """Return those that are counted."""
    return [one for group in GROUPS for one in benchmarks(group)]


def launch_all() -> None:
    """Launch each once; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu = CudaGpu(0, isolate=False)
    for one in chosen():
        results = gpu.array(np.zeros((one.grid, len(one.labels)), np.uint64))
        arguments = [*one.arguments(gpu), results]
        kernel = loads(one.ptx)[one.entry]
        gpu.launch(
            kernel, one.grid, one.block, one.cluster, arguments, one.shared_bytes, timing=False
        )


def record(log: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Count what each microbenchmark asks for, its first walk included.

    Args:
        log: where Nsight Compute writes.
    Raises: DeviceError.
    """
    rows = chosen()
    counted = profile(__name__, "all", tuple(NAMES), log, NCU_LIMIT_S, say, "^(sharing|tile_walk)")
    if [one.kernel for one in counted] != [one.entry for one in rows]:
        raise DeviceError(f"ncu gave {len(counted)} launches of {len(rows)}", where=str(log))
    return [
        {"name": one.name, **{NAMES[name]: value for name, value in found.metrics.items()}}
        for one, found in zip(rows, counted, strict=True)
    ]


if __name__ == "__main__":
    launch_all()

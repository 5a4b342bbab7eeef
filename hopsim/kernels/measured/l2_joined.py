"""What SMs ask of L2 together: sectors that the unit in front of L2 joins, and look-ups of L2, counted by Nsight Compute.

`python -m hopsim.kernels.measured.l2_joined NOTHING` launches the microbenchmarks of four groups, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hopsim.errors import DeviceError
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.micro.clocked import Benchmark, measure
from hopsim.kernels.micro.recording import benchmarks

GROUPS: Final = ("sharing", "tile_walks", "paced", "pair_walks")
NAMES: Final = {
    "lrc__xbar2gpc_sectors_op_read.sum": "sectors_to_gpcs",
    "lrc__xbar2gpc_sectors_op_read_coalescing_achieved.sum": "sectors_to_gpcs_joined",
    "lrc__lrc2xbar_sectors_op_read.sum": "sectors_from_l2",
    "lrc__lrc2xbar_sectors_op_read_replayed.sum": "sectors_repeated",
    "lts__t_sectors_srcunit_tex.sum": "look_ups",
    "lts__t_requests_srcunit_tex.sum": "requests",
    "l1tex__m_xbar2l1tex_read_sectors.sum": "sectors_to_sms",
}
"""Metrics, and what a row calls them."""
NCU_LIMIT_S: Final = 420.0


def chosen() -> list[Benchmark]:
    """Return those that are counted."""
    return [one for group in GROUPS for one in benchmarks(group)]


def launch_all() -> None:
    """Launch each once; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu: Any = CudaGpu(0, isolate=False)
    for one in chosen():
        measure(gpu, one, timing=False)


def record(log: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Count what each microbenchmark asks for, its first walk included.

    Args:
        log: where Nsight Compute writes.
    Raises: DeviceError.
    """
    rows = chosen()
    counted = profile(
        __name__, "all", tuple(NAMES), log, NCU_LIMIT_S, say, "^(sharing|tile_walk|paced|pair_walk)"
    )
    if [one.kernel for one in counted] != [one.entry for one in rows]:
        raise DeviceError(f"ncu gave {len(counted)} launches of {len(rows)}", where=str(log))
    return [
        {"name": one.name, **{NAMES[name]: value for name, value in found.metrics.items()}}
        for one, found in zip(rows, counted, strict=True)
    ]


if __name__ == "__main__":
    launch_all()

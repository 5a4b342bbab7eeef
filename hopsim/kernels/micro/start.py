"""What an SM does for the first time in a launch: reads of parameters, fences, cluster barriers.

All of it is measured in the first launch of a program, one after the other without a break, and stored at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, median_of_rows
from hopsim.kernels.ptx.text import Param, address

TIMES: Final = 4
"""How often a fence or barrier is executed."""
PARAMETER_BYTES: Final = 3584
OFFSETS: Final = (0, 8, 64, 256, 512, 1024, 1088, 2048, 3072)
"""Of the parameters that are read, in this order."""
FENCES: Final = {
    "fence_cluster": "fence.acq_rel.cluster", "fence_gpu": "fence.acq_rel.gpu", "fence_proxy": "fence.proxy.async",
    "barrier": "barrier.cluster", "barrier_relaxed": "barrier.cluster, relaxed",
    "barrier_init": "two mbarrier.init by one thread, barrier.cluster",
}  # fmt: skip


def fences(kind: str, warps: int, ctas: int) -> Benchmark:
    """All warps of a CTA, in clusters of 2, execute the same fence or barrier some times.

    Args:
        kind: of `FENCES`.
    """
    c = Clocked(f"start_{kind}_{ctas}_w{warps}", directives=[f".reqntid {32 * warps}"])
    c.own_row(TIMES)
    once = _fence(c, kind)
    c.k.emit("bar.sync", 0)
    clocks = [c.clock()]
    for _ in range(TIMES):
        once()
        clocks.append(c.clock())
    c.store_laps([f"{FENCES[kind]}, {number}" for number in range(TIMES)], clocks)
    return c.benchmark(
        f"{FENCES[kind]}, {warps} warps, {ctas} SMs in clusters of 2, one after the other",
        grid=ctas, cluster=2, block=32 * warps, rows=ctas, summary=median_of_rows, shared_bytes=1024, is_first=True,
    )  # fmt: skip


def _fence(c: Clocked, kind: str) -> Callable[[], None]:
    def once() -> None:
        if not kind.startswith("barrier"):
            c.k.emit(FENCES[kind])
            return
        if kind == "barrier_init":
            for offset in (0, 8):
                barrier = address(c.shared, offset)
                c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=c.first)
            c.k.emit("fence.mbarrier_init.release.cluster", guard=c.first)
        relaxed = ".relaxed" if kind == "barrier_relaxed" else ""
        c.k.emit(f"barrier.cluster.arrive{relaxed}.aligned")
        c.k.emit("barrier.cluster.wait.aligned")

    return once


def parameters(warps: int, ctas: int) -> Benchmark:
    """Reads of a large parameter at several places, one after the other."""
    c = Clocked(
        f"start_parameters_{ctas}_w{warps}",
        [Param("large", ".b8", PARAMETER_BYTES)],
        [f".reqntid {32 * warps}"],
    )
    c.own_row(len(OFFSETS))
    clocks = [c.clock()]
    for offset in OFFSETS:
        c.keep(c.k.let(".b32", "word", "ld.param.b32", address("large", offset)))
        clocks.append(c.clock())
    c.store_laps([f"byte {offset}" for offset in OFFSETS], clocks)
    return c.benchmark(
        f"reads of parameters that nobody has read before, {warps} warps on each of {ctas} SMs",
        grid=ctas, block=32 * warps, rows=ctas, summary=median_of_rows, shared_bytes=200 * 1024, is_first=True,
        arguments=_large,
    )  # fmt: skip


def _large(gpu: Any) -> list[Any]:
    del gpu
    return [bytes(PARAMETER_BYTES)]


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [fences(kind, warps, SMS) for kind in FENCES for warps in (1, 4, 8, 12, 16)]
    found += [fences(kind, 4, 2) for kind in FENCES]
    found += [parameters(1, 1), *(parameters(warps, SMS) for warps in (1, 4, 12))]
    return found

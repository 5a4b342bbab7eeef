"""What it takes a strand to go on once what it waited for has happened, and what the wait is called."""

from __future__ import annotations

from hopsim.config import HardwareConfig
from hopsim.hw.machine.barriers import NamedBarrier
from hopsim.hw.machine.waiting import Wait
from hopsim.hw.timing.costs import Stall
from hopsim.hw.timing.occupancy import WARP


class WakeUps:
    """Latencies by kind of wait.

    Args:
        config: of barriers and groups.
        threads: of a CTA, which a named barrier without a count waits for.
    """

    def __init__(self, config: HardwareConfig, threads: int) -> None:
        barrier = config.barrier
        self._threads = threads
        self._warp_cycles = barrier.bar_sync_warp_cycles
        self._known: dict[str, tuple[float, Stall]] = {
            "mbarrier": (float(config.mbarrier.wakeup_latency_cycles), Stall.MBARRIER),
            "named barrier": (float(barrier.bar_sync_latency_cycles), Stall.BARRIER),
            "cluster barrier": (
                float(barrier.cluster_barrier_latency_cycles),
                Stall.CLUSTER_BARRIER,
            ),
            "wgmma group": (config.tensor.wait_cycles, Stall.GMMA),
            "bulk group": (config.cp_async.wait_cycles, Stall.BULK_GROUP),
            "cp.async group": (config.cp_async.wait_cycles, Stall.COPY_GROUP),
            "registers": (float(barrier.setmaxnreg_cycles), Stall.REGISTERS),
            "collective": (0.0, Stall.CONVERGENCE),
            "sleep": (0.0, Stall.SLEEPING),
        }

    def after(self, wait: Wait) -> tuple[float, Stall]:
        """Return the cycles from the event to the next issue, and the name of the stall."""
        latency, stall = self._known[wait.kind]
        if stall is Stall.BARRIER:
            barrier: NamedBarrier = wait.subject
            threads = self._threads if barrier.count is None else barrier.count
            latency += self._warp_cycles * -(-threads // WARP)
        return latency, stall

    def stall(self, wait: Wait | None) -> Stall:
        """Return what a wait is called."""
        return Stall.CONVERGENCE if wait is None else self._known[wait.kind][1]

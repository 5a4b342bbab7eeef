"""What it takes a strand to go on once what it waited for has happened, and what the wait is called."""

from __future__ import annotations

import math

from hopsim.config import HardwareConfig
from hopsim.hw.machine.waiting import Wait
from hopsim.hw.timing.stalls import Stall


class WakeUps:
    """Latencies by kind of wait.

    Args:
        config: of barriers and groups.
    """

    def __init__(self, config: HardwareConfig) -> None:
        barrier = config.barrier
        self._apart_first = float(config.mbarrier.apart_first_cycles)
        self._apart_interval = float(config.mbarrier.apart_interval_cycles)
        self._known: dict[str, tuple[float, Stall]] = {
            "mbarrier": (float(config.mbarrier.wakeup_latency_cycles), Stall.MBARRIER),
            "named barrier": (0.0, Stall.BARRIER),
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

    def after(self, wait: Wait, block: float) -> tuple[float, Stall]:
        """Return the cycles from the event to the next issue, and the name of the stall.

        Args:
            block: cycles that the instruction which waits holds its warp when all are there already.
        """
        latency, stall = self._known[wait.kind]
        return (block if stall is Stall.BARRIER else latency), stall

    def looked(self, begin: float, ready: float) -> float:
        """Return when lanes see that a phase is complete while others of their warp wait to meet them again.

        A warp that is apart is not suspended: it looks from time to time.

        Args:
            begin: when they looked in vain.
            ready: when a whole warp would go on.
        """
        interval = self._apart_interval
        left = ready - begin - self._apart_first
        return begin + self._apart_first + max(0.0, math.ceil(left / interval)) * interval

    def stall(self, wait: Wait | None) -> Stall:
        """Return what a wait is called."""
        return Stall.CONVERGENCE if wait is None else self._known[wait.kind][1]

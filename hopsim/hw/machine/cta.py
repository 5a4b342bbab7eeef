"""A CTA and its cluster: shared memory, barriers, warpgroups, live threads, the register pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hopsim.hw.machine.barriers import ClusterBarrier, Mbarrier, NamedBarrier
from hopsim.hw.machine.memory import RANK_SHIFT, Region, make_region
from hopsim.hw.machine.tensor_queue import Warpgroup
from hopsim.hw.machine.thread_groups import WARP, WARPGROUP
from hopsim.isa.program.symbols import SHARED_RESERVED_BYTES

if TYPE_CHECKING:
    from hopsim.hw.machine.launch import Machine

Triple = tuple[int, int, int]


class Cluster:
    """CTAs that are scheduled together and see each other's shared memory."""

    def __init__(self, machine: Machine, index: int, identity: Triple) -> None:
        self.machine = machine
        self.index = index
        self.id = identity
        self.ctas: list[Cta] = []
        self.barrier = ClusterBarrier(self)

    @property
    def done(self) -> bool:
        """Whether every thread of every CTA has exited."""
        return all(cta.live == 0 for cta in self.ctas)


class Cta:
    """One cooperative thread array.

    `index` is its linear number in the grid, `rank` its number in the cluster, `sm` where the schedule put it.
    """

    def __init__(
        self, cluster: Cluster, index: int, identity: Triple, rank: int, in_cluster: Triple
    ) -> None:
        machine = cluster.machine
        self.machine = machine
        self.cluster = cluster
        self.index = index
        self.id = identity
        self.id_text = f"({identity[0]},{identity[1]},{identity[2]})"
        self.rank = rank
        self.id_in_cluster = in_cluster
        self.sm = 0
        self.shared_window = rank << RANK_SHIFT
        self.shared_base = self.shared_window + SHARED_RESERVED_BYTES
        size = SHARED_RESERVED_BYTES + machine.shared_bytes
        self.shared: Region = make_region(
            self.shared_window,
            size,
            f"shared memory of cta {self.id_text}",
            track=machine.track_initialisation,
        )
        threads = machine.threads
        self.alive = np.ones(threads, np.bool_)
        self.live = threads
        self._live_of_warp = [min(WARP, threads - first) for first in range(0, threads, WARP)]
        self.warpgroups = [Warpgroup(self, number) for number in range(-(-threads // WARPGROUP))]
        self.mbarriers: dict[int, Mbarrier] = {}
        # PTX line of the last mbarrier.inval, by offset.
        self.invalidated: dict[int, int] = {}
        self.named: dict[int, NamedBarrier] = {}
        # setmaxnreg moves registers between warps of the CTA through this pool.
        self.free_registers = 0
        self.warp_registers = [machine.registers_per_thread] * len(self._live_of_warp)
        self.register_waiters: list[Any] = []
        # Each setmaxnreg of a warp so far, and where: the warps of a warpgroup execute the same ones.
        self.register_moves: dict[int, list[tuple[str, str]]] = {}
        # cp.async and bulk groups belong to a thread; collectives gather here.
        self.async_groups: dict[Any, Any] = {}
        self.rendezvous: dict[Any, Any] = {}
        self.local: Region | None = None
        self.cluster_arrived = np.zeros(threads, np.uint8)

    def live_threads_of(self, warps: range) -> int:
        """Return how many threads of these warps have not exited."""
        counts = self._live_of_warp
        return sum(counts[warp] for warp in warps)

    @property
    def live_warps(self) -> int:
        """How many warps have threads that have not exited."""
        return sum(count > 0 for count in self._live_of_warp)

    def live_lanes(self, warp: int) -> int:
        """Return the mask of lanes of a warp that have not exited."""
        lanes = self.alive[warp * WARP : (warp + 1) * WARP]
        return int(sum(1 << lane for lane in np.flatnonzero(lanes).tolist()))

    def leave(self, tids: Any) -> None:
        """Note that threads exited."""
        self.alive[tids] = False
        self.live -= len(tids)
        for warp in set((tids // WARP).tolist()):
            here = self.alive[warp * WARP : (warp + 1) * WARP]
            self._live_of_warp[warp] = int(here.sum())

    def local_region(self) -> Region:
        """Return local memory, one slice a thread, made when first used."""
        if self.local is None:
            size = self.machine.local_bytes * self.machine.threads
            self.local = make_region(
                0, size, f"local memory of cta {self.id_text}", track=self.machine.follows_bytes
            )
        return self.local

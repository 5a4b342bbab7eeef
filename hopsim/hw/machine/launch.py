"""The machine of one launch: clusters, strands, operations in flight.  It knows values and order, never cycles.

A `Schedule` drives it: starts clusters, steps strands, lands operations.  The machine tells the schedule what became
possible (`spawned`, `woken`, `issued`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopsim.errors import MachineFault
from hopsim.events import OpEvent, Probe, StrandEvent
from hopsim.hw.machine.barriers import Mbarrier
from hopsim.hw.machine.cta import Cluster, Cta, Triple
from hopsim.hw.machine.families import Strand
from hopsim.hw.machine.joins import Join, open_all
from hopsim.hw.machine.memory import GlobalMemory, Region
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.schedule import Schedule
from hopsim.hw.machine.tensor_queue import Group
from hopsim.hw.machine.thread_groups import WARP, WARPGROUP
from hopsim.hw.machine.waiting import Wait
from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.leaving import leaving
from hopsim.isa.program.yielding import yielding
from hopsim.isa.values import Value


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that is fixed for a launch.

    Sizes in bytes; `shared_bytes` is static plus dynamic shared memory without the reserved first KiB.  `places` are those
    of CTAs that the chip holds at once; `workspace` is the address of what the CTAs of a cooperative launch meet at.
    `kept_loops` are lines of PTX that ask ptxas not to unroll the loop behind them.
    """

    path: str
    program: Sequence[Segment]
    register_widths: Sequence[int]
    grid: Triple
    block: Triple
    cluster: Triple
    shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    registers_per_thread: int
    parameters: Region
    symbols: dict[str, int]
    memory: GlobalMemory
    values: bool = True
    follows_bytes: bool = False
    numerics: str = "hopper"
    sm_count: int = 132
    places: int = 132 * 32
    explicit_cluster: bool = False
    track_initialisation: bool = True
    has_register_bound: bool = True
    moves_registers: bool = True
    kept_loops: tuple[int, ...] = ()
    serialised_wgmma: bool = False
    workspace: int = 0
    parameter_offsets: Mapping[str, int] = field(default_factory=dict[str, int])


class Machine:
    """One launch in progress."""

    def __init__(self, setup: Setup, schedule: Schedule, probe: Probe) -> None:
        self.setup = setup
        self.schedule = schedule
        self.probe = probe
        self.path = setup.path
        self.program = setup.program
        self.leaving = leaving(setup.program)
        self.yielding = yielding(setup.program)
        self.register_widths = setup.register_widths
        self.grid = setup.grid
        self.block = setup.block
        self.cluster_shape = setup.cluster
        self.cluster_size = setup.cluster[0] * setup.cluster[1] * setup.cluster[2]
        self.cluster_grid: Triple = (
            setup.grid[0] // setup.cluster[0],
            setup.grid[1] // setup.cluster[1],
            setup.grid[2] // setup.cluster[2],
        )
        self.threads = setup.block[0] * setup.block[1] * setup.block[2]
        self.shared_bytes = setup.shared_bytes
        self.dynamic_shared_bytes = setup.dynamic_shared_bytes
        self.local_bytes = setup.local_bytes
        self.registers_per_thread = setup.registers_per_thread
        self.parameters = setup.parameters
        self.symbols = setup.symbols
        self.memory = setup.memory
        self.values = setup.values
        self.numerics = setup.numerics
        self.sm_count = setup.sm_count
        self.places = setup.places
        self.explicit_cluster = setup.explicit_cluster
        # A run without values performs loads that decide something, of bytes that it computed: see `deciding`.
        self.follows_bytes = setup.follows_bytes and not setup.values
        self.is_deciding = False
        # Allocations, by base, with bytes that such a run did not compute.
        self.lost: set[int] = set()
        self.track_initialisation = self.follows_bytes or (
            setup.track_initialisation and setup.values
        )
        # What the schedule wants: strands of whole warpgroups, and details of each access for its timing models.
        self.fuse = schedule.fuse
        self.timed = schedule.timed
        # Only time is asked: no data, nobody listens, and groups land as a whole.
        self.is_dry = schedule.timed and not setup.values and not (probe.access or probe.operation)
        # What threads printed, in the order in which they did.
        self.printed: list[str] = []
        # How often anything changed that a thread can see, and a clock was read, which gives each time another value.
        self.version = 0
        self.clock_reads = 0
        self.steps = 0
        self.waiting: dict[Strand, None] = {}
        # Joins at which lanes wait for others of their warp, in order of arrival.
        self.parted: dict[Join, None] = {}
        # Strands that go round a loop for ever, when the schedule found that out.
        self.spinning: list[Strand] = []
        self.flying: dict[int, Operation] = {}
        self.tensor_maps: dict[bytes, Any] = {}
        self.parameter_maps: dict[int, Any] = {}
        self.clusters_started = 0
        self.clusters_done = 0
        self._operations = 0

    # -- clusters ----------------------------------------------------------------------------------

    @property
    def cluster_count(self) -> int:
        """How many clusters the grid has."""
        x, y, z = self.cluster_grid
        return x * y * z

    def start_cluster(self, index: int, sms: Sequence[int]) -> Cluster:
        """Create a cluster and its strands; each must be started once.

        Args:
            index: which one, x fastest.
            sms: the SM of each CTA, in rank order.
        """
        self.clusters_started += 1
        gx, gy, _ = self.cluster_grid
        cx, cy, cz = self.cluster_shape
        identity = (index % gx, index // gx % gy, index // (gx * gy))
        cluster = Cluster(self, index, identity)
        for rank in range(self.cluster_size):
            inside = (rank % cx, rank // cx % cy, rank // (cx * cy))
            position = (
                identity[0] * cx + inside[0],
                identity[1] * cy + inside[1],
                identity[2] * cz + inside[2],
            )
            linear = position[0] + self.grid[0] * (position[1] + self.grid[1] * position[2])
            cta = Cta(cluster, linear, position, rank, inside)
            cta.sm = sms[rank]
            cluster.ctas.append(cta)
        for cta in cluster.ctas:
            for strand in self._first_strands(cta):
                self.spawned(strand)
        return cluster

    def _first_strands(self, cta: Cta) -> list[Strand]:
        width = WARPGROUP if self.fuse else WARP
        strands: list[Strand] = []
        for first in range(0, self.threads, width):
            tids = np.arange(first, min(first + width, self.threads), dtype=np.int64)
            registers: list[Value] = [False if bits == 1 else 0 for bits in self.register_widths]
            strands.append(Strand(cta, tids, registers, 0))
        return strands

    # -- strands -----------------------------------------------------------------------------------

    def spawned(self, strand: Any) -> None:
        """A strand can take its first step (at launch, after a split, or after a join)."""
        self.version += 1
        strand.is_scheduled = True
        strands = strand.warpgroup.strands
        if strand not in strands:
            strands.append(strand)
        if self.probe.strand:
            event = StrandEvent(strand.agent, strand.line, "started", None)
            for listen in self.probe.strand:
                listen(event)
        self.schedule.spawned(strand)

    def absorbed(self, strand: Any) -> None:
        """A strand became part of another one."""
        self.version += 1
        self.waiting.pop(strand, None)
        strand.warpgroup.strands.remove(strand)
        if strand.is_scheduled:
            self.schedule.retired(strand)

    def exited(self, strand: Any, line: int) -> None:
        """The threads of a strand left the program at the instruction of a PTX line."""
        self.version += 1
        cta: Cta = strand.cta
        if self.probe.strand:
            event = StrandEvent(strand.agent, line, "exited", None)
            for listen in self.probe.strand:
                listen(event)
        cta.leave(strand.tids)
        if strand in strand.warpgroup.strands:
            strand.warpgroup.strands.remove(strand)
        if strand.is_scheduled:
            self.schedule.retired(strand)
        strand.after_exit()
        if cta.live == 0:
            self.schedule.cta_done(cta)
            if cta.cluster.done:
                self.clusters_done += 1
                self.schedule.cluster_done(cta.cluster)

    def part_warps(self) -> bool:
        """Let lanes that wait for others of their warp to meet them go on alone; return whether there were any.

        A schedule asks for it when nothing else can happen: the others may wait for what these lanes do next.
        """
        return open_all(self.parted)

    @property
    def news(self) -> int:
        """Grows with everything that can lead a strand elsewhere when it comes back to the same state."""
        return self.version + self.clock_reads

    def blocked(self, strand: Any) -> None:
        """A strand said what it waits for."""
        self.waiting[strand] = None

    def wake(self, strand: Any) -> None:
        """What a strand waited for may have happened; it tries its instruction again."""
        wait: Wait | None = strand.waiting
        if wait is None:
            return
        strand.waiting = None
        strand.resumed = wait
        self.waiting.pop(strand, None)
        self.version += 1
        self.schedule.woken(strand, wait)

    # -- operations --------------------------------------------------------------------------------

    def next_operation_number(self) -> int:
        """Return a number for a new asynchronous operation."""
        self._operations += 1
        return self._operations

    def issue(self, operation: Operation) -> None:
        """Put an operation in flight; the schedule will land it."""
        self.version += 1
        if self.probe.operation:
            for listen in self.probe.operation:
                listen(OpEvent("issued", operation))
        self.flying[operation.number] = operation
        self.schedule.issued(operation)

    def land(self, operation: Operation) -> bool:
        """Do the next stage of an operation; return whether it is finished."""
        finished = operation.land()
        if self.probe.operation:
            for listen in self.probe.operation:
                listen(OpEvent("landed" if finished else "read", operation))
        if finished:
            self.flying.pop(operation.number, None)
        return finished

    def land_group(self, group: Group) -> None:
        """Land all operations of a committed wgmma group, oldest first."""
        if group.is_dry:
            self.version += 1
            group.owner.finished(group)
            return
        for operation in group.operations:
            self.land(operation)

    # -- barriers ----------------------------------------------------------------------------------

    def phase_completed(self, barrier: Mbarrier) -> None:
        """An mbarrier went to its next phase: everybody who waits on it looks again."""
        waiters, barrier.waiters = barrier.waiters, []
        for strand in waiters:
            self.wake(strand)

    def fault(self, what: str, where: str, hint: str = "", kind: str = "") -> MachineFault:
        """Make (not raise) a fault outside any strand."""
        return MachineFault(what, where=where, hint=hint, kind=kind)

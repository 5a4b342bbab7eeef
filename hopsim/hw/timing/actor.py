"""The SimPy events of the timed schedule: a strand's next step, an operation that lands, a call at a time.

All of them call one function and carry what it needs; nothing is a process, because a callback
costs a tenth of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from simpy.core import Environment
from simpy.events import NORMAL, Event

from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.strand import StrandCore
from hopsim.hw.machine.tensor_queue import Group
from hopsim.hw.timing.issue import Ports, ports_of
from hopsim.hw.timing.recorder import Track
from hopsim.hw.timing.slowing import Slowing
from hopsim.hw.timing.sm import Sm
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.tensor_core import Run, TensorCore

if TYPE_CHECKING:
    from hopsim.hw.timing.postponed import Postponed


class Clock(Environment):
    """A SimPy environment whose time is whole cycles."""

    def at(self, event: Event, time: float) -> None:
        """Let an event happen at `time`, rounded up to a whole cycle, or now if that is past."""
        cycle = math.ceil(time)
        now = self._now
        heappush(self._queue, (cycle if cycle > now else now, NORMAL, next(self._eid), event))

    def is_next(self, time: float) -> bool:
        """Whether nothing happens up to `time`."""
        queue = self._queue
        return not queue or time < queue[0][0]

    def pending(self) -> list[Any]:
        """Return all that is set to happen, in no order."""
        return [event for *_, event in self._queue]


class Moment(Event):
    """An event that always succeeds; it can be set again after it has happened."""

    def __init__(self, env: Clock, action: Callable[[Any], None]) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        self._clock = env
        self._actions: list[Callable[[Any], None]] = [action]

    def set(self, time: float) -> None:
        """Happen at `time`."""
        self.callbacks = self._actions
        self._clock.at(self, time)


class Crowding(NamedTuple):
    """Arithmetic that the tensor cores may have slowed down.

    Args:
        start, end: of it, had they not.
        longer, slots: how much longer it and its issue slots take if they work all the time.
        issued_by: when its last instruction was selected.
        slowing: what it does to the tensor cores.
    """

    start: float
    end: float
    longer: float
    slots: float
    issued_by: float
    slowing: Slowing | None = None


class Actor(Moment):
    """A strand with its own clock.

    `time` is when it can issue next, in cycles of the SM clock; it may be ahead of the simulation while nobody can tell the
    difference. `pending` holds results on their way: register -> (when, why a reader would stall).
    """

    def __init__(
        self, env: Clock, action: Callable[[Any], None], strand: StrandCore, sm: Sm
    ) -> None:
        super().__init__(env, action)
        self.strand = strand
        self.sm = sm
        self.time = 0.0
        self.resume = 0.0
        self.resumed = False
        self.waited = Stall.WAIT
        self.active_since = 0.0
        # When the last mma.sync lets another begin, and when the pipe has taken it.
        self.mma_free = 0.0
        self.mma_taken = 0.0
        # When it last began to wait for bulk copies, as one thread does for all.
        self.alone = -math.inf
        # When its last load from global memory leaves the data pipe of L1.
        self.loaded = 0.0
        # When the pipe is done with what it stored to shared memory last.
        self.staged = 0.0
        # When all of its loads of a run have been answered.
        self.answered = 0.0
        # Of loops that are unrolled, how many turns have begun, by segment.
        self.turns: dict[int, int] = {}
        # Loads that wait for their addresses, and what comes from them.
        self.postponed: list[Postponed] = []
        self.unknown: set[int] = set()
        # When loads that were done for others came, by segment, and what waiting for them is called.
        self.wide: dict[int, tuple[float, Stall]] = {}
        self.cause: tuple[Track, float] | None = None
        self.pending: dict[int, tuple[float, Stall]] = {}
        # Of the last step, until it is known how long the tensor cores worked beside it.
        self.crowding: Crowding | None = None
        self.lanes = 0
        self.warps = 0
        self.ports: Ports = ()
        self.refresh()

    def refresh(self) -> None:
        """Note which warps the strand has now."""
        strand = self.strand
        issue = self.sm.issue
        issue.admit(self.ports, -1)
        self.lanes = strand.lanes
        self.warps = len(strand.warps)
        self.ports = ports_of(strand.warps, len(issue.free))
        issue.admit(self.ports)

    @property
    def track(self) -> Track:
        """Where a timeline shows it."""
        warps = self.strand.warps
        name = f"warp {warps[0]}" if len(warps) == 1 else f"warps {warps[0]}-{warps[-1]}"
        return (self.sm.name, f"cta {self.strand.cta.index} {name}")


class Landing(Moment):
    """An operation that lands, stage by stage: `later` is when the second stage follows the first."""

    def __init__(
        self,
        env: Clock,
        action: Callable[[Any], None],
        operation: Operation,
        later: float = 0.0,
    ) -> None:
        super().__init__(env, action)
        self.operation = operation
        self.later = later


class Booking(Moment):
    """A copy that is issued at a time which the simulation has not come to yet."""

    def __init__(self, env: Clock, action: Callable[[Any], None], operation: Operation) -> None:
        super().__init__(env, action)
        self.operation = operation


class GroupLanding(Moment):
    """A wgmma group whose operations land together.

    `run` is the last of them on the tensor core; `issued` says who committed them and when, for a timeline.
    """

    def __init__(
        self,
        env: Clock,
        action: Callable[[Any], None],
        group: Group,
        tensor: TensorCore,
        run: Run,
        issued: tuple[Track, float] | None,
    ) -> None:
        super().__init__(env, action)
        self.issued = issued
        self.group = group
        self.tensor = tensor
        self.run = run


class Placed(Moment):
    """A cluster that starts, by its number, and the SMs of its CTAs."""

    def __init__(
        self, env: Clock, action: Callable[[Any], None], index: int, sms: tuple[int, ...]
    ) -> None:
        super().__init__(env, action)
        self.index = index
        self.sms = sms


class Numbered(Moment):
    """What happens to an SM or a GPC, by its number."""

    def __init__(self, env: Clock, action: Callable[[Any], None], number: int) -> None:
        super().__init__(env, action)
        self.number = number

"""Operations in flight: booked when they are issued, landed stage by stage when their time has come.

What a unit does later may hold up what was booked before, so a landing is looked at again when its time comes
(`Bookings.delay`, `TensorCore.has_completed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopsim.hw.machine.launch import Machine
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.tensor_queue import Group
from hopsim.hw.timing.actor import Actor, Booking, Clock, GroupLanding, Landing
from hopsim.hw.timing.bookings import Bookings
from hopsim.hw.timing.recording import Recording
from hopsim.hw.timing.tensor_core import WarpgroupQueue

BOOKED_AHEAD: Final = 200.0
"""Copies more cycles ahead than this are booked when their time has come: what is booked early goes before what others ask
for until then, and a strand that a full queue holds would carry all of them along with it."""


class Landings:
    """Lands operations of a launch; times in cycles of the SM clock.

    Args:
        env: the clock.
        machine: that the operations belong to.
        bookings: of copies on the units.
        recording: hears when they land; None: nobody does.
        begin: called before the machine changes.
        end: called when it has: whom the landing woke goes on.
    """

    def __init__(
        self,
        env: Clock,
        machine: Machine,
        bookings: Bookings,
        recording: Recording | None,
        begin: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        self._env = env
        self._machine = machine
        self._bookings = bookings
        self._recording = recording
        self._begin = begin
        self._end = end
        # When the last stage of a copy landed.
        self.last = 0.0

    def book(self, operation: Operation, time: float) -> None:
        """Book a copy that is issued at `time`, or set when that is done."""
        if time > self._env.now + BOOKED_AHEAD:
            Booking(self._env, self._book_now, operation).set(time)
            return
        if self._bookings.admit(operation, time):
            self._book_admitted(operation, time)

    def commit(self, actor: Actor, group: Group, queue: WarpgroupQueue, time: float) -> None:
        """Set the landing of a wgmma group that is committed at `time`."""
        tensor = actor.sm.tensor
        run = tensor.close(queue)
        issued = None if self._recording is None else (actor.track, time)
        landing = GroupLanding(self._env, self._land_group, group, tensor, run, issued)
        landing.set(max(tensor.complete(run), time))

    def _book_now(self, event: Booking) -> None:
        self.book(event.operation, float(self._env.now))

    def _book_admitted(self, operation: Operation, time: float) -> None:
        first, second = self._bookings.book(operation, time)
        Landing(self._env, self._land, operation, second).set(first)
        if self._recording is not None:
            self._recording.booked(operation, time)

    def _land(self, event: Landing) -> None:
        """Do the next stage of an operation."""
        operation = event.operation
        now = float(self._env.now)
        delay = self._bookings.delay(operation, now)
        if delay:
            event.set(now + delay)
            return
        self._begin()
        if self._recording is not None:
            self._recording.landing(operation, now)
        self.last = max(self.last, now)
        if self._machine.land(operation):
            for waiting, issued in self._bookings.landed(operation):
                self._book_admitted(waiting, max(issued, now))
        else:
            event.set(event.later)
        self._end()

    def _land_group(self, event: GroupLanding) -> None:
        """Land all operations of a wgmma group, in order, unless others took turns before them meanwhile."""
        if not event.tensor.has_completed(event.run, float(self._env.now)):
            event.set(event.tensor.complete(event.run))
            return
        self._begin()
        if self._recording is not None:
            self._recording.multiplied(event.group, event.run, event.issued)
        self._machine.land_group(event.group)
        self._end()


__all__ = ["Landings"]

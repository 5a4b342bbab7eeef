"""Turns what the timed schedule does into intervals and arrows for a recorder."""

from __future__ import annotations

from hopsim.events import BarrierEvent
from hopsim.hw.machine.barriers import Mbarrier
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.tensor_queue import Group
from hopsim.hw.machine.work import TensorWork
from hopsim.hw.timing.actor import Actor
from hopsim.hw.timing.recorder import Recorder, Track
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.tensor_core import Run

BARRIER = "mbarrier"
WGMMA = "wgmma"


def barrier_track(sm: str, cta: int, address: int) -> Track:
    """Return the track of an mbarrier."""
    return (sm, f"cta {cta} mbarrier {address:#x}")


class Recording:
    """What one run tells its recorder.

    Args:
        recorder: who listens.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # Copies in flight, by number, and since when.
        self._flights: dict[int, tuple[Operation, float]] = {}
        self._landing: Operation | None = None
        self._phase_since: dict[tuple[int, int], float] = {}
        self._sm_of: dict[int, str] = {}
        self.now = 0.0

    def started(self, cta: Cta, sm: str) -> None:
        """A CTA runs on an SM."""
        self._sm_of[cta.index] = sm

    def booked(self, operation: Operation, start: float) -> None:
        """A copy is in flight from `start` until it lands, which others may hold up."""
        self._flights[operation.number] = (operation, start)

    def ended(self, now: float) -> None:
        """The run is over: what has not landed was in flight until now."""
        for operation, start in self._flights.values():
            self._flew(operation, start, max(start, now))
        self._flights.clear()

    def multiplied(self, group: Group, run: Run, issued: tuple[Track, float] | None) -> None:
        """A wgmma group has had its time on the tensor core, given by the warps of a track at a time."""
        work: TensorWork = group.operations[0].work
        name = f"{len(group.operations)} x m64n{work.n}k{work.k}.{work.kind}"
        cta: Cta = group.owner.cta
        track = (self._sm_of[cta.index], "tensor core")
        self._recorder.span(track, name, run.start, run.last + run.cycles, cta=cta.index)
        if issued is not None:
            source, time = issued
            # The first operations may start before the last ones are issued.
            self._recorder.flow(WGMMA, source, min(time, run.start), track, run.start)

    def landing(self, operation: Operation, now: float) -> None:
        """An operation lands; what happens until `landed` is its doing."""
        self._landing = operation
        self.now = now

    def landed(self) -> None:
        """The effects of a landing are over."""
        operation, self._landing = self._landing, None
        if operation is not None and operation.done:
            _, start = self._flights.pop(operation.number)
            self._flew(operation, start, max(start, self.now))

    def woken(self, actor: Actor, barrier: Mbarrier, now: float) -> None:
        """A phase of an mbarrier ended and a strand goes on."""
        track = barrier_track(actor.sm.name, actor.strand.cta.index, barrier.address)
        actor.cause = (track, now)

    def ran(self, actor: Actor) -> None:
        """A strand stops: what it did since it last went on was one stretch of work."""
        if actor.time > actor.active_since:
            self._recorder.span(actor.track, "run", actor.active_since, actor.time)
            actor.active_since = actor.time

    def waited(self, actor: Actor) -> None:
        """A strand waited from its own time until it can go on."""
        name = actor.waited.name.lower()
        self._recorder.span(actor.track, name, actor.time, actor.resume, line=actor.strand.line)
        actor.active_since = actor.resume
        if actor.waited is Stall.MBARRIER and actor.cause is not None:
            source, time = actor.cause
            self._recorder.flow(BARRIER, source, time, actor.track, actor.resume)
        actor.cause = None

    def barrier(self, event: BarrierEvent) -> None:
        """A phase of an mbarrier ends: show it, and what ended it."""
        if event.kind != BARRIER or event.what != "phase":
            return
        cta, address = event.barrier
        track = barrier_track(self._sm_of[cta], cta, address)
        begin = self._phase_since.get(event.barrier, 0.0)
        # A strand that runs ahead of the clock may end a phase before the landing shown last.
        now = max(begin, self.now)
        self._recorder.span(track, f"phase {event.phase}", begin, now)
        self._phase_since[event.barrier] = now
        if self._landing is not None:
            operation = self._landing
            source = self._track_of(operation)
            self._recorder.flow("bytes", source, self.now, track, now, operation.number)

    def _flew(self, operation: Operation, start: float, stop: float) -> None:
        self._recorder.span(
            self._track_of(operation),
            operation.kind,
            start,
            stop,
            line=operation.line,
            op=operation.number,
        )

    def _track_of(self, operation: Operation) -> Track:
        cta: Cta = operation.cta
        return (self._sm_of[cta.index], "tma" if operation.unit == "tma" else "copies")

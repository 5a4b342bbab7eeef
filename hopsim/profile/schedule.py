"""The timed schedule, with an `Attribution` that is told whose time it charges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from hopsim.hw.machine.launch import Machine
from hopsim.hw.timing.actor import Actor, Crowding
from hopsim.hw.timing.charge import Charge, Known
from hopsim.hw.timing.costs import SegmentCost
from hopsim.hw.timing.crowding import Crowds
from hopsim.hw.timing.heads import Head
from hopsim.hw.timing.paths import Path, Walk
from hopsim.hw.timing.postponed import PostponedLoads
from hopsim.hw.timing.recorder import Recorder, Track
from hopsim.hw.timing.recording import Recording
from hopsim.hw.timing.schedule import TimedSchedule
from hopsim.hw.timing.stalls import Stall
from hopsim.isa.program.codegen import Segment
from hopsim.profile.attribution import Attribution


class Nobody:
    """A recorder that keeps nothing."""

    def span(self, track: Track, name: str, start: float, stop: float, **args: object) -> None:
        """An interval."""

    def flow(
        self,
        name: str,
        source: Track,
        start: float,
        target: Track,
        stop: float,
        op: int | None = None,
    ) -> None:
        """An arrow."""


class ProfiledSchedule(TimedSchedule):
    """A timed schedule whose warp cycles are known by line after the run; it takes the arguments of `TimedSchedule`."""

    def __init__(self, *args: Any, recorder: Recorder | None = None, **options: Any) -> None:
        recorder = Nobody() if recorder is None else recorder
        super().__init__(*args, recorder=recorder, **options)
        self.profile = Attribution(self.totals.stalls)
        self._recording = ProfiledRecording(recorder, self.profile)

    def _loop(self, machine: Machine) -> str:
        self._crowds = ProfiledCrowds(self.totals.stalls, self.profile)
        self._charge = ProfiledCharge(self._charge, self._crowds, self.profile)
        return super()._loop(machine)

    def retired(self, strand: Any) -> None:
        """A strand is gone: what it waited for its end counts where it stood."""
        self.profile.begin()
        super().retired(strand)
        self.profile.to_line(int(strand.line))


class ProfiledRecording(Recording):
    """Hears which line waited for something that happened."""

    def __init__(self, recorder: Recorder, profile: Attribution) -> None:
        super().__init__(recorder)
        self._profile = profile

    def waited(self, actor: Actor) -> None:
        """A strand waited until now."""
        cycles = (actor.resume - actor.time) * actor.warps
        self._profile.add(int(actor.strand.line), actor.waited, cycles)
        super().waited(actor)


class ProfiledCrowds(Crowds):
    """Arithmetic that the tensor cores slowed down counts where it stands."""

    def __init__(self, stalls: list[float], profile: Attribution) -> None:
        super().__init__(stalls)
        self._profile = profile

    def settle(self, actor: Actor, one: Crowding) -> None:
        """Move a strand's clock on."""
        trail = actor.strand.trail
        self._profile.begin()
        super().settle(actor, one)
        if trail:
            weights = [float(len(segment.instructions)) for segment in trail]
            self._profile.spread(trail, weights, Stall.DISPATCH_STALL)
        else:
            self._profile.to_line(int(actor.strand.line))


class ProfiledLoads(PostponedLoads):
    """Loads that come to their addresses late: who waits for these is the line before which they are issued.

    Args:
        plain: whose loads it goes on with.
    """

    def __init__(self, plain: PostponedLoads, profile: Attribution) -> None:
        vars(self).update(vars(plain))
        self._profile = profile
        # In a step that is walked its segments tell what was charged.
        self.is_walked = False

    def await_first(self, actor: Actor, time: float) -> float:
        """Wait until the first of what a strand has kept has its address."""
        self._profile.begin()
        first = super().await_first(actor, time)
        self._profile.to_line(int(actor.strand.line))
        return first

    def issue(self, actor: Actor, time: float, until: float = math.inf) -> float:
        """Issue what a strand has kept."""
        if self.is_walked:
            return super().issue(actor, time, until)
        self._profile.begin()
        issued = super().issue(actor, time, until)
        self._profile.to_line(int(actor.strand.line))
        return issued


class ProfiledCharge(Charge):
    """Charges as another does, and says whose time it was.

    Args:
        plain: whose books it goes on with; nothing was charged yet.
    """

    def __init__(self, plain: Charge, crowds: Crowds, profile: Attribution) -> None:
        vars(self).update(vars(plain))
        self.postponed = self._loads = ProfiledLoads(plain.postponed, profile)
        self._crowds = crowds
        self._profile = profile
        self._trail: tuple[Segment, ...] = ()
        # Of a step that is walked: how far it is; of one that was seen before: all of it is read at once.
        self._position: int | None = None
        self._known: Known | None = None
        self._parts: dict[Path, list[dict[Stall, float]]] = {}

    def step(self, actor: Actor, start: float) -> float:
        """Charge a step."""
        profile, warps = self._profile, actor.warps
        self._trail = trail = tuple(actor.strand.trail)
        self._position = self._known = None
        following, resumed = actor.strand.segment, actor.resumed
        if trail:
            key = (resumed, warps, following, *trail)
            self._known = self._steps.get(key)
        profile.begin()
        time = super().step(actor, start)
        if not trail:
            profile.to_line(int(actor.strand.line))
            return time
        for segment in trail:
            profile.executed(segment, warps)
        costs = [self._costs[segment.number] for segment in trail]
        slots = [cost.slots for cost in costs]
        profile.spread(trail, slots, Stall.SELECTED)
        profile.spread(trail, slots, Stall.NOT_SELECTED)
        path = self._known.path if self._known is not None else None
        if isinstance(path, Path):
            self._tell_path(path, following, resumed, warps)
        gaps = [max(cost.span - cost.slots, 0.0) for cost in costs]
        profile.spread(trail, gaps, Stall.WAIT)
        profile.to_line(int(trail[-1].line))
        return time

    def _learn(self, key: tuple[object, ...], trail: list[Segment], actor: Actor) -> Known:
        self._known = super()._learn(key, trail, actor)
        return self._known

    def _first(self, known: Known, actor: Actor, start: float) -> float:
        time = super()._first(known, actor, start)
        self._profile.to_line(int(self._trail[0].line))
        return time

    def _tell_path(self, path: Path, following: int, resumed: bool, warps: int) -> None:
        """Give what was worked out ahead to its segments: what each adds to the path of those before it."""
        parts = self._parts.get(path)
        if parts is None:
            parts = self._parts[path] = self._parts_of(following, resumed, warps)
        for segment, part in zip(self._trail, parts, strict=True):
            for reason, cycles in part.items():
                if reason is not Stall.WAIT:
                    line = segment.last_line if reason is Stall.BRANCH_RESOLVE else segment.line
                    self._profile.add(int(line), reason, cycles * warps)
        # Waits for what was on its way were told where they occurred; what is left of a reason is of the path.
        for reason, _ in path.stalls:
            if reason is not Stall.WAIT:
                self._profile.take(reason)

    def _parts_of(self, following: int, resumed: bool, warps: int) -> list[dict[Stall, float]]:
        numbers = [segment.number for segment in self._trail]
        parts: list[dict[Stall, float]] = []
        before: dict[Stall, float] = {}
        for count in range(1, len(numbers) + 1):
            after = numbers[count] if count < len(numbers) else following
            path = self._path_costs.work_out(numbers[:count], after, resumed, warps)
            assert path is not None, "a part of a path that is known ahead is not"
            until = dict(path.stalls)
            parts.append({
                reason: cycles - before.get(reason, 0.0)
                for reason, cycles in until.items()
                if cycles > before.get(reason, 0.0)
            })  # fmt: skip
            before = until
        return parts

    def _walk(self, actor: Actor, walk: Walk, start: float) -> float:
        segments = cast("tuple[tuple[SegmentCost, float], ...]", self._Walked(self, walk.segments))
        return super()._walk(actor, walk._replace(segments=segments), start)

    class _Walked(Iterable[tuple[SegmentCost, float]]):
        """The segments of a walk; who goes through them is seen to do so."""

        def __init__(
            self, charge: ProfiledCharge, segments: Sequence[tuple[SegmentCost, float]]
        ) -> None:
            self._charge = charge
            self._segments = segments

        def __iter__(self) -> Iterator[tuple[SegmentCost, float]]:
            for position, segment in enumerate(self._segments):
                self._charge.walked_to(position)
                yield segment
            self._charge.walked_to(None)

    def walked_to(self, position: int | None) -> None:
        """Give what was charged since the segment before to that one."""
        before, self._position = self._position, position
        self._loads.is_walked = position is not None
        if before is not None:
            segment = self._trail[before]
            if cycles := self._profile.take(Stall.BRANCH_RESOLVE):
                self._profile.add(int(segment.last_line), Stall.BRANCH_RESOLVE, cycles)
            self._profile.to_line(int(segment.line))

    def _stall(self, actor: Actor, reads: dict[int, float], time: float) -> float:
        """Wait for results: the instruction that reads the last of them waits."""
        pending = actor.pending
        last = max(
            pending.keys() & reads.keys(),
            key=lambda register: pending[register][0] - reads[register],
            default=None,
        )
        ready = super()._stall(actor, reads, time)
        if last is not None and ready > time:
            self._profile.to_line(self._reader(last))
        return ready

    def await_operands(self, actor: Actor, cost: SegmentCost, time: float) -> float:
        """Wait for what the next segment reads."""
        strand = actor.strand
        self._trail, self._position = (strand.machine.program[strand.segment],), 0
        self._profile.begin()
        ready = super().await_operands(actor, cost, time)
        self._profile.to_line(int(strand.line))
        return ready

    def _reader(self, register: int) -> int:
        """Return the line of the first instruction that reads a register, from where the step is."""
        for segment in self._trail[self._position or 0 :]:
            for bound in segment.instructions:
                if register in bound.reads:
                    return int(bound.line)
        return int(self._trail[self._position or 0].line)

    def _head(
        self, actor: Actor, cost: SegmentCost, head: Head, position: int, time: float
    ) -> float:
        """Charge a head: what it loads is waited for where it is read, as Nsight Compute tells it."""
        until = super()._head(actor, cost, head, position, time)
        segment = self._trail[position]
        loaded = frozenset(cost.head_writes)
        readers = [one for one in segment.instructions[1:] if loaded & one.reads]
        if readers:
            for reason in (Stall.LONG_SCOREBOARD, Stall.SHORT_SCOREBOARD):
                if cycles := self._profile.take(reason):
                    self._profile.add(int(readers[0].line), reason, cycles)
        self._profile.to_line(int(segment.line))
        return until

    def _commit(self, actor: Actor, position: int, time: float) -> None:
        super()._commit(actor, position, time)
        self._profile.to_line(int(self._trail[position].line))

    def _issue_tensor(self, actor: Actor, position: int, time: float) -> float:
        until = super()._issue_tensor(actor, position, time)
        self._profile.to_line(int(self._trail[position].line))
        return until

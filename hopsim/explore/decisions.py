"""Schedules that write down what they decided, and one that repeats a choice of those decisions.

A run is a chain of turns: a strand executes some steps, or an operation lands a stage.  Every turn has a name that does not
depend on the order of the others: (CTA, first thread, PTX line, how often it was there), or the operation's issuer, line and
number.  A *hold* says that a turn may not begin before another point was reached.  All holds of a run together repeat it;
with none the run is in order; what lies between is for `minimise` to find.

A hold is never stronger than the machine: when everything that could happen is held, the oldest goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from hopsim.hw.machine.launch import Machine
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.untimed import (
    PLAIN_RUN_BITS,
    QUIET_TURN,
    TURN,
    Adversarial,
    InOrder,
    Seeded,
    Untimed,
)

RESIDENT_CLUSTERS = 4


class Point(NamedTuple):
    """One step of a strand, or one stage of an operation.

    Args:
        kind: `step`, or the kind of the operation.
        cta: linear index.  who: first thread of the strand, or the issuer in words.
        line: PTX line of the instruction.  count: the how many-th time, from 1.  stage: of an operation, from 1.
    """

    kind: str
    cta: int
    who: int | str
    line: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]  # of tuple, which nobody calls
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """What one strand, or one operation, did without interruption."""

    points: tuple[Point, ...]

    @property
    def lines(self) -> tuple[int, ...]:
        """PTX lines in order."""
        return tuple(point.line for point in self.points)


class Recorded(Untimed):
    """An untimed schedule that keeps its turns; CTAs that fit on the device together run together."""

    starts_early = True

    def __init__(self, *positional: Any, **options: Any) -> None:
        super().__init__(*positional, resident_clusters=RESIDENT_CLUSTERS, **options)
        self.turns: list[Turn] = []
        self._steps: dict[tuple[int, int, int], int] = {}
        self._issues: dict[tuple[int, str, int], int] = {}
        self._names: dict[int, tuple[int, str, int, int]] = {}
        self._stages: dict[int, int] = {}

    def issued(self, operation: Operation) -> None:
        """Remember an operation in flight, by a name that any order gives it."""
        super().issued(operation)
        issuer = operation.issuer
        if operation.kind == "wgmma":
            # Whichever warp comes last makes it; it belongs to the four.
            issuer = f"{issuer.split(' warp')[0]} warpgroup {operation.queue.number}"
        key = (operation.cta.index, issuer, operation.line)
        count = self._issues[key] = self._issues.get(key, 0) + 1
        self._names[operation.number] = (*key, count)

    # -- names -------------------------------------------------------------------------------------

    def next_point(self, strand: Any) -> Point:
        """Return the name of the step that a strand would take now."""
        cta, thread = strand.key
        line = strand.line
        return Point("step", cta, thread, line, self._steps.get((cta, thread, line), 0) + 1)

    def next_stage(self, operation: Operation) -> Point:
        """Return the name of the stage that an operation would land now."""
        cta, issuer, line, count = self._names[operation.number]
        stage = self._stages.get(operation.number, 0) + 1
        return Point(operation.kind, cta, issuer, line, count, stage)

    def reached(self, point: Point) -> None:
        """A step was taken, or a stage has landed."""

    # -- what happens ------------------------------------------------------------------------------

    def _step(self, quiet: bool) -> None:
        position = self.next_strand()
        strand = self.ready[position]
        del self.ready[position]
        if strand.done:
            return
        steps = self.turn()
        if quiet:
            self._watch.moved(strand)
            steps = min(steps, QUIET_TURN)
        points: list[Point] = []
        goes_on = True
        while goes_on and len(points) < steps and not (points and self.stops_at(strand)):
            self.ticks += 1
            point = self.next_point(strand)
            self._steps[point.cta, int(point.who), point.line] = point.count
            goes_on = strand.step()
            self.ticks += len(strand.trail) >> PLAIN_RUN_BITS
            points.append(point)
            self.reached(point)
        self.turns.append(Turn(tuple(points)))
        if goes_on:
            self.ready.append(strand)

    def stops_at(self, strand: Any) -> bool:
        """Whether a strand's turn ends before its next step."""
        return False

    def _land(self, machine: Machine) -> None:
        before = {operation.number: len(operation.stages) for operation in self.flights}
        named = {operation.number: operation for operation in self.flights}
        super()._land(machine)
        for number, stages in before.items():
            operation = named[number]
            if len(operation.stages) != stages:
                point = self.next_stage(operation)
                self._stages[number] = point.stage
                self.turns.append(Turn((point,)))
                self.reached(point)
                return


class RecordedSeeded(Recorded, Seeded):
    """One of the seeded interleavings, recorded."""


class RecordedAdversarial(Recorded, Adversarial):
    """As late as legal, recorded."""


Holds = Mapping[Point, Point]


def chained(turns: Sequence[Turn]) -> dict[Point, Point]:
    """Return the holds that repeat a run exactly: each turn waits for the end of the one before it."""
    return {turn.points[0]: before.points[-1] for before, turn in pairwise(turns)}


def delays(turns: Sequence[Turn], usual: Sequence[Turn], *, within_cta: bool) -> dict[Point, Point]:
    """Return what a run did later than another: each point waits for the latest that went before it only here.

    Args:
        turns: of the run.  usual: of the other, which knows no holds.
        within_cta: whether points wait for points of their own CTA only.
    """
    rank = {point: k for k, point in enumerate(point for turn in usual for point in turn.points)}
    latest: dict[int, Point] = {}
    last: dict[tuple[str, int, int | str], Point] = {}
    holds: dict[Point, Point] = {}
    for turn in turns:
        for point in turn.points:
            here = rank.get(point)
            if here is None:
                continue
            group = point.cta if within_cta else 0
            before = latest.get(group)
            if before is None or rank[before] < here:
                latest[group] = point
                continue
            # A strand that waited for it already need not wait again; every operation is somebody of its own.
            actor = (point.kind, point.cta, point.who)
            if point.kind != "step" or last.get(actor) != before:
                holds[point] = before
                last[actor] = before
    return holds


class Held(Recorded, InOrder):
    """In order, except that some turns wait for what they are held for.

    Args:
        holds: which point waits for which.
    """

    name = "held"
    fuse = False

    def __init__(self, holds: Holds, **options: Any) -> None:
        super().__init__(**options)
        self.holds = holds
        self._passed: set[Point] = set()
        self._awaited = set(holds.values())
        self._has_released = False

    def reached(self, point: Point) -> None:
        """Remember what others wait for."""
        if point in self._awaited:
            self._passed.add(point)
            self._has_released = True

    def is_held(self, point: Point) -> bool:
        """Whether a point has to wait."""
        until = self.holds.get(point)
        return until is not None and until not in self._passed

    def stops_at(self, strand: Any) -> bool:
        """Whether a strand's next step is held, or others may go on that waited for the last one."""
        return self._has_released or self.is_held(self.next_point(strand))

    def _free_strand(self) -> int | None:
        for position, strand in enumerate(self.ready):
            if strand.done or not self.is_held(self.next_point(strand)):
                return position
        return None

    def _free_flight(self) -> int | None:
        held_queues: list[Any] = []
        for position, operation in enumerate(self.flights):
            # Those behind it in its queue cannot land either.
            is_behind = operation.queue is not None and operation.queue in held_queues
            if (
                not is_behind
                and not self.is_held(self.next_stage(operation))
                and operation.may_land
            ):
                return position
            if operation.queue is not None and not is_behind:
                held_queues.append(operation.queue)
        return None

    def wants_landing(self) -> bool:
        """Land when every strand is held, and an operation is not."""
        return self._free_strand() is None and self._free_flight() is not None

    def next_strand(self) -> int:
        """Return the first strand that is not held."""
        self._has_released = False
        return self._free_strand() or 0

    def next_flight(self) -> int:
        """Return the first operation that is not held."""
        return self._free_flight() or 0

    def turn(self) -> int:
        """Let a strand run until it is held."""
        return TURN

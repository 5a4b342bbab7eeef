"""A strand: the threads of one CTA that step together, with compact registers.

A strand covers whole warps of one warpgroup while they are convergent, or some lanes of one warp after they diverged.
Its registers hold values for its own lanes only, so no instruction ever masks: where lanes part ways the strand is split
into strands with their own registers; lanes of one warp meet again at the immediate post-dominator, warps when a
collective instruction brings them together.  Each strand goes on by itself (independent thread scheduling).

A step executes one shared instruction and the plain instructions after it, up to the next shared one.
Source: PTX ISA 8.7 "Single-Instruction Multiple-Thread Architecture", "Independent thread scheduling".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hopsim.hw.machine.joins import Join, give_way, leave, meet, share
from hopsim.hw.machine.placed import Placed
from hopsim.hw.machine.specials import Specials
from hopsim.hw.machine.thread_groups import WARP
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.program.codegen import SPLIT, WAITING, Segment
from hopsim.isa.program.flow import EXIT
from hopsim.isa.program.register_masks import members
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Value, collapse, collapsed_rows

if TYPE_CHECKING:
    from hopsim.hw.machine.cta import Cta
    from hopsim.hw.machine.waiting import Wait

# A plain run that never meets a shared instruction is ended after so many segments, so that nothing hangs.
LONGEST_PLAIN_RUN = 4096


class StrandCore(Placed):
    """State and control flow of a strand; the instruction families are mixed in by `Strand`."""

    def __init__(
        self, cta: Cta, tids: NDArray[np.int64], registers: list[Value], segment: int
    ) -> None:
        self.cta = cta
        self.machine = cta.machine
        self.tids = tids
        self.lanes = len(tids)
        first = int(tids[0]) // WARP
        last = int(tids[-1]) // WARP
        self.warps = range(first, last + 1)
        self.warpgroup = cta.warpgroups[first // 4]
        self.registers = registers
        self.segment = segment
        self.join: Join | None = None
        # Whether the schedule knows this strand; whether its warp was let part where it should meet (`joins.open_all`).
        self.is_scheduled = False
        self.is_apart = False
        # Where it asked for news last, which it may do in a loop (`yielding`).
        self.asked = -1
        self.is_settled = False
        self.waiting: Wait | None = None
        self.resumed: Wait | None = None
        self.done = False
        self.sp = Specials(self)
        self.shared_base = cta.shared_base
        self.symbols = cta.machine.symbols
        self.trail: list[Segment] = []
        self.access: Any = None
        # Nanoseconds of the sleeps of a step whose time is not known before, by position in the trail.
        self.sleeps: dict[int, int] = {}
        # Likewise, how many values the lanes of a warp have at most that a match.any looks at; nothing, which counts as one,
        # where values are not computed, or lanes come from several places.
        self.matched: dict[int, int] = {}
        self.acting: StrandCore | None = None
        self._views: dict[bytes, tuple[Any, Any]] = {}

    # -- others of its warps -----------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether every live thread of each of its warps is in this strand."""
        return self.lanes == self.cta.live_threads_of(self.warps)

    @property
    def is_awaited(self) -> bool:
        """Whether other lanes of its warps go on elsewhere or wait to meet it, but for those that wait to exit with it.

        (`leaving` says why these do not count.)
        """
        others = self.cta.live_threads_of(self.warps) - self.lanes
        join = self.join
        while others and join is not None:
            if join.segment in self.machine.leaving:
                others -= sum(one.lanes for one in join.arrived if one.warps[0] in self.warps)
            join = join.outer
        return others > 0

    # -- steps -------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Execute up to the next shared instruction, or to where warps leave: a step is of the same warps throughout.

        Returns: False when the strand is blocked, parked at a join, or done; True when it can take another step.
        """
        program = self.machine.program
        registers = self.registers
        warps = self.warps
        trail = self.trail
        trail.clear()
        if self.join is not None and self.segment in self.machine.yielding:
            if self.segment <= self.asked:
                give_way(self)
            self.asked = self.segment
        segment = program[self.segment]
        for _ in range(LONGEST_PLAIN_RUN):
            head = segment.head
            if head is not None:
                outcome = head(self, registers)
                if outcome == WAITING:
                    return False
                if outcome == SPLIT:
                    return not self.done
                self.resumed = None
            trail.append(segment)
            number = segment.body(self, registers)
            if number == EXIT:
                self._exit(segment)
                return False
            self.segment = number
            join = self.join
            if join is not None and number == join.segment:
                return self._arrive_at_join(join)
            if self.registers is not registers:
                # Who parts ways has registers of its own.
                if self.warps != warps:
                    return True
                registers = self.registers
            segment = program[number]
            if segment.stop:
                return True
        return True

    def _exit(self, segment: Segment) -> None:
        """Leave the program at the end of a segment."""
        self.done = True
        self.machine.exited(self, segment.last_line)
        leave(self)

    def let_leave(self) -> None:
        """Let lanes leave that wait for this strand where the program ends: they have nothing to do but `ret`.

        As on an H100: ptxas makes a predicated EXIT of a branch to a `ret`, and a barrier does not wait for those lanes.
        """
        join = self.join
        while join is not None:
            segment = self.machine.program[join.segment]
            if join.segment != EXIT and segment.only_leaves and join.arrived:
                gone, join.arrived = join.arrived, []
                self.machine.parted.pop(join, None)
                for strand in gone:
                    strand._exit(segment)
            join = join.outer

    # -- divergence --------------------------------------------------------------------------------

    def diverge(
        self, predicate: NDArray[np.bool_], when_true: int, when_false: int, join: int
    ) -> int:
        """Part ways by a predicate that may differ between lanes; return where this strand goes on."""
        if predicate.all():
            return when_true
        if not predicate.any():
            return when_false
        program = self.machine.program
        live = program[when_true].live if when_true != EXIT else 0
        live |= program[when_false].live if when_false != EXIT else 0
        parts: list[tuple[NDArray[np.bool_], int, Join | None]] = []
        true_lanes = np.zeros(self.lanes, np.bool_)
        false_lanes = np.zeros(self.lanes, np.bool_)
        for warp in self.warps:
            here = self.tids // WARP == warp
            if not here.any():
                continue
            inside = predicate & here
            if inside.sum() == here.sum():
                true_lanes |= here
            elif not inside.any():
                false_lanes |= here
            else:
                point = self._meeting_point(join)
                parts.append((inside, when_true, point))
                parts.append((here & ~predicate, when_false, point))
        parts += [(lanes, when_true, self.join) for lanes in self._runs_of_warps(true_lanes)]
        parts += [(lanes, when_false, self.join) for lanes in self._runs_of_warps(false_lanes)]
        parts.sort(key=lambda part: int(np.argmax(part[0])))
        # The outer join expects one strand; where warps part for good it must expect each of them.
        if self.join is not None and len(self.warps) > 1:
            raise AssertionError(("a strand of several warps has a join", self.key))
        old = self.registers
        mine, *others = parts
        for lanes, target, point in others:
            self._branch_off(lanes, target, point, old, live)
        lanes, target, point = mine
        self._become(lanes, point, old, live)
        return target

    def _runs_of_warps(self, lanes: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """Cut lanes of whole warps where a warp between them is missing: the warps of a strand are consecutive."""
        warps = self.tids // WARP
        runs: list[NDArray[np.bool_]] = []
        last = -2
        for warp in self.warps:
            here = lanes & (warps == warp)
            if not here.any():
                continue
            if warp == last + 1:
                runs[-1] |= here
            else:
                runs.append(here)
            last = warp
        return runs

    def divide(self, groups: Sequence[NDArray[np.bool_]]) -> None:
        """Let groups of warps execute the current instruction as strands of their own."""
        live = self.machine.program[self.segment].live
        old = self.registers
        assert self.join is None, self.key
        mine, *others = groups
        for lanes in others:
            self._branch_off(lanes, self.segment, None, old, live)
        self._become(mine, None, old, live)

    def _meeting_point(self, segment: int) -> Join | None:
        """Return the join of two parts of this strand that meet again at a segment."""
        outer = self.join
        if segment != EXIT and (outer is None or outer.segment != segment):
            return Join(segment, 2, outer)
        if outer is not None:
            outer.expected += 1
        return outer

    def _branch_off(
        self,
        lanes: NDArray[np.bool_],
        target: int,
        point: Join | None,
        registers: list[Value],
        live: int,
    ) -> None:
        other = type(self)(self.cta, self.tids[lanes], _restrict(registers, lanes, live), target)
        other.join = point
        other.is_apart = self.is_apart
        self.warpgroup.strands.append(other)
        if target == EXIT:
            other._exit(self.machine.program[self.segment])
        elif point is None or target != point.segment or other._arrive_at_join(point):
            self.machine.spawned(other)

    def _become(
        self, lanes: NDArray[np.bool_], point: Join | None, registers: list[Value], live: int
    ) -> None:
        self.registers = _restrict(registers, lanes, live)
        self.tids = self.tids[lanes]
        self.lanes = len(self.tids)
        self.warps = range(int(self.tids[0]) // WARP, int(self.tids[-1]) // WARP + 1)
        self.join = point
        self.sp = Specials(self)
        self._views = {}

    def split_here(self, predicate: NDArray[np.bool_] | bool) -> int:
        """Divide the strand before a collective or blocking instruction whose guard differs between lanes."""
        if isinstance(predicate, bool):
            # The guard is uniform after all: store it so, and let the head run again.
            self._make_uniform_guard(predicate)
            return SPLIT
        number = self.segment
        join = self.machine.program[number].join
        self.diverge(predicate, number, number, join)
        return SPLIT

    def _make_uniform_guard(self, predicate: bool) -> None:
        guard = self.machine.program[self.segment].instructions[0].instruction.guard
        assert guard is not None
        self.registers[guard[0].index] = predicate ^ guard[1]

    def _arrive_at_join(self, join: Join) -> bool:
        """Arrive where parted lanes meet; return whether this strand goes on."""
        leader = meet(self, join)
        if leader is None:
            return False
        if leader is not self:
            self.machine.spawned(leader)
            return False
        return True

    def merge(self, strands: Sequence[StrandCore]) -> StrandCore:
        """Make one strand of several at the same instruction; the one with the lowest thread stays."""
        ordered = sorted(strands, key=lambda strand: strand.key)
        leader = ordered[0]
        share(ordered)
        leader.absorb(ordered[1:], self.machine.program[leader.segment].live)
        return leader

    def fuse(self, strands: Sequence[StrandCore], wait: Wait) -> Any:
        """Merge strands that all stand at this instruction, this one included, and let the result start it again."""
        self.block(wait)
        leader = self.merge(strands)
        self.machine.wake(leader)
        return BLOCKED

    def absorb(self, others: Sequence[StrandCore], live: int) -> None:
        """Take over the lanes and registers of `others`; they are done."""
        strands = [self, *others]
        tids = np.concatenate([strand.tids for strand in strands])
        order = np.argsort(tids, kind="stable")
        registers: list[Any] = [0] * len(self.registers)
        widths = self.machine.register_widths
        differing: dict[int, list[int]] = {}
        for index in members(live):
            first = self.registers[index]
            if isinstance(first, np.ndarray):
                differing.setdefault(widths[index], []).append(index)
                continue
            for other in others:
                value = other.registers[index]
                if value is not first and (isinstance(value, np.ndarray) or value != first):
                    differing.setdefault(widths[index], []).append(index)
                    break
            else:
                registers[index] = first
        for width, indices in differing.items():
            dtype = np.dtype(np.bool_) if width == 1 else DTYPES[width]
            table = np.empty((len(indices), len(tids)), dtype)
            start = 0
            for strand in strands:
                stop = start + strand.lanes
                for row, index in zip(table, indices, strict=True):
                    row[start:stop] = strand.registers[index]
                start = stop
            for index, value in zip(indices, collapsed_rows(table[:, order]), strict=True):
                registers[index] = value
        self.registers = registers
        self.tids = tids[order]
        self.lanes = len(tids)
        self.warps = range(int(self.tids[0]) // WARP, int(self.tids[-1]) // WARP + 1)
        self.is_settled = False
        self.is_apart = any(strand.is_apart for strand in strands) and not self.is_whole
        self.sp = Specials(self)
        self._views = {}
        for other in others:
            other.done = True
            self.machine.absorbed(other)

    # -- parts of a strand -------------------------------------------------------------------------

    def choose(self, predicate: NDArray[np.bool_]) -> tuple[Any, Any]:
        """Return a view of the lanes where `predicate` holds and their positions (an int when there is one).

        The view executes one instruction that does not block; it is not scheduled.  Returns (None, None) when no lane is
        chosen, and the strand itself with a full slice when all are.  Loops choose the same lanes again and again, so
        views are kept until the strand changes.
        """
        pattern = predicate.tobytes()
        found = self._views.get(pattern)
        if found is None:
            positions = np.flatnonzero(predicate)
            if len(positions) == 0:
                found = (None, None)
            elif len(positions) == self.lanes:
                found = (self, slice(None))
            else:
                view = type(self)(self.cta, self.tids[positions], self.registers, self.segment)
                view.acting = self.acting or self
                found = (view, int(positions[0]) if len(positions) == 1 else positions)
            self._views[pattern] = found
        view = found[0]
        if view is not None:
            view.segment = self.segment
            view.registers = self.registers
        return found

    def settle(self) -> None:
        """Store registers whose lanes agree as one int, once: an operand that must be uniform came as an array.

        Arithmetic on arrays does not look whether its lanes agree, so what was per warp before the strand parted stays
        an array; a loop that starts from it would work on arrays for ever.
        """
        owner = self.acting or self
        if owner.is_settled:
            return
        owner.is_settled = True
        registers = owner.registers
        for index, value in enumerate(registers):
            if isinstance(value, np.ndarray):
                registers[index] = collapse(value)

    # -- waiting -----------------------------------------------------------------------------------

    def block(self, wait: Wait) -> None:
        """Say that this strand cannot go on before `wait` is over."""
        self.waiting = wait
        self.machine.blocked(self)


def _restrict(registers: list[Value], lanes: NDArray[np.bool_], live: int) -> list[Any]:
    """Keep the chosen lanes of live registers; what is dead becomes 0."""
    result: list[Any] = [0] * len(registers)
    differing: dict[np.dtype[Any], list[int]] = {}
    for index in members(live):
        value = registers[index]
        if isinstance(value, np.ndarray):
            differing.setdefault(value.dtype, []).append(index)
        else:
            result[index] = value
    for indices in differing.values():
        table = np.array([registers[index] for index in indices])[:, lanes]
        for index, value in zip(indices, collapsed_rows(table), strict=True):
            result[index] = value
    return result


__all__ = ["StrandCore"]

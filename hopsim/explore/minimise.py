"""From a schedule that changes the outcome to the few decisions that matter.

Delta debugging: try halves of the decisions, then their complements, then smaller parts, and keep whatever still shows the
difference.  What remains cannot be made smaller by leaving out one decision, unless the number of tries ran out.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002 (ddmin).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hopsim.explore.case import Case
from hopsim.explore.decisions import Held, Point, Turn, chained, delays
from hopsim.explore.sweep import STEPS_MAX, Ending, Hardware, Order, Run, plan_of, run
from hopsim.isa.program.kernel import Kernel

T = TypeVar("T")
Hold = tuple[Point, Point]
TRIES = 200
SHARPENED_MAX = 4


@dataclass(frozen=True, slots=True)
class Minimal:
    """The decisions that matter.

    Args:
        order: the order they come from.
        holds: (what waits, for what), in the order of the run.
        decisions: of the whole order.
        turns: of the run with these holds only.
        ending: of that run.
        is_minimal: whether leaving out any one hold hides the difference (False: tries ran out).
        tries: runs it took.
    """

    order: Order
    holds: tuple[tuple[Point, Point], ...]
    decisions: int
    turns: tuple[Turn, ...]
    ending: Ending
    is_minimal: bool
    tries: int


def smallest(
    items: Sequence[T], shows: Callable[[Sequence[T]], bool], tries: int = TRIES
) -> tuple[list[T], bool]:
    """Return a small part of `items` for which `shows` holds, and whether it is 1-minimal.

    Args:
        shows: holds for all items together; asked at most `tries` times.
    """
    kept = list(items)
    parts = 2
    asked = 0
    while kept:
        size = max(1, -(-len(kept) // parts))
        pieces = [kept[k : k + size] for k in range(0, len(kept), size)]
        rests = [
            [x for j, other in enumerate(pieces) if j != k for x in other]
            for k in range(len(pieces))
            if len(pieces) > 2
        ]
        nothing: list[T] = []
        candidates = [*pieces, *rests] if len(pieces) > 1 else [nothing]
        for candidate in candidates:
            if asked >= tries:
                return kept, False
            asked += 1
            if shows(candidate):
                parts = 2 if len(candidate) <= size else max(2, len(pieces) - 1)
                kept = candidate
                break
        else:
            if size == 1:
                return kept, True
            parts = min(len(kept), 2 * parts)
    return kept, True


class _Search:
    """Runs a case under holds, and counts."""

    def __init__(
        self,
        case: Case,
        kernel: Kernel,
        order: Order,
        baseline: Ending,
        hardware: Hardware,
        tries: int,
    ) -> None:
        self.case, self.kernel, self.hardware = case, kernel, hardware
        self.order, self.baseline = order, baseline
        self.tries = tries
        self.asked = 0

    def attempt(self, chosen: Sequence[Hold]) -> Run:
        """Run the case with these holds."""
        self.asked += 1
        plan = Held(dict(chosen), step_limit=STEPS_MAX)
        return run(self.case, self.kernel, plan, self.order, self.hardware)

    def shows(self, chosen: Sequence[Hold]) -> bool:
        """Whether a run with these holds ends otherwise than the run in order."""
        return self.attempt(chosen).ending.differs(self.baseline)

    @property
    def left(self) -> int:
        """Runs that may still be made."""
        return max(0, self.tries - self.asked)

    def sharpened(self, kept: Sequence[Hold], usual: Sequence[Point]) -> list[Hold]:
        """Let each hold begin as late and end as early as it can: then it names the very accesses that change places."""
        holds = list(kept)
        rank = {point: k for k, point in enumerate(usual)}
        for k, (held, until) in enumerate(holds):
            if held not in rank or until not in rank:
                continue
            own = [point for point in usual[rank[held] :] if _actor(point) == _actor(held)]
            self._end_early(k, holds, usual, rank)
            until = holds[k][1]
            if self._first(k, holds, [(point, until) for point in reversed(own)])[0] != held:
                self._end_early(k, holds, usual, rank)
        return holds

    def _end_early(
        self, place: int, holds: list[Hold], usual: Sequence[Point], rank: dict[Point, int]
    ) -> None:
        held, until = holds[place]
        between = usual[rank[held] + 1 : rank[until] + 1]
        others = [(held, point) for point in between if _actor(point) != _actor(held)]
        self._first(place, holds, others)

    def _first(self, place: int, holds: list[Hold], choices: Sequence[Hold]) -> Hold:
        """Put the first choice that shows the difference in a place, if all behind it do; return what stands there."""
        low, high = 0, len(choices) - 1
        while low <= high and self.left:
            middle = (low + high) // 2
            candidate = [*holds[:place], choices[middle], *holds[place + 1 :]]
            done = self.attempt(candidate)
            if done.ending.differs(self.baseline) and _is_kept(choices[middle], done.turns):
                holds[place] = choices[middle]
                high = middle - 1
            else:
                low = middle + 1
        return holds[place]


def _is_kept(hold: Hold, turns: Sequence[Turn]) -> bool:
    """Whether a hold ended because what it waits for happened."""
    for turn in turns:
        for point in turn.points:
            if point in hold:
                return point == hold[1]
    return False


def _actor(point: Point) -> tuple[str, int, int | str, int, int]:
    """Return who acts: a strand, one operation, or all wgmmas of a warpgroup, which land in order."""
    if point.kind in ("step", "wgmma"):
        return (point.kind, point.cta, point.who, 0, 0)
    return (point.kind, point.cta, point.who, point.line, point.count)


def minimise(
    case: Case,
    kernel: Kernel,
    order: Order,
    baseline: Ending,
    hardware: Hardware,
    tries: int = TRIES,
) -> Minimal:
    """Return the few decisions of `order` that make a run end otherwise than `baseline`."""
    turns = run(case, kernel, plan_of(order), order, hardware).turns
    search = _Search(case, kernel, order, baseline, hardware, tries)
    usual = search.attempt(())
    decisions = len(turns) - 1
    assert not usual.ending.differs(baseline), "a run without holds is the run in order"
    holds: list[Hold] = []
    for candidate in (
        delays(turns, usual.turns, within_cta=True),
        delays(turns, usual.turns, within_cta=False),
        chained(turns),
    ):
        holds = list(candidate.items())
        if search.shows(holds):
            break
    kept, is_minimal = smallest(holds, search.shows, search.left)
    if len(kept) <= SHARPENED_MAX:
        kept = search.sharpened(kept, [point for turn in usual.turns for point in turn.points])
    shown = search.attempt(kept)
    return Minimal(
        order, tuple(kept), decisions, tuple(shown.turns), shown.ending, is_minimal, search.asked
    )

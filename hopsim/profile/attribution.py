"""Tells the time that the timed schedule charges to warps by the segments and lines that it is charged for.

The schedule adds warp cycles to sums by reason (`Totals.stalls`). An `Attribution` looks at what was added while it is known
whose doing it is: a line that waited, or the instructions of a segment. Nothing is charged here, so that cycles are those
of a run that nobody looks at.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.hw.timing.counters import STALL_NAMES
from hopsim.hw.timing.stalls import Stall
from hopsim.isa.program.codegen import Segment

REASONS = len(Stall)
SPREAD = (Stall.SELECTED, Stall.NOT_SELECTED, Stall.WAIT, Stall.DISPATCH_STALL)
"""What all instructions of a segment have a part in; any other reason is one instruction's."""


class Attribution:
    """Warp cycles by reason, of lines and of segments.

    Args:
        totals: the sums that the schedule adds to.
    """

    def __init__(self, totals: list[float]) -> None:
        self.totals = totals
        self._seen = list(totals)
        self._lines: dict[int, list[float]] = {}
        self._segments: dict[int, tuple[Segment, list[float]]] = {}
        self._executed: dict[int, int] = {}

    def begin(self) -> None:
        """Leave out what was added until now."""
        self._seen[:] = self.totals

    def to_line(self, line: int) -> None:
        """Give what was added since to a line."""
        seen, totals = self._seen, self.totals
        if seen == totals:
            return
        for reason in range(REASONS):
            if totals[reason] != seen[reason]:
                self.add(line, reason, totals[reason] - seen[reason])
        seen[:] = totals

    def take(self, reason: int) -> float:
        """Return what was added for one reason since, and count it as told."""
        added = self.totals[reason] - self._seen[reason]
        self._seen[reason] = self.totals[reason]
        return added

    def add(self, line: int, reason: int, cycles: float) -> None:
        """Give cycles to a line."""
        found = self._lines.get(line)
        if found is None:
            found = self._lines[line] = [0.0] * REASONS
        found[reason] += cycles

    def spread(self, trail: Sequence[Segment], weights: Sequence[float], reason: int) -> None:
        """Give what was added for a reason since to segments, by their weights; evenly if all are 0."""
        added = self.take(reason)
        if not added:
            return
        whole = sum(weights)
        for segment, weight in zip(trail, weights, strict=True):
            part = weight / whole if whole else 1 / len(trail)
            self._of(segment)[reason] += added * part

    def executed(self, segment: Segment, warps: int) -> None:
        """Count the instructions of a segment."""
        self._of(segment)
        self._executed[segment.number] = self._executed.get(segment.number, 0) + warps

    def _of(self, segment: Segment) -> list[float]:
        found = self._segments.get(segment.number)
        if found is None:
            found = self._segments[segment.number] = (segment, [0.0] * REASONS)
        return found[1]

    def by_line(self) -> dict[int, tuple[int, dict[str, float]]]:
        """Return instructions and cycles of each line, in order; those of a segment are its instructions' in equal parts."""
        lines = {line: list(cycles) for line, cycles in self._lines.items()}
        instructions: dict[int, int] = {}
        for number, (segment, cycles) in self._segments.items():
            count = len(segment.instructions)
            for bound in segment.instructions:
                line = int(bound.line)
                instructions[line] = instructions.get(line, 0) + self._executed.get(number, 0)
                found = lines.setdefault(line, [0.0] * REASONS)
                for reason in SPREAD:
                    found[reason] += cycles[reason] / count
        return {
            line: (
                instructions.get(line, 0),
                {
                    STALL_NAMES[reason]: lines[line][reason]
                    for reason in Stall
                    if lines[line][reason]
                },
            )
            for line in sorted(lines)
        }

"""Where the warps of a timed run spent their time, line by line of the PTX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hopsim.findings import SourceLocation


@dataclass(frozen=True, slots=True)
class LineTime:
    """What warps did at one line.

    Args:
        line: 1-based, of the PTX text.
        text: what stands there.
        source: the line that it was compiled from, where the PTX tells it.
        caller: the line that called it, the outermost one, where it is of an inlined function.
        instructions: executed by warps.
        cycles: of warps, by what they did or waited for: the reasons of `LaunchResult.stalls`.
    """

    line: int
    text: str
    source: SourceLocation | None
    caller: SourceLocation | None
    instructions: int
    cycles: Mapping[str, float]

    @property
    def warp_cycles(self) -> float:
        """Cycles of all warps, whatever they did."""
        return sum(self.cycles.values())


@dataclass(frozen=True, slots=True)
class LineTimes:
    """All lines at which warps spent time, in the order of the text.

    Args:
        cycles: of all warps of the launch, by reason; the lines' are parts of them.
    """

    lines: tuple[LineTime, ...]
    cycles: Mapping[str, float]

    @property
    def warp_cycles(self) -> float:
        """Cycles of all warps of the launch."""
        return sum(self.cycles.values())

    def content(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return {
            "warp_cycles": {name: round(cycles, 3) for name, cycles in self.cycles.items()},
            "lines": [
                {
                    "line": one.line,
                    "text": one.text,
                    "source": None if one.source is None else str(one.source),
                    "caller": None if one.caller is None else str(one.caller),
                    "instructions": one.instructions,
                    "warp_cycles": {name: round(value, 3) for name, value in one.cycles.items()},
                }
                for one in self.lines
            ],
        }

"""Lines of a report that are longer than a terminal: they go on below where their words began, not at the left edge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hopsim.report.columns import fold

DEEPEST: Final = 16
"""Cells of a label that lines go on beside; behind a longer one there would be too little room."""
STEP: Final = 2
"""Cells that a line without a label goes on further right."""
# A label of one or two words, and the blanks that set it off from what it says.
_LABEL: Final = re.compile(r" *\S+(?: \S+)? {2,}(?=\S)")


@dataclass(frozen=True, slots=True)
class Story:
    """A text whose long lines keep their shape on a terminal; elsewhere no line is broken."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not options.is_terminal:
            yield self.text
            return
        for line in self.text.split("\n", allow_blank=True):
            yield from _folded(line, options.max_width)


def shape(line: str) -> tuple[int, int]:
    """Return where the words of a line begin that may be broken, and how far right they go on.

    >>> shape("  missing  a wait"), shape("  in flight   nothing"), shape("    warp 0 at line 5")
    ((11, 11), (14, 14), (4, 6))
    """
    label = _LABEL.match(line)
    if label is not None and label.end() <= DEEPEST:
        return label.end(), label.end()
    begin = len(line) - len(line.lstrip(" "))
    return begin, begin + STEP


def _folded(line: Text, room: int) -> Iterator[Text]:
    """Give the lines that a line becomes."""
    begin, indent = shape(line.plain)
    if cell_len(line.plain) <= room or indent >= room // 2:
        yield line
        return
    starts: list[int] = []
    at = begin
    for part in fold(line.plain[begin:], room - indent):
        at = line.plain.index(part, at)
        starts.append(at)
        at += len(part)
    first, *others = line.divide(starts[1:])
    first.rstrip()
    yield first
    for one in others:
        one.rstrip()
        yield Text(" " * indent).append_text(one)

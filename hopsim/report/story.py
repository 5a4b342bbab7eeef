"""Lines of a report that are longer than a terminal: they go on below where their words began, not at the left edge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
    """A text whose long lines keep their shape on a terminal; elsewhere no line is broken.

    Args:
        is_prose: lines that begin at the left edge are parts of paragraphs, which fill the terminal's width.
    """

    text: Text
    is_prose: bool = False

    def __str__(self) -> str:
        """Return what `print` shows: no line is broken."""
        return self.text.plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not options.is_terminal:
            yield self.text
            return
        lines = self.text.split("\n", allow_blank=True)
        for line in _paragraphs(lines) if self.is_prose else lines:
            yield from _folded(line, options.max_width, 0 if self.is_prose else STEP)


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


def _paragraphs(lines: Iterable[Text]) -> Iterator[Text]:
    """Give the lines, those of one paragraph as one."""
    parts: list[Text] = []
    for line in lines:
        if line.plain[:1].strip():
            parts.append(line)
            continue
        if parts:
            yield Text(" ").join(parts)
        parts = []
        yield line
    if parts:
        yield Text(" ").join(parts)


def _folded(line: Text, room: int, step: int) -> Iterator[Text]:
    """Give the lines that a line becomes.

    Args:
        step: cells that one without a label goes on further right, if it begins at the left edge.
    """
    begin, indent = shape(line.plain)
    if begin == 0:
        indent = step
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

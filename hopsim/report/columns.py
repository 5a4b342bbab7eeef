"""Tables that keep their names and numbers on a narrow terminal: what gives way, and in which order.

Bars give way first, then what explains. Names fold between words, then within them; numbers are never broken. What is
still too wide goes on below, beside its names again. Where the output is no terminal nothing gives way.

>>> fold("device.sm_count of an H100", 12)
['device.sm_', 'count of an', 'H100']
>>> blocks((6, 5, 5, 5), 20, 2)
[(0, 1, 2), (0, 3)]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

BAR_CELLS: Final = 40
GAP: Final = 2
NOTE_INDENT: Final = 4
LEAST_SENTENCE: Final = 40
"""Cells in which a sentence can still be read; for `least_note` of tables whose notes are sentences."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
# Within a word too long for its column: behind a comma, behind what joins words, never within a number.
_JOINTS = re.compile(r"(?<=[,_/])(?!_)|(?<=[:.-])(?![\d.:-])")


class Kind(Enum):
    """What a column holds, which says how it gives way."""

    NAME = "name"
    NUMBER = "number"
    BAR = "bar"
    NOTE = "note"


_WORDS: Final = -1
# Columns of a kind shrink to so many cells, one step after the other until all fits: as far as no word is broken for
# `_WORDS`; with 0 they are left out.
_STEPS: Final = (
    (Kind.BAR, 10), (Kind.NOTE, 24), (Kind.NUMBER, _WORDS), (Kind.NAME, _WORDS), (Kind.NOTE, 16),
    (Kind.BAR, 0), (Kind.NAME, 20), (Kind.NOTE, 0), (Kind.NAME, 12),
)  # fmt: skip
_LEAST_NAME: Final = 12
"""Cells to which names shrink for their words' sake, while there is anything else that can give way."""
_CLOSE_AFTER: Final = 5
"""Steps before columns stand one blank apart instead of two."""


class Words(str):
    """Words or a list in a column of numbers: they may fold, between words and behind commas."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar for a part of one, as long as its column allows."""

    part: float
    style: str = "cyan"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        is_left: whether numbers stand left; all else does.
        width: cells that it takes where there is room, even if its cells are shorter.
    """

    head: str = ""
    kind: Kind = Kind.NAME
    style: str = ""
    is_left: bool = False
    width: int = 0


class Columns:
    """A table whose columns give way by their kind.

    Args:
        columns: without a head in any of them there is no header.
        least_note: where a note would get fewer cells than this, it stands below its row instead.
    """

    def __init__(self, *columns: Column, least_note: int = 0) -> None:
        self.columns = columns
        self.least_note = least_note
        self.rows: list[tuple[str | Bar, ...]] = []

    def add_row(self, *cells: str | Bar) -> None:
        """Add a row; cells that are missing at its end stay empty."""
        self.rows.append((*cells, *[""] * (len(self.columns) - len(cells))))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        natural = [self._content(at) for at in range(len(self.columns))]
        widths = [max(w, one.width) for w, one in zip(natural, self.columns, strict=True)]
        if not options.is_terminal or _needed(widths, GAP) <= options.max_width:
            yield self._table(range(len(widths)), widths, GAP, is_fixed=False)
            return
        widths, gap = self._fitted(natural, options.max_width)
        notes = [at for at, one in enumerate(self.columns) if one.kind is Kind.NOTE]
        if any(widths[at] < min(self.least_note, natural[at]) for at in notes):
            below = list(self._with_notes_below(notes, options.max_width))
            if below:
                yield from below
                return
        shown = [at for at, width in enumerate(widths) if width]
        for number, block in enumerate(
            blocks([widths[at] for at in shown], options.max_width, gap)
        ):
            if number:
                yield Text("")
            yield self._table([shown[at] for at in block], widths, gap, is_fixed=True)

    def _with_notes_below(self, notes: Sequence[int], room: int) -> RenderResult:
        """Give each row without its notes, and these below it over the whole width; nothing where it has no room."""
        kept = [at for at in range(len(self.columns)) if at not in notes]
        others = Columns(*(self.columns[at] for at in kept))
        others.rows = [tuple(row[at] for at in kept) for row in self.rows]
        widths, gap = others._fitted([others._content(at) for at in range(len(kept))], room)
        if _needed(widths, gap) > room:
            return
        shown = [at for at, width in enumerate(widths) if width]
        for number, (row, whole) in enumerate(zip(others.rows, self.rows, strict=True)):
            table = others._table(shown, widths, gap, is_fixed=True, rows=[row])
            table.show_header &= number == 0
            yield table
            for at in notes:
                for line in fold(str(whole[at]), room - NOTE_INDENT):
                    yield Text(" " * NOTE_INDENT + line, style="dim")

    def _fitted(self, natural: Sequence[int], room: int) -> tuple[list[int], int]:
        """Return widths and the gap between columns; 0 for a column that is left out."""
        widths, gap = list(natural), GAP
        whole = widths
        for number, (kind, least) in enumerate(_STEPS):
            if number == _CLOSE_AFTER and _needed(widths, gap) > room:
                whole, gap = list(widths), 1
            over = _needed(widths, gap) - room
            if over <= 0:
                break
            members = [at for at, one in enumerate(self.columns) if one.kind is kind]
            if not least:
                for at in members:
                    widths[at] = 0
                continue
            floors = {at: min(widths[at], self._floor(at, least)) for at in members}
            _shave(widths, floors, over)
        if _needed(widths, gap) > room:
            # It goes on below: there is no need to leave anything out.
            return [min(width, room // 2) for width in whole], GAP
        # What was left out, or shrank too far before, leaves room for the others.
        for kind in (Kind.NUMBER, Kind.NAME, Kind.NOTE, Kind.BAR):
            for at, one in enumerate(self.columns):
                if one.kind is kind and widths[at]:
                    spare = max(0, room - _needed(widths, gap))
                    widths[at] += min(spare, natural[at] - widths[at])
        return widths, gap

    def _content(self, at: int) -> int:
        """Return the cells that a column takes by itself."""
        if self.columns[at].kind is Kind.BAR:
            return BAR_CELLS
        texts = [self.columns[at].head, *self._texts(at)]
        return max(cell_len(line) for text in texts for line in text.splitlines() or [""])

    def _floor(self, at: int, least: int) -> int:
        """Return the fewest cells of a column in a step."""
        one = self.columns[at]
        if one.kind in (Kind.BAR, Kind.NOTE):
            return least
        texts = self._texts(at)
        if one.kind is Kind.NAME:
            longest = _longest_word([one.head, *texts])
            return max(longest, _LEAST_NAME) if least == _WORDS else min(longest, least)
        folding = [text.replace(",", ", ") for text in texts if isinstance(text, Words)]
        longest = _longest_word([one.head, *folding])
        return max([longest, *(cell_len(text) for text in texts if not isinstance(text, Words))])

    def _texts(self, at: int) -> list[str]:
        return [cell for row in self.rows if isinstance(cell := row[at], str)]

    def _table(
        self,
        shown: Iterable[int],
        widths: Sequence[int],
        gap: int,
        *,
        is_fixed: bool,
        rows: Sequence[tuple[str | Bar, ...]] | None = None,
    ) -> Table:
        """Return some columns as a table of rich.

        Args:
            is_fixed: whether cells are folded to their widths; else rich sees to it.
            rows: all of them where it is None.
        """
        kept = list(shown)
        has_heads = any(one.head for one in self.columns)
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), show_header=has_heads)
        for at in kept:
            one = self.columns[at]
            is_right = one.kind is Kind.NUMBER and not one.is_left
            asked = widths[at] if is_fixed or one.width or one.kind is Kind.BAR else None
            head = "\n".join(fold(one.head, widths[at])) if is_fixed else one.head
            table.add_column(
                head, justify="right" if is_right else "left", width=asked, no_wrap=True, style=one.style,
            )  # fmt: skip
        for row in self.rows if rows is None else rows:
            cells = [self._cell(row[at], widths[at], is_fixed) for at in kept]
            # A row that only had a bar has nothing to say without it.
            if not is_fixed or any(cell.plain for cell in cells):
                table.add_row(*cells)
        return table

    @staticmethod
    def _cell(cell: str | Bar, width: int, is_fixed: bool) -> Text:
        if isinstance(cell, Bar):
            return Text(bar(cell.part, width), style=cell.style)
        return Text("\n".join(fold(cell, width)) if is_fixed else cell)


def bar(part: float, cells: int = BAR_CELLS) -> str:
    """Return a bar of block characters for a part of one."""
    eighths = round(part * cells * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def fold(text: str, width: int) -> list[str]:
    """Return the lines of a text in a column: broken between words, within them only if one is too long."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        line = ""
        for piece in _pieces(paragraph, width):
            if line and cell_len(line + piece.rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece if line else piece.lstrip()
        lines.append(line.rstrip())
    return lines


def _pieces(text: str, width: int) -> list[str]:
    """Return what a line is filled with: words, and parts of those that are longer than a line."""
    pieces: list[str] = []
    for word in re.findall(r"\s*\S+", text):
        if cell_len(word.strip()) <= width:
            pieces.append(word)
            continue
        for part in _JOINTS.split(word):
            pieces += [part[at : at + width] for at in range(0, len(part), width)]
    return pieces


def blocks(widths: Sequence[int], room: int, gap: int) -> list[tuple[int, ...]]:
    """Return which columns stand beside each other: all that fit, the first one in front of each block."""
    found: list[tuple[int, ...]] = []
    block: list[int] = [0]
    used = widths[0]
    for at, width in enumerate(widths[1:], 1):
        if len(block) > 1 and used + gap + width > room:
            found.append(tuple(block))
            block, used = [0], widths[0]
        block.append(at)
        used += gap + width
    return [*found, tuple(block)]


def _needed(widths: Sequence[int], gap: int) -> int:
    shown = [width for width in widths if width]
    return sum(shown) + gap * (len(shown) - 1)


def _longest_word(texts: Iterable[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _shave(widths: list[int], floors: dict[int, int], over: int) -> None:
    """Take cells off the widest columns first, none below its floor."""
    for _ in range(over):
        above = [at for at, floor in floors.items() if widths[at] > floor]
        if not above:
            return
        widths[max(above, key=lambda at: widths[at])] -= 1

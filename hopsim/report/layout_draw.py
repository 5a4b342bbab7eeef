"""A layout page as text, SVG or HTML.

Text leaves out what lies beyond a number of rows and columns and says so; SVG and HTML show all.
Colours go by group, so that the cells of one thread, or of one bank, look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hopsim.report.columns import GAP, blocks, fold
from hopsim.report.layout_page import Grid, Page, Table

_CELL_HEIGHT = 18
_CHARACTER_WIDTH = 7
_TITLE_CHARACTER_WIDTH = 8
_LABEL_WIDTH = 44
_TITLE_HEIGHT = 26
_PAGE_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:2px 10px;text-align:left}"
    "th{border-bottom:1px solid #888}code{font:13px ui-monospace,monospace}"
    ".grid{overflow-x:auto}"
)
_PALETTE = (
    "#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99", "#cab2d6", "#ffff99", "#8dd3c7", "#fccde5",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawing:
    """A page on a console: grids and tables that are wider than a terminal go on below."""

    page: Page
    most_rows: int
    most_columns: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width if options.is_terminal else None
        yield Text(text(self.page, self.most_rows, self.most_columns, room))


def text(page: Page, most_rows: int, most_columns: int, room: int | None = None) -> str:
    """Return the page as lines of text.

    Args:
        room: cells of a line; None: as many as there are.
    """
    width = max((len(name) for name, _ in page.facts), default=0)
    lines = [page.title]
    for name, value in page.facts:
        first, *others = [value] if room is None else fold(value, room - width - 2 * GAP)
        lines += [f"  {name:<{width}}  {first}", *(f"  {'':<{width}}  {one}" for one in others)]
    lines += [f"  {note}" for note in page.notes]
    for table in page.tables:
        lines += ["", table.title, *_columns([table.header, *table.rows], room)]
    for grid in page.grids:
        lines += ["", *_text_grid(grid, most_rows, most_columns, room)]
    return "\n".join(lines)


def _columns(rows: Sequence[Sequence[str]], room: int | None) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    shown: list[str] = []
    inner = sum(widths) + GAP * len(widths) if room is None else room - GAP
    for block in blocks(widths, inner, GAP):
        shown += [""] if shown else []
        for row in rows:
            cells = [f"{row[i]:<{widths[i]}}" for i in block]
            shown.append(("  " + "  ".join(cells)).rstrip())
    return shown


def _text_grid(grid: Grid, most_rows: int, most_columns: int, room: int | None) -> list[str]:
    shown_rows = min(len(grid.rows), most_rows)
    shown_columns = min(len(grid.columns), most_columns)
    dots = ["..."] if shown_columns < len(grid.columns) else []
    body = [["", *grid.columns[:shown_columns], *dots]]
    body += [[grid.rows[r], *grid.cells[r][:shown_columns], *dots] for r in range(shown_rows)]
    lines = [grid.title, *_columns(body, room)]
    if dots or shown_rows < len(grid.rows):
        lines.append(
            f"  (rows 0 to {shown_rows - 1} of {len(grid.rows)}, columns 0 to "
            f"{shown_columns - 1} of {len(grid.columns)}; --svg and --html show all)"
        )
    return lines


def svg(grid: Grid) -> str:
    """Return one grid as an SVG image."""
    longest = max((len(cell) for row in grid.cells for cell in row), default=1)
    heads = max((len(name) for name in grid.columns), default=1)
    cell_width = _CHARACTER_WIDTH * max(longest, heads) + 8
    cells = _LABEL_WIDTH + cell_width * len(grid.columns) + 2
    width = max(cells, _TITLE_CHARACTER_WIDTH * len(grid.title) + 4)
    height = _TITLE_HEIGHT + _CELL_HEIGHT * (len(grid.rows) + 1) + 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="ui-monospace,monospace" font-size="11" '
        f'role="img" aria-label="{escape(grid.title)}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="2" y="15" font-size="13">{escape(grid.title)}</text>',
    ]
    top = _TITLE_HEIGHT + _CELL_HEIGHT
    for column, name in enumerate(grid.columns):
        x = _LABEL_WIDTH + column * cell_width + cell_width // 2
        parts.append(f'<text x="{x}" y="{top - 5}" text-anchor="middle">{escape(name)}</text>')
    for row, name in enumerate(grid.rows):
        y = top + row * _CELL_HEIGHT
        parts.append(
            f'<text x="{_LABEL_WIDTH - 5}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
        )
        for column, cell in enumerate(grid.cells[row]):
            x = _LABEL_WIDTH + column * cell_width
            colour = _PALETTE[grid.groups[row][column] % len(_PALETTE)]
            parts.append(
                f'<rect x="{x}" y="{y}" width="{cell_width}" height="{_CELL_HEIGHT}" '
                f'fill="{colour}" stroke="#666" stroke-width="0.5"/>'
                f'<text x="{x + cell_width // 2}" y="{y + 13}" text-anchor="middle">'
                f"{escape(cell)}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


def html(page: Page) -> str:
    """Return the page as one HTML file that needs nothing else."""
    facts = "".join(
        f"<tr><td>{escape(name)}</td><td><code>{escape(value)}</code></td></tr>"
        for name, value in page.facts
    )
    parts = [
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(page.title)}</title><style>{_PAGE_STYLE}</style>",
        f"<h1>{escape(page.title)}</h1>",
        f"<table>{facts}</table>",
        *(f"<p>{escape(note)}</p>" for note in page.notes),
        *(_html_table(table) for table in page.tables),
        *(f'<div class="grid">{svg(grid)}</div>' for grid in page.grids),
        "</html>\n",
    ]
    return "\n".join(parts)


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td><code>{escape(cell)}</code></td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return f"<h2>{escape(table.title)}</h2><table><tr>{head}</tr>{body}</table>"

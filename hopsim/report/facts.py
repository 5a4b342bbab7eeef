"""Labelled lines: the one shape that every summary has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

Row = tuple[str, str | Text]
LABEL_WIDTH = 12


def fact_table(rows: Iterable[Row]) -> Table:
    """Return a grid of labels and what they say; an empty label continues the line above."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", width=LABEL_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(label, Text(text) if isinstance(text, str) else text)
    return table


def joined(parts: Sequence[str]) -> str:
    """Return the parts that say something, separated by commas."""
    return ", ".join(part for part in parts if part)

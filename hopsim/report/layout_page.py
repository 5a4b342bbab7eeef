"""What a layout view is made of, before anybody decides how to draw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Grid:
    """A matrix of labelled cells.

    Args:
        title: what the cells are.
        rows, columns: names of rows and columns.
        cells: text of each cell, rows first.
        groups: colour number of each cell, such as a thread or a bank.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    groups: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows, the first one being the header."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Page:
    """A layout, told.

    Args:
        title: one line.
        facts: names and values, in order.
        notes: sentences below the facts.
        tables, grids: what follows.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()
    tables: Sequence[Table] = field(default_factory=tuple[Table, ...])
    grids: Sequence[Grid] = field(default_factory=tuple[Grid, ...])

    def content(self) -> dict[str, object]:
        """Return the page as plain data, for JSON."""
        return {
            "title": self.title,
            "facts": dict(self.facts),
            "notes": list(self.notes),
            "tables": [
                {"title": t.title, "header": list(t.header), "rows": [list(r) for r in t.rows]}
                for t in self.tables
            ],
            "grids": [
                {
                    "title": g.title,
                    "rows": list(g.rows),
                    "columns": list(g.columns),
                    "cells": [list(row) for row in g.cells],
                }
                for g in self.grids
            ],
        }

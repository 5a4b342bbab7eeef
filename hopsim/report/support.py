"""The support matrix: every declared instruction form with its choices, unit and source."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from hopsim.isa.support import SupportRow
from hopsim.report.quantities import plural
from hopsim.report.story import Story

MOST_CHOICES = 14


def support_table(rows: Sequence[SupportRow]) -> Story:
    """Return the forms, grouped by their opcode, with the choices of each modifier."""
    text = Text()
    for row in rows:
        text.append(row.syntax, style="bold")
        text.append("\n")
        for name, alternatives, optional in row.slots:
            mark = "?" if optional else " "
            text.append(f"    .{name}{mark} {_choices(alternatives)}\n")
        text.append(f"    {row.doc}  unit {row.unit}; {row.source}\n", style="dim")
    opcodes = len({row.name.split(".")[0] for row in rows})
    text.append(f"{plural(len(rows), 'form')} of {plural(opcodes, 'instruction')}")
    return Story(text)


def _choices(alternatives: tuple[str, ...]) -> str:
    if len(alternatives) <= MOST_CHOICES:
        return " ".join(alternatives)
    return f"{' '.join(alternatives[:3])} ... {alternatives[-1]}  ({len(alternatives)} choices)"

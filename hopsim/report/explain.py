"""The page of one rule: what is wrong and why, how to mend it, a program that breaks it and its mended twin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hopsim.hazards.rules import EFFECTS, Rule
from hopsim.report.columns import Column, Columns, Kind
from hopsim.report.explanations import EXPLANATIONS
from hopsim.report.facts import Row, fact_table
from hopsim.report.story import Story
from hopsim.report.zoo import marked
from hopsim.zoo.catalog import twins_of
from hopsim.zoo.silicon import Recording

EXAMPLE = "an example (`-` only in the wrong program, `+` only in the mended one)"
FOUND = {
    "checked": "judged by happens-before or by bookkeeping, on one run, whatever its order",
    "by-fault": "told when the run meets it",
    "pending": "hopsim does not look for it yet",
}


def rule_list(rules: Iterable[Rule]) -> Columns:
    """Return one line for each rule."""
    table = Columns(Column(style="bold"), Column(), Column(kind=Kind.NOTE))
    for rule in rules:
        table.add_row(rule.id, rule.name, rule.sentence)
    return table


def rule_page(rule: Rule, recording: Recording) -> RenderableType:
    """Return everything there is to say of a rule."""
    why, mend = EXPLANATIONS[rule.id]
    effects = [EFFECTS[letter] for letter in rule.effect.split(",")]
    rows: list[Row] = [
        ("rule", f"{rule.id} {rule.name}: {rule.sentence}"),
        ("why", why),
        ("mend", mend),
        ("PTX", rule.ptx),
        ("silicon", "; ".join(effects)),
        ("found", FOUND[rule.status]),
    ]
    parts: list[RenderableType] = [fact_table(rows)]
    twins = twins_of(rule.id)
    for twin in twins[:1]:
        parts += [
            Story(Text(f"\n{EXAMPLE}: {twin.name}", style="bold")),
            Story(Text(f"  {twin.story}")),
            Story(Text(f"  recorded on silicon: {recording.silicon(twin)}")),
            marked(twin),
        ]
    if len(twins) > 1:
        parts.append(
            Story(
                Text(
                    f"\nmore of them: {', '.join(f'hopsim zoo show {twin.name}' for twin in twins[1:])}"
                )
            )
        )
    return Group(*parts)


def rule_content(rule: Rule) -> dict[str, Any]:
    """Return a rule as plain data."""
    why, mend = EXPLANATIONS[rule.id]
    return {
        "id": rule.id, "name": rule.name, "sentence": rule.sentence, "why": why, "mend": mend, "ptx": rule.ptx,
        "silicon": rule.effect.split(","), "status": rule.status, "twins": [twin.name for twin in twins_of(rule.id)],
    }  # fmt: skip

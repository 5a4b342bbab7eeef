"""The report of `hopsim check`: verdict, findings with what to add, and what other orders did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hopsim.explore.examine import Schedules
from hopsim.report.deadlock import deadlock_story
from hopsim.report.facts import Row, fact_table
from hopsim.report.hazards import hazard_findings
from hopsim.report.launch import changed_rows, launch_rows, verdict_rows
from hopsim.report.quantities import plural
from hopsim.report.schedules import schedule_rows, schedule_story, schedules_content
from hopsim.report.suppressions import Triage, lines_of
from hopsim.results import LaunchResult, NotModelledNote, decide_verdict, has_hazard

ENDS = {"deadlock": 3, "fault": 1, "cap": 4}
AFTER_FAULT = "the run ended in a fault, which is left out: nothing after it was checked"


def judged(result: LaunchResult, found: Triage) -> LaunchResult:
    """Return the result without the findings that were left out.

    Without the fault that ended it a run is not clean: what comes after the fault was never checked.
    """
    notes = result.not_modelled
    if result.faulted and not any(hazard.is_fault for hazard in found.kept):
        side = next((hazard.second for hazard, _ in found.left_out if hazard.is_fault), None)
        where = (0, "") if side is None else (side.line, side.text)
        notes = (*notes, NotModelledNote(AFTER_FAULT, *where))
    verdict = decide_verdict(found.kept, result.deadlock, notes)
    return replace(result, hazards=found.kept, not_modelled=notes, verdict=verdict)


def exit_code_of_check(result: LaunchResult, found: Triage, schedules: Schedules) -> int:
    """Return 0 only when the run is clean and no order changed anything.

    Hazards that were left out still explain why bits change; then that alone is no failure.  A note explains nothing.
    """
    code = judged(result, found).exit_code
    if code:
        return code
    for one in schedules.differing:
        if one.ended != schedules.baseline.ended:
            return ENDS.get(one.ended, 1)
    return (
        1 if schedules.differing and not has_hazard(hazard for hazard, _ in found.left_out) else 0
    )


def check_report(
    result: LaunchResult,
    found: Triage,
    schedules: Schedules,
    path: str,
    texts: Sequence[str],
    replay: str,
    changes: Mapping[str, str] | None = None,
    outcome: Sequence[Row] = (),
) -> RenderableType:
    """Return everything there is to say.

    Args:
        path: of the PTX.  texts: its lines.  replay: the command without its options about orders.
        changes: hardware numbers that were replaced, by key.  outcome: rows above the verdict (comparisons).
    """
    shown = judged(result, found)
    rows: list[Row] = [
        *launch_rows(shown), *changed_rows(changes or {}), *outcome, *verdict_rows(shown),
        *schedule_rows(schedules, replay),
    ]  # fmt: skip
    rows = [
        row for row in rows if not (row[0] == "not checked" and "knows no cycles" in str(row[1]))
    ]
    if schedules.differing and not has_hazard(result.hazards) and result.deadlock is None:
        rows.append(
            (
                "",
                "no rule of PTX is broken: atomics in another order, a clock, or a hazard that hopsim misses",
            )
        )
    reasons = dict.fromkeys(why for _, why in found.left_out)
    for why in reasons:
        ids = [hazard.rule for hazard, other in found.left_out if other == why]
        rows.append(("left out", f"{plural(len(ids), 'finding')} {why}: {', '.join(ids)}"))
    if found.idle:
        rows.append(("left out", f"nothing by --suppress {', '.join(map(str, found.idle))}"))
    parts: list[RenderableType] = [fact_table(rows)]
    if shown.deadlock is not None:
        parts += [Text(""), deadlock_story(shown.deadlock)]
    if shown.hazards:
        parts += [Text(""), hazard_findings(shown.hazards, path)]
    if schedules.minimal is not None:
        lines = [line for hazard in result.hazards for line in lines_of(hazard)]
        parts += [Text(""), schedule_story(schedules.minimal, texts, lines)]
    return Group(*parts)


def check_content(
    result: LaunchResult, found: Triage, schedules: Schedules, path: str
) -> dict[str, Any]:
    """Return everything as plain data: the keys of the launch, and the orders beside them."""
    content: dict[str, Any] = json.loads(judged(result, found).json())
    left_out: list[dict[str, Any]] = []
    for hazard, why in found.left_out:
        lines = lines_of(hazard)
        left_out.append({"rule": hazard.rule, "lines": lines, "why": why})
    return {
        **content,
        "command": "check",
        "file": path,
        "left_out": left_out,
        "idle_suppressions": [str(one) for one in found.idle],
        "schedules": schedules_content(schedules),
    }

"""The zoo as tables: what hopsim says of each twin, what silicon does, what compute-sanitizer finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text

from hopsim.report.columns import Column, Columns, Kind
from hopsim.report.facts import fact_table
from hopsim.report.story import Story
from hopsim.zoo.silicon import Recording
from hopsim.zoo.steps import expand
from hopsim.zoo.trial import Trial
from hopsim.zoo.twin import Twin

NOBODY = "not recorded yet; `hopsim zoo record` does it on a machine with an sm_90 device"


def zoo_table(twins: Iterable[Twin], recording: Recording) -> Columns:
    """Return one line for each twin."""
    table = Columns(
        Column("rule"),
        Column("twin"),
        Column("silicon", Kind.NOTE),
        Column("modelled on", Kind.NOTE),
    )
    for twin in twins:
        table.add_row(twin.rule, twin.name, recording.silicon(twin), twin.incident)
    return table


def twin_page(twin: Twin, recording: Recording) -> list[Any]:
    """Return the story of a twin, and its body with the lines of the bad and the good one marked."""
    rows = [
        ("rule", twin.rule),
        ("story", twin.story),
        ("modelled on", twin.incident),
        ("found", f"{', '.join(twin.expected)}{' (a note)' if twin.level == 'note' else ''}"),
        ("silicon", recording.silicon(twin)),
        ("sanitizer", recording.sanitizer(twin)),
    ]
    if twin.missed:
        rows.append(("missed", twin.missed))
    return [fact_table(rows), Text(""), marked(twin)]


def marked(twin: Twin) -> Story:
    """Return the body of both twins at once: `-` marks lines of the bad one, `+` of the good one."""
    text = Text()
    for mark, line in marked_lines(twin):
        style = {"-": "red", "+": "green"}.get(mark, "")
        text.append(f"  {mark} {line}\n", style=style)
    text.rstrip()
    return Story(text)


def marked_lines(twin: Twin) -> list[tuple[str, str]]:
    """Return (mark, line) of the body, every step written out."""
    lines: list[tuple[str, str]] = []
    body = twin.body.strip("\n").splitlines()
    for number, raw in enumerate(body):
        # One line at a time, behind those before it in the same program, so that labels have their numbers.
        other = "+" if raw[:1] == "-" else "-"
        before = [
            f" {line[1:]}" for line in body[:number] if line[:1] != other and line[1:].strip()
        ]
        shown = expand("\n".join([*before, f" {raw[1:]}"]), is_good=True)
        skipped = expand("\n".join(before), is_good=True) if before else []
        lines += [(raw[:1] or " ", line) for line in shown[len(skipped) :]]
    return lines


def trial_table(trials: Sequence[Trial]) -> Story:
    """Return what hopsim says of each pair, and the count of those it is right about."""
    text = Text()
    for trial in trials:
        style = "green" if trial.is_right else "red"
        text.append("ok    " if trial.is_right else "WRONG ", style=style)
        found = ", ".join(trial.found) or "no finding"
        text.append(f"{trial.twin.rule}  {trial.twin.name}: {trial.bad.verdict}, {found}")
        if not trial.is_right:
            good = [hazard.rule for hazard in trial.good.hazards]
            text.append(
                f"  (expected {trial.twin.verdict}, {', '.join(trial.twin.expected) or 'no finding'};"
                f" good twin: {trial.good.verdict} {', '.join(good)})"
            )
        text.append(f"   misses {trial.twin.rule}\n" if trial.twin.missed else "\n")
    right = sum(trial.is_right for trial in trials)
    text.append(f"{right} of {len(trials)} twins are judged as the zoo expects")
    return Story(text)


def trial_content(trial: Trial) -> dict[str, Any]:
    """Return a trial as plain data."""
    return {
        "name": trial.twin.name,
        "rule": trial.twin.rule,
        "found": list(trial.found),
        "verdict": trial.bad.verdict,
        "good": [hazard.rule for hazard in trial.good.hazards],
        "is_right": trial.is_right,
        "missed": trial.twin.missed,
    }


def side_by_side(rooms: dict[str, tuple[Twin, ...]], recording: Recording) -> str:
    """Return the counts of `docs/hazards.md`: of the bad twins of each room, how many each of the three shows."""
    lines = [
        "| bad twins of | all | hopsim names the rule | hopsim reports something | wrong bits, hang or error on silicon |"
        " compute-sanitizer reports something |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    everything = tuple(twin for members in rooms.values() for twin in members)
    for room, members in [*rooms.items(), ("all of them", everything)]:
        entries = [
            recording.entries[twin.name] for twin in members if twin.name in recording.entries
        ]
        counts = (
            len(members),
            sum(not twin.missed for twin in members),
            sum(bool(twin.expected) or twin.verdict != "clean" for twin in members),
            sum(bool(one.bad.wrong or one.bad.hang or one.bad.error) for one in entries),
            sum(any(one.sanitizer.values()) for one in entries),
        )
        lines.append(f"| {room} | " + " | ".join(str(count) for count in counts) + " |")
    return "\n".join(lines)


def comparison_page(rooms: dict[str, tuple[Twin, ...]], recording: Recording) -> str:
    """Return `docs/zoo.md`: hopsim, silicon and compute-sanitizer side by side."""
    twins = [twin for room in rooms.values() for twin in room]
    missed = [twin for twin in twins if twin.missed]
    named = len(twins) - len(missed)
    notes = sum(twin.level == "note" for twin in twins)
    made = ", ".join(f"{key} {value}" for key, value in sorted(recording.made_with.items()))
    lines = [
        "# The zoo",
        "",
        "Pairs of small PTX programs that ptxas accepts. The bad twin breaks one rule; the good one differs by as little as",
        "mends it. `hopsim zoo show NAME` prints a pair, `hopsim zoo run` checks all of them, `hopsim explain HSnnn` tells",
        "the rule. This page is written by `hopsim zoo page`, and a test says that it agrees with the zoo. The rules are in",
        "[hazards](hazards.md).",
        "",
        f"Of {len(twins)} bad twins hopsim names the rule itself in {named}, on one run in order; it is silent on every",
        f"good twin, under any order that was tried. {notes} of the bad ones only cost time or are contested: a note."
        + (" What it tells instead in the others stands below the tables." if missed else ""),
        "",
        f"Silicon and compute-sanitizer: {made or NOBODY}.",
        "`hidden` means that all runs gave the right bits although the program is wrong.",
    ]
    for room, members in rooms.items():
        lines += ["", f"## {room.capitalize()}", ""]
        lines.append("| rule | twin | hopsim | silicon | compute-sanitizer | modelled on |")
        lines.append("|---|---|---|---|---|---|")
        for twin in members:
            found = ", ".join(twin.expected) or twin.verdict
            if twin.level == "note":
                found += " (note)"
            if twin.verdict == "deadlock" and twin.expected:
                found += ", deadlock"
            if twin.missed:
                found += " (misses the rule)"
            lines.append(
                f"| {twin.rule} | {twin.name} | {found} | {recording.silicon(twin)} |"
                f" {recording.sanitizer(twin)} | {twin.incident} |"
            )
    if missed:
        lines += ["", "## What hopsim misses", ""]
        lines += [f"- {twin.rule} {twin.name}: {twin.missed}." for twin in missed]
    return "\n".join(lines) + "\n"

"""Lessons as text: on the terminal, and as pages of `docs/lessons`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hopsim.learn.grading import SEEDS, Grade
from hopsim.learn.lesson import Lesson
from hopsim.learn.progress import Progress
from hopsim.report.columns import Column, Columns, Kind
from hopsim.report.deadlock import deadlock_story
from hopsim.report.hazards import hazard_findings
from hopsim.report.schedules import schedule_story
from hopsim.report.story import Story
from hopsim.report.suppressions import lines_of


def lesson_list(lessons: Sequence[Lesson], progress: Progress) -> RenderableType:
    """Return the lessons with what is done."""
    table = Columns(
        Column(style="green", width=4),
        Column(kind=Kind.NUMBER, style="bold", width=2),
        Column(style="bold"),
        Column(kind=Kind.NOTE),
    )
    for number, lesson in enumerate(lessons, 1):
        is_done = lesson.name in progress.done
        table.add_row("done" if is_done else "", str(number), lesson.name, lesson.title)
    text = Text()
    following = next((one.name for one in lessons if one.name not in progress.done), None)
    done = sum(one.name in progress.done for one in lessons)
    text.append(f"\n{done} of {len(lessons)} done. ")
    text.append(f"Go on with: hopsim learn {following}" if following else "That is all of them.")
    return Group(table, text)


def lesson_text(lesson: Lesson, file: str, is_new: bool) -> RenderableType:
    """Return what there is to read, and where the program lies.

    Args:
        file: of the program.  is_new: whether it was written now.
    """
    text = Text()
    text.append(f"{lesson.title}\n\n", style="bold")
    text.append(f"{lesson.text}\n\n")
    text.append(textwrap.indent(lesson.picture, "    ") + "\n\n", style="cyan")
    text.append("Your task. ", style="bold")
    text.append(f"{lesson.task}\n\n")
    text.append(
        f"The program is {file}{'' if is_new else ' (it was there already)'}. Mend it, then:\n"
    )
    text.append(f"    hopsim learn {lesson.name} --check {file}\n")
    text.append(f"    hopsim learn {lesson.name} --hint")
    return Story(text, is_prose=True)


def grade_report(lesson: Lesson, graded: Grade, path: str, texts: Sequence[str]) -> RenderableType:
    """Return what hopsim says of an attempt.

    Args:
        path: of the program.  texts: its lines.
    """
    result, schedules = graded.checked.result, graded.checked.schedules
    parts: list[RenderableType] = []
    text = Text()
    _line(text, result.verdict == "clean", f"the rules of PTX, on one run: {result.verdict}")
    changed = len(schedules.differing)
    words = "the same result" if not changed else f"another result in {changed}"
    _line(text, not changed, f"{SEEDS} random orders and the adversarial one: {words}")
    _line(
        text,
        graded.has_right_bits,
        "the result is " + ("right" if graded.has_right_bits else "not what it should be"),
    )
    if graded.lost:
        _line(text, False, f"the lesson is about {', '.join(graded.lost)}: keep it")
    text.rstrip()
    parts.append(text)
    if result.deadlock is not None:
        parts += [Text(""), deadlock_story(result.deadlock)]
    if result.hazards:
        parts += [Text(""), hazard_findings(result.hazards, path)]
    if schedules.minimal is not None:
        lines = [line for hazard in result.hazards for line in lines_of(hazard)]
        parts += [Text(""), schedule_story(schedules.minimal, texts, lines)]
    end = Text("\n")
    if graded.is_passed:
        end.append("Done. ", style="bold green")
        end.append(lesson.after)
    else:
        end.append(f"Not yet. A hint: hopsim learn {lesson.name} --hint")
    return Group(*parts, end)


def _line(text: Text, is_good: bool, words: str) -> None:
    text.append("  ok   " if is_good else "  no   ", style="green" if is_good else "red")
    text.append(f"{words}\n")


def lesson_page(number: int, lesson: Lesson, following: Lesson | None) -> str:
    """Return the page of `docs/lessons`."""
    twin = lesson.pair
    hints = "\n".join(
        f"<details><summary>Hint {k}</summary>\n\n{_fenced(hint)}\n\n</details>\n"
        for k, hint in enumerate(lesson.hints, 1)
    )
    lines = [
        f"# {number}. {lesson.title}",
        "",
        f"`hopsim learn {lesson.name}` hands out the program and checks your attempts.",
        "This page is written by `hopsim learn --pages`.",
        "",
        lesson.text,
        "",
        "```",
        lesson.picture,
        "```",
        "",
        "## Your task",
        "",
        lesson.task,
        "",
        "```",
        lesson.program.rstrip(),
        "```",
        "",
        hints,
        "<details><summary>What to take away</summary>",
        "",
        lesson.after,
        "",
        f"The mended program: `hopsim zoo show {twin.name} --ptx good`. The rule: `hopsim explain {twin.rule}`.",
        "",
        "</details>",
    ]
    if following is not None:
        lines += ["", f"Next: [{following.title}]({following.name}.md)"]
    return "\n".join(lines) + "\n"


def _fenced(hint: str) -> str:
    head, _, code = hint.partition("\n")
    return f"{head}\n\n```\n{textwrap.dedent(code)}\n```" if code else hint


def lesson_index(lessons: Sequence[Lesson]) -> str:
    """Return the first page of `docs/lessons`."""
    rows = [
        f"{number}. [{lesson.title}]({lesson.name}.md)" for number, lesson in enumerate(lessons, 1)
    ]
    head = [
        "# Lessons",
        "",
        "Synchronization on Hopper in small steps, for somebody who knows CUDA. Each lesson has a broken program to mend;",
        "`hopsim learn` hands it out and checks attempts at once, under many legal orders. No GPU is needed.",
        "",
    ]
    return "\n".join([*head, *rows]) + "\n"

"""What many legal orders of one program did: how many changed its bits, which one shows it, and the decisions behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from hopsim.explore.decisions import Point, Turn
from hopsim.explore.examine import Schedules
from hopsim.explore.minimise import Minimal
from hopsim.report.comparison import Comparison, compare_bits
from hopsim.report.facts import Row
from hopsim.report.quantities import plural
from hopsim.report.story import Story

MOST_ROWS = 12
ROWS_AFTER = 3
MOST_HOLDS = 6
TEXT_WIDTH = 72
ENDS = {
    "finished": "an ordinary end", "deadlock": "a deadlock", "fault": "a fault", "cap": "a run without end",
}  # fmt: skip


def schedules_content(found: Schedules) -> dict[str, Any]:
    """Return everything as plain data."""
    minimal = found.minimal
    return {
        "orders": len(found.endings),
        "differing": [
            {"order": one.order.name, "seed": one.order.seed, "ended": one.ended, "what": one.what}
            for one in found.differing
        ],
        "shown": None
        if found.shown is None
        else {"order": found.shown.name, "seed": found.shown.seed},
        "comparisons": [asdict(one) for one in _comparisons(found)],
        "minimal": None
        if minimal is None
        else {
            "decisions": minimal.decisions,
            "tries": minimal.tries,
            "is_minimal": minimal.is_minimal,
            "holds": [
                {"held": held._asdict(), "until": until._asdict()} for held, until in minimal.holds
            ],
        },
    }


def _comparisons(found: Schedules) -> list[Comparison]:
    return [
        compare_bits(name, got, expected, "the run in order")
        for name, (got, expected) in found.changed.items()
    ]


def schedule_rows(found: Schedules, replay: str) -> list[Row]:
    """Return how many orders differ, and how to see one again.

    Args:
        replay: the command, to which `--seed N` is added.
    """
    if not found.endings:
        why = "which does not end" if found.baseline.ended == "cap" else "as --seeds 0 says"
        return [("orders", f"none was tried but the one in order, {why}")]
    seeds = sum(one.order.name == "seeded" for one in found.endings)
    tried = f"{plural(seeds, 'seed')} and the adversarial order" if seeds else "one order"
    if len(found.endings) == 1:
        tried = str(found.endings[0].order)
    in_order = found.baseline.ended
    if not found.differing:
        same = "the same bits" if in_order == "finished" else ENDS.get(in_order, in_order)
        return [("orders", f"{tried}: {same} as in order")]
    ends = [one for one in found.differing if one.ended != found.baseline.ended]
    arrays = sorted(
        {
            name
            for one in found.differing
            if one.ended == "finished" == found.baseline.ended
            for name in one.bits
            if one.bits[name] != found.baseline.bits.get(name)
        }
    )
    parts: list[str] = []
    changed = len(found.differing) - len(ends)
    if changed:
        parts.append(f"bits of {', '.join(arrays)} changed in {changed} of {len(found.endings)}")
    for ended in dict.fromkeys(one.ended for one in ends):
        count = sum(one.ended == ended for one in ends)
        parts.append(f"{ENDS.get(ended, ended)} in {count} of {len(found.endings)}")
    if in_order != "finished":
        parts.append(f"{ENDS.get(in_order, in_order)} in order, warp by warp")
    whats = [one.what for one in ends if one.what and one.order == found.shown]
    rows: list[Row] = [("orders", Text(f"{tried}: {'; '.join(parts)}", style="red"))]
    if found.shown is not None:
        again = f"; see it again: {replay} --seed {found.shown.seed}"
        rows.append(
            ("", f"first shown by {found.shown}{again if found.shown.name == 'seeded' else ''}")
        )
    rows += [("", what) for what in whats]
    if not whats and in_order == "finished":
        rows += [("", one.__rich__()) for one in _comparisons(found)[:1]]
    return rows


def schedule_story(found: Minimal, texts: Sequence[str], lines: Sequence[int]) -> Story:
    """Return the decisions that matter, and a short timeline of the run they make.

    Args:
        texts: lines of the PTX.
        lines: of the findings; turns that execute them are shown.
    """
    text = Text()
    text.append("the schedule that shows it\n", style="bold")
    least = "" if found.is_minimal else ", perhaps fewer: the tries ran out"
    text.append(
        f"  {len(found.holds)} of {plural(found.decisions, 'decision')} of {found.order}"
        f" {'is' if len(found.holds) == 1 else 'are'} enough ({found.tries} runs{least})\n"
    )
    for held, until in found.holds[:MOST_HOLDS]:
        text.append(f"  held      {_point(held, texts)}\n")
        text.append(f"  until     {_point(until, texts)}\n")
    if len(found.holds) > MOST_HOLDS:
        text.append(f"  ... and {len(found.holds) - MOST_HOLDS} more\n")
    text.append("  timeline\n")
    for row in _timeline(found, set(lines)):
        text.append(f"    {row}\n")
    text.rstrip()
    return Story(text)


def _timeline(found: Minimal, lines: set[int]) -> list[str]:
    held = {turn for turn, _ in found.holds}
    marks = held | {point for _, point in found.holds}
    ctas = {point.cta for point in marks}
    wanted: list[int] = []
    last_marked = 0
    for number, turn in enumerate(found.turns):
        is_marked = not marks.isdisjoint(turn.points)
        if is_marked or (turn.points[0].cta in ctas and lines.intersection(turn.lines)):
            wanted.append(number)
        if is_marked:
            last_marked = len(wanted)
    stop = max(min(len(wanted), last_marked + ROWS_AFTER), 1)
    rows: list[str] = []
    last = -1
    for number in wanted[max(0, stop - MOST_ROWS) : stop]:
        if number > last + 1:
            rows.append(f"{'...':>5}  {plural(number - last - 1, 'turn')}")
        rows.append(f"{number:5}  {_turn(found.turns[number], lines, held)}")
        last = number
    left = len(found.turns) - last - 1
    if left:
        rows.append(f"{'...':>5}  {plural(left, 'turn')}")
    return rows


def _turn(turn: Turn, lines: set[int], held: set[Point]) -> str:
    first, last = turn.points[0], turn.points[-1]
    mark = "   <- held until here" if first in held else ""
    if first.kind != "step":
        return f"{_landing(first)}{mark}"
    at = f":{first.line}" if len(turn.points) == 1 else f":{first.line} to :{last.line}"
    touched = [f":{line}" for line in dict.fromkeys(turn.lines) if line in lines]
    through = f"  through {', '.join(touched)}" if touched and len(turn.points) > 1 else ""
    return f"{_thread(first):<20} {at}{through}{mark}"


def _thread(point: Point) -> str:
    thread = int(point.who)
    lane = f" lane {thread % 32}" if thread % 32 else ""
    return f"cta {point.cta} warp {thread // 32}{lane}"


def _landing(point: Point) -> str:
    what = {
        "tma store": ("reads its source", "writes global memory"),
        "bulk store": ("reads its source", "writes global memory"),
        "tma reduce": ("reads its source", "writes global memory"),
        "bulk reduce": ("reads its source", "writes global memory"),
    }.get(point.kind, ("lands", "lands"))[min(point.stage, 2) - 1]
    return f"{point.kind} of :{point.line}, no. {point.count} of {point.who}, {what}"


def _point(point: Point, texts: Sequence[str]) -> str:
    if point.kind != "step":
        return _landing(point)
    text = texts[point.line - 1].split("//")[0].strip() if 0 < point.line <= len(texts) else ""
    text = text if len(text) <= TEXT_WIDTH else text[: TEXT_WIDTH - 3] + "..."
    times = f", time {point.count}" if point.count > 1 else ""
    return f"{_thread(point)} at :{point.line}{times}    {text}"

"""Where the warps' time went, by line of the PTX and, where it tells them, by line of the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from hopsim.profile.times import LineTime, LineTimes
from hopsim.report.columns import Bar, Column, Columns, Kind
from hopsim.report.quantities import grouped, share
from hopsim.report.stalls import LEAST_SHARE

REASONS_SHOWN: Final = 2
TEXT_CELLS: Final = 72


def line_report(times: LineTimes, count: int) -> list[RenderableType]:
    """Return the lines at which most time was spent, the most first, and the source lines if there are any.

    Args:
        count: lines shown.
    """
    parts: list[RenderableType] = [
        Text(f"\nwhere it went, by line ({_shown(count, len(times.lines))})", style="bold"),
        line_table(times, count),
    ]
    sources = by_source(times.lines)
    if sources:
        parts += [
            Text(f"\nby line of the source ({_shown(count, len(sources))})", style="bold"),
            _table([(name, *sums, "") for name, sums in sources.items()], times, count, "source"),
        ]
    return parts


def line_table(times: LineTimes, count: int) -> Columns:
    """Return the lines at which most time was spent."""
    rows = [(f":{one.line}", one.instructions, one.cycles, _cut(one.text)) for one in times.lines]
    return _table(rows, times, count, "line")


def by_source(lines: Sequence[LineTime]) -> dict[str, tuple[int, dict[str, float]]]:
    """Return instructions and warp cycles by reason of each line of the source, columns put together.

    What was inlined counts where it was called: waits for two barriers are two lines of a program, and one of its library.
    """
    found: dict[str, tuple[int, dict[str, float]]] = {}
    for one in lines:
        place = one.caller or one.source
        if place is None:
            continue
        name = f"{place.file}:{place.line}"
        instructions, sums = found.get(name, (0, {}))
        for reason, cycles in one.cycles.items():
            sums[reason] = sums.get(reason, 0.0) + cycles
        found[name] = (instructions + one.instructions, sums)
    return found


def _table(
    rows: Sequence[tuple[str, int, Mapping[str, float], str]],
    times: LineTimes,
    count: int,
    head: str,
) -> Columns:
    has_text = any(text for *_, text in rows)
    table = Columns(
        Column(head),
        Column("time", Kind.NUMBER),
        Column(kind=Kind.BAR),
        Column("executed", Kind.NUMBER),
        Column("mostly, in %"),
        *((Column("PTX", Kind.NOTE, style="dim"),) if has_text else ()),
    )
    whole = times.warp_cycles or 1.0
    ordered = sorted(rows, key=lambda row: -sum(row[2].values()))
    most = sum(ordered[0][2].values()) if ordered else 1.0
    for name, instructions, cycles, text in ordered[:count]:
        time = sum(cycles.values())
        mostly = sorted(cycles.items(), key=lambda item: (-item[1], item[0]))[:REASONS_SHOWN]
        told = [(reason, part / whole) for reason, part in mostly if part / whole >= LEAST_SHARE]
        words = ", ".join(f"{reason} {100 * part:.1f}" for reason, part in told)
        cells = (name, share(time / whole), Bar(time / most), grouped(instructions), words)
        table.add_row(*cells, *((text,) if has_text else ()))
    return table


def _shown(count: int, of: int) -> str:
    return f"the first {count} of {of}" if count < of else f"all {of}"


def _cut(text: str) -> str:
    """Return an instruction without the comment behind it, and without the end of a long list of registers."""
    bare = " ".join(text.partition("//")[0].split())
    return bare if len(bare) <= TEXT_CELLS else f"{bare[: TEXT_CELLS - 3]}..."

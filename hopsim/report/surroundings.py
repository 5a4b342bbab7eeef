"""Launches one after the other, and their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopsim.kernels.surroundings.end_to_end import NamedLaunch
from hopsim.report.columns import Column, Columns, Kind


@dataclass(frozen=True, slots=True)
class Way:
    """One way to reach the same result.

    Args:
        name: of the way.
        verdict: the worst of its launches.
        is_exact: whether the result has the bits of the reference.
        launches: in order.
        cycles: end to end; None if untimed.
    """

    name: str
    verdict: str
    is_exact: bool
    launches: tuple[NamedLaunch, ...]
    cycles: int | None


def ways_table(ways: Sequence[Way]) -> Columns:
    """Return one row for each way; the last column compares with the first way."""
    table = Columns(
        *(Column(name) for name in ("way", "verdict", "bits", "launches")),
        *(Column(name, Kind.NUMBER) for name in ("end to end", "against the first")),
    )
    first = ways[0].cycles
    for way in ways:
        parts = " + ".join(
            f"{one.name} {one.result.cycles:,}" if one.result.cycles is not None else one.name
            for one in way.launches
        )
        more = "-" if way.cycles is None or first is None else f"{way.cycles - first:+,}"
        table.add_row(
            way.name,
            way.verdict,
            "reference" if way.is_exact else "differ",
            parts,
            "-" if way.cycles is None else f"{way.cycles:,}",
            more,
        )
    return table


def content(ways: Sequence[Way]) -> list[dict[str, object]]:
    """Return the ways as plain data, for JSON."""
    return [
        {
            "way": way.name,
            "verdict": way.verdict,
            "equal": way.is_exact,
            "cycles": way.cycles,
            "launches": [[one.name, one.result.cycles] for one in way.launches],
        }
        for way in ways
    ]

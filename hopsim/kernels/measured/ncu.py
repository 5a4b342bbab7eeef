"""What Nsight Compute exports: `ncu --csv --page raw --print-units base`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch: its kernel, its CTAs (None where the export does not say), its metrics in base units."""

    kernel: str
    grid: int | None
    metrics: Mapping[str, float]


def read_csv(path: Path) -> Iterator[Profile]:
    """Give the launches of an export, in order.

    Raises: OSError.
    """
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    for row in csv.DictReader(lines):
        if not row.get("ID"):
            continue  # the second line holds the units
        metrics: dict[str, float] = {}
        for name, text in row.items():
            if name and "__" in name:
                with suppress(ValueError):
                    metrics[name] = float((text or "").replace(",", ""))
        yield Profile(row["Kernel Name"], _ctas(row.get("Grid Size")), metrics)


def _ctas(text: str | None) -> int | None:
    """Return the product of `(8, 4, 1)`."""
    extents = re.findall(r"\d+", text or "")
    if not extents:
        return None
    count = 1
    for extent in extents:
        count *= int(extent)
    return count


def middle(launches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each metric that all launches have."""
    names = [name for name in launches[0] if all(name in one for one in launches)]
    return {name: median(one[name] for one in launches) for name in names}

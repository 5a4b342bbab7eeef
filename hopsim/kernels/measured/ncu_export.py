"""What Nsight Compute exports as CSV: its raw page, a row a launch, and its details page, a row a metric.

Numbers come in base units whatever unit the file has them in: by default `ncu` writes `1.05` and `Mbyte` (`ncu_numbers`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from hopsim.kernels.measured.ncu_numbers import Cell, in_base_units, locale_of
from hopsim.launch.geometry import Triple, triple

METRIC, UNIT, VALUE = "Metric Name", "Metric Unit", "Metric Value"
KERNEL, GRID, BLOCK = "Kernel Name", "Grid Size", "Block Size"
_ANONYMOUS: Final = "(anonymous namespace)"


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch: its kernel, its metrics in base units, its grid and its blocks (None where they are not said)."""

    kernel: str
    grid: Triple | None
    metrics: Mapping[str, float]
    block: Triple | None = None


def read_csv(path: Path) -> list[Profile]:
    """Return the launches of an export, in order.

    Raises:
        OSError.
        UnicodeDecodeError, csv.Error, KeyError: it is no export.
        ConfigError: its numbers can be read in two ways.
    """
    text = path.read_text(encoding="utf-8-sig")
    # What the program printed, and what Nsight Compute says itself, may stand between.
    table = csv.DictReader([line for line in text.splitlines() if line.startswith('"')])
    if KERNEL not in (table.fieldnames or ()):
        raise KeyError(KERNEL)
    by_metric = METRIC in (table.fieldnames or ())
    launches = list(_by_metric(table) if by_metric else _by_launch(table))
    decimals = locale_of((cell for one in launches for cell in one.cells), str(path))
    return [
        Profile(
            one.row[KERNEL],
            _extents(one.row.get(GRID)),
            # What has no name of its own is words: `Elapsed Cycles`.
            _known(
                {
                    c.metric: in_base_units(c.text, c.unit, decimals)
                    for c in one.cells
                    if "__" in c.metric
                }
            ),
            _extents(one.row.get(BLOCK)),
        )
        for one in launches
    ]


class _Launch(NamedTuple):
    """A launch as it stands in the file: its row, or the first of them, and what it says of metrics."""

    row: Mapping[str, str]
    cells: list[Cell]


def _by_launch(table: csv.DictReader[str]) -> Iterator[_Launch]:
    """Give the launches of a raw page: the first row has the units."""
    units: Mapping[str, str] = {}
    for row in table:
        if not row[KERNEL]:
            units = row
            continue
        named = {name: text for name, text in row.items() if name and "__" in name}
        yield _Launch(
            row, [Cell(name, units.get(name) or "", text or "") for name, text in named.items()]
        )


def _by_metric(table: csv.DictReader[str]) -> Iterable[_Launch]:
    """Give the launches of a details page: rows that have one ID; the same metric may stand in several sections."""
    launches: dict[str, _Launch] = {}
    for row in table:
        launch = launches.setdefault(row.get("ID") or row[KERNEL], _Launch(row, []))
        launch.cells.append(Cell(row[METRIC], row.get(UNIT) or "", row[VALUE] or ""))
    return launches.values()


def _known(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None}


def _extents(text: str | None) -> Triple | None:
    """Return the three extents of `(8, 4, 1)`; what is not said is 1."""
    extents = [int(extent) for extent in re.findall(r"\d+", text or "")]
    return triple(extents, "extents") if extents else None


def is_named(entry: str, told: str) -> bool:
    """Whether an entry of a PTX file may be the kernel that an export names.

    Args:
        entry: as in the PTX: plain (`extern "C"`, Triton) or mangled.
        told: plain, mangled, or demangled with its type, as `ncu --print-kernel-base` has it; instances of a template
            have one name then.

    >>> is_named("_ZN2ns6reduceIfLi128EEEvPKT_", "void ns::reduce<float, (int)128>(const T1 *)")
    True
    >>> is_named("_Z6reduceIfLi128EEvPKT_", "reduce_all(const float *)")
    False
    """
    return told == entry or _function(told) == (_mangled(entry) or entry)


def _function(told: str) -> str:
    """Return the function's own name: no type, namespaces, template arguments, parameters."""
    depth = 0
    kept: list[str] = []
    for character in told.replace(_ANONYMOUS, "_"):
        if character == "(" and not depth:
            break
        depth += (character == "<") - (character == ">")
        if not depth and character != ">":
            kept.append(character)
    return re.split(r"::|\s", "".join(kept).strip())[-1]


def _mangled(entry: str) -> str:
    """Return the function's own name of a mangled one; empty if it is none.

    Source: Itanium C++ ABI, "Mangling Structure": `_Z`, `N` for a name in a scope, then length and name of each scope.
    """
    found = re.match(r"_Z(N[rVK]*)?L?", entry)
    if found is None:
        return ""
    name, rest = "", entry[found.end() :]
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        name, rest = rest[length.end() : end], rest[end:]
        if found[1] is None:
            break
    return name


def middle(launches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each metric, of the launches that have it: of one it may be `n/a`."""
    names = dict.fromkeys(name for one in launches for name in one)
    return {name: median(one[name] for one in launches if name in one) for name in names}

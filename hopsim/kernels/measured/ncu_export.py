"""What Nsight Compute exports as CSV: its raw page, a row a launch, and its details page, a row a metric.

Numbers come in base units whatever unit the file has them in: by default `ncu` writes `1.05` and `Mbyte`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

PREFIXES: Final[Mapping[str, float]] = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12
}  # fmt: skip
"""Nsight Compute's are powers of ten. Source: Nsight Compute CLI documentation, `--print-units`."""
COUNTED: Final = ("byte", "cycle", "sector", "inst", "request", "second", "hz")
"""Units that it writes prefixes before; any other is taken as it is (`%`, `register/thread`)."""
METRIC, UNIT, VALUE = "Metric Name", "Metric Unit", "Metric Value"
KERNEL, GRID, BLOCK = "Kernel Name", "Grid Size", "Block Size"
_ANONYMOUS: Final = "(anonymous namespace)"


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch: its kernel, its metrics in base units, its CTAs and the threads of one (None where it is not said)."""

    kernel: str
    grid: int | None
    metrics: Mapping[str, float]
    block: int | None = None


def read_csv(path: Path) -> Iterator[Profile]:
    """Give the launches of an export, in order.

    Raises: OSError.  UnicodeDecodeError, csv.Error, KeyError: it is no export.
    """
    text = path.read_text(encoding="utf-8-sig")
    # What the program printed, and what Nsight Compute says itself, may stand between.
    table = csv.DictReader([line for line in text.splitlines() if line.startswith('"')])
    if KERNEL not in (table.fieldnames or ()):
        raise KeyError(KERNEL)
    return _by_metric(table) if METRIC in (table.fieldnames or ()) else _by_launch(table)


def _by_launch(table: csv.DictReader[str]) -> Iterator[Profile]:
    """Give the launches of a raw page: the first row has the units."""
    units: Mapping[str, str] = {}
    for row in table:
        if not row[KERNEL]:
            units = row
            continue
        named = {name: text for name, text in row.items() if name and "__" in name}
        metrics = {name: in_base_units(text, units.get(name)) for name, text in named.items()}
        yield Profile(
            row[KERNEL], _product(row.get(GRID)), _known(metrics), _product(row.get(BLOCK))
        )


def _by_metric(table: csv.DictReader[str]) -> Iterator[Profile]:
    """Give the launches of a details page: rows that have one ID."""
    launches: dict[str, tuple[Profile, dict[str, float | None]]] = {}
    for row in table:
        where = launches.setdefault(
            row.get("ID") or row[KERNEL],
            (Profile(row[KERNEL], _product(row.get(GRID)), {}, _product(row.get(BLOCK))), {}),
        )
        # The same metric may stand in several sections; what has no name of its own is words: `Elapsed Cycles`.
        if "__" in row[METRIC]:
            where[1][row[METRIC]] = in_base_units(row[VALUE], row.get(UNIT))
    for launch, metrics in launches.values():
        yield replace(launch, metrics=_known(metrics))


def _known(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None}


def in_base_units(text: str | None, unit: str | None) -> float | None:
    """Return a number in bytes, cycles, seconds, ...; None where there is none (`n/a`).

    >>> in_base_units("1,048.5", "Kbyte"), in_base_units("1,38", "%"), in_base_units("n/a", "")
    (1048500.0, 1.38, None)
    """
    digits = (text or "").strip()
    if re.fullmatch(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", digits):
        digits = digits.replace(",", "")
    elif digits.count(",") == 1:
        # A locale whose decimals follow a comma.
        digits = digits.replace(".", "").replace(",", ".")
    try:
        value = float(digits)
    except ValueError:
        return None
    prefixed = re.fullmatch(rf"([numKMGT]?)({'|'.join(COUNTED)})(/.*)?", unit or "")
    return value * PREFIXES[prefixed[1]] if prefixed else value


def _product(text: str | None) -> int | None:
    """Return the product of `(8, 4, 1)`."""
    extents = re.findall(r"\d+", text or "")
    if not extents:
        return None
    count = 1
    for extent in extents:
        count *= int(extent)
    return count


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

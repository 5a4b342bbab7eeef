"""Numbers as Nsight Compute exports them: in the units it likes, and with the decimals of the locale it ran in.

`1,024` is a thousand, or one and a bit. Which one is a matter of the whole file: `locale_of` decides it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from hopsim.errors import ConfigError

PREFIXES: Final[Mapping[str, float]] = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12
}  # fmt: skip
"""Nsight Compute's are powers of ten. Source: Nsight Compute CLI documentation, `--print-units`."""
SECONDS: Final = ("second", "s")
"""Older versions write `usecond`, newer ones `us`."""
COUNTED: Final = ("byte", "B", "cycle", "sector", "inst", "request", "hz", *SECONDS)
"""Units that it writes prefixes before; any other is taken as it is (`%`, `register/thread`)."""
WHOLE: Final = (".sum", ".max", ".min")
"""Ends of metrics that are whole numbers where their unit is counted and has no prefix."""

Mark = Literal[".", ","]
_UNIT: Final = re.compile(
    rf"([numKMGT]?)(?:{'|'.join(COUNTED)})(?:/(?:([numKMGT]?)(?:{'|'.join(SECONDS)})|.*))?"
)
_WHOLE_UNITS: Final = ("byte", "cycle", "sector", "inst", "request")
# Of some locales a thousand is marked by a space or an apostrophe.
_SPACES: Final = re.compile(r"[\s'\u2019]")
_GROUPED: Final = re.compile(r"-?[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})*")


class Cell(NamedTuple):
    """What an export says of a metric."""

    metric: str
    unit: str
    text: str


def locale_of(cells: Iterable[Cell], where: str) -> Mark:
    """Return the mark before decimals in an export.

    Args:
        cells: all of them: numbers that can be read in one way tell how the others are to be read.
        where: the file.
    Raises: ConfigError: none tells, and one can be read in two ways; or they contradict each other.
    """
    told: dict[Mark, Cell] = {}
    # By what cannot have decimals.
    hinted: dict[Mark, Cell] = {}
    unclear: Cell | None = None
    for cell in cells:
        mark = _mark_of(cell.text)
        if mark is not None:
            told.setdefault(mark, cell)
        elif grouped := _GROUPED.fullmatch(_SPACES.sub("", cell.text)):
            if cell.metric.endswith(WHOLE) and cell.unit in _WHOLE_UNITS:
                hinted.setdefault("," if grouped[1] == "." else ".", cell)
            else:
                unclear = unclear or cell
    marks = told or hinted
    if len(marks) > 1:
        point, comma = marks["."], marks[","]
        raise ConfigError(
            f"{point.metric} is {point.text}, with a point before decimals, and {comma.metric} {comma.text}, with a comma",
            where=where,
            hint="an export has one form of numbers: LC_ALL=C ncu ...",
        )
    if not marks and unclear is not None:
        raise ConfigError(
            f"{unclear.metric} is {unclear.text} {unclear.unit}".rstrip()
            + ": nothing in the file says whether that separates thousands or decimals",
            where=where,
            hint="LC_ALL=C ncu --print-units base ... writes numbers that can be read in one way",
        )
    return "," if "," in marks else "."


def _mark_of(text: str) -> Mark | None:
    """Return the mark before the decimals of a number that can be read in one way; None of any other, and without decimals.

    >>> _mark_of("1,048.5"), _mark_of("1.234.567"), _mark_of("2,56"), _mark_of("0.125"), _mark_of("1.024")
    ('.', ',', ',', '.', None)
    """
    digits = _SPACES.sub("", text)
    if not re.fullmatch(r"-?\d[\d.,]*", digits):
        return None
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        return "." if digits.rfind(".") > digits.rfind(",") else ","
    if not points and not commas:
        return None
    if points + commas > 1:
        # Several marks of a kind stand before thousands.
        return "," if points else "."
    if _GROUPED.fullmatch(digits):
        return None
    return "." if points else ","


def in_base_units(text: str | None, unit: str | None, decimals: Mark = ".") -> float | None:
    """Return a number in bytes, cycles, seconds, ...; None where there is none (`n/a`).

    Args:
        decimals: the mark before them.

    >>> in_base_units("1,048.5", "Kbyte"), in_base_units("1,38", "%", ","), in_base_units("n/a", "")
    (1048500.0, 1.38, None)
    """
    digits = _SPACES.sub("", text or "").replace("," if decimals == "." else ".", "")
    try:
        value = float(digits.replace(decimals, "."))
    except ValueError:
        return None
    prefixed = _UNIT.fullmatch(unit or "")
    return value * PREFIXES[prefixed[1]] / PREFIXES[prefixed[2] or ""] if prefixed else value

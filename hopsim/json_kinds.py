"""What a JSON file that is read must hold, and where the first value stands that is of another kind.

>>> what_is_wrong({"cycles": "x"}, {"cycles": NUMBER})
"cycles: expected a number, got 'x'"
>>> what_is_wrong({"stalls": {"gmma": None}}, {"stalls": each(NUMBER)})
'stalls.gmma: expected a number, got None'
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

_SHOWN: Final = 40
"""Characters of a wrong value that an error shows."""


class Kind(NamedTuple):
    """What a value must be.

    Args:
        words: what errors call it.
        holds: whether a value is one.
        inside: what the values in it must be: of a table one for each name that must be there, or for all of them under
            the name ``*``; of a list under ``*``.
        optional: whether None will do.
        besides: of a table, what the values must be under names that may be there.
    """

    words: str
    holds: Callable[[object], bool]
    inside: Mapping[str, Kind] = {}
    optional: bool = False
    besides: Mapping[str, Kind] = {}


def _is_signed(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _is_number(value: object) -> bool:
    return _is_signed(value) and cast("float", value) >= 0


def _is_whole(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_some(value: object) -> bool:
    return isinstance(value, list) and bool(cast("list[object]", value))


def _is_shape(value: object) -> bool:
    if not isinstance(value, list):
        return False
    extents = cast("list[object]", value)
    return len(extents) == 3 and all(type(one) is int and one > 0 for one in extents)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number_or_text(value: object) -> bool:
    return _is_text(value) or _is_number(value)


def _is_anything(value: object) -> bool:
    del value
    return True


def each(kind: Kind) -> Kind:
    """Return the kind of a table whose values are all of one."""
    return Kind("a table", _is_table, {"*": kind})


def table_of(**kinds: Kind) -> Kind:
    """Return the kind of a table that has these names."""
    return Kind("a table", _is_table, kinds)


def with_besides(kind: Kind, **kinds: Kind) -> Kind:
    """Return a table's kind that may have these names too."""
    return kind._replace(besides={**kind.besides, **kinds})


def rows(kind: Kind) -> Kind:
    """Return the kind of a list of one."""
    return Kind("a list", _is_list, {"*": kind})


def some(kind: Kind) -> Kind:
    """Return the kind of a list of one, which is not empty."""
    return Kind("a list of one or more", _is_some, {"*": kind})


def perhaps(kind: Kind) -> Kind:
    """Return a kind beside which None will do."""
    return kind._replace(words=f"{kind.words} or null", optional=True)


NUMBER: Final = Kind("a number", _is_number)
SIGNED: Final = Kind("a number", _is_signed)
"""Others are of 0 or more."""
WHOLE: Final = Kind("a whole number", _is_whole)
TEXT: Final = Kind("text", _is_text)
NUMBER_OR_TEXT: Final = Kind("a number or text", _is_number_or_text)
SHAPE: Final = Kind("three positive whole numbers", _is_shape)
ANYTHING: Final = Kind("anything", _is_anything)
NUMBERS: Final = each(NUMBER)


def what_is_wrong(content: Mapping[str, Any], kinds: Mapping[str, Kind], place: str = "") -> str:
    """Return where the first value stands that is of another kind, with both; empty where none is.

    Names that are not there are of no account here.
    """
    for name, kind in kinds.items():
        if name in content and (found := wrong(content[name], kind, f"{place}{name}")):
            return found
    return ""


def wrong(value: Any, kind: Kind, place: str = "") -> str:
    """Return where a value, or the first in it, is of another kind, with both; empty where none is.

    >>> wrong([{"m": 1}, {"m": -1}], rows(table_of(m=WHOLE)))
    '1.m: expected a whole number, got -1'
    """
    if value is None and kind.optional:
        return ""
    if not kind.holds(value):
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        return f"{_at(place)}expected {kind.words}, got {shown}"
    if not kind.inside and not kind.besides:
        return ""
    parts = cast("dict[str, Any]", value)
    if isinstance(value, list):
        parts = {str(position): one for position, one in enumerate(cast("list[Any]", value))}
    inner = f"{place}." if place else ""
    if "*" in kind.inside:
        return what_is_wrong(parts, dict.fromkeys(parts, kind.inside["*"]), inner)
    missing = next((name for name in kind.inside if name not in parts), "")
    if missing:
        return f"{_at(place)}expected a table with {missing}, got one without"
    return what_is_wrong(parts, {**kind.inside, **kind.besides}, inner)


def _at(place: str) -> str:
    return f"{place}: " if place else ""

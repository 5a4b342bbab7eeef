"""JSON for people and for diffs: objects are indented, a list of numbers or a small object is one line."""

from __future__ import annotations

import json
from typing import Any, Final, cast

WIDTH: Final = 120


def dumps(value: Any, indent: int = 0) -> str:
    """Return JSON text.

    >>> print(dumps({"a": [1, 2], "b": {"c": 3}}))
    {
     "a": [1, 2],
     "b": {"c": 3}
    }
    """
    flat = json.dumps(value)
    is_short = len(flat) + indent <= WIDTH
    if not isinstance(value, dict | list) or (is_short and not _is_nested(value)):
        return flat
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        lines = [
            f"{inner}{json.dumps(key)}: {dumps(one, indent + 1)}" for key, one in entries.items()
        ]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    items = cast("list[Any]", value)
    if not any(isinstance(one, dict | list) for one in items):
        return flat
    lines = [f"{inner}{dumps(one, indent + 1)}" for one in items]
    return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"


def _is_nested(value: Any) -> bool:
    inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
    return any(isinstance(one, dict | list) for one in inner)

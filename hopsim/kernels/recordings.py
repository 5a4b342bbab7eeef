"""Reads files of recordings: JSON, whose values are what those who use them expect.

>>> from hopsim.json_kinds import TEXT, rows, table_of
>>> check([{"name": 3}], rows(table_of(name=TEXT)), Path("micro.json"))
Traceback (most recent call last):
hopsim.errors.ConfigError: micro.json: 0.name: expected text, got 3
  try: a file that hopsim record made: tests/silicon of a checkout
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from hopsim.errors import ConfigError
from hopsim.json_kinds import Kind, wrong

MADE_BY: Final = "a file that hopsim record made: tests/silicon of a checkout"


def read_recording(file: Path, kind: Kind) -> Any:
    """Return what a file of recordings holds.

    Args:
        kind: what it must hold.
    Raises: ConfigError: it cannot be read, is no JSON, or holds something else.
    """
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read it: {error.strerror}", where=str(file), hint=MADE_BY
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}", where=str(file), hint=MADE_BY) from None
    check(content, kind, file)
    return content


def check(content: Any, kind: Kind, file: Path) -> None:
    """Check what stands in a file of recordings.

    Raises: ConfigError: it is something else.
    """
    if found := wrong(content, kind):
        raise ConfigError(found, where=str(file), hint=MADE_BY)

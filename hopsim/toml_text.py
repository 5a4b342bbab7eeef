r"""Read TOML, with errors in hopsim's words: line and column, what is expected there, what stands; and write values of it.

>>> parse("grid = \n", "args.toml")
Traceback (most recent call last):
hopsim.errors.ConfigError: args.toml:1:8: expected a value, got the end of the line
  try: text stands in quotes; numbers, true and false stand without
"""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any, Final, cast

from hopsim.errors import ConfigError

_SHOWN: Final = 30
"""Characters of a line that an error shows."""
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_ONCE: Final = "a list of tables repeats as [[name]]; everything else stands once"
_ESCAPES: Final = r"\\ for a backslash, or text in single quotes, which is taken as it is"
# What the standard library's parser says, in this order: what it begins with, what is expected, and what to try.
_WORDS: Final = (
    ("Invalid statement", "a name, a [table] or a comment", 'name = value, or "a name" = value'),
    ("Invalid initial character for a key", "a name", 'name = value, or "a name" = value'),
    ("Expected newline or end of document", "the end of the line", "one entry a line; text stands in quotes"),
    ("Expected '=' after a key", "= after a name", "name = value"),
    ("Invalid value", "a value", "text stands in quotes; numbers, true and false stand without"),
    ("Invalid date", "a date that there is", "text stands in quotes"),
    ("Expected ']' at the end", "] after the name of a table", "[table]"),
    ("Expected ']]' at the end", "]] after the name of a table", "[[table]]"),
    ("Unclosed array", ", or ] in a list", "[1, 2, 3]"),
    ("Unclosed inline table", ", or } in a table", '{ value = "29cycles", source = "..." }'),
    ("Unescaped '\\'", "an escape after a backslash in a text", _ESCAPES),
    ("Invalid hex value", "the digits of a character after a backslash in a text", _ESCAPES),
    ("Escaped character", "a character that there is after a backslash in a text", _ESCAPES),
    ("Unterminated string", "the end of a text", 'a quote: "text"'),
    ("Expected \"'\"", "the end of a text", "a quote: 'text'"),
    ("Expected '\"\"\"'", "the end of a text", 'three quotes: """text"""'),
    ("Expected \"'''\"", "the end of a text", "three quotes: '''text'''"),
    ("Illegal character", "text, or the quote that ends it", 'text in one line: "text"'),
    ("Found invalid character", "text, or the quote that ends it", "text in one line: 'text'"),
)  # fmt: skip
_REPEATED: Final = ("Cannot ", "Duplicate ")
"""How the parser begins where a name or a table stands twice."""


def read(path: Path) -> dict[str, Any]:
    """Return the top table of a TOML file.

    Raises: ConfigError: it cannot be read, or is not TOML.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read it: {error.strerror}", where=str(path)) from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"expected text in UTF-8, got the byte 0x{content[error.start]:02x}",
            where=f"{path}:{line}",
            hint="save it as UTF-8",
        ) from None
    return parse(text, str(path))


def parse(text: str, where: str) -> dict[str, Any]:
    """Return the top table of a TOML text.

    Args:
        where: what errors call the text.
    Raises: ConfigError: it is not TOML.
    """
    try:
        return tomllib.loads(text, parse_float=_number)
    except tomllib.TOMLDecodeError as error:
        raise _told(str(error), text, where) from None
    except RecursionError:
        raise ConfigError("lists or tables are nested too deep", where=where) from None
    except ValueError:
        # Python converts no decimal text of more digits.
        raise ConfigError("a whole number has too many digits", where=where) from None


class TooLarge(float):
    """A number that is written with digits, and that no double holds: infinite, but nobody wrote `inf`."""

    text: str

    def __new__(cls, text: str) -> TooLarge:
        """Return the number that a text writes."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


def _number(text: str) -> float:
    number = float(text)
    return TooLarge(text) if math.isinf(number) and "inf" not in text else number


def in_toml(value: Any) -> str:
    r"""Return a scalar or a list as TOML writes it.

    >>> print(in_toml([True, 2, 'say "3"']))
    [true, 2, "say \"3\""]
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(in_toml(item) for item in cast("list[Any]", value)) + "]"
    return str(value)


def _told(said: str, text: str, where: str) -> ConfigError:
    """Return what the parser says in hopsim's words."""
    place = _PLACE.search(said)
    lines = text.replace("\r\n", "\n").split("\n")
    if place is None or place[1] is None:
        number, rest, got = len(text.splitlines()) or 1, "", "the end of the file"
        where = f"{where}:{number}"
    else:
        number, column = int(place[1]), int(place[2])
        rest = lines[number - 1][column - 1 :].rstrip()
        shown = rest if len(rest) <= _SHOWN else f"{rest[:_SHOWN]}..."
        got = repr(shown) if shown else "the end of the line"
        where = f"{where}:{number}:{column}"
    if said.startswith(_REPEATED):
        line = lines[number - 1].strip()[:_SHOWN]
        return ConfigError(
            f"expected each name and table once, got one again in {line!r}", where=where, hint=_ONCE
        )
    for beginning, expected, hint in _WORDS:
        if said.startswith(beginning):
            return ConfigError(f"expected {expected}, got {got}", where=where, hint=hint)
    return ConfigError(f"expected TOML, got {got}", where=where, hint="name = value, or [table]")

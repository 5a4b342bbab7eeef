"""Errors of usage in hopsim's words: what was expected, what was typed, what may have been meant.

The parser has its values from typer, whose newer versions let pydantic word what is wrong with them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any, Final

PYDANTIC: Final = "Value error, "
INPUT: Final = "Input should be "
_CHOICES: Final = re.compile(r"'(?P<got>[^']*)' is not one of (?P<choices>('[^']*'(, )?)+)\.?")
_MEANT: Final = {
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}


def reword(error: Any, args: Sequence[str]) -> None:
    """Change the message of a usage error to hopsim's words; one that is worded otherwise stays as it is.

    Args:
        error: a `USAGE_ERROR`.
        args: what was typed, to tell the value that does not fit.
    """
    message = getattr(error, "message", None)
    if not isinstance(message, str):
        return
    message = message.removeprefix(PYDANTIC)
    if message.startswith(INPUT):
        expected = message.removeprefix(INPUT).partition(", unable")[0]
        for theirs, ours in _MEANT.items():
            expected = expected.replace(theirs, ours)
        got = _typed(getattr(error, "param", None), args)
        message = f"expected {expected}" + (f", got {got!r}" if got is not None else "")
    elif found := _CHOICES.fullmatch(message):
        choices = re.findall(r"'([^']*)'", found["choices"])
        message = f"expected one of {', '.join(choices)}, got {found['got']!r}"
        if near := nearest(found["got"], choices):
            message += f". Did you mean {near!r}?"
    error.message = message


def nearest(word: str, choices: Sequence[str]) -> str:
    """Return the choice that a mistyped word may mean; empty if none is near.

    >>> nearest("64b", ["none", "64B", "128B"]), nearest("ping-pong", ["pingpong", "split-k"])
    ('64B', 'pingpong')
    """
    by_case = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), by_case, n=1)
    return by_case[near[0]] if near else ""


def _typed(option: Any, args: Sequence[str]) -> str | None:
    """Return the value that was typed for an option; None for an argument, whose place only the parser knows."""
    names = getattr(option, "opts", ())
    for k, word in enumerate(args):
        name, sign, value = word.partition("=")
        if name in names and sign:
            return value
        if word in names and k + 1 < len(args):
            return args[k + 1]
    return None

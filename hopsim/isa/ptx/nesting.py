"""How deep blocks and parts of constants may lie in one another: hopsim goes down by calls of itself, and stops in time."""

from __future__ import annotations

from typing import Final

from hopsim.errors import NotModelled
from hopsim.isa.ptx.lexer import Source

MOST_NESTED: Final = 200
"""ptxas takes more than Python has calls for."""


def check_depth(depth: int, source: Source, place: int, what: str, instead: str) -> None:
    """Check how many of a kind are open at a place.

    Args:
        depth: how many.
        place: offset in the source of the innermost.
        what: they are.
        instead: what to try.

    Raises: NotModelled: more than hopsim reads.
    """
    if depth > MOST_NESTED:
        span = source.locate(place)
        raise NotModelled(
            f"{what} nested over {MOST_NESTED} deep are not modelled",
            where=f"{source.path}:{span.line}:{span.column}", hint=instead,
        )  # fmt: skip

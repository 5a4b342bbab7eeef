"""Renderables as the text that a file gets."""

from __future__ import annotations

import io
from typing import Final

from rich.console import Console, RenderableType

PLAIN_WIDTH: Final = 2000
"""Columns when the output is no terminal: what a file gets does not depend on a window, and no line is broken."""


def plain_text(*renderables: RenderableType, width: int = PLAIN_WIDTH) -> str:
    """Return what a file gets: no colours, lines of stories unbroken, no blanks at line ends."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, color_system=None, highlight=False, emoji=False, markup=False
    )
    for renderable in renderables:
        console.print(renderable, soft_wrap=True)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())

"""Where a command writes: text to the terminal, JSON to a file or to standard output, never both there."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console, RenderableType

from hopsim.errors import ConfigError

PLAIN_WIDTH: Final = 120
"""Columns when the output is no terminal: what is written to a file does not depend on a window."""
STDOUT: Final = "-"


def plain_text(*renderables: RenderableType, width: int = PLAIN_WIDTH) -> str:
    """Return what a file gets: no colours, lines of stories unbroken, no blanks at line ends."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, color_system=None, highlight=False, emoji=False, markup=False
    )
    for renderable in renderables:
        console.print(renderable, soft_wrap=True)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())


def terminal(*, stderr: bool = False) -> Console:
    """Return a console: colours and the window's width on a terminal, neither elsewhere."""
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=is_terminal,
        width=None if is_terminal else PLAIN_WIDTH,
        color_system="auto" if is_terminal else None,
        highlight=False,
        emoji=False,
        markup=False,
    )


class Output:
    """What one command prints and saves.

    Args:
        json_file: path of a JSON file, `-` for standard output, or None.
    """

    def __init__(self, json_file: str | None) -> None:
        self.json_file = json_file

    def show(self, *renderables: RenderableType) -> None:
        """Print, unless standard output is kept for JSON; long lines of stories are not broken in files."""
        if self.json_file == STDOUT:
            return
        console = terminal()
        if console.is_terminal:
            console.print(*renderables, sep="\n")
        else:
            sys.stdout.write(plain_text(*renderables))

    def finish(self, content: Mapping[str, Any], code: int) -> None:
        """Write the JSON, if asked for, and leave with an exit code.

        Raises: typer.Exit: the code is not 0.  ConfigError: the file cannot be written.
        """
        if self.json_file is not None:
            write_json(self.json_file, {**content, "exit_code": code})
        if code:
            raise typer.Exit(code)


def write_json(target: str, content: Mapping[str, Any]) -> None:
    """Write sorted, indented JSON to a file, or to standard output for `-`.

    Raises: ConfigError: the file cannot be written.
    """
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
    if target == STDOUT:
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror}", where="--json") from None

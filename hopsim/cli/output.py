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

from hopsim.errors import ConfigError, HopsimError, PtxError

PLAIN_WIDTH: Final = 2000
"""Columns when the output is no terminal: what a file gets does not depend on a window, and no line is broken."""
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
    Raises: ConfigError: the file's folder does not exist.
    """

    def __init__(self, json_file: str | None) -> None:
        self.json_file = json_file
        if json_file is not None and json_file != STDOUT:
            check_folder(json_file, "--json")

    def show(self, *renderables: RenderableType) -> None:
        """Print, unless standard output is kept for JSON; long lines of stories are not broken in files."""
        if self.json_file == STDOUT:
            return
        console = terminal()
        if console.is_terminal:
            console.print(*renderables, sep="\n")
        else:
            sys.stdout.write(plain_text(*renderables))
            sys.stdout.flush()

    def finish(self, content: Mapping[str, Any], code: int) -> None:
        """Write the JSON, if asked for, and leave with an exit code.

        Raises: typer.Exit: the code is not 0.  ConfigError: the file cannot be written.
        """
        if self.json_file is not None:
            write_json(self.json_file, {**content, "exit_code": code})
        if code:
            raise typer.Exit(code)


def check_folder(path: str, option: str) -> None:
    """Find out before a long run that a file cannot be written after it.

    Raises: ConfigError: its folder does not exist.
    """
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", where=option, hint=f"mkdir -p {folder}")


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


def error_content(error: HopsimError) -> dict[str, Any]:
    """Return an error as `--json` has it; one in PTX with the line and column that are known."""
    content = {
        "kind": type(error).__name__,
        "what": error.what,
        "where": error.place,
        "hint": error.hint,
        "message": str(error),
    }
    if isinstance(error, PtxError) and error.line:
        content |= {"line": error.line, "column": error.column}
    return content

"""Where a command writes: text to the terminal, JSON to a file or to standard output, never both there; files.

A path is checked before anything runs (`check_target`), and all files of commands are written here (`write_file`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console, RenderableType

from hopsim.cli.command import JSON_OPTION
from hopsim.errors import ConfigError, HopsimError, PtxError
from hopsim.report.plain import PLAIN_WIDTH, plain_text

STDOUT: Final = "-"


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
    Raises: ConfigError: the file cannot be written.
    """

    def __init__(self, json_file: str | None) -> None:
        self.json_file = json_file
        self._failed: list[HopsimError] = []
        if json_file is not None and json_file != STDOUT:
            check_target(json_file, JSON_OPTION)

    def show(self, *renderables: RenderableType) -> None:
        """Print, unless standard output is kept for JSON; long lines of stories are not broken in files.

        Raises: ConfigError: standard output cannot be written, and no JSON file is asked for.
        """
        if self.json_file == STDOUT:
            return
        console = terminal()
        if console.is_terminal:
            console.print(*renderables, sep="\n")
        elif self.json_file is None:
            write_stdout(plain_text(*renderables))
        else:
            # The JSON has all of it still.
            with self.saving():
                write_stdout(plain_text(*renderables))

    @contextmanager
    def saving(self) -> Generator[None]:
        """Keep an error of what is written in here until the command finishes: its report is not lost for a path."""
        try:
            yield
        except HopsimError as error:
            self._failed.append(error)

    def finish(self, content: Mapping[str, Any], code: int) -> None:
        """Write the JSON, if asked for, tell what could not be saved, and leave with an exit code.

        Raises: typer.Exit: the code is not 0, or a file was not saved.  ConfigError: the JSON cannot be written.
        """
        content = dict(content)
        if self._failed:
            code = 2
            content["error"] = error_content(self._failed[0])
        for error in self._failed:
            typer.echo(str(error), err=True)
        if self.json_file is not None:
            write_json(self.json_file, {**content, "exit_code": code})
        if code:
            raise typer.Exit(code)


def check_target(path: str | Path, where: str) -> None:
    """Find out before a long run that a file cannot be written after it.

    Args:
        where: the option, or what else names the file.
    Raises: ConfigError: it is a folder or standard output, its folder does not exist, or it may not be written.
    """
    file = Path(path)
    if str(path) == STDOUT:
        raise ConfigError(
            "expected a file, got -: only --json writes to standard output",
            where=where,
            hint="the name of a file",
        )
    if not str(path):
        raise ConfigError("expected a file, got ''", where=where, hint="the name of a file")
    if file.is_dir():
        raise ConfigError(
            f"expected a file, got the folder {path}", where=where, hint="a file in that folder"
        )
    folder = file.resolve().parent
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", where=where, hint=f"mkdir -p {folder}")
    needed = (file, os.W_OK) if file.exists() else (folder, os.W_OK | os.X_OK)
    if not os.access(*needed):
        raise ConfigError(
            f"cannot write {path}: no permission for {needed[0]}",
            where=where,
            hint="a file in a folder of yours",
        )


def check_targets(*targets: tuple[str | Path | None, str]) -> None:
    """Check each path that is given; pairs of a path and its option.

    Raises: ConfigError: one cannot be written, or two are the same file.
    """
    for path, where in targets:
        if path is not None:
            check_target(path, where)
    check_apart(*targets)


def check_apart(*targets: tuple[str | Path | None, str]) -> None:
    """Check that no file is written twice, or written and used; pairs as above.

    Raises: ConfigError.
    """
    taken: dict[Path, str] = {}
    for path, where in targets:
        if path is None:
            continue
        file = Path(path).resolve()
        if file in taken:
            raise ConfigError(
                f"{path} is the file of {taken[file]} too, which would be lost",
                where=where,
                hint="another file",
            )
        taken[file] = where


def check_suffix(path: str | Path, where: str, suffixes: Sequence[str]) -> None:
    """Refuse a name that says another format than what will be written.

    Raises: ConfigError.
    """
    if Path(path).suffix not in suffixes:
        raise ConfigError(
            f"expected a name that ends in {' or '.join(suffixes)}, got {path}",
            where=where,
            hint=f"{where} {Path(path).with_suffix(suffixes[0])}",
        )


def write_file(path: str | Path, content: str | bytes | memoryview, where: str) -> None:
    """Write a file.

    Args:
        content: text, which is written as UTF-8, or bytes.
        where: the option, or what else names the file.
    Raises: ConfigError: it cannot be written.
    """
    try:
        # (Names of files in a text may hold bytes that are no UTF-8.)
        data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
        Path(path).write_bytes(data)
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {error.strerror}",
            where=where,
            hint="another file, or room on the disk",
        ) from None


def write_stdout(text: str) -> None:
    """Write to standard output at once, so that a full disk is told and not found when Python ends.

    Where nobody reads on (`| head`) files are written all the same, and the exit code says how the run went.

    Raises: ConfigError: it cannot be written.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()
    except OSError as error:
        drop_stdout()
        raise ConfigError(
            f"cannot write: {error.strerror}",
            where="standard output",
            hint="another file, or room on the disk",
        ) from None


def drop_stdout() -> None:
    """Lead standard output to nowhere: Python flushes what is left in it when it ends, and would fail again."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def write_json(target: str, content: Mapping[str, Any]) -> None:
    """Write sorted, indented JSON to a file, or to standard output for `-`.

    Raises: ConfigError: it cannot be written.
    """
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
    if target == STDOUT:
        write_stdout(text)
    else:
        write_file(target, text, JSON_OPTION)


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

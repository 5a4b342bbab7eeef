"""The class of all sub-commands: an error that a user can cause becomes text and an exit code, never a traceback."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperCommand

from hopsim.errors import DeviceError, HopsimError, MachineFault, NotModelled

INTERRUPTED: Final = 130
"""128 + SIGINT, as shells report it."""


def exit_code_of(error: HopsimError) -> int:
    """Return the exit code that an error ends a command with."""
    if isinstance(error, MachineFault):
        return 1
    if isinstance(error, NotModelled):
        return 4
    if isinstance(error, DeviceError):
        return 5
    return 2


class Command(TyperCommand):
    """A sub-command that reports errors as `hopsim` promises."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except HopsimError as error:
            code = exit_code_of(error)
            typer.echo(str(error), err=True)
            _write_error(ctx, error, code)
            raise typer.Exit(code) from None
        except MemoryError as error:
            typer.echo(
                f"not enough memory on this machine: {error}\n  try: a smaller problem", err=True
            )
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _write_error(ctx: Any, error: HopsimError, code: int) -> None:
    """Tell the error in JSON too, where JSON was asked for."""
    from hopsim.cli.output import write_json

    target: str | None = ctx.params.get("json_file")
    if target is None:
        return
    content = {
        "command": ctx.info_name,
        "exit_code": code,
        "error": {
            "kind": type(error).__name__,
            "what": error.what,
            "where": error.where,
            "hint": error.hint,
            "message": str(error),
        },
    }
    try:
        write_json(target, content)
    except HopsimError as second:
        typer.echo(str(second), err=True)

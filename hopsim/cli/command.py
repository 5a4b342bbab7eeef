"""The classes of all commands: an error that a user can cause becomes text, JSON where asked for, and an exit code."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from hopsim.cli.usage import reword
from hopsim.errors import ConfigError, DeviceError, HopsimError, MachineFault, NotModelled

INTERRUPTED: Final = 130
"""128 + SIGINT, as shells report it."""
WHOLE_HELP: Final = 1000
"""More characters than any command's first sentence has."""
JSON_OPTION: Final = "--json"
OVERRIDE: Final = "override"
"""How `hopsim.config.load` names the place of a number that its caller replaced."""
USAGE_ERROR: Final = typer.BadParameter.__mro__[1]
"""What a parser raises; typer brings its own copy of it or takes click's, by its version."""
WRITTEN: Final = (
    "json_file",
    "trace",
    "ptx",
    "sarif",
    "write_baseline",
    "svg",
    "html",
    "page",
    "plot",
    "out",
)
"""Parameters of commands that name a file to write."""


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

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the sentence that stands for it in a list of commands: whole, over several lines if need be."""
        del limit
        return super().get_short_help_str(WHOLE_HELP)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options."""
        with _usage_told(ctx, args):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        target: str | None = ctx.params.get("json_file")
        try:
            self._check_files(ctx.params)
            return super().invoke(ctx)
        except HopsimError as error:
            told = _at_option(error, ctx.params.get("settings"))
            code = exit_code_of(told)
            typer.echo(str(told), err=True)
            _write_error(ctx, target, told, code)
            raise typer.Exit(code) from None
        except MemoryError as error:
            told = ConfigError(
                f"not enough memory on this machine: {error}", hint="a smaller problem"
            )
            typer.echo(str(told), err=True)
            _write_error(ctx, target, told, 2, "MemoryError")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None

    def _check_files(self, params: Mapping[str, Any]) -> None:
        """Find out before anything runs that two options name the same file.

        Raises: ConfigError.
        """
        from hopsim.cli.output import STDOUT, check_apart

        written = [
            (params[one.name], one.opts[0])
            for one in self.params
            if one.name in WRITTEN
            and one.param_type_name == "option"
            and params.get(one.name) not in (None, "", STDOUT)
        ]
        check_apart(*written)


def _at_option(error: HopsimError, settings: Sequence[str] | None) -> HopsimError:
    """Return an error of an overridden number at the `--set` that was typed; any other as it is."""
    if not isinstance(error, ConfigError) or not error.where.startswith(OVERRIDE):
        return error
    named = set(re.findall(r"[\w.]+", f"{error.where} {error.what}"))
    typed = [one for one in settings or () if one.partition("=")[0].strip() in named]
    if not typed:
        return error
    return ConfigError(
        error.what, where=f"--set {' --set '.join(typed)}", hint=error.hint, source=error.source
    )


class Group(TyperGroup):
    """A command of commands; a name that is none of them is told in JSON too."""

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the sentence that stands for it in a list of commands, whole."""
        del limit
        return super().get_short_help_str(WHOLE_HELP)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the name."""
        with _usage_told(ctx, args):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of a name."""
        with _usage_told(ctx, args):
            return super().resolve_command(ctx, args)


@contextmanager
def _usage_told(ctx: Any, args: Sequence[str]) -> Generator[None]:
    """Tell an error of usage in JSON, where JSON is asked for; as text typer tells it itself."""
    # The parser takes words away from what it is given.
    args = tuple(args)
    target = _json_target(args)
    try:
        yield
    except Exception as error:
        if isinstance(error, USAGE_ERROR):
            reword(error, args)
            what: str = getattr(error, "format_message", error.__str__)()
            told = ConfigError(what, hint=f"{ctx.command_path} --help")
            _write_error(ctx, target, told, 2, "UsageError")
        raise


def _json_target(args: Sequence[str]) -> str | None:
    """Return the value of `--json`: what cannot be parsed has no parameters to ask."""
    target: str | None = None
    for k, word in enumerate(args):
        if word == "--":
            break
        if word == JSON_OPTION and k + 1 < len(args):
            target = args[k + 1]
        elif word.startswith(f"{JSON_OPTION}="):
            target = word.partition("=")[2]
    return target


def _write_error(
    ctx: Any, target: str | None, error: HopsimError, code: int, kind: str = ""
) -> None:
    """Tell the error in JSON too, where JSON was asked for.

    Args:
        kind: a name for what is no exception of hopsim's.
    """
    if target is None:
        return
    from hopsim.cli.output import error_content, write_json

    content = error_content(error)
    if kind:
        content["kind"] = kind
    try:
        write_json(target, {"command": _full_name(ctx), "exit_code": code, "error": content})
    except HopsimError as second:
        # One cause is told once.
        if error.where != JSON_OPTION:
            typer.echo(str(second), err=True)


def _full_name(ctx: Any) -> str:
    """Return the command as one types it after `hopsim`: `config show`."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(names)

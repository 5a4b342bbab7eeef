"""The `hopsim` command: one file for each sub-command; heavy imports happen inside them.

Exit codes: 0 clean, 1 hazard or mismatch, 2 usage or configuration, 3 deadlock, 4 PTX that is not modelled,
5 device error.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hopsim.cli import (
    attention,
    calibrate,
    check,
    compare,
    config,
    convolution,
    diff,
    explain,
    fp8,
    gemm,
    isa,
    ladder,
    layout,
    learn,
    lint,
    micro,
    mutate,
    record,
    run,
    surroundings,
    zoo,
)
from hopsim.cli.command import Command, Group
from hopsim.cli.encoding import settle_streams

app = typer.Typer(
    cls=Group,
    name="hopsim",
    help=(
        "Run Hopper PTX (sm_90a) on a simulated H100: the bits it gives, the races it has, the cycles it takes.\n\n"
        "Exit codes: 0 clean, 1 hazard or mismatch, 2 usage or configuration, 3 deadlock, 4 PTX that is not modelled,"
        " 5 device error."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("gemm", cls=Command)(gemm.gemm)
app.command("ladder", cls=Command)(ladder.ladder)
app.command("fp8", cls=Command)(fp8.fp8)
app.command("attention", cls=Command)(attention.attention)
app.command("convolution", cls=Command)(convolution.convolution)
app.command("run", cls=Command)(run.run)
app.command("diff", cls=Command)(diff.diff)
app.command("check", cls=Command)(check.check)
app.command("mutate", cls=Command)(mutate.mutate)
app.command("learn", cls=Command)(learn.learn)
app.command("explain", cls=Command)(explain.explain)
app.command("lint", cls=Command)(lint.lint)
app.command("isa", cls=Command)(isa.isa)
app.command("compare", cls=Command)(compare.compare)
app.command("micro", cls=Command)(micro.micro)
app.command("calibrate", cls=Command)(calibrate.calibrate)
app.command("record", cls=Command)(record.record)
app.add_typer(layout.app, name="layout")
app.add_typer(surroundings.app, name="surroundings")
app.add_typer(config.app, name="config")
app.add_typer(zoo.app, name="zoo")


def _version(wanted: bool) -> None:
    if wanted:
        # The package's own number; nothing inside it imports the facade by name.
        typer.echo(f"hopsim {sys.modules['hopsim'].__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options before the sub-command."""


def main() -> None:
    """Run the command line; `hopsim.__main__` is the entry point of the script."""
    settle_streams()
    app()

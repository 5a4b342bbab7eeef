"""`hopsim config show|validate`: hardware numbers with their units and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopsim.cli.command import Command, Group
from hopsim.cli.options import JsonOption, SetOption, overrides

if TYPE_CHECKING:
    from hopsim.config import HardwareConfig
    from hopsim.report.columns import Columns

app = typer.Typer(
    cls=Group,
    help="Show or check hardware configurations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME|PATH", help="A configuration's name, or a TOML file.")
]


@app.command("show", cls=Command)
def show(
    name: NameArgument = "h100-sxm",
    settings: SetOption = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print a TOML file that loads to the same numbers.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Print each number: key, value as written, what the simulator reads, and its source."""
    from rich.text import Text

    from hopsim.cli.output import Output
    from hopsim.config import dump, load

    output = Output(json_file)
    hardware = load(name, overrides(settings))
    output.show(Text(dump(hardware).rstrip("\n")) if toml else facts_table(hardware))
    output.finish({"command": "config show", "config": hardware.name, "facts": _facts(hardware)}, 0)


@app.command("validate", cls=Command)
def validate(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|PATH", help="A name or a TOML file; by default all there are."
        ),
    ] = None,
    settings: SetOption = None,
    json_file: JsonOption = None,
) -> None:
    """Check a configuration: keys, units, ranges, and that each number has a source."""
    from rich.text import Text

    from hopsim.cli.output import Output
    from hopsim.config import guesses, load, names

    output = Output(json_file)
    checked: list[dict[str, Any]] = []
    for one in [name] if name is not None else names():
        hardware = load(one, overrides(settings))
        count, guessed = len(hardware.facts), len(guesses(hardware))
        checked.append({"config": one, "values": count, "guesses": guessed})
        output.show(Text(f"{one}: ok, {count} values, {guessed} of them guesses"))
    output.finish({"command": "config validate", "configs": checked}, 0)


def facts_table(hardware: HardwareConfig) -> Columns:
    """Return what `config show` prints: names and numbers in full, sources beside or below them."""
    from hopsim.config import show as rows
    from hopsim.report.columns import LEAST_SENTENCE, Column, Columns, Kind, Words

    number = Column(kind=Kind.NUMBER, is_left=True)
    table = Columns(Column(), number, number, Column(kind=Kind.NOTE), least_note=LEAST_SENTENCE)
    for fact, (key, written, read, source) in zip(hardware.facts, rows(hardware), strict=True):
        # Names and lists of numbers may fold, a number may not.
        cell = Words if isinstance(fact.value, str | tuple) else str
        table.add_row(key, cell(written), cell(read), source)
    return table


def _facts(hardware: HardwareConfig) -> list[dict[str, Any]]:
    return [
        {
            "key": fact.key, "text": fact.text, "value": fact.value, "unit": fact.unit,
            "source": fact.source, "guess": fact.guess, "origin": fact.origin,
        }
        for fact in hardware.facts
    ]  # fmt: skip

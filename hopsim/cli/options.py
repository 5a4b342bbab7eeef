"""The options that several commands share, each declared once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import typer

from hopsim.errors import ConfigError


class RunSchedule(StrEnum):
    """Who decides what happens next."""

    TIMED = "timed"
    IN_ORDER = "in-order"
    SEEDED = "seeded"
    ADVERSARIAL = "adversarial"


class Warm(StrEnum):
    """What a launch before left in the caches."""

    NOTHING = "nothing"
    CODE = "code"
    MEMORY = "memory"


class Numerics(StrEnum):
    """How tensor cores sum."""

    HOPPER = "hopper"
    FLOAT32 = "float32"


class Backend(StrEnum):
    """Where a kernel runs."""

    SIM = "sim"
    CUDA = "cuda"


def _named_file(path: Path) -> Path:
    """Return the path of a PTX text; `-` would be taken for a file of that name.

    Raises: typer.BadParameter: it is `-`.
    """
    if str(path) == "-":
        raise typer.BadParameter(
            "expected the name of a file, got -; standard input is /dev/stdin here"
        )
    return path


PtxArgument = Annotated[
    Path, typer.Argument(metavar="FILE.ptx", help="PTX text.", callback=_named_file)
]
JsonOption = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write everything as JSON; - is standard output."),
]
GpuOption = Annotated[
    str,
    typer.Option(
        "--gpu", metavar="NAME|PATH", help="Hardware configuration: a name, or a TOML file."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace one number, e.g. dram.bandwidth=4.8TB/s. Repeatable.",
    ),
]
RunScheduleOption = Annotated[
    RunSchedule,
    typer.Option("--run-schedule", help="timed predicts cycles; the others try legal orders."),
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", metavar="N", min=0, help="Of random inputs and of the seeded schedule."),
]
ValuesOption = Annotated[
    bool, typer.Option("--values/--no-values", help="Compute data, or only time and order.")
]
CheckOption = Annotated[
    bool, typer.Option("--check/--no-check", help="Look for races and missing fences.")
]
NumericsOption = Annotated[
    Numerics,
    typer.Option(
        "--numerics", help="hopper: the tensor core's bits; float32: faster, approximate."
    ),
]
MaxCyclesOption = Annotated[
    int | None,
    typer.Option(
        "--max-cycles",
        metavar="N",
        min=1,
        help="End a timed run after so many cycles (other runs: steps).",
    ),
]
WarmOption = Annotated[
    Warm,
    typer.Option(
        "--warm",
        help="What a timed run finds in the caches: nothing, its code, or code and memory (as far as L2 holds it).",
    ),
]
TraceOption = Annotated[
    str | None,
    typer.Option(
        "--trace", metavar="FILE", help="Save a Perfetto timeline (compressed if FILE ends in .gz)."
    ),
]
LinesOption = Annotated[
    int | None,
    typer.Option(
        "--lines", metavar="N", min=1, help="Show the N PTX lines where warps spend most time."
    ),
]
BackendOption = Annotated[
    Backend, typer.Option("--backend", help="The simulator, or a real sm_90 device.")
]


def refuse(context: typer.Context, parameters: Iterable[str], form: str, hint: str) -> None:
    """Refuse options that one form of a command would ignore, even where they name the default.

    Args:
        parameters: names of parameters of the command's function.
        form: the form of the command, as one types it.
        hint: of the other form, for which they are.
    Raises: ConfigError: one is given.
    """
    unused = set(parameters)
    for parameter in context.command.params:
        if parameter.name in unused and _is_typed(context, parameter.name or ""):
            option = parameter.opts[0]
            raise ConfigError(
                f"{form} does not use {option}", where=option, hint=f"leave {option} out, or {hint}"
            )


def given(context: typer.Context, parameters: Iterable[str]) -> list[str]:
    """Return the options of a command line among these parameters, as one would type them again."""
    words: list[str] = []
    wanted = set(parameters)
    for parameter in context.command.params:
        name = parameter.name or ""
        value: object = context.params.get(name)
        if name not in wanted or not _is_typed(context, name):
            continue
        option = parameter.opts[0]
        if value is True:
            words.append(option)
        else:
            many = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
            for one in many:
                words += [option, str(one)]
    return words


def _is_typed(context: typer.Context, parameter: str) -> bool:
    """Whether a parameter stands on the command line, even with what is its default."""
    source = context.get_parameter_source(parameter)
    # By its name: typer brings its own copy of the class or takes click's, by its version.
    return source is not None and source.name == "COMMANDLINE"


def extents(text: str, count: int, option: str, example: str, *, least: int = 1) -> tuple[int, ...]:
    """Return so many numbers that are joined by x, none of them less than `least`, which is 0 or 1.

    Raises: ConfigError: they are not, or one is less.
    """
    numbers = [int(part) for part in text.strip().split("x") if re.fullmatch(r"[0-9]{1,6}", part)]
    if len(numbers) != count or text.count("x") != count - 1 or min(numbers) < least:
        kind = "positive" if least else "whole"
        raise ConfigError(
            f"expected {count} {kind} numbers joined by x, got {text!r}",
            where=option,
            hint=f"{option} {example}",
        )
    return tuple(numbers)


def overrides(settings: list[str] | None) -> dict[str, str]:
    """Return `--set` options as a dictionary.

    Raises: ConfigError: one is not KEY=VALUE, or a key is given twice.
    """
    table: dict[str, str] = {}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value:
            raise ConfigError(
                f"expected KEY=VALUE, got {setting!r}",
                where="--set",
                hint="--set dram.bandwidth=4.8TB/s",
            )
        if key in table:
            raise ConfigError(f"{key} is set twice", where="--set")
        table[key] = value
    return table

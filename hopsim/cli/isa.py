"""`hopsim isa`: the support matrix, derived from the declared instruction forms."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hopsim.cli.options import JsonOption
from hopsim.errors import ConfigError

if TYPE_CHECKING:
    from hopsim.isa.support import SupportRow


def isa(
    word: Annotated[
        str,
        typer.Argument(
            metavar="FILTER", help="How an instruction begins: wgmma, cp.async.bulk, ld.global."
        ),
    ] = "",
    json_file: JsonOption = None,
) -> None:
    """List the instruction forms that are modelled, with their choices, unit and source."""
    from hopsim.cli.output import Output
    from hopsim.isa.support import support_matrix
    from hopsim.report.support import support_table

    output = Output(json_file)
    rows = support_matrix(word) or _spelt(word, support_matrix())
    if not rows:
        opcodes = sorted(
            {row.name for row in support_matrix()}
            | {row.name.split(".")[0] for row in support_matrix()}
        )
        near = difflib.get_close_matches(word, opcodes, n=3, cutoff=0.5)
        raise ConfigError(
            f"no modelled instruction begins with {word!r}",
            hint=", ".join(near) if near else "hopsim isa without a filter lists all",
        )
    output.show(support_table(rows))
    forms = [
        {
            **row._asdict(),
            "slots": [{"name": n, "choices": c, "optional": o} for n, c, o in row.slots],
        }
        for row in rows
    ]
    output.finish({"command": "isa", "filter": word, "forms": forms}, 0)


def _spelt(word: str, rows: Sequence[SupportRow]) -> list[SupportRow]:
    """Return the forms whose modifiers may be those behind an opcode: `ld.global` is a form of `ld`."""
    found: list[SupportRow] = []
    for row in rows:
        if not word.startswith(f"{row.name}."):
            continue
        fixed = re.sub(r"\{[^}]*\}", "", row.syntax.partition(" ")[0]).split(".")
        choices = {
            part for _, spellings, _ in row.slots for one in spellings for part in one.split(".")
        }
        if choices.union(fixed).issuperset(word.removeprefix(f"{row.name}.").split(".")):
            found.append(row)
    return found

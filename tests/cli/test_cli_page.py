"""The end of docs/cli.md lists every command and option as `--help` has them; HOPSIM_UPDATE_GOLDEN=1 writes it anew."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from typer.main import get_command

from hopsim.cli.app import app
from tests.cli.golden import assert_golden

PAGE = Path(__file__).parents[2] / "docs/cli.md"
BEGIN, END = "<!-- options: made by tests/cli/test_cli_page.py -->\n", "<!-- /options -->\n"
OF_SEVERAL = 3
"""Options with the same words in so many commands are described once."""


def commands(command: Any, name: str = "hopsim") -> Iterator[tuple[str, Any]]:
    """Yield each command that does something, with its whole name."""
    if hasattr(command, "commands"):
        for word, inner in command.commands.items():
            yield from commands(inner, f"{name} {word}")
    else:
        yield name, command


def value_of(kind: Any) -> str:
    """Return what stands for a value of a parameter's type: its choices, N for numbers, else the type's name."""
    if get_args(kind):  # X | None, list[X] | None
        return value_of(get_args(kind)[0])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(member.value) for member in kind)
    return {int: "N", float: "X", str: "TEXT", Path: "PATH"}[kind]


def written(option: Any, kind: Any) -> str:
    """Return an option or argument as one types it."""
    if option.param_type_name == "argument":
        shown = (option.metavar or option.name.upper()).strip("[].") + (
            "..." if option.nargs == -1 else ""
        )
        return f"`{shown}`" if option.required else f"`[{shown}]`"
    names = " / ".join([*option.opts, *option.secondary_opts])
    return f"`{names}`" if option.is_flag else f"`{names} {option.metavar or value_of(kind)}`"


def default(option: Any) -> str:
    """Return what holds where an option is not given; empty where that is nothing."""
    if option.required:
        return "needed"
    if option.secondary_opts and option.default is not None:
        return f"`{(option.opts if option.default else option.secondary_opts)[0]}`"
    if option.default is None or option.default == "" or option.default is False:
        return ""
    return f"`{getattr(option.default, 'value', option.default)}`"


def rows_of(command: Any) -> list[tuple[str, Any]]:
    """Return each parameter of a command with its row of the table."""
    kinds = get_type_hints(inspect.unwrap(command.callback))
    cells = [(written(p, kinds[p.name]), default(p), p.help) for p in command.params]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    return list(zip(lines, command.params, strict=True))


def section() -> str:
    found = [(name, command, rows_of(command)) for name, command in commands(get_command(app))]
    seen = Counter(line for _, _, rows in found for line, _ in rows)
    shared = {line for line, times in seen.items() if times >= OF_SEVERAL and "`--" in line}
    head = ["", "| | default | |", "|---|---|---|"]
    lines = [
        "Options that several commands share:",
        *head,
        *(line for line in seen if line in shared),
    ]
    for name, command, rows in found:
        own = [line for line, _ in rows if line not in shared]
        more = [f"`{option.opts[0]}`" for line, option in rows if line in shared]
        lines += ["", f"### {name}", "", " ".join(command.help.split())]
        lines += [*head, *own] if own else []
        lines += ["", f"{'Also' if own else 'Takes'} {', '.join(more)}."] if more else []
    return "\n".join(lines) + "\n"


def test_the_page_has_every_command_and_option() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin
    assert end
    assert_golden(before + begin + section() + end + after, PAGE)


def test_every_command_writes_json() -> None:
    without = [
        name
        for name, command in commands(get_command(app))
        if "--json" not in {word for option in command.params for word in option.opts}
    ]
    assert without == []


def test_the_launch_file_of_the_page_launches_the_kernel_of_the_readme(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    ptx, launch = tmp_path / "scale.ptx", tmp_path / "scale.toml"
    ptx.write_text(readme.split('PTX = """')[1].split('"""')[0], encoding="utf-8")
    launch.write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        app(["run", str(ptx), "--args", str(launch)])
    assert ended.value.code == 0
    assert "verdict       clean" in capsys.readouterr().out
    assert np.load(tmp_path / "x.npy").shape == (64,)

"""`hopsim micro`: microbenchmarks, simulated beside measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopsim.cli.options import Backend, BackendOption, GpuOption, JsonOption, SetOption, overrides
from hopsim.errors import ConfigError

if TYPE_CHECKING:
    from hopsim.kernels.micro.clocked import Benchmark
    from hopsim.report.columns import Columns


def micro(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A group, or part of a benchmark's name; lists all without one."
        ),
    ] = "",
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Put what an H100 gave beside it.")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="FOLDER", help="Where the recordings are.")
    ] = Path("tests/silicon"),
    backend: BackendOption = Backend.SIM,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run microbenchmarks and print cycles, cycles a step and bytes a cycle."""
    from rich.text import Text

    from hopsim.cli.launching import make_gpu
    from hopsim.cli.output import Output
    from hopsim.kernels.micro.recording import GROUPS, run
    from hopsim.report.launch import changed_table

    output = Output(json_file)
    if not name:
        lines = [f"{group}: {words}" for group, words in GROUPS.items()]
        output.show(
            Text("\n".join([*lines, "hopsim micro GROUP, or a part of a benchmark's name"]))
        )
        output.finish({"command": "micro", "groups": dict(GROUPS)}, 0)
        return
    chosen = _chosen(name)
    measured = _recorded(folder) if recorded else {}
    device: Any = make_gpu(backend, gpu, settings)
    # A simulation is the same every time; a device settles.
    options: dict[str, Any] = {"repeats": 0, "check": False} if backend is Backend.SIM else {}
    changes = overrides(settings)
    if changes:
        output.show(*changed_table(changes))
    content: list[dict[str, Any]] = []
    for one in chosen:
        row = run(device, one, **options)
        real = measured.get(one.name)
        row.pop("table", None)
        content.append({**row, "recorded": real})
        output.show(Text(f"{one.name}: {one.what}"), _table(row, real, backend.value))
    output.finish(
        {"command": "micro", "set": changes, "backend": backend.value, "benchmarks": content}, 0
    )


def _chosen(name: str) -> list[Benchmark]:
    from hopsim.kernels.micro.recording import GROUPS, benchmarks

    if name in GROUPS:
        return benchmarks(name)
    found = [one for one in benchmarks() if name in one.name]
    if not found:
        raise ConfigError(
            f"no microbenchmark has {name!r} in its name", hint=f"a group: {', '.join(GROUPS)}"
        )
    return found


def _recorded(folder: Path) -> dict[str, dict[str, Any]]:
    from hopsim.kernels.micro.calibration import MICRO
    from hopsim.kernels.recordings import read_recording

    file = folder / "micro.json"
    if not file.exists():
        raise ConfigError(f"there is no {file}", hint="tests/silicon of a checkout: --folder")
    return {row["name"]: row for row in read_recording(file, MICRO)}


def _table(row: dict[str, Any], real: dict[str, Any] | None, backend: str) -> Columns:
    """Return the figures that say most: rates, else cycles a step, else cycles."""
    from hopsim.report.columns import Column, Columns, Kind

    kind = next(one for one in ("bytes_per_clk", "slopes", "cycles") if row.get(one))
    words = {"bytes_per_clk": "bytes a clock", "slopes": "cycles a step", "cycles": "cycles"}[kind]
    heads = (backend, *(("recorded", "difference") if real else ()))
    table = Columns(Column(words), *(Column(head, Kind.NUMBER) for head in heads))
    for label, value in row[kind].items():
        cells = [label, f"{value:,.1f}"]
        wanted = (real or {}).get(kind, {}).get(label)
        if wanted:
            cells += [f"{wanted:,.1f}", f"{100 * (value - wanted) / wanted:+.0f} %"]
        table.add_row(*cells)
    return table

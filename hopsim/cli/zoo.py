"""`hopsim zoo`: small wrong programs and their mended twins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopsim.cli.command import Command, Group
from hopsim.cli.options import JsonOption

if TYPE_CHECKING:
    from hopsim.zoo.silicon import Recording
    from hopsim.zoo.twin import Twin

app = typer.Typer(
    cls=Group,
    help="Small wrong PTX programs and their mended twins: list, show, run, record on silicon.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of a twin.")]
NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Of twins, or rules; all of them.")
]


def _chosen(names: list[str] | None) -> list[Twin]:
    from hopsim.zoo.catalog import TWINS, twin_named, twins_of

    if not names:
        return list(TWINS)
    found: list[Twin] = []
    for name in names:
        found += twins_of(name) or [twin_named(name)]
    return found


def _one(name: str) -> Twin:
    """Return the twin of that name, or the only one of that rule.

    Raises: ConfigError: there is none, or the rule has several.
    """
    from hopsim.errors import ConfigError
    from hopsim.zoo.catalog import twin_named, twins_of

    of_rule = twins_of(name)
    if len(of_rule) > 1:
        raise ConfigError(
            f"{name} has {len(of_rule)} twins", hint=", ".join(twin.name for twin in of_rule)
        )
    return of_rule[0] if of_rule else twin_named(name)


def _content(twin: Twin, recording: Recording) -> dict[str, Any]:
    return {
        "name": twin.name, "rule": twin.rule, "story": twin.story, "incident": twin.incident,
        "expected": list(twin.expected), "verdict": twin.verdict, "missed": twin.missed,
        "silicon": recording.silicon(twin), "sanitizer": recording.sanitizer(twin),
    }  # fmt: skip


@app.command("list", cls=Command)
def list_twins(names: NamesArgument = None, json_file: JsonOption = None) -> None:
    """List the twins with their rule, what silicon does, and the incident they are modelled on."""
    from hopsim.cli.output import Output
    from hopsim.report.zoo import zoo_table
    from hopsim.zoo.silicon import read_recording

    output = Output(json_file)
    twins, recording = _chosen(names), read_recording()
    output.show(zoo_table(twins, recording))
    content = [_content(twin, recording) for twin in twins]
    output.finish({"command": "zoo list", "twins": content}, 0)


@app.command("show", cls=Command)
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of a twin, or a rule that has one alone.")
    ],
    ptx: Annotated[
        str | None, typer.Option("--ptx", metavar="bad|good", help="Print that PTX text, whole.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Show a twin: its story, and the lines that the bad and the good program differ by."""
    from hopsim.cli.output import STDOUT, Output, write_stdout
    from hopsim.errors import ConfigError
    from hopsim.report.zoo import twin_page
    from hopsim.zoo.silicon import read_recording

    output, twin = Output(json_file), _one(name)
    if ptx not in (None, "bad", "good"):
        raise ConfigError(
            f"expected bad or good, got {ptx!r}", where="--ptx", hint="--ptx bad, or --ptx good"
        )
    recording = read_recording()
    if ptx is None:
        output.show(*twin_page(twin, recording))
    elif json_file != STDOUT:
        write_stdout(twin.ptx(ptx == "good"))
    content = {
        "command": "zoo show", **_content(twin, recording),
        "bad": twin.ptx(is_good=False), "good": twin.ptx(is_good=True),
    }  # fmt: skip
    output.finish(content, 0)


@app.command("run", cls=Command)
def run(names: NamesArgument = None, json_file: JsonOption = None) -> None:
    """Check twins on one run each: the bad one must give its rule, the good one nothing."""
    from hopsim.cli.output import Output
    from hopsim.report.zoo import trial_content, trial_table
    from hopsim.zoo.trial import try_twin

    output = Output(json_file)
    trials = [try_twin(twin) for twin in _chosen(names)]
    output.show(trial_table(trials))
    code = 0 if all(trial.is_right for trial in trials) else 1
    output.finish({"command": "zoo run", "twins": [trial_content(one) for one in trials]}, code)


@app.command("record", cls=Command)
def record(
    names: NamesArgument = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Of each twin.")] = 20,
    device: Annotated[
        int, typer.Option("--device", metavar="N", min=0, help="Number of the device.")
    ] = 0,
    sanitizer: Annotated[
        str | None,
        typer.Option("--sanitizer", metavar="PROGRAM", help="compute-sanitizer, to record it too."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Instead of the zoo's own.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Run twins on a real sm_90 device and write down what happens; entries of other twins stay."""
    from dataclasses import asdict
    from datetime import UTC, datetime

    from hopsim.cli.output import Output, check_target, write_file
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.zoo.silicon import RECORDING, Recording, read_recording, recording_text
    from hopsim.zoo.silicon import record as record_twins

    output, path = Output(json_file), file or RECORDING
    check_target(path, "--file")
    before = read_recording(path)
    with CudaGpu(device) as gpu:
        made_with = {"device": gpu.config_name, "date": datetime.now(UTC).date().isoformat()}
        entries = record_twins(gpu, _chosen(names), runs, sanitizer, output.show)
    write_file(path, recording_text(Recording(made_with, before.entries | entries)), "--file")
    output.show(f"{len(entries)} twins recorded in {path}")
    content: dict[str, Any] = {"command": "zoo record", "file": str(path), **made_with}
    content["twins"] = {twin: asdict(entry) for twin, entry in entries.items()}
    output.finish(content, 0)


@app.command("silicon", cls=Command)
def silicon(
    name: NameArgument,
    good: Annotated[bool, typer.Option("--good", help="The good twin.")] = False,
    device: Annotated[
        int, typer.Option("--device", metavar="N", min=0, help="Number of the device.")
    ] = 0,
    json_file: JsonOption = None,
) -> None:
    """Run one twin once on a real device, in this process: for tools that watch a process."""
    from hopsim.cli.output import Output
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.explore.case import launch
    from hopsim.zoo.catalog import twin_named

    output = Output(json_file)
    case = twin_named(name).case(good)
    launch(case, case.kernel(), CudaGpu(device, isolate=False), timing=False)
    output.finish({"command": "zoo silicon", "name": name, "good": good}, 0)


@app.command("page", cls=Command)
def page(
    file: Annotated[Path, typer.Argument(metavar="FILE.md", help="To write: docs/zoo.md.")],
    json_file: JsonOption = None,
) -> None:
    """Write the page that compares hopsim, silicon and compute-sanitizer."""
    from hopsim.cli.output import Output, check_target, write_file
    from hopsim.report.zoo import comparison_page
    from hopsim.zoo.catalog import ROOMS
    from hopsim.zoo.silicon import read_recording

    output = Output(json_file)
    check_target(file, str(file))
    write_file(file, comparison_page(ROOMS, read_recording()), str(file))
    output.show(f"the page is in {file}")
    output.finish({"command": "zoo page", "file": str(file)}, 0)

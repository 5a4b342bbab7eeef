"""`hopsim run FILE.ptx --args FILE.toml`: launch any PTX with arguments described in a small TOML."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopsim.cli.options import (
    Backend,
    BackendOption,
    CheckOption,
    GpuOption,
    JsonOption,
    LinesOption,
    MaxCyclesOption,
    Numerics,
    NumericsOption,
    PtxArgument,
    RunSchedule,
    RunScheduleOption,
    SeedOption,
    SetOption,
    TraceOption,
    ValuesOption,
    Warm,
    WarmOption,
    overrides,
)
from hopsim.errors import ConfigError, MachineFault

if TYPE_CHECKING:
    from hopsim.cli.launch_file import LaunchFile
    from hopsim.cli.output import Output
    from hopsim.isa.program.kernel import Kernel
    from hopsim.launch.arrays import DeviceArray
    from hopsim.report.comparison import Comparison
    from hopsim.report.facts import Row


def run(
    file: PtxArgument,
    args: Annotated[
        Path | None,
        typer.Option(
            "--args",
            "--launch",
            metavar="FILE.toml",
            help="Grid, block, arrays and arguments: see docs/cli.md.",
        ),
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print such a file for the kernel, to be filled in.")
    ] = False,
    entry: Annotated[
        str | None,
        typer.Option("--entry", metavar="NAME", help="Kernel to launch, if the file has several."),
    ] = None,
    values: ValuesOption = True,
    check: CheckOption = True,
    numerics: NumericsOption = Numerics.HOPPER,
    seed: SeedOption = 0,
    run_schedule: RunScheduleOption = RunSchedule.TIMED,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    max_cycles: MaxCyclesOption = None,
    warm: WarmOption = Warm.NOTHING,
    trace: TraceOption = None,
    lines: LinesOption = None,
    json_file: JsonOption = None,
    backend: BackendOption = Backend.SIM,
) -> None:
    """Launch a kernel of a PTX file; save and compare arrays as the TOML says."""
    from hopsim.cli.expected_bits import (
        Expected,
        code_with,
        compare_arrays,
        plain,
        read_expected,
    )
    from hopsim.cli.file_case import no_launch_file, only_entry
    from hopsim.cli.launch_file import make_arguments, read_launch_file
    from hopsim.cli.launch_template import launch_template
    from hopsim.cli.launching import (
        launch_json,
        launch_options,
        make_gpu,
        progress_bar,
        save_trace,
        show_lines,
    )
    from hopsim.cli.output import Output
    from hopsim.cli.toml_words import of_launch_file
    from hopsim.isa.program.kernel import load
    from hopsim.report.launch import exit_code, launch_report

    output = Output(json_file)
    if template and args is not None:
        raise ConfigError(
            "--template writes a launch file, and one is given",
            where="--args",
            hint="leave --args out, or --template",
        )
    module = load(file)
    if template:
        kernel = only_entry(module, entry)
        text = launch_template(kernel)
        output.show(text)
        output.finish({"command": "run", "file": str(file), "template": text}, 0)
        return
    if args is None:
        raise no_launch_file(file, "run", "--args")
    described = read_launch_file(args)
    expected: Expected = {}
    if values:
        _check_saves(described)
        expected = read_expected(described)
    kernel = only_entry(module, entry or described.entry)
    if backend is Backend.SIM:
        _require_modelled(kernel)
    device = make_gpu(backend, gpu, settings, lines=lines)
    options = launch_options(
        run_schedule,
        values=values,
        check=check,
        numerics=numerics,
        seed=seed,
        max_cycles=max_cycles,
        warm=warm,
        trace=trace,
        lines=lines,
    )
    # A device computes whatever it is asked for: its arrays hold what the file says.
    fills = values or backend is Backend.CUDA
    arguments, arrays = make_arguments(described, device, seed, fills=fills)
    try:
        with progress_bar(kernel.name) as tell, of_launch_file():
            result = device.launch(
                kernel, described.grid, described.block, described.cluster, arguments, described.shared_bytes,
                progress=tell, **options,
            )  # fmt: skip
    except MachineFault as fault:
        _show_printed(output, fault.printed)
        raise
    comparisons: list[Comparison] = []
    saved: list[Row] = []
    outcome: list[Row] = []
    if values:
        comparisons, outcome = compare_arrays(result, described, arrays, expected)
        saved = _save(output, described, arrays)
    else:
        outcome, saved = _without_values(described)
    _show_printed(output, result.printed)
    code = code_with(exit_code(result), comparisons)
    output.show(
        launch_report(
            result,
            outcome=outcome,
            checks=check,
            last=[*saved, *save_trace(output, result, trace)],
            path=str(file),
            changes=overrides(settings),
        )
    )
    content = {
        **show_lines(output, device, lines),
        "file": str(file),
        "comparisons": plain(comparisons),
    }
    output.finish(launch_json("run", result, content, checks=check, settings=settings), code)


def _show_printed(output: Output, printed: str) -> None:
    """Show what the threads of a launch printed."""
    from rich.text import Text

    if printed:
        output.show(Text(printed.removesuffix("\n")))


def _require_modelled(kernel: Kernel) -> None:
    """Tell what is not modelled before the arguments are looked at.

    Raises: NotModelled: some instruction is not.
    """
    len(kernel.instructions)


def _without_values(described: LaunchFile) -> tuple[list[Row], list[Row]]:
    """Return the lines that say what of the launch file a run without values leaves out: comparisons, saves."""
    arrays = described.arrays
    compared = [name for name, spec in arrays.items() if spec.compare is not None]
    kept = [name for name, spec in arrays.items() if spec.save is not None]
    why = "without values there are none"
    return (
        [("bits", f"{', '.join(compared)} not compared: {why}")] if compared else [],
        [("saved", f"nothing of {', '.join(kept)}: {why}")] if kept else [],
    )


def _check_saves(described: LaunchFile) -> None:
    """Find out before the run that an array cannot be saved after it.

    Raises: ConfigError.
    """
    from hopsim.cli.output import check_apart, check_targets

    places = {name: f"{described.path}: arrays.{name}" for name in described.arrays}
    saves = [(spec.save, f"{places[name]}: save") for name, spec in described.arrays.items()]
    check_targets(*saves)
    used: list[tuple[Path | None, str]] = [(described.path, "the launch file")]
    used += [(spec.compare, f"{places[name]}: compare") for name, spec in described.arrays.items()]
    for save in saves:
        for one in used:
            check_apart(one, save)


def _save(output: Output, described: LaunchFile, arrays: dict[str, DeviceArray]) -> list[Row]:
    """Save arrays, and return the lines that say so; the output tells later of those that cannot be written."""
    import numpy as np

    from hopsim.cli.output import write_file

    rows: list[Row] = []
    for name, spec in described.arrays.items():
        if spec.save is None:
            continue
        stream = io.BytesIO()
        np.save(stream, arrays[name].numpy(), allow_pickle=False)
        with output.saving():
            write_file(spec.save, stream.getbuffer(), f"{described.path}: arrays.{name}: save")
            rows.append(("saved" if not rows else "", f"{name} to {spec.save}"))
    return rows

"""`hopsim check FILE.ptx --launch FILE.toml`: is every order of this program safe, and if not, which line is missing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from hopsim.cli.options import (
    GpuOption,
    JsonOption,
    Numerics,
    NumericsOption,
    PtxArgument,
    SetOption,
    given,
    overrides,
    refuse,
)

OF_A_REPLAY = ("entry", "inputs_seed", "strict", "scopes", "numerics", "gpu", "settings")
"""Parameters that say what is run and how it is judged: one needs them again to see an order again."""

OF_MANY_ORDERS = ("seeds", "jobs")
"""Parameters that one order alone has no use for."""


def check(
    context: typer.Context,
    file: PtxArgument,
    launch: Annotated[
        Path | None,
        typer.Option(
            "--launch",
            "--args",
            metavar="FILE.toml",
            help="Grid, block, arrays, arguments: see docs/cli.md.",
        ),
    ] = None,
    entry: Annotated[
        str | None,
        typer.Option("--entry", metavar="NAME", help="Kernel to launch, if the file has several."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds",
            metavar="N",
            min=0,
            help="Legal orders to try beside the adversarial one; 0 tries none.",
        ),
    ] = 16,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="Try this one order only, and check it."),
    ] = None,
    inputs_seed: Annotated[
        int, typer.Option("--inputs-seed", metavar="N", min=0, help="Of random input arrays.")
    ] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Read every contested rule strictly.")
    ] = False,
    scopes: Annotated[
        bool, typer.Option("--scopes", help="Demand .cluster scope between CTAs everywhere.")
    ] = False,
    suppress: Annotated[
        list[str] | None,
        typer.Option("--suppress", metavar="HSnnn[@LINE]", help="Leave a finding out. Repeatable."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Leave out what FILE knows.")
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option(
            "--write-baseline", metavar="FILE", help="Write the findings, and accept them."
        ),
    ] = None,
    sarif: Annotated[
        Path | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Processes for the orders.")
    ] = 2,
    tries: Annotated[
        int,
        typer.Option(
            "--tries", metavar="N", min=1, help="Runs spent on making the schedule small."
        ),
    ] = 200,
    numerics: NumericsOption = Numerics.HOPPER,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    json_file: JsonOption = None,
) -> None:
    """Check a kernel by the PTX memory model on one run, then try other legal orders for changed values."""
    from hopsim.cli.baseline import read_baseline
    from hopsim.cli.expected_bits import code_with, compare_arrays, plain, read_expected
    from hopsim.cli.file_case import FileCase, no_launch_file
    from hopsim.cli.output import Output, check_targets, write_file
    from hopsim.cli.toml_words import of_launch_file
    from hopsim.explore.examine import examine
    from hopsim.explore.sweep import Hardware, Order
    from hopsim.hazards.facts import CheckOptions
    from hopsim.hazards.rules import RULES
    from hopsim.report.check import check_content, check_report, exit_code_of_check, judged
    from hopsim.report.sarif import sarif_log
    from hopsim.report.suppressions import (
        BASELINE_FORMAT,
        fingerprints,
        parse_suppression,
        triage,
    )

    output = Output(json_file)
    if seed is not None:
        refuse(context, OF_MANY_ORDERS, "hopsim check --seed", "--seed")
    if launch is None:
        raise no_launch_file(file, "check", "--launch")
    check_targets((sarif, "--sarif"), (write_baseline, "--write-baseline"))
    suppressions = [parse_suppression(text, RULES) for text in suppress or ()]
    known = read_baseline(baseline) if baseline is not None else []
    case = FileCase(file, launch, entry, inputs_seed)
    kernel = case.kernel()
    expected = read_expected(case.described)
    options = CheckOptions(strict=strict)
    if scopes:
        options = CheckOptions(strict, mbarrier_scope="always", tma_acquire_scope=True)
    changes = overrides(settings)
    with of_launch_file():
        done = examine(
            case, kernel=kernel, hardware=Hardware(gpu, changes, numerics.value), options=options, seeds=seeds,
            only=None if seed is None else Order("seeded", seed), processes=jobs, tries=tries,
        )  # fmt: skip
    result, schedules = done.result, done.schedules
    if write_baseline is not None:
        known = fingerprints(result.kernel, result.hazards)
    sorted_out = triage(result.hazards, result.kernel, suppressions, known)
    comparisons, outcome = compare_arrays(result, case.described, done.arrays, expected)
    code = code_with(exit_code_of_check(result, sorted_out, schedules), comparisons)
    words = ["hopsim", "check", str(file), "--launch", str(launch), *given(context, OF_A_REPLAY)]
    output.show(
        check_report(
            result,
            sorted_out,
            schedules,
            str(file),
            kernel.module.lines,
            shlex.join(words),
            changes,
            outcome,
        )
    )
    if write_baseline is not None:
        accepted = {"format": BASELINE_FORMAT, "findings": known}
        with output.saving():
            write_file(write_baseline, json.dumps(accepted, indent=1) + "\n", "--write-baseline")
    if sarif is not None:
        log = sarif_log(judged(result, sorted_out), sorted_out, str(file))
        with output.saving():
            write_file(sarif, json.dumps(log, indent=1, sort_keys=True) + "\n", "--sarif")
    content = check_content(result, sorted_out, schedules, str(file))
    output.finish({**content, "set": changes, "comparisons": plain(comparisons)}, code)

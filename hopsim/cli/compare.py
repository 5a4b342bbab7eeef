"""`hopsim compare`: predicted beside measured, for recorded programs, or for one kernel and an Nsight Compute export."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopsim.cli.options import GpuOption, JsonOption, SetOption, overrides, refuse
from hopsim.errors import ConfigError

if TYPE_CHECKING:
    from hopsim.cli.known_predictions import KnownPredictions
    from hopsim.kernels.measured.again import Key
    from hopsim.kernels.measured.predict import Prediction
    from hopsim.kernels.measured.sets import Measured
    from hopsim.report.accuracy import Row


class Role(StrEnum):
    """What a set of measured programs is for."""

    CALIBRATION = "calibration"
    JUDGING = "judging"


FOLDER = Path("tests/silicon")
GPU = "h100-sxm"
QUICK_SIZE = 2048
"""The largest problem of a quick comparison."""
PLOTS = (".svg", ".html")
"""Kinds of plots that are drawn."""
OF_RECORDED = (
    "folder", "only", "role", "quick", "largest", "jobs", "known", "earlier", "page", "plot",
)  # fmt: skip
"""Parameters that only `--recorded` uses."""
OF_PROGRAM = ("launch", "entry", "ncu", "device")
"""Parameters that only the comparison of one program uses."""


def compare(
    context: typer.Context,
    ptx: Annotated[
        Path | None,
        typer.Argument(metavar="PTX", help="One program; needs --args, and --ncu or --device."),
    ] = None,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded", help="All programs that were measured on an H100; no GPU is needed."
        ),
    ] = False,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="FOLDER", help="Where the recordings are.")
    ] = FOLDER,
    only: Annotated[
        str, typer.Option("--only", metavar="TEXT", help="Programs whose name has this in it.")
    ] = "",
    role: Annotated[Role | None, typer.Option("--role", help="Programs of this set alone.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Nothing larger than 2048 cubed.")] = False,
    largest: Annotated[
        int | None,
        typer.Option("--largest", min=1, metavar="N", help="Nothing larger than N cubed."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Processes.")] = 2,
    known: Annotated[
        Path | None,
        typer.Option(
            "--known",
            metavar="FILE",
            help="Keep predictions here, and take those of unchanged models from it.",
        ),
    ] = None,
    earlier: Annotated[
        bool,
        typer.Option(
            "--earlier",
            help="Take those of earlier models from it too; the page marks them. All anew takes hours.",
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", metavar="FILE", help="Write a page, and its plot beside it: docs/accuracy.md."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Write the plot: .svg or .html.")
    ] = None,
    launch: Annotated[
        Path | None,
        typer.Option(
            "--args",
            "--launch",
            metavar="FILE.toml",
            help="How to launch the program, as in hopsim run.",
        ),
    ] = None,
    entry: Annotated[
        str, typer.Option("--entry", metavar="NAME", help="Of the program, if it has several.")
    ] = "",
    ncu: Annotated[
        Path | None,
        typer.Option("--ncu", metavar="FILE", help="What ncu --csv --page raw wrote."),
    ] = None,
    device: Annotated[
        int | None, typer.Option("--device", metavar="N", min=0, help="Run it on this device too.")
    ] = None,
    gpu: GpuOption = GPU,
    settings: SetOption = None,
    json_file: JsonOption = None,
) -> None:
    """Compare predicted with measured cycles and counters."""
    if recorded == (ptx is not None):
        raise ConfigError(
            "expected one of --recorded and a program, got both"
            if recorded
            else "what is to be compared?",
            hint="hopsim compare --recorded, or hopsim compare KERNEL.ptx --args FILE",
        )
    if ptx is not None:
        refuse(context, OF_RECORDED, "hopsim compare KERNEL.ptx", "hopsim compare --recorded")
        from hopsim.cli.compare_one import compare_one

        compare_one(ptx, launch, entry, ncu, device, gpu, overrides(settings), json_file)
        return
    refuse(
        context, OF_PROGRAM, "hopsim compare --recorded", "hopsim compare KERNEL.ptx --args FILE"
    )
    if earlier and known is None:
        raise ConfigError(
            "predictions of earlier models are taken from a file, and none is given",
            where="--earlier",
            hint="--known FILE, or leave --earlier out",
        )
    _recorded(
        folder,
        only,
        role,
        _largest(quick, largest),
        jobs,
        known,
        earlier,
        page,
        plot,
        gpu,
        overrides(settings),
        json_file,
    )


def _largest(quick: bool, largest: int | None) -> int | None:
    """Return the size that both options leave; None: any."""
    if not quick:
        return largest
    return QUICK_SIZE if largest is None else min(QUICK_SIZE, largest)


def _recorded(
    folder: Path,
    only: str,
    role: Role | None,
    largest: int | None,
    jobs: int,
    known: Path | None,
    takes_earlier: bool,
    page: Path | None,
    plot: Path | None,
    gpu: str,
    settings: dict[str, str],
    json_file: str | None,
) -> None:
    from hopsim.cli.known_predictions import KnownPredictions
    from hopsim.cli.output import Output, check_targets
    from hopsim.kernels.measured.again import read as read_again
    from hopsim.kernels.measured.sets import load_sets
    from hopsim.report.accuracy import figures, figures_text, rows_table
    from hopsim.report.launch import changed_table

    output = Output(json_file)
    _check_suffixes(page, plot)
    picture = page.with_suffix(".svg") if page is not None else None
    check_targets((page, "--page"), (picture, "--page"), (plot, "--plot"), (known, "--known"))
    cases = [
        case
        for case in load_sets(folder)
        if only in case.program.name and role in (None, case.role)
        and case.cycles is not None and (largest is None or case.flop <= 2.0 * largest**3)
    ]  # fmt: skip
    if not cases:
        raise ConfigError(
            "no measured program is chosen", hint="leave out --only, --role, --quick or --largest"
        )
    kept = KnownPredictions(known, gpu, settings, takes_earlier)
    predictions = _predict(cases, jobs, kept, gpu, settings)
    others = read_again(folder)
    rows = [
        _row(case, one, others, kept.is_earlier(case))
        for case, one in zip(cases, predictions, strict=True)
    ]
    output.show(*changed_table(settings), rows_table(rows))
    content: dict[str, Any] = {
        "command": "compare",
        "config": gpu,
        "set": settings,
        "rows": [_plain(row) for row in rows],
    }
    for name in sorted({row.role for row in rows}):
        found = figures([row for row in rows if row.role == name])
        output.show(figures_text(name, found))
        content[name] = {
            "cases": found.cases, "failed": found.failed, "mape_percent": found.mape, "bias_percent": found.bias,
            "worst_percent": found.worst.error if found.worst else None, "kendall_least": found.kendall,
            "kendall_mean": found.mean_kendall,
            "kendall_clear": found.clear_kendall, "regret_percent": found.regret, "dram_percent": found.dram_error,
        }  # fmt: skip
    with output.saving():
        chosen = chosen_by(folder, only, role, largest, gpu)
        _write_pages(rows, page, plot, chosen, settings)
    output.finish(content, 0)


def _check_suffixes(page: Path | None, plot: Path | None) -> None:
    """Refuse a plot of a kind that is not drawn, and a page that its own plot would overwrite.

    Raises: ConfigError.
    """
    from hopsim.cli.output import check_suffix

    if plot is not None:
        check_suffix(plot, "--plot", PLOTS)
    if page is not None and page.suffix == ".svg":
        raise ConfigError(
            f"expected a name that does not end in .svg, which its plot has, got {page}",
            where="--page",
            hint=f"--page {page.with_suffix('.md')}",
        )


def _predict(
    cases: list[Measured], jobs: int, kept: KnownPredictions, gpu: str, settings: dict[str, str]
) -> list[Prediction]:
    from hopsim.cli.output import terminal
    from hopsim.kernels.measured.predict import predict_all

    missing = [case for case in cases if kept.of(case) is None]
    console = terminal(stderr=True)

    def progress(number: int, case: Measured, one: Prediction) -> None:
        kept.add(case, one)
        if console.is_terminal:
            console.print(
                f"{number}/{len(missing)} {case.program.name} {case.size}: {one.seconds:.1f} s"
            )

    predict_all(missing, gpu, settings, jobs, progress)
    found = [kept.of(case) for case in cases]
    return [one for one in found if one is not None]


def _row(case: Measured, one: Prediction, others: Mapping[Key, float], is_earlier: bool) -> Row:
    from hopsim.kernels.measured.again import key
    from hopsim.report.accuracy import Row

    assert case.cycles is not None, case
    return Row(
        case.program.name, case.role, case.size, case.cycles, one.cycles, case.spread, case.counters, one.counters,
        one.error, others.get(key(case.program.ptx_sha256, case.size, case.grid)), is_earlier,
    )  # fmt: skip


def _plain(row: Row) -> dict[str, Any]:
    return {
        "kernel": row.program, "set": row.role, "size": list(row.size), "measured_cycles": row.measured,
        "predicted_cycles": row.predicted, "error_percent": None if row.predicted is None else row.error,
        "measured_again_cycles": row.again, "is_of_earlier_model": row.is_earlier,
        "measured_counters": dict(row.expected), "predicted_counters": dict(row.got), "note": row.note,
    }  # fmt: skip


def _write_pages(
    rows: list[Row],
    page: Path | None,
    plot: Path | None,
    chosen: str,
    settings: dict[str, str],
) -> None:
    from hopsim.cli.output import write_file
    from hopsim.report.accuracy_page import html, scatter
    from hopsim.report.accuracy_page import page as page_text

    if plot is not None:
        write_file(plot, html(rows) if plot.suffix == ".html" else scatter(rows), "--plot")
    if page is not None:
        picture = page.with_suffix(".svg")
        write_file(picture, scatter(rows), "--page")
        write_file(page, page_text(rows, about(chosen, settings), picture.name), "--page")


def chosen_by(folder: Path, only: str, role: Role | None, largest: int | None, gpu: str) -> str:
    """Return the options that chose other programs, or another chip, than the page without any has."""
    given = [
        ("--folder", "" if folder == FOLDER else str(folder)), ("--only", only), ("--role", role or ""),
        ("--largest", largest or ""), ("--gpu", "" if gpu == GPU else gpu),
    ]  # fmt: skip
    return " ".join(f"{option} {shlex.quote(str(value))}" for option, value in given if value)


def about(chosen: str, settings: dict[str, str]) -> list[str]:
    """Return what stands above the figures of a page.

    Args:
        chosen: options that choose programs or a chip.  settings: hardware numbers that were replaced.
    """
    found = [
        "Cycles are Nsight Compute's `gpc__cycles_elapsed.max` of one launch with cold caches, clocks not locked, on one "
        "NVIDIA H100 80GB HBM3 (SXM), driver 580.159.04; of the judging set the median of three launches. The simulator "
        "starts with a cold L2 and counts the fixed cost of a launch, as Nsight Compute does.",
        "The calibration set (ten Triton bf16 kernels, four sizes) and the microbenchmarks of `tests/silicon/micro.json` "
        "are what the numbers of `configs/h100-sxm.toml` may be fitted to. Nothing is fitted to the judging set: hopsim's "
        "own schedules (`gemm_*`) and further Triton kernels (`mm_*`: fp16, e4m3, persistent, loading through pointers). "
        "Clocks were read inside some of its kernels of 512 to 2048, 1000 x 1416 x 528 and 4000 x 3008 x 2064, and the "
        "machine code of those that load through pointers was read, to see what the model lacked; the numbers of what was "
        "found are those of microbenchmarks, of the calibration set and of that machine code.",
        "Kendall is tau-b within a size. Of clear pairs: of those alone whose measured cycles lie further apart than three "
        "launches of either did; silicon itself has no order for the others. Regret is what the kernel that the simulator "
        "likes best takes more than the best one.",
        "Make it again, without a GPU: `hopsim compare --recorded --page docs/accuracy.md`; with `--known "
        "docs/accuracy.json`, which holds every prediction and its counters, what has changed is simulated. "
        "Measure again, on an H100: `hopsim record tests/silicon --part gemm`.",
        "Another H100 of the same kind took the same programs, three launches each (`hopsim record tests/silicon --part "
        "again`): by so much devices differ, and their clocks from launch to launch; the figures say what no prediction can "
        "be held to.",
    ]
    if chosen:
        found.append(
            f"**Made with `{chosen}`: figures are those of the programs, and of the chip, that this chooses.**"
        )
    if settings:
        given = " ".join(f"--set {key}={value}" for key, value in settings.items())
        found.append(f"**Made with `{given}`: predictions are not those of the configuration.**")
    return found

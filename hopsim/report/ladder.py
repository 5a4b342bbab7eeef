"""The ladder as a table with bars: simulated time, and silicon's beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from hopsim.report.quantities import grouped
from hopsim.report.stalls import bar


@dataclass(frozen=True, slots=True)
class Rung:
    """One line of the ladder.

    Args:
        tile: of a CTA, with stages.
        bound: what bounds it.
        measured_tflops: on a device, None where it was not run.
        is_extrapolated: simulated for one wave only.
    """

    name: str
    tile: str
    cycles: int
    tflops: float
    bound: str
    measured_tflops: float | None = None
    is_extrapolated: bool = False


def ladder_table(rungs: Sequence[Rung]) -> Table:
    """Return the table: rates, gain over the rung before, what bounds each, and a bar for its rate."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("schedule", no_wrap=True)
    table.add_column("tile, stages", no_wrap=True)
    table.add_column("cycles", justify="right", no_wrap=True)
    table.add_column("TFLOP/s", justify="right", no_wrap=True)
    table.add_column("gain", justify="right", no_wrap=True)
    has_silicon = any(rung.measured_tflops is not None for rung in rungs)
    if has_silicon:
        table.add_column("device", justify="right", no_wrap=True)
        table.add_column("off", justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    table.add_column("", no_wrap=True)
    most = max((max(rung.tflops, rung.measured_tflops or 0.0) for rung in rungs), default=1.0)
    before: float | None = None
    for rung in rungs:
        about = "~" if rung.is_extrapolated else ""
        cells = [
            rung.name, rung.tile, f"{about}{grouped(rung.cycles)}", f"{about}{rung.tflops:.1f}",
            "" if before is None else percent(rung.tflops / before - 1),
        ]  # fmt: skip
        bars = Text(bar(rung.tflops / most), style="cyan")
        if has_silicon:
            device = rung.measured_tflops
            cells += ["" if device is None else f"{device:.1f}",
                      "" if device is None else percent(rung.tflops / device - 1)]  # fmt: skip
        table.add_row(*cells, rung.bound, bars)
        if rung.measured_tflops is not None:
            blank = [""] * (len(cells) + 1)
            table.add_row(*blank, Text(bar(rung.measured_tflops / most), style="green"))
        before = rung.tflops
    return table


def percent(part: float) -> str:
    """Return a signed share, such as `+12 %`."""
    return f"{100 * part:+.0f} %"

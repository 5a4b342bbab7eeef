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
        measured_tflops: on a device by events, launch included; None where it was not run.
        measured_cycles: of the kernel alone under Nsight Compute; None where that is not known.
        is_extrapolated: simulated for one wave only.
    """

    name: str
    tile: str
    cycles: int
    tflops: float
    bound: str
    measured_tflops: float | None = None
    is_extrapolated: bool = False
    measured_cycles: float | None = None

    @property
    def off(self) -> float | None:
        """How much more hopsim says than the device took: cycles if they are known, else the rate by events."""
        if self.measured_cycles is not None:
            return self.cycles / self.measured_cycles - 1
        return None if self.measured_tflops is None else self.tflops / self.measured_tflops - 1

    @property
    def device_tflops(self) -> float | None:
        """The rate to set beside `tflops`: of the device's cycles at the same clock, else by events."""
        if self.measured_cycles is not None:
            return self.tflops * self.cycles / self.measured_cycles
        return self.measured_tflops


def ladder_table(rungs: Sequence[Rung]) -> Table:
    """Return the table: rates, gain over the rung before, what bounds each, and a bar for its rate."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("schedule", no_wrap=True)
    table.add_column("tile, stages", no_wrap=True)
    table.add_column("cycles", justify="right", no_wrap=True)
    table.add_column("TFLOP/s", justify="right", no_wrap=True)
    table.add_column("gain", justify="right", no_wrap=True)
    has_silicon = any(rung.measured_tflops is not None for rung in rungs)
    has_cycles = any(rung.measured_cycles is not None for rung in rungs)
    if has_silicon:
        table.add_column("device", justify="right", no_wrap=True)
        table.add_column("off", justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    table.add_column("", no_wrap=True)
    most = max((max(rung.tflops, rung.device_tflops or 0.0) for rung in rungs), default=1.0)
    before: float | None = None
    for rung in rungs:
        about = "~" if rung.is_extrapolated else ""
        cells = [
            rung.name, rung.tile, f"{about}{grouped(rung.cycles)}", f"{about}{rung.tflops:.1f}",
            "" if before is None else percent(rung.tflops / before - 1),
        ]  # fmt: skip
        bars = Text(bar(rung.tflops / most), style="cyan")
        if has_silicon:
            cells += [_device(rung, has_cycles), "" if rung.off is None else percent(rung.off)]
        table.add_row(*cells, rung.bound, bars)
        if rung.device_tflops is not None:
            blank = [""] * (len(cells) + 1)
            table.add_row(*blank, Text(bar(rung.device_tflops / most), style="green"))
        before = rung.tflops
    return table


def _device(rung: Rung, has_cycles: bool) -> str:
    """Return what the device took, in the unit of its column."""
    if has_cycles:
        return "" if rung.measured_cycles is None else grouped(round(rung.measured_cycles))
    return "" if rung.measured_tflops is None else f"{rung.measured_tflops:.1f}"


def percent(part: float) -> str:
    """Return a signed share, such as `+12 %`."""
    return f"{100 * part:+.0f} %"

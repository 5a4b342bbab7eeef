"""The ladder as a table with bars: simulated time, and silicon's beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopsim.report.columns import Bar, Column, Columns, Kind
from hopsim.report.quantities import grouped, signed


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


def ladder_table(rungs: Sequence[Rung]) -> Columns:
    """Return the table: rates, gain over the rung before, what bounds each, and a bar for its rate."""
    has_silicon = any(rung.measured_tflops is not None for rung in rungs)
    has_cycles = any(rung.measured_cycles is not None for rung in rungs)
    numbers = ("cycles", "TFLOP/s", "gain", *(("device", "off") if has_silicon else ()))
    table = Columns(
        Column("schedule"),
        Column("tile, stages"),
        *(Column(name, Kind.NUMBER) for name in numbers),
        Column("bound by"),
        Column(kind=Kind.BAR),
    )
    most = max((max(rung.tflops, rung.device_tflops or 0.0) for rung in rungs), default=1.0)
    before: float | None = None
    for rung in rungs:
        about = "~" if rung.is_extrapolated else ""
        cells = [
            rung.name, rung.tile, f"{about}{grouped(rung.cycles)}", f"{about}{rung.tflops:.1f}",
            "" if before is None else percent(rung.tflops / before - 1),
        ]  # fmt: skip
        if has_silicon:
            cells += [_device(rung, has_cycles), "" if rung.off is None else percent(rung.off)]
        table.add_row(*cells, rung.bound, Bar(rung.tflops / most))
        if rung.device_tflops is not None:
            blank = [""] * (len(cells) + 1)
            table.add_row(*blank, Bar(rung.device_tflops / most, style="green"))
        before = rung.tflops
    return table


def _device(rung: Rung, has_cycles: bool) -> str:
    """Return what the device took, in the unit of its column."""
    if has_cycles:
        return "" if rung.measured_cycles is None else grouped(round(rung.measured_cycles))
    return "" if rung.measured_tflops is None else f"{rung.measured_tflops:.1f}"


def percent(part: float) -> str:
    """Return a signed share, such as `+12 %`."""
    return f"{signed(100 * part)} %"

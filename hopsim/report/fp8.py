"""The comparison of `fp8-scaled` and `fp8`: bits, errors, cycles."""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.kernels.fp8_scaled.errors import Outcome
from hopsim.report.columns import Column, Columns, Kind
from hopsim.report.launch import tflops


def fp8_table(outcomes: Sequence[Outcome], flops: int) -> Columns:
    """Return one row for each kernel; errors are relative to the size of a row of C."""
    numbers = ("cycles", "TFLOP/s", "error of the sums", "worst", "error in all", "worst")
    table = Columns(
        *(Column(name) for name in ("kernel", "verdict", "bits")),
        *(Column(name, Kind.NUMBER) for name in numbers),
    )
    for one in outcomes:
        cycles, time_us = one.result.cycles, one.result.time_us
        table.add_row(
            one.name,
            one.result.verdict,
            "reference" if one.is_exact else "differ",
            "-" if cycles is None else f"{cycles:,}",
            "-" if not time_us else f"{tflops(flops, time_us):.1f}",
            f"{one.sums.relative:.2e}",
            f"{one.sums.worst:.2e}",
            f"{one.whole.relative:.2e}",
            f"{one.whole.worst:.2e}",
        )
    return table

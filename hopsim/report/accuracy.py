"""How well predictions match measurements: errors, rank correlation within a problem size, regret, counters.

>>> pairs = {"a": (100.0, 90.0), "b": (200.0, 220.0), "c": (300.0, 330.0)}
>>> rows = [Row(name, "judging", (1, 1, 1), *pair) for name, pair in pairs.items()]
>>> figures(rows).mape, figures(rows).kendall
(10.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import mean
from typing import Final

from rich.text import Text

from hopsim.report.columns import Column, Columns, Kind, Words
from hopsim.report.quantities import grouped, plural

Size = tuple[int, int, int]
LARGE_BYTES: Final = 64e6
"""DRAM traffic is judged on cases that move more than this."""
RANKED: Final = 3
"""Fewer kernels of one size have no rank worth telling."""
DRAM: Final = ("dram__bytes_read.sum", "dram__bytes_write.sum")
COUNTERS: Final = {
    "HBM bytes read": "dram__bytes_read.sum",
    "HBM bytes written, 64 KB and more": "dram__bytes_write.sum",
    "L2 sectors read": "lts__t_sectors_op_read.sum",
    "L2 sectors written": "lts__t_sectors_op_write.sum",
    "L2 hit rate, %": "lts__t_sector_hit_rate.pct",
    "instructions": "smsp__inst_executed.sum",
    "wgmma instructions": "sm__inst_executed_pipe_tensor_op_gmma.sum",
    "bank conflicts, of all wavefronts": "l1tex__data_bank_conflicts_pipe_lsu.sum",
}
"""Counters that are put beside Nsight Compute's, by the words for them."""
LEAST: Final = {"dram__bytes_write.sum": 64e3}
"""Of these smaller counts say nothing."""
WHOLE: Final = {"l1tex__data_bank_conflicts_pipe_lsu.sum": "l1tex__data_pipe_lsu_wavefronts.sum"}
"""Errors of these are told as a share of another counter."""


@dataclass(frozen=True)
class Row:
    """One program on one problem.

    Args:
        program: its name.  role: `calibration` or `judging`.  size: M, N, K.
        measured: cycles on silicon.  predicted: of the simulator, None where it failed.
        spread: of several measurements, as a share; None for one.
        expected, got: counters of silicon and of the simulator.
        note: why it failed.
        again: cycles on another device of the same kind; None where it was not measured again.
        is_earlier: whether an earlier model predicted it.
    """

    program: str
    role: str
    size: Size
    measured: float
    predicted: float | None
    spread: float | None = None
    expected: Mapping[str, float] = field(default_factory=dict[str, float])
    got: Mapping[str, float] = field(default_factory=dict[str, float])
    note: str = ""
    again: float | None = None
    is_earlier: bool = False

    @property
    def predicted_words(self) -> str:
        """The predicted cycles, marked where an earlier model predicted them."""
        assert self.predicted is not None, self
        return grouped(self.predicted) + ("†" if self.is_earlier else "")

    @property
    def error(self) -> float:
        """Predicted less measured, in percent of measured."""
        assert self.predicted is not None, self
        return 100.0 * (self.predicted - self.measured) / self.measured


@dataclass(frozen=True, slots=True)
class Figures:
    """What a set of rows comes to; percentages.

    Args:
        cases: with a prediction.  failed: without.
        mape: mean of the absolute errors.  bias: mean error.  worst: the row with the largest one.
        within: how many are within 10 %.
        kendall: least rank correlation (tau-b) within a size, None where no size has enough kernels.
        mean_kendall: over the sizes.
        clear_kendall: the same of the pairs alone that silicon's measurements tell apart (`clear_kendall`).
        regret: largest over the sizes of what the kernel that the simulator likes best takes more than the best one.
        dram_error: largest error of DRAM bytes on cases that move more than 64 MB, None where there is none.
        dram_cases, dram_within: how many these are, and of them within 10 %.
    """

    cases: int
    failed: int
    mape: float
    bias: float
    worst: Row | None
    within: int
    kendall: float | None
    mean_kendall: float | None
    clear_kendall: float | None
    regret: float | None
    dram_error: float | None
    dram_cases: int
    dram_within: int


def figures(rows: Sequence[Row]) -> Figures:
    """Return the figures of rows."""
    done = [row for row in rows if row.predicted is not None]
    ranked = [group for group in by_size(done).values() if len(group) >= RANKED]
    taus = [kendall([r.measured for r in one], [r.predicted or 0.0 for r in one]) for one in ranked]
    large = [error for row in done if (error := dram_error(row)) is not None]
    return Figures(
        cases=len(done),
        failed=len(rows) - len(done),
        mape=mean(abs(row.error) for row in done) if done else 0.0,
        bias=mean(row.error for row in done) if done else 0.0,
        worst=max(done, key=lambda row: abs(row.error), default=None),
        within=sum(abs(row.error) <= 10.0 for row in done),
        kendall=min(taus, default=None),
        mean_kendall=mean(taus) if taus else None,
        clear_kendall=mean(map(clear_kendall, ranked)) if ranked else None,
        regret=max(map(regret, ranked), default=None),
        dram_error=max(large, key=abs, default=None),
        dram_cases=len(large),
        dram_within=sum(abs(error) <= 10.0 for error in large),
    )


def measured_again(rows: Iterable[Row]) -> list[Row]:
    """Return the rows as if another device had predicted them: what no simulator can be held to."""
    return [replace(row, predicted=row.again, got={}) for row in rows if row.again is not None]


def by_size(rows: Iterable[Row]) -> dict[Size, list[Row]]:
    """Return rows by problem, the smallest first."""
    found: dict[Size, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.size[0] * row.size[1] * row.size[2], row.size)):
        found.setdefault(row.size, []).append(row)
    return found


def kendall(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Kendall's rank correlation tau-b of two rankings.

    >>> kendall([1, 2, 3], [10, 30, 20])
    0.3333333333333333
    """
    agree = ties_x = ties_y = pairs = 0
    for i, j in combinations(range(len(x)), 2):
        a, b = x[i] - x[j], y[i] - y[j]
        pairs += 1
        ties_x += a == 0
        ties_y += b == 0
        agree += (a * b > 0) - (a * b < 0)
    scale = ((pairs - ties_x) * (pairs - ties_y)) ** 0.5
    return agree / scale if scale else 1.0


def clear_kendall(rows: Sequence[Row]) -> float:
    """Return the rank correlation of the pairs of rows whose measured cycles lie further apart than either's spread.

    A row measured once counts as one without spread.
    """
    agree = pairs = 0
    for one, other in combinations(rows, 2):
        apart = one.measured - other.measured
        if abs(apart) <= max(row.measured * (row.spread or 0.0) for row in (one, other)):
            continue
        pairs += 1
        found = (one.predicted or 0.0) - (other.predicted or 0.0)
        agree += (apart * found > 0) - (apart * found < 0)
    return agree / pairs if pairs else 1.0


def regret(rows: Sequence[Row]) -> float:
    """Return how much longer the kernel with the best prediction takes than the best one, in percent."""
    chosen = min(rows, key=lambda row: row.predicted or float("inf"))
    best = min(row.measured for row in rows)
    return 100.0 * (chosen.measured - best) / best


def dram_error(row: Row) -> float | None:
    """Return the error of DRAM bytes in percent; None where too few move, or they were not counted."""
    if not all(name in row.expected and name in row.got for name in DRAM):
        return None
    expected, got = (sum(side[name] for name in DRAM) for side in (row.expected, row.got))
    return 100.0 * (got - expected) / expected if expected > LARGE_BYTES else None


# --- tables ---------------------------------------------------------------------------------------


def size_words(size: Size) -> str:
    """Return `4096` for a cube, `16 x 4096 x 4096` for others."""
    m, n, k = size
    return str(m) if m == n == k else f"{m} x {n} x {k}"


def rows_table(rows: Sequence[Row]) -> Columns:
    """Return the rows: kernel, size, predicted, measured, error."""
    table = Columns(
        Column("kernel"),
        *(Column(name, Kind.NUMBER) for name in ("M x N x K", "predicted", "measured", "error")),
        Column("set"),
    )
    for row in rows:
        if row.predicted is None:
            values = ("-", grouped(row.measured), Words(row.note))
        else:
            values = (row.predicted_words, grouped(row.measured), f"{row.error:+.1f} %")
        table.add_row(row.program, size_words(row.size), *values, row.role)
    return table


def figures_text(title: str, found: Figures) -> Text:
    """Return the figures of a set in a few lines."""
    text = Text()
    text.append(f"{title}: ", style="bold")
    for number, line in enumerate(figure_lines(found)):
        text.append(("; " if number else "") + line)
    return text


def figure_lines(found: Figures) -> list[str]:
    """Return the figures of a set as phrases."""
    lines = [
        plural(found.cases, "case") + (f", {found.failed} not simulated" if found.failed else ""),
        f"MAPE {found.mape:.1f} %", f"mean error {found.bias:+.1f} %", f"{found.within} within 10 %",
    ]  # fmt: skip
    if found.worst is not None:
        worst = found.worst
        lines.append(f"worst {worst.error:+.1f} % ({worst.program}, {size_words(worst.size)})")
    if found.kendall is not None and found.mean_kendall is not None:
        lines.append(
            f"Kendall within a size {found.mean_kendall:.2f} (least {found.kendall:.2f}); "
            f"{found.clear_kendall:.2f} of pairs that silicon tells apart"
        )
    if found.regret is not None:
        lines.append(f"largest regret {found.regret:.1f} %")
    if found.dram_error is not None:
        lines.append(
            f"HBM bytes, {plural(found.dram_cases, 'case')} over 64 MB: {found.dram_within} within 10 %, "
            f"at most {abs(found.dram_error):.1f} % off"
        )
    return lines


def counter_table(expected: Mapping[str, float], got: Mapping[str, float]) -> Columns:
    """Return the counters that both sides know, side by side."""
    table = Columns(
        Column("counter"),
        *(Column(name, Kind.NUMBER) for name in ("predicted", "measured", "error")),
    )
    for name in sorted(expected.keys() & got.keys()):
        wanted, value = expected[name], got[name]
        error = f"{100 * (value - wanted) / wanted:+.1f} %" if wanted else "-"
        table.add_row(name, f"{value:,.6g}", f"{wanted:,.6g}", error)
    return table


def counter_errors(rows: Sequence[Row]) -> list[tuple[str, int, float, float]]:
    """Return for each counter: words, cases where silicon counted some, mean absolute error and bias in percent."""
    found: list[tuple[str, int, float, float]] = []
    for words, name in COUNTERS.items():
        whole, least = WHOLE.get(name, name), LEAST.get(name, 0.0)
        errors = [
            100.0 * (row.got[name] - row.expected[name]) / row.expected[whole]
            for row in rows
            if name in row.got and name in row.expected and row.expected.get(whole, 0.0) > least
        ]
        if errors:
            found.append((words, len(errors), mean(map(abs, errors)), mean(errors)))
    return found

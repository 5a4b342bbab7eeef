"""Two timed runs side by side: how much longer one takes, and what its warps and units did otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from hopsim.report.columns import Column, Columns, Kind
from hopsim.report.facts import Row, fact_table
from hopsim.report.quantities import grouped, share, signed, size, triple
from hopsim.report.stalls import LEAST_SHARE, MEANINGS

SECTOR_BYTES: Final = 32
NOT_THERE: Final = "-"
"""Of a fact or a number that one run does not have."""
REASONS_TOLD: Final = 3
LEAST_PART: Final = 0.05
"""Of the largest difference: what is less does not explain a run."""
OPCODES_SHOWN: Final = 12
BUSY: Final[Mapping[str, str]] = {
    "tensor cores busy": "hopsim__tensor_core_busy.pct",
    "mma.sync busy": "hopsim__mma_sync_busy.pct",
    "TMA busy": "hopsim__tma_busy.pct",
    "issue busy": "hopsim__issue_busy.pct",
    "L2 busy": "hopsim__l2_busy.pct",
    "HBM busy": "hopsim__dram_busy.pct",
    "L2 hit rate": "lts__t_sector_hit_rate.pct",
}
BYTES: Final[Mapping[str, tuple[str, int]]] = {
    "L2 read": ("lts__t_sectors_op_read.sum", SECTOR_BYTES),
    "L2 written": ("lts__t_sectors_op_write.sum", SECTOR_BYTES),
    "HBM read": ("dram__bytes_read.sum", 1),
    "HBM written": ("dram__bytes_write.sum", 1),
    "SM to SM": ("hopsim__dsmem_bytes.sum", 1),
}
COUNTS: Final[Mapping[str, str]] = {
    "instructions": "smsp__inst_executed.sum",
    "bank conflicts": "l1tex__data_bank_conflicts_pipe_lsu.sum",
}
OCCUPANCY: Final[Mapping[str, str]] = {
    "CTAs an SM": "ctas_per_sm",
    "warps an SM": "warps_per_sm",
    "registers a thread": "registers_per_thread",
    "shared bytes a CTA": "shared_bytes_per_cta",
    "SMs used": "sms_used",
}


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One run, as its JSON tells it.

    Args:
        name: what it is called here.
        facts: in words, of how it was run: kernel, launch, options.
        warps: of the launch.
        cycles: of the launch.  time_us: the same in microseconds.  tflops: where the problem is known.
        counters, stalls, occupancy: as a launch result has them.
        warp_cycles: of all warps by reason; from the shares where the run did not look at its lines.
        opcodes: warp cycles by opcode and reason; empty where the run did not look at its lines.
    """

    name: str
    facts: Mapping[str, str]
    warps: int
    cycles: int
    time_us: float
    tflops: float | None
    counters: Mapping[str, float]
    occupancy: Mapping[str, Any]
    warp_cycles: Mapping[str, float]
    opcodes: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Compared:
    """One number of both runs: in words, and as it is; None where a run does not have it."""

    name: str
    values: tuple[float | None, float | None]
    words: tuple[str, str]
    change: str


def launch_words(content: Mapping[str, Any]) -> str:
    """Return the shape of a launch."""
    words = f"grid {triple(tuple(content['grid']))}, block {triple(tuple(content['block']))}"
    cluster = tuple(content["cluster"])
    return words if cluster == (1, 1, 1) else f"{words}, cluster {triple(cluster)}"


def numbers(first: TimedRun, second: TimedRun) -> list[Compared]:
    """Return what was counted in either run, side by side."""
    both = (first, second)
    found = [_sum("cycles", first.cycles, second.cycles)]
    found.append(_beside("TFLOP/s", (first.tflops, second.tflops), lambda rate: f"{rate:.1f}"))
    for name, key in COUNTS.items():
        found.append(_sum(name, *(one.counters.get(key) for one in both)))
    totals = [sum(one.warp_cycles.values()) if one.warp_cycles else None for one in both]
    found += [_sum("warps", first.warps, second.warps), _sum("warp cycles", totals[0], totals[1])]
    for name, key in BUSY.items():
        a, b = (one.counters.get(key) for one in both)
        points = "" if a is None or b is None or a == b else f"{signed(b - a, 1)} points"
        found.append(replace(_beside(name, (a, b), lambda part: share(part / 100)), change=points))
    for name, (key, scale) in BYTES.items():
        a, b = (one.counters.get(key) for one in both)
        sizes = (None if a is None else a * scale, None if b is None else b * scale)
        found.append(_beside(name, sizes, size))
    for name, key in OCCUPANCY.items():
        found.append(_sum(name, *(one.occupancy.get(key) for one in both)))
    return [one for one in found if any(one.values)]


def _sum(name: str, a: float | None, b: float | None) -> Compared:
    return _beside(name, (a, b), grouped)


def _beside(
    name: str, values: tuple[float | None, float | None], words: Callable[[float], str]
) -> Compared:
    """Return two numbers side by side; what a run does not have did not change."""
    a, b = values
    told = (NOT_THERE if a is None else words(a), NOT_THERE if b is None else words(b))
    return Compared(name, values, told, "" if a is None or b is None else _percent(a, b))


def _percent(a: float, b: float) -> str:
    if a == b:
        return ""
    return f"{signed(100 * (b - a) / a, 1)} %" if a else "new"


def by_difference(
    first: Mapping[str, float], second: Mapping[str, float]
) -> list[tuple[str, float, float]]:
    """Return (name, cycles, cycles) of what takes time in either, the largest difference first."""
    least = LEAST_SHARE * max(sum(first.values()), sum(second.values()))
    names = [
        name
        for name in {**first, **second}
        if max(first.get(name, 0.0), second.get(name, 0.0)) >= least
    ]
    rows = [(name, first.get(name, 0.0), second.get(name, 0.0)) for name in names]
    return sorted(rows, key=lambda row: (-abs(row[2] - row[1]), row[0]))


def difference_report(first: TimedRun, second: TimedRun) -> list[RenderableType]:
    """Return the whole page: who is faster, what differs, and where the warps' time does."""
    parts: list[RenderableType] = [fact_table(verdict_rows(first, second))]
    parts += [Text(""), _facts_table(first, second), Text(""), _numbers_table(first, second)]
    if first.warp_cycles and second.warp_cycles:
        parts += [Text("\nwhere the warps' time differs, in warp cycles", style="bold")]
        parts.append(_reasons_table(first, second))
    if first.opcodes and second.opcodes:
        parts += [Text("\nand at which instructions", style="bold"), _opcodes_table(first, second)]
    return parts


def verdict_rows(first: TimedRun, second: TimedRun) -> list[Row]:
    """Return who is faster, by how much, and what has most to do with it."""
    a, b = first.cycles, second.cycles
    if a == b:
        return [("the same", f"{grouped(a)} cycles both")]
    fast, slow = (second, first) if b < a else (first, second)
    saved = slow.cycles - fast.cycles
    rows: list[Row] = [
        (
            "faster",
            f"{fast.name}: {grouped(fast.cycles)} cycles, {slow.name} {grouped(slow.cycles)};"
            f" {grouped(saved)} fewer, {slow.cycles / fast.cycles:.2f} times as fast",
        )
    ]
    problems = [one.facts.get("problem", "") for one in (first, second)]
    if problems[0] != problems[1]:
        rows.append(("but", "they do not do the same: the problems differ"))
    if first.warps != second.warps:
        more, few = (first, second) if first.warps > second.warps else (second, first)
        times = f"{more.name} has {more.warps / few.warps:.2f} times the warps"
        rows.append(("but", f"{times}: sums over warps say what they did, not who held whom up"))
        return rows
    if not (first.warp_cycles and second.warp_cycles):
        return rows
    less = [
        (reason, more - few)
        for reason, few, more in by_difference(fast.warp_cycles, slow.warp_cycles)
        if more > few
    ]
    less = [(reason, cycles) for reason, cycles in less if cycles >= less[0][1] * LEAST_PART]
    rows += [
        (
            "less" if k == 0 else "",
            f"{grouped(cycles)} warp cycles of {reason} ({MEANINGS.get(reason, reason)})",
        )
        for k, (reason, cycles) in enumerate(less[:REASONS_TOLD])
    ]
    return rows


def _facts_table(first: TimedRun, second: TimedRun) -> Columns:
    table = Columns(Column(), Column(first.name), Column(second.name))
    for name in {**first.facts, **second.facts}:
        a, b = first.facts.get(name, NOT_THERE), second.facts.get(name, NOT_THERE)
        if name == "kernel" or a != b:
            table.add_row(name, a, b)
    return table


def _numbers_table(first: TimedRun, second: TimedRun) -> Columns:
    table = Columns(
        Column(), *(Column(name, Kind.NUMBER) for name in (first.name, second.name, "change"))
    )
    for one in numbers(first, second):
        table.add_row(one.name, *one.words, one.change)
    return table


def _reasons_table(first: TimedRun, second: TimedRun) -> Columns:
    table = Columns(
        Column(),
        *(Column(name, Kind.NUMBER) for name in (first.name, second.name, "difference")),
        Column(kind=Kind.NOTE, style="dim"),
    )
    for reason, a, b in by_difference(first.warp_cycles, second.warp_cycles):
        difference = signed(b - a)
        table.add_row(reason, grouped(a), grouped(b), difference, MEANINGS.get(reason, ""))
    return table


def _opcodes_table(first: TimedRun, second: TimedRun) -> Columns:
    table = Columns(
        Column(),
        *(Column(name, Kind.NUMBER) for name in (first.name, second.name, "difference")),
        Column("mostly"),
    )
    sums = [
        {name: sum(cycles.values()) for name, cycles in run.opcodes.items()}
        for run in (first, second)
    ]
    for opcode, a, b in by_difference(sums[0], sums[1])[:OPCODES_SHOWN]:
        reasons = by_difference(first.opcodes.get(opcode, {}), second.opcodes.get(opcode, {}))
        table.add_row(
            opcode,
            grouped(a),
            grouped(b),
            signed(b - a),
            f"{reasons[0][0]} {signed(reasons[0][2] - reasons[0][1])}" if reasons else "",
        )
    return table


def difference_content(first: TimedRun, second: TimedRun) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "runs": [
            {
                "name": one.name,
                "facts": dict(one.facts),
                "cycles": one.cycles,
                "time_us": one.time_us,
            }
            for one in (first, second)
        ],
        "numbers": [
            {"name": one.name, "first": one.values[0], "second": one.values[1]}
            for one in numbers(first, second)
        ],
        "reasons": _json_rows(first.warp_cycles, second.warp_cycles),
        "opcodes": _json_rows(
            {name: sum(cycles.values()) for name, cycles in first.opcodes.items()},
            {name: sum(cycles.values()) for name, cycles in second.opcodes.items()},
        ),
    }


def _json_rows(first: Mapping[str, float], second: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return what both runs tell of; nothing where only one does."""
    if not (first and second):
        return []
    return [
        {"name": name, "first": a, "second": b, "difference": round(b - a, 3)}
        for name, a, b in by_difference(first, second)
    ]

"""The summary of a launch: how it was run, what came out, how long it took, what limited it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hopsim.report.deadlock import deadlock_story
from hopsim.report.facts import Row, fact_table, joined
from hopsim.report.hazards import hazard_findings
from hopsim.report.quantities import clock, grouped, plural, share, size, triple
from hopsim.report.stalls import stall_chart
from hopsim.results import LaunchResult, NotModelledNote

SECTOR_BYTES = 32
"""Nsight Compute counts L2 traffic in sectors. Source: Nsight Compute documentation, "Metrics Decoder"."""

# Notes that only repeat what the caller asked for; `beyond_choice` leaves them out.
CHOICES = ("values=False", "check=False")
_STYLES = {"clean": "green", "hazard": "red", "deadlock": "red", "not-modelled": "yellow"}


def beyond_choice(result: LaunchResult) -> tuple[NotModelledNote, ...]:
    """Return what was not modelled or not checked although the caller did not ask to leave it out."""
    return tuple(
        note for note in result.not_modelled if note.line or not note.why.startswith(CHOICES)
    )


def not_checked(result: LaunchResult, checks: bool = True) -> tuple[str, ...]:
    """Return what the caller's own options left out, in words.

    Args:
        checks: False where races were left out beside values: the result of a run without values does not know.
    """
    if result.backend != "sim":
        return ("races: a device cannot look for them, the simulator can",)
    left_out: list[str] = []
    if not result.values:
        left_out.append("values: no data was moved or computed (--no-values)")
    if not checks or (result.values and not result.checked):
        left_out.append("races: the hazard checker was off (--no-check)")
    if not result.timing:
        left_out.append(f"time: the schedule {result.schedule} knows no cycles")
    return tuple(left_out)


def exit_code(result: LaunchResult) -> int:
    """Return the exit code of a command that ran this launch.

    What the caller asked to leave out is no failure; an instruction outside the model is.
    """
    if result.verdict == "not-modelled" and not beyond_choice(result):
        return 0
    return result.exit_code


def launch_rows(result: LaunchResult) -> list[Row]:
    """Return how the launch was run."""
    shape = f"grid {triple(result.grid)}, block {triple(result.block)}"
    if result.cluster != (1, 1, 1):
        shape += f", cluster {triple(result.cluster)}"
    schedule = f"schedule {result.schedule}" if result.schedule else ""
    seed = f"seed {result.seed}" if result.schedule == "seeded" else ""
    values = f"numerics {result.numerics}" if result.values else "no values"
    return [
        ("kernel", result.kernel),
        ("launch", shape),
        ("run", joined([schedule, seed, values, f"on {result.config}"])),
    ]


def changed_rows(changes: Mapping[str, str]) -> list[Row]:
    """Return the hardware numbers that were replaced for a run: what it says is not of the configuration it names."""
    return [
        ("set" if k == 0 else "", f"{key} = {value}")
        for k, (key, value) in enumerate(changes.items())
    ]


def changed_table(changes: Mapping[str, str]) -> list[RenderableType]:
    """Return the numbers that were replaced as a table of their own, for pages without a summary; nothing without any."""
    return [fact_table(changed_rows(changes))] if changes else []


def verdict_rows(result: LaunchResult, checks: bool = True) -> list[Row]:
    """Return the verdict, and what was not checked."""
    hazards = sum(hazard.level == "hazard" for hazard in result.hazards)
    notes = len(result.hazards) - hazards
    found = joined(
        [plural(hazards, "hazard") if hazards else "", plural(notes, "note") if notes else ""]
    )
    if result.checked and not found:
        found = "no hazards"
    text = Text(result.verdict, style=_STYLES[result.verdict])
    text.append(f": {found}" if found else "", style="default")
    rows: list[Row] = [("verdict", text)]
    rows += [
        ("not checked" if k == 0 else "", line)
        for k, line in enumerate(not_checked(result, checks))
    ]
    for k, note in enumerate(beyond_choice(result)):
        at = f"line {note.line}: {note.text}  " if note.line else ""
        rows.append(("not modelled" if k == 0 else "", f"{at}{note.why}"))
    return rows


def time_rows(result: LaunchResult, flops: int | None = None) -> list[Row]:
    """Return how long it took, or how far a run came that did not finish.

    Args:
        flops: additions and multiplications of the problem, for TFLOP/s.
    """
    parts: list[str] = []
    if result.cycles is not None:
        parts.append(f"{grouped(result.cycles)} cycles")
    if result.time_us is not None:
        at = f" at {clock(result.clock_hz)}" if result.clock_hz else ""
        parts.append(f"{result.time_us:.2f} us{at}")
    speed = None if flops is None else rate(result, flops)
    if speed is not None:
        parts.append(f"{speed:.1f} TFLOP/s")
    if not parts:
        return []
    if result.is_cut_off:
        return [("cut off", f"after {joined(parts)}; the kernel takes at least as long")]
    return [("time", joined(parts))]


def tflops(flops: int, time_us: float) -> float:
    """Return 10^12 operations a second."""
    return flops / time_us / 1e6


def rate(result: LaunchResult, flops: int) -> float | None:
    """Return the 10^12 operations a second of a launch; None where it did not finish, or has no time."""
    if not result.time_us or not result.is_finished:
        return None
    return tflops(flops, result.time_us)


def unfinished_rows(result: LaunchResult) -> list[Row]:
    """Return why there are no bits to compare; nothing where there are."""
    if result.is_finished:
        return []
    if result.faulted:
        why = "the run stopped at a fault"
    else:
        why = "the run was cut off" if result.is_cut_off else "the run came to a standstill"
    return [("bits", f"not compared: {why}")]


def memory_rows(counters: Mapping[str, int | float]) -> list[Row]:
    """Return busy units and bytes moved, as far as they were counted."""
    rows: list[Row] = []
    busy = [
        f"{word} {share(counters[name] / 100)}"
        for word, name in (
            ("tensor cores", "hopsim__tensor_core_busy.pct"),
            ("mma.sync", "hopsim__mma_sync_busy.pct"),
            ("TMA", "hopsim__tma_busy.pct"),
            ("issue", "hopsim__issue_busy.pct"),
            ("L2", "hopsim__l2_busy.pct"),
            ("HBM", "hopsim__dram_busy.pct"),
        )
        if counters.get(name)
    ]
    if busy:
        rows.append(("busy", joined(busy)))
    if "lts__t_sectors_op_read.sum" in counters:
        read = counters["lts__t_sectors_op_read.sum"] * SECTOR_BYTES
        written = counters.get("lts__t_sectors_op_write.sum", 0) * SECTOR_BYTES
        hit = counters.get("lts__t_sector_hit_rate.pct")
        rate = f"hit rate {share(hit / 100)}" if hit is not None else ""
        rows.append(("L2", joined([f"{size(read)} read", f"{size(written)} written", rate])))
    if "dram__bytes_read.sum" in counters:
        read, written = counters["dram__bytes_read.sum"], counters.get("dram__bytes_write.sum", 0)
        rows.append(("HBM", f"{size(read)} read, {size(written)} written"))
    if counters.get("hopsim__dsmem_bytes.sum"):
        rows.append(("SM to SM", size(counters["hopsim__dsmem_bytes.sum"])))
    conflicts = counters.get("l1tex__data_bank_conflicts_pipe_lsu.sum")
    if conflicts:
        rows.append(("conflicts", f"{grouped(conflicts)} shared-memory bank conflicts"))
    return rows


def occupancy_rows(result: LaunchResult) -> list[Row]:
    """Return how many CTAs an SM held and why not more."""
    held = result.occupancy
    if held is None:
        return []
    return [
        (
            "occupancy",
            f"{plural(held.ctas_per_sm, 'CTA')} an SM ({held.warps_per_sm} of {held.warps_max} warps), "
            f"limited by {held.limiter}; {plural(held.sms_used, 'SM')} used",
        ),
        (
            "",
            f"{held.registers_per_thread} registers a thread, {size(held.shared_bytes_per_cta)} shared memory a CTA",
        ),
    ]


def launch_report(
    result: LaunchResult,
    *,
    first: Sequence[Row] = (),
    outcome: Sequence[Row] = (),
    last: Sequence[Row] = (),
    flops: int | None = None,
    checks: bool = True,
    path: str = "",
    changes: Mapping[str, str] | None = None,
) -> RenderableType:
    """Return the whole summary of a launch.

    Args:
        first: rows above all.  outcome: rows above the verdict (comparisons).  last: rows at the end (files written).
        flops: of the problem.  path: of the PTX text.  changes: hardware numbers that were replaced, by key.
    """
    rows = [
        *first, *launch_rows(result), *changed_rows(changes or {}), *outcome, *verdict_rows(result, checks),
        *time_rows(result, flops),
        *memory_rows(result.counters), *occupancy_rows(result), *last,
    ]  # fmt: skip
    parts: list[RenderableType] = [fact_table(rows)]
    if result.stalls:
        parts += [Text("\nwhere the warps' time went", style="bold"), stall_chart(result.stalls)]
    if result.deadlock is not None:
        parts += [Text(""), deadlock_story(result.deadlock)]
    if result.hazards:
        parts += [Text(""), hazard_findings(result.hazards, path)]
    return Group(*parts)

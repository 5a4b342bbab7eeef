"""`hopsim diff A.json B.json`: two timed runs side by side, and why one of them is faster."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from hopsim.cli.options import JsonOption
from hopsim.errors import ConfigError, HopsimError
from hopsim.json_kinds import (
    ANYTHING,
    NUMBER,
    NUMBER_OR_TEXT,
    NUMBERS,
    SHAPE,
    TEXT,
    each,
    perhaps,
    rows,
    table_of,
    what_is_wrong,
)

if TYPE_CHECKING:
    from hopsim.report.difference import TimedRun

WARP: Final = 32
ISSUE_BUSY: Final = "hopsim__issue_busy.pct"
WRITTEN_BY: Final = "hopsim run, gemm or attention with --json FILE, or result.json() in Python"
NEEDED: Final = {
    "kernel": TEXT, "grid": SHAPE, "block": SHAPE, "cluster": SHAPE, "config": TEXT, "schedule": TEXT,
    "cycles": perhaps(NUMBER), "time_us": perhaps(NUMBER), "counters": NUMBERS, "stalls": NUMBERS, "deadlock": ANYTHING,
    "verdict": TEXT,
}  # fmt: skip
WITH_LINES: Final = table_of(
    warp_cycles=NUMBERS, lines=rows(table_of(text=TEXT, warp_cycles=NUMBERS))
)
TAKEN: Final = {
    "not_modelled": rows(table_of(why=TEXT)), "gemm": perhaps(each(ANYTHING)), "attention": perhaps(each(ANYTHING)),
    "set": each(ANYTHING), "tflops": perhaps(NUMBER), "line_times": perhaps(WITH_LINES),
    "occupancy": perhaps(each(NUMBER_OR_TEXT)),
}  # fmt: skip
"""What a run may have besides."""
PROBLEM: Final = ("m", "n", "k", "dtype", "heads", "seq_q", "seq_kv", "head_dim", "causal")
NOT_FACTS: Final = ("choice", "chosen", "flops", *PROBLEM)
OPCODE: Final = re.compile(r"(?:[\w$%]+:\s*)*(?:\{\s*)?(?:@!?%[\w$]+\s+)?([\w.:]+)")

RunArgument = Annotated[Path, typer.Argument(metavar="RUN.json", help="A timed run's JSON.")]


def diff(
    first: RunArgument,
    second: Annotated[Path, typer.Argument(metavar="OTHER.json", help="Another's.")],
    json_file: JsonOption = None,
) -> None:
    """Show two timed runs side by side: which is faster, and where its warps and units spend less."""
    from hopsim.cli.output import Output
    from hopsim.report.difference import difference_content, difference_report

    output = Output(json_file)
    names = (first.stem, second.stem)
    if names[0] == names[1]:
        names = (str(first), str(second))
    runs = [_run(path, name) for path, name in zip((first, second), names, strict=True)]
    output.show(*difference_report(runs[0], runs[1]))
    output.finish({"command": "diff", **difference_content(runs[0], runs[1])}, 0)


def _run(path: Path, name: str) -> TimedRun:
    """Read one run.

    Raises: ConfigError: the file cannot be read, is none of a launch, or has no time.
    """
    from hopsim.report.difference import TimedRun, launch_words
    from hopsim.results import was_cut_off

    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", where="diff", hint=WRITTEN_BY
        ) from None
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: {error}", where="diff", hint=WRITTEN_BY) from None
    table = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    of = ""
    missing = [key for key in NEEDED if key not in table]
    if missing and "command" in table:
        of = f", it is that of hopsim {table['command']}"
    elif wrong := what_is_wrong(table, NEEDED | TAKEN):
        of = f": {wrong}"
    if missing or of:
        raise ConfigError(
            f"{path} is not the JSON of one launch{of}", where="diff", hint=WRITTEN_BY
        )
    is_cut_off = was_cut_off(note["why"] for note in table.get("not_modelled", ()))
    if not table.get("cycles") or table["deadlock"] is not None or is_cut_off:
        raise ConfigError(
            f"{path} has no time to compare: verdict {table['verdict']}, schedule {table['schedule']}",
            where="diff",
            hint="a run with --run-schedule timed that comes to its end",
        )
    parameters: dict[str, Any] = table.get("gemm") or table.get("attention") or {}
    facts = {"kernel": table["kernel"], "launch": launch_words(table), "on": str(table["config"])}
    facts |= {f"set {key}": str(value) for key, value in table.get("set", {}).items()}
    if parameters:
        facts["problem"] = ", ".join(
            f"{key} {parameters[key]}" for key in PROBLEM if key in parameters
        )
    facts |= {key: str(value) for key, value in parameters.items() if key not in NOT_FACTS}
    lines: dict[str, Any] = table.get("line_times") or {}
    return TimedRun(
        name=name,
        facts=facts,
        warps=math.prod(table["grid"]) * -(-math.prod(table["block"]) // WARP),
        cycles=table["cycles"],
        time_us=table["time_us"],
        tflops=table.get("tflops"),
        counters=table["counters"],
        occupancy=table.get("occupancy") or {},
        warp_cycles=lines["warp_cycles"] if lines else _from_shares(table),
        opcodes=_by_opcode(lines.get("lines", [])),
    )


def _from_shares(table: Mapping[str, Any]) -> dict[str, float]:
    """Return warp cycles by reason, from the share of each and the slots that were issued.

    A slot is a cycle of one warp, and `selected` the share of all of them; what the tensor cores take from arithmetic beside
    them is counted as slots too, so that sums are up to some percent high.
    """
    from hopsim.config import load

    stalls: dict[str, float] = table["stalls"]
    if not stalls.get("selected") or ISSUE_BUSY not in table["counters"]:
        return {}
    try:
        device = load(table["config"], table.get("set") or {}).device
    except HopsimError:
        # A configuration of somebody else's: what the warps did stays unknown.
        return {}
    places = device.sm_count * device.subpartitions
    slots = table["counters"][ISSUE_BUSY] / 100 * places * table["cycles"]
    return {reason: part / stalls["selected"] * slots for reason, part in stalls.items()}


def _by_opcode(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return warp cycles by opcode and reason: what stands on which line differs between programs."""
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        opcode = OPCODE.match(line["text"])
        sums = found.setdefault(opcode[1] if opcode else line["text"], {})
        for reason, cycles in line["warp_cycles"].items():
            sums[reason] = sums.get(reason, 0.0) + cycles
    return found

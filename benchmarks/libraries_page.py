"""Write docs/libraries.md: python benchmarks/libraries_page.py [--jobs N] [--most FLOP] [--only COLLECTION]

Every launch of tests/silicon/libraries that a device has recorded is simulated, without values, and set beside what the
device took. No GPU is needed. docs/libraries.json keeps the predictions of the present model; those of another one are
made anew.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from hopsim.cli.model_hash import HASH_DIGITS, model_hash
from hopsim.kernels.measured import captured
from hopsim.kernels.measured.captured import COLLECTIONS, CYCLES, INSTRUCTIONS, Captured
from hopsim.report.ladder import percent
from hopsim.runtime.gpu import Gpu

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "silicon"
KNOWN = ROOT / "docs" / "libraries.json"
HEAD = ""


@dataclass(frozen=True, slots=True)
class Silicon:
    """A device on which launches were recorded: its configuration, what it is called, and its recordings."""

    config: str
    name: str
    folder: Path


DEVICES: Final = (
    Silicon("h100-sxm", "H100", FOLDER),
    Silicon("h200-sxm", "H200", FOLDER / "h200"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """The launches of a collection that a device has recorded."""

    collection: str
    device: Silicon
    cases: list[Captured]


def tables() -> list[Table]:
    """Return all there is, in the order of the page."""
    found: list[Table] = []
    for collection in COLLECTIONS:
        for device in DEVICES:
            if (device.folder / captured.file_of(collection)).exists():
                cases = [one for one in captured.load(device.folder, collection) if one.recorded]
                found.append(Table(collection, device, cases))
    return found


def simulate(config: str, folder: Path, collection: str, name: str) -> tuple[str, str, int, float]:
    (case,) = (one for one in captured.load(folder, collection) if one.name == name)
    result, _ = captured.run(Gpu(config), case, values=False, check=False)
    assert result.cycles
    return config, name, result.cycles, result.counters[INSTRUCTIONS]


def known() -> dict[str, Any]:
    """Return the predictions of the present model, by configuration."""
    held: dict[str, Any] = {}
    if KNOWN.exists():
        held = json.loads(KNOWN.read_text(encoding="utf-8"))
    for device in DEVICES:
        model = model_hash(device.config)[:HASH_DIGITS]
        if held.get(device.config, {}).get("model") != model:
            held[device.config] = {"model": model, "predicted": {}}
    return held


def figures(errors: list[float]) -> str:
    """Return what errors are in the mean and at most."""
    sizes = sorted(abs(one) for one in errors)
    return (
        f"MAPE {100 * fmean(sizes):.1f} %, median {100 * median(sizes):.1f} %, worst {percent(max(errors, key=abs))};"
        f" {sum(one <= 0.1 for one in sizes)} of {len(sizes)} within 10 %"
    )


def section(table: Table, predicted: dict[str, list[float]]) -> tuple[list[str], str]:
    """Return the lines of a table, and its summary alone."""
    rows = [
        "| launch | predicted | measured | error | instructions |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    by_program: dict[str, list[float]] = {}
    for case in table.cases:
        cycles = median(case.measured[CYCLES])
        if case.name not in predicted:
            rows.append(f"| `{case.name}` | not simulated | {cycles:,.0f} | | |")
            continue
        found, instructions = predicted[case.name]
        errors = by_program.setdefault(case.program, [])
        errors.append(found / cycles - 1)
        more = instructions / median(case.measured[INSTRUCTIONS]) - 1
        rows.append(
            f"| `{case.name}` | {found:,} | {cycles:,.0f} | {percent(errors[-1])} | {percent(more)} |"
        )
    programs = ["| program | MAPE | worst |", "| --- | ---: | ---: |"]
    for name, errors in by_program.items():
        mean = 100 * fmean(abs(one) for one in errors)
        programs.append(f"| `{name}` | {mean:.1f} % | {percent(max(errors, key=abs))} |")
    title = f"{COLLECTIONS[table.collection]}, {table.device.name}"
    summary = figures([one for errors in by_program.values() for one in errors])
    return [f"## {title}", "", f"{summary}.", "", *programs, "", *rows, ""], f"{title}: {summary}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--most", type=float, default=1e12, metavar="FLOP", help="simulate no larger launch"
    )
    parser.add_argument("--only", choices=COLLECTIONS, help="simulate this collection alone")
    options = parser.parse_args()
    held, found = known(), tables()
    left = sorted(
        (case.row["flop"], table.device.config, table.device.folder, table.collection, case.name)
        for table in found
        for case in table.cases
        if options.only in (None, table.collection)
        and case.name not in held[table.device.config]["predicted"]
        and case.row["flop"] <= options.most
    )
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(simulate, *one[1:]) for one in left]):
            config, name, cycles, instructions = done.result()
            held[config]["predicted"][name] = [cycles, instructions]
            print(config, name, cycles, flush=True)
            KNOWN.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    lines = [HEAD]
    for table in found:
        text, summary = section(table, held[table.device.config]["predicted"])
        lines += text
        print(summary)
    (ROOT / "docs" / "libraries.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

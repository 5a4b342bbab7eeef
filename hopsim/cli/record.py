"""`hopsim record`: make the recordings of `tests/silicon` again, on a real device."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hopsim.cli.options import JsonOption
from hopsim.errors import ConfigError

if TYPE_CHECKING:
    from hopsim.cuda.requests import DeviceFacts
    from hopsim.kernels.probes.recording import Row

COMMAND: Final = "hopsim record"
MICRO_LIMIT_S: Final = 10.0
"""A microbenchmark that takes longer hangs."""


class Part(StrEnum):
    """What can be recorded on its own."""

    PROBES = "probes"
    MICRO = "micro"
    L2 = "l2"
    GEMM = "gemm"
    LADDER = "ladder"
    PHASES = "phases"
    WORKLOADS = "workloads"
    LIBRARIES = "libraries"
    AGAIN = "again"
    TABLES = "tables"


def record(
    out: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="tests/silicon of a checkout, or a copy of it.")
    ],
    parts: Annotated[
        list[Part] | None,
        typer.Option("--part", help="Only this part; all but `again` without. Repeatable."),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Only this group of probes or microbenchmarks, set of workloads, or library. Repeatable.",
        ),
    ] = None,
    index: Annotated[
        int, typer.Option("--device", metavar="N", min=0, help="Number of the device.")
    ] = 0,
    json_file: JsonOption = None,
) -> None:
    """Record on an H100 what the suite replays: bits, microbenchmarks, times and counters of GEMMs, the ladder."""
    from hopsim.cli.output import Output, check_target
    from hopsim.cuda.gpu import CudaGpu

    output = Output(json_file)
    if not out.is_dir():
        raise ConfigError(f"there is no folder {out}", hint=f"mkdir -p {out}")
    check_target(out / "index.toml", str(out))
    began = time.monotonic()

    def say(text: str) -> None:
        output.show(f"{time.monotonic() - began:6.1f} s  {text}"[:600])

    with CudaGpu(index) as gpu:
        facts = gpu.facts
    makers: dict[Part, Callable[[], list[Row]]] = {
        Part.PROBES: lambda: _probes(out, index, groups, say),
        Part.MICRO: lambda: _micro(out, facts, index, groups, say),
        Part.L2: lambda: _l2(out, facts, say),
        Part.GEMM: lambda: _gemm(out, facts, say),
        Part.LADDER: lambda: _ladder(out, facts, groups, say),
        Part.PHASES: lambda: _phases(out, facts, say),
        Part.WORKLOADS: lambda: _workloads(out, facts, groups, say),
        Part.LIBRARIES: lambda: _libraries(out, facts, groups, say),
        Part.AGAIN: lambda: _again(out, facts, say),
        Part.TABLES: lambda: _tables(out, facts, index),
    }
    files: dict[str, list[dict[str, Any]]] = {}
    for part in parts or [part for part in Part if part is not Part.AGAIN]:
        files[part.value] = [asdict(row) for row in makers[part]()]
        say(f"{part}: {len(files[part.value])} files")
    output.finish({"command": "record", "folder": str(out), "files": files}, 0)


def _today() -> str:
    return datetime.date.today().isoformat()


def _probes(
    out: Path, index: int, groups: list[str] | None, say: Callable[[str], None]
) -> list[Row]:
    from hopsim.kernels.probes import recording

    chosen = tuple(groups or recording.GROUPS)
    return recording.record_device(
        out, index, date=_today(), command=COMMAND, groups=chosen, progress=say
    )


def _tables(out: Path, facts: DeviceFacts, index: int) -> list[Row]:
    """Write `out`/tables; the package carries a copy as hopsim/isa/numerics/recorded."""
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.kernels.probes import tables

    folder = out / "tables"
    folder.mkdir(exist_ok=True)
    with CudaGpu(index) as gpu:
        device: Any = gpu
        written = tables.write(device, folder)
    what = "the multi-function unit's answers for every mantissa"
    return _indexed(
        out, {f"tables/{name}.npz": (what, count) for name, count in written.items()}, facts
    )


def _micro(
    out: Path,
    facts: DeviceFacts,
    index: int,
    groups: list[str] | None,
    say: Callable[[str], None],
) -> list[Row]:
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.kernels.micro import recording

    file = out / "micro.json"
    known = {row["name"]: row for row in _read(file)}
    for group in groups or list(recording.GROUPS):
        with CudaGpu(index, time_limit_s=MICRO_LIMIT_S) as gpu:
            device: Any = gpu
            for row in recording.record(device, recording.benchmarks(group), progress=say):
                known[row["name"]] = row
    current = {one.name for one in recording.benchmarks()}
    rows = [row for name, row in known.items() if name in current]
    _write(file, rows)
    what = "microbenchmarks: latencies and rates in SM cycles"
    return _indexed(out, {"micro.json": (what, len(rows))}, facts)


def _l2(out: Path, facts: DeviceFacts, say: Callable[[str], None]) -> list[Row]:
    from hopsim.kernels.measured import l2_joined, l2_walks

    walks = "walks over sets about as large as L2: bytes of memory"
    joined = "what SMs ask of L2 together: sectors and look-ups"
    made = {
        "l2_walks.json": (l2_walks.record, walks),
        "l2_joined.json": (l2_joined.record, joined),
    }
    return _profiled(out, facts, say, made)


def _gemm(out: Path, facts: DeviceFacts, say: Callable[[str], None]) -> list[Row]:
    from hopsim.kernels.measured import record as measured

    folder = out / "judging"
    found = measured.record(folder, folder / "ncu.csv", say)
    (folder / "ncu.csv").unlink()
    described: dict[str, tuple[str, int]] = {}
    for name, what in (
        ("gemm_own.json", "own GEMMs: times and Nsight Compute counters"),
        ("gemm_triton.json", "Triton GEMMs: times and Nsight Compute counters"),
        ("empty_kernel.json", "an empty kernel under Nsight Compute"),
    ):
        _write(folder / name, found[name])
        described[f"judging/{name}"] = (what, len(found[name]))
    return _indexed(out, described, facts)


def _ladder(
    out: Path, facts: DeviceFacts, groups: list[str] | None, say: Callable[[str], None]
) -> list[Row]:
    from hopsim.kernels import others
    from hopsim.kernels.gemm import silicon

    folder = out / "ladder"
    folder.mkdir(exist_ok=True)
    described: dict[str, tuple[str, int]] = {}
    for dtype in groups or (*silicon.SIZES_OF, *others.SETS):
        log = folder / f"{dtype}.csv"
        if dtype in others.SETS:
            found: dict[str, Any] = {"kernels": silicon.record_others(dtype, log, say)}
        else:
            found = silicon.record(dtype, log, say)
        made_with = {
            "device": facts.name,
            "driver": facts.driver,
            "date": _today(),
            "command": COMMAND,
        }
        _write(folder / f"{dtype}.json", {"made_with": made_with, **found})
        log.unlink(missing_ok=True)
        if dtype in others.SETS:
            described[f"ladder/{dtype}.json"] = (others.SETS[dtype].what, len(found["kernels"]))
            continue
        what = f"the ladder of GEMM schedules, {dtype}: bits, times, cycles, and cuBLAS beside them"
        described[f"ladder/{dtype}.json"] = (what, len(found["bits"]["c_sha256"]))
    return _indexed(out, described, facts)


def _phases(out: Path, facts: DeviceFacts, say: Callable[[str], None]) -> list[Row]:
    from hopsim.kernels.measured import phases

    what = "phases of GEMMs: the SM clock read inside"
    return _profiled(out, facts, say, {"phases.json": (phases.record, what)})


def _workloads(
    out: Path, facts: DeviceFacts, groups: list[str] | None, say: Callable[[str], None]
) -> list[Row]:
    from hopsim.kernels.measured.workloads import recording

    log = out / "ncu.csv"
    described: dict[str, tuple[str, int]] = {}
    for name in groups or recording.SETS:
        chosen = recording.SETS.get(name)
        if chosen is None:
            raise ConfigError(
                f"there is no set of workloads {name!r}", hint=f"one of {', '.join(recording.SETS)}"
            )
        found = recording.record(chosen, out, log, say)
        log.unlink(missing_ok=True)
        file = chosen.file(out, "json")
        _write(file, found)
        what = f"kernels that nvcc compiled, without a GEMM's schedule, {name} set: cycles and bits"
        described[str(file.relative_to(out))] = (what, len(found["rows"]))
    return _indexed(out, described, facts)


def _libraries(
    out: Path, facts: DeviceFacts, groups: list[str] | None, say: Callable[[str], None]
) -> list[Row]:
    from hopsim.kernels.measured import captured

    made = {
        captured.file_of(name): (
            partial(captured.record, out, name),
            f"{captured.COLLECTIONS.get(name, name)}, with the parameters of its host code: cycles and bits",
        )
        for name in groups or captured.COLLECTIONS
    }
    return _profiled(out, facts, say, made)


def _again(out: Path, facts: DeviceFacts, say: Callable[[str], None]) -> list[Row]:
    """Measure what lies in `out` on a device other than that it was measured on."""
    from hopsim.kernels.measured import again

    what = "the GEMMs of judging, calibration and the ladder on another device: cycles"
    return _profiled(out, facts, say, {again.FILE: (partial(again.record, out), what)})


def _profiled(
    out: Path,
    facts: DeviceFacts,
    say: Callable[[str], None],
    made: Mapping[str, tuple[Callable[[Path, Callable[[str], None]], list[dict[str, Any]]], str]],
) -> list[Row]:
    """Write files of rows that are made with Nsight Compute, whose log is not kept.

    Args:
        made: by file, what makes its rows, and what they are.
    """
    log = out / "ncu.csv"
    described: dict[str, tuple[str, int]] = {}
    for name, (make, what) in made.items():
        rows = make(log, say)
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        _write(out / name, rows)
        described[name] = (what, len(rows))
        say(f"{name}: {len(rows)} rows")
    log.unlink(missing_ok=True)
    return _indexed(out, described, facts)


def _indexed(out: Path, described: dict[str, tuple[str, int]], facts: DeviceFacts) -> list[Row]:
    from hopsim.kernels.probes.recording import Row, write_index

    rows = [
        Row(file, what, count, facts.name, facts.driver, _today(), COMMAND)
        for file, (what, count) in described.items()
    ]
    write_index(out / "index.toml", rows)
    return rows


def _read(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def _write(file: Path, content: Any) -> None:
    """Write JSON with one line for each list of numbers.

    Raises: ConfigError: it cannot be written.
    """
    from hopsim.cli.compact_json import dumps
    from hopsim.cli.output import write_file

    write_file(file, dumps(content) + "\n", str(file))

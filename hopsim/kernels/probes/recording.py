"""Recordings: what probes answered on a real device, kept in files and compared bit by bit.

    rows = record(CudaGpu(0), folder, command="hopsim record")       # on an H100
    for difference in replay(Gpu(), folder, "scalar"): print(difference)

A group of probes is one `.npz` file: `bits`, all outputs one after the other (equal ones once), and `index`, JSON
that says which probe, made of which program and inputs, has which outputs where.
"""

from __future__ import annotations

import io
import json
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import DeviceError, HopsimError
from hopsim.kernels.probes.probe import Arrays
from hopsim.launch.device import Device

GROUPS: Final = {
    "scalar": "every scalar instruction on telling and random operands",
    "factors": "products of 24 bits, sums of factors outside of a tensor",
    "approximate": "approximate functions on all 16-bit inputs and a sample of f32",
    "collective": "shfl, vote, match, redux, elect, activemask",
    "matrices": "ldmatrix, stmatrix, movmatrix",
    "mma_sync": "mma.sync of every shape and type",
    "mma_double": "mma.sync on f64, every shape and rounding",
    "mma_narrow": "mma.sync on integers of 4 bits and 1, and m8n8k16",
    "mma_sparse": "mma.sp of every shape, type and selector",
    "wmma": "wmma: fragments out of rows and columns, products, what is stored of them",
    "wmma_double": "wmma on f64: fragments, products, stores",
    "wgmma": "wgmma of every type: layouts, chains, scales, decisive vectors",
    "wgmma_sparse": "wgmma.mma_async.sp of every type: layouts, chains, selectors",
    "atomic": "atom and red in global and shared memory",
    "mbarrier": "phases, pending counts and tx-counts",
    "special": "special registers",
    "products": "whole GEMMs",
    "im2col": "columns of pixels: windows, steps, offsets and starts, loads, stores and reductions",
    "convolutions": "whole convolutions",
}
"""Name of the group, which is the module that has its `probes()`, and what it holds."""
SIMULATED: Final[Mapping[str, Any]] = {"check": False, "timing": False}
"""Options of a replay: the in-order schedule, without looking for races."""


class Recordable(Protocol):
    """What can be recorded: `Probe` and whole kernels."""

    @property
    def name(self) -> str:
        """Unique; begins with the group."""
        ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 of program and inputs."""
        ...

    @property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """What each row of an output is."""
        ...

    @property
    def notes(self) -> frozenset[str]:
        """Outputs that are recorded and not compared."""
        ...

    def run(self, gpu: Device, **options: Any) -> Arrays:
        """Run it and return its outputs."""
        ...


def probes_of(group: str) -> Sequence[Recordable]:
    """Return the probes of a group.

    Raises: HopsimError: there is no such group.
    """
    if group not in GROUPS:
        raise HopsimError(
            f"there is no group {group!r} of probes", hint=f"one of {', '.join(GROUPS)}"
        )
    return import_module(f"hopsim.kernels.probes.{group}").probes()


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """The answers of a group.

    Args:
        entries: probe name to its fingerprint (`fingerprint`) and outputs (`outputs`: name to offset, shape, type).
        bits: the bytes of all outputs.
    """

    entries: Mapping[str, Mapping[str, Any]]
    bits: NDArray[np.uint8]

    def outputs(self, name: str) -> Arrays:
        """Return the outputs of one probe."""
        found: Arrays = {}
        for output, (offset, shape, dtype) in self.entries[name]["outputs"].items():
            kind = np.dtype(dtype)
            size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            found[output] = self.bits[offset : offset + size].copy().view(kind).reshape(shape)
        return found


def save(path: Path, answers: Iterable[tuple[Recordable, Arrays]]) -> None:
    """Write a recording."""
    entries: dict[str, Any] = {}
    parts: list[bytes] = []
    places: dict[bytes, int] = {}
    size = 0
    for probe, outputs in answers:
        described: dict[str, Any] = {}
        for name, values in outputs.items():
            raw = np.ascontiguousarray(values).tobytes()
            if raw not in places:
                places[raw] = size
                parts.append(raw)
                size += len(raw)
            described[name] = [places[raw], list(values.shape), values.dtype.str]
        entries[probe.name] = {"fingerprint": probe.fingerprint, "outputs": described}
    index = json.dumps(entries, separators=(",", ":")).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in (("bits", b"".join(parts)), ("index", index)):
            held = io.BytesIO()
            np.save(held, np.frombuffer(data, np.uint8))
            # A fixed time: the same answers make the same file.
            archive.writestr(
                zipfile.ZipInfo(f"{name}.npy", (2020, 1, 1, 0, 0, 0)),
                held.getvalue(),
                zipfile.ZIP_LZMA,
            )


def load(path: Path) -> Recording:
    """Read a recording."""
    with np.load(path) as held:
        return Recording(json.loads(held["index"].tobytes()), held["bits"])


# --- recording and replaying ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the index of recordings.

    Args:
        file: path relative to the index.
        what: what it holds.
        probes: how many.
        device, driver, date, command: where, when and by what it was made.
    """

    file: str
    what: str
    probes: int
    device: str
    driver: str
    date: str
    command: str


def record(
    gpu: Device,
    folder: Path,
    *,
    device: str,
    driver: str,
    date: str,
    command: str,
    groups: Sequence[str] = tuple(GROUPS),
    progress: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Run the probes of some groups on a device and write `probes/<group>.npz` under `folder`, and the index.

    Args:
        device, driver, date, command: what the index says of them.
        progress: told what has been recorded, and which probe the device refused: it is left out.
    Raises: HopsimError.
    """
    (folder / "probes").mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for group in groups:
        file = f"probes/{group}.npz"
        answers: list[tuple[Recordable, Arrays]] = []
        for probe in probes_of(group):
            try:
                answers.append((probe, probe.run(gpu, timing=False)))
            except DeviceError as error:
                progress(f"{probe.name} is left out: {error}")
        save(folder / file, answers)
        rows.append(Row(file, GROUPS[group], len(answers), device, driver, date, command))
        progress(f"{group}: {len(answers)} probes")
    write_index(folder / "index.toml", rows)
    return rows


_HEADER: Final = """\
# Recordings made on silicon, replayed without a GPU by tests/silicon. One [[recording]] a file:
# `hopsim record` makes them again; the fingerprint of each program and its inputs is inside the file.
"""


def write_index(path: Path, rows: Sequence[Row]) -> None:
    """Write the index, keeping rows of other files that it has."""
    known = {row["file"]: row for row in read_index(path)} if path.exists() else {}
    for row in rows:
        known[row.file] = {name: getattr(row, name) for name in Row.__dataclass_fields__}
    blocks = [_HEADER]
    for _, row in sorted(known.items()):
        lines = [f"{key} = {json.dumps(value)}" for key, value in row.items()]
        blocks.append("\n".join(["[[recording]]", *lines]) + "\n")
    path.write_text("\n".join(blocks), encoding="utf-8")


def read_index(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the index."""
    return tomllib.loads(path.read_text(encoding="utf-8")).get("recording", [])


@dataclass(frozen=True, slots=True)
class Difference:
    """An output that is not what the device gave.

    Args:
        probe, output: which.
        label: which row of it, where it has labels.
        wrong, of: elements that differ, of how many.
        first: index of the first one.  got, expected: its bits.
    """

    probe: str
    output: str
    label: str
    wrong: int
    of: int
    first: tuple[int, ...]
    got: int
    expected: int

    def __str__(self) -> str:
        label = f" [{self.label}]" if self.label else ""
        return (
            f"{self.probe} {self.output}{label}: {self.wrong} of {self.of} differ, first at {self.first}: "
            f"{self.got:#x}, expected {self.expected:#x}"
        )


def compare(probe: Recordable, got: Arrays, expected: Arrays) -> list[Difference]:
    """Return what differs, a row of each output at a time."""
    found: list[Difference] = []
    for output, wanted in expected.items():
        if output in probe.notes:
            continue
        labels = probe.labels.get(output)
        if labels is None:
            found += _differences(probe.name, output, "", got[output], wanted)
        else:
            for row, label in enumerate(labels):
                found += _differences(probe.name, output, label, got[output][row], wanted[row])
    return found


def _differences(probe: str, output: str, label: str, got: Any, wanted: Any) -> list[Difference]:
    got, wanted = np.asarray(got), np.asarray(wanted)
    wrong = np.argwhere(got != wanted)
    if not len(wrong):
        return []
    first = tuple(int(k) for k in wrong[0])
    return [
        Difference(
            probe,
            output,
            label,
            len(wrong),
            wanted.size,
            first,
            int(got[first]),
            int(wanted[first]),
        )
    ]


def replay(gpu: Device, folder: Path, group: str, **options: Any) -> list[Difference]:
    """Run the probes of a group and compare them with their recording.

    Args:
        options: of `gpu.launch`; by default `SIMULATED`.
    Raises: HopsimError: a probe is not what was recorded.
    """
    recording = load(folder / "probes" / f"{group}.npz")
    chosen = options or dict(SIMULATED)
    found: list[Difference] = []
    for probe in probes_of(group):
        entry = recording.entries.get(probe.name)
        if entry is None or entry["fingerprint"] != probe.fingerprint:
            raise HopsimError(
                f"probe {probe.name} is not the one that was recorded",
                where=str(folder),
                hint="record the group again: hopsim record --group " + group,
            )
        found += compare(probe, probe.run(gpu, **chosen), recording.outputs(probe.name))
    return found


def record_device(
    folder: Path,
    index: int = 0,
    *,
    date: str,
    command: str,
    groups: Sequence[str] = tuple(GROUPS),
    progress: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Record groups of probes on a CUDA device: what `hopsim record` does.

    Args:
        folder: `tests/silicon` of a checkout.
        index: number of the device.
        date, command: for the index.
    Raises: DeviceError, HopsimError.
    """
    from hopsim.cuda.gpu import CudaGpu

    with CudaGpu(index) as gpu:
        facts, device = gpu.facts, cast("Device", gpu)
        return record(
            device, folder, device=facts.name, driver=facts.driver, date=date, command=command, groups=groups,
            progress=progress,
        )  # fmt: skip

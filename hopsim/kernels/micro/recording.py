"""Run all microbenchmarks on a device and describe what they gave, as plain data for a JSON file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from hopsim.errors import DeviceError
from hopsim.kernels.micro import copies, latencies, tensor
from hopsim.kernels.micro.clocked import Benchmark, measure, slopes
from hopsim.kernels.probes.probe import Device

REPEATS = 5


def benchmarks() -> list[Benchmark]:
    """Return all microbenchmarks."""
    return [*latencies.benchmarks(), *tensor.benchmarks(), *copies.benchmarks()]


def record(
    gpu: Device,
    chosen: Sequence[Benchmark] | None = None,
    repeats: int = REPEATS,
    progress: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Run microbenchmarks.

    Each is launched `repeats` times after a first launch that is not counted; of each difference the least is kept,
    which is what undisturbed hardware takes.

    Returns: for each its name, what it is, the hash of its PTX, `cycles` by label and `slopes` by name.
    """
    found: list[dict[str, Any]] = []
    for one in benchmarks() if chosen is None else chosen:
        row: dict[str, Any] = {
            "name": one.name, "what": one.what, "ptx_sha256": hashlib.sha256(one.ptx.encode()).hexdigest(),
        }  # fmt: skip
        try:
            runs = measure(gpu, one, repeats + 1, **options)[min(repeats, 1) :]
        except DeviceError as error:
            progress(f"{one.name}: {error}")
            found.append(row | {"error": error.what})
            continue
        cycles = {label: min(run[label] for run in runs) for label in one.labels}
        found.append(row | {"cycles": cycles, "slopes": slopes(cycles)})
        progress(f"{one.name}: {found[-1]['slopes'] or cycles}")
    return found

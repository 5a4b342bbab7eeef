"""Kernels without a GEMM's schedule, compiled by nvcc: their cycles and bits on an H100, and here.

GEMMs say nothing about streams of words, reductions, atomics, special functions, divergence, or float64.  None of these was
used for calibration.  There are two sets: the first guided what was measured next, the second is held out.

    content = record(SETS["second"], Path("tests/silicon"), Path("ncu.csv"), print)        # on an H100, with Nsight Compute
    result, digest = run(hopsim.Gpu(), ptx_of(SETS["second"], folder), second.cases()[0])  # the same launch on the simulator
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopsim.errors import DeviceError, HopsimError
from hopsim.kernels.gemm.silicon import sha256
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.measured.workloads import first, second
from hopsim.kernels.measured.workloads.case import Case
from hopsim.kernels.probes.probe import load_module
from hopsim.results import LaunchResult

FOLDER: Final = "workloads"
"""In `tests/silicon`."""
CYCLES: Final = "gpc__cycles_elapsed.max"
INSTRUCTIONS: Final = "smsp__inst_executed.sum"
METRICS: Final = (CYCLES, "gpu__time_duration.sum", INSTRUCTIONS, "dram__bytes_read.sum")
PROFILES: Final = 3
NCU_LIMIT_S: Final = 400.0


@dataclass(frozen=True, slots=True)
class WorkloadSet:
    """Launches that are recorded together.

    Args:
        name: as `hopsim record --group` takes it.
        stem: of its `.cu`, `.ptx` and `.json` in `tests/silicon/workloads`.
        cases: gives its launches.
    """

    name: str
    stem: str
    cases: Callable[[], list[Case]]

    def file(self, folder: Path, suffix: str) -> Path:
        """Return one of its files.

        Args:
            folder: `tests/silicon`.
        """
        return folder / FOLDER / f"{self.stem}.{suffix}"

    def predictions(self, folder: Path) -> Path:
        """Return the file of predictions that were kept before the set was recorded; the first set has none.

        Args:
            folder: `tests/silicon`.
        """
        return folder / FOLDER / f"{self.stem}_predicted.json"


SETS: Final[Mapping[str, WorkloadSet]] = {
    "first": WorkloadSet("first", "workloads", first.cases),
    "second": WorkloadSet("second", "second", second.cases),
}


def ptx_of(chosen: WorkloadSet, folder: Path) -> str:
    """Return the PTX of all kernels of a set.

    Args:
        folder: `tests/silicon`.
    """
    return chosen.file(folder, "ptx").read_text(encoding="utf-8")


def content_of(chosen: WorkloadSet, folder: Path) -> dict[str, Any]:
    """Return what was recorded of a set.

    Args:
        folder: `tests/silicon`.
    """
    return json.loads(chosen.file(folder, "json").read_text(encoding="utf-8"))


def held_predictions(chosen: WorkloadSet, folder: Path) -> dict[str, Any]:
    """Return the predictions kept before a set was recorded: hash of the model, and cycles by case, none if it stopped.

    Raises: HopsimError: they are of another text.
    """
    held = json.loads(chosen.predictions(folder).read_text(encoding="utf-8"))
    if held["ptx_sha256"] != sha256(ptx_of(chosen, folder)):
        raise HopsimError("the predictions were kept of another text")
    return held


def run(gpu: Any, ptx: str, case: Case, **options: Any) -> tuple[LaunchResult, str]:
    """Launch a case on a `hopsim.Gpu` or `hopsim.CudaGpu`; return the result, and the SHA-256 of what it wrote."""
    made = [gpu.array(np.zeros(shape, dtype)) for shape, dtype in case.outputs]
    given = [gpu.array(one) if isinstance(one, np.ndarray) else one for one in case.inputs()]
    result = gpu.launch(
        load_module(ptx)[case.kernel], case.grid, case.block, args=[*made, *given], **options
    )
    digest = hashlib.sha256()
    for one in made:
        digest.update(np.ascontiguousarray(one.numpy()).tobytes())
    return result, digest.hexdigest()


def record(
    chosen: WorkloadSet, folder: Path, log: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run all cases of a set under Nsight Compute; return the file's content.

    Args:
        folder: `tests/silicon`.
        log: where Nsight Compute writes; a file beside it takes the digests meanwhile.
    Raises: DeviceError: there is no `ncu`, or launches are missing.
    """
    digests_file = log.with_suffix(".json")
    argument = json.dumps([chosen.name, str(folder), str(digests_file)])
    found = profile(__name__, argument, METRICS, log, NCU_LIMIT_S, say)
    digests: list[list[str]] = json.loads(digests_file.read_text(encoding="utf-8"))
    digests_file.unlink()
    cases = chosen.cases()
    kernels = {case.kernel for case in cases}
    found = [one for one in found if one.kernel.split("(")[0] in kernels]
    if len(found) != PROFILES * len(cases) or len(digests) != len(cases):
        raise DeviceError(f"{PROFILES * len(cases)} launches were expected, got {len(found)}")
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        mine = found[PROFILES * number : PROFILES * (number + 1)]
        row: dict[str, Any] = {"kernel": case.kernel, "size": case.size}
        row |= {name: [one.metrics[name] for one in mine] for name in METRICS}
        row["sha256"] = digests[number][0]
        if len(set(digests[number])) != 1:
            row["sha256"] = "differs from launch to launch"
        rows.append(row)
    return {"ptx_sha256": sha256(ptx_of(chosen, folder)), "rows": rows}


def launch_all(chosen: WorkloadSet, folder: Path, file: Path) -> None:
    """Launch every case some times and write the digests of what it wrote; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu, ptx = CudaGpu(0, isolate=False), ptx_of(chosen, folder)
    digests = [
        [run(gpu, ptx, case, timing=False)[1] for _ in range(PROFILES)] for case in chosen.cases()
    ]  # fmt: skip
    file.write_text(json.dumps(digests), encoding="utf-8")


def with_rows(
    chosen: WorkloadSet, folder: Path, content: Mapping[str, Any]
) -> list[tuple[Case, Mapping[str, Any]]]:
    """Return each case of a set and the recorded row of it.

    Raises: HopsimError: the rows are of another text, or of other launches.
    """
    cases = chosen.cases()
    same = sha256(ptx_of(chosen, folder)) == content["ptx_sha256"]
    names = [f"{row['kernel']} {row['size']}" for row in content["rows"]]
    if not same or names != [case.name for case in cases]:
        raise HopsimError(
            "the workloads are no longer those that were recorded",
            hint=f"hopsim record tests/silicon --part workloads --group {chosen.name}",
        )
    return list(zip(cases, content["rows"], strict=True))


if __name__ == "__main__":
    of, silicon, digests_of = json.loads(sys.argv[1])
    launch_all(SETS[of], Path(silicon), Path(digests_of))

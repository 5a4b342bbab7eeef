"""Kernels of libraries with the parameters that their own host code makes: their cycles and bits on silicon, and here.

Nothing of them was used for calibration. `tests/silicon/libraries` says how they were made.

    rows = record(Path("tests/silicon"), "cutlass", Path("ncu.csv"), print)         # on an H100, with Nsight Compute
    result, digests = run(hopsim.Gpu(), load(Path("tests/silicon"), "cutlass")[0])  # the same launch on the simulator
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

from hopsim.errors import ConfigError, DeviceError
from hopsim.kernels.gemm.silicon import sha256
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.probes.probe import load_module
from hopsim.launch.arrays import DeviceArray, ParamBytes, TensorMap
from hopsim.results import LaunchResult

COLLECTIONS: Final[Mapping[str, str]] = {
    "cutlass": "GEMMs of CUTLASS 4.2.0",
    "flash_attention": "FlashAttention-3 as FlashInfer 0.7.4 has it",
    "deep_gemm": "DeepGEMM's fp8 GEMMs as TensorRT-LLM has them",
}
"""What lies in `tests/silicon/libraries`."""
CYCLES: Final = "gpc__cycles_elapsed.max"
INSTRUCTIONS: Final = "smsp__inst_executed.sum"
METRICS: Final = (
    CYCLES, "gpu__time_duration.sum", INSTRUCTIONS, "dram__bytes_read.sum", "dram__bytes_write.sum",
    "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "launch__registers_per_thread",
)  # fmt: skip
PROFILES: Final = 3
NCU_LIMIT_S: Final = 400.0


@dataclass(frozen=True, slots=True)
class Captured:
    """One launch.

    Args:
        program: stem of its PTX.  ptx: its text.
        block, cluster, shared_bytes: how to launch it.
        row: the launch: `name`, `flop`, `grid`, `arguments` (hex, one for each parameter of the kernel), `arrays` (`name`,
            `dtype`, `shape`, `fill`, whether it is `transposed` in memory), `outputs` (names of arrays), and what of the
            arguments is put in at a launch: `maps` (`argument`, `at`, `array`, and what `TensorMap` takes), `pointers`
            (`argument`, `at`, `array`).
        recorded: what silicon did: `measured` by metric, `sha256` of each output; None where nobody has recorded it.
    """

    program: str
    ptx: str
    block: int
    cluster: tuple[int, ...]
    shared_bytes: int
    row: Mapping[str, Any]
    recorded: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """Program and launch."""
        return f"{self.program} {self.row['name']}"

    @property
    def measured(self) -> Mapping[str, Sequence[float]]:
        """Each metric, a value a launch."""
        assert self.recorded is not None, self.name
        return self.recorded["measured"]


def file_of(collection: str) -> str:
    """Return the file with what silicon did, in `tests/silicon` or in a device's folder there."""
    return f"libraries/{collection}/measured.json"


def load(folder: Path, collection: str) -> list[Captured]:
    """Return all launches of a collection.

    Args:
        folder: `tests/silicon`, or a device's folder there, whose recordings are taken then.
    Raises: ConfigError: there is no such collection.
    """
    if collection not in COLLECTIONS:
        raise ConfigError(
            f"there is no collection {collection!r}", hint=f"one of {', '.join(COLLECTIONS)}"
        )
    home = next(one for one in (folder, folder.parent) if _launches(one, collection).exists())
    programs: list[dict[str, Any]] = _read(_launches(home, collection))
    kept = folder / file_of(collection)
    rows: list[dict[str, Any]] = _read(kept) if kept.exists() else []
    recorded = {(row["program"], row["launch"]): row for row in rows}
    found: list[Captured] = []
    for program in programs:
        name = program["program"]
        ptx = (_launches(home, collection).parent / f"{name}.ptx").read_text(encoding="utf-8")
        assert sha256(ptx) == program["ptx_sha256"], name
        found += [
            Captured(
                name, ptx, program["block"], tuple(program["cluster"]), program["shared_bytes"], row,
                recorded.get((name, row["name"])),
            )
            for row in program["launches"]
        ]  # fmt: skip
    return found


def _launches(folder: Path, collection: str) -> Path:
    return folder / "libraries" / collection / "launches.json"


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def arrays(gpu: Any, case: Captured, *, values: bool = True) -> dict[str, DeviceArray]:
    """Return what a launch is given, filled with the same numbers each time, or with zeros where no values count."""
    rng = np.random.default_rng(1)
    made: dict[str, DeviceArray] = {}
    for one in case.row["arrays"]:
        shape, dtype = tuple(one["shape"]), np.dtype(getattr(ml_dtypes, one["dtype"], one["dtype"]))
        if one["fill"] == "zero" or not values:
            array = np.zeros(shape, dtype)
        elif dtype.kind in "iu":
            array = rng.integers(-8, 8, shape).astype(dtype)
        else:
            array = rng.standard_normal(shape, dtype=np.float32).astype(dtype)
        if one.get("transposed"):
            array = np.ascontiguousarray(array.T)
        made[one["name"]] = gpu.array(array)
    return made


def parameters(case: Captured, given: Mapping[str, DeviceArray]) -> list[ParamBytes]:
    """Return what the kernel takes, parameter by parameter."""
    made: list[ParamBytes] = []
    for number, text in enumerate(case.row["arguments"]):
        maps = {
            one["at"]: TensorMap(
                given[one["array"]], one["box"], one["swizzle"], dims=one["dims"], strides=one["strides"], dtype=one["dtype"]
            )
            for one in case.row["maps"]
            if one["argument"] == number
        }  # fmt: skip
        pointers = {
            one["at"]: given[one["array"]]
            for one in case.row["pointers"]
            if one["argument"] == number
        }
        made.append(ParamBytes(bytes.fromhex(text), maps, pointers))
    return made


def run(
    gpu: Any, case: Captured, given: Mapping[str, DeviceArray] | None = None, **options: Any
) -> tuple[LaunchResult, dict[str, str]]:
    """Launch a case on a `hopsim.Gpu` or `hopsim.CudaGpu`; return the result, and the SHA-256 of each output.

    Args:
        given: from `arrays`; made here by default.
        options: of `gpu.launch`.
    """
    held = given or arrays(gpu, case, values=options.get("values", True))
    module = load_module(case.ptx)
    (entry,) = module
    result = gpu.launch(
        module[entry], tuple(case.row["grid"]), case.block, case.cluster, parameters(case, held), case.shared_bytes,
        **options,
    )  # fmt: skip
    digests = {
        name: hashlib.sha256(held[name].numpy().tobytes()).hexdigest()
        for name in case.row["outputs"]
    }
    return result, digests


def record(
    folder: Path, collection: str, log: Path, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Run all launches of a collection under Nsight Compute; return the content of its file.

    Args:
        folder: `tests/silicon`, or a device's folder there.
        log: where Nsight Compute writes; a file beside it takes the digests meanwhile.
    Raises: DeviceError: there is no `ncu`, or launches are missing.  ConfigError: there is no such collection.
    """
    digests_file = log.with_suffix(".json")
    argument = json.dumps([str(folder), collection, str(digests_file)])
    cases = load(folder, collection)
    found = profile(__name__, argument, METRICS, log, NCU_LIMIT_S, say)
    digests: list[dict[str, str]] = json.loads(digests_file.read_text(encoding="utf-8"))
    digests_file.unlink()
    if len(found) != PROFILES * len(cases) or len(digests) != len(cases):
        raise DeviceError(f"{PROFILES * len(cases)} launches were expected, got {len(found)}")
    content: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        mine = found[PROFILES * number : PROFILES * (number + 1)]
        measured = {name: [one.metrics[name] for one in mine] for name in METRICS}
        content.append(
            {
                "program": case.program, "launch": case.row["name"], "measured": measured,
                "sha256": digests[number],
            }
        )  # fmt: skip
    return content


def launch_all(folder: Path, collection: str, file: Path) -> None:
    """Launch every case some times and write the digests of its outputs; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu = CudaGpu(0, isolate=False)
    digests: list[dict[str, str]] = []
    for case in load(folder, collection):
        found = [run(gpu, case, timing=False)[1] for _ in range(PROFILES)]
        same = all(one == found[0] for one in found)
        digests.append(found[0] if same else dict.fromkeys(found[0], "differs by launch"))
    file.write_text(json.dumps(digests), encoding="utf-8")


if __name__ == "__main__":
    silicon, chosen, digests_of = json.loads(sys.argv[1])
    launch_all(Path(silicon), chosen, Path(digests_of))

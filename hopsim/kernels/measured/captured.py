"""GEMMs of CUTLASS 3 with the parameters that its host code makes: their cycles and bits on an H100, and here.

Nothing of them was used for calibration, and the programs are NVIDIA's own. `tests/silicon/cutlass` says how they were made.

    rows = record(Path("tests/silicon"), Path("ncu.csv"), print)            # on an H100, with Nsight Compute
    result, digest = run(hopsim.Gpu(), load(Path("tests/silicon"))[0])      # the same launch on the simulator
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from hopsim.errors import DeviceError
from hopsim.kernels.gemm.silicon import sha256
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.probes.probe import load_module
from hopsim.launch.arrays import DeviceArray, ParamBytes, TensorMap
from hopsim.results import LaunchResult

FOLDER: Final = "cutlass"
"""In `tests/silicon`."""
FILE: Final = f"{FOLDER}/cutlass.json"
CYCLES: Final = "gpc__cycles_elapsed.max"
INSTRUCTIONS: Final = "smsp__inst_executed.sum"
METRICS: Final = (
    CYCLES, "gpu__time_duration.sum", INSTRUCTIONS, "dram__bytes_read.sum", "dram__bytes_write.sum",
    "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "launch__registers_per_thread",
)  # fmt: skip
PROFILES: Final = 3
NCU_LIMIT_S: Final = 400.0
ARRAYS: Final = ("a", "b", "c", "d", "workspace", "bias")


@dataclass(frozen=True, slots=True)
class Captured:
    """One launch.

    Args:
        program: stem of its PTX.  ptx: its text.
        dtype, out_dtype: types of A and B, and of C, D and the bias.
        majors: `k` or `mn`, of A and of B.
        row: the launch as recorded: `size` (M, N, K), `alpha`, `beta`, `grid`, `workspace_bytes`, `parameters` (hex),
            `maps` (`at`, `array`, and what `TensorMap` takes), `pointers` (`at`, `array`), and what was measured.
        block, cluster, shared_bytes: how to launch it.
    """

    program: str
    ptx: str
    dtype: str
    out_dtype: str
    majors: tuple[str, str]
    block: int
    cluster: tuple[int, ...]
    shared_bytes: int
    row: Mapping[str, Any]

    @property
    def size(self) -> tuple[int, int, int]:
        """M, N, K."""
        m, n, k = self.row["size"]
        return m, n, k

    @property
    def name(self) -> str:
        """Program and size, and beta where C counts."""
        added = f" beta {self.row['beta']:g}" if self.row["beta"] else ""
        return f"{self.program} {'x'.join(map(str, self.size))}{added}"


def load(folder: Path) -> list[Captured]:
    """Return all launches.

    Args:
        folder: `tests/silicon`.
    """
    found: list[Captured] = []
    for program in _content(folder):
        ptx = (folder / FOLDER / f"{program['program']}.ptx").read_text(encoding="utf-8")
        assert sha256(ptx) == program["ptx_sha256"], program["program"]
        a, b = program["majors"]
        found += [
            Captured(
                program["program"], ptx, program["dtype"], program["out_dtype"], (a, b), program["block"],
                tuple(program["cluster"]), program["shared_bytes"], row,
            )
            for row in program["launches"]
        ]  # fmt: skip
    return found


def _content(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / FILE).read_text(encoding="utf-8"))


def _type(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def arrays(gpu: Any, case: Captured, *, values: bool = True) -> dict[str, DeviceArray]:
    """Return what a launch is given, filled with the same numbers each time, or with zeros where no values count."""
    m, n, k = case.size
    rng = np.random.default_rng(1)

    def matrix(dtype: str, *shape: int) -> NDArray[Any]:
        kind = _type(dtype)
        if not values:
            return np.zeros(shape, kind)
        if kind.kind in "iu":
            return rng.integers(-8, 8, shape).astype(kind)
        return rng.standard_normal(shape, dtype=np.float32).astype(kind)

    a, b = matrix(case.dtype, m, k), matrix(case.dtype, n, k)
    made = {
        "a": a if case.majors[0] == "k" else np.ascontiguousarray(a.T),
        "b": b if case.majors[1] == "k" else np.ascontiguousarray(b.T),
        "c": matrix(case.out_dtype, m, n),
        "d": np.zeros((m, n), _type(case.out_dtype)),
        "workspace": np.zeros(max(case.row["workspace_bytes"], 16), np.uint8),
        "bias": matrix(case.out_dtype, m),
    }
    return {name: gpu.array(one) for name, one in made.items()}


def parameters(case: Captured, given: Mapping[str, DeviceArray]) -> ParamBytes:
    """Return the structure that the kernel takes."""
    maps = {
        one["at"]: TensorMap(
            given[one["array"]], one["box"], one["swizzle"], dims=one["dims"], strides=one["strides"], dtype=one["dtype"]
        )
        for one in case.row["maps"]
    }  # fmt: skip
    pointers = {one["at"]: given[one["array"]] for one in case.row["pointers"]}
    return ParamBytes(bytes.fromhex(case.row["parameters"]), maps, pointers)


def run(
    gpu: Any, case: Captured, given: Mapping[str, DeviceArray] | None = None, **options: Any
) -> tuple[LaunchResult, str]:
    """Launch a case on a `hopsim.Gpu` or `hopsim.CudaGpu`; return the result, and the SHA-256 of D.

    Args:
        given: from `arrays`; made here by default.
        options: of `gpu.launch`.
    """
    held = given or arrays(gpu, case, values=options.get("values", True))
    module = load_module(case.ptx)
    (entry,) = module
    result = gpu.launch(
        module[entry], tuple(case.row["grid"]), case.block, case.cluster, [parameters(case, held)], case.shared_bytes,
        **options,
    )  # fmt: skip
    return result, hashlib.sha256(held["d"].numpy().tobytes()).hexdigest()


def record(folder: Path, log: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run all launches under Nsight Compute; return the file's content.

    Args:
        folder: `tests/silicon`.
        log: where Nsight Compute writes; a file beside it takes the digests meanwhile.
    Raises: DeviceError: there is no `ncu`, or launches are missing.
    """
    digests_file = log.with_suffix(".json")
    argument = json.dumps([str(folder), str(digests_file)])
    found = profile(__name__, argument, METRICS, log, NCU_LIMIT_S, say)
    digests: list[str] = json.loads(digests_file.read_text(encoding="utf-8"))
    digests_file.unlink()
    content = _content(folder)
    rows = [row for program in content for row in program["launches"]]
    if len(found) != PROFILES * len(rows) or len(digests) != len(rows):
        raise DeviceError(f"{PROFILES * len(rows)} launches were expected, got {len(found)}")
    for number, row in enumerate(rows):
        mine = found[PROFILES * number : PROFILES * (number + 1)]
        row["measured"] = {name: [one.metrics[name] for one in mine] for name in METRICS}
        row["d_sha256"] = digests[number]
    return content


def launch_all(folder: Path, file: Path) -> None:
    """Launch every case some times and write the digests of D; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu = CudaGpu(0, isolate=False)
    digests: list[str] = []
    for case in load(folder):
        found = [run(gpu, case, timing=False)[1] for _ in range(PROFILES)]
        digests.append(found[0] if len(set(found)) == 1 else "differs from launch to launch")
    file.write_text(json.dumps(digests), encoding="utf-8")


if __name__ == "__main__":
    silicon, digests_of = json.loads(sys.argv[1])
    launch_all(Path(silicon), Path(digests_of))

"""Kernels without a tensor core in mind (`workloads.cu`, compiled by nvcc): their cycles and bits on an H100, and here.

GEMMs say nothing about streams of words, reductions, atomics, special functions, divergence, or float64.  None of these was
used for calibration.

    rows = record(Path("tests/silicon"), Path("ncu.csv"), print)        # on an H100, with Nsight Compute
    result, digest = run(hopsim.Gpu(), ptx_of(folder), cases()[0])         # the same launch on the simulator
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import DeviceError, HopsimError
from hopsim.kernels.gemm.silicon import sha256
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.probes.probe import load_module
from hopsim.results import LaunchResult

FOLDER: Final = "workloads"
"""In `tests/silicon`."""
CYCLES: Final = "gpc__cycles_elapsed.max"
INSTRUCTIONS: Final = "smsp__inst_executed.sum"
METRICS: Final = (CYCLES, "gpu__time_duration.sum", INSTRUCTIONS, "dram__bytes_read.sum")
PROFILES: Final = 3
NCU_LIMIT_S: Final = 400.0

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One launch.

    Args:
        kernel: in `workloads.cu`.
        size: what tells it from other launches of the kernel.
        grid, block: extents.
        outputs: shapes and types, the first parameters of the kernel; zeros before the launch.
        inputs: arrays and numbers, the parameters after them.
    """

    kernel: str
    size: str
    grid: Shape
    block: Shape
    outputs: Sequence[tuple[Shape, Any]]
    inputs: Callable[[], Sequence[Array | np.generic]]

    @property
    def name(self) -> str:
        """Kernel and size."""
        return f"{self.kernel} {self.size}"


def _floats(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _integers(below: int, *shape: int, dtype: Any = np.int32, seed: int = 2) -> Array:
    return np.random.default_rng(seed).integers(0, below, shape).astype(dtype)


def _i32(value: int) -> np.int32:
    return np.int32(value)


def _square(kernel: str, n: int, block: Shape, tile: tuple[int, int], inputs: int) -> Case:
    """A kernel of n x n floats out of `inputs` arrays of so many."""
    return Case(
        kernel, f"{n} x {n}", (n // tile[0], n // tile[1]), block, [((n, n), np.float32)],
        lambda: [*(_floats(n, n, seed=i) for i in range(inputs)), _i32(n)],
    )  # fmt: skip


def _half_product(n: int) -> Case:
    return Case(
        "gemm_wmma", f"{n} x {n}", (n // 32, n // 32), (128,), [((n, n), np.float32)],
        lambda: [_floats(n, n, seed=i).astype(np.float16) for i in range(2)] + [_i32(n)],
    )  # fmt: skip


def _chase(hops: int, words: int) -> Case:
    def cycle() -> Sequence[Array | np.generic]:
        order = np.random.default_rng(3).permutation(words)
        following = np.empty(words, np.uint32)
        following[order] = np.roll(order, -1)
        return [following, _i32(hops)]

    return Case("chase", f"{hops} hops in {words} words", (1,), (32,), [((32,), np.uint32)], cycle)


def _sparse(kernel: str, rows: int, in_row: int, rows_of_a_block: int) -> Case:
    def matrix() -> Sequence[Array | np.generic]:
        rng = np.random.default_rng(4)
        lengths = rng.integers(1, 2 * in_row, rows)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        count = int(starts[-1])
        columns = rng.integers(0, rows, count).astype(np.int32)
        return [starts, columns, _floats(count), _floats(rows, seed=5), _i32(rows)]

    return Case(
        kernel, f"{rows} rows of {in_row}", (rows // rows_of_a_block,), (128,), [((rows,), np.float32)], matrix
    )  # fmt: skip


def cases() -> list[Case]:
    """Return all launches, those of a kernel together."""
    found: list[Case] = []
    for n in (256, 1024):
        found.append(_square("transpose_naive", n, (32, 8), (32, 32), 1))
        found.append(_square("transpose_tiled", n, (32, 8), (32, 32), 1))
        found.append(_square("stencil", n, (32, 8), (32, 8), 1))
    for n in (128, 256):
        found.append(_square("gemm_naive", n, (16, 16), (16, 16), 2))
        found.append(_square("gemm_tiled", n, (32, 32), (32, 32), 2))
    for n in (256, 512):
        found.append(_square("gemm_registers", n, (256,), (64, 64), 2))
        found.append(_half_product(n))
    for n in (1 << 15, 1 << 18):
        words = [((n,), np.float32)]
        found += [
            Case(
                "gather", f"{n}", (n // 256,), (256,), words,
                lambda n=n: [_floats(n), _integers(n, n), _i32(n)],
            ),
            Case(
                "convolve", f"{n}", (n // 256,), (256,), words,
                lambda n=n: [_floats(n + 16), _i32(n)],
            ),
            Case(
                "staged_copies", f"{n}", (64,), (256,), words, lambda n=n: [_floats(n), _i32(n)]
            ),
            Case(
                "block_sums", f"{n}", (64,), (256,), [((64,), np.float32)],
                lambda n=n: [_floats(n), _i32(n)],
            ),
            Case(
                "cluster_sums", f"{n}", (64,), (256,), [((16,), np.float32)],
                lambda n=n: [_floats(n), _i32(n)],
            ),
            Case(
                "scan_blocks", f"{n}", (n // 512,), (512,), [((n,), np.uint32)],
                lambda n=n: [_integers(100, n, dtype=np.uint32)],
            ),
            Case(
                "histogram_shared", f"{n}", (64,), (256,), [((256,), np.uint32)],
                lambda n=n: [_integers(256, n, dtype=np.uint8), _i32(n)],
            ),
            Case(
                "histogram_global", f"{n}", (n // 256,), (256,), [((256,), np.uint32)],
                lambda n=n: [_integers(256, n, dtype=np.uint8), _i32(n)],
            ),
            Case(
                "one_counter", f"{n}", (n // 256,), (256,), [((1,), np.uint32), ((n,), np.uint32)],
                list,
            ),
            Case(
                "transcendental", f"{n}", (n // 256,), (256,), words,
                lambda n=n: [_floats(n), _i32(n)],
            ),
            Case(
                "sort_lists", f"{n}", (n // 1024,), (64,), [((n,), np.int32)],
                lambda n=n: [_integers(1000, n)],
            ),
        ]  # fmt: skip
    for rows in (64, 264):
        found += [
            Case(
                "softmax_rows", f"{rows} rows of 2048", (rows,), (256,), [((rows, 2048), np.float32)],
                lambda rows=rows: [_floats(rows, 2048), _i32(2048)],
            ),
            Case(
                "layer_norm", f"{4 * rows} rows of 1024", (rows,), (32, 4), [((4 * rows, 1024), np.float16)],
                lambda rows=rows: [
                    _floats(4 * rows, 1024).astype(np.float16), _floats(1024, seed=6).astype(np.float16), _i32(1024),
                ],
            ),
        ]  # fmt: skip
    for n in (1024, 4096):
        found.append(
            Case(
                "bodies", f"{n}", (n // 128,), (128,), [((n, 4), np.float32)],
                lambda n=n: [_floats(n, 4), _i32(n)],
            )
        )  # fmt: skip
    for n, limit in ((128, 256), (512, 64)):
        found.append(
            Case(
                "mandelbrot", f"{n} x {n}, {limit}", (n // 16, n // 16), (16, 16), [((n, n), np.int32)],
                lambda n=n, limit=limit: [_i32(n), _i32(limit)],
            )
        )  # fmt: skip
    for blocks, steps in ((132, 64), (1056, 64)):
        found += [
            Case(
                "random_walk", f"{blocks} x {steps}", (blocks,), (256,), [((256 * blocks,), np.uint32)],
                lambda steps=steps: [_i32(steps)],
            ),
            Case(
                "doubles", f"{blocks} x {steps // 4}", (blocks,), (128,), [((128 * blocks,), np.float64)],
                lambda blocks=blocks, steps=steps: [
                    np.random.default_rng(7).uniform(-1, 1, 128 * blocks), _i32(steps // 4),
                ],
            ),
        ]  # fmt: skip
    for rows in (4096, 16384):
        found.append(_sparse("spmv_rows", rows, 16, 128))
        found.append(_sparse("spmv_warps", rows, 64, 4))
    found += [_chase(200, 1 << 10), _chase(200, 1 << 20)]
    return found


def ptx_of(folder: Path) -> str:
    """Return the PTX of all workloads.

    Args:
        folder: `tests/silicon`.
    """
    return (folder / FOLDER / "workloads.ptx").read_text(encoding="utf-8")


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


def record(folder: Path, log: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Run all cases under Nsight Compute; return the file's content.

    Args:
        folder: `tests/silicon`.
        log: where Nsight Compute writes; a file beside it takes the digests meanwhile.
    Raises: DeviceError: there is no `ncu`, or launches are missing.
    """
    digests_file = log.with_suffix(".json")
    argument = json.dumps([str(folder), str(digests_file)])
    found = profile(__name__, argument, METRICS, log, NCU_LIMIT_S, say)
    digests: list[list[str]] = json.loads(digests_file.read_text(encoding="utf-8"))
    digests_file.unlink()
    chosen = cases()
    kernels = {case.kernel for case in chosen}
    found = [one for one in found if one.kernel.split("(")[0] in kernels]
    if len(found) != PROFILES * len(chosen) or len(digests) != len(chosen):
        raise DeviceError(f"{PROFILES * len(chosen)} launches were expected, got {len(found)}")
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(chosen):
        mine = found[PROFILES * number : PROFILES * (number + 1)]
        row: dict[str, Any] = {"kernel": case.kernel, "size": case.size}
        row |= {name: [one.metrics[name] for one in mine] for name in METRICS}
        row["sha256"] = digests[number][0]
        if len(set(digests[number])) != 1:
            row["sha256"] = "differs from launch to launch"
        rows.append(row)
    return {"ptx_sha256": sha256(ptx_of(folder)), "rows": rows}


def launch_all(folder: Path, file: Path) -> None:
    """Launch every case some times and write the digests of what it wrote; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu, ptx = CudaGpu(0, isolate=False), ptx_of(folder)
    digests = [
        [run(gpu, ptx, case, timing=False)[1] for _ in range(PROFILES)] for case in cases()
    ]  # fmt: skip
    file.write_text(json.dumps(digests), encoding="utf-8")


def with_rows(folder: Path, content: Mapping[str, Any]) -> list[tuple[Case, Mapping[str, Any]]]:
    """Return each case and the recorded row of it.

    Raises: HopsimError: the rows are of another text, or of other launches.
    """
    chosen = cases()
    same = sha256(ptx_of(folder)) == content["ptx_sha256"]
    names = [f"{row['kernel']} {row['size']}" for row in content["rows"]]
    if not same or names != [case.name for case in chosen]:
        raise HopsimError(
            "the workloads are no longer those that were recorded",
            hint="hopsim record tests/silicon --part workloads",
        )
    return list(zip(chosen, content["rows"], strict=True))


if __name__ == "__main__":
    launch_all(*(Path(one) for one in json.loads(sys.argv[1])))

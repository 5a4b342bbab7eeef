"""A GEMM program that was measured on silicon: its PTX, and how it is launched for a problem.

    result = launch(gpu, program, (4096, 4096, 4096), grid, operands(gpu, "bf16", "bf16", (4096, 4096, 4096)))

C[M,N] = A[M,K] B[N,K]^T, all row-major.  A program is kept as text, so that it stays what was measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import ConfigError
from hopsim.json_kinds import ANYTHING, TEXT, WHOLE, each, perhaps, rows, table_of, with_besides
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.probes.probe import load_module
from hopsim.kernels.recordings import read_recording
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.results import LaunchResult

Size = tuple[int, int, int]
"""M, N, K."""
Parameter = Mapping[str, Any]
"""One parameter of an entry: `{"map": "A", "box": [64, 128], ...}`, `{"pointer": "A"}`, `{"i32": "M"}`, `{"i64": 1}`
or `{"null": true}`."""
SCALARS: Final = {"i32": np.int32, "u32": np.uint32, "i64": np.int64}
PROGRAM: Final = with_besides(
    table_of(
        kernel=TEXT, entry=TEXT, tile=table_of(bm=WHOLE, bn=WHOLE, bk=WHOLE), block=WHOLE, shared_bytes=WHOLE
    ),
    dtype=TEXT, out_dtype=TEXT, ptx=TEXT, ptx_sha256=TEXT, cluster=WHOLE, operands=TEXT, options=perhaps(each(ANYTHING)),
    parameters=perhaps(rows(each(ANYTHING))),
)  # fmt: skip
"""A program as plain data, see `read`."""
MAP_OPTIONS: Final = {"swizzle": "128B", "l2_promotion": "128B"}
ROW_BYTES: Final = 128
"""Bytes of a row of a box with the 128-byte swizzle."""
SM_COUNT: Final = 132
"""CTAs of a persistent program."""


@dataclass(frozen=True)
class Program:
    """One program.

    Args:
        name: unique.
        ptx: the text.  entry: name of the kernel.
        dtype: of A and B.  out_dtype: of C.
        tile: rows and columns of C for a CTA, and elements of K for a stage.
        parameters: of the entry, in order.
        block, shared_bytes, cluster: how to launch it.
        options: what it was built from, for who reads about it.
        file: the text's path from the folder of the recording.
    """

    name: str
    ptx: str
    entry: str
    dtype: str
    out_dtype: str
    tile: Size
    parameters: Sequence[Parameter]
    block: int
    shared_bytes: int
    cluster: int
    options: Mapping[str, Any]
    file: str

    @property
    def ptx_sha256(self) -> str:
        """Hash of the text."""
        return hashlib.sha256(self.ptx.encode()).hexdigest()

    def triton_grid(self, size: Size) -> int:
        """Return the CTAs of a Triton program on a problem: one a tile of C; a persistent one fills the device."""
        tiles = -(-size[0] // self.tile[0]) * -(-size[1] // self.tile[1])
        return min(tiles, SM_COUNT) if self.options.get("persistent") else tiles


def describe(program: Program) -> dict[str, Any]:
    """Return a program as plain data, see `read`."""
    bm, bn, bk = program.tile
    return {
        "kernel": program.name, "entry": program.entry, "ptx": program.file, "ptx_sha256": program.ptx_sha256,
        "dtype": program.dtype, "out_dtype": program.out_dtype, "block": program.block,
        "shared_bytes": program.shared_bytes, "cluster": program.cluster, "tile": {"bm": bm, "bn": bn, "bk": bk},
        "options": dict(program.options), "parameters": [dict(one) for one in program.parameters],
    }  # fmt: skip


def read(row: Mapping[str, Any], folder: Path) -> Program:
    """Return the program that plain data describes; paths of PTX files are from `folder`.

    Without types it is bf16, without parameters a Triton program: of tensor maps, or with `operands` of `pointers`.

    Raises: ConfigError: its text is missing, or not the one that was measured.
    """
    tile: Size = (row["tile"]["bm"], row["tile"]["bn"], row["tile"]["bk"])
    dtype = row.get("dtype", "bf16")
    out_dtype = row.get("out_dtype", dtype)
    file = row.get("ptx", f"{row['kernel']}.ptx")
    try:
        text = (folder / file).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {folder / file}: {error.strerror}") from None
    parameters: Sequence[Parameter] = row.get("parameters") or (
        TRITON_POINTERS
        if row.get("operands") == "pointers"
        else triton_maps(tile, dtype, out_dtype)
    )
    program = Program(
        row["kernel"], text, row["entry"], dtype, out_dtype, tile, parameters, row["block"], row["shared_bytes"],
        row.get("cluster", 1), row.get("options") or row["tile"], file,
    )  # fmt: skip
    if row.get("ptx_sha256", program.ptx_sha256) != program.ptx_sha256:
        raise ConfigError(
            f"{folder / file} is not the text that was measured",
            hint="record it again: hopsim record --part gemm",
        )
    return program


def read_all(file: Path, folder: Path | None = None) -> Iterator[Program]:
    """Give the programs that a JSON file lists; paths of PTX files are from `folder`, or from that of the file.

    Raises: ConfigError.
    """
    for row in read_recording(file, rows(PROGRAM)):
        yield read(row, folder or file.parent)


def triton_maps(tile: Size, dtype: str, out_dtype: str) -> list[Parameter]:
    """Return Triton's parameters of tensor maps made by the host, then M, N, K and two null pointers.

    Each map is followed by its tensor's shape and strides.  Source: Triton 3.6.0.
    """
    bm, bn, bk = tile
    found: list[Parameter] = []
    for name, kind, (lines, columns), (down, across) in (
        ("A", dtype, "MK", (bm, bk)), ("B", dtype, "NK", (bn, bk)), ("C", out_dtype, "MN", (bm, bn)),
    ):  # fmt: skip
        width = min(across, ROW_BYTES // NUMPY_TYPES[kind].itemsize)
        found.append({"map": name, "box": [width, down]})
        found += [{"i32": lines}, {"i32": columns}, {"i64": columns}, {"i64": 1}]
    return [*found, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}, {"null": True}, {"null": True}]


TRITON_POINTERS: Final[Sequence[Parameter]] = (
    {"pointer": "A"}, {"pointer": "B"}, {"pointer": "C"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}, {"null": True},
    {"null": True},
)  # fmt: skip
"""Triton's parameters of plain pointers. Source: Triton 3.6.0."""


# --- operands and launches ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operands:
    """A, B and C on a device."""

    a: DeviceArray
    b: DeviceArray
    c: DeviceArray


def operands(
    gpu: Any, dtype: str, out_dtype: str, size: Size, values: NDArray[np.float32] | None = None
) -> Operands:
    """Return operands of a problem on a `hopsim.Gpu` or `hopsim.CudaGpu`; A and B repeat `values` (zeros without)."""
    m, n, k = size
    kind, out_kind = NUMPY_TYPES[dtype], NUMPY_TYPES[out_dtype]

    def matrix(rows: int) -> NDArray[Any]:
        if values is None:
            return np.zeros((rows, k), kind)
        return np.resize(values.astype(kind), (rows, k))

    return Operands(
        gpu.array(matrix(m)), gpu.array(matrix(n)), gpu.array(np.zeros((m, n), out_kind))
    )


def _argument(one: Parameter, size: Size, arrays: Mapping[str, DeviceArray]) -> Any:
    if "map" in one:
        options = {name: one.get(name, usual) for name, usual in MAP_OPTIONS.items()}
        return TensorMap(arrays[one["map"]], box=tuple(one["box"]), **options)
    if "pointer" in one:
        return arrays[one["pointer"]]
    if "null" in one:
        return None
    kind, value = next(iter(one.items()))
    named: dict[str, int] = dict(zip("MNK", size, strict=True))
    return SCALARS[kind](named[value] if isinstance(value, str) else value)


def arguments(program: Program, size: Size, given: Operands) -> list[Any]:
    """Return the arguments of a launch, one a parameter."""
    arrays = {"A": given.a, "B": given.b, "C": given.c}
    return [_argument(one, size, arrays) for one in program.parameters]


def launch(
    gpu: Any, program: Program, size: Size, grid: int, given: Operands, **options: Any
) -> LaunchResult:
    """Launch a program on a `hopsim.Gpu` or `hopsim.CudaGpu`.

    Args:
        options: of `gpu.launch`.
    Raises: what `gpu.launch` raises.
    """
    kernel = load_module(program.ptx)[program.entry]
    return gpu.launch(
        kernel, grid, program.block, program.cluster, arguments(program, size, given), program.shared_bytes,
        **options,
    )  # fmt: skip

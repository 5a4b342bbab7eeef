"""Which GEMMs are measured to judge the timing model: hopsim's own schedules, and Triton's from PTX files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.measured.program import Program, Size, read_all

WS: Final = "warp-specialized"
PIPELINED: Final = "pipelined"
OWN: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("bf16", {"schedule": PIPELINED, "tile": (128, 128, 64), "stages": 4}),
    ("bf16", {"schedule": PIPELINED, "tile": (128, 256, 64), "stages": 3, "warpgroups": 2}),
    ("bf16", {"schedule": WS, "tile": (128, 128, 64), "stages": 4}),
    ("bf16", {"schedule": WS, "tile": (128, 256, 64), "stages": 4, "warpgroups": 2, "persistent": True}),
    ("bf16", {"schedule": WS, "tile": (128, 128, 64), "stages": 4, "cluster": (2, 1)}),
    ("e4m3", {"schedule": WS, "tile": (128, 256, 128), "stages": 4, "warpgroups": 2, "persistent": True}),
    ("fp16", {"schedule": WS, "tile": (256, 128, 64), "stages": 4, "warpgroups": 2}),
    ("bf16", {"schedule": PIPELINED, "tile": (64, 64, 64), "stages": 6}),
    ("bf16", {"schedule": WS, "tile": (64, 128, 64), "stages": 6}),
    ("bf16", {"schedule": WS, "tile": (128, 256, 64), "stages": 4, "warpgroups": 2, "persistent": True,
              "cluster": (2, 1)}),
    ("bf16", {"schedule": WS, "tile": (128, 128, 64), "stages": 6, "cluster": (1, 2)}),
    ("e4m3", {"schedule": PIPELINED, "tile": (128, 128, 128), "stages": 4}),
    ("fp16", {"schedule": WS, "tile": (128, 128, 64), "stages": 5, "warpgroups": 2}),
    ("bf16", {"schedule": WS, "tile": (64, 256, 64), "stages": 4, "persistent": True}),
    ("bf16", {"schedule": "cooperative", "tile": (128, 256, 64), "stages": 4, "warpgroups": 2}),
    ("bf16", {"schedule": "pingpong", "tile": (64, 256, 64), "stages": 4, "warpgroups": 2}),
    ("bf16", {"schedule": "mma-multistage", "tile": (128, 128, 64), "stages": 3}),
)  # fmt: skip
LARGE_OWN: Final = 7
"""The first so many are measured at 8192 too."""
CUBES: Final[tuple[Size, ...]] = tuple((n, n, n) for n in (512, 1024, 2048, 4096))
LARGEST: Final[Size] = (8192, 8192, 8192)
RAGGED: Final[tuple[Size, ...]] = ((1000, 1416, 528), (4000, 3008, 2064))
DECODE: Final[tuple[Size, ...]] = ((16, 4096, 4096), (64, 4096, 4096), (128, 4096, 4096))
SMALL: Final[Size] = (208, 272, 192)
DECODE_TILE_M: Final = 64
"""Programs of so small a tile are measured on few rows; the others only with 128 of them."""
TRITON_LARGEST: Final = (
    "mm_tma_fp16_128x256",
    "mm_tma_e4m3_128x256",
    "mm_persistent_bf16",
    "mm_pointers_bf16",
)


@dataclass(frozen=True)
class Case:
    """One program on one problem."""

    program: Program
    size: Size
    grid: int


def _built(dtype: str, options: Mapping[str, Any], size: Size) -> GemmKernel:
    """Return a kernel for a size: one program serves all sizes, so all rows of A are loaded."""
    given: dict[str, Any] = {"a_rows": 0, **options}
    problem = GemmProblem(*size, dtype)
    return build(given.pop("schedule"), problem, given.pop("tile"), given.pop("stages"), **given)


def own_program(dtype: str, options: Mapping[str, Any]) -> Program:
    """Return one of hopsim's own GEMMs as a program that stands for itself."""
    kernel = _built(dtype, options, (512, 512, 512))
    parameters: list[dict[str, Any]] = [
        {"map": one.operand, "box": list(one.box), "swizzle": one.swizzle, "l2_promotion": one.l2_promotion}
        for one in kernel.maps
    ]  # fmt: skip
    parameters += [{"pointer": name} for name in kernel.pointers]
    parameters += [{"u32": name} for name in "MNK"]
    assert not kernel.buffers, kernel.entry
    assert len(kernel.scalars) == 3, kernel.entry
    return Program(
        kernel.entry, kernel.ptx, kernel.entry, dtype, kernel.problem.out_dtype, options["tile"], parameters,
        kernel.block, kernel.shared_bytes, kernel.cluster, options, f"own/{kernel.entry}.ptx",
    )  # fmt: skip


def own_sizes(number: int, tile: Size) -> Iterator[Size]:
    """Give the problems of one of hopsim's own programs."""
    yield from CUBES
    if number < LARGE_OWN:
        yield LARGEST
    yield from RAGGED
    yield from DECODE if tile[0] == DECODE_TILE_M else DECODE[2:]


def small_case(program: Program) -> Case:
    """Return the problem of a program whose bits are kept."""
    if program.file.startswith("own/"):
        return Case(program, SMALL, _built(program.dtype, program.options, SMALL).grid[0])
    return Case(program, SMALL, program.triton_grid(SMALL))


def own_cases() -> list[Case]:
    """Return what is measured of hopsim's own programs."""
    found: list[Case] = []
    for number, (dtype, options) in enumerate(OWN):
        program = own_program(dtype, options)
        found += [
            Case(program, size, _built(dtype, options, size).grid[0])
            for size in own_sizes(number, program.tile)
        ]
    return found


def triton_cases(folder: Path) -> list[Case]:
    """Return what is measured of the programs that `folder/triton/programs.json` lists; none without that file."""
    file = folder / "triton" / "programs.json"
    return [
        Case(program, size, program.triton_grid(size))
        for program in (read_all(file, folder) if file.exists() else ())
        for size in triton_sizes(program)
    ]


def triton_sizes(program: Program) -> Iterator[Size]:
    """Give the problems of one of Triton's programs."""
    yield from CUBES
    if program.name.startswith(TRITON_LARGEST):
        yield LARGEST
    yield RAGGED[1]
    if program.tile[0] == DECODE_TILE_M:
        yield DECODE[1]

"""TiledCopy and TiledMMA as CuTe builds them: which thread and value hold which element of a tile.

The algebra is the `tensor-layouts` library's (extra `layout`); the machine has bit-level code of
its own in `hopsim.layout.fragments`, and a test holds the two against each other.

    copy = tiled_copy(parse_layout("(4,32):(32,1)"), parse_layout("(4,8):(8,1)"))
    copy.tiler_mn, str(copy.layout_tv)          # (16, 256), ((32,4),(8,4)):((128,4),(16,1))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import ConfigError
from hopsim.layout.tiled_notation import CuteLayout, IntTuple, flat, nested, parse_layout, product

Operand = Literal["A", "B", "C"]
OPERANDS: tuple[Operand, ...] = ("A", "B", "C")


@cache
def library() -> Any:
    """Return the `tensor_layouts` package.

    Raises: ConfigError: it is not installed.
    """
    try:
        return import_module("tensor_layouts")
    except ImportError:
        raise ConfigError(
            "layouts need the package tensor-layouts, which is not installed",
            where="hopsim layout",
            hint="pip install 'hopsim[layout]'",
        ) from None


def _out(layout: CuteLayout) -> Any:
    return library().Layout(layout.shape, layout.stride)


def _back(layout: Any) -> CuteLayout:
    return CuteLayout(nested(layout.shape), nested(layout.stride))


@dataclass(frozen=True, slots=True)
class TiledCopy:
    """A copy of a tile by many threads.

    Args:
        tiler_mn: rows and columns of the tile.
        layout_tv: (thread, value) to the offset in the tile, first mode fastest.
    """

    tiler_mn: tuple[int, int]
    layout_tv: CuteLayout

    @property
    def threads(self) -> int:
        """Threads that copy."""
        return self.layout_tv.mode(0).size

    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return row and column of each element, both of shape (threads, values)."""
        return split(self.layout_tv, self.tiler_mn[0])


def tiled_copy(threads: CuteLayout, values: CuteLayout) -> TiledCopy:
    """Return the tiled copy of `make_layout_tv`: each thread has a block of `values`.

    Args:
        threads: (m, n) of a thread to its index.
        values: (m, n) inside a thread's block to its value's index.

    Raises: ConfigError: a layout is not of rank 2, or does not number its elements 0, 1, 2, ...
    Source: CUTLASS 4.2 `make_layout_tv`, `make_tiled_copy`.
    """
    for name, layout in (("thread", threads), ("value", values)):
        if layout.rank != 2:
            raise ConfigError(
                f"the {name} layout must have two modes, got {layout}",
                where="layout copy",
                hint="(16,8):(8,1), for example: 16 along rows, 8 along columns",
            )
        if sorted(layout.offsets().tolist()) != list(range(layout.size)):
            raise ConfigError(
                f"the {name} layout must number its {layout.size} elements from 0, got {layout}",
                where="layout copy",
                hint="(16,8):(8,1) runs along rows, (16,8):(1,16) down columns",
            )
    lib = library()
    layout_mn = lib.raked_product(_out(threads), _out(values))
    sizes = lib.Layout((threads.size, values.size))
    layout_tv = _back(lib.compose(lib.right_inverse(layout_mn), sizes))
    rows, columns = nested(layout_mn.shape), 0
    assert isinstance(rows, tuple), rows
    rows, columns = product(rows[0]), product(rows[1])
    return TiledCopy((rows, columns), layout_tv)


@dataclass(frozen=True, slots=True)
class Atom:
    """One matrix instruction.

    Args:
        name: how PTX writes it.
        shape_mnk: its extents.
        layouts: for A, B and C, (thread, value) to the offset in the (M,K), (N,K) or (M,N) block,
            first mode fastest.
        element_bits: of A and B, and of C.
    """

    name: str
    shape_mnk: tuple[int, int, int]
    layouts: tuple[CuteLayout, CuteLayout, CuteLayout]
    element_bits: tuple[int, int]

    def layout(self, operand: Operand) -> CuteLayout:
        """Return one operand's layout."""
        return self.layouts[OPERANDS.index(operand)]

    def extents(self, operand: Operand) -> tuple[int, int]:
        """Return rows and columns of one operand's block."""
        m, n, k = self.shape_mnk
        return {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]

    @property
    def threads(self) -> int:
        """Threads that execute it together: 32 or 128."""
        return self.layouts[2].mode(0).size


# dtype -> (bits of A and B, type of A, B and C in the library's names, type of C in PTX)
_TYPES: dict[str, tuple[int, str, str, str]] = {
    "fp16": (16, "F16", "F32", "f32"),
    "bf16": (16, "BF16", "F32", "f32"),
    "tf32": (32, "TF32", "F32", "f32"),
    "e4m3": (8, "E4M3", "F32", "f32"),
    "e5m2": (8, "E5M2", "F32", "f32"),
    "int8": (8, "S8", "S32", "s32"),
    "f64": (64, "F64", "F64", "f64"),
}
DTYPES = tuple(_TYPES)
_PTX = {"fp16": "f16", "int8": "s8"}

# A of wgmma from registers.  Source: CUTLASS 4.2, mma_traits_sm90_gmma.hpp, ALayout_64x8, 64x16, 64x32.
_WGMMA_A = {
    8: "((4,8,4),(2,2)):((64,1,16),(8,256))",
    16: "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))",
    32: "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))",
}


def atom(shape: str, dtype: str) -> Atom:
    """Return the `mma.sync` or wgmma instruction of a shape such as `m16n8k16` or `m64n128k16`.

    Raises: ConfigError: there is no such instruction.
    """
    extents = _extents(shape)
    if dtype not in _TYPES:
        raise ConfigError(
            f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}", where="--dtype"
        )
    bits, ab_type, c_type, c_ptx = _TYPES[dtype]
    ptx_type = _PTX.get(dtype, dtype)
    atoms = import_module(f"{library().__name__}.atoms_nv")
    m, n, k = extents
    if m == 64:
        if k * bits != 256 or not 8 <= n <= 256 or n % 8 or dtype == "f64":
            raise _no_such(shape, dtype)
        found: Any = atoms.make_gmma_atom_ss(n, k, c_type, ab_type)
        a_layout = parse_layout(_WGMMA_A[k])
        name = f"wgmma.mma_async.sync.aligned.{shape}.{c_ptx}.{ptx_type}.{ptx_type}"
    else:
        body = f"{m}x{n}x{k}_{c_type}{ab_type}{ab_type}{c_type}_TN"
        candidates = [getattr(atoms, f"SM{chip}_{body}", None) for chip in (90, 89, 80)]
        found = next((atom for atom in candidates if atom is not None), None)
        if found is None:
            raise _no_such(shape, dtype)
        a_layout = _back(found.a_layout)
        name = f"mma.sync.aligned.{shape}.row.col.{c_ptx}.{ptx_type}.{ptx_type}.{c_ptx}"
    layouts = (a_layout, _back(found.b_layout), _back(found.c_layout))
    return Atom(name, extents, layouts, (bits, 64 if dtype == "f64" else 32))


def _extents(shape: str) -> tuple[int, int, int]:
    m, found, rest = shape.removeprefix("m").partition("n")
    n, found_k, k = rest.partition("k")
    if shape[:1] != "m" or not found or not found_k or not all(p.isdigit() for p in (m, n, k)):
        raise ConfigError(
            f"expected a shape such as m16n8k16 or m64n128k16, got {shape!r}", where="layout mma"
        )
    return int(m), int(n), int(k)


def _no_such(shape: str, dtype: str) -> ConfigError:
    return ConfigError(
        f"there is no matrix instruction of shape {shape} for {dtype}",
        where="layout mma",
        hint="m16n8k16 (fp16, bf16), m16n8k8 (tf32), m16n8k32 (e4m3, e5m2, int8), m16n8k8 (f64); "
        "wgmma: m64n8k16 to m64n256k16, k8 for tf32, k32 for 8 bits",
        source='PTX ISA 8.7, "mma", "wgmma.mma_async"',
    )


@dataclass(frozen=True, slots=True)
class TiledMma:
    """A matrix product of a tile by many atoms.

    Args:
        atom: the instruction.
        thr_layout_vmnk: (thread of the atom, atom along M, N, K) to the thread.
        tile_mnk: extents of the tile.
    """

    atom: Atom
    thr_layout_vmnk: CuteLayout
    tile_mnk: tuple[int, int, int]

    def extents(self, operand: Operand) -> tuple[int, int]:
        """Return rows and columns of one operand's tile."""
        m, n, k = self.tile_mnk
        return {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]

    def layout_tv(self, operand: Operand) -> CuteLayout:
        """Return (thread, value) to the offset in the operand's tile, first mode fastest.

        Threads that hold the same elements (other columns for A, other rows for B) have stride 0.
        """
        rows, columns = self.extents(operand)
        inner_rows, inner_columns = self.atom.extents(operand)
        block = CuteLayout((inner_rows, inner_columns), (1, rows))
        lib = library()
        in_tile = _back(lib.compose(_out(block), _out(self.atom.layout(operand))))
        atoms_m, atoms_n, _ = self.atoms
        down = {"A": (atoms_m, inner_rows), "B": (atoms_m, 0), "C": (atoms_m, inner_rows)}[operand]
        along = {
            "A": (atoms_n, 0),
            "B": (atoms_n, inner_rows),
            "C": (atoms_n, inner_columns * rows),
        }[operand]
        modes = [down, along]
        if self._runs_along_n:
            modes.reverse()
        thread = in_tile.mode(0)
        value = in_tile.mode(1)
        held_rows = atoms_n if operand == "B" else atoms_m
        held_columns = atoms_n if operand == "C" else 1
        rest = (
            (rows // (inner_rows * held_rows), inner_rows * held_rows),
            (columns // (inner_columns * held_columns), inner_columns * held_columns * rows),
        )
        return CuteLayout(
            (
                _join(thread.shape, *(m[0] for m in modes)),
                _join(value.shape, *(r[0] for r in rest)),
            ),
            (
                _join(thread.stride, *(m[1] for m in modes)),
                _join(value.stride, *(r[1] for r in rest)),
            ),
        )

    @property
    def atoms(self) -> tuple[int, int, int]:
        """Atoms along M, N and K that threads share out."""
        shape = self.thr_layout_vmnk.shape
        assert isinstance(shape, tuple), shape
        return product(shape[1]), product(shape[2]), product(shape[3])

    @property
    def threads(self) -> int:
        """Threads of the tile."""
        return self.thr_layout_vmnk.size

    @property
    def _runs_along_n(self) -> bool:
        along = flat(self.thr_layout_vmnk.stride)
        return self.atoms[1] > 1 and along[-2] < along[-3]

    def places(self, operand: Operand) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return row and column of each element, both of shape (threads, values)."""
        return split(self.layout_tv(operand), self.extents(operand)[0])


def tiled_mma(
    instruction: Atom, atoms: tuple[int, int], values: tuple[int, int], along_n: bool = False
) -> TiledMma:
    """Return a tiled product: `atoms` side by side on different threads, `values` on the same ones.

    Args:
        atoms: atoms along M and N (CuTe's atom layout).
        values: how often each thread repeats that along M and N (CuTe's value tile).
        along_n: the next atom's threads go along N first; by default along M.

    Source: CUTLASS 4.2 `make_tiled_mma`, `TiledMMA`.
    """
    m, n, k = instruction.shape_mnk
    lanes = instruction.threads
    along = (lanes * atoms[1], lanes) if along_n else (lanes, lanes * atoms[0])
    vmnk = CuteLayout((lanes, *atoms, 1), (1, *along, 0))
    tile = (m * atoms[0] * values[0], n * atoms[1] * values[1], k)
    return TiledMma(instruction, vmnk, tile)


def _join(first: IntTuple, *more: int) -> IntTuple:
    return (first, *more)


def split(layout_tv: CuteLayout, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column, each (threads, values), of a layout over a tile of `rows` rows."""
    threads = layout_tv.mode(0).size
    offsets = layout_tv.offsets().reshape(-1, threads).T
    return offsets % rows, offsets // rows

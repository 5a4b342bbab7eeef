"""Which lane and register hold which matrix element: wgmma, mma.sync, ldmatrix, movmatrix.

Each layout exists twice: as a map (arrays of row and column for every register, lane and element),
which is what the PTX figures show, and as a converter, one reshape and transpose (a cached take for
32-bit accumulators, where that is faster), which is what the machine calls.  Registers are arrays
of raw bits of shape (registers, lanes), lanes last; an element narrower than a register is taken
from its low bits first.

All operands share one pattern.  With E elements in a register, `group = lane % 32 // 4` and
`thread = lane % 4`: register r of an A fragment holds row `group + 8 * (r % 2)` and the columns
`r // 2 * 4E + thread * E + e`; a B fragment has the column in `group` and k in place of the column;
a C or D fragment always has two neighbouring columns in `thread`.

>>> accumulator_map(8).at(register=2, lane=5)
[(9, 2)]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RawBits = NDArray[np.unsignedinteger]

_RAW: dict[int, np.dtype[np.unsignedinteger]] = {
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}


@dataclass(frozen=True, slots=True, eq=False)
class FragmentMap:
    """The matrix coordinates of every element of a fragment.

    Args:
        rows: shape (registers, lanes, elements), the matrix row of each element.
        cols: same shape, the matrix column.
        element_bits: width of one element; element e sits at bit `e * element_bits`.
    """

    rows: NDArray[np.intp]
    cols: NDArray[np.intp]
    element_bits: int

    def at(self, register: int, lane: int) -> list[tuple[int, int]]:
        """Return the (row, column) of each element of one register of one lane, low bits first."""
        rows: list[int] = self.rows[register, lane].tolist()
        cols: list[int] = self.cols[register, lane].tolist()
        return list(zip(rows, cols, strict=True))


def _freeze(rows: NDArray[np.intp], cols: NDArray[np.intp], element_bits: int) -> FragmentMap:
    rows, cols = (np.ascontiguousarray(a) for a in np.broadcast_arrays(rows, cols))
    rows.setflags(write=False)
    cols.setflags(write=False)
    return FragmentMap(rows, cols, element_bits)


def _axes(
    registers: int, lanes: int, elements: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return register, lane group with its warp's 16-row offset, thread in group, element."""
    register = np.arange(registers, dtype=np.intp)[:, None, None]
    lane = np.arange(lanes, dtype=np.intp)[None, :, None]
    element = np.arange(elements, dtype=np.intp)[None, None, :]
    return register, lane // 32 * 16 + lane % 32 // 4, lane % 4, element


def _elements(element_bits: int) -> int:
    """Return how many elements a register holds; an f64 register is 64 bits wide."""
    return max(1, 32 // element_bits)


# --- Maps: the figures as data -----------------------------------------------------------------


@lru_cache(maxsize=256)
def accumulator_map(n: int, element_bits: int = 32) -> FragmentMap:
    """Return the D fragment of `wgmma.mma_async` .m64n{n}: 128 lanes, n/2 (or n/4) registers.

    Args:
        n: 8 to 256 in steps of 8.
        element_bits: 32 (f32, s32) or 16 (f16, two columns to a register).

    Source: PTX ISA 8.7 "Register Fragments" of wgmma; CUTLASS 4.2 `CLayout_64xN`.
    """
    return _accumulators(n, element_bits, lanes=128, halves=2)


@lru_cache(maxsize=64)
def mma_c_map(m: int, element_bits: int = 32) -> FragmentMap:
    """Return the C and D fragment of `mma.sync` .m{m}n8: 32 lanes.

    Args:
        m: 16 or 8.
        element_bits: 32 (f32, s32), 16 (f16) or 64 (f64).

    Source: PTX ISA 8.7 "Matrix Fragments for mma.m16n8k16" and its neighbours, "mma.m8n8k4 .f64".
    """
    return _accumulators(8, element_bits, lanes=32, halves=m // 8)


def _accumulators(n: int, element_bits: int, lanes: int, halves: int) -> FragmentMap:
    packed = _elements(element_bits)
    per_half = 2 // packed
    register, group, thread, element = _axes(n // 8 * halves * per_half, lanes, packed)
    column = register % per_half + element
    half = register // per_half % halves
    block = register // (per_half * halves)
    return _freeze(group + 8 * half, block * 8 + thread * 2 + column, element_bits)


@lru_cache(maxsize=64)
def a_map(m: int, k: int, element_bits: int) -> FragmentMap:
    """Return the A fragment of `mma.sync` (m 8 or 16, 32 lanes) or of wgmma (m 64, 128 lanes).

    Args:
        k: columns of A; for wgmma from registers 256 / element_bits.
        element_bits: 8 (e4m3, e5m2, s8, u8), 16 (f16, bf16), 32 (tf32) or 64 (f64).

    Source: PTX ISA 8.7 "Register Fragments" of wgmma; "Matrix Fragments for mma.m16n8k4", "k8",
        "k16", "k32", "mma.m8n8k16", "mma.m8n8k4 .f64"; CUTLASS 4.2 `ALayout_64x8`, `64x16`,
        `64x32`.
    """
    elements = _elements(element_bits)
    halves, lanes = (1, 32) if m == 8 else (2, 128 if m == 64 else 32)
    register, group, thread, element = _axes(k // (4 * elements) * halves, lanes, elements)
    row = group + 8 * (register % halves)
    return _freeze(
        row, register // halves * 4 * elements + thread * elements + element, element_bits
    )


@lru_cache(maxsize=64)
def b_map(k: int, element_bits: int) -> FragmentMap:
    """Return the B fragment (k x 8) of `mma.sync`: rows are k, columns are n.

    Source: PTX ISA 8.7 "Matrix Fragments for mma.m16n8k16" and its neighbours.
    """
    elements = _elements(element_bits)
    register, group, thread, element = _axes(k // (4 * elements), 32, elements)
    return _freeze(register * 4 * elements + thread * elements + element, group, element_bits)


@lru_cache(maxsize=2)
def ldmatrix_map(trans: bool) -> FragmentMap:
    """Return one 8x8 matrix of 16-bit elements as `ldmatrix` and `stmatrix` spread it: 1 register.

    Matrix i of .x2 and .x4 is register i; row r of matrix i is at the address of lane `8 * i + r`.

    Source: PTX ISA 8.7 "ldmatrix", "stmatrix".
    """
    _, group, thread, element = _axes(1, 32, 2)
    across = thread * 2 + element
    return _freeze(across, group, 16) if trans else _freeze(group, across, 16)


# --- wgmma: registers (registers, 128) <-> matrix (64, columns) --------------------------------


@lru_cache(maxsize=64)
def _accumulator_takes(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return flat indices matrix -> registers (n/2, 128) and registers -> matrix (64, n)."""
    where = accumulator_map(n)
    to_registers = (where.rows * n + where.cols)[:, :, 0]
    to_matrix = np.empty(64 * n, np.intp)
    to_matrix[to_registers.ravel()] = np.arange(64 * n, dtype=np.intp)
    return to_registers, to_matrix.reshape(64, n)


def accumulator_to_registers(matrix: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the registers (n/2, 128) of a 32-bit accumulator (64, n)."""
    return matrix.ravel().take(_accumulator_takes(matrix.shape[1])[0])


def registers_to_accumulator(registers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the 32-bit accumulator (64, n) held in registers (n/2, 128)."""
    return registers.ravel().take(_accumulator_takes(registers.shape[0] * 2)[1])


def packed_accumulator_to_registers(matrix: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """Return the registers (n/4, 128) of an f16 accumulator (64, n), raw bits."""
    n = matrix.shape[1]
    pairs = np.ascontiguousarray(matrix).view(np.uint32).reshape(4, 2, 8, n // 8, 4)
    return pairs.transpose(3, 1, 0, 2, 4).reshape(n // 4, 128)


def registers_to_packed_accumulator(registers: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Return the f16 accumulator (64, n), raw bits, held in registers (n/4, 128)."""
    n = registers.shape[0] * 4
    pairs = registers.reshape(n // 8, 2, 4, 8, 4).transpose(2, 1, 3, 0, 4)
    return np.ascontiguousarray(pairs).view(np.uint16).reshape(64, n)


def registers_to_a(registers: NDArray[np.uint32], element_bits: int) -> RawBits:
    """Return A (64, k), raw bits, held in wgmma registers (k * element_bits / 64, 128)."""
    return registers_to_mma_a(registers, 64, element_bits)


def a_to_registers(matrix: RawBits) -> NDArray[np.uint32]:
    """Return the wgmma registers (registers, 128) of A (64, k)."""
    return mma_a_to_registers(matrix).astype(np.uint32, copy=False)


# --- mma.sync: registers (registers, lanes) <-> matrix ----------------------------------------


def registers_to_mma_a(registers: RawBits, m: int, element_bits: int) -> RawBits:
    """Return A (m, k), raw bits, held in registers (registers, lanes).

    Args:
        registers: uint32, or uint64 for f64.
        m: 8 or 16 with 32 lanes, 64 with 128 lanes.
        element_bits: 1 to 64.
    """
    halves, warps = (1, 1) if m == 8 else (2, m // 16)
    parts = registers.reshape(-1, halves, warps, 8, 4).transpose(2, 1, 3, 0, 4)
    return _apart(np.ascontiguousarray(parts), element_bits).reshape(m, -1)


def mma_a_to_registers(matrix: RawBits) -> RawBits:
    """Return the registers (registers, lanes) of A (m, k), m being 8, 16 or 64."""
    m = matrix.shape[0]
    halves, warps = (1, 1) if m == 8 else (2, m // 16)
    words = _as_words(matrix).reshape(warps, halves, 8, -1, 4)
    return words.transpose(3, 1, 0, 2, 4).reshape(-1, warps * 32)


def registers_to_mma_b(registers: RawBits, element_bits: int) -> RawBits:
    """Return B transposed, (8, k) raw bits, held in registers (registers, 32)."""
    parts = registers.reshape(-1, 8, 4).transpose(1, 0, 2)
    return _apart(np.ascontiguousarray(parts), element_bits).reshape(8, -1)


def mma_b_to_registers(matrix: RawBits) -> RawBits:
    """Return the registers (registers, 32) of B given transposed, (8, k)."""
    return _as_words(matrix).reshape(8, -1, 4).transpose(1, 0, 2).reshape(-1, 32)


def registers_to_mma_c(registers: RawBits, m: int, element_bits: int) -> RawBits:
    """Return C or D (m, 8), raw bits, held in registers (registers, 32)."""
    if element_bits == 16:
        pairs = registers.reshape(m // 8 * 8, 4)
        return np.ascontiguousarray(pairs).view(np.uint16)
    return registers.reshape(m // 8, 2, 8, 4).transpose(0, 2, 3, 1).reshape(m, 8)


def mma_c_to_registers(matrix: RawBits) -> RawBits:
    """Return the registers (registers, 32) of C or D (m, 8); uint16 elements go in pairs."""
    m = matrix.shape[0]
    if matrix.itemsize == 2:
        return np.ascontiguousarray(matrix).view(np.uint32).reshape(m // 8, 32)
    return matrix.reshape(m // 8, 8, 4, 2).transpose(0, 3, 1, 2).reshape(m // 4, 32)


def _apart(words: RawBits, element_bits: int) -> RawBits:
    """Return the elements of registers, low bits first; those of less than a byte take one each."""
    if element_bits >= 8:
        return words.view(_RAW[element_bits])
    parts = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(-1, element_bits)
    return np.packbits(parts, axis=1, bitorder="little")


def _as_words(matrix: RawBits) -> RawBits:
    whole = np.ascontiguousarray(matrix)
    return whole if whole.itemsize >= 4 else whole.view(np.uint32)


# --- ldmatrix, stmatrix, movmatrix -------------------------------------------------------------


def matrices_to_registers(rows: NDArray[np.uint16], trans: bool) -> NDArray[np.uint32]:
    """Return the registers (count, 32) that `ldmatrix` fills.

    Args:
        rows: shape (count, 8, 8): the eight 16-byte rows that lanes 8i to 8i+7 address.
        trans: the `.trans` modifier.
    """
    whole = np.ascontiguousarray(rows.transpose(0, 2, 1) if trans else rows)
    return whole.view(np.uint32).reshape(-1, 32)


def registers_to_matrices(registers: NDArray[np.uint32], trans: bool) -> NDArray[np.uint16]:
    """Return the rows (count, 8, 8) that `stmatrix` stores from registers (count, 32)."""
    matrices = np.ascontiguousarray(registers).view(np.uint16).reshape(-1, 8, 8)
    return np.ascontiguousarray(matrices.transpose(0, 2, 1)) if trans else matrices


def movmatrix(register: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the register (32,) of the transposed 8x8 matrix of 16-bit elements.

    Source: PTX ISA 8.7 "movmatrix".
    """
    matrix = np.ascontiguousarray(register).view(np.uint16).reshape(8, 8)
    return np.ascontiguousarray(matrix.T).view(np.uint32).reshape(32)

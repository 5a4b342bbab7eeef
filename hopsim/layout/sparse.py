"""Sparse operands A of mma.sp and wgmma.mma_async.sp: half of the elements are stored, and metadata says which.

Of each chunk of four units of a row two are stored, in order; four bits of metadata give their places.  A unit is one
element of 16 or 8 bits, a pair of those of 4 bits, half a tf32 element (so that of two elements one is stored).

>>> metadata_map("f16", 32).at(row=9, chunk=4)
(5, 4)
>>> stored_places(np.array([[0x4, 0xE]], np.uint8), "bf16")
array([[0, 1, 6, 7]])

Source: PTX ISA 8.7 "Sparse matrix storage" of mma and of wgmma; which thread holds what: recorded on an H200
(tests/silicon/h200/probes/mma_sparse.npz, wgmma_sparse.npz).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.layout.fragments import RawBits

UNIT_BITS: Final = {
    "f16": 16, "bf16": 16, "tf32": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 8, "u4": 8,
}  # fmt: skip
"""Of what metadata tells apart."""
ELEMENT_BITS: Final = {**UNIT_BITS, "tf32": 32, "s4": 4, "u4": 4}
CHUNK: Final = 4
"""Units of a chunk, and bits of metadata for it."""
CHUNKS_OF_REGISTER: Final = 8
QUAD: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class MetadataMap:
    """Which lane of a warp holds the metadata of which chunk.

    Args:
        lanes, nibbles: shape (16 rows, chunks): the lane, and which four bits of its register, low ones first.
        contributing: lanes of four that hold metadata.
    """

    lanes: NDArray[np.intp]
    nibbles: NDArray[np.intp]
    contributing: int

    def at(self, row: int, chunk: int) -> tuple[int, int]:
        """Return the lane and the place in its register, for selector 0."""
        return int(self.lanes[row, chunk]), int(self.nibbles[row, chunk])

    @property
    def selectors(self) -> int:
        """How many values the sparsity selector has: which lanes of four hold the metadata."""
        return QUAD // self.contributing


@lru_cache(maxsize=32)
def metadata_map(kind: str, k: int) -> MetadataMap:
    """Return where the metadata of a row of A of k elements, stored or not, lies.

    A lane has half of its register for row `lane / 4`, half for the eighth row below: of 8-bit units a whole register for
    one of the two.

    Args:
        kind: PTX type of A.
    """
    units = k * ELEMENT_BITS[kind] // UNIT_BITS[kind]
    chunks = units // CHUNK
    contributing = max(1, chunks * 2 // CHUNKS_OF_REGISTER)
    row, chunk = np.meshgrid(np.arange(16), np.arange(chunks), indexing="ij")
    group, lower = row % 8, row // 8
    if UNIT_BITS[kind] == 8:
        lane = chunk // CHUNKS_OF_REGISTER * 2 + lower
        nibble = chunk % CHUNKS_OF_REGISTER
    else:
        half = CHUNKS_OF_REGISTER // 2
        lane = chunk // half
        nibble = chunk % half + half * lower
    return MetadataMap(group * QUAD + lane, nibble, contributing)


def metadata_of_rows(
    registers: NDArray[np.uint32], kind: str, k: int, selector: int
) -> NDArray[np.uint8]:
    """Return the metadata of each chunk, (rows, chunks), that lanes hold, (lanes,): 16 rows a warp."""
    where = metadata_map(kind, k)
    warps = registers.reshape(-1, 32)
    words = warps[:, where.lanes + selector * where.contributing]
    nibbles = words >> (4 * where.nibbles).astype(np.uint32) & np.uint32(0xF)
    return nibbles.reshape(-1, where.lanes.shape[1]).astype(np.uint8)


def stored_places(metadata: NDArray[np.uint8], kind: str) -> NDArray[np.intp]:
    """Return where along K each stored element stands: (rows, k / 2)."""
    pairs = np.stack([metadata & 3, metadata >> 2], axis=-1)
    first = CHUNK * np.arange(metadata.shape[1], dtype=np.intp)
    units: NDArray[np.intp] = pairs.astype(np.intp) + first[:, None]
    bits, unit_bits = ELEMENT_BITS[kind], UNIT_BITS[kind]
    if bits > unit_bits:
        return units[..., 0] // (bits // unit_bits)
    parts = unit_bits // bits
    inside = np.arange(parts, dtype=np.intp)
    elements: NDArray[np.intp] = units[..., None] * parts + inside
    return elements.reshape(metadata.shape[0], -1)


def gathered(other: RawBits, places: NDArray[np.intp]) -> RawBits:
    """Return what each row of A meets of B: (rows, columns, k / 2) of B transposed, (columns, k)."""
    return np.ascontiguousarray(other[:, places].swapaxes(0, 1))

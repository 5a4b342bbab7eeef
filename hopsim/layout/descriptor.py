"""The wgmma shared-memory matrix descriptor and the bytes it names.

A descriptor gives a start address, two byte offsets and a swizzle; together with the major mode of
the operand (`imm-trans-a`, `imm-trans-b`) they say where element (row, k) lies, row being M or N.
The index arrays are computed once for each distinct geometry, so that one wgmma costs one take.

>>> d = MatrixDescriptor(0x400, 16, 1024, 0, Swizzle.B128)
>>> hex(d.encode())
'0x4000004000010040'
>>> operand_addresses(d.encode(), 64, 16, 2, "K")[:2, 0].tolist()
[1024, 1168]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.layout.swizzle import Swizzle

Major = Literal["K", "MN"]
OperandBits = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

_SOURCE = 'PTX ISA 8.7, "Matrix Descriptor Format"'
_FIELD_MASK = 0x3FFFF
_CHUNK_BYTES = 16
_MODES = (Swizzle.NONE, Swizzle.B128, Swizzle.B64, Swizzle.B32)
_CODES = {mode: code for code, mode in enumerate(_MODES)}
_ELEMENT_TYPES: dict[int, np.dtype[np.unsignedinteger]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
}


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """The fields of a wgmma matrix descriptor, in bytes.

    Args:
        start_addr: shared address of the first element, a multiple of 16 below 2^18.
        leading_byte_offset: LBO, see `operand_offsets`.
        stride_byte_offset: SBO, see `operand_offsets`.
        base_offset: 0 to 7, the row of 128 bytes at which the swizzle pattern starts.
        swizzle: the mode; its code in the descriptor is not that of `CUtensorMapSwizzle`.

    Source: PTX ISA 8.7 "Matrix Descriptor Format".
    """

    start_addr: int
    leading_byte_offset: int
    stride_byte_offset: int
    base_offset: int = 0
    swizzle: Swizzle = Swizzle.NONE

    def encode(self) -> int:
        """Return the 64-bit descriptor.

        Raises: MachineFault: a field is not a multiple of 16, or is out of range.
        """
        for name in ("start_addr", "leading_byte_offset", "stride_byte_offset"):
            value: int = getattr(self, name)
            if value & ~_FIELD_MASK or value % _CHUNK_BYTES:
                raise MachineFault(
                    f"matrix descriptor {name} must be a multiple of 16 from 0 to 262128, "
                    f"got {value} ({value:#x})",
                    hint="align the tile; sizes are bytes here, the descriptor holds bytes >> 4",
                    source=_SOURCE,
                )
        if not 0 <= self.base_offset <= 7:
            raise MachineFault(
                f"matrix descriptor base_offset must be 0 to 7, got {self.base_offset}",
                hint="base offset is (pattern start address >> 7) & 7",
                source=_SOURCE,
            )
        return (
            self.start_addr >> 4
            | self.leading_byte_offset >> 4 << 16
            | self.stride_byte_offset >> 4 << 32
            | self.base_offset << 49
            | _CODES[self.swizzle] << 62
        )

    @classmethod
    def decode(cls, bits: int) -> MatrixDescriptor:
        """Return the fields of a 64-bit descriptor; bits that PTX does not define are ignored."""
        return cls(
            start_addr=(bits & 0x3FFF) << 4,
            leading_byte_offset=(bits >> 16 & 0x3FFF) << 4,
            stride_byte_offset=(bits >> 32 & 0x3FFF) << 4,
            base_offset=bits >> 49 & 7,
            swizzle=_MODES[bits >> 62 & 3],
        )


def descriptor_problems(bits: int, element_bytes: int, major: Major) -> tuple[str, ...]:
    """Return what looks wrong in a descriptor, one sentence each; empty when nothing does.

    These are findings for a checker, not faults: the hardware reads some address in every case.

    Source: PTX ISA 8.7 "Matrix Descriptor Format", "Strides", "wgmma.mma_async".
    """
    descriptor = MatrixDescriptor.decode(bits)
    found: list[str] = []
    if bits & 0x3FF1C000C000C000:
        found.append(f"bits that must be zero are set: {bits & 0x3FF1C000C000C000:#x}")
    if major == "MN" and element_bytes != 2:
        found.append(f"MN-major needs a 16-bit type, got {8 * element_bytes} bits")
    if descriptor.base_offset and descriptor.swizzle is Swizzle.NONE:
        found.append(f"base offset {descriptor.base_offset} has no meaning without a swizzle")
    if descriptor.swizzle is not Swizzle.NONE:
        row_bytes = 8 * descriptor.swizzle.width_bytes
        if descriptor.stride_byte_offset % row_bytes:
            found.append(
                f"stride byte offset must be a multiple of 8 rows = {row_bytes} bytes to meet the "
                f"same swizzle in every group, got {descriptor.stride_byte_offset}"
            )
    return tuple(found)


@lru_cache(maxsize=4096)
def operand_offsets(
    leading_byte_offset: int,
    stride_byte_offset: int,
    base_offset: int,
    swizzle: Swizzle,
    start_phase: int,
    rows: int,
    k_bytes: int,
    major: Major,
    element_bytes: int,
) -> NDArray[np.intp]:
    """Return where the 16-byte chunks of an operand lie, past a 1024-byte boundary.

    Rows of eight chunks' height make a group (along M or N for K-major, along K for MN-major):

    | major | swizzle | LBO | SBO |
    |---|---|---|---|
    | K | none | next chunk along K | next 8 rows |
    | K | 32B, 64B, 128B | not used | next 8 rows |
    | MN | none | next 8 k | next chunk along M or N |
    | MN | 32B, 64B, 128B | next 2, 4 or 8 chunks along M or N | next 8 k |

    The swizzle then acts on the address bits; `start_phase`, the start address modulo 1024, is
    part of them, so a start address inside an atom (the usual advance along K) works.

    Args:
        start_phase: start address & 1023.
        rows: M or N of the operand; a multiple of one chunk's elements for MN-major.
        k_bytes: K times the element bytes, 32 for every dense wgmma.

    Returns: byte offsets from `start address - start_phase`; shape (rows, k_bytes // 16) for
        K-major, (K, rows * element_bytes // 16) for MN-major.

    Source: PTX ISA 8.7 "Strides" (canonical layouts); CUTLASS 4.2 `make_gmma_desc`;
        checked on an H100: tests/silicon/layout.
    """
    lbo, sbo = leading_byte_offset, stride_byte_offset
    width_chunks = swizzle.width_bytes // _CHUNK_BYTES
    if major == "K":
        line = np.arange(rows, dtype=np.intp)[:, None]
        chunk = np.arange(k_bytes // _CHUNK_BYTES, dtype=np.intp)[None, :]
        along = chunk * (lbo if swizzle is Swizzle.NONE else _CHUNK_BYTES)
        group = line // 8 * sbo
    else:
        line = np.arange(k_bytes // element_bytes, dtype=np.intp)[:, None]
        chunk = np.arange(rows * element_bytes // _CHUNK_BYTES, dtype=np.intp)[None, :]
        if swizzle is Swizzle.NONE:
            along = chunk * sbo
            group = line // 8 * lbo
        else:
            along = chunk % width_chunks * _CHUNK_BYTES + chunk // width_chunks * lbo
            group = line // 8 * sbo
    linear = start_phase + line % 8 * swizzle.width_bytes + along + group
    pattern_row = (linear >> 7) - base_offset
    offsets = linear ^ ((pattern_row << 4) & swizzle.chunk_mask)
    offsets.setflags(write=False)
    return offsets


@lru_cache(maxsize=8192)
def _plan(
    bits: int, rows: int, k_elems: int, element_bytes: int, major: Major
) -> tuple[int, int, NDArray[np.intp]]:
    """Return (first byte, byte after the last, chunk indices past the first byte)."""
    d = MatrixDescriptor.decode(bits)
    phase = d.start_addr & 1023
    offsets = operand_offsets(
        d.leading_byte_offset, d.stride_byte_offset, d.base_offset, d.swizzle, phase,
        rows, k_elems * element_bytes, major, element_bytes,
    )  # fmt: skip
    chunks = offsets // _CHUNK_BYTES
    chunks.setflags(write=False)
    first = d.start_addr - phase
    return first, first + int(offsets.max()) + _CHUNK_BYTES, chunks


def operand_addresses(
    bits: int, rows: int, k_elems: int, element_bytes: int, major: Major
) -> NDArray[np.int64]:
    """Return the shared byte address of every element of an operand, shape (rows, k_elems).

    Args:
        bits: the 64-bit matrix descriptor.
        rows: M (64) or N (8 to 256).
        major: "K" when the transpose immediate is 0, "MN" when it is 1.
    """
    first, _, chunks = _plan(bits, rows, k_elems, element_bytes, major)
    within = np.arange(_CHUNK_BYTES // element_bytes, dtype=np.int64) * element_bytes
    lines = (first + chunks[:, :, None] * _CHUNK_BYTES + within).reshape(len(chunks), -1)
    return lines if major == "K" else lines.T


def operand_span(
    bits: int, rows: int, k_elems: int, element_bytes: int, major: Major
) -> tuple[int, int]:
    """Return shared addresses [first, stop) that hold an operand, `first` rounded down to 1 KiB."""
    return _plan(bits, rows, k_elems, element_bytes, major)[:2]


@lru_cache(maxsize=8192)
def operand_chunks(
    bits: int, rows: int, k_elems: int, element_bytes: int, major: Major
) -> NDArray[np.int64]:
    """Return the sorted distinct shared addresses of the 16-byte chunks that an operand reads."""
    first, _, chunks = _plan(bits, rows, k_elems, element_bytes, major)
    found = np.unique(chunks).astype(np.int64) * _CHUNK_BYTES + first
    found.setflags(write=False)
    return found


def gather_operand(
    shared: NDArray[np.uint8],
    bits: int,
    rows: int,
    k_elems: int,
    element_bytes: int,
    major: Major,
    window_base: int = 0,
) -> OperandBits:
    """Read a wgmma operand out of shared memory.

    Args:
        shared: the bytes of the CTA's shared memory, contiguous.
        bits: the 64-bit matrix descriptor.
        rows: M or N.
        k_elems: K of the instruction.
        element_bytes: 1, 2 or 4.
        major: "K" or "MN".
        window_base: shared address of `shared[0]`, a multiple of 1024.

    Returns: raw bits, shape (rows, k_elems); for MN-major a transposed view.
    Raises: MachineFault: the descriptor names bytes outside `shared`.
    """
    first, stop, chunks = _plan(bits, rows, k_elems, element_bytes, major)
    first -= window_base
    stop -= window_base
    if first < 0 or stop > shared.size:
        raise MachineFault(
            f"wgmma descriptor {bits:#018x} names shared bytes up to {stop + window_base:#x}, "
            f"expected within [{window_base:#x}, {window_base + shared.size:#x})",
            hint="check start address, leading and stride byte offset",
            source=_SOURCE,
        )
    # 16-byte items make the take a plain block copy; the values are never looked at.
    taken = shared[first:stop].view(np.complex128).take(chunks)
    lines = taken.view(_ELEMENT_TYPES[element_bytes])
    return lines if major == "K" else lines.T

"""The canonical layouts of a wgmma operand in shared memory, as TMA leaves a tile there.

>>> tile = canonical("K", Swizzle.B128, rows=64, k=64, element_bytes=2)
>>> tile.leading_byte_offset, tile.stride_byte_offset, tile.step_offsets
(16, 1024, (0, 32, 64, 96))
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.errors import ConfigError
from hopsim.layout.descriptor import Major, MatrixDescriptor
from hopsim.layout.swizzle import Swizzle

_STEP_BYTES = 32
"""Bytes along K of one dense wgmma.  Source: PTX ISA 8.7 "wgmma.mma_async"."""

_CHUNK_BYTES = 16
_BITS = {Swizzle.NONE: 0, Swizzle.B32: 1, Swizzle.B64: 2, Swizzle.B128: 3}


@dataclass(frozen=True, slots=True)
class OperandTile:
    """A tile of A or B in shared memory.

    Args:
        major: "K" or "MN": along what 16-byte chunks run.
        swizzle: mode of the tensor map and of the descriptor.
        rows, k: extents in elements, rows being M or N.
        element_bytes: 1, 2 or 4.
        leading_byte_offset, stride_byte_offset: what the descriptor holds.
        box: TMA box, innermost first; the tile is `boxes` of them, one after the other.
        step_offsets: what the start address moves by for each wgmma along K.
        cute: the layout in CuTe's notation, T being the elements of 16 bytes.
    """

    major: Major
    swizzle: Swizzle
    rows: int
    k: int
    element_bytes: int
    leading_byte_offset: int
    stride_byte_offset: int
    box: tuple[int, int]
    boxes: int
    step_offsets: tuple[int, ...]
    cute: str

    @property
    def tile_bytes(self) -> int:
        """Bytes of the tile."""
        return self.rows * self.k * self.element_bytes

    def descriptor(self, start_addr: int = 0) -> MatrixDescriptor:
        """Return the descriptor of the tile's first wgmma."""
        return MatrixDescriptor(
            start_addr,
            self.leading_byte_offset,
            self.stride_byte_offset,
            swizzle=self.swizzle,
        )


def canonical(major: Major, swizzle: Swizzle, rows: int, k: int, element_bytes: int) -> OperandTile:
    """Return how a tile lies, loaded by TMA in boxes one swizzle width wide.

    Raises: ConfigError: the tile is not made of whole boxes, or the type has no MN-major form.
    Source: PTX ISA 8.7 "Strides" (canonical layouts); CUTLASS 4.2, mma_sm90_desc.hpp.
    """
    width = swizzle.width_bytes
    if major == "MN" and element_bytes != 2:
        raise ConfigError(
            f"MN-major operands need a 16-bit type, got {8 * element_bytes} bits",
            where="layout descriptor",
            source='PTX ISA 8.7, "wgmma.mma_async"',
        )
    inner = rows if major == "MN" else k
    if inner * element_bytes % width or rows % 8 or k * element_bytes % _STEP_BYTES:
        raise ConfigError(
            f"expected whole rows of {width} bytes along {major}, rows in eights and K in steps of "
            f"{_STEP_BYTES // element_bytes}, got {rows} rows and K = {k}",
            where="layout descriptor",
        )
    boxes = inner * element_bytes // width
    steps = k * element_bytes // _STEP_BYTES
    prefix = f"Swizzle<{_BITS[swizzle]},4,3> o "
    chunks = width // _CHUNK_BYTES
    if major == "K":
        box = (width // element_bytes, rows)
        slab = rows * width
        sbo = 8 * width
        if swizzle is Swizzle.NONE:
            lbo = slab
            offsets = tuple(2 * slab * step for step in range(steps))
            cute = "((8,m),(T,2)):((1T,SBO),(1,LBO))"
        else:
            lbo = _CHUNK_BYTES
            offsets = tuple(
                step * _STEP_BYTES // width * slab + step * _STEP_BYTES % width
                for step in range(steps)
            )
            cute = f"((8,m),(T,2)):(({chunks}T,SBO),(1,T))"
    else:
        box = (width // element_bytes, k)
        slab = k * width
        group = 8 * width
        offsets = tuple(2 * group * step for step in range(steps))
        if swizzle is Swizzle.NONE:
            lbo, sbo = group, slab
            cute = "((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))"
        else:
            lbo, sbo = slab, group
            cute = f"((T,{chunks},m),(8,k)):((1,T,LBO),({chunks}T,SBO))"
    return OperandTile(
        major, swizzle, rows, k, element_bytes, lbo, sbo, box, boxes, offsets, prefix + cute
    )

"""How a tile of A or B lies in shared memory: lines, slabs, TMA boxes, and the wgmma descriptor that names them.

A *line* is one swizzled row (`swizzle.width_bytes`) along the operand's contiguous mode: along K for a
K-major operand, along M or N for an MN-major one.  A *slab* is the stack of lines that one TMA box
brings; slabs follow one another along the contiguous mode.

| major | a line holds | lines of a slab | the next slab |
|---|---|---|---|
| K | k of one row | rows | the next k |
| MN | rows of one k | k | the next rows |

>>> a = OperandTile(2, "MN", Swizzle.B128, rows=128, k=64)
>>> a.box, a.boxes, a.step_offset(1), a.row_offset(64)
((64, 64), 2, 2048, 8192)
>>> canonical("K", Swizzle.B128, rows=64, k=64, element_bytes=2).step_offsets
(0, 32, 64, 96)

Source: PTX ISA 8.7 "Strides" (canonical layouts); CUTLASS 4.2, mma_sm90_desc.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.errors import ConfigError
from hopsim.layout.descriptor import Major, MatrixDescriptor
from hopsim.layout.swizzle import Swizzle

ATOM_K_BYTES = 32
"""Bytes along K of one dense wgmma or mma.sync. Source: PTX ISA 8.7 "wgmma.mma_async"."""

_GROUP_LINES = 8
"""Lines of a core matrix. Source: PTX ISA 8.7 "Strides" (canonical layouts)."""

_CHUNK_BYTES = 16
_BITS = {Swizzle.NONE: 0, Swizzle.B32: 1, Swizzle.B64: 2, Swizzle.B128: 3}


@dataclass(frozen=True, slots=True)
class OperandTile:
    """One operand of one stage.

    Args:
        element_bytes: 1, 2 or 4.
        major: the contiguous mode, "K" or "MN".
        swizzle: of the lines.
        rows: elements along M or N.  k: elements along K.
        parts: CTAs that bring the tile together, each an equal share of its rows.
        loaded_rows: rows that are brought, the first ones; 0: all.  Nobody writes the place of the others.
    """

    element_bytes: int
    major: Major
    swizzle: Swizzle
    rows: int
    k: int
    parts: int = 1
    loaded_rows: int = 0

    @property
    def line(self) -> int:
        """Elements of one line."""
        return self.swizzle.width_bytes // self.element_bytes

    @property
    def slab_lines(self) -> int:
        """Lines of one slab."""
        return self.rows if self.major == "K" else self.k

    @property
    def slab_bytes(self) -> int:
        """Bytes of one slab."""
        return self.slab_lines * self.swizzle.width_bytes

    @property
    def total_bytes(self) -> int:
        """Bytes of the tile."""
        return self.rows * self.k * self.element_bytes

    @property
    def loaded_bytes(self) -> int:
        """Bytes of the tile that are brought."""
        return (self.loaded_rows or self.rows) * self.k * self.element_bytes

    @property
    def box(self) -> tuple[int, int]:
        """Elements of one TMA box, innermost first."""
        if self.major == "K":
            return (self.line, (self.loaded_rows or self.rows) // self.parts)
        return (self.line, self.k)

    @property
    def boxes(self) -> int:
        """Boxes that one CTA brings."""
        return self.k // self.line if self.major == "K" else self.rows // self.parts // self.line

    @property
    def share_bytes(self) -> int:
        """Bytes between the places of two CTAs' shares."""
        if self.major == "K":
            return self.rows // self.parts * self.swizzle.width_bytes
        return self.boxes * self.slab_bytes

    def step_offset(self, step: int) -> int:
        """Return where wgmma step `step` along K begins."""
        if self.major == "MN":
            return step * (ATOM_K_BYTES // self.element_bytes) * self.swizzle.width_bytes
        slab, within = divmod(step * ATOM_K_BYTES, self.swizzle.width_bytes)
        return slab * self.slab_bytes + within

    @property
    def step_offsets(self) -> tuple[int, ...]:
        """Where each wgmma step along K begins."""
        steps = self.k * self.element_bytes // ATOM_K_BYTES
        return tuple(self.step_offset(step) for step in range(steps))

    def row_offset(self, row: int) -> int:
        """Return where row `row` begins, which for an MN-major operand is the first of a line."""
        if self.major == "K":
            return row * self.swizzle.width_bytes
        assert row % self.line == 0, (row, self)
        return row // self.line * self.slab_bytes

    @property
    def leading_byte_offset(self) -> int:
        """LBO of the descriptor; 16, which nobody reads, where PTX does not use it."""
        if self.swizzle is Swizzle.NONE and self.major == "MN":
            return _GROUP_LINES * self.swizzle.width_bytes
        return self.slab_bytes if self.uses_leading_offset else _CHUNK_BYTES

    @property
    def uses_leading_offset(self) -> bool:
        """Whether LBO means anything: not for a swizzled K-major tile."""
        return self.major == "MN" or self.swizzle is Swizzle.NONE

    @property
    def stride_byte_offset(self) -> int:
        """SBO of the descriptor."""
        if self.swizzle is Swizzle.NONE and self.major == "MN":
            return self.slab_bytes
        return _GROUP_LINES * self.swizzle.width_bytes

    def descriptor(self, start_addr: int = 0) -> MatrixDescriptor:
        """Return the matrix descriptor of the tile's first wgmma."""
        return MatrixDescriptor(
            start_addr, self.leading_byte_offset, self.stride_byte_offset, swizzle=self.swizzle
        )

    @property
    def cute(self) -> str:
        """The layout in CuTe's notation, T being the elements of 16 bytes."""
        chunks = self.swizzle.width_bytes // _CHUNK_BYTES
        if self.swizzle is Swizzle.NONE:
            k, mn = "((8,m),(T,2)):((1T,SBO),(1,LBO))", "((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))"
        else:
            k = f"((8,m),(T,2)):(({chunks}T,SBO),(1,T))"
            mn = f"((T,{chunks},m),(8,k)):((1,T,LBO),({chunks}T,SBO))"
        return f"Swizzle<{_BITS[self.swizzle]},4,3> o " + (k if self.major == "K" else mn)

    def problem(self) -> str:
        """Return what is wrong with it for TMA and wgmma, empty when nothing is."""
        contiguous, lines = (self.k, self.rows) if self.major == "K" else (self.rows, self.k)
        share = self.rows // self.parts
        if contiguous % self.line:
            return (
                f"{contiguous} elements along the contiguous mode are no multiple of a "
                f"{self.swizzle.name} line ({self.line})"
            )
        if self.major == "MN" and self.element_bytes != 2:
            return f"an MN-major operand needs a 16-bit type, got {8 * self.element_bytes} bits"
        if self.rows % self.parts or share % (_GROUP_LINES if self.major == "K" else self.line):
            return f"{self.rows} rows cannot be split into {self.parts} shares of whole lines"
        if self.loaded_rows:
            if self.major != "K" or self.parts > 1:
                return "only a K-major operand that one CTA brings can be loaded in part"
            if self.loaded_rows % _GROUP_LINES or not 0 < self.loaded_rows < self.rows:
                return (
                    f"of {self.rows} rows a multiple of {_GROUP_LINES} less can be loaded, "
                    f"got {self.loaded_rows}"
                )
        if max(self.box) > 256:
            return f"a TMA box has at most 256 elements in a mode, got {self.box}"
        assert lines % _GROUP_LINES == 0, self
        return ""


def widest_swizzle(line_bytes: int) -> Swizzle:
    """Return the widest swizzle whose lines a run of `line_bytes` contiguous bytes fills."""
    for mode in (Swizzle.B128, Swizzle.B64, Swizzle.B32):
        if line_bytes % mode.width_bytes == 0:
            return mode
    return Swizzle.NONE


def canonical(major: Major, swizzle: Swizzle, rows: int, k: int, element_bytes: int) -> OperandTile:
    """Return how a tile lies that one CTA loads by TMA, in boxes one swizzle width wide.

    Raises: ConfigError: the tile is not made of whole boxes, or the type has no MN-major form.
    """
    width = swizzle.width_bytes
    if major == "MN" and element_bytes != 2:
        raise ConfigError(
            f"MN-major operands need a 16-bit type, got {8 * element_bytes} bits",
            where="layout descriptor",
            hint="fp16 or bf16, or a K-major operand",
            source='PTX ISA 8.7, "wgmma.mma_async"',
        )
    inner = rows if major == "MN" else k
    if inner * element_bytes % width or rows % _GROUP_LINES or k * element_bytes % ATOM_K_BYTES:
        raise ConfigError(
            f"expected whole rows of {width} bytes along {major}, rows in eights and K in steps of "
            f"{ATOM_K_BYTES // element_bytes}, got {rows} rows and K = {k}",
            where="layout descriptor",
            hint="a larger tile, or a narrower swizzle",
        )
    return OperandTile(element_bytes, major, swizzle, rows, k)

"""How one operand of a stage lies in shared memory: lines, slabs, boxes, and the descriptor that names them.

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
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.layout.descriptor import Major, MatrixDescriptor
from hopsim.layout.swizzle import Swizzle

ATOM_K_BYTES = 32
"""Bytes along K of one dense wgmma or mma.sync. Source: PTX ISA 8.7 "wgmma.mma_async"."""

_GROUP_LINES = 8
"""Lines of a core matrix. Source: PTX ISA 8.7 "Strides" (canonical layouts)."""


@dataclass(frozen=True, slots=True)
class OperandTile:
    """One operand of one stage.

    Args:
        size: bytes of an element.
        major: the contiguous mode, "K" or "MN".
        swizzle: of the lines.
        rows: elements along M or N.  k: elements along K.
        parts: CTAs that bring the tile together, each an equal share of its rows.
    """

    size: int
    major: Major
    swizzle: Swizzle
    rows: int
    k: int
    parts: int = 1

    @property
    def line(self) -> int:
        """Elements of one line."""
        return self.swizzle.width_bytes // self.size

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
        return self.rows * self.k * self.size

    @property
    def box(self) -> tuple[int, int]:
        """Elements of one TMA box, innermost first."""
        if self.major == "K":
            return (self.line, self.rows // self.parts)
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
            return step * (ATOM_K_BYTES // self.size) * self.swizzle.width_bytes
        slab, within = divmod(step * ATOM_K_BYTES, self.swizzle.width_bytes)
        return slab * self.slab_bytes + within

    def row_offset(self, row: int) -> int:
        """Return where row `row` begins, which for an MN-major operand is the first of a line."""
        if self.major == "K":
            return row * self.swizzle.width_bytes
        assert row % self.line == 0, (row, self)
        return row // self.line * self.slab_bytes

    def descriptor(self) -> MatrixDescriptor:
        """Return the matrix descriptor of a tile at address 0.

        Source: PTX ISA 8.7 "Strides" (canonical layouts), tabulated at `operand_offsets`.
        """
        group = _GROUP_LINES * self.swizzle.width_bytes
        leading, stride = self.slab_bytes, group
        if self.major == "K" and self.swizzle is not Swizzle.NONE:
            leading = 16  # not used
        elif self.major == "MN" and self.swizzle is Swizzle.NONE:
            leading, stride = group, self.slab_bytes
        return MatrixDescriptor(0, leading, stride, swizzle=self.swizzle)

    def problem(self) -> str:
        """Return what is wrong with it for TMA and wgmma, empty when nothing is."""
        contiguous, lines = (self.k, self.rows) if self.major == "K" else (self.rows, self.k)
        share = self.rows // self.parts
        if contiguous % self.line:
            return (
                f"{contiguous} elements along the contiguous mode are no multiple of a "
                f"{self.swizzle.name} line ({self.line})"
            )
        if self.major == "MN" and self.size != 2:
            return f"an MN-major operand needs a 16-bit type, got {8 * self.size} bits"
        if self.rows % self.parts or share % (_GROUP_LINES if self.major == "K" else self.line):
            return f"{self.rows} rows cannot be split into {self.parts} shares of whole lines"
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

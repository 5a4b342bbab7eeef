"""Where a thread finds a byte of a swizzled operand in shared memory."""

from __future__ import annotations

from hopsim.kernels.ptx.text import PtxEntry, Reg
from hopsim.layout.operand_tile import OperandTile
from hopsim.layout.swizzle import Swizzle


def emit_place(
    b: PtxEntry, name: str, operand: OperandTile, start: Reg, line: Reg, along: Reg
) -> Reg:
    """Write the swizzled address of byte `along` of line `line`, slabs included."""
    width = operand.swizzle.width_bytes
    slab = b.let(".b32", f"{name}_slab", "shr.u32", along, width.bit_length() - 1)
    within = b.let(".b32", f"{name}_within", "and.b32", along, width - 1)
    at_slab = b.let(".b32", f"{name}_slab_addr", "mad.lo.s32", slab, operand.slab_bytes, start)
    at_line = b.let(".b32", f"{name}_line_addr", "mad.lo.s32", line, width, at_slab)
    linear = b.let(".b32", f"{name}_linear", "add.s32", at_line, within)
    if operand.swizzle is Swizzle.NONE:
        return linear
    moved = b.let(".b32", f"{name}_row_bits", "shr.u32", linear, 3)
    chunk = b.let(".b32", f"{name}_chunk_bits", "and.b32", moved, operand.swizzle.chunk_mask)
    return b.let(".b32", f"{name}_place", "xor.b32", linear, chunk, note=operand.swizzle.name)

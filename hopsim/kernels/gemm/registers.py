"""A of a stage read into registers with ldmatrix, as wgmma takes it from there.

A wgmma fragment of A is, for each warp, the m16 x 32-byte fragment of mma.sync: four matrices of 8 rows
by 16 bytes, ordered rows 0-7 and 8-15 of the first 16 bytes along K, then of the second.  From a K-major
tile a lane's address names a row, from an MN-major one a k, and `.trans` turns each matrix round.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.place import emit_place
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.tile import ATOM_M
from hopsim.kernels.ptx.text import PtxEntry, Reg, address, vector
from hopsim.layout.operand_tile import ATOM_K_BYTES

_WARP_ROWS = 16
_CHUNK_BYTES = 16


@dataclass(frozen=True, slots=True)
class AFragments:
    """Where a thread reads A, and the registers it reads into.

    Args:
        base: this lane's swizzled shared address for the first step of the first atom.
        registers: for each step along K and each wgmma along M, four registers.
    """

    base: Reg
    registers: list[list[list[Reg]]]


def emit_a_fragments(b: PtxEntry, plan: GemmPlan, frame: Frame, a_addr: Reg) -> AFragments:
    """Write the lane's address, and declare the registers.

    Args:
        a_addr: shared address of the warpgroup's rows of A in slot 0.
    """
    own_warp = b.let(".b32", "a_warp", "and.b32", frame.warp, 3)
    low = b.let(".b32", "a_lane_low", "and.b32", frame.lane, 7)
    upper_rows = b.let(".b32", "a_rows_8", "bfe.u32", frame.lane, 3, 1)
    upper_k = b.let(".b32", "a_k_16", "shr.u32", frame.lane, 4)
    if plan.a.major == "K":
        # lines are rows: 16 of them a warp; 16 bytes along the line for the second half of K
        row = b.let(".b32", "a_row", "mad.lo.s32", upper_rows, 8, low)
        line = b.let(".b32", "a_line", "mad.lo.s32", own_warp, _WARP_ROWS, row)
        along = b.let(".b32", "a_along", "shl.b32", upper_k, 4)
    else:
        # lines are k: 8 more for the second half of K; 32 bytes along the line for each warp's rows
        line = b.let(".b32", "a_line", "mad.lo.s32", upper_k, 8, low)
        half = b.let(".b32", "a_half", "shl.b32", upper_rows, 4)
        along = b.let(".b32", "a_along", "mad.lo.s32", own_warp, 2 * _CHUNK_BYTES, half)
    base = emit_place(b, "a", plan.a, a_addr, line, along)
    count = plan.k_steps * plan.m_atoms * 4
    flat = b.regs(".b32", "a_frag", count)
    quads = [flat[i : i + 4] for i in range(0, count, 4)]
    per_step = plan.m_atoms
    registers = [quads[i : i + per_step] for i in range(0, len(quads), per_step)]
    return AFragments(base, registers)


def emit_load_fragments(b: PtxEntry, plan: GemmPlan, a: AFragments) -> None:
    """Write the reads of one stage."""
    operand = plan.a
    transposed = ".trans" if operand.major == "MN" else ""
    for step, atoms in enumerate(a.registers):
        # inside a line a step flips bits above the lane's own chunk bit, which the swizzle leaves apart
        offset = operand.step_offset(step)
        within = 0
        if operand.major == "K":
            within = step * ATOM_K_BYTES % operand.swizzle.width_bytes
        place = b.let(".b32", "a_step_place", "xor.b32", a.base, within) if within else a.base
        for atom, registers in enumerate(atoms):
            b.emit(
                f"ldmatrix.sync.aligned.m8n8.x4{transposed}.shared.b16", vector(registers),
                address(place, offset - within + operand.row_offset(atom * ATOM_M)),
            )  # fmt: skip
    b.emit("fence.proxy.async.shared::cta", note="read by threads, refilled by TMA")

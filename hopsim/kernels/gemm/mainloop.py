"""The products of one stage: descriptors, accumulators, and a fully unrolled run of wgmma.

A step along K moves the descriptors by a constant (`OperandTile.step_offset`); inside a swizzled
line the hardware applies the xor to the moved address.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.registers import AFragments, emit_a_fragments, emit_load_fragments
from hopsim.kernels.gemm.tile import ATOM_M
from hopsim.kernels.ptx import pipeline as pipe
from hopsim.kernels.ptx.pipeline import Cursor
from hopsim.kernels.ptx.text import Operand, PtxEntry, Reg, vector
from hopsim.layout.operand_tile import ATOM_K_BYTES, OperandTile


@dataclass(frozen=True, slots=True)
class Products:
    """What a warpgroup needs to multiply.

    Args:
        a_base: descriptor of its rows of A in slot 0, or how it reads them into registers.
        b_base: descriptor of B in slot 0.
        accumulators: for each wgmma along M, the n/2 registers of its fragment.
        overwrite, accumulate: predicates for scale-d.
    """

    a_base: Reg | AFragments
    b_base: Reg
    accumulators: list[list[Reg]]
    overwrite: Reg
    accumulate: Reg


def emit_products(b: PtxEntry, plan: GemmPlan, frame: Frame, warpgroup: Reg | None) -> Products:
    """Write the descriptors of slot 0 and declare the accumulators.

    Args:
        warpgroup: index of the computing warpgroup; None where all compute the same rows.
    """
    b.comment("operand descriptors of slot 0")
    a_addr = frame.smem
    if warpgroup is not None:
        rows_bytes = plan.a.row_offset(plan.warpgroup_m)
        a_addr = b.let(".b32", "a_addr", "mad.lo.s32", warpgroup, rows_bytes, frame.smem)
    b_addr = b.let(".b32", "b_addr", "add.s32", frame.smem, plan.b_offset)
    if plan.a_in_registers:
        a_base = emit_a_fragments(b, plan, frame, a_addr)
    else:
        a_base = _emit_descriptor(b, plan.a, "a_base", a_addr)
    b_base = _emit_descriptor(b, plan.b, "b_base", b_addr)
    per_atom = plan.tile.n // 2
    flat = b.regs(plan.sum_register, "acc", plan.accumulators)
    accumulators = [flat[i * per_atom : (i + 1) * per_atom] for i in range(plan.m_atoms)]
    overwrite = b.let(".pred", "overwrite", "mov.pred", 0)
    accumulate = b.let(".pred", "accumulate", "mov.pred", -1)
    return Products(a_base, b_base, accumulators, overwrite, accumulate)


def _emit_descriptor(b: PtxEntry, operand: OperandTile, name: str, shared_addr: Reg) -> Reg:
    note = f"{operand.major}-major, {operand.swizzle.name}"
    return pipe.emit_descriptor(b, name, shared_addr, operand.descriptor(), note)


def emit_stage_products(
    b: PtxEntry,
    plan: GemmPlan,
    products: Products,
    cursor: Cursor | None,
    *,
    first: bool | Reg,
) -> None:
    """Write the products of the cursor's slot as one committed wgmma group.

    Args:
        cursor: None for slot 0 of a ring of one.
        first: whether the tile begins here, so that the first step overwrites the accumulators; as
            a predicate: false where it begins.
    """
    a_slot, b_slot = products.a_base, products.b_base
    if cursor is not None:
        moved = b.let(".b64", "slot_offset", "mul.wide.u32", cursor.stage, plan.stage_bytes >> 4)
        assert isinstance(a_slot, Reg), "A from registers comes from slot 0"
        a_slot = b.let(".b64", "a_desc", "add.s64", a_slot, moved)
        b_slot = b.let(".b64", "b_desc", "add.s64", b_slot, moved)
    if isinstance(a_slot, AFragments):
        emit_load_fragments(b, plan, a_slot)
    b.emit("wgmma.fence.sync.aligned")
    for step in range(plan.k_steps):
        b_desc = pipe.emit_moved(b, "b_step", b_slot, plan.b.step_offset(step))
        scale_d = products.accumulate
        if step == 0 and first is not False:
            scale_d = products.overwrite if first is True else first
        for atom, fragment in enumerate(products.accumulators):
            if isinstance(a_slot, Reg):
                a_offset = plan.a.step_offset(step) + plan.a.row_offset(atom * ATOM_M)
                a_operand: Operand = pipe.emit_moved(b, "a_step", a_slot, a_offset)
            else:
                a_operand = vector(a_slot.registers[step][atom])
            _emit_wgmma(b, plan, fragment, a_operand, b_desc, scale_d)
    b.emit("wgmma.commit_group.sync.aligned")


def _emit_wgmma(
    b: PtxEntry,
    plan: GemmPlan,
    fragment: list[Reg],
    a_operand: Operand,
    b_desc: Reg,
    scale_d: Reg,
) -> None:
    kind = plan.dtype.ptx
    k = ATOM_K_BYTES // plan.dtype.size
    immediates = [1, 1] if plan.dtype.sum_ptx == "f32" else []
    if plan.dtype.size == 2:
        majors = (plan.b.major,) if plan.a_in_registers else (plan.a.major, plan.b.major)
        immediates += [int(major == "MN") for major in majors]
    b.emit(
        f"wgmma.mma_async.sync.aligned.m64n{plan.tile.n}k{k}.{plan.dtype.sum_ptx}.{kind}.{kind}",
        vector(fragment), a_operand, b_desc, scale_d, *immediates,
    )  # fmt: skip

"""The products of one stage: descriptors, accumulators, and a fully unrolled run of wgmma.

Both operands are K-major in shared memory with the plan's swizzle.  A step along K moves the
descriptors by 32 bytes inside the swizzled row; the hardware applies the xor to the address.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.plan import ATOM_K_BYTES, ATOM_M, GemmPlan
from hopsim.kernels.gemm.ring import Cursor
from hopsim.kernels.ptx.text import PtxEntry, Reg, vector
from hopsim.layout.descriptor import MatrixDescriptor


@dataclass(frozen=True, slots=True)
class Products:
    """What a warpgroup needs to multiply.

    Args:
        a_base, b_base: descriptors of its rows of A, and of B, in slot 0.
        accumulators: for each wgmma along M, the n/2 f32 registers of its fragment.
        overwrite, accumulate: predicates for scale-d.
    """

    a_base: Reg
    b_base: Reg
    accumulators: list[list[Reg]]
    overwrite: Reg
    accumulate: Reg


def emit_products(b: PtxEntry, plan: GemmPlan, frame: Frame, warpgroup: Reg | None) -> Products:
    """Write the descriptors of slot 0 and declare the accumulators."""
    b.comment("operand descriptors of slot 0")
    a_addr = frame.smem
    if warpgroup is not None:
        rows_bytes = plan.warpgroup_m * plan.swizzle.width_bytes
        a_addr = b.let(".b32", "a_addr", "mad.lo.s32", warpgroup, rows_bytes, frame.smem)
    b_addr = b.let(".b32", "b_addr", "add.s32", frame.smem, plan.b_offset)
    a_base = _emit_descriptor(b, plan, "a_base", a_addr)
    b_base = _emit_descriptor(b, plan, "b_base", b_addr)
    per_atom = plan.tile.n // 2
    flat = b.regs(".f32", "acc", plan.accumulators)
    accumulators = [flat[i * per_atom : (i + 1) * per_atom] for i in range(plan.m_atoms)]
    overwrite = b.let(".pred", "overwrite", "mov.pred", 0)
    accumulate = b.let(".pred", "accumulate", "mov.pred", -1)
    return Products(a_base, b_base, accumulators, overwrite, accumulate)


def _emit_descriptor(b: PtxEntry, plan: GemmPlan, name: str, shared_addr: Reg) -> Reg:
    fixed = MatrixDescriptor(
        start_addr=0,
        leading_byte_offset=16,
        stride_byte_offset=8 * plan.swizzle.width_bytes,
        swizzle=plan.swizzle,
    ).encode()
    start = b.let(".b32", f"{name}_start", "bfe.u32", shared_addr, 4, 14)
    wide = b.let(".b64", f"{name}_wide", "cvt.u64.u32", start)
    return b.let(".b64", name, "or.b64", wide, fixed, note=f"K-major, {plan.swizzle.name}")


def emit_stage_products(
    b: PtxEntry, plan: GemmPlan, products: Products, cursor: Cursor, *, first: bool
) -> None:
    """Write the products of the cursor's slot as one committed wgmma group.

    Args:
        first: the tile begins here: the first step overwrites the accumulators.
    """
    moved = b.let(".b64", "slot_offset", "mul.wide.u32", cursor.stage, plan.stage_bytes >> 4)
    a_slot = b.let(".b64", "a_desc", "add.s64", products.a_base, moved)
    b_slot = b.let(".b64", "b_desc", "add.s64", products.b_base, moved)
    b.emit("wgmma.fence.sync.aligned")
    atom_bytes = ATOM_M * plan.swizzle.width_bytes
    for step in range(plan.k_steps):
        slab, inner = divmod(step, plan.steps_per_slab)
        along_k = inner * ATOM_K_BYTES
        b_desc = _emit_moved(b, "b_step", b_slot, slab * plan.b_slab_bytes + along_k)
        scale_d = products.overwrite if first and step == 0 else products.accumulate
        for atom, fragment in enumerate(products.accumulators):
            a_offset = slab * plan.a_slab_bytes + along_k + atom * atom_bytes
            a_desc = _emit_moved(b, "a_step", a_slot, a_offset)
            _emit_wgmma(b, plan, fragment, a_desc, b_desc, scale_d)
    b.emit("wgmma.commit_group.sync.aligned")


def _emit_moved(b: PtxEntry, name: str, descriptor: Reg, offset_bytes: int) -> Reg:
    """Write a descriptor moved by a constant; the sum cannot leave the 14 address bits."""
    if not offset_bytes:
        return descriptor
    return b.let(".b64", name, "add.s64", descriptor, offset_bytes >> 4)


def _emit_wgmma(
    b: PtxEntry, plan: GemmPlan, fragment: list[Reg], a_desc: Reg, b_desc: Reg, scale_d: Reg
) -> None:
    kind = plan.dtype.ptx
    k = ATOM_K_BYTES // plan.dtype.size
    signs_and_majors = (1, 1, 0, 0) if plan.dtype.size == 2 else (1, 1)
    b.emit(
        f"wgmma.mma_async.sync.aligned.m64n{plan.tile.n}k{k}.f32.{kind}.{kind}",
        vector(fragment), a_desc, b_desc, scale_d, *signs_and_majors,
    )  # fmt: skip

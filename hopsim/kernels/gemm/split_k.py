"""Schedule `split-k`: several CTAs share the K of a tile, for few tiles and a long K.

Each CTA multiplies its part of K as `warp-specialized` does.  Then their sums are added up, by one of:

- `tma`: every CTA stages its sums and TMA adds them to C in global memory;
- `atomic`: every thread adds its sums to C in global memory (`red`, two f32 at a time);
- `dsmem`: the CTAs of a tile are one cluster.  Each leaves its sums in its own shared memory, reads its
  share of the columns from all of them, adds these in the order of the CTAs, and stores.

The first two need f32 for C, zeros in it before the launch, and add in the order of arrival, so that
with three parts and more the last bits differ from run to run; the third always adds in one order.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import MAPS, SIZES, Frame, emit_frame, new_entry
from hopsim.kernels.gemm.loads import emit_shares
from hopsim.kernels.gemm.mainloop import emit_products
from hopsim.kernels.gemm.plan import WARPGROUP_THREADS, GemmPlan
from hopsim.kernels.gemm.ring import emit_barriers, emit_release_targets
from hopsim.kernels.gemm.roles import (
    emit_consumer_place,
    emit_meeting,
    emit_roles,
    emit_tile_loads,
    emit_tile_products,
)
from hopsim.kernels.gemm.scheduler import emit_origin, emit_walk
from hopsim.kernels.gemm.tile import ATOM_M
from hopsim.kernels.ptx.pipeline import emit_cursor
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, vector

_CONSUMERS_BARRIER = 3
_QUAD_COLUMNS = 8
"""Of C that four registers of a fragment reach."""

_QUAD_BYTES = 16 * WARPGROUP_THREADS


def split_blocks(k_blocks: int, splits: int) -> list[range]:
    """Return the k-blocks of each part: as even as can be, the longer parts first."""
    each, longer = divmod(k_blocks, splits)
    starts = [part * each + min(part, longer) for part in range(splits + 1)]
    return [range(starts[part], starts[part + 1]) for part in range(splits)]


@dataclass(frozen=True, slots=True)
class _Part:
    """What this CTA computes.

    Args:
        number: of the part.  row, col: of the tile.
        first_k, end_k: elements of K.  blocks: k-blocks.
    """

    number: Reg
    row: Reg
    col: Reg
    first_k: Reg
    end_k: Reg
    blocks: Reg


def emit_split_k(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    pointers = (Param("c", ".u64"),) if plan.adds_to_c and plan.reduction == "atomic" else ()
    b = new_entry(name, plan, MAPS + pointers + SIZES)
    frame = emit_frame(b, plan)
    part = _emit_part(b, plan, frame)
    emit_barriers(b, plan, frame)

    def producer() -> None:
        loads = emit_shares(b, plan, frame)
        cursor = emit_cursor(b, first_parity=1)
        emit_tile_loads(b, plan, frame, loads, cursor, part.row, part.col, part.first_k, part.end_k)

    adds_in_cluster = plan.launch_cluster > 1
    emit_roles(
        b, plan, frame, producer, lambda: _emit_consumer(b, plan, frame, part),
        meetings=int(adds_in_cluster),
    )  # fmt: skip
    return b


def _emit_part(b: PtxEntry, plan: GemmPlan, frame: Frame) -> _Part:
    """Write `split_blocks` for this CTA; the parts of a tile are neighbours in the grid."""
    b.comment("the tile and the part of K of this CTA")
    walk = emit_walk(b, plan, frame)
    unit = b.let(".b32", "unit", "div.u32", frame.index, plan.splits)
    number = b.let(".b32", "part", "rem.u32", frame.index, plan.splits)
    row, col = emit_origin(b, plan, frame, walk, unit)
    each = b.let(".b32", "each", "div.u32", frame.k_blocks, plan.splits)
    longer = b.let(".b32", "longer", "rem.u32", frame.k_blocks, plan.splits)
    before = b.let(".b32", "longer_before", "min.u32", number, longer)
    first = b.let(".b32", "first_block", "mad.lo.s32", number, each, before)
    is_longer = b.let(".pred", "is_longer", "setp.lt.u32", number, longer)
    one = b.let(".b32", "one_more", "selp.b32", 1, 0, is_longer)
    blocks = b.let(".b32", "blocks", "add.s32", each, one)
    end = b.let(".b32", "end_block", "add.s32", first, blocks)
    first_k = b.let(".b32", "first_k", "mul.lo.s32", first, plan.tile.k)
    end_k = b.let(".b32", "end_k", "mul.lo.s32", end, plan.tile.k)
    return _Part(number, row, col, first_k, end_k, blocks)


def _emit_consumer(b: PtxEntry, plan: GemmPlan, frame: Frame, part: _Part) -> None:
    warpgroup, own_warp = emit_consumer_place(b, plan, frame)
    products = emit_products(b, plan, frame, warpgroup)
    staging = emit_staging(b, plan, frame, warpgroup, own_warp)
    release = emit_release_targets(b, plan, frame)
    cursor = emit_cursor(b, first_parity=0)
    emit_tile_products(b, plan, frame, products, release, cursor, part.blocks)
    sums, col = products.accumulators, part.col
    if plan.adds_to_c and plan.reduction == "atomic":
        _emit_atomic_adds(b, plan, frame, warpgroup, own_warp, sums, part)
        return
    if plan.launch_cluster > 1:
        sums = _emit_cluster_sums(b, plan, frame, warpgroup, sums, part)
        col = b.let(".b32", "own_col", "mad.lo.s32", part.number, plan.c_columns, col)
    emit_epilogue(b, plan, frame, staging, sums, part.row, col)
    emit_stores_done(b, staging)


def _emit_atomic_adds(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    warpgroup: Reg | None,
    own_warp: Reg,
    accumulators: list[list[Reg]],
    part: _Part,
) -> None:
    """Write the addition of each pair of neighbouring sums to C."""
    b.comment("add to C")
    generic = b.let(".b64", "c_param", "ld.param.u64", address("c"))
    c = b.let(".b64", "c_global", "cvta.to.global.u64", generic)
    lane_row = b.let(".b32", "lane_row", "shr.u32", frame.lane, 2)
    quad = b.let(".b32", "quad", "and.b32", frame.lane, 3)
    in_warp = b.let(".b32", "own_row", "mad.lo.s32", own_warp, 16, lane_row)
    row = b.let(".b32", "c_row", "add.s32", part.row, in_warp)
    if warpgroup is not None:
        row = b.let(".b32", "c_row", "mad.lo.s32", warpgroup, plan.warpgroup_m, row)
    col = b.let(".b32", "c_col", "mad.lo.s32", quad, 2, part.col)
    columns = b.let(".b32", "columns_left", "sub.s32", frame.n, col)
    wide = b.let(".b64", "c_along", "mul.wide.u32", col, 4)
    at_col = b.let(".b64", "c_at", "add.s64", c, wide)
    pitch = b.let(".b32", "c_pitch", "shl.b32", frame.n, 2)
    for atom, fragment in enumerate(accumulators):
        for half in range(2):
            own = b.let(".b32", "add_row", "add.s32", row, atom * ATOM_M + half * 8)
            in_m = b.let(".pred", "in_m", "setp.lt.s32", own, frame.m)
            offset = b.let(".b64", "add_offset", "mul.wide.u32", own, pitch)
            to = b.let(".b64", "add_to", "add.s64", at_col, offset)
            for j in range(plan.tile.n // _QUAD_COLUMNS):
                inside = b.let(".pred", "inside", "setp.gt.s32", columns, j * _QUAD_COLUMNS)
                b.emit("and.pred", inside, inside, in_m)
                pair = fragment[4 * j + 2 * half : 4 * j + 2 * half + 2]
                b.emit(
                    "red.relaxed.gpu.global.add.v2.f32",
                    address(to, j * _QUAD_COLUMNS * 4), vector(pair), guard=inside,
                )  # fmt: skip


def _emit_cluster_sums(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    warpgroup: Reg | None,
    accumulators: list[list[Reg]],
    part: _Part,
) -> list[list[Reg]]:
    """Write the exchange of sums in the cluster; returns this CTA's share, a fragment an atom."""
    b.comment("leave the sums where the stages were")
    if plan.warpgroups > 1:
        threads = plan.warpgroups * WARPGROUP_THREADS
        b.emit("bar.sync", _CONSUMERS_BARRIER, threads, note="all have read the last slot")
    in_group = b.let(".b32", "in_group", "and.b32", frame.thread, WARPGROUP_THREADS - 1)
    own = b.let(".b32", "own_sums", "mad.lo.s32", in_group, 16, frame.smem)
    if warpgroup is not None:
        group_bytes = plan.accumulators // 4 * _QUAD_BYTES
        own = b.let(".b32", "own_sums", "mad.lo.s32", warpgroup, group_bytes, own)
    flat = [register for fragment in accumulators for register in fragment]
    for i in range(0, len(flat), 4):
        b.emit("st.shared.v4.b32", address(own, i // 4 * _QUAD_BYTES), vector(flat[i : i + 4]))
    emit_meeting(b, "all sums are there")

    b.comment("add up this CTA's columns, in the order of the parts")
    atom_quads = plan.tile.n // _QUAD_COLUMNS
    share_quads = atom_quads // plan.splits
    share = b.let(".b32", "share", "mad.lo.s32", part.number, share_quads * _QUAD_BYTES, own)
    sums = [
        b.regs(plan.sum_register, f"sum_{atom}", 4 * share_quads) for atom in range(plan.m_atoms)
    ]
    terms = b.regs(plan.sum_register, "term", 4)
    for peer in range(plan.splits):
        base = b.let(".b32", "peer_sums", "mapa.shared::cluster.u32", share, peer)
        for atom, fragment in enumerate(sums):
            for quad in range(share_quads):
                target = fragment[4 * quad : 4 * quad + 4]
                at = address(base, (atom * atom_quads + quad) * _QUAD_BYTES)
                if not peer:
                    b.emit("ld.shared::cluster.v4.b32", vector(target), at)
                    continue
                b.emit("ld.shared::cluster.v4.b32", vector(terms), at)
                for total, term in zip(target, terms, strict=True):
                    b.emit(f"add.{plan.dtype.sum_ptx}", total, total, term)
    return sums

"""Schedule `fp8-scaled`: DeepGEMM's fp8 product with fine-grained scales.

C[m,n] = sum over blocks of 128 k of  sa[m, block] * sb[n / 128, block] * (A B^T over the block)

The tensor core sums fp8 products with about 14 bits, so it never sums more than 128 of them: after
each block of K the consumer adds the block's sums, scaled, to others in f32 on the CUDA cores
("promotion"), while the other consumer warpgroup keeps the tensor core busy.

The scales of A (one for each row and block) come with the stage by TMA.  Those of B (one for each
128 columns and block) are few: ordinary threads copy all that a tile needs to shared memory when the
tile begins.  A tile whose columns are no divisor of 128 may cross into the next 128 and then has two
rows of them.  The TMA store of a tile runs under the products of the next.

Source: DeepGEMM (github.com/deepseek-ai/DeepGEMM), fp8_gemm.cuh; DeepSeek-V3, arXiv 2412.19437,
section 3.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import MAPS, SIZES, Frame, emit_frame, new_entry
from hopsim.kernels.gemm.loads import emit_share_row, emit_shares, emit_stage_loads
from hopsim.kernels.gemm.mainloop import Products, emit_products, emit_stage_products
from hopsim.kernels.gemm.plan import WARPGROUP_THREADS, GemmPlan
from hopsim.kernels.gemm.ring import (
    Release,
    emit_advance,
    emit_barriers,
    emit_release,
    emit_release_targets,
    emit_remember,
    emit_wait,
)
from hopsim.kernels.gemm.roles import emit_consumer_place, emit_roles, tile_loop
from hopsim.kernels.gemm.scheduler import TileWalk, emit_walk
from hopsim.kernels.ptx import pipeline as pipe
from hopsim.kernels.ptx.pipeline import Cursor, emit_cursor, emit_slot_barrier
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address

BLOCK = 128
"""Elements of K that share a scale; columns of B that do."""

_ITEM = 4
_SCALES_BARRIER = 3
_PARAMS = (*MAPS, Param("map_sa", ".b8", 128), Param("sb", ".u64"), *SIZES)


@dataclass(frozen=True, slots=True)
class ScaledPlan:
    """A GEMM's plan, and where its scales lie: behind everything else.

    Args:
        gemm: fp8 operands, 64 rows a warpgroup, 128 of K a stage.
    """

    gemm: GemmPlan

    @property
    def a_scale_bytes(self) -> int:
        """Scales of A in one stage."""
        return self.gemm.tile.m * _ITEM

    @property
    def a_scales(self) -> int:
        """Byte offset of the scales of A of stage 0; TMA wants 128 bytes of alignment."""
        return -(-self.gemm.shared_bytes // 128) * 128

    @property
    def b_scales(self) -> int:
        """Byte offset of the scales of B."""
        return self.a_scales + self.gemm.stages * self.a_scale_bytes

    @property
    def is_uneven(self) -> bool:
        """Whether a tile may have columns of two blocks of B."""
        return BLOCK % self.gemm.tile.n != 0

    def shared_bytes(self, k: int) -> int:
        """Return the dynamic shared memory to launch with."""
        return self.b_scales + (1 + self.is_uneven) * -(-k // BLOCK) * _ITEM


def emit_fp8_scaled(name: str, plan: ScaledPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    gemm = plan.gemm
    b = new_entry(name, gemm, _PARAMS)
    frame = emit_frame(b, gemm)
    map_sa = pipe.emit_map(b, "map_sa")
    b.emit("prefetch.tensormap", address(map_sa), guard=frame.leader)
    walk = emit_walk(b, gemm, frame)
    emit_barriers(b, gemm, frame)
    emit_roles(
        b, gemm, frame,
        producer=lambda: _emit_producer(b, plan, frame, walk, map_sa),
        consumer=lambda: _emit_consumer(b, plan, frame, walk),
    )  # fmt: skip
    return b


def _emit_producer(
    b: PtxEntry, plan: ScaledPlan, frame: Frame, walk: TileWalk, map_sa: Reg
) -> None:
    gemm = plan.gemm
    loads = emit_shares(b, gemm, frame)
    cursor = emit_cursor(b, first_parity=1)
    with tile_loop(b, gemm, frame, walk) as (row, col):
        a_row = emit_share_row(b, "a_row", row, loads.a)
        b_row = emit_share_row(b, "b_row", col, loads.b)
        block = b.let(".b32", "k_block", "mov.b32", 0)
        k = b.let(".b32", "k_at", "mov.b32", 0)
        loop = b.label("LOAD_LOOP")
        b.place(loop)
        slot_barrier = emit_slot_barrier(b, frame.smem, cursor.stage)
        slot = b.let(".b32", "slot", "mad.lo.s32", cursor.stage, gemm.stage_bytes, frame.smem)
        scales = b.let(
            ".b32", "sa_slot", "mad.lo.s32", cursor.stage, plan.a_scale_bytes, frame.smem
        )
        full = address(slot_barrier, gemm.full_offset)
        emit_wait(b, gemm, address(slot_barrier, gemm.empty_offset), cursor.parity, "empty")
        b.emit(
            "fence.proxy.async.shared::cta", guard=frame.leader,
            note="scales were read by generic loads, TMA overwrites them",
        )  # fmt: skip
        b.emit(
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64", full, plan.a_scale_bytes,
            guard=frame.leader, note="besides the stage's bytes",
        )  # fmt: skip
        pipe.emit_load(b, address(scales, plan.a_scales), map_sa, (row, block), full, frame.leader)
        emit_stage_loads(
            b, gemm, frame, loads, slot=slot, full=full, k=k, a_row=a_row, b_row=b_row,
            guard=frame.leader,
        )  # fmt: skip
        emit_advance(b, gemm, cursor)
        b.emit("add.s32", block, block, 1)
        b.emit("add.s32", k, k, gemm.tile.k)
        more = b.let(".pred", "more_k", "setp.lt.s32", k, frame.k)
        b.emit("bra", loop, guard=more)


@dataclass(frozen=True, slots=True)
class _Scales:
    """Where a consumer thread finds its scales.

    Args:
        sb: global address of the scales of B.
        columns: blocks of 128 columns of B.
        own: index of the thread among the consumers.
        store: shared address of the scales of B.
        rows: shared address of the scale of the thread's upper row in stage 0.
        second: bytes from a block's scale to that of the next 128 columns; 0 if there are none.
        former: columns of the tile that belong to the first 128; None if all do.
    """

    sb: Reg
    columns: Reg
    own: Reg
    store: Reg
    rows: Reg
    second: Reg
    former: Reg | None


def _emit_consumer(b: PtxEntry, plan: ScaledPlan, frame: Frame, walk: TileWalk) -> None:
    gemm = plan.gemm
    warpgroup, own_warp = emit_consumer_place(b, gemm, frame)
    products = emit_products(b, gemm, frame, warpgroup)
    sums = b.regs(".f32", "sum", gemm.accumulators)
    scales = _emit_scales(b, plan, frame, warpgroup, own_warp)
    staging = emit_staging(b, gemm, frame, warpgroup, own_warp)
    b.comment("whom to tell that a slot is empty")
    release = emit_release_targets(b, gemm, frame)
    cursor = emit_cursor(b, first_parity=0)
    with tile_loop(b, gemm, frame, walk) as (row, col):
        _emit_copy_scales(b, plan, frame, scales, col)
        for register in sums:
            b.emit("mov.f32", register, "0f00000000")
        _emit_blocks(b, plan, frame, products, sums, scales, release, cursor)
        emit_epilogue(b, gemm, frame, staging, [sums], row, col)
    emit_stores_done(b, staging)


def _emit_scales(
    b: PtxEntry, plan: ScaledPlan, frame: Frame, warpgroup: Reg | None, own_warp: Reg
) -> _Scales:
    b.comment("scales")
    generic = b.let(".b64", "sb_param", "ld.param.u64", address("sb"))
    sb = b.let(".b64", "sb", "cvta.to.global.u64", generic)
    columns = pipe.emit_ceil_div(b, "b_blocks", frame.n, BLOCK)
    own = b.let(".b32", "own_thread", "sub.s32", frame.thread, WARPGROUP_THREADS)
    store = b.let(".b32", "sb_store", "add.s32", frame.smem, plan.b_scales)
    group = b.let(".b32", "group_row", "shr.u32", frame.lane, 2)
    row = b.let(".b32", "own_row", "mad.lo.s32", own_warp, 16, group)
    if warpgroup is not None:
        row = b.let(".b32", "own_row", "mad.lo.s32", warpgroup, plan.gemm.warpgroup_m, row)
    rows = b.let(".b32", "sa_row", "mad.lo.s32", row, _ITEM, frame.smem)
    former = b.reg(".b32", "former") if plan.is_uneven else None
    return _Scales(sb, columns, own, store, rows, b.reg(".b32", "sb_second"), former)


def _emit_copy_scales(
    b: PtxEntry, plan: ScaledPlan, frame: Frame, scales: _Scales, col: Reg
) -> None:
    """Write the copy of the scales of B that the tile at column `col` needs."""
    b.comment("scales of B for this tile")
    consumers = plan.gemm.warpgroups * WARPGROUP_THREADS
    block = b.let(".b32", "b_block", "div.s32", col, BLOCK)
    count = frame.k_blocks
    if scales.former is not None:
        past = b.let(".b32", "past", "mul.lo.s32", block, BLOCK)
        b.emit("sub.s32", past, col, past)
        b.emit("sub.s32", scales.former, BLOCK, past, note="columns of the tile's first 128")
        rows_left = b.let(".b32", "b_blocks_left", "sub.s32", scales.columns, block)
        rows = b.let(".b32", "b_rows", "min.s32", rows_left, 2)
        count = b.let(".b32", "sb_count", "mul.lo.s32", frame.k_blocks, rows)
        b.emit("mul.lo.s32", scales.second, frame.k_blocks, _ITEM)
        single = b.let(".pred", "is_last_block", "setp.lt.s32", rows_left, 2)
        b.emit("mov.b32", scales.second, 0, guard=single)
    first = b.let(".b32", "sb_first", "mul.lo.s32", block, frame.k_blocks)
    b.emit("bar.sync", _SCALES_BARRIER, consumers, note="the last tile's are not read any more")
    index = b.let(".b32", "sb_index", "mov.b32", scales.own)
    loop, done = b.label("SCALES_LOOP"), b.label("SCALES_DONE")
    none = b.let(".pred", "no_scales", "setp.ge.s32", index, count)
    b.emit("bra", done, guard=none)
    b.place(loop)
    at = b.let(".b32", "sb_at", "add.s32", first, index)
    source = b.let(".b64", "sb_from", "mad.wide.s32", at, _ITEM, scales.sb)
    value = b.let(".f32", "sb_value", "ld.global.f32", address(source))
    to = b.let(".b32", "sb_to", "mad.lo.s32", index, _ITEM, scales.store)
    b.emit("st.shared.f32", address(to), value)
    b.emit("add.s32", index, index, consumers)
    more = b.let(".pred", "more_scales", "setp.lt.s32", index, count)
    b.emit("bra", loop, guard=more)
    b.place(done)
    b.emit("bar.sync", _SCALES_BARRIER, consumers, note="all scales are there")


def _emit_blocks(
    b: PtxEntry,
    plan: ScaledPlan,
    frame: Frame,
    products: Products,
    sums: list[Reg],
    scales: _Scales,
    release: Release,
    cursor: Cursor,
) -> None:
    """Write the blocks of K of one tile: products of one, then their promotion."""
    gemm = plan.gemm
    b.comment("blocks of K")
    at = b.let(".b32", "sb_addr", "mov.b32", scales.store)
    remaining = b.let(".b32", "remaining", "mov.b32", frame.k_blocks)
    loop = b.label("K_LOOP")
    b.place(loop)
    slot_barrier = emit_slot_barrier(b, frame.smem, cursor.stage)
    emit_wait(b, gemm, address(slot_barrier, gemm.full_offset), cursor.parity, "full")
    rows = b.let(".b32", "sa_addr", "mad.lo.s32", cursor.stage, plan.a_scale_bytes, scales.rows)
    of_a = [
        b.let(".f32", "sa", "ld.shared.f32", address(rows, plan.a_scales + 8 * half * _ITEM))
        for half in range(2)
    ]
    of_b = [b.let(".f32", "sb", "ld.shared.f32", address(at))]
    if scales.former is not None:
        second = b.let(".b32", "sb_next", "add.s32", at, scales.second)
        of_b.append(b.let(".f32", "sb", "ld.shared.f32", address(second)))
    emit_stage_products(b, gemm, products, cursor, first=True)
    factors = [[b.let(".f32", "factor", "mul.rn.f32", a, one) for one in of_b] for a in of_a]
    b.emit("wgmma.wait_group.sync.aligned", 0)
    b.emit("bar.warp.sync", -1, note="one lane releases what all lanes have read")
    emit_remember(b, release, cursor)
    emit_release(b, gemm, release)
    _emit_promotion(b, products.accumulators[0], sums, factors, scales.former)
    emit_advance(b, gemm, cursor)
    b.emit("add.s32", at, at, _ITEM)
    b.emit("sub.s32", remaining, remaining, 1)
    more = b.let(".pred", "more", "setp.ne.s32", remaining, 0)
    b.emit("bra", loop, guard=more)


def _emit_promotion(
    b: PtxEntry,
    accumulators: list[Reg],
    sums: list[Reg],
    factors: list[list[Reg]],
    former: Reg | None,
) -> None:
    """Write sums += scale * accumulators, 8 columns (4 registers) at a time.

    Args:
        factors: for both rows of the thread, the factor of the first 128 columns and of the next.
        former: columns that belong to the first 128; None if all do.
    """
    pair = [row[0] for row in factors]
    chosen = b.regs(".f32", "chosen", 2) if former is not None else []
    for start in range(0, len(sums), 4):
        if former is not None and start:
            is_first = b.let(".pred", "is_former", "setp.gt.s32", former, 2 * start)
            for half in range(2):
                b.emit("selp.f32", chosen[half], *factors[half], is_first)
            pair = chosen
        for i in range(4):
            total, part = sums[start + i], accumulators[start + i]
            b.emit("fma.rn.f32", total, part, pair[i // 2], total)

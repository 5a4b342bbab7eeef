"""Schedule `attention`: a forward tile in the FlashAttention-3 manner.

One CTA computes 128 rows of one head.  A producer warp feeds K and V through two rings; two
warpgroups own 64 rows each.  Two overlaps hide the softmax:

- inside a warpgroup: the scores of the next block (Q K^T) are issued before the products of the
  last one (P V), and `wait_group 1` gives the scores while P V still runs;
- between warpgroups: they issue their products in turns (`takes turns` below), so that the softmax
  of one runs under the products of the other.

Blocks are walked from the last to the first.  The first one walked is masked (the end of the
sequence, the diagonal); further blocks on the diagonal have a loop of their own.

Source: FlashAttention-3, arXiv 2407.08608, algorithm 2; flash-attention hopper/mainloop_fwd_sm90.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.attention import softmax
from hopsim.kernels.attention.plan import (
    BLOCK_Q,
    CONSUMER_REGISTERS,
    DTYPES,
    ENTRY_REGISTERS,
    PRODUCER_REGISTERS,
    SLAB,
    SUMS_BYTES,
    THREADS,
    WARPGROUP_ROWS,
    WARPGROUPS,
    WARPS,
    AttentionPlan,
)
from hopsim.kernels.ptx import pipeline as pipe
from hopsim.kernels.ptx.text import Operand, Param, PtxEntry, Reg, address, vector

HIDDEN_HEAD_DIM = 128
"""With smaller heads the exponentials take longer than the products, and ptxas's own order is 2 to 3 % quicker (H100)."""
SHARED_SYMBOL = "smem"
_WARPGROUP_THREADS = 128
_TURN_BARRIER = 1  # and 2: whose turn it is
_STORE_BARRIER = 3  # and 4: the warpgroup's output lies in shared memory
_K_FULL, _K_EMPTY, _V_FULL, _V_EMPTY = range(4)
_MAPS = ("map_q", "map_k", "map_v", "map_o")


@dataclass(frozen=True, slots=True)
class _Tile:
    """The CTA's tile, the same for all roles.

    Args:
        q_row: first row.  head: batch and head.  maps: generic addresses of the tensor maps.
        seq_kv: rows of K and V.  offset: seq_kv - seq_q.
        last: the block that is walked first.
        unmasked: blocks below this one are seen whole by all rows.
    """

    me: pipe.Self
    maps: dict[str, Reg]
    q_row: Reg
    head: Reg
    seq_kv: Reg
    offset: Reg
    last: Reg
    unmasked: Reg


def emit_forward(name: str, plan: AttentionPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    params = [Param(name, ".b8", 128) for name in _MAPS]
    params += [Param("seq_q", ".u32"), Param("seq_kv", ".u32"), Param("scale_log2", ".f32")]
    b = PtxEntry(name, params, [f".reqntid {THREADS}", f".maxnreg {ENTRY_REGISTERS}"])
    tile = _emit_tile(b, plan)
    _emit_barriers(b, plan, tile.me)
    consumer, end = b.label("CONSUMER"), b.label("END")
    consumes = b.let(".pred", "consumes", "setp.ge.s32", tile.me.warp, WARPS)
    b.emit("bra", consumer, guard=consumes)

    b.comment("producer warpgroup")
    b.emit("setmaxnreg.dec.sync.aligned.u32", PRODUCER_REGISTERS)
    idle = b.let(".pred", "idle", "setp.ne.s32", tile.me.warp, 0)
    b.emit("bra", end, guard=idle)
    with b.block():
        _emit_producer(b, plan, tile)
    b.emit("bra", end)

    b.comment("consumer warpgroups")
    b.place(consumer)
    b.emit("setmaxnreg.inc.sync.aligned.u32", CONSUMER_REGISTERS)
    with b.block():
        _Consumer(b, plan, tile).emit()
    b.place(end)
    b.emit("ret")
    return b


def _emit_tile(b: PtxEntry, plan: AttentionPlan) -> _Tile:
    me = pipe.emit_self(b, SHARED_SYMBOL)
    b.comment("the tile")
    maps = {name: pipe.emit_map(b, name) for name in _MAPS}
    for tensor_map in maps.values():
        b.emit("prefetch.tensormap", address(tensor_map), guard=me.leader)
    seq_q = b.let(".b32", "seq_q", "ld.param.u32", address("seq_q"))
    seq_kv = b.let(".b32", "seq_kv", "ld.param.u32", address("seq_kv"))
    index = b.let(".b32", "q_tile", "mov.u32", "%ctaid.x")
    head = b.let(".b32", "head", "mov.u32", "%ctaid.y")
    if plan.causal:
        tiles = b.let(".b32", "q_tiles", "mov.u32", "%nctaid.x")
        last_tile = b.let(".b32", "last_tile", "sub.s32", tiles, 1)
        index = b.let(".b32", "q_tile", "sub.s32", last_tile, index, note="longest rows first")
    q_row = b.let(".b32", "q_row", "mul.lo.s32", index, BLOCK_Q)
    offset = b.let(".b32", "offset", "sub.s32", seq_kv, seq_q)
    seen = seq_kv
    unmasked = b.let(".b32", "unmasked", "mov.b32", 0)
    if plan.causal:
        diagonal = b.let(".b32", "diagonal", "add.s32", q_row, offset)
        seen = b.let(".b32", "seen", "add.s32", diagonal, BLOCK_Q, note="by the last row")
        b.emit("min.s32", seen, seen, seq_kv)
        b.emit("max.s32", seen, seen, 1)
        by_first = b.let(".b32", "seen_by_first", "add.s32", diagonal, 1)
        b.emit("max.s32", by_first, by_first, 0)
        b.emit("div.s32", unmasked, by_first, plan.block_kv)
    blocks = pipe.emit_ceil_div(b, "blocks", seen, plan.block_kv)
    last = b.let(".b32", "last", "sub.s32", blocks, 1)
    return _Tile(me, maps, q_row, head, seq_kv, offset, last, unmasked)


def _emit_barriers(b: PtxEntry, plan: AttentionPlan, me: pipe.Self) -> None:
    b.comment("barriers")
    pipe.emit_init(b, address(me.smem, plan.q_full), 1, me.leader, "Q is there")
    readers = WARPGROUPS * WARPS
    for number, (what, arrivals) in enumerate(
        (("K full", 1), ("K empty", readers), ("V full", 1), ("V empty", readers))
    ):
        for stage in range(plan.stages):
            at = address(me.smem, plan.ring_barrier(number) + 8 * stage)
            pipe.emit_init(b, at, arrivals, me.leader, f"{what} {stage}")
    pipe.emit_init_done(b, me.leader)


def _emit_producer(b: PtxEntry, plan: AttentionPlan, tile: _Tile) -> None:
    me = tile.me
    q_full = address(me.smem, plan.q_full)
    pipe.emit_expect(b, q_full, plan.slabs * plan.q_slab_bytes, me.leader)
    for slab in range(plan.slabs):
        to = address(me.smem, slab * plan.q_slab_bytes)
        at = (slab * SLAB, tile.q_row, tile.head)
        pipe.emit_load(b, to, tile.maps["map_q"], at, q_full, me.leader)
    k_slot, v_slot = pipe.emit_cursor(b, 1, "k_"), pipe.emit_cursor(b, 1, "v_")
    row = b.let(".b32", "kv_row", "mul.lo.s32", tile.last, plan.block_kv)
    _emit_block_load(b, plan, tile, "k", k_slot, row)
    done, loop = b.label("LOADED"), b.label("LOAD_LOOP")
    finished = b.let(".pred", "loaded", "setp.eq.s32", row, 0)
    b.emit("bra", done, guard=finished)
    b.place(loop)
    v_row = b.let(".b32", "v_row", "mov.b32", row)
    b.emit("sub.s32", row, row, plan.block_kv)
    _emit_block_load(b, plan, tile, "k", k_slot, row)
    _emit_block_load(b, plan, tile, "v", v_slot, v_row)
    more = b.let(".pred", "more_loads", "setp.ne.s32", row, 0)
    b.emit("bra", loop, guard=more)
    b.place(done)
    _emit_block_load(b, plan, tile, "v", v_slot, row)


def _emit_block_load(
    b: PtxEntry, plan: AttentionPlan, tile: _Tile, which: str, slot: pipe.Cursor, row: Reg
) -> None:
    """Write the load of one block of K or V into its ring's next slot."""
    me = tile.me
    full, empty, ring = (
        (_K_FULL, _K_EMPTY, plan.k_offset) if which == "k" else (_V_FULL, _V_EMPTY, plan.v_offset)
    )
    barrier = pipe.emit_slot_barrier(b, me.smem, slot.stage)
    to = b.let(".b32", f"{which}_to", "mad.lo.s32", slot.stage, plan.stage_bytes, me.smem)
    pipe.emit_wait(b, address(barrier, plan.ring_barrier(empty)), slot.parity, f"{which}_empty")
    signal = address(barrier, plan.ring_barrier(full))
    pipe.emit_expect(b, signal, plan.stage_bytes, me.leader)
    for slab in range(plan.slabs):
        at = (slab * SLAB, row, tile.head)
        place = address(to, ring + slab * plan.slab_bytes)
        pipe.emit_load(b, place, tile.maps[f"map_{which}"], at, signal, me.leader)
    pipe.emit_advance(b, slot, plan.stages)


class _Consumer:
    """What a consumer warpgroup does; the registers that all its steps share."""

    def __init__(self, b: PtxEntry, plan: AttentionPlan, tile: _Tile) -> None:
        self.b, self.plan, self.tile = b, plan, tile
        me = tile.me
        past_producer = b.let(".b32", "consumer_warp", "sub.s32", me.warp, WARPS)
        sums = b.let(".b32", "sums", "add.s32", me.smem, plan.sums_offset)
        self.sums = b.let(".b32", "sums", "mad.lo.s32", past_producer, SUMS_BYTES, sums)
        self.warpgroup = b.let(".b32", "warpgroup", "shr.u32", past_producer, 2)
        self.own_warp = b.let(".b32", "own_warp", "and.b32", me.warp, WARPS - 1)
        self.is_first = b.let(".pred", "is_first", "setp.eq.s32", self.warpgroup, 0)
        self.quad_column = b.reg(".b32", "quad_column")
        self.limits = [b.reg(".b32", "limit") for _ in range(2)]
        self._emit_limits()
        self._emit_descriptors()
        scale = b.let(".f32", "scale", "ld.param.f32", address("scale_log2"))
        self.rows = softmax.emit_rows(b, scale)
        self.scores = b.regs(".f32", "s", plan.block_kv // 2)
        self.weights = b.regs(".f32", "w", plan.block_kv // 2)
        self.packed = b.regs(".b32", "p", plan.block_kv // 4)
        self.outputs = b.regs(".f32", "o", plan.head_dim // 2)
        self.never = b.let(".pred", "never", "mov.pred", 0)
        self.always = b.let(".pred", "always", "mov.pred", -1)
        self.accumulates = b.let(".pred", "accumulates", "mov.pred", 0)
        self.k_slot, self.v_slot = pipe.emit_cursor(b, 0, "k_"), pipe.emit_cursor(b, 0, "v_")
        self.block = b.let(".b32", "block", "mov.b32", tile.last)
        self.own_turn = b.let(".b32", "own_turn", "add.s32", self.warpgroup, _TURN_BARRIER)
        other = b.let(".b32", "other", "xor.b32", self.warpgroup, 1)
        self.other_turn = b.let(".b32", "other_turn", "add.s32", other, _TURN_BARRIER)

    def emit(self) -> None:
        """Write the consumer."""
        b, plan, tile = self.b, self.plan, self.tile
        b.comment("the first warpgroup begins, if there are turns to take")
        second = b.let(".pred", "is_second", "not.pred", self.is_first)
        has_turns = b.let(".pred", "has_turns", "setp.ne.s32", tile.last, 0)
        gives = b.let(".pred", "gives", "and.pred", second, has_turns)
        b.emit("bar.arrive", _TURN_BARRIER, WARPGROUPS * _WARPGROUP_THREADS, guard=gives)

        b.comment("first block: scores, softmax")
        pipe.emit_wait(b, address(tile.me.smem, plan.q_full), 0, "q_full")
        self._emit_ready(_K_FULL, self.k_slot, "k")
        b.emit("wgmma.fence.sync.aligned")
        self._emit_scores()
        b.emit("wgmma.wait_group.sync.aligned", 0)
        self._emit_release(_K_EMPTY, self.k_slot)
        self._emit_softmax(masked=True)
        softmax.emit_packed(b, plan.dtype, self.weights, self.packed)

        tail = b.label("TAIL")
        if plan.causal:
            self._emit_loop("DIAGONAL", tail, masked=True)
        self._emit_loop("BLOCK", tail, masked=False)

        b.place(tail)
        b.comment("last products")
        self._emit_ready(_V_FULL, self.v_slot, "v")
        b.emit("wgmma.fence.sync.aligned")
        self._emit_products()
        factors = softmax.emit_reciprocals(b, self.rows)
        b.emit("wgmma.wait_group.sync.aligned", 0)
        softmax.emit_rescale(b, self.outputs, factors)
        self._emit_store()

    def _emit_loop(self, name: str, tail: str, *, masked: bool) -> None:
        """Write the loop over blocks: masked, down to the last one that all rows see; then the rest."""
        b = self.b
        b.comment("blocks on the diagonal" if masked else "blocks that all rows see")
        loop, after = b.label(f"{name}_LOOP"), b.label(f"{name}_DONE")
        stop = b.let(".b32", "stop", "max.s32", self.tile.unmasked, 0) if masked else 0
        ends = b.reg(".pred", "ends")
        b.emit("setp.le.s32", ends, self.block, stop)
        b.emit("bra", after if masked else tail, guard=ends)
        b.place(loop)
        b.emit("sub.s32", self.block, self.block, 1)
        self._emit_step(masked=masked)
        b.emit("setp.gt.s32", ends, self.block, stop)
        b.emit("bra", loop, guard=ends)
        b.place(after)

    def _emit_step(self, *, masked: bool) -> None:
        """Write one block: its scores over the last block's products, softmax, rescaling."""
        b, plan, tile = self.b, self.plan, self.tile
        self._emit_ready(_K_FULL, self.k_slot, "k")
        b.emit("bar.sync", self.own_turn, WARPGROUPS * _WARPGROUP_THREADS, note="my turn")
        b.emit("wgmma.fence.sync.aligned")
        self._emit_scores()
        self._emit_ready(_V_FULL, self.v_slot, "v")
        b.emit("wgmma.fence.sync.aligned", note="for the weights, past the branch of the wait")
        self._emit_products()
        follows = b.let(".pred", "follows", "setp.ne.s32", self.block, 0)
        b.emit("or.pred", follows, follows, self.is_first)
        b.emit("bar.arrive", self.other_turn, WARPGROUPS * _WARPGROUP_THREADS, guard=follows)
        b.emit("wgmma.wait_group.sync.aligned", 1, note="the scores are there")
        self._emit_release(_K_EMPTY, self.k_slot)
        self._emit_softmax(masked=masked)
        if plan.head_dim == HIDDEN_HEAD_DIM:
            softmax.emit_done(b, self.rows, address(self.sums), tile.me.elected)
        b.emit("wgmma.wait_group.sync.aligned", 0, note="the products too")
        self._emit_release(_V_EMPTY, self.v_slot)
        softmax.emit_rescale(b, self.outputs, self.rows.alpha)
        softmax.emit_packed(b, plan.dtype, self.weights, self.packed)

    # -- parts --------------------------------------------------------------------------------------

    def _emit_ready(self, ring: int, slot: pipe.Cursor, which: str) -> None:
        barrier = pipe.emit_slot_barrier(self.b, self.tile.me.smem, slot.stage)
        full = address(barrier, self.plan.ring_barrier(ring))
        pipe.emit_wait(self.b, full, slot.parity, f"{which}_full")

    def _emit_release(self, ring: int, slot: pipe.Cursor) -> None:
        barrier = pipe.emit_slot_barrier(self.b, self.tile.me.smem, slot.stage)
        empty = address(barrier, self.plan.ring_barrier(ring))
        pipe.emit_arrive(self.b, empty, self.tile.me.elected)
        pipe.emit_advance(self.b, slot, self.plan.stages)

    def _emit_scores(self) -> None:
        """Write S = Q K^T of the slot of K, one committed group."""
        b, plan = self.b, self.plan
        k_desc = pipe.emit_moved_to(b, "k_desc", self.k_base, self.k_slot, plan.stage_bytes)
        steps = zip(plan.q.step_offsets, plan.k.step_offsets, strict=True)
        for step, (q_offset, k_offset) in enumerate(steps):
            q_step = pipe.emit_moved(b, "q_step", self.q_base, q_offset)
            k_step = pipe.emit_moved(b, "k_step", k_desc, k_offset)
            scale_d = self.always if step else self.never
            self._emit_wgmma(plan.block_kv, self.scores, q_step, k_step, scale_d, (1, 1, 0, 0))
        b.emit("wgmma.commit_group.sync.aligned")

    def _emit_products(self) -> None:
        """Write O += P V of the slot of V, one committed group."""
        b, plan = self.b, self.plan
        v_desc = pipe.emit_moved_to(b, "v_desc", self.v_base, self.v_slot, plan.stage_bytes)
        for step, v_offset in enumerate(plan.v.step_offsets):
            v_step = pipe.emit_moved(b, "v_step", v_desc, v_offset)
            fragment = vector(self.packed[4 * step : 4 * step + 4])
            scale_d = self.always if step else self.accumulates
            self._emit_wgmma(plan.head_dim, self.outputs, fragment, v_step, scale_d, (1, 1, 1))
        b.emit("wgmma.commit_group.sync.aligned")
        b.emit("mov.pred", self.accumulates, -1)

    def _emit_wgmma(
        self,
        n: int,
        fragment: list[Reg],
        a: Operand,
        b_desc: Reg,
        scale_d: Reg,
        immediates: tuple[int, ...],
    ) -> None:
        kind = DTYPES[self.plan.dtype]
        self.b.emit(
            f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{kind}.{kind}",
            vector(fragment), a, b_desc, scale_d, *immediates,
        )  # fmt: skip

    def _emit_softmax(self, *, masked: bool) -> None:
        b = self.b
        scores = self.scores
        if masked:
            start = b.let(".b32", "block_start", "mad.lo.s32", self.block, self.plan.block_kv,
                          self.quad_column)  # fmt: skip
            relative = [b.let(".b32", "sees_to", "sub.s32", lim, start) for lim in self.limits]
            scores = softmax.emit_mask(b, scores, relative)
        softmax.emit_exponentials(b, self.rows, scores, self.weights)

    def _emit_limits(self) -> None:
        """Write, for both rows of the thread, how many columns they see."""
        b, tile = self.b, self.tile
        quad = b.let(".b32", "quad", "and.b32", tile.me.lane, 3)
        b.emit("shl.b32", self.quad_column, quad, 1)
        if not self.plan.causal:
            for limit in self.limits:
                b.emit("mov.b32", limit, tile.seq_kv)
            return
        group = b.let(".b32", "group", "shr.u32", tile.me.lane, 2)
        in_warp = b.let(".b32", "row_in_tile", "mad.lo.s32", self.own_warp, 16, group)
        in_tile = b.let(
            ".b32", "row_in_tile", "mad.lo.s32", self.warpgroup, WARPGROUP_ROWS, in_warp
        )
        row = b.let(".b32", "row", "add.s32", tile.q_row, in_tile)
        diagonal = b.let(".b32", "row_diagonal", "add.s32", row, tile.offset)
        for half, limit in enumerate(self.limits):
            b.emit("add.s32", limit, diagonal, 1 + 8 * half)
            b.emit("min.s32", limit, limit, tile.seq_kv)

    def _emit_descriptors(self) -> None:
        b, plan, smem = self.b, self.plan, self.tile.me.smem
        rows_bytes = WARPGROUP_ROWS * 128
        self.q_rows = b.let(".b32", "q_rows", "mad.lo.s32", self.warpgroup, rows_bytes, smem)
        self.q_base = pipe.emit_descriptor(b, "q_base", self.q_rows, plan.q.descriptor())
        k_addr = b.let(".b32", "k_addr", "add.s32", smem, plan.k_offset)
        self.k_base = pipe.emit_descriptor(b, "k_base", k_addr, plan.k.descriptor())
        v_addr = b.let(".b32", "v_addr", "add.s32", smem, plan.v_offset)
        self.v_base = pipe.emit_descriptor(b, "v_base", v_addr, plan.v.descriptor())

    def _emit_store(self) -> None:
        """Write O over the warpgroup's own rows of Q, which nobody reads any more, and from there."""
        b, plan, tile = self.b, self.plan, self.tile
        b.comment("store")
        lane_row = b.let(".b32", "lane_row", "and.b32", tile.me.lane, 15)
        half = b.let(".b32", "lane_half", "shr.u32", tile.me.lane, 4)
        row = b.let(".b32", "staged_row", "mad.lo.s32", self.own_warp, 16, lane_row)
        at_row = b.let(".b32", "row_addr", "mad.lo.s32", row, 128, self.q_rows)
        linear = b.let(".b32", "linear", "mad.lo.s32", half, 16, at_row)
        bits = b.let(".b32", "row_bits", "shr.u32", linear, 3)
        chunk = b.let(".b32", "chunk_bits", "and.b32", bits, 0x70)
        first = b.let(".b32", "write", "xor.b32", linear, chunk, note="128-byte swizzle")
        writes = [first]
        writes += [b.let(".b32", "write", "xor.b32", first, 32 * unit) for unit in (1, 2, 3)]
        packed = b.regs(".b32", "out", 4)
        for unit in range(plan.head_dim // 16):
            slab, within = divmod(unit, 4)
            outputs = self.outputs[8 * unit : 8 * unit + 8]
            softmax.emit_packed_box(
                b, plan.dtype, outputs, writes[within], slab * plan.q_slab_bytes, packed
            )
        b.emit("fence.proxy.async.shared::cta", note="stores above, TMA below")
        barrier = b.let(".b32", "store_barrier", "add.s32", self.warpgroup, _STORE_BARRIER)
        b.emit("bar.sync", barrier, _WARPGROUP_THREADS)
        in_first = b.let(".pred", "in_first_warp", "setp.eq.s32", self.own_warp, 0)
        issuer = b.let(".pred", "issuer", "and.pred", tile.me.elected, in_first)
        o_row = b.let(".b32", "o_row", "mad.lo.s32", self.warpgroup, WARPGROUP_ROWS, tile.q_row)
        for slab in range(plan.slabs):
            at = (slab * SLAB, o_row, tile.head)
            source = address(self.q_rows, slab * plan.q_slab_bytes)
            pipe.emit_store(b, tile.maps["map_o"], at, source, issuer)
        b.emit("cp.async.bulk.commit_group", guard=issuer)
        b.emit("cp.async.bulk.wait_group", 0, guard=issuer, note="all of O is written")

"""A schedule of one's own: two slots, the loads of the next k-block under the products of this one.

It stands between `wgmma-simple` (nothing overlaps) and `pipelined` (products overlap too), and is written from
the same parts: frame, barriers, loads, products, epilogue.  What is left is the order of events.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import hopsim as hs
from hopsim.kernels.gemm import parts
from hopsim.kernels.gemm.expected import expected, is_admissible
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import launch
from hopsim.kernels.gemm.parts import address
from hopsim.kernels.gemm.problem import GemmProblem


def emit_double_buffered(name: str, plan: parts.GemmPlan) -> parts.PtxEntry:
    b = parts.new_entry(name, plan)
    frame = parts.emit_frame(b, plan)
    parts.emit_barriers(b, plan, frame)
    row, col = parts.emit_origin(b, plan, frame, parts.emit_walk(b, plan, frame), frame.index)
    products = parts.emit_products(b, plan, frame, None)
    staging = parts.emit_staging(b, plan, frame, None, frame.warp)
    filling, reading = parts.emit_cursor(b, first_parity=0), parts.emit_cursor(b, first_parity=0)
    k = b.let(".b32", "k_at", "mov.b32", 0)

    def load_next() -> None:
        exists = b.let(".pred", "exists", "setp.lt.s32", k, frame.k)
        loads = b.let(".pred", "loads", "and.pred", exists, frame.leader)
        slot = b.let(".b32", "slot", "mad.lo.s32", filling.stage, plan.stage_bytes, frame.smem)
        full = address(parts.emit_slot_barrier(b, frame.smem, filling.stage), plan.full_offset)
        parts.emit_stage_loads(
            b, plan, frame, parts.NO_MULTICAST,
            slot=slot, full=full, k=k, a_row=row, b_row=col, guard=loads,
        )  # fmt: skip
        parts.emit_advance(b, plan, filling)
        b.emit("add.s32", k, k, plan.tile.k)

    load_next()
    left = b.let(".b32", "left", "mov.b32", frame.k_blocks)
    loop = b.label("K_LOOP")
    b.place(loop)
    load_next()
    full = address(parts.emit_slot_barrier(b, frame.smem, reading.stage), plan.full_offset)
    parts.emit_wait(b, plan, full, reading.parity, "full")
    begun = b.let(".pred", "begun", "setp.lt.s32", left, frame.k_blocks)
    parts.emit_stage_products(b, plan, products, reading, first=begun)
    b.emit("wgmma.wait_group.sync.aligned", 0)
    b.emit("bar.sync", 0, note="all warps have read the slot: the next loads may fill it")
    parts.emit_advance(b, plan, reading)
    b.emit("sub.s32", left, left, 1)
    b.emit("bra", loop, guard=b.let(".pred", "more", "setp.ne.s32", left, 0))
    parts.emit_epilogue(b, plan, frame, staging, products.accumulators, row, col)
    parts.emit_stores_done(b, staging)
    b.emit("ret")
    return b


problem = GemmProblem(128, 128, 512)
own = parts.Schedule(
    "double-buffered", "loads under products", emit_double_buffered, warpgroups=(1,), stages=(2, 2)
)
rng = np.random.default_rng(0)
a, w = (rng.standard_normal((128, 512)).astype(ml_dtypes.bfloat16) for _ in range(2))
for schedule, stages in (("wgmma-simple", 1), (own, 2), ("pipelined", 2)):
    kernel = build(schedule, problem, (64, 64, 64), stages)
    done = launch(hs.Gpu("h100-sxm"), kernel, a, w)
    right = bool(is_admissible(done.c, expected(kernel, a, w)).all())
    verdict, cycles = done.result.verdict, done.result.cycles
    print(f"{kernel.schedule:16} {verdict:6} bits equal: {right}   {cycles:,} cycles")

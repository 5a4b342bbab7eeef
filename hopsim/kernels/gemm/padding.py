"""Zeros in the place of the rows of A that a tile has and M has not, where they are not loaded (`GemmPlan.a_rows`).

The tensor cores multiply whole atoms.  Left to themselves, those rows would be what shared memory held before; their
products are never stored, but nobody should have to think about that.  The threads that multiply write the zeros once,
while the first copies are on their way.
"""

from __future__ import annotations

from hopsim.kernels.gemm.frame import Frame
from hopsim.kernels.gemm.plan import WARPGROUP_THREADS, GemmPlan
from hopsim.kernels.ptx.text import PtxEntry, address, vector

_BARRIER = 7
"""Named barrier of the threads that multiply; no other part of a kernel has it."""
_CHUNK_BYTES = 16


def emit_padding(b: PtxEntry, plan: GemmPlan, frame: Frame) -> None:
    """Write the zeros of all slots, and the wait of all threads that multiply; nothing where all rows are loaded."""
    if not plan.a_rows:
        return
    a = plan.a
    width = a.swizzle.width_bytes
    first = WARPGROUP_THREADS if plan.has_producer else 0
    threads = plan.threads - first
    chunks = (a.rows - a.loaded_rows) * width // _CHUNK_BYTES
    b.comment("zeros below the rows of A that are loaded")
    start = a.loaded_rows * width - first * _CHUNK_BYTES
    base = b.let(".b32", "padding", "mad.lo.s32", frame.thread, _CHUNK_BYTES, frame.smem)
    zero = b.let(".b32", "zero", "mov.b32", 0)
    guards = [
        None
        if chunk + threads <= chunks
        else b.let(".pred", "pads", "setp.lt.s32", frame.thread, chunks - chunk + first)
        for chunk in range(0, chunks, threads)
    ]
    for stage in range(plan.stages):
        for slab in range(a.boxes):
            at = start + stage * plan.stage_bytes + slab * a.slab_bytes
            for number, guard in enumerate(guards):
                to = address(base, at + number * threads * _CHUNK_BYTES)
                b.emit("st.shared.v4.b32", to, vector([zero] * 4), guard=guard)
    b.emit("fence.proxy.async.shared::cta")
    b.emit("bar.sync", _BARRIER, threads)

"""Stores in a row: how many bytes threads store before a store holds its warp, and for how long."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, address, vector

COUNTS = (1, 2, 4, 8, 12, 16, 24, 32, 48)
STORE_BYTES = 512
"""Of a warp: 16 of each thread."""


def stores(warps: int) -> Benchmark:
    """So many stores of 16 bytes a thread by each of some warps, from their first to the last one's issue."""
    c = Clocked(f"store_burst_w{warps}", [Param("data", ".u64")], [f".reqntid {32 * warps}"])
    at = c.k.let(".b64", "at", "ld.param.u64", "[data]")
    c.k.emit("mad.wide.u32", at, c.thread, 16, at)
    word = c.k.let(".b32", "word", "mov.u32", 1)
    for count in COUNTS:
        # What is under way from before would hold them too.
        c.k.emit("fence.acq_rel.gpu")
        c.k.emit("bar.sync", 0)
        before = c.clock()
        for number in range(count):
            place = address(at, number * STORE_BYTES * warps)
            c.k.emit("st.global.v4.b32", place, vector((word, word, word, word)))
        after = c.clock()
        c.k.emit("sub.u64", after, after, before)
        c.store(f"{count} stores", after)
    return c.benchmark(
        f"stores of 16 bytes a thread by each of {warps} warps of an SM, until the last of a warp is issued",
        block=32 * warps, shared_bytes=200 * 1024, arguments=_data,
    )  # fmt: skip


def _data(gpu: Any) -> list[Any]:
    return [gpu.array(np.zeros(1 << 20, np.uint8))]


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [stores(warps) for warps in (1, 4, 8)]

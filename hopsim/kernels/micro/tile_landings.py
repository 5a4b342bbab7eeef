"""When each stage of a walk around tiles out of L2 lands: by one SM alone, and by all that begin together.

One thread of each CTA loads boxes of A and B by TMA, some stages ahead.  When L2 has all of it and all CTAs have met, it
asks for as many stages as there are slots, waits for one after the other, and asks for another in its place.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.steady_walks import meet
from hopsim.kernels.micro.tile_walks import STEPS, TileWalk
from hopsim.kernels.micro.tiles import LOAD
from hopsim.kernels.ptx.text import Param, Reg, address, vector

STAGES: Final = 8
"""Of which it is told when they land."""
WARM_WALKS: Final = 2
"""The first one out of device memory, the second one into the nearer half of L2."""
LAUNCHES: Final = 5


def benchmark(one: TileWalk) -> Benchmark:
    """Write the kernel."""
    params = [Param("a", ".b8", 128), Param("b", ".b8", 128), Param("arrived", ".u64")]
    c = Clocked(f"tile_landings_{one.shape}", params, [".reqntid 32"])
    c.own_row(STAGES)
    maps = [c.address_of(operand, f"{operand}_map") for operand in "ab"]
    rows = one.first_rows(c)
    slots_bytes = one.depth * one.stage_bytes
    barriers = [address(c.shared, slots_bytes + 8 * slot) for slot in range(one.depth)]
    for barrier in barriers:
        c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=c.first)
    c.k.emit("fence.mbarrier_init.release.cluster", guard=c.first)
    done = c.label_and_leave_but_first()
    k, left, more = c.k.reg(".b32", "at_k"), c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def issue(slot: int) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barriers[slot], one.stage_bytes)
        to = slot * one.stage_bytes
        for place, row, count in zip(maps, rows, (one.rows_a, one.rows_b), strict=True):
            c.k.emit(LOAD, address(c.shared, to), f"[{place}, {vector((k, row))}]", barriers[slot])
            to += count * ROW_BYTES
        c.k.emit("add.u32", k, k, BOX_K)

    for _ in range(WARM_WALKS):
        c.k.emit("mov.u32", k, 0)
        c.walk_ring(barriers, parity, STEPS // one.depth, issue, left, more)
    meet(c, one.ctas)
    c.k.emit("mov.u32", k, 0)
    before = c.clock()
    for slot in range(one.depth):
        issue(slot)
    clocks: list[Reg] = []
    for stage in range(STAGES):
        slot = stage % one.depth
        c.wait_parity(barriers[slot], parity)
        clocks.append(c.clock())
        issue(slot)
        if slot == one.depth - 1:
            c.k.emit("xor.b32", parity, parity, 1)
    for slot in range(one.depth):
        c.wait_parity(barriers[slot], parity)
    c.store_since(before, [f"stage {stage}" for stage in range(1, STAGES + 1)], clocks)
    c.k.place(done)

    def arguments(gpu: Any) -> list[Any]:
        return [*one.maps(gpu), gpu.array(np.zeros(1, np.uint32))]

    return c.benchmark(
        f"{one.what('TMA loads')}: until each of the first stages has come", grid=one.ctas, block=32, rows=one.ctas,
        summary=mean_of_rows, shared_bytes=slots_bytes + 64, arguments=arguments, mean_of=LAUNCHES,
    )  # fmt: skip


def shapes() -> list[TileWalk]:
    """Return what is measured: one SM alone, and all."""
    depths = (1, 2, 4)
    ctas = ((1, 1), (12, 11), (4, 33))
    return [
        TileWalk(*along, rows, rows, depth)
        for along in ctas for rows in (64, 128) for depth in depths
    ]  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [benchmark(one) for one in shapes()]

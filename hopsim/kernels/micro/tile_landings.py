"""When each stage of a walk around tiles out of L2 lands: by one SM alone, and by all that begin together.

One thread of each CTA loads boxes of A and B by TMA, some stages ahead.  When L2 has all of it and all CTAs have met, it
asks for as many stages as there are slots, waits for one after the other, and asks for another in its place.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.steady_walks import meet
from hopsim.kernels.micro.tile_walks import BoxRing, TileWalk
from hopsim.kernels.ptx.text import Param, Reg

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
    ring = BoxRing(c, one)
    for _ in range(WARM_WALKS):
        ring.walk()
    meet(c, one.ctas)
    ring.begin()
    before = c.clock()
    for slot in range(one.depth):
        ring.issue(slot)
    clocks: list[Reg] = []
    for stage in range(STAGES):
        slot = stage % one.depth
        c.wait_parity(ring.barriers[slot], ring.parity)
        clocks.append(c.clock())
        ring.issue(slot)
        if slot == one.depth - 1:
            c.k.emit("xor.b32", ring.parity, ring.parity, 1)
    for barrier in ring.barriers:
        c.wait_parity(barrier, ring.parity)
    c.store_since(before, [f"stage {stage}" for stage in range(1, STAGES + 1)], clocks)
    c.k.place(ring.done)

    def arguments(gpu: Any) -> list[Any]:
        return [*one.maps(gpu), gpu.array(np.zeros(1, np.uint32))]

    return c.benchmark(
        f"{one.what('TMA loads')}: until each of the first stages has come", grid=one.ctas, block=32, rows=one.ctas,
        summary=mean_of_rows, shared_bytes=ring.shared_bytes, arguments=arguments, mean_of=LAUNCHES,
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

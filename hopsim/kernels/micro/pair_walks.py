"""Tiles along K by clusters of two CTAs that share B, out of L2 or device memory, as clustered matrix products load them.

Of each CTA one warp asks for stages by TMA and another one takes them, works at each for some time, and frees its place on
both CTAs.  Either each CTA loads all of its B, or half of it for both by multicast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.cold import SETTLE_NS
from hopsim.kernels.micro.tile_walks import STEPS, TileWalk
from hopsim.kernels.micro.tiles import LOAD
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

CLUSTER: Final = 2
WALKS: Final = 2
"""Out of L2: the second one is measured."""
PRODUCER: Final = 32
"""First thread of the warp that loads."""


@dataclass(frozen=True, slots=True)
class PairWalk:
    """Which tiles there are.

    Args:
        walk: tiles, stages in flight.
        multicast: whether each CTA loads half of B for both; else all of it for itself.
        work_cycles: at each stage, at least.
        is_cold: whether the tiles come out of device memory, once.
        scope: of the waits: `.acquire.cluster`, to acquire what the other CTA released.
    """

    walk: TileWalk
    multicast: bool
    work_cycles: int = 0
    is_cold: bool = False
    scope: str = ""

    @property
    def walks(self) -> int:
        """How often the tiles are loaded; the last time is measured."""
        return 1 if self.is_cold else WALKS

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        how = "multicast" if self.multicast else "alone"
        work = f"_every{self.work_cycles}" if self.work_cycles else ""
        cold = "cold_" if self.is_cold else ""
        acquires = "_acquire" if self.scope else ""
        return f"pair_walk_{cold}{how}_{self.walk.shape}{self.walk.pitch}{work}{acquires}"


class _Ring:
    """Full and free barriers of the stages of a CTA, and how a thread goes round."""

    def __init__(self, c: Clocked, depth: int, slots_bytes: int) -> None:
        self.c, self.depth = c, depth
        self.full = [address(c.shared, slots_bytes + 8 * slot) for slot in range(depth)]
        self.free = [slots_bytes + 8 * (depth + slot) for slot in range(depth)]
        for barrier, free in zip(self.full, self.free, strict=True):
            c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=c.first)
            c.k.emit(
                "mbarrier.init.shared::cta.b64", address(c.shared, free), CLUSTER, guard=c.first
            )
        c.k.emit("fence.mbarrier_init.release.cluster", guard=c.first)

    def walk(self, parity: Reg, step: Callable[[int], None]) -> None:
        """Go along K once; the parity is that of the barriers which `step` waits for."""
        left, more = self.c.k.reg(".b32", "left"), self.c.k.reg(".pred", "more")
        self.c.k.emit("mov.u32", left, STEPS // self.depth)
        with self.c.k.loop(left, more, "$walk"):
            for slot in range(self.depth):
                step(slot)
            self.c.k.emit("xor.b32", parity, parity, 1)


def walks(one: PairWalk) -> Benchmark:
    """Write one of them."""
    walk = one.walk
    assert STEPS % walk.depth == 0, one
    slots_bytes = walk.depth * walk.stage_bytes
    c = Clocked(one.name, [Param("a", ".b8", 128), Param("b", ".b8", 128)], [".reqntid 64"])
    c.own_row(1)
    ring = _Ring(c, walk.depth, slots_bytes)
    maps = [c.address_of(operand, f"{operand}_map") for operand in "ab"]
    if one.is_cold:
        # What is measured does not wait for tensor maps.
        for place in maps:
            c.k.emit("prefetch.tensormap", address(place))
        c.k.emit("nanosleep.u32", SETTLE_NS)
    _meet(c)
    ended, loads = c.k.label("$ended"), c.k.label("$loads")
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, PRODUCER - 1)
    c.k.emit("bra", ended, guard=c.k.let(".pred", "idle", "setp.ne.u32", lane, 0))
    c.k.emit("bra", loads, unless=c.first)
    _take(c, one, ring)
    c.k.emit("bra", ended)
    c.k.place(loads)
    _load(c, one, ring, maps)
    c.k.place(ended)
    c.k.emit("bar.warp.sync", -1)
    _meet(c)
    how = "half of B for both by multicast" if one.multicast else "all of B for itself"
    work = f", {one.work_cycles} cycles of work at each" if one.work_cycles else ""
    source = "device memory" if one.is_cold else "L2"
    waits = f", waits{one.scope}" if one.scope else ""
    return c.benchmark(
        f"tiles out of {source}, {walk.along_m} x {walk.along_n} CTAs in clusters of 2 below each other, {walk.rows_a} and "
        f"{walk.rows_b} rows, {walk.depth} stages in flight, each CTA loads {how}{work}{waits}",
        grid=walk.ctas, cluster=CLUSTER, block=64, rows=walk.ctas, summary=mean_of_rows,
        shared_bytes=slots_bytes + 16 * walk.depth, arguments=_maps(one),
        amounts={"walk": float(walk.ctas * STEPS * walk.stage_bytes)}, is_cold=one.is_cold,
    )  # fmt: skip


def _meet(c: Clocked) -> None:
    """Write a barrier of the cluster."""
    c.k.emit("barrier.cluster.arrive.aligned")
    c.k.emit("barrier.cluster.wait.aligned")


def _maps(one: PairWalk) -> Callable[[Any], list[Any]]:
    def arguments(gpu: Any) -> list[Any]:
        a, b = one.walk.arrays(gpu)
        rows_b = one.walk.rows_b // CLUSTER if one.multicast else one.walk.rows_b
        boxes = ((a, one.walk.rows_a), (b, rows_b))
        return [
            TensorMap(array, box=(BOX_K, rows), swizzle="128B", l2_promotion="256B")
            for array, rows in boxes
        ]

    return arguments


def _take(c: Clocked, one: PairWalk, ring: _Ring) -> None:
    """Wait for each stage, and free it on both CTAs."""
    peers = [
        c.k.let(".b32", "peer", "mapa.shared::cluster.u32", c.shared, rank)
        for rank in range(CLUSTER)
    ]
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def step(slot: int) -> None:
        c.wait_parity(ring.full[slot], parity, one.scope)
        if one.work_cycles:
            c.wait_until(c.clock(), one.work_cycles)
        for peer in peers:
            c.k.emit("mbarrier.arrive.shared::cluster.b64", "_", address(peer, ring.free[slot]))

    for _ in range(one.walks - 1):
        ring.walk(parity, step)
    c.measure_one("walk", lambda: ring.walk(parity, step))


def _load(c: Clocked, one: PairWalk, ring: _Ring, maps: Sequence[Reg]) -> None:
    """Ask for each stage when its place is free on both CTAs."""
    walk = one.walk
    row_a, row_b = walk.first_rows(c)
    to_b, mask = c.shared, None
    if one.multicast:
        rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
        half = walk.rows_b // CLUSTER
        c.k.emit("mad.lo.u32", row_b, rank, half, row_b)
        to_b = c.k.let(".b32", "part", "mad.lo.u32", rank, half * ROW_BYTES, c.shared)
        mask = c.k.let(".b16", "mask", "mov.u16", (1 << CLUSTER) - 1)
    # The first time round all places are free.
    parity = c.k.let(".b32", "free_parity", "mov.u32", 1)
    k = c.k.reg(".b32", "at_k")

    def step(slot: int) -> None:
        c.wait_parity(address(c.shared, ring.free[slot]), parity, one.scope)
        start, barrier = slot * walk.stage_bytes, ring.full[slot]
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, walk.stage_bytes)
        c.k.emit(LOAD, address(c.shared, start), f"[{maps[0]}, {vector((k, row_a))}]", barrier)
        place = address(to_b, start + walk.rows_a * ROW_BYTES)
        source = f"[{maps[1]}, {vector((k, row_b))}]"
        if mask is None:
            c.k.emit(LOAD, place, source, barrier)
        else:
            c.k.emit(f"{LOAD}.multicast::cluster", place, source, barrier, mask)
        c.k.emit("add.u32", k, k, BOX_K)

    for _ in range(one.walks):
        c.k.emit("mov.u32", k, 0)
        ring.walk(parity, step)


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    shapes = [
        TileWalk(12, 11, 128, 128, 4), TileWalk(12, 11, 64, 128, 4), TileWalk(12, 11, 128, 256, 4),
        TileWalk(12, 11, 128, 128, 2), TileWalk(2, 1, 128, 128, 4), TileWalk(4, 4, 128, 128, 4),
    ]  # fmt: skip
    found = [PairWalk(shape, multicast) for shape in shapes for multicast in (False, True)]
    found += [PairWalk(shapes[0], multicast, 512) for multicast in (False, True)]
    found += [PairWalk(shapes[2], multicast, 1024) for multicast in (False, True)]
    cold = [
        TileWalk(2, 1, 64, 128, 4, 8192), TileWalk(2, 32, 64, 128, 4, 8192), TileWalk(2, 32, 128, 128, 4, 8192),
        TileWalk(8, 8, 64, 128, 4), TileWalk(8, 8, 128, 128, 4), TileWalk(12, 11, 128, 128, 4),
    ]  # fmt: skip
    found += [PairWalk(shape, multicast, 0, True) for shape in cold for multicast in (False, True)]
    found += [PairWalk(cold[1], multicast, 512, True) for multicast in (False, True)]
    return [walks(one) for one in found]

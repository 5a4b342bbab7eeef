"""TMA loads of tiles out of device memory as CTAs of a matrix product ask for them: A and B, shared, in stages.

One thread of each CTA loads boxes of 64 elements of 16 bits, 128 bytes, by some rows, which nobody has read before: for
each of four steps along K one of A and one of B, all at once.  CTAs below each other share B, those beside each other A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import Benchmark, Clocked, means_and_latest
from hopsim.kernels.micro.cold import SETTLE_NS, USUAL_LAUNCHES
from hopsim.kernels.micro.streams import SLOTS_BYTES
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

STAGES: Final = 4
LOAD: Final = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"


@dataclass(frozen=True, slots=True)
class Tiles:
    """Which tiles there are.

    Args:
        along_m, along_n: CTAs below and beside each other.
        rows_a, rows_b: of the boxes; no rows of B: A alone is loaded.
        pitch_bytes: from one row of A or B to the next.
        promotion: L2 promotion of the tensor maps.
        pairs: whether two CTAs below each other are a cluster, and each loads half of B for both.
    """

    along_m: int
    along_n: int
    rows_a: int
    rows_b: int
    pitch_bytes: int
    promotion: str = "256B"
    pairs: bool = False

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        name = f"cold_tiles_{self.along_m}x{self.along_n}_{self.rows_a}r_{self.rows_b}r_p{self.pitch_bytes}"
        name += f"_l2_{self.promotion}" if self.promotion != "none" else ""
        return name + ("_m2" if self.pairs else "")

    @property
    def stage_bytes(self) -> int:
        """Shared bytes of a stage."""
        return (self.rows_a + self.rows_b) * ROW_BYTES


def first_rows(c: Clocked, along_m: int, rows_a: int, rows_b: int) -> tuple[Reg, Reg]:
    """Write which rows of A and B are the CTA's first.

    Args:
        along_m: CTAs below each other, which come first.
        rows_a, rows_b: of each CTA.
    """
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    row_a = c.k.let(".b32", "row_a", "rem.u32", cta, along_m)
    c.k.emit("mul.lo.u32", row_a, row_a, rows_a)
    row_b = c.k.let(".b32", "row_b", "div.u32", cta, along_m)
    c.k.emit("mul.lo.u32", row_b, row_b, rows_b)
    return row_a, row_b


def _maps(tiles: Tiles) -> Callable[[Any], list[Any]]:
    def arguments(gpu: Any) -> list[Any]:
        made: list[Any] = []
        for rows, count in ((tiles.rows_a, tiles.along_m), (tiles.rows_b, tiles.along_n)):
            if rows:
                array = gpu.array(np.zeros((rows * count, tiles.pitch_bytes // 2), np.float16))
                box = (BOX_K, rows // 2 if tiles.pairs and made else rows)
                made.append(TensorMap(array, box=box, swizzle="128B", l2_promotion=tiles.promotion))
        return made

    return arguments


class _Loads:
    """What all of these benchmarks begin with, and how they ask for a stage."""

    def __init__(self, tiles: Tiles, name: str) -> None:
        names = ["map_a", "map_b"][: 1 + bool(tiles.rows_b)]
        c = Clocked(name, [Param(name, ".b8", 128) for name in names], [".reqntid 32"])
        self.c = c
        self._tiles = tiles
        c.own_row(STAGES)
        self._maps: list[Reg] = []
        for name in names:
            place = c.address_of(name, name)
            c.k.emit("prefetch.tensormap", address(place), guard=c.first)
            self._maps.append(place)
        self._row_a, self._row_b = first_rows(c, tiles.along_m, tiles.rows_a, tiles.rows_b)
        self._part = c.shared
        self._masks: list[Reg] = []
        self.barriers = [address(c.shared, SLOTS_BYTES + 8 * stage) for stage in range(STAGES)]
        c.init_barriers(self.barriers)
        if tiles.pairs:
            self._share_b()

    def _share_b(self) -> None:
        c, half = self.c, self._tiles.rows_b // 2
        rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
        c.k.emit("mad.lo.u32", self._row_b, rank, half, self._row_b)
        self._part = c.k.let(".b32", "part", "mad.lo.u32", rank, half * ROW_BYTES, c.shared)
        self._masks.append(c.k.let(".b16", "mask", "mov.u16", 3))
        # Both wait for what the other asks for, so they begin together: who sleeps wakes when it likes.
        c.k.emit("nanosleep.u32", SETTLE_NS)
        self.meet()

    def meet(self) -> None:
        """Write a barrier of the cluster."""
        self.c.k.emit("barrier.cluster.arrive")
        self.c.k.emit("barrier.cluster.wait")

    def ask(self, stage: int, guard: Reg | None = None) -> None:
        """Write the loads of a stage."""
        k, tiles, barrier = self.c.k, self._tiles, self.barriers[stage]
        k.emit(
            "mbarrier.arrive.expect_tx.shared::cta.b64",
            "_",
            barrier,
            tiles.stage_bytes,
            guard=guard,
        )
        start = stage * tiles.stage_bytes
        at = f"[{self._maps[0]}, {vector((BOX_K * stage, self._row_a))}]"
        k.emit(LOAD, address(self.c.shared, start), at, barrier, guard=guard)
        if tiles.rows_b:
            at = f"[{self._maps[1]}, {vector((BOX_K * stage, self._row_b))}]"
            opcode = LOAD + (".multicast::cluster" if tiles.pairs else "")
            place_b = address(self._part, start + tiles.rows_a * ROW_BYTES)
            k.emit(opcode, place_b, at, barrier, *self._masks, guard=guard)

    def benchmark(self, what: str) -> Benchmark:
        """Return it."""
        tiles = self._tiles
        ctas = tiles.along_m * tiles.along_n
        shapes = f"{tiles.rows_a} and {tiles.rows_b}" if tiles.rows_b else f"{tiles.rows_a}"
        return self.c.benchmark(
            f"{STAGES} stages {what} out of device memory, {tiles.along_m} x {tiles.along_n} CTAs, boxes of {shapes} rows "
            f"{tiles.pitch_bytes} bytes apart, L2 promotion {tiles.promotion}"
            + (", halves of B multicast to 2" if tiles.pairs else ""),
            grid=ctas, cluster=1 + tiles.pairs, rows=ctas, summary=means_and_latest, shared_bytes=SLOTS_BYTES + 64,
            arguments=_maps(tiles), is_cold=True, mean_of=USUAL_LAUNCHES,
        )  # fmt: skip


def tiles_at_once(tiles: Tiles, gap_cycles: int = 0) -> Benchmark:
    """Four stages are asked for at once; each figure is from the first request until a stage is there.

    Args:
        gap_cycles: from one request to the next, at least.
    """
    assert STAGES * tiles.stage_bytes <= SLOTS_BYTES, tiles
    loads = _Loads(tiles, tiles.name + (f"_every{gap_cycles}" if gap_cycles else ""))
    c = loads.c
    done = c.label_and_leave_but_first()
    if not tiles.pairs:
        c.k.emit("nanosleep.u32", SETTLE_NS)
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    before = c.clock()
    for stage in range(STAGES):
        if stage and gap_cycles:
            c.wait_until(before, stage * gap_cycles)
        loads.ask(stage)
    clocks: list[Reg] = []
    for barrier in loads.barriers:
        c.wait_parity(barrier, parity)
        clocks.append(c.clock())
    c.store_since(before, [f"stage {stage}" for stage in range(STAGES)], clocks)
    c.k.place(done)
    if tiles.pairs:
        loads.meet()
    return loads.benchmark(f"{gap_cycles} cycles apart" if gap_cycles else "at once")


def tiles_in_turn(tiles: Tiles) -> Benchmark:
    """Each stage is asked for when the one before is there; each figure is from its request on."""
    loads = _Loads(tiles, f"{tiles.name}_in_turn")
    c = loads.c
    if not tiles.pairs:
        c.k.emit("nanosleep.u32", SETTLE_NS)
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    for stage, barrier in enumerate(loads.barriers):
        if tiles.pairs:
            loads.meet()
        before = c.clock()
        loads.ask(stage, c.first)
        c.wait_parity(barrier, parity)
        after = c.clock()
        c.k.emit("sub.u64", after, after, before)
        c.store(f"stage {stage}", after)
    if tiles.pairs:
        loads.meet()
    return loads.benchmark("in turn")


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        Tiles(16 // n, n, rows, 0, 1024, promotion)
        for rows, promotion in ((128, "none"), (128, "256B"), (256, "none")) for n in (1, 4, 16)
    ]  # fmt: skip
    for m, n, rows_a, rows_b, pitch in (
        (4, 4, 128, 128, 1024), (4, 2, 128, 256, 1024), (8, 4, 64, 128, 1024), (8, 8, 64, 64, 1024),
        (8, 8, 128, 128, 2048), (8, 4, 128, 256, 2048), (8, 12, 128, 128, 1056), (16, 8, 64, 128, 1056),
    ):  # fmt: skip
        found += [Tiles(m, n, rows_a, rows_b, pitch, promotion) for promotion in ("none", "256B")]
    found += [
        Tiles(m, n, 128, rows_b, pitch, pairs=True)
        for m, n, rows_b, pitch in (
            (4, 2, 256, 1024), (4, 4, 128, 1024), (8, 4, 256, 2048), (2, 1, 256, 1024), (8, 8, 128, 2048), (4, 4, 64, 1024),
            (12, 11, 128, 4096),
        )
    ]  # fmt: skip
    found.append(Tiles(1, 1, 128, 256, 1024))
    for rows_a, rows_b in ((64, 64), (64, 128), (128, 128), (64, 256), (128, 256)):
        found += [Tiles(12, 11, rows_a, rows_b, pitch) for pitch in (4096, 4112, 4128)]
        found.append(Tiles(12, 11, rows_a, rows_b, 4128, "none"))
    in_turn = [
        Tiles(m, n, 128, rows_b, 2048, promotion, pairs)
        for m, n, rows_b in ((2, 1, 128), (8, 8, 128), (2, 1, 256), (8, 8, 256), (2, 1, 64))
        for promotion in ("none", "256B") for pairs in (False, True)
    ]  # fmt: skip
    apart = [
        tiles_at_once(Tiles(m, n, 128, rows_b, 2048, pairs=pairs), gap)
        for m, n, rows_b in ((2, 1, 128), (8, 8, 128), (8, 8, 256)) for gap in (128, 256, 512) for pairs in (False, True)
    ]  # fmt: skip
    return [*map(tiles_at_once, found), *map(tiles_in_turn, in_turn), *apart]

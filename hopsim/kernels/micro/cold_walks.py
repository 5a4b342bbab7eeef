"""Tiles of A and B out of device memory along K, in a ring of stages, each of which a product would take some time for.

CTAs below each other share B, those beside each other A; one thread loads boxes by TMA and counts cycles where a product
would be.  What comes in time costs nothing; how much later than that CTAs are says how data out of device memory are
handed to SMs that share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import Benchmark, Clocked, means_and_latest
from hopsim.kernels.micro.cold import USUAL_LAUNCHES
from hopsim.kernels.micro.tile_walks import TileWalk
from hopsim.kernels.micro.tiles import LOAD
from hopsim.kernels.ptx.text import Param, Reg, address, vector

STEPS: Final = 24
"""Stages of a walk."""
LAPS: Final = 4
"""Figures of a walk."""
DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class ColdWalk:
    """Which tiles there are, and how long each is worked at.

    Args:
        tiles: CTAs, rows of boxes, pitch; their depth is that of the ring.
        pace: cycles of each step's product.
    """

    tiles: TileWalk
    pace: int

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        return f"cold_walk_{self.tiles.shape}_p{self.tiles.pitch_bytes}_{self.pace}c"


def walk(one: ColdWalk) -> Benchmark:
    """Each figure is from the first request until so many stages have come and been worked at."""
    tiles = one.tiles
    slots = DEPTH * tiles.stage_bytes
    c = Clocked(one.name, [Param("a", ".b8", 128), Param("b", ".b8", 128)], [".reqntid 32"])
    c.own_row(LAPS)
    maps: list[Reg] = []
    for operand in ("a", "b"):
        place = c.address_of(operand, f"{operand}_map")
        c.k.emit("prefetch.tensormap", address(place), guard=c.first)
        maps.append(place)
    row_a, row_b = tiles.first_rows(c)
    barriers = [address(c.shared, slots + 8 * slot) for slot in range(DEPTH)]
    c.init_barriers(barriers)
    done = c.label_and_leave_but_first()
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def issue(step: int) -> None:
        slot = step % DEPTH
        barrier, to = barriers[slot], slot * tiles.stage_bytes
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, tiles.stage_bytes)
        for place, row, start in (
            (maps[0], row_a, to),
            (maps[1], row_b, to + tiles.rows_a * ROW_BYTES),
        ):
            at = f"[{place}, {vector((BOX_K * step, row))}]"
            c.k.emit(LOAD, address(c.shared, start), at, barrier)

    before = c.clock()
    for step in range(DEPTH):
        issue(step)
    laps: list[Reg] = []
    now, until, early = c.k.reg(".b64", "now"), c.k.reg(".b64", "until"), c.k.reg(".pred", "early")
    for step in range(STEPS):
        c.wait_parity(barriers[step % DEPTH], parity)
        if step % DEPTH == DEPTH - 1:
            c.k.emit("xor.b32", parity, parity, 1)
        if one.pace:
            c.k.emit("mov.u64", until, "%clock64")
            c.k.emit("add.u64", until, until, one.pace)
            spin = c.k.label("$product")
            c.k.place(spin)
            c.k.emit("mov.u64", now, "%clock64")
            c.k.emit("setp.lt.u64", early, now, until)
            c.k.emit("bra", spin, guard=early)
        if step + DEPTH < STEPS:
            issue(step + DEPTH)
        if (step + 1) % (STEPS // LAPS) == 0:
            laps.append(c.clock())
    c.store_since(before, [f"step {lap * STEPS // LAPS}" for lap in range(1, LAPS + 1)], laps)
    c.k.place(done)

    return c.benchmark(
        f"{STEPS} stages of tiles out of device memory, {tiles.along_m} x {tiles.along_n} CTAs, boxes of {tiles.rows_a} and "
        f"{tiles.rows_b} rows {tiles.pitch_bytes} bytes apart, {DEPTH} in flight, {one.pace} cycles of work at each",
        grid=tiles.ctas, rows=tiles.ctas, summary=means_and_latest, shared_bytes=slots + 64,
        arguments=tiles.maps, is_cold=True, mean_of=USUAL_LAUNCHES,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found: list[ColdWalk] = []
    for rows_a, rows_b, paces in (
        (64, 64, (0, 128)), (64, 128, (0, 256)), (128, 128, (0, 512)), (64, 256, (0, 512)), (128, 256, (0, 1024)),
    ):  # fmt: skip
        for pitch in (4096, 4128, 4112):
            tiles = TileWalk(12, 11, rows_a, rows_b, DEPTH, pitch)
            found += [ColdWalk(tiles, pace) for pace in paces]
    return [walk(one) for one in found]

"""Tiles of A and B along K that are worked at, one or two CTAs on an SM: by wgmma or mma.sync, with arithmetic besides.

CTAs below each other share B, those beside each other A.  Tiles are copied by `cp.async` of all warps, loaded by TMA of one
thread when all warps are through with a stage, or not at all.  What the CTAs that an SM is given first gain on those that it
is given later is what these are for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Table
from hopsim.kernels.micro.products import MMA
from hopsim.kernels.micro.tile_walks import COPY_BYTES, LANES, STEPS, TileWalk
from hopsim.kernels.micro.tiles import LOAD
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.layout.descriptor import MatrixDescriptor
from hopsim.layout.swizzle import Swizzle

LAPS: Final = 4
"""Figures of a walk."""
WARPGROUP_WARPS: Final = 4
ATOM_ROWS: Final = 64
INSTRUCTIONS: Final = 4
"""Along K, of a stage."""
TILE: Final = MatrixDescriptor(0, 16, 1024, 0, Swizzle.B128)
BARRIER_BYTES: Final = 64
CHAINS: Final = 8
PITCHES: Final = (4096, 4128, 4160)
"""Bytes from row to row: whole lines, and one and two sectors more."""


@dataclass(frozen=True, slots=True)
class ProductWalk:
    """Which tiles there are, and what is done with each.

    Args:
        tiles: CTAs, rows of A and B; their depth is that of the ring, of which all but one are on their way.
        how: "copies", "tma" or "alone".
        work: "wgmma", "mma" or "nothing".
        warps: of a CTA.
        sums: integer instructions of each thread besides, at each stage of wgmma.
        source: of the tiles: "cold" (device memory), "before" (L2, since an earlier launch) or "again" (L2, since earlier
            in the launch).
    """

    tiles: TileWalk
    how: str
    work: str
    warps: int
    sums: int = 0
    source: str = "cold"

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        source = "" if self.how == "alone" else f"_{self.source}"
        sums = f"_{self.sums}i" if self.sums else ""
        return f"product_walk{source}_{self.how}_{self.work}{sums}_w{self.warps}_{self.tiles.shape}{self.tiles.pitch}"


def by_age(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean of each figure over the CTAs that are the first of an SM, and over the others."""
    found: dict[str, float] = {}
    for age, rows in (("first CTA", table[:SMS]), ("later CTA", table[SMS:])):
        for label, column in zip(labels, rows.astype(float).T, strict=True):
            if len(column):
                found[f"{label}, {age}"] = round(float(column.mean()), 2)
    return found


class _Walk:
    """Writes what all walks have: the work at a stage, laps, and what they leave.

    Args:
        one: which.
        parameters: of the kernel.
    """

    def __init__(self, one: ProductWalk, parameters: Sequence[Param] = ()) -> None:
        self.one = one
        tiles = one.tiles
        self.slots = tiles.depth * tiles.stage_bytes
        self.c = c = Clocked(one.name, parameters, [f".reqntid {32 * one.warps}"])
        c.own_row(LAPS)
        self.sums: list[list[Reg]] = []
        self.chains: list[Reg] = []
        self.filled = c.k.let(".b32", "filled", "mov.u32", 0)
        self.emptied = c.k.let(".b32", "emptied", "mov.u32", 0)
        if one.work == "wgmma":
            self._prepare_wgmma()
        elif one.work == "mma":
            self._prepare_mma()
        if one.sums:
            self.chains = [c.k.let(".b32", "chain", "add.u32", c.thread, n) for n in range(CHAINS)]
            self.factor = c.k.let(".b32", "factor", "mov.u32", "%nctaid.x")
        for registers in self.sums:
            for register in registers:
                c.k.emit("mov.b32", register, 0)

    def _prepare_wgmma(self) -> None:
        """Each warpgroup has its share of the rows of A, and all of B."""
        c, tiles = self.c, self.one.tiles
        atoms = tiles.rows_a // ATOM_ROWS // (self.one.warps // WARPGROUP_WARPS)
        self.sums = [c.k.regs(".b32", "acc", tiles.rows_b // 2) for _ in range(atoms)]
        units = c.k.let(".b32", "units", "shr.u32", c.shared, 4)
        self.all_b = c.k.let(".b64", "all_b", "cvt.u64.u32", units)
        warpgroup = c.k.let(".b32", "warpgroup", "shr.u32", c.thread, 7)
        wide = c.k.let(".b64", "wide", "cvt.u64.u32", warpgroup)
        rows_units = atoms * ATOM_ROWS * ROW_BYTES // 16
        self.own_a = c.k.let(".b64", "own_a", "mad.lo.u64", wide, rows_units, self.all_b)
        self.yes = c.k.let(".pred", "yes", "setp.eq.u32", units, units)

    def _prepare_mma(self) -> None:
        """Each warp has all rows of A, as 16 bytes of 16 rows at a time, and its share of B."""
        c, tiles = self.c, self.one.tiles
        self.down = tiles.rows_a // 32
        self.across = tiles.rows_b * tiles.rows_a // (16 * 8 * self.one.warps * self.down)
        self.sums = [c.k.regs(".b32", "acc", 4) for _ in range(self.down * self.across)]
        lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
        row = c.k.let(".b32", "row", "and.b32", lane, 15)
        chunk = c.k.let(".b32", "chunk", "and.b32", lane, 7)
        half = c.k.let(".b32", "half", "shr.u32", lane, 4)
        c.k.emit("xor.b32", chunk, chunk, half)
        self.at = c.k.let(".b32", "at", "mad.lo.u32", row, ROW_BYTES, c.shared)
        c.k.emit("mad.lo.u32", self.at, chunk, 16, self.at)

    def work(self) -> None:
        """Work at the stage that is to be emptied."""
        if self.one.work == "wgmma":
            self._multiply_groups()
        elif self.one.work == "mma":
            self._multiply_warps()

    def _multiply_groups(self) -> None:
        c, tiles = self.c, self.one.tiles
        slot = c.k.let(".b32", "slot", "shr.u32", self.emptied, 4)
        units = c.k.let(".b64", "slot_units", "cvt.u64.u32", slot)
        own_a = c.k.let(".b64", "stage_a", "add.u64", self.own_a, units)
        all_b = c.k.let(".b64", "stage_b", "add.u64", self.all_b, units)
        self._compute()
        c.k.emit("wgmma.fence.sync.aligned")
        for atom, sums in enumerate(self.sums):
            for k in range(INSTRUCTIONS):
                a = replace(TILE, start_addr=atom * ATOM_ROWS * ROW_BYTES + 32 * k).encode()
                b = replace(TILE, start_addr=tiles.rows_a * ROW_BYTES + 32 * k).encode()
                c.k.emit(
                    f"wgmma.mma_async.sync.aligned.m64n{tiles.rows_b}k16.f32.bf16.bf16", vector(sums),
                    c.k.let(".b64", "a", "add.u64", own_a, f"{a:#x}"),
                    c.k.let(".b64", "b", "add.u64", all_b, f"{b:#x}"), self.yes, 1, 1, 0, 0,
                )  # fmt: skip
                if k == 0:
                    self._compute()
        c.k.emit("wgmma.commit_group.sync.aligned")
        self._compute()
        c.k.emit("wgmma.wait_group.sync.aligned", 1)

    def _compute(self) -> None:
        """Write a third of the integer instructions: two products for each maximum."""
        for n in range(self.one.sums // 3):
            chain, other = self.chains[n % CHAINS], self.chains[(n + 3) % CHAINS]
            if n % 3:
                self.c.k.emit("mad.lo.s32", chain, chain, self.factor, self.factor)
            else:
                self.c.k.emit("max.s32", chain, chain, other)

    def _multiply_warps(self) -> None:
        c = self.c
        base = c.k.let(".b32", "base", "add.u32", self.at, self.emptied)

        def read(number: int, k: int) -> list[Reg]:
            place = c.k.let(".b32", "place", "xor.b32", base, 32 * k)
            return c.matrices(address(place, 16 * ROW_BYTES * number))

        for k in range(INSTRUCTIONS):
            a = [read(index, k) for index in range(self.down)]
            pairs = [read(self.down + index, k) for index in range(self.across // 2)]
            b = [half for four in pairs for half in (four[:2], four[2:])]
            sums = iter(self.sums)
            for of_a in a:
                for of_b in b:
                    d = vector(next(sums))
                    c.k.emit(MMA["m16n8k16 bf16"], d, vector(of_a), vector(of_b), d)

    def around(self, slot: Reg) -> None:
        """Move to the next stage of the ring."""
        c = self.c
        c.k.emit("add.u32", slot, slot, self.one.tiles.stage_bytes)
        over = c.k.let(".pred", "over", "setp.ge.u32", slot, self.slots)
        c.k.emit("selp.b32", slot, 0, slot, over)

    def walk(self, step: Callable[[], None], **launch: Any) -> Benchmark:
        """Write the walk as laps of `step`, and finish."""
        c, one = self.c, self.one
        c.k.emit("bar.sync", 0)
        before = c.clock()
        laps: list[Reg] = []
        left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
        for _ in range(LAPS):
            c.k.emit("mov.u32", left, STEPS // LAPS)
            with c.k.loop(left, more, "$walk"):
                # As compilers leave loops that have numbers of steps which they do not know.
                c.k.emit('.pragma "nounroll"')
                step()
            laps.append(c.clock())
        if one.work == "wgmma":
            c.k.emit("wgmma.wait_group.sync.aligned", 0)
        c.store_since(before, [f"step {lap * STEPS // LAPS}" for lap in range(1, LAPS + 1)], laps)
        c.keep_all(
            [register for registers in (*self.sums, self.chains) for register in registers],
            laps[-1],
        )
        tiles = one.tiles
        apart = f" {tiles.pitch_bytes} bytes apart" if tiles.pitch else ""
        return c.benchmark(
            f"tiles along K, {one.how}, {one.source}, {one.work} and {one.sums} integer instructions, {tiles.along_m} x "
            f"{tiles.along_n} CTAs of {one.warps} warps, {tiles.rows_a} and {tiles.rows_b} rows{apart}, "
            f"{tiles.depth} stages",
            grid=tiles.ctas, block=32 * one.warps, rows=tiles.ctas, summary=by_age, mean_of=5,
            shared_bytes=self.slots + BARRIER_BYTES, is_cold=one.source == "cold" and one.how != "alone", **launch,
        )  # fmt: skip


def alone(one: ProductWalk) -> Benchmark:
    """Work without loads."""
    w = _Walk(one)

    def step() -> None:
        w.c.k.emit("bar.sync", 0)
        w.work()
        w.around(w.emptied)

    return w.walk(step)


def copies(one: ProductWalk) -> Benchmark:
    """`cp.async` by all warps, as Triton's kernels with pointers do it."""
    w = _Walk(one, [Param("a", ".u64"), Param("b", ".u64")])
    c, tiles = w.c, one.tiles
    rows_at_once = 32 * one.warps // LANES
    chunk = c.k.let(".b32", "chunk", "and.b32", c.thread, LANES - 1)
    own = c.k.let(".b32", "own_row", "shr.u32", c.thread, LANES.bit_length() - 1)
    sources: list[Reg] = []
    counts = (tiles.rows_a, tiles.rows_b)
    for operand, row, count in zip("ab", tiles.first_rows(c), counts, strict=True):
        base = c.load(operand, ".b64", "ld.param.u64")
        c.k.emit("mad.wide.u32", base, chunk, COPY_BYTES, base)
        c.k.emit("add.u32", row, row, own)
        for offset in range(0, count, rows_at_once):
            at = c.k.let(".b32", "at", "add.u32", row, offset)
            sources.append(c.k.let(".b64", "source", "mad.wide.u32", at, tiles.pitch_bytes, base))
    row7 = c.k.let(".b32", "row7", "and.b32", own, 7)
    c.k.emit("xor.b32", chunk, chunk, row7)
    to = c.k.let(".b32", "to", "mad.lo.u32", own, ROW_BYTES, c.shared)
    c.k.emit("mad.lo.u32", to, chunk, COPY_BYTES, to)

    def stage(guard: Reg | None = None) -> None:
        place = c.k.let(".b32", "target", "add.u32", to, w.filled)
        for index, source in enumerate(sources):
            target = address(place, index * rows_at_once * ROW_BYTES)
            c.k.emit("cp.async.cg.shared.global", target, address(source), COPY_BYTES, guard=guard)
            c.k.emit("add.u64", source, source, ROW_BYTES)
        c.k.emit("cp.async.commit_group")
        w.around(w.filled)

    for _ in range(tiles.depth - 1):
        stage()
    to_come = c.k.let(".b32", "to_come", "mov.u32", STEPS - tiles.depth + 1)

    def step() -> None:
        c.k.emit("cp.async.wait_group", tiles.depth - 2)
        c.k.emit("bar.sync", 0)
        w.work()
        w.around(w.emptied)
        if one.work == "wgmma":
            # The other warps may still work at the stage that is filled next.
            c.k.emit("bar.sync", 0)
        c.k.emit("sub.u32", to_come, to_come, 1)
        stage(c.k.let(".pred", "comes", "setp.ge.s32", to_come, 0))

    def arrays(gpu: Any) -> list[Any]:
        return list(tiles.arrays(gpu))

    return w.walk(step, arguments=arrays)


def boxes(one: ProductWalk) -> Benchmark:
    """TMA loads by one thread, when all warps are through with a stage."""
    w = _Walk(one, [Param("a", ".b8", 128), Param("b", ".b8", 128)])
    c, tiles = w.c, one.tiles
    maps = [c.address_of(operand, f"{operand}_map") for operand in "ab"]
    row_a, row_b = tiles.first_rows(c)
    barriers = [address(c.shared, w.slots + 8 * slot) for slot in range(tiles.depth)]
    c.init_barriers(barriers)
    full = c.k.let(".b32", "full", "add.u32", c.shared, w.slots)
    end = c.k.let(".b32", "end", "add.u32", full, 8 * tiles.depth)
    fills, waits = (
        c.k.let(".b32", "fills", "mov.u32", full),
        c.k.let(".b32", "waits", "mov.u32", full),
    )
    turn, k = c.k.let(".b32", "turn", "mov.u32", 0), c.k.let(".b32", "at_k", "mov.u32", 0)

    def next_barrier(place: Reg) -> Reg:
        c.k.emit("add.u32", place, place, 8)
        over = c.k.let(".pred", "over", "setp.ge.u32", place, end)
        c.k.emit("selp.b32", place, full, place, over)
        return over

    def stage(guard: Reg) -> None:
        barrier = address(fills)
        c.k.emit(
            "mbarrier.arrive.expect_tx.shared::cta.b64",
            "_",
            barrier,
            tiles.stage_bytes,
            guard=guard,
        )
        to = c.k.let(".b32", "target", "add.u32", c.shared, w.filled)
        c.k.emit(LOAD, address(to), f"[{maps[0]}, {vector((k, row_a))}]", barrier, guard=guard)
        to_b = address(to, tiles.rows_a * ROW_BYTES)
        c.k.emit(LOAD, to_b, f"[{maps[1]}, {vector((k, row_b))}]", barrier, guard=guard)
        c.k.emit("add.u32", k, k, BOX_K)
        w.around(w.filled)
        next_barrier(fills)

    c.k.emit("bar.sync", 0)
    if one.source == "again":
        _load_all(w, barriers, turn, lambda: stage(c.first), k)
    for _ in range(tiles.depth - 1):
        stage(c.first)
    to_come = c.k.let(".b32", "to_come", "mov.u32", STEPS - tiles.depth + 1)

    def step() -> None:
        c.wait_parity(address(waits), turn)
        w.work()
        w.around(w.emptied)
        flip = c.k.let(".b32", "flip", "selp.b32", 1, 0, next_barrier(waits))
        c.k.emit("xor.b32", turn, turn, flip)
        c.k.emit("bar.sync", 0)
        c.k.emit("sub.u32", to_come, to_come, 1)
        comes = c.k.let(".pred", "comes", "setp.ge.s32", to_come, 0)
        c.k.emit("and.pred", comes, comes, c.first)
        stage(comes)

    return w.walk(step, arguments=tiles.maps)


def _load_all(
    w: _Walk, barriers: Sequence[str], turn: Reg, stage: Callable[[], None], k: Reg
) -> None:
    """Load all tiles, but for the last ones that do not fill the ring, one after the other."""
    c, depth = w.c, w.one.tiles.depth
    rounds = STEPS // depth
    left, more = c.k.let(".b32", "rounds", "mov.u32", rounds), c.k.reg(".pred", "more")
    with c.k.loop(left, more, "$load"):
        for barrier in barriers:
            stage()
            c.wait_parity(barrier, turn)
        c.k.emit("xor.b32", turn, turn, 1)
        c.k.emit("bar.sync", 0)
    c.k.emit("mov.u32", k, 0)


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    one_each, two_each = (TileWalk(12, along_n, 128, 128, 3) for along_n in (11, 22))
    found = [
        ProductWalk(tiles, how, work, warps)
        for tiles in (one_each, two_each)
        for how in ("copies", "tma")
        for work in ("nothing", "wgmma", "mma")
        for warps in (4, 8)
    ]
    for sums in (24, 48, 96):
        found += [ProductWalk(tiles, "copies", "wgmma", 8, sums) for tiles in (one_each, two_each)]
    for tiles in (one_each, two_each):
        found += [ProductWalk(tiles, "alone", "wgmma", 8, sums) for sums in (0, 24, 48, 96)]
        found += [ProductWalk(tiles, "alone", "mma", warps) for warps in (4, 8)]
    for source in ("before", "again"):
        found += [
            ProductWalk(tiles, "tma", "nothing", 8, source=source) for tiles in (one_each, two_each)
        ]
    # What lines that rows do not begin at cost an SM, beside matrices that its warps load.
    for pitch_bytes in PITCHES:
        tiles = TileWalk(1, 1, 128, 128, 3, pitch_bytes)
        found += [
            ProductWalk(tiles, "copies", work, 4, source="before") for work in ("nothing", "mma")
        ]
    make = {"copies": copies, "tma": boxes, "alone": alone}
    return [make[one.how](one) for one in found]

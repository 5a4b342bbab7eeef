"""Walks around tiles out of L2 by all SMs at once, without an end: what each SM gets while all others load too.

One thread of each CTA, of which an SM has up to three, loads boxes of A and B by TMA, a stage at a time and some stages
ahead, around and around.  When L2 has all of it and all CTAs have met, each counts the stages that come in the same time.
CTAs below each other share B, those beside each other A; or each has boxes of its own, or as many neighbours the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Summary, Table
from hopsim.kernels.micro.sharing import who
from hopsim.kernels.micro.tile_walks import TileShape
from hopsim.kernels.micro.tiles import LOAD, first_rows
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

COUNTED_CYCLES: Final = 24_000
LAUNCHES: Final = 5
LABELS: Final = ("stages", "cycles", "smid")


@dataclass(frozen=True, slots=True)
class SteadyWalk(TileShape):
    """Which boxes each CTA loads; no rows of B: A alone.

    Args:
        steps: stages around.
        sharing: CTAs below each other that read the same of A.
        skew_cycles: by which every second CTA begins later.
    """

    steps: int = 32
    sharing: int = 1
    skew_cycles: int = 0

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        if self.rows_b:
            return f"steady_{self.shape}"
        which = who(self.ctas, self.sharing)
        skew = f"_skew{self.skew_cycles}" if self.skew_cycles else ""
        return f"steady_{which}_{self.rows_a}r_d{self.depth}{skew}"

    @property
    def what(self) -> str:
        """Describe it."""
        late = f", every second one {self.skew_cycles} cycles late" if self.skew_cycles else ""
        same = f", {self.sharing} read the same" if self.sharing > 1 else ""
        rows = f"{self.rows_a} and {self.rows_b}" if self.rows_b else f"{self.rows_a}"
        return (
            f"TMA loads out of L2 without an end, {self.along_m} x {self.along_n} CTAs, {rows} rows, "
            f"{self.depth} stages in flight{same}{late}"
        )

    def arguments(self, gpu: Any) -> list[Any]:
        """Make tensor maps of A and B, and the count of CTAs that have come."""
        made: list[Any] = []
        for rows, count in (
            (self.rows_a, self.along_m // self.sharing),
            (self.rows_b, self.along_n),
        ):
            if rows:
                array = gpu.array(np.zeros((rows * count, self.steps * BOX_K), np.float16))
                made.append(
                    TensorMap(array, box=(BOX_K, rows), swizzle="128B", l2_promotion="256B")
                )
        return [*made, gpu.array(np.zeros(1, np.uint32))]


def rates_of_sms(stage_bytes: int) -> Summary:
    """Return what makes bytes a cycle of a table: of all SMs, and of those that get least and most."""

    def summary(table: Table, labels: Sequence[str]) -> dict[str, float]:
        stages, cycles, smid = (table[:, labels.index(label)].astype(np.int64) for label in LABELS)
        rates = np.bincount(smid, stages * stage_bytes / cycles, minlength=SMS)
        rates = rates[rates > 0]
        figures = {"bytes a clock": rates.sum()}
        for share in (10, 90):
            figures[f"bytes a clock of an SM, {share} of 100 get less"] = np.percentile(
                rates, share
            )
        return {name: round(float(value), 2) for name, value in figures.items()}

    return summary


def benchmark(one: SteadyWalk) -> Benchmark:
    """Write the kernel."""
    names = ["a", "b"][: 1 + bool(one.rows_b)]
    params = [Param(name, ".b8", 128) for name in names]
    c = Clocked(one.name, [*params, Param("arrived", ".u64")], [".reqntid 32"])
    c.own_row(len(LABELS))
    maps = [c.address_of(name, f"{name}_map") for name in names]
    rows = [one.rows_a, one.rows_b][: len(names)]
    places = list(first_rows(c, one.along_m, one.rows_a, max(1, one.rows_b)))
    if one.sharing > 1:
        c.k.emit("div.u32", places[0], places[0], one.rows_a * one.sharing)
        c.k.emit("mul.lo.u32", places[0], places[0], one.rows_a)
    barriers = [
        address(c.shared, one.depth * one.stage_bytes + 8 * slot) for slot in range(one.depth)
    ]
    c.init_barriers(barriers)
    done = c.label_and_leave_but_first()
    k = c.k.let(".b32", "at_k", "mov.u32", 0)
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def issue(slot: int) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barriers[slot], one.stage_bytes)
        to = slot * one.stage_bytes
        for place, row, count in zip(maps, places, rows, strict=False):
            c.k.emit(LOAD, address(c.shared, to), f"[{place}, {vector((k, row))}]", barriers[slot])
            to += count * ROW_BYTES
        around = c.k.reg(".pred", "around")
        c.k.emit("add.u32", k, k, BOX_K)
        c.k.emit("setp.eq.u32", around, k, one.steps * BOX_K)
        c.k.emit("selp.b32", k, 0, k, around)

    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    # The first time out of device memory, the second time into the nearer half of L2.
    c.walk_ring(barriers, parity, -(-2 * one.steps // one.depth), issue, left, more)
    meet(c, one.ctas)
    if one.skew_cycles:
        cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
        odd = c.k.let(".b32", "odd", "and.b32", cta, 1)
        second = c.k.let(".pred", "second", "setp.ne.u32", odd, 0)
        on_time = c.k.label("$on_time")
        c.k.emit("bra", on_time, unless=second)
        c.wait_until(c.clock(), one.skew_cycles)
        c.k.place(on_time)
    stages, cycles = _count(c, one.depth, barriers, parity, issue)
    c.store(LABELS[0], c.k.let(".b64", "wide", "cvt.u64.u32", stages))
    c.store(LABELS[1], cycles)
    sm = c.k.let(".b32", "sm", "mov.u32", "%smid")
    c.store(LABELS[2], c.k.let(".b64", "wide", "cvt.u64.u32", sm))
    c.k.place(done)
    return c.benchmark(
        one.what, grid=one.ctas, block=32, rows=one.ctas, summary=rates_of_sms(one.stage_bytes),
        shared_bytes=one.depth * one.stage_bytes + 64, arguments=one.arguments, mean_of=LAUNCHES,
    )  # fmt: skip


def _count(
    c: Clocked, depth: int, barriers: Sequence[str], parity: Reg, issue: Callable[[int], None]
) -> tuple[Reg, Reg]:
    """Fill the ring again and again for some time; return the stages that came until then and the cycles."""
    stages = c.k.let(".b32", "stages", "mov.u32", 0)
    passed, early = c.k.reg(".b64", "passed"), c.k.reg(".pred", "early")
    begin = c.clock()
    loop = c.k.label("$around")
    for slot in range(depth):
        issue(slot)
    c.k.place(loop)
    for slot in range(depth):
        c.wait_parity(barriers[slot], parity)
        issue(slot)
    c.k.emit("add.u32", stages, stages, depth)
    c.k.emit("xor.b32", parity, parity, 1)
    c.k.emit("mov.u64", passed, "%clock64")
    c.k.emit("sub.u64", passed, passed, begin)
    c.k.emit("setp.lt.u64", early, passed, COUNTED_CYCLES)
    c.k.emit("bra", loop, guard=early)
    for slot in range(depth):
        c.wait_parity(barriers[slot], parity)
    c.k.emit("xor.b32", parity, parity, 1)
    return stages, passed


def meet(c: Clocked, ctas: int) -> None:
    """Wait for all CTAs of the grid, in each launch anew; one thread of each does."""
    place = c.load("arrived", ".b64", "ld.param.u64")
    count = c.k.let(".b32", "count", "atom.global.add.u32", address(place), 1)
    wanted = c.k.let(".b32", "wanted", "div.u32", count, ctas)
    c.k.emit("add.u32", wanted, wanted, 1)
    c.k.emit("mul.lo.u32", wanted, wanted, ctas)
    loop, early = c.k.label("$meet"), c.k.reg(".pred", "early")
    c.k.place(loop)
    c.k.emit("ld.volatile.global.u32", count, address(place))
    c.k.emit("setp.lt.u32", early, count, wanted)
    c.k.emit("bra", loop, guard=early)


def meet_with_all(c: Clocked, ctas: int) -> None:
    """Let the first thread wait for all CTAs of the grid, and the others for it."""
    met = c.k.label("$met")
    c.k.emit("bra", met, unless=c.first)
    meet(c, ctas)
    c.k.place(met)
    c.k.emit("bar.sync", 0)


def shapes() -> list[SteadyWalk]:
    """Return what is measured: one CTA an SM with boxes of its own, or tiles; then two and three."""
    found = [
        SteadyWalk(SMS, 1, rows, 0, depth, steps=8)
        for rows, depth in ((64, 1), (64, 2), (64, 4), (128, 2), (128, 4), (128, 8))
    ]
    found += [SteadyWalk(SMS, 1, 128, 0, 4, 8, 2, skew) for skew in (0, 20, 50, 100, 200, 400)]
    found += [
        SteadyWalk(12, 11, *rows, depth)
        for rows in ((64, 64), (64, 128), (128, 128), (128, 256)) for depth in (1, 2, 4)
    ]  # fmt: skip
    # One SM alone, and all that read the same: what there is to wait for besides L2.
    found += [SteadyWalk(1, 1, rows, 0, depth, 8) for rows in (64, 128) for depth in (1, 2, 4)]
    found += [
        SteadyWalk(SMS, 1, rows, 0, depth, 8, sharing)
        for sharing in (2, SMS) for rows in (64, 128) for depth in (1, 2, 4)
        if (sharing, rows, depth) != (2, 128, 4)
    ]  # fmt: skip
    # Two and three CTAs an SM.
    found += [SteadyWalk(22, 12, *rows, depth) for rows, depth in (((64, 64), 6), ((64, 128), 4))]
    found += [SteadyWalk(12, 22, 64, 64, depth) for depth in (2, 4, 6)]
    found += [
        SteadyWalk(12, 22, *rows, depth) for rows in ((64, 128), (128, 128)) for depth in (2, 3)
    ]
    found += [SteadyWalk(22, 18, 64, 64, depth) for depth in (2, 4)]
    return found


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [benchmark(one) for one in shapes()]

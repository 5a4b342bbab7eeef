"""Boxes of TMA, or rows by `cp.async`, that some ask for at a fixed pace: who shares what he asks for, by how late.

The SMs of a TPC, or the CTAs of an SM, ask for the same rows out of L2, 64 of them each time, and the later ones some
cycles after the first.  All SMs do so, of rows of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.steady_walks import meet, meet_with_all
from hopsim.kernels.micro.streams import KIB
from hopsim.kernels.micro.tile_walks import COPY_BYTES, LANES
from hopsim.kernels.micro.tiles import LOAD
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

ROWS: Final = 64
"""Of a box."""
BOX_BYTES: Final = ROWS * ROW_BYTES
SLOTS: Final = 4
BOXES: Final = 128
WARM_ROUNDS: Final = 3
"""Of the slots, before those that are timed: a row has two rounds, and the nearer half of L2 has to have it."""
BEFORE_CYCLES: Final = 3000
"""From when a CTA knows that all have come until it asks."""
COPY_THREADS: Final = 128
SHARED_BYTES: Final = 220 * KIB
"""Of all CTAs of an SM."""


@dataclass(frozen=True, slots=True)
class Paced:
    """Who asks for what.

    Args:
        how: `tma` or `copies` (cp.async).
        resident: CTAs of an SM that ask for the same (by TMA); 1: the SMs of a TPC do.
        period: cycles from one box to the next.
        late: by which the second SM, or each later CTA, asks later than the one before.
    """

    how: str
    resident: int
    period: int
    late: int

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        who = "tpc" if self.resident == 1 else f"{self.resident}_ctas"
        return f"paced_{self.how}_{who}_every{self.period}_late{self.late}"

    @property
    def what(self) -> str:
        """Describe it."""
        who = "the SMs of a TPC" if self.resident == 1 else f"{self.resident} CTAs of an SM"
        how = "TMA boxes" if self.how == "tma" else "rows by cp.async"
        return (
            f"{how}, {ROWS} rows of 128 bytes out of L2, one every {self.period} cycles, by all SMs; {who} ask for the "
            f"same, {self.late} cycles apart: from the beginning until the last one has come"
        )

    def arguments(self, gpu: Any) -> list[Any]:
        """Make the rows, or their map, the count of CTAs of each SM, and that of all."""
        rows = gpu.array(np.zeros((SMS * ROWS, KIB // 2), np.float16))
        data = rows
        if self.how == "tma":
            data = TensorMap(rows, box=(BOX_K, ROWS), swizzle="128B", l2_promotion="256B")
        return [data, gpu.array(np.zeros(SMS, np.uint32)), gpu.array(np.zeros(1, np.uint32))]


def benchmark(one: Paced) -> Benchmark:
    """Write the kernel."""
    is_tma = one.how == "tma"
    threads = 32 if is_tma else COPY_THREADS
    ctas = SMS * one.resident
    data = Param("map", ".b8", 128) if is_tma else Param("data", ".u64")
    c = Clocked(
        one.name, [data, Param("places", ".u64"), Param("arrived", ".u64")], [f".reqntid {threads}"]
    )
    c.own_row(1)
    group, order = _places(c, one)
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    due = c.k.let(".b64", "due", "mov.u64", 0)

    def begin() -> Reg:
        if is_tma:
            meet(c, ctas)
        else:
            c.k.emit("bar.sync", 0)
            meet_with_all(c, ctas)
        start = c.clock()
        late = c.k.let(".b64", "late", "mul.wide.u32", order, one.late)
        c.k.emit("add.u64", due, start, BEFORE_CYCLES)
        c.k.emit("add.u64", due, due, late)
        return c.k.let(".b64", "since", "mov.u64", due)

    def pace() -> None:
        c.wait_until(due, 0)
        c.k.emit("add.u64", due, due, one.period)

    done = c.label_and_leave_but_first() if is_tma else None
    walk = _boxes if is_tma else _copies
    since = walk(c, group, begin, pace, left, more)
    c.k.emit("sub.u64", since, c.clock(), since)
    c.store("last box", since)
    if done is not None:
        c.k.place(done)
    return c.benchmark(
        one.what, grid=ctas, block=threads, rows=ctas, summary=mean_of_rows,
        shared_bytes=SHARED_BYTES // one.resident // KIB * KIB, arguments=one.arguments, mean_of=5,
    )  # fmt: skip


def _places(c: Clocked, one: Paced) -> tuple[Reg, Reg]:
    """Write whose rows a CTA asks for, and how many ask for them before it."""
    sm = c.k.let(".b32", "sm", "mov.u32", "%smid")
    if one.resident == 1:
        group = c.k.let(".b32", "group", "shr.u32", sm, 1)
        return group, c.k.let(".b32", "order", "and.b32", sm, 1)
    # Only the first thread knows the place, which is the one that loads by TMA.
    assert one.how == "tma", one
    places = c.load("places", ".b64", "ld.param.u64")
    place = c.k.let(".b64", "place", "mad.wide.u32", sm, 4, places)
    order = c.k.let(".b32", "order", "mov.u32", 0)
    c.k.emit("atom.global.add.u32", order, address(place), 1, guard=c.first)
    c.k.emit("rem.u32", order, order, one.resident)
    return sm, order


def _boxes(
    c: Clocked, group: Reg, begin: Callable[[], Reg], pace: Callable[[], None], left: Reg, more: Reg
) -> Reg:
    """Write the walk of TMA; return a register with when it began."""
    place = c.address_of("map", "map")
    row = c.k.let(".b32", "row", "mul.lo.u32", group, ROWS)
    barriers = [address(c.shared, SLOTS * BOX_BYTES + 8 * slot) for slot in range(SLOTS)]
    for barrier in barriers:
        c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1)
    c.k.emit("fence.mbarrier_init.release.cluster")
    k = c.k.let(".b32", "at_k", "mov.u32", 0)
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def issue(slot: int) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barriers[slot], BOX_BYTES)
        target = address(c.shared, slot * BOX_BYTES)
        c.k.emit(LOAD, target, f"[{place}, {vector((k, row))}]", barriers[slot])
        c.k.emit("add.u32", k, k, BOX_K)
        c.k.emit("and.b32", k, k, KIB // 2 - 1)

    def issue_in_time(slot: int) -> None:
        pace()
        issue(slot)

    c.walk_ring(barriers, parity, WARM_ROUNDS, issue, left, more)
    since = begin()
    c.walk_ring(barriers, parity, BOXES // SLOTS, issue_in_time, left, more)
    return since


def _copies(
    c: Clocked, group: Reg, begin: Callable[[], Reg], pace: Callable[[], None], left: Reg, more: Reg
) -> Reg:
    """Write the walk of four warps by `cp.async`, each of which waits for its own; return when it began."""
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    chunk = c.k.let(".b32", "chunk", "and.b32", lane, LANES - 1)
    row = c.k.let(".b32", "row", "shr.u32", lane, LANES.bit_length() - 1)
    rows_of_warp = ROWS * 32 // COPY_THREADS
    c.k.emit("mad.lo.u32", row, warp, rows_of_warp, row)
    to = c.k.let(".b32", "to", "mad.lo.u32", row, ROW_BYTES, c.shared)
    c.k.emit("mad.lo.u32", to, chunk, COPY_BYTES, to)
    c.k.emit("mad.lo.u32", row, group, ROWS, row)
    base = c.load("data", ".b64", "ld.param.u64")
    c.k.emit("mad.wide.u32", base, row, KIB, base)
    c.k.emit("mad.wide.u32", base, chunk, COPY_BYTES, base)
    along = c.k.let(".b32", "along", "mov.u32", 0)
    source = c.k.let(".b64", "source", "mov.u64", base)
    rows_at_once = 32 // LANES

    def issue(slot: int) -> None:
        for part in range(rows_of_warp // rows_at_once):
            target = address(to, slot * BOX_BYTES + part * rows_at_once * ROW_BYTES)
            place = address(source, part * rows_at_once * KIB)
            c.k.emit("cp.async.cg.shared.global", target, place, COPY_BYTES)
        c.k.emit("cp.async.commit_group")
        c.k.emit("add.u32", along, along, ROW_BYTES)
        c.k.emit("and.b32", along, along, KIB - 1)
        c.k.emit("cvt.u64.u32", source, along)
        c.k.emit("add.u64", source, source, base)

    c.k.emit("mov.u32", left, WARM_ROUNDS)
    with c.k.loop(left, more, "$warm"):
        for slot in range(SLOTS):
            issue(slot)
        c.k.emit("cp.async.wait_group", 0)
    since = begin()
    c.k.emit("mov.u32", left, BOXES // SLOTS)
    with c.k.loop(left, more, "$timed"):
        for slot in range(SLOTS):
            c.k.emit("cp.async.wait_group", SLOTS - 1)
            pace()
            issue(slot)
    c.k.emit("cp.async.wait_group", 0)
    return since


def shapes() -> list[Paced]:
    """Return what is measured."""
    found = [
        Paced(how, 1, 512, late) for how in ("tma", "copies") for late in (0, 25, 50, 75, 100, 150)
    ]
    found += [Paced(how, 1, 256, late) for how in ("tma", "copies") for late in (0, 100, 200, 400)]
    found += [Paced("tma", 2, 1024, late) for late in (0, 50, 100, 200)]
    found += [Paced("tma", 2, 512, late) for late in (0, 200, 400)]
    return found


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [benchmark(one) for one in shapes()]

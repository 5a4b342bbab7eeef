"""Stages of `cp.async` out of L2, walk after walk: what one SM alone takes for a stage, and what each does while all copy.

A CTA, one an SM, copies 128 rows of 1 KiB around and around, some rows by 128 bytes a stage, 16 bytes a lane, and some
stages ahead.  All CTAs begin together, when L2 has everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import ROW_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.sharing import who
from hopsim.kernels.micro.steady_walks import LAUNCHES, meet_with_all
from hopsim.kernels.micro.streams import KIB
from hopsim.kernels.micro.tile_walks import COPY_BYTES, LANES
from hopsim.kernels.ptx.text import Param, address

ROWS: Final = 128
STEPS: Final = KIB // ROW_BYTES
"""Stages along a row."""
STAGES: Final = 96
"""That are measured; half as many follow, so that the last SM does not copy alone."""
SLOTS: Final = 8


@dataclass(frozen=True, slots=True)
class Copies:
    """Who copies what.

    Args:
        ctas: how many there are.  sharing: of them, side by side, copy the same.
        rows: of a stage.  depth: stages in flight.
        warps: of a CTA.
    """

    ctas: int
    sharing: int
    rows: int
    depth: int
    warps: int

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        which = who(self.ctas, self.sharing)
        return f"steady_copies_{which}_{self.rows}r_d{self.depth}_w{self.warps}"

    @property
    def what(self) -> str:
        """Describe it."""
        return (
            f"cp.async out of L2, {self.ctas} SMs, {self.sharing} copy the same, stages of {self.rows} rows, "
            f"{self.depth} in flight, {self.warps} warps"
        )

    def arguments(self, gpu: Any) -> list[Any]:
        """Make the rows, and the count of CTAs that have come."""
        parts = -(-self.ctas // self.sharing)
        return [
            gpu.array(np.zeros((ROWS * parts, KIB), np.uint8)),
            gpu.array(np.zeros(1, np.uint32)),
        ]


def benchmark(one: Copies) -> Benchmark:
    """Write the kernel."""
    threads = 32 * one.warps
    rows_at_once = threads // LANES
    stage_bytes = one.rows * ROW_BYTES
    c = Clocked(
        one.name, [Param("data", ".u64"), Param("arrived", ".u64")], [f".reqntid {threads}"]
    )
    c.own_row(1)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    part = c.k.let(".b32", "part", "div.u32", cta, one.sharing)
    chunk = c.k.let(".b32", "chunk", "and.b32", c.thread, LANES - 1)
    row = c.k.let(".b32", "row", "shr.u32", c.thread, LANES.bit_length() - 1)
    c.k.emit("mad.lo.u32", row, part, ROWS, row)
    base = c.load("data", ".b64", "ld.param.u64")
    c.k.emit("mad.wide.u32", base, chunk, COPY_BYTES, base)
    c.k.emit("mad.wide.u32", base, row, KIB, base)
    to = c.k.let(".b32", "to", "mad.lo.u32", c.thread, COPY_BYTES, c.shared)
    stage = c.k.let(".b32", "stage", "mov.u32", 0)

    def copy() -> None:
        step = c.k.let(".b32", "step", "and.b32", stage, STEPS - 1)
        block = c.k.let(".b32", "block", "shr.u32", stage, STEPS.bit_length() - 1)
        c.k.emit("and.b32", block, block, ROWS // one.rows - 1)
        source = c.k.let(".b64", "source", "mad.wide.u32", step, ROW_BYTES, base)
        c.k.emit("mad.wide.u32", source, block, one.rows * KIB, source)
        slot = c.k.let(".b32", "slot", "and.b32", stage, SLOTS - 1)
        c.k.emit("mad.lo.u32", slot, slot, stage_bytes, to)
        for index in range(one.rows // rows_at_once):
            target = address(slot, index * threads * COPY_BYTES)
            place = address(source, index * rows_at_once * KIB)
            c.k.emit("cp.async.cg.shared.global", target, place, COPY_BYTES)
        c.k.emit("cp.async.commit_group")
        c.k.emit("add.u32", stage, stage, 1)

    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")

    def walk(stages: int) -> None:
        c.k.emit("mov.u32", left, stages)
        with c.k.loop(left, more, "$walk"):
            c.k.emit("cp.async.wait_group", one.depth - 1)
            c.k.emit("bar.sync", 0)
            copy()

    for _ in range(one.depth):
        copy()
    # The first time out of device memory, the second time into the nearer half of L2.
    walk(2 * STEPS * ROWS // one.rows)
    c.k.emit("cp.async.wait_all")
    meet_with_all(c, one.ctas)
    for _ in range(one.depth):
        copy()
    c.measure_one("walk", lambda: walk(STAGES))
    walk(STAGES // 2)
    c.k.emit("cp.async.wait_all")
    return c.benchmark(
        one.what, grid=one.ctas, block=threads, rows=one.ctas, summary=mean_of_rows,
        shared_bytes=SLOTS * stage_bytes, arguments=one.arguments, mean_of=LAUNCHES,
        amounts={"walk": float(one.ctas * STAGES * stage_bytes)},
    )  # fmt: skip


def shapes() -> list[Copies]:
    """Return what is measured: one SM alone, then all."""
    shared = [(1, 1), *((SMS, sharing) for sharing in (1, 2, SMS))]
    return [
        Copies(ctas, sharing, rows, depth, warps)
        for rows, warps in ((64, 4), (128, 8)) for depth in (1, 2, 4) for ctas, sharing in shared
    ]  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [benchmark(one) for one in shapes()]

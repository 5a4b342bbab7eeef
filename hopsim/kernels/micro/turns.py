"""Whose turn it is: warps of an SM that all have work for the same unit, and when each of them is through with it.

Each warp, or warpgroup, works in a loop of its own; they meet only before it, and those of different CTAs never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Table
from hopsim.kernels.micro.products import MMA
from hopsim.kernels.ptx.text import Reg, address, vector
from hopsim.layout.descriptor import MatrixDescriptor
from hopsim.layout.swizzle import Swizzle

ROUNDS: Final = 64
WARPS_AT_ONCE: Final = 4
"""Warps that lie on different sub-partitions; of these one is told about."""
SHARED_BYTES: Final = 227 * 1024
KEPT_BYTES: Final = 1024
"""Of shared memory, for each CTA, besides what it asks for."""
OTHER_PLACE_BYTES: Final = 2048
COLUMNS: Final = ("sm", "begin", "half", "end")
WORKS: Final = ("mma", "mma_ldmatrix", "ldmatrix", "fma", "ex2")
PLACES: Final = ((4, 1), (8, 1), (4, 2), (8, 2), (4, 3))
"""Warps of a CTA, CTAs of an SM."""
MANY: Final = ((4, 4), (8, 3), (16, 1))
"""The same, where four warps and more of a sub-partition have work."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Who works at what.

    Args:
        work: of a round.
        warps: of a CTA.
        resident: CTAs that an SM holds at a time.
        waves: of them, one after the other.
    """

    work: str
    warps: int
    resident: int
    waves: int = 1

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        waves = f"_{self.waves}_waves" if self.waves > 1 else ""
        return f"turns_{self.work}_w{self.warps}_{self.resident}_ctas{waves}"


def _products(c: Clocked) -> tuple[Callable[[], None], list[Reg]]:
    """Four wgmma on one accumulator; the group before them is waited for."""
    sums = c.k.regs(".b32", "acc", 64)
    units = c.k.let(".b32", "units", "shr.u32", c.shared, 4)
    base = c.k.let(".b64", "base", "cvt.u64.u32", units)
    tile = MatrixDescriptor(0, 16, 1024, 0, Swizzle.B128).encode()
    operand = c.k.let(".b64", "operand", "add.u64", base, f"{tile:#x}")
    yes = c.k.let(".pred", "yes", "setp.eq.u32", units, units)

    def multiply() -> None:
        c.k.emit("wgmma.fence.sync.aligned")
        for _ in range(4):
            c.k.emit(
                "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", vector(sums), operand, operand, yes, 1, 1, 0, 0,
            )  # fmt: skip
        c.k.emit("wgmma.commit_group.sync.aligned")
        c.k.emit("wgmma.wait_group.sync.aligned", 1)

    return multiply, sums


def _round(c: Clocked, work: str) -> tuple[Callable[[], None], list[Reg]]:
    """Return what writes a round, and the registers that it computes."""
    if work == "wgmma":
        return _products(c)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    at = c.k.let(".b32", "at", "mad.lo.u32", lane, 16, c.shared)

    def read(number: int) -> list[Reg]:
        return c.matrices(address(at, 512 * number))

    def move() -> None:
        # What is read again and again would be read once.
        c.k.emit("xor.b32", at, at, OTHER_PLACE_BYTES)

    if work in ("mma", "mma_ldmatrix"):
        accumulators = [c.k.regs(".b32", "acc", 4) for _ in range(16)]
        held = [read(0), read(1)]

        def multiply() -> None:
            a, b = held
            if work == "mma_ldmatrix":
                move()
                a, b = [read(0), read(1)]
            for one in accumulators:
                c.k.emit(MMA["m16n8k16 bf16"], vector(one), vector(a), vector(b[:2]), vector(one))

        return multiply, [register for one in accumulators for register in one]
    if work == "ldmatrix":
        sums = c.k.regs(".b32", "sum", 4)

        def load() -> None:
            move()
            for number in range(4):
                for total, value in zip(sums, read(number), strict=True):
                    c.k.emit("xor.b32", total, total, value)

        return load, sums
    chains = c.k.regs(".b32", "chain", 8)
    factor = c.k.let(".b32", "factor", "mov.u32", "%nctaid.x")

    def compute() -> None:
        for one in chains if work == "ex2" else 4 * chains:
            if work == "fma":
                c.k.emit("fma.rn.f32", one, one, factor, factor)
            else:
                c.k.emit("ex2.approx.f32", one, one)

    return compute, chains


def turns(one: Turns) -> Benchmark:
    """Write one of them."""
    c = Clocked(one.name, [], [f".reqntid {32 * one.warps}"])
    work, registers = _round(c, one.work)
    for number, register in enumerate(registers):
        # Not all alike, lest ptxas find that they are the same sums.
        c.k.emit("add.u32", register, c.thread, number)
    row = c.k.let(".b32", "row", "mov.u32", "%ctaid.x")
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    c.k.emit("mad.lo.u32", row, row, one.warps, warp)
    c.k.emit("mad.wide.u32", c.results, row, 8 * len(COLUMNS), c.results)
    sm = c.k.let(".b32", "sm", "mov.u32", "%smid")
    figures = [c.k.let(".b64", "sm", "cvt.u64.u32", sm)]
    c.k.emit("bar.sync", 0)
    figures.append(c.clock())
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    for _ in range(2):
        c.k.emit("mov.u32", left, ROUNDS // 2)
        with c.k.loop(left, more, "$turn"):
            work()
        figures.append(c.clock())
    if one.work == "wgmma":
        c.k.emit("wgmma.wait_group.sync.aligned", 0)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    leader = c.k.let(".pred", "leader", "setp.eq.u32", lane, 0)
    for column, figure in enumerate(figures):
        c.k.emit("st.global.u64", address(c.results, 8 * column), figure, guard=leader)
    c.labels += COLUMNS
    c.keep_all(registers, figures[-1])

    def summary(table: Table, labels: Sequence[str]) -> dict[str, float]:
        del labels
        return through(table, one.warps)

    ctas = SMS * one.resident * one.waves
    return c.benchmark(
        f"{one.work}, {one.warps} warps a CTA, {one.resident} CTAs on an SM, {one.waves} times",
        grid=ctas, block=32 * one.warps, rows=ctas * one.warps, mean_of=5,
        summary=summary,
        shared_bytes=(SHARED_BYTES // one.resident - KEPT_BYTES) // 1024 * 1024,
    )  # fmt: skip


def through(table: Table, warps: int) -> dict[str, float]:
    """Return when warps begin and are through, from when the first of the SM begins; the mean of all SMs.

    Args:
        table: a row for each warp: SM, and clocks.
        warps: of a CTA.
    """
    by_sm: dict[int, list[NDArray[np.int64]]] = {}
    for cta in table.astype(np.int64).reshape(-1, warps, len(COLUMNS)):
        by_sm.setdefault(int(cta[0, 0]), []).append(cta)
    found: dict[str, list[int]] = {}
    for ctas in by_sm.values():
        ctas.sort(key=lambda cta: int(cta[:, 1].min()))
        start = int(ctas[0][:, 1].min())
        for number, cta in enumerate(ctas, 1):
            for warp in range(0, warps, WARPS_AT_ONCE):
                for label, clock in zip(COLUMNS[1:], cta[warp, 1:], strict=True):
                    found.setdefault(f"{label}, CTA {number}, warp {warp}", []).append(
                        int(clock) - start
                    )
    return {label: round(float(np.mean(values)), 1) for label, values in found.items()}


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [Turns("wgmma", warps, resident) for warps, resident in (*PLACES, (12, 1))]
    found += [Turns(work, warps, resident) for work in WORKS for warps, resident in PLACES]
    found += [
        Turns("wgmma", warps, resident) for warps, resident in (*MANY, (4, 5), (4, 6), (12, 2))
    ]
    found += [
        Turns(work, warps, resident)
        for work in ("mma", "mma_ldmatrix", "fma", "ex2") for warps, resident in MANY
    ]  # fmt: skip
    found += [Turns(work, 4, 2, 4) for work in ("wgmma", "mma_ldmatrix")]
    return [turns(one) for one in found]

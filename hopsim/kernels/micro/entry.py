"""What a CTA does first: straight code from the entry on, with and without a read of a parameter, and mbarrier.init.

At the entry the clock is read before anything else; code and constants are in no cache of the SM.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hopsim.isa.machine_code import INSTRUCTION_BYTES
from hopsim.kernels.micro.clocked import NEVER, SMS, Benchmark, Clocked, means_and_latest
from hopsim.kernels.ptx.text import Param, address

BLOCK_BYTES: Final = 512
BLOCKS: Final = 8
FAR_BYTES: Final = 1024
"""Of parameters before the one that is read: a line of the constant bank that nothing else needs."""
LAUNCHES: Final = 5


def entry(ctas: int, warps: int = 4, *, reads: bool = False, is_first: bool = False) -> Benchmark:
    """Straight code from the entry on; each figure is from the first instruction until so much of it is done.

    Args:
        reads: whether a parameter is read first.
        is_first: in the first launch of the program; else L2 holds none of it, but nothing else is done to caches.
    """
    name = f"entry_{ctas}_w{warps}" + "_parameter" * reads + "_first" * is_first
    before = [Param("before", ".b8", FAR_BYTES), Param("far", ".u32")]
    c = Clocked(name, before, [f".reqntid {32 * warps}"])
    done = c.k.label("$done")
    clocks = [c.clock()]
    labels: list[str] = []
    if reads:
        far = c.k.let(".b32", "word", "ld.param.u32", "[far]")
        c.k.emit("bra", done, guard=c.k.let(".pred", "never", "setp.eq.u32", far, NEVER))
        clocks.append(c.clock())
        labels.append("parameter")
    one = c.k.let(".f32", "one", "cvt.rn.f32.u32", c.thread)
    sums = [c.k.let(".f32", "sum", "add.f32", one, f"0f3F80000{number}") for number in range(8)]
    for block in range(BLOCKS):
        for number in range(BLOCK_BYTES // INSTRUCTION_BYTES):
            total = sums[number % len(sums)]
            c.k.emit("fma.rn.f32", total, total, one, total)
        clocks.append(c.clock())
        labels.append(f"{(block + 1) * BLOCK_BYTES} bytes")
    c.own_row(len(labels))
    c.store_since(clocks[0], labels, clocks[1:])
    for total in sums:
        c.keep(c.k.let(".b32", "bits", "mov.b32", total))
    c.k.place(done)
    return c.benchmark(
        f"{BLOCKS * BLOCK_BYTES} bytes of straight code from the entry on, {warps} warps on each of {ctas} SMs"
        + (", a parameter first" if reads else "")
        + (", first launch" if is_first else ""),
        grid=ctas, block=32 * warps, rows=ctas, summary=means_and_latest, shared_bytes=200 * 1024,
        arguments=_zeros, is_cold=not is_first, is_first=is_first, mean_of=0 if is_first else LAUNCHES,
    )  # fmt: skip


def inits(count: int, warps: int) -> Benchmark:
    """All warps write the initialisation of some mbarriers by an elected thread, as kernels do, and meet.

    Args:
        count: mbarriers.
    """
    c = Clocked(f"inits_{count}_w{warps}", directives=[f".reqntid {32 * warps}"])
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    uniform = c.k.reg(".b32", "uniform")
    c.k.emit("shfl.sync.idx.b32", uniform, warp, 0, 31, -1)
    elected = c.k.reg(".pred", "elected")
    c.k.emit("elect.sync", f"_|{elected}", -1)
    leader = c.k.let(".pred", "leader", "setp.eq.s32", uniform, 0)
    c.k.emit("and.pred", leader, leader, elected)
    for label in ("first", "again"):
        c.k.emit("bar.sync", 0)
        before = c.clock()
        for number in range(count):
            place = address(c.shared, 8 * number)
            c.k.emit("mbarrier.init.shared::cta.b64", place, 1 + number // 4, guard=leader)
        middle = c.clock()
        c.k.emit("bar.sync", 0)
        after = c.clock()
        c.k.emit("sub.u64", after, after, before)
        c.k.emit("sub.u64", middle, middle, before)
        c.store(f"{label}: initialised", middle)
        c.store(f"{label}: all warps", after)
        for number in range(count):
            place = address(c.shared, 8 * number)
            c.k.emit("mbarrier.inval.shared::cta.b64", place, guard=leader)
    return c.benchmark(
        f"initialisation of {count} mbarriers by a thread of {warps} warps, and their barrier",
        block=32 * warps, shared_bytes=1024,
    )  # fmt: skip


def _zeros(gpu: Any) -> list[Any]:
    del gpu
    return [bytes(FAR_BYTES), np.uint32(0)]


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        entry(ctas, reads=reads, is_first=is_first)
        for ctas in (1, 16, 64, 96, SMS) for reads in (False, True) for is_first in (False, True)
    ]  # fmt: skip
    found += [inits(count, warps) for count in (4, 8, 12) for warps in (1, 4, 8, 12)]
    return found

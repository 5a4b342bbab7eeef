"""What a warp's loads wait for, one after the other, while other warps of its SM load and store.

The first warp follows a chain of one word, which is in L1 (`ld.ca`), in L2 (`ld.cg`) or in shared memory.  The others
work meanwhile, each instruction over eight lines: they load what is in L2 or in device memory, some instructions at a
time, or store to one line after the other.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, Reg, address, vector

CHAINS: Final = {
    "l1": "ld.global.ca.b32", "l2": "ld.global.cg.b32", "shared": "ld.shared.b32"
}  # fmt: skip
STEPS: Final = 96
ROUNDS: Final = {"loads": 160, "cold_loads": 160, "stores": 480, "vector_stores": 480}
AT_ONCE: Final = 4
"""Instructions of a round."""
PART_BYTES: Final = 1 << 20
"""Of a warp."""
PITCH: Final = 8192


def beside(chain: str, work: str, warps: int) -> Benchmark:
    """A chain of one warp beside so many others.

    Args:
        chain: of `CHAINS`.
        work: of `ROUNDS`.
        warps: that do it; 0: the first is alone.
    """
    c = Clocked(
        f"in_order_{chain}" + (f"_{work}_w{warps}" if warps else "_alone"),
        [Param("data", ".u64")], [f".reqntid {32 * (warps + 1)}"],
    )  # fmt: skip
    at = c.load("data", ".b64", "ld.param.u64")
    c.fill_shared(1, 0)
    first = c.k.let(".pred", "leads", "setp.lt.u32", c.thread, 32)
    end, others = c.k.label("$end"), c.k.label("$others")
    place = c.shared if chain == "shared" else at
    kind = ".b32" if chain == "shared" else ".b64"

    def follow(start: Reg) -> Reg:
        word = c.k.let(".b32", "word", CHAINS[chain], address(start))
        if kind == ".b32":
            return c.k.let(".b32", "next", "add.u32", start, word)
        wide = c.k.let(".b64", "wide", "cvt.u64.u32", word)
        return c.k.let(".b64", "next", "add.u64", start, wide)

    last = follow(place)
    c.k.emit("bar.sync", 0)
    c.k.emit("bra", others, unless=first)
    # The others have begun.
    start = c.clock()
    c.wait_until(start, 2000)
    before = c.clock()
    for _ in range(STEPS):
        last = follow(last)
    low = last
    if kind == ".b64":
        low = c.k.let(".b32", "low", "cvt.u32.u64", last)
    c.keep(low)
    after = c.clock()
    c.k.emit("sub.u64", after, after, before)
    c.store(f"{STEPS} loads", after)
    c.k.emit("bra", end)
    c.k.place(others)
    _work(c, at, work)
    c.k.place(end)
    what = f"a chain out of {chain.upper() if chain != 'shared' else 'shared memory'}"
    return c.benchmark(
        what + (f" beside {work.replace('_', ' ')} by {warps} warps" if warps else ""),
        block=32 * (warps + 1), arguments=_data, shared_bytes=2048, is_cold=work == "cold_loads",
    )  # fmt: skip


def _work(c: Clocked, base: Reg, work: str) -> None:
    """Write what the other warps do: rounds of instructions over eight lines each."""
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    row = c.k.let(".b32", "row", "shr.u32", lane, 2)
    column = c.k.let(".b32", "column", "and.b32", lane, 3)
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    at = c.k.let(".b64", "at", "mad.wide.u32", warp, PART_BYTES, base)
    c.k.emit("mad.wide.u32", at, row, PITCH, at)
    width = 16 if work == "vector_stores" else 8
    c.k.emit("mad.wide.u32", at, column, width, at)
    words = c.k.regs(".b32", "word", AT_ONCE)
    for word in words:
        c.k.emit("mov.u32", word, 0)
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    c.k.emit("mov.u32", left, ROUNDS[work])
    # Loads out of L2 come back to the same lines.
    step = 32 * AT_ONCE if work != "loads" else 0
    with c.k.loop(left, more, "$round", nounroll=True):
        for number, word in enumerate(words):
            place = address(at, 32 * number)
            if work == "stores":
                c.k.emit("st.global.b32", place, word)
            elif work == "vector_stores":
                c.k.emit("st.global.v4.b32", place, vector(words))
            else:
                c.k.emit("ld.global.cg.b32", word, place)
        if work.endswith("loads"):
            for word in words:
                c.keep(word)
        c.k.emit("add.u64", at, at, step)


def _data(gpu: Any) -> list[Any]:
    return [gpu.array(np.zeros(10 * PART_BYTES, np.uint8))]


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [beside(chain, "loads", 0) for chain in CHAINS]
    return found + [
        beside(chain, work, warps) for chain in CHAINS for work in ROUNDS for warps in (1, 4, 8)
    ]

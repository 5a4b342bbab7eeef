"""Which lines share a slice of L2: a hit that is asked for behind a miss of its slice waits for it, another does not.

One warp misses a line of a KiB while another loads, 100 cycles later, one that L2 has.  KiB lie in many pages: those whose
home is the other half of L2 hold nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked, Table, zeros
from hopsim.kernels.micro.streams import KIB
from hopsim.kernels.ptx.text import Param, Reg, address

LINE_BYTES: Final = 128
LINES: Final = 8
"""Of a KiB."""
BLOCKS: Final = 64
"""KiB for each line that is hit."""
STEP_BYTES: Final = 37 * KIB
"""From one to the next: other pages, other KiB of them."""
BEHIND_CYCLES: Final = 100
"""From the miss to the hit."""
HELD_CYCLES: Final = 100
"""Hits that take so much longer than the quickest are held."""


def _by_line(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean of the hits of each line, and how many are held."""
    rows = table.astype(np.float64).reshape(-1, BLOCKS)
    least = rows.min()
    found: dict[str, float] = {}
    for label, row in zip(labels[::BLOCKS], rows, strict=True):
        found[label] = round(float(row.mean()), 2)
        found[f"{label}, held"] = int((row > least + HELD_CYCLES).sum())
    return found


def behind(missed: int) -> Benchmark:
    """Hits of each other line of a KiB behind the miss of one.

    Args:
        missed: its number in the KiB.
    """
    c = Clocked(f"slices_behind_{missed}", [Param("data", ".u64")], [".reqntid 64"])
    at = c.load("data", ".b64", "ld.param.u64")
    hits = c.k.let(".pred", "hits", "setp.lt.u32", c.thread, 32)
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    misses, end = c.k.label("$misses"), c.k.label("$end")
    lines = [line for line in range(LINES) if line != missed]

    def load(line: int) -> None:
        word: Reg = c.k.let(".b32", "word", "ld.global.cg.b32", address(at, line * LINE_BYTES))
        c.keep(word)

    c.k.emit("bra", misses, unless=hits)
    for line in lines:
        c.k.emit("mov.u32", left, BLOCKS)
        with c.k.loop(left, more, "$hit"):
            load(line)
            load(line)
            c.k.emit("bar.sync", 0)
            c.wait_until(c.clock(), BEHIND_CYCLES)
            before = c.clock()
            load(line)
            after = c.clock()
            c.k.emit("sub.u64", after, after, before)
            c.k.emit("st.global.u64", address(c.results), after, guard=c.first)
            c.k.emit("add.u64", c.results, c.results, 8)
            c.k.emit("add.u64", at, at, STEP_BYTES)
        c.labels += [f"line {line}"] * BLOCKS
    c.k.emit("bra", end)
    c.k.place(misses)
    c.k.emit("mov.u32", left, len(lines) * BLOCKS)
    with c.k.loop(left, more, "$miss"):
        c.k.emit("bar.sync", 0)
        load(missed)
        c.k.emit("add.u64", at, at, STEP_BYTES)
    c.k.place(end)
    size = (LINES - 1) * BLOCKS * STEP_BYTES + KIB
    return c.benchmark(
        f"hits of lines of a KiB while line {missed} of it is missed", block=64, summary=_by_line,
        arguments=zeros(size), is_cold=True,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [behind(missed) for missed in range(LINES)]

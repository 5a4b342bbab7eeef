"""Fragments of wgmma that threads store to, or load from, a matrix in global memory, without shared memory between.

A warp has 16 rows of 128 columns as an accumulator of `wgmma.m64n128` has them: of each 8 x 8 block a lane has two
neighbours of one row.  Threads store all of them, element by element or in pairs, twice over; or they load each and
wait for it, as an epilogue does that adds C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.ptx.text import Param, Reg, address, vector

COLUMNS: Final = 128
ROWS: Final = 16
"""Of a warp."""
BLOCK: Final = 8
ALONG_N: Final = 11
"""CTAs beside each other."""
TIMES: Final = 2


@dataclass(frozen=True, slots=True)
class Elements:
    """How a thread has its two neighbours of a block.

    Args:
        item_bytes: of an element.
        together: elements of an instruction: 1 or 2.
    """

    item_bytes: int
    together: int

    @property
    def name(self) -> str:
        """As names of microbenchmarks have it."""
        return f"f{8 * self.item_bytes}_" + ("single" if self.together == 1 else "pair")

    @property
    def is_pair_of_words(self) -> bool:
        """Whether an instruction has a vector."""
        return self.item_bytes * self.together == 8

    @property
    def opcode(self) -> str:
        """What follows `ld.global` or `st.global`."""
        size = self.item_bytes * self.together
        return ".v2.b32" if size == 8 else f".b{8 * size}"


KINDS: Final = (Elements(4, 1), Elements(4, 2), Elements(2, 1), Elements(2, 2))


def _place(c: Clocked, kind: Elements) -> tuple[Reg, int]:
    """Write where a thread's first element is; return it and the pitch of the matrix."""
    pitch = ALONG_N * COLUMNS * kind.item_bytes
    at = c.load("data", ".b64", "ld.param.u64")
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    across = c.k.let(".b32", "across", "rem.u32", cta, ALONG_N)
    down = c.k.let(".b32", "down", "div.u32", cta, ALONG_N)
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    warps = c.k.let(".b32", "warps", "mov.u32", "%ntid.x")
    c.k.emit("shr.u32", warps, warps, 5)
    c.k.emit("mad.lo.u32", warp, down, warps, warp)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    row = c.k.let(".b32", "row", "shr.u32", lane, 2)
    c.k.emit("mad.lo.u32", row, warp, ROWS, row)
    column = c.k.let(".b32", "column", "and.b32", lane, 3)
    c.k.emit("mul.lo.u32", column, column, 2 * kind.item_bytes)
    c.k.emit("mad.lo.u32", column, across, COLUMNS * kind.item_bytes, column)
    c.k.emit("mad.wide.u32", at, row, pitch, at)
    wide = c.k.let(".b64", "wide", "cvt.u64.u32", column)
    c.k.emit("add.u64", at, at, wide)
    return at, pitch


def _places(kind: Elements, at: Reg, pitch: int) -> list[str]:
    """Return where the elements of a thread are, in the order of its registers."""
    return [
        address(at, block * BLOCK * kind.item_bytes + lower * BLOCK * pitch + one * kind.item_bytes)
        for block in range(COLUMNS // BLOCK)
        for lower in range(2)
        for one in range(0, 2, kind.together)
    ]


def stores(kind: Elements, warps: int, ctas: int, is_cold: bool = False) -> Benchmark:
    """All elements of each warp, twice, until the last of the CTA is issued."""
    c = Clocked(
        f"fragment_stores_{kind.name}_{ctas}_w{warps}" + ("_cold" if is_cold else ""),
        [Param("data", ".u64")], [f".reqntid {32 * warps}"],
    )  # fmt: skip
    c.own_row(1)
    at, pitch = _place(c, kind)
    values = c.k.regs(".b32", "value", 2)
    for value in values:
        c.k.emit("mov.u32", value, 1)
    half = c.k.let(".b16", "half", "mov.b16", 1)
    item = vector(values) if kind.is_pair_of_words else values[0]
    if kind.opcode == ".b16":
        item = half

    def body() -> None:
        for _ in range(TIMES):
            for place in _places(kind, at, pitch):
                c.k.emit(f"st.global{kind.opcode}", place, item)

    if not is_cold:
        body()
    c.measure("stores", body, whole_cta=True)
    return _benchmark(c, kind, "stored", warps, ctas, is_cold, TIMES)


def loads(kind: Elements, how: str, warps: int, ctas: int, is_cold: bool) -> Benchmark:
    """Each element of each warp, one after the other.

    Args:
        how: `ld.global` as it is, or with `.L2::128B`.
    """
    where = "_cold" if is_cold else ""
    c = Clocked(
        f"fragment_loads_{kind.name}{how.replace('.L2::', '_l2_')}_{ctas}_w{warps}{where}",
        [Param("data", ".u64")], [f".reqntid {32 * warps}"],
    )  # fmt: skip
    c.own_row(1)
    at, pitch = _place(c, kind)
    words = c.k.regs(".b32", "word", 2)

    def body(how: str = how) -> None:
        for place in _places(kind, at, pitch):
            item = vector(words) if kind.is_pair_of_words else words[0]
            c.k.emit(f"ld.global{how}{kind.opcode}", item, place)
            c.keep(words[0])

    if not is_cold:
        # Into L2 alone.
        body(".cg")
    c.measure("loads", body, whole_cta=True)
    return _benchmark(c, kind, "loaded one after the other", warps, ctas, is_cold, 1)


def _benchmark(
    c: Clocked, kind: Elements, done: str, warps: int, ctas: int, is_cold: bool, times: int
) -> Benchmark:
    rows = ROWS * warps * -(-ctas // ALONG_N)
    size = rows * ALONG_N * COLUMNS * kind.item_bytes

    def arguments(gpu: Any) -> list[Any]:
        return [gpu.array(np.zeros(size, np.uint8))]

    each = ROWS * COLUMNS * kind.item_bytes * warps * ctas * times
    return c.benchmark(
        f"fragments {done}: {kind.name}, {ctas} CTAs of {warps} warps" + (", cold" if is_cold else ""),
        grid=ctas, block=32 * warps, rows=ctas, summary=mean_of_rows, arguments=arguments,
        shared_bytes=200 * 1024, is_cold=is_cold, amounts={c.labels[0]: float(each)},
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [stores(kind, warps, ctas) for kind in KINDS for ctas in (1, SMS) for warps in (4, 8)]
    found += [stores(kind, 8, SMS, is_cold=True) for kind in KINDS]
    found += [
        loads(kind, how, 8, ctas, is_cold)
        for kind in (KINDS[0], KINDS[1], KINDS[3])
        for how in ("", ".L2::128B")
        for ctas, is_cold in ((1, True), (SMS, True), (SMS, False))
    ]
    return found

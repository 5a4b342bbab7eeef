"""Atomics of all SMs on few words until the last SM is through, which is what a launch waits for.

The words begin at a KiB of memory, or so many bytes behind one: what lies in it decides which of them have an atomic unit
together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, means_and_latest
from hopsim.kernels.micro.patterns import KIB, THREADS, WORDS, Numbers, own_places, placed
from hopsim.kernels.ptx.text import Param, Reg, address

CHOSEN: Final = ("word", "line", "sectors", "lines", "random_256", "random_4096")
LENGTHS: Final = (1, 8)
LINE: Final = 32
"""Words of one."""
BESIDE: Final = (1, 2, 3, 4, 5, 8)
"""How many lines behind the first the second of two lines lies."""


def _two_lines(threads: Numbers, behind: int) -> Numbers:
    return threads % LINE + threads // 32 % 2 * behind * LINE


CHOICES: Final[dict[str, tuple[str, Callable[[Numbers], Numbers]]]] = {
    **{name: WORDS[name] for name in (*CHOSEN, "random_1m")},
    **{
        f"line_and_{behind}": (
            f"the words of a line or, every second warp, of one {behind} behind it",
            partial(_two_lines, behind=behind),
        )
        for behind in BESIDE
    },
}


def meetings(
    name: str, operation: str, length: int, lanes: int = 32, kind: str = "u32", begin: int = 0
) -> Benchmark:
    """So many atomics of each thread, or of the first lanes of each warp, at words that `patterns` has too.

    Args:
        name: which words.
        operation: `red`, after which a fence waits, or `atom` or `cas`, whose results are waited for.
        length: one after the other, each without waiting.
        lanes: of each warp that do so.
        kind: of value.
        begin: where the words begin, in bytes behind a KiB.
    """
    what, word_of = CHOICES[name]
    of = ("" if lanes == 32 else f"_l{lanes}") + ("" if kind == "u32" else f"_{kind}")
    of += f"_at_{begin}" if begin else ""
    c = Clocked(
        f"meetings_{operation}_{name}{of}_{length}",
        [Param("data", ".u64"), Param("offsets", ".u64")],
    )
    places = own_places(c, 1, THREADS, length)
    total = c.k.let(".b32", "total", "mov.u32", 0)
    one = c.k.let(".b32", "one", "mov.b32", "0f3F800000") if kind == "f32" else 1
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    others = c.k.let(".pred", "others", "setp.ge.u32", lane, lanes)

    def run() -> Reg | None:
        after = c.k.label("$after")
        if lanes < 32:
            c.k.emit("bra", after, guard=others)
        for place in places:
            if operation == "red":
                c.k.emit(f"red.global.add.{kind}", address(place), one)
            else:
                if operation == "cas":
                    got = c.k.let(".b32", "got", "atom.global.cas.b32", address(place), 0, one)
                else:
                    got = c.k.let(".b32", "got", f"atom.global.add.{kind}", address(place), one)
                c.k.emit("xor.b32", total, total, got)
        c.k.place(after)
        if operation != "red":
            return total
        c.k.emit("fence.acq_rel.gpu")
        return None

    what_each = "atom.global.cas.b32" if operation == "cas" else f"{operation}.global.add.{kind}"
    c.measure(f"{what_each} x{length}", run, whole_cta=True)

    def arguments(gpu: Any) -> list[Any]:
        return placed(gpu, word_of(np.arange(SMS * THREADS * length, dtype=np.uint32)), begin)

    where = f", {begin} bytes behind a KiB" if begin else ""
    return c.benchmark(
        f"{length} of {operation} of {lanes} lanes of {SMS} x {THREADS // 32} warps on {what}{where}", grid=SMS,
        block=THREADS, rows=SMS, summary=means_and_latest, arguments=arguments,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of this group."""
    return [
        *(
            meetings(name, operation, length)
            for name in CHOSEN for operation in ("red", "atom") for length in LENGTHS
        ),
        *(meetings("word", operation, length, 1) for operation in ("red", "atom") for length in LENGTHS),
        *(meetings(name, operation, 8, kind="f32") for name in ("word", "random_256") for operation in ("red", "atom")),
        *(meetings(name, "red", 8) for name in CHOICES if name.startswith("line_and")),
        *(
            meetings(name, operation, length)
            for name in ("word", "random_256", "random_4096", "random_1m")
            for operation in ("cas", *(("atom",) if name not in CHOSEN else ()))
            for length in LENGTHS
        ),
        *(meetings(name, "red", 8, begin=KIB // 2) for name in ("sectors", "lines", "random_256")),
    ]  # fmt: skip

"""Atomics of all SMs on few words until the last SM is through, which is what a launch waits for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, means_and_latest
from hopsim.kernels.micro.patterns import THREADS, WORDS, own_places
from hopsim.kernels.ptx.text import Param, Reg, address

CHOSEN: Final = ("word", "line", "sectors", "lines", "random_256", "random_4096")
LENGTHS: Final = (1, 8)


def meetings(
    name: str, operation: str, length: int, lanes: int = 32, kind: str = "u32"
) -> Benchmark:
    """So many atomics of each thread, or of the first lanes of each warp, at words that `patterns` has too.

    Args:
        name: which words.
        operation: `red`, after which a fence waits, or `atom`, whose result is waited for.
        length: one after the other, each without waiting.
        lanes: of each warp that do so.
        kind: of value.
    """
    what, word_of = WORDS[name]
    of = ("" if lanes == 32 else f"_l{lanes}") + ("" if kind == "u32" else f"_{kind}")
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
                got = c.k.let(".b32", "got", f"atom.global.add.{kind}", address(place), one)
                c.k.emit("xor.b32", total, total, got)
        c.k.place(after)
        if operation == "atom":
            return total
        c.k.emit("fence.acq_rel.gpu")
        return None

    c.measure(f"{operation}.global.add.{kind} x{length}", run, whole_cta=True)

    def arguments(gpu: Any) -> list[Any]:
        words = word_of(np.arange(SMS * THREADS * length, dtype=np.uint32))
        return [gpu.array(np.zeros(int(words.max()) + 1, np.uint32)), gpu.array(4 * words)]

    return c.benchmark(
        f"{length} of {operation} of {lanes} lanes of {SMS} x {THREADS // 32} warps on {what}", grid=SMS, block=THREADS,
        rows=SMS, summary=means_and_latest, arguments=arguments,
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
    ]  # fmt: skip

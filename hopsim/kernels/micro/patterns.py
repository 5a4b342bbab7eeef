"""Accesses whose lanes meet: broadcasts of wide words out of shared memory, atomics and stores on few or scattered words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.ptx.text import Param, Reg, address, vector

SHARED_WARPS: Final = 8
SHARED_LENGTHS: Final = (8, 24)
ELEMENTS: Final = {
    "one for all": (0, 0, 0),
    "lane / 16": (4, 31, 1),
    "lane / 8": (3, 31, 1),
    "lane / 4": (2, 31, 1),
    "lane / 2": (1, 31, 1),
    "lane": (0, 31, 1),
    "lane % 2": (0, 1, 1),
    "lane % 4": (0, 3, 1),
    "lane % 8": (0, 7, 1),
    "lane % 16": (0, 15, 1),
    "every second": (0, 31, 2),
    "lane / 16 of every eighth": (4, 31, 8),
    "lane % 8 of every eighth": (0, 7, 8),
}
"""Which element a lane reads: its number shifted right, masked, times a stride."""


def shared_patterns(words: int) -> Benchmark:
    """Loads of so many words a lane; a slope is cycles for one load of each of eight warps."""
    c = Clocked(f"shared_patterns_v{words}")
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    total = c.k.let(".b32", "total", "mov.u32", c.thread)
    opcode = "ld.volatile.shared.b32" if words == 1 else f"ld.volatile.shared.v{words}.b32"
    for label, (shift, mask, stride) in ELEMENTS.items():
        at = c.k.let(".b32", "at", "shr.u32", lane, shift)
        c.k.emit("and.b32", at, at, mask)
        c.k.emit("mad.lo.u32", at, at, 4 * words * stride, c.shared)
        for length in SHARED_LENGTHS:

            def run(length: int = length, at: Reg = at) -> Reg:
                held = [c.k.regs(".b32", "v", words) for _ in range(length)]
                for one in held:
                    c.k.emit(opcode, vector(one) if words > 1 else one[0], address(at))
                for one in held:
                    for word in one:
                        c.k.emit("xor.b32", total, total, word)
                return total

            c.measure(f"{label} x{length}", run, whole_cta=True)
    return c.benchmark(
        f"{words} words a lane out of shared memory, by which lanes read the same, eight warps",
        block=32 * SHARED_WARPS, shared_bytes=64 * 4 * words,
    )  # fmt: skip


THREADS: Final = 256
CROWDED: Final = 1024
"""Threads of a CTA, where a few and where many atomics are on their way."""
LENGTHS: Final = (4, 12)
Numbers = NDArray[np.uint32]


def _random(words: int, threads: Numbers) -> Numbers:
    return np.random.default_rng(words).integers(0, words, threads.size).astype(np.uint32)


WORDS: Final[dict[str, tuple[str, Callable[[Numbers], Numbers]]]] = {
    "word": ("one word", lambda t: 0 * t),
    "word_of_warp": ("one word of a line for each warp", lambda t: t // 32 % 32),
    "sector": ("the eight words of a sector", lambda t: t % 8),
    "line": ("the words of a line", lambda t: t % 32),
    "sectors": ("a word of each of 32 sectors", lambda t: t % 32 * 8),
    "lines": ("a word of each of 32 lines", lambda t: t % 32 * 32),
    "random_256": ("random ones of 256 words", lambda t: _random(256, t)),
    "random_4096": ("random ones of 4,096 words", lambda t: _random(4096, t)),
    "random_1m": ("random ones of 1,048,576 words", lambda t: _random(1 << 20, t)),
    "own": ("each its own word", lambda t: t),
}
"""Which words the threads of all CTAs add to, once or again."""


def contended(name: str, threads: int) -> Benchmark:
    """Atomics of all SMs; a slope is cycles for one of each thread. Where words are drawn, each is drawn anew."""
    what, word_of = WORDS[name]
    c = Clocked(
        f"contended_{name}_w{threads // 32}", [Param("data", ".u64"), Param("offsets", ".u64")]
    )
    most = max(LENGTHS)
    places = own_places(c, 2 * len(LENGTHS), threads, most)
    total = c.k.let(".b32", "total", "mov.u32", 0)
    for length in LENGTHS:

        def run(length: int = length) -> Reg:
            for place in places[:length]:
                got = c.k.let(".b32", "got", "atom.global.add.u32", address(place), 1)
                c.k.emit("xor.b32", total, total, got)
            return total

        c.measure(f"atom.global.add.u32 x{length}", run, whole_cta=True)
    for length in LENGTHS:

        def reduce(length: int = length) -> None:
            for place in places[:length]:
                c.k.emit("red.global.add.u32", address(place), 1)
            c.k.emit("fence.acq_rel.gpu")

        c.measure(f"red.global.add.u32 x{length}", reduce, whole_cta=True)

    def arguments(gpu: Any) -> list[Any]:
        return placed(gpu, word_of(np.arange(SMS * threads * most, dtype=np.uint32)))

    return c.benchmark(
        f"atomics of {SMS} CTAs of {threads} threads on {what}", grid=SMS, block=threads, rows=SMS,
        summary=mean_of_rows, arguments=arguments,
    )  # fmt: skip


KIB: Final = 1024
WORD: Final = 4
PITCH: Final = 65536
STORES: Final[dict[str, tuple[int, Callable[[Numbers], Numbers]]]] = {
    "word_of_line": (1, lambda t: t % 32 * PITCH + t // 32 * 32),
    "word_of_sector": (1, lambda t: t * 32),
    "half_of_sector": (4, lambda t: t * 32),
    "whole_sectors": (4, lambda t: t * 16),
}
"""Words of a thread's store, and the byte where it begins; its next one lies `ROUND_BYTES` behind."""
ROUND_BYTES: Final = 2 << 20


PLACES: Final = (2, sum(LENGTHS))
"""That L2 has from the time before, and that are new."""


def scattered(name: str, places: int) -> Benchmark:
    """Stores of all SMs until they are seen; a slope is cycles for one of each thread.

    Args:
        places: that a thread stores to, one after the other.
    """
    words, byte_of = STORES[name]
    c = Clocked(f"scattered_{name}_{places}", [Param("data", ".u64"), Param("offsets", ".u64")])
    (data,) = own_places(c, len(LENGTHS), THREADS, 1)
    opcode = "st.volatile.global.b32" if words == 1 else f"st.volatile.global.v{words}.b32"
    given = c.thread if words == 1 else vector([c.thread] * words)
    rounds = 0
    for length in LENGTHS:

        def run(length: int = length) -> None:
            nonlocal rounds
            for _ in range(length):
                c.k.emit(opcode, address(data, rounds % places * ROUND_BYTES), given)
                rounds += 1
            c.k.emit("fence.acq_rel.gpu")

        c.measure(f"{opcode} x{length}", run, whole_cta=True)

    def arguments(gpu: Any) -> list[Any]:
        begins = byte_of(np.arange(SMS * THREADS, dtype=np.uint32))
        size = int(begins.max()) + 16 + places * ROUND_BYTES
        return [gpu.array(np.zeros(size, np.uint8)), gpu.array(begins)]

    return c.benchmark(
        f"stores of {SMS} CTAs of {THREADS} threads, {name.replace('_', ' ')} each, at {places} places",
        grid=SMS, block=THREADS, rows=SMS, summary=mean_of_rows, arguments=arguments,
    )  # fmt: skip


def placed(gpu: Any, words: Numbers, begin: int = 0) -> list[Any]:
    """Return an array that has such words, and their offsets in it.

    Args:
        begin: where the first one lies, in bytes behind a KiB of memory: which words meet depends on it.
    """
    data = gpu.array(np.zeros(int(words.max()) + 1 + 2 * KIB // WORD, np.uint32))
    return [data, gpu.array(WORD * words + np.uint32(-data.address % KIB + begin))]


def own_places(c: Clocked, columns: int, threads: int, count: int) -> list[Reg]:
    """Give each CTA a row of so many results; return registers with the addresses that the table has for a thread."""
    c.own_row(columns)
    thread = c.k.let(".b32", "all", "mov.u32", "%ctaid.x")
    c.k.emit("mad.lo.u32", thread, thread, threads, c.thread)
    table = c.k.let(".b64", "table", "ld.param.u64", "[offsets]")
    c.k.emit("mad.wide.u32", table, thread, 4, table)
    data = c.k.let(".b64", "data", "ld.param.u64", "[data]")
    places: list[Reg] = []
    for number in range(count):
        place = address(table, 4 * SMS * threads * number)
        offset = c.k.let(".b32", "offset", "ld.global.b32", place)
        wide = c.k.let(".b64", "wide", "cvt.u64.u32", offset)
        places.append(c.k.let(".b64", "place", "add.u64", data, wide))
    return places


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of this group."""
    return [
        *(shared_patterns(words) for words in (1, 2, 4)),
        *(contended(name, threads) for threads in (THREADS, CROWDED) for name in WORDS),
        *(scattered(name, places) for name in STORES for places in PLACES),
    ]

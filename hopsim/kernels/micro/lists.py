"""Loads behind loads: elements by an index that is loaded itself, turn after turn, and lines that are still on their way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows, zeros
from hopsim.kernels.ptx.text import Param, Reg, address

LENGTH: Final = 64
"""Elements of a lane's list."""
UNROLLED: Final = 4
"""Elements of a turn, as nvcc unrolls such a loop; ptxas unrolls it further."""
STRIDES: Final = {"side_by_side": 1, "row_by_row": LENGTH}
"""Words between the lists of two lanes: an element of all lanes lies in one line, or in 32."""
DATA_WORDS: Final = 1 << 14
LINE_WORDS: Final = 32


def indexed(layout: str, warps: int, ctas: int, *, nounroll: bool = False) -> Benchmark:
    """Sums of data[index[i]] * factor[i] over the list of each lane, out of L2.

    Args:
        layout: of the lists.
        nounroll: whether ptxas may not unroll the loop further.
    """
    name = f"lists_{layout}_w{warps}_{ctas}{'_nounroll' if nounroll else ''}"
    params = [Param(one, ".u64") for one in ("index", "factor", "data")]
    c = Clocked(name, [*params, Param("length", ".u32")], [f".reqntid {32 * warps}"])
    k = c.k
    c.own_row(1)
    index, factor, data = (c.load(one.name, ".b64", "ld.param.u64") for one in params)
    threads = 32 * warps
    stride = STRIDES[layout]
    cta = k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    begin = k.let(".b32", "begin", "mul.lo.u32", cta, threads * LENGTH)
    if stride == 1:
        # Each warp has lists of its own; a step goes over the lanes of a warp.
        lane = k.let(".b32", "lane", "and.b32", c.thread, 31)
        warp = k.let(".b32", "warp", "shr.u32", c.thread, 5)
        k.emit("mad.lo.u32", begin, warp, 32 * LENGTH, begin)
        k.emit("add.u32", begin, begin, lane)
    else:
        k.emit("mad.lo.u32", begin, c.thread, stride, begin)
    step = 4 * (32 if stride == 1 else 1)
    total = k.let(".f32", "total", "mov.f32", "0f00000000")
    left, more = k.reg(".b32", "left"), k.reg(".pred", "more")
    at_index, at_factor = k.reg(".b64", "at_index"), k.reg(".b64", "at_factor")

    def once() -> Any:
        k.emit("mad.wide.u32", at_index, begin, 4, index)
        k.emit("mad.wide.u32", at_factor, begin, 4, factor)
        k.emit("ld.param.u32", left, "[length]")
        with k.loop(left, more, "$list", UNROLLED, nounroll=nounroll):
            for number in range(UNROLLED):
                item = k.let(".b32", "item", "ld.global.u32", address(at_index, number * step))
                place = k.let(".b64", "place", "mad.wide.u32", item, 4, data)
                value = k.let(".f32", "value", "ld.global.f32", address(place))
                times = k.let(".f32", "times", "ld.global.f32", address(at_factor, number * step))
                k.emit("fma.rn.f32", total, times, value, total)
            for pointer in (at_index, at_factor):
                k.emit("add.u64", pointer, pointer, UNROLLED * step)
        return k.let(".b32", "bits", "mov.b32", total)

    _bring_to_l2(c, [(index, begin), (factor, begin)], data, threads, stride)
    c.measure("list", once, whole_cta=True)

    def arguments(gpu: Any) -> list[Any]:
        count = ctas * threads * LENGTH
        rng = np.random.default_rng(1)
        items = rng.integers(0, DATA_WORDS, count).astype(np.uint32)
        return [
            gpu.array(items), gpu.array(rng.standard_normal(count).astype(np.float32)),
            gpu.array(rng.standard_normal(DATA_WORDS).astype(np.float32)), np.uint32(LENGTH),
        ]  # fmt: skip

    return c.benchmark(
        f"elements by index and their factors, {LENGTH} a lane, lists {layout.replace('_', ' ')}, {warps} warps on each of "
        f"{ctas} SMs" + (", not unrolled further" if nounroll else ""),
        grid=ctas, block=threads, rows=ctas, summary=mean_of_rows, arguments=arguments,
    )  # fmt: skip


def _bring_to_l2(
    c: Clocked, lists: Sequence[tuple[Reg, Reg]], data: Reg, threads: int, stride: int
) -> None:
    """Load a word of each line past L1: of a lane's lists, and of what they point to."""
    k = c.k
    total = k.let(".b32", "brought", "mov.u32", 0)

    def touch(place: str) -> None:
        word = k.let(".b32", "word", "ld.global.cg.b32", place)
        k.emit("xor.b32", total, total, word)

    for base, begin in lists:
        place = k.let(".b64", "place", "mad.wide.u32", begin, 4, base)
        of_a_lane = range(0, LENGTH, LINE_WORDS if stride > 1 else 1)
        for number in of_a_lane:
            touch(address(place, number * 4 * (1 if stride > 1 else LINE_WORDS)))
    place = k.let(".b64", "place", "mad.wide.u32", c.thread, 4 * LINE_WORDS, data)
    for number in range(0, DATA_WORDS, LINE_WORDS * threads):
        touch(address(place, 4 * number))
    c.keep(total)


BEHIND: Final = (0, 40, 100, 200, 300, 400, 600, 2000)
"""Cycles after the first warp at which the others load the same line, each by itself."""


def on_the_way(*, is_cold: bool) -> Benchmark:
    """A line that one warp after the other loads: how long each waits for it, from its own load on."""
    c = Clocked(f"lists_line_again{'_cold' if is_cold else ''}", [Param("data", ".u64")])
    k = c.k
    data = c.load("data", ".b64", "ld.param.u64")
    warp = k.let(".b32", "warp", "shr.u32", c.thread, 5)
    after = k.let(".b32", "after", "mov.u32", 0)
    for number, cycles in enumerate(BEHIND):
        is_it = k.let(".pred", "is_it", "setp.eq.u32", warp, number)
        k.emit("mov.u32", after, cycles, guard=is_it)
    lane = k.let(".b32", "lane", "and.b32", c.thread, 31)
    k.emit("mad.wide.u32", data, lane, 4, data)
    k.emit("mad.wide.u32", c.results, warp, 8, c.results)
    k.emit("setp.eq.u32", c.first, lane, 0)
    k.emit("bar.sync", 0)
    start = c.clock()
    until = k.let(".b64", "until", "cvt.u64.u32", after)
    k.emit("add.u64", until, until, start)
    c.wait_until(until, 0)
    before = c.clock()
    c.keep(k.let(".b32", "word", "ld.global.b32", address(data)))
    end = c.clock()
    k.emit("sub.u64", end, end, before)
    k.emit("st.global.u64", address(c.results), end, guard=c.first)
    c.labels += [f"{cycles} cycles behind" for cycles in BEHIND]
    return c.benchmark(
        "one line that warps load at different times" + (", out of device memory" if is_cold else ""),
        block=32 * len(BEHIND), is_cold=is_cold,
        arguments=zeros(4 * 32),
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [indexed(layout, warps, 1) for layout in STRIDES for warps in (1, 4)]
    found += [indexed(layout, 4, SMS) for layout in STRIDES]
    found += [indexed(layout, 1, 1, nounroll=True) for layout in STRIDES]
    return [*found, on_the_way(is_cold=False), on_the_way(is_cold=True)]

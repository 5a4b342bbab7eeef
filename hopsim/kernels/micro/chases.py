"""Latency of L2 by line and by SM, and against the size of the working set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Table
from hopsim.kernels.ptx.text import Param, Reg, address, vector

MIB = 1 << 20
LINE = 128
MAP_LINES = 1024
"""Lines that are timed one by one."""
MAP_SPAN = 32 * MIB
TURNS = 8
"""Sets of lines for launches that must not touch the same ones."""
STEPS = 1024
"""Dependent loads of a chase."""


def line_map(sm: int, spread: bool, helper: int | None = None) -> Benchmark:
    """One SM times one line after the other, each in L2: a table, not a mean.

    Args:
        sm: which SM; all others leave.
        spread: lines at random in 32 MiB, or else one after the other.
        helper: an SM that reads all lines first, so that `sm` touches each for the first time.  Each launch then takes
            its own lines.
    """
    how = "spread" if spread else "dense"
    name = f"l2_map_sm{sm}_{how}" + ("" if helper is None else f"_after{helper}")
    names = ["data", "offsets", *([] if helper is None else ["state"])]
    c = Clocked(name, [Param(one, ".u64") for one in names], [".reqntid 32"])
    data, offsets, *rest = (c.load(one, ".b64", "ld.param.u64") for one in names)
    here = c.k.let(".b32", "here", "mov.u32", "%smid")
    is_here = c.k.let(".pred", "is_here", "setp.eq.u32", here, sm)
    done = c.label_and_leave_but_first()
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    at, out = c.k.reg(".b64", "at"), c.k.reg(".b64", "out")

    def walk(timed: bool) -> None:
        c.k.emit("mov.u64", at, offsets)
        c.k.emit("mov.u64", out, c.results)
        c.k.emit("mov.u32", left, MAP_LINES)
        with c.k.loop(left, more, "$walk"):
            offset = c.k.let(".b32", "offset", "ld.global.ca.b32", address(at))
            place = c.k.let(".b64", "place", "cvt.u64.u32", offset)
            c.k.emit("add.u64", place, data, place)
            before = c.clock()
            value = c.k.let(".b32", "value", "ld.global.cg.b32", address(place))
            c.keep(value)
            after = c.clock()
            c.k.emit("sub.u64", after, after, before)
            if timed:
                c.k.emit("st.global.u64", address(out), after)
            c.k.emit("add.u64", at, at, 4)
            c.k.emit("add.u64", out, out, 8)

    if helper is None:
        c.k.emit("bra", done, unless=is_here)
        walk(timed=False)
    else:
        _take_turns(c, rest[0], data, here, is_here, helper, done, walk)
    walk(timed=True)
    if helper is not None:
        c.k.emit("st.global.b32", address(rest[0]), 0)
    c.k.place(done)
    c.labels += [f"line {index}" for index in range(MAP_LINES)]

    def arguments(gpu: Any) -> list[Any]:
        lines = np.arange(MAP_LINES, dtype=np.int64)
        if spread:
            order = np.asarray(np.random.PCG64(7).random_raw(MAP_SPAN // LINE), np.uint64)
            lines = np.sort(np.argsort(order)[:MAP_LINES])
        table = (lines * LINE).astype(np.uint32)
        size = MAP_SPAN if helper is None else MAP_SPAN * TURNS
        more = [] if helper is None else [gpu.array(np.zeros(2, np.uint32))]
        return [gpu.array(np.zeros(size // 4, np.uint32)), gpu.array(table), *more]

    order = "" if helper is None else f", which SM {helper} has read"
    return c.benchmark(
        f"L2 latency of {MAP_LINES} lines from SM {sm}{order}", grid=SMS, block=32, arguments=arguments,
        summary=distribution, is_map=True,
    )  # fmt: skip


def _take_turns(
    c: Clocked,
    state: Reg,
    data: Reg,
    here: Reg,
    is_here: Reg,
    helper: int,
    done: str,
    walk: Callable[[bool], None],
) -> None:
    """Let the helper walk first, on the lines of this launch, and the timed SM wait for it.

    Args:
        state: address of (whether the helper is done, how many launches there were).
    """
    turn = c.k.let(".b32", "turn", "ld.volatile.global.b32", address(state, 4))
    c.k.emit("mad.wide.u32", data, turn, MAP_SPAN, data)
    second = c.k.label("$second")
    c.k.emit("bra", second, guard=is_here)
    is_helper = c.k.let(".pred", "is_helper", "setp.eq.u32", here, helper)
    c.k.emit("bra", done, unless=is_helper)
    walk(False)
    c.k.emit("st.release.gpu.global.b32", address(state), 1)
    c.k.emit("bra", done)
    c.k.place(second)
    again = c.k.label("$again")
    c.k.place(again)
    flag = c.k.let(".b32", "flag", "ld.acquire.gpu.global.b32", address(state))
    ready = c.k.let(".pred", "ready", "setp.ne.u32", flag, 0)
    c.k.emit("bra", again, unless=ready)
    c.k.emit("add.u32", turn, turn, 1)
    c.k.emit("st.volatile.global.b32", address(state, 4), turn)


def distribution(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return percentiles of the latencies of single lines."""
    del labels
    values = table[-1]
    figures = {
        f"p{part}": float(np.percentile(values, part)) for part in (1, 10, 25, 50, 75, 90, 99)
    }
    return {**figures, "mean": round(float(values.mean()), 2)}


def working_set(size_mib: int) -> Benchmark:
    """One CTA reads a whole set, twice, then one lane chases through it at random."""
    threads, unroll = 1024, 4
    c = Clocked(f"l2_set_{size_mib}MiB", [Param("chase", ".u64")], [".reqntid 1024"])
    base = c.load("chase", ".b64", "ld.param.u64")
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    place = c.k.reg(".b64", "place")
    held = [c.k.regs(".b32", "v", 4) for _ in range(unroll)]
    step = threads * 16 * unroll
    for _ in range(2):
        c.k.emit("mad.wide.u32", place, c.thread, 16, base)
        c.k.emit("mov.u32", left, size_mib * MIB // step)
        with c.k.loop(left, more, "$read"):
            for index, four in enumerate(held):
                c.k.emit("ld.global.cg.v4.b32", vector(four), address(place, index * threads * 16))
            for four in held:
                c.keep(four[0])
            c.k.emit("add.u64", place, place, step)
    c.k.emit("bar.sync", 0)
    done = c.label_and_leave_but_first()
    at = c.k.let(".b32", "at", "mov.u32", 0)

    def walk() -> None:
        c.k.emit("mov.u32", left, STEPS // 8)
        with c.k.loop(left, more, "$walk"):
            for _ in range(8):
                c.k.emit("mad.wide.u32", place, at, 1, base)
                c.k.emit("ld.global.cg.b32", at, address(place))

    c.measure_one(f"{STEPS} loads", walk)
    c.k.emit("setp.eq.u32", more, at, 1)
    c.k.emit("st.global.b32", address(base), at, guard=more)
    c.k.place(done)

    def arguments(gpu: Any) -> list[Any]:
        lines = size_mib * MIB // LINE
        order = np.argsort(np.asarray(np.random.PCG64(3).random_raw(lines), np.uint64))
        order = np.concatenate([[0], order[order != 0]])[:STEPS]
        table = np.zeros(size_mib * MIB // 4, np.uint32)
        table[order * (LINE // 4)] = np.roll(order, -1) * LINE
        return [gpu.array(table)]

    return c.benchmark(
        f"chase through {size_mib} MiB that were read before", block=threads, arguments=arguments
    )


def benchmarks() -> list[Benchmark]:
    """Return all L2 latency benchmarks."""
    found = [line_map(sm, spread=True) for sm in (0, 1, 2, 16, 33, 50, 66, 83, 100, 116, 130, 131)]
    found += [line_map(sm, spread=False) for sm in (0, 131)]
    found += [
        line_map(sm, True, helper)
        for sm, helper in ((0, 1), (0, 16), (0, 131), (131, 0), (66, 131))
    ]
    make: Callable[[int], Benchmark] = working_set
    return found + [make(size) for size in (2, 8, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96)]

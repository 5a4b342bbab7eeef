"""Jumps to code that nobody has executed: by how far, in what order, and whether L2 has it.

All of it is measured in the first launch of a program, one after the other without a break, and stored at the end.
"""

from __future__ import annotations

import random
from typing import Any, Final

from hopsim.isa.machine_code import INSTRUCTION_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, median_of_rows, zero_word
from hopsim.kernels.ptx.text import Param, Reg, address

JUMPS, PASSES = 6, 2
GAPS: Final = (256, 1024, 4096, 16384)
FAR: Final = (512, 2048, 8192, 32768)
STOPS: Final = 32
NOT_IN_L2: Final = {False: "", True: ", none of it in L2"}
WARPS: Final = 4
WAIT_CYCLES: Final = 4000
"""Between the beginnings of two warps."""


def over(
    gap_bytes: int, ctas: int, name: str = "start_jumps", *, is_cold: bool = False
) -> Benchmark:
    """Some jumps over so much code that nobody executes, and the same ones again.

    Args:
        is_cold: whether L2 has been filled with other bytes since the program was loaded.
    """
    c = Clocked(f"{name}_{gap_bytes}B_{ctas}", [Param("never", ".u32")], [".reqntid 32"])
    falls, total = _begin(c, JUMPS * PASSES)
    left = c.k.let(".b32", "left", "mov.u32", PASSES)
    out = c.k.let(".b64", "out", "mov.b64", c.results)
    more = c.k.reg(".pred", "more")
    with c.k.loop(left, more, "$again"):
        clocks = _jump(c, falls, total, gap_bytes, JUMPS)
        for number in reversed(range(JUMPS)):
            after = clocks[number + 1]
            c.k.emit("sub.u64", after, after, clocks[number])
            c.k.emit("st.global.u64", address(out, 8 * number), after, guard=c.first)
        c.k.emit("add.u64", out, out, 8 * JUMPS)
    c.labels += [f"pass {passed}, jump {jump}" for passed in range(PASSES) for jump in range(JUMPS)]
    what = f"jumps over {gap_bytes} bytes of code, one warp on each of {ctas} SMs, and the same ones again"
    return _benchmark(c, total, what + NOT_IN_L2[is_cold], ctas, is_cold)


def tour(seed: int, block_bytes: int, ctas: int, *, is_cold: bool = False) -> Benchmark:
    """Blocks of code, each of which jumps to the next one in an order that has nothing to do with where they stand.

    Args:
        seed: of the order; 0: from the first to the last.
        is_cold: whether L2 has been filled with other bytes since the program was loaded.
    """
    order = list(range(STOPS))
    if seed:
        random.Random(seed).shuffle(order)
    c = Clocked(
        f"jumps_tour{seed}_{block_bytes}B_{ctas}" + ("_cold" if is_cold else ""),
        [Param("never", ".u32")],
        [".reqntid 32"],
    )
    falls, total = _begin(c, STOPS)
    clocks = c.k.regs(".b64", "clock", STOPS + 1)
    c.k.emit("mov.u64", clocks[STOPS], "%clock64")
    labels = [c.k.label("$block") for _ in order]
    end = c.k.label("$end")
    c.k.emit("bra", labels[order[0]], unless=falls)
    after = dict(zip(order, [*order[1:], -1], strict=True))
    for block, label in enumerate(labels):
        c.k.place(label)
        c.k.emit("mov.u64", clocks[block], "%clock64")
        c.k.emit("bra", end if after[block] < 0 else labels[after[block]], unless=falls)
        _never_executed(c, total, block_bytes)
    c.k.place(end)
    c.store_laps(
        [f"{number}: block {block}" for number, block in enumerate(order)],
        [clocks[STOPS], *(clocks[block] for block in order)],
    )
    what = f"{STOPS} blocks of {block_bytes} bytes, order {seed}, one warp on each of {ctas} SMs"
    return _benchmark(c, total, what + NOT_IN_L2[is_cold], ctas, is_cold)


def roles(gap_bytes: int, ctas: int, *, is_cold: bool = False) -> Benchmark:
    """One warp jumps over so much code when it begins, another one later, a third one in the end, as roles of a kernel do.

    Args:
        is_cold: whether L2 has been filled with other bytes since the program was loaded.
    """
    c = Clocked(
        f"jumps_roles_{gap_bytes}B_{ctas}" + ("_cold" if is_cold else ""),
        [Param("never", ".u32")],
        [".reqntid 128"],
    )
    falls, total = _begin(c, 2 * WARPS)
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    leader = c.k.let(".pred", "leader", "setp.eq.u32", lane, 0)
    wait = c.k.let(".b64", "wait", "mul.wide.u32", warp, WAIT_CYCLES)
    c.k.emit("mad.wide.u32", c.results, warp, 16, c.results)
    c.k.emit("bar.sync", 0)
    begin = c.clock()
    c.k.emit("add.u64", begin, begin, wait)
    c.wait_until(begin, 0)
    clocks = _jump(c, falls, total, gap_bytes, 2)
    for number in (1, 0):
        c.k.emit("sub.u64", clocks[number + 1], clocks[number + 1], clocks[number])
        c.k.emit("st.global.u64", address(c.results, 8 * number), clocks[number + 1], guard=leader)
    c.labels += [f"warp {number}, jump {jump}" for number in range(WARPS) for jump in range(2)]
    what = (
        f"warps that jump over {gap_bytes} bytes of code one after the other, on each of {ctas} SMs"
    )
    return _benchmark(c, total, what + NOT_IN_L2[is_cold], ctas, is_cold, block=128)


def one_after_the_other(gap_bytes: int) -> Benchmark:
    """All SMs jump over so much code, each long after the one before: who finds what others have brought."""
    c = Clocked(f"jumps_turns_{gap_bytes}B", [Param("never", ".u32")], [".reqntid 32"])
    falls, total = _begin(c, 3)
    sm = c.k.let(".b32", "sm", "mov.u32", "%smid")
    begin = c.k.let(".b64", "begin", "mul.wide.u32", sm, WAIT_CYCLES)
    c.k.emit("add.u64", begin, begin, c.clock())
    c.wait_until(begin, 0)
    clocks = _jump(c, falls, total, gap_bytes, 2)
    c.store_laps(["jump 0", "jump 1"], clocks)
    c.store("sm", c.k.let(".b64", "wide", "cvt.u64.u32", sm))
    what = f"jumps over {gap_bytes} bytes of code, one SM after the other"
    return _benchmark(c, total, what, SMS, True, is_map=True)


def _begin(c: Clocked, columns: int) -> tuple[Reg, Reg]:
    """Return a predicate that is false, and a number that ptxas does not know, for code that nobody executes."""
    c.own_row(columns)
    never = c.load("never")
    falls = c.k.let(".pred", "falls", "setp.ne.u32", never, 0)
    return falls, c.k.let(".f32", "total", "cvt.rn.f32.u32", never)


def _jump(c: Clocked, falls: Reg, total: Reg, gap_bytes: int, times: int) -> list[Reg]:
    """Jump over so much code some times; return the clocks before, between and behind."""
    clocks = [c.clock()]
    for _ in range(times):
        behind = c.k.label("$over")
        c.k.emit("bra", behind, unless=falls)
        _never_executed(c, total, gap_bytes)
        c.k.place(behind)
        clocks.append(c.clock())
    return clocks


def _never_executed(c: Clocked, total: Reg, size_bytes: int) -> None:
    for _ in range(size_bytes // INSTRUCTION_BYTES):
        c.k.emit("fma.rn.f32", total, total, total, total)


def _benchmark(
    c: Clocked, total: Reg, what: str, ctas: int, is_cold: bool, **launch: Any
) -> Benchmark:
    """Keep the code that nobody executes, and measure the first launch, a CTA on each SM."""
    c.keep(c.k.let(".b32", "bits", "mov.b32", total))
    return c.benchmark(
        what, grid=ctas, rows=ctas, summary=median_of_rows, shared_bytes=200 * 1024, is_first=True,
        is_cold=is_cold, arguments=zero_word, **launch,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [over(gap, ctas) for gap in GAPS for ctas in (1, SMS)]
    found += [over(gap, ctas, "jumps_over") for gap in FAR for ctas in (1, SMS)]
    found += [
        over(gap, ctas, "jumps_over_cold", is_cold=True)
        for gap in (1024, 4096, 8192, 16384, 32768)
        for ctas in (1, SMS)
    ]
    found += [
        tour(seed, size, ctas, is_cold=is_cold)
        for is_cold in (False, True)
        for seed, size in ((0, 1024), (1, 1024), (2, 1024), (1, 256), (1, 2048))
        for ctas in (1, SMS)
    ]
    found += [
        roles(gap, SMS, is_cold=is_cold)
        for is_cold in (False, True)
        for gap in (1024, 4096, 16384, 32768)
    ]
    found += [one_after_the_other(gap) for gap in (1024, 32768)]
    return found

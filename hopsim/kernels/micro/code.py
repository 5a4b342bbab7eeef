"""Instruction fetch: straight-line code of several sizes, its first pass and the passes after it."""

from __future__ import annotations

from hopsim.isa.machine_code import INSTRUCTION_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.ptx.text import address

PASSES = 4
CHAINS = 8
"""Sums that do not depend on each other: twice the latency of an fma apart."""


def straight(kib: int, ctas: int, warps: int = 1, *, is_first: bool = False) -> Benchmark:
    """So many KiB of independent fma, executed some times in a loop, by one warp or several.

    Args:
        is_first: in the first launch, in which nobody has had the code before.
    """
    name = f"code_{kib}K_{ctas}_w{warps}" + ("_first" if is_first else "")
    c = Clocked(name, directives=[f".reqntid {32 * warps}"])
    c.own_row(PASSES)
    sums = c.k.regs(".f32", "sum", CHAINS)
    one = c.k.let(".f32", "one", "cvt.rn.f32.u32", c.thread)
    for total in sums:
        c.k.emit("mov.f32", total, one)
    left = c.k.let(".b32", "left", "mov.u32", PASSES)
    out = c.k.let(".b64", "out", "mov.b64", c.results)
    more = c.k.reg(".pred", "more")
    with c.k.loop(left, more, "$again"):
        c.k.emit("bar.sync", 0)
        before = c.clock()
        for number in range(kib * 1024 // INSTRUCTION_BYTES):
            total = sums[number % CHAINS]
            c.k.emit("fma.rn.f32", total, total, one, total)
        after = c.clock()
        c.k.emit("sub.u64", after, after, before)
        c.k.emit("st.global.u64", address(out), after, guard=c.first)
        c.k.emit("add.u64", out, out, 8)
    for total in sums:
        bits = c.k.let(".b32", "bits", "mov.b32", total)
        c.keep(bits)
    c.labels += [f"pass {number}" for number in range(PASSES)]
    return c.benchmark(
        f"{kib} KiB of straight code, {warps} warps on each of {ctas} SMs, pass by pass"
        + (" of the first launch" if is_first else ""),
        grid=ctas, block=32 * warps, rows=ctas, summary=mean_of_rows, shared_bytes=200 * 1024,
        is_first=is_first,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [straight(kib, 1) for kib in (4, 16, 32, 64, 128, 256)]
    found += [straight(kib, SMS) for kib in (4, 16, 64)]
    found += [straight(kib, ctas, 4) for kib in (4, 16, 64) for ctas in (1, SMS)]
    found += [straight(kib, 1, is_first=True) for kib in (4, 16, 64, 128)]
    found += [straight(kib, SMS, is_first=True) for kib in (4, 16, 64)]
    found += [straight(16, ctas, warps, is_first=True) for warps in (4, 12) for ctas in (1, SMS)]
    return found

"""How many wgmma a warpgroup issues before one ends: the clock is read after each of them."""

from __future__ import annotations

from typing import Final

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.micro.tensor import A_BYTES, B_BYTES, operands
from hopsim.kernels.ptx.text import vector

COUNT: Final = 16
THREADS: Final = 128


def ahead(n: int, accumulators: int) -> Benchmark:
    """bf16 products into so many accumulators in turn, in one group."""
    c = Clocked(f"wgmma_ahead_n{n}_a{accumulators}", directives=[f".reqntid {THREADS}"])
    sums = [c.k.regs(".b32", "acc", n // 2) for _ in range(accumulators)]
    for which, registers in enumerate(sums):
        for number, register in enumerate(registers):
            # Equal sums would share registers, which ptxas would wait for.
            c.k.emit("add.u32", register, c.thread, which * n + number)
    a, b, yes = operands(c)
    c.k.emit("bar.sync", 0)
    clocks = [c.clock()]
    c.k.emit("wgmma.fence.sync.aligned")
    for number in range(COUNT):
        c.k.emit(
            f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16",
            vector(sums[number % accumulators]), a, b, yes, 1, 1, 0, 0,
        )  # fmt: skip
        clocks.append(c.clock())
    c.k.emit("wgmma.commit_group.sync.aligned")
    c.k.emit("wgmma.wait_group.sync.aligned", 0)
    clocks.append(c.clock())
    c.store_laps([*(f"wgmma {number}" for number in range(COUNT)), "wait"], clocks)
    for registers in sums:
        for register in registers:
            c.keep(register)
    return c.benchmark(
        f"{COUNT} wgmma bf16 m64n{n} in turn into {accumulators} accumulators, the clock after each",
        block=THREADS, shared_bytes=A_BYTES + B_BYTES,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [ahead(64, count) for count in (1, 2, 4)] + [ahead(128, count) for count in (1, 2)]

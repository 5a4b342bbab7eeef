"""Rates of several warps of one SM: arithmetic, shared memory, ldmatrix and stmatrix, mma.sync, cp.async."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked, zeros
from hopsim.kernels.ptx.text import Param, Reg, address, vector

WARPS = (1, 4, 8, 16)
LENGTHS = (16, 48)
SHARED_LENGTHS = (8, 24)
CHAINS = 4
ARITHMETIC = {
    "fma.rn.f32": "fma.rn.f32 {s}, {s}, {y}, {z}",
    "mad.lo.s32": "mad.lo.s32 {s}, {s}, {y}, {z}",
    "prmt.b32": "prmt.b32 {s}, {s}, {y}, {z}",
    "fma.rn.bf16x2": "fma.rn.bf16x2 {s}, {s}, {y}, {z}",
    "ex2.approx.ftz.f32": "ex2.approx.ftz.f32 {s}, {s}",
    "cvt.rn.bf16x2.f32": "cvt.rn.bf16x2.f32 {s}, {s}, {y}",
    "popc.b32": "popc.b32 {s}, {s}",
    "shfl.sync.idx": "shfl.sync.idx.b32 {s}, {s}, {s}, 31, -1",
}


def arithmetic(warps: int) -> Benchmark:
    """Four independent chains a warp; a slope is cycles for four instructions of each warp."""
    c = Clocked(f"issue_w{warps}", [Param(name, ".u32") for name in ("x", "y", "z")])
    x, y, z = (c.load(name) for name in ("x", "y", "z"))
    chains = [c.k.let(".b32", "s", "add.u32", x, index) for index in range(CHAINS)]
    for label, text in ARITHMETIC.items():

        def body(text: str = text) -> None:
            for one in chains:
                opcode, _, rest = text.format(s=one, y=y, z=z).partition(" ")
                c.k.emit(opcode, rest)

        c.repeat_kept(label, LENGTHS, body, chains)

    def numbers(gpu: Any) -> list[Any]:
        del gpu
        return [np.uint32(0x3F800001), np.uint32(0x3F800003), np.uint32(0x00010203)]

    return c.benchmark(
        f"rate of arithmetic, {warps} warps, four independent chains each", block=32 * warps,
        arguments=numbers,
    )  # fmt: skip


def shared_memory(warps: int) -> Benchmark:
    """Independent accesses of all warps to shared memory; a slope is cycles for one access of each warp."""
    c = Clocked(f"shared_rate_w{warps}")
    step = 32 * warps * 16
    at = c.k.let(".b32", "at", "mad.lo.u32", c.thread, 16, c.shared)
    word = c.k.let(".b32", "word", "mad.lo.u32", c.thread, 4, c.shared)
    row = c.k.let(".b32", "row", "and.b32", c.thread, 31)
    column = c.k.let(".b32", "column", "mad.lo.u32", row, 128, c.shared)
    total = c.k.let(".b32", "total", "mov.u32", c.thread)
    loaded: list[Reg] = []

    def load(opcode: str, base: Reg, count: int, stride: int) -> Callable[[int], None]:
        def body(index: int) -> None:
            held = c.k.regs(".b32", "v", count)
            c.k.emit(opcode, vector(held) if count > 1 else held[0], address(base, index * stride))
            loaded.extend(held)

        return body

    def store(opcode: str, base: Reg, count: int, stride: int) -> Callable[[int], None]:
        given = vector([total] * count) if count > 1 else total
        return lambda index: c.k.emit(opcode, address(base, index * stride), given)

    ldmatrix = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
    stmatrix = "stmatrix.sync.aligned.m8n8.x4.shared.b16"
    cases: dict[str, Callable[[int], None]] = {
        "ld.shared.b32": load("ld.volatile.shared.b32", word, 1, step // 4),
        "ld.shared.v4.b32": load("ld.volatile.shared.v4.b32", at, 4, step),
        "ldmatrix.x4": load(ldmatrix, at, 4, step),
        "ldmatrix.x4, all rows in one bank group": load(ldmatrix, column, 4, 4096),
        "st.shared.b32": store("st.volatile.shared.b32", word, 1, step // 4),
        "st.shared.v4.b32": store("st.volatile.shared.v4.b32", at, 4, step),
        "stmatrix.x4": store(stmatrix, at, 4, step),
        "stmatrix.x4, all rows in one bank group": store(stmatrix, column, 4, 4096),
    }
    for label, body in cases.items():
        for length in SHARED_LENGTHS:

            def run(length: int = length, body: Callable[[int], None] = body) -> Reg:
                loaded.clear()
                for index in range(length):
                    body(index)
                for one in loaded:
                    c.k.emit("xor.b32", total, total, one)
                return total

            c.measure(f"{label} x{length}", run, whole_cta=True)
    last = SHARED_LENGTHS[-1] * max(step, 4096)
    return c.benchmark(f"rate of shared memory, {warps} warps", block=32 * warps, shared_bytes=last)


MMA = {
    "m16n8k16 bf16": ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2),
    "m16n8k16 f16, f16 sums": ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 4, 2),
    "m16n8k8 tf32": ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2),
    "m16n8k32 e4m3": ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2),
    "m16n8k32 s8": ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 4, 2),
}


def mma_sync(warps: int) -> Benchmark:
    """One dependent chain of mma.sync, and four independent ones."""
    c = Clocked(f"mma_sync_w{warps}")
    a, b = c.k.regs(".b32", "a", 4), c.k.regs(".b32", "b", 2)
    for one in (*a, *b):
        c.k.emit("mov.b32", one, 0)
    sums = [c.k.regs(".b32", "d", 4) for _ in range(CHAINS)]
    for four in sums:
        for one in four:
            c.k.emit("cvt.rn.f32.u32", one, c.thread)
    for label, (opcode, _, _) in MMA.items():
        width = 2 if ".f16.f16.f16.f16" in opcode else 4
        for name, chosen in (("one chain", sums[:1]), ("four chains", sums)):

            def body(
                opcode: str = opcode, chosen: list[list[Reg]] = chosen, width: int = width
            ) -> None:
                for four in chosen:
                    d = vector(four[:width])
                    c.k.emit(opcode, d, vector(a), vector(b), d)

            kept = [four[0] for four in chosen]
            c.repeat_kept(f"{label}, {name}", LENGTHS, body, kept)
    return c.benchmark(f"mma.sync, {warps} warps", block=32 * warps)


def cp_async(warps: int) -> Benchmark:
    """Groups of 16-byte cp.async by every thread, waited for; first out of device memory, then out of L2."""
    c = Clocked(f"cp_async_w{warps}", [Param("data", ".u64")])
    data = c.load("data", ".b64", "ld.param.u64")
    place = c.k.let(".b32", "place", "mad.lo.u32", c.thread, 16, c.shared)
    start = c.k.let(".b64", "start", "mad.wide.u32", c.thread, 16, data)
    size = 32 * warps * 16
    for name in ("miss", "hit"):
        for number, count in enumerate((1, 4, 12)):

            def body(count: int = count, number: int = number) -> None:
                for index in range(count):
                    source = address(start, (number * 16 + index) * size)
                    target = address(place, index * size)
                    c.k.emit("cp.async.cg.shared.global", target, source, 16)
                c.k.emit("cp.async.commit_group")
                c.k.emit("cp.async.wait_group", 0)

            c.measure(
                f"L2 {name}, {count} copies a thread", lambda body=body: body(), whole_cta=True
            )
    return c.benchmark(
        f"cp.async of 16 bytes, {warps} warps", block=32 * warps, shared_bytes=12 * size,
        arguments=zeros(64 << 20),
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all rate benchmarks."""
    made: tuple[Callable[[int], Benchmark], ...] = (arithmetic, shared_memory, mma_sync)
    found = [make(warps) for make in made for warps in WARPS]
    return [*found, *(cp_async(warps) for warps in (1, 4, 8))]

"""Latencies of one warp: arithmetic, shared and global memory, mbarriers, barriers, fences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked, zeros
from hopsim.kernels.ptx.text import Param, Reg, address, vector

SHORT, LONG = 32, 96
LENGTHS = (SHORT, LONG)

# Dependent chains: label -> PTX with {d} (the result), {s} (the chain), {y} and {z} (operands from memory); a second
# instruction, after a bar, keeps ptxas from folding two steps into one: its latency is in the figure.
CHAINS = {
    "add.s32, xor.b32": "add.s32 {d}, {s}, {y};|xor.b32 {d}, {d}, {z};",
    "sub.s32, xor.b32": "sub.s32 {d}, {y}, {s};|xor.b32 {d}, {d}, {z};",
    "mad.lo.s32": "mad.lo.s32 {d}, {s}, {y}, {z};",
    "mul.lo.s32, xor.b32": "mul.lo.s32 {d}, {s}, {y};|xor.b32 {d}, {d}, {z};",
    "mul.hi.u32": "mul.hi.u32 {d}, {s}, {y};",
    "mad.wide.u32 as 64 bits": "mad.wide.u32 {w}, {s}, {y}, {w};|cvt.u32.u64 {d}, {w};",
    "shl.b32": "shl.b32 {d}, {y}, {s};",
    "bfe.u32": "bfe.u32 {d}, {y}, {s}, 9;",
    "prmt.b32": "prmt.b32 {d}, {s}, {y}, {z};",
    "min.s32, xor.b32": "min.s32 {d}, {s}, {y};|xor.b32 {d}, {d}, {z};",
    "popc.b32": "popc.b32 {d}, {s};",
    "setp and selp": "setp.lt.u32 {p}, {s}, {y};|selp.b32 {d}, {y}, {s}, {p};",
    "add.f32": "add.rn.f32 {d}, {s}, {y};",
    "mul.f32": "mul.rn.f32 {d}, {s}, {y};",
    "fma.rn.f32": "fma.rn.f32 {d}, {s}, {y}, {z};",
    "max.f32, add.f32": "max.f32 {d}, {s}, {y};|add.rn.f32 {d}, {d}, {z};",
    "fma.rn.f16x2": "fma.rn.f16x2 {d}, {s}, {y}, {z};",
    "fma.rn.bf16x2": "fma.rn.bf16x2 {d}, {s}, {y}, {z};",
    "ex2.approx.ftz.f32": "ex2.approx.ftz.f32 {d}, {s};",
    "rcp.approx.ftz.f32, add.f32": "rcp.approx.ftz.f32 {d}, {s};|add.rn.f32 {d}, {d}, {z};",
    "lg2.approx.ftz.f32, add.f32": "lg2.approx.ftz.f32 {d}, {s};|add.rn.f32 {d}, {d}, {z};",
    "cvt.rn.bf16x2.f32": "cvt.rn.bf16x2.f32 {d}, {s}, {y};",
    "cvt.rn.f16x2.f32": "cvt.rn.f16x2.f32 {d}, {s}, {y};",
    "cvt.rni.s32.f32": "cvt.rni.s32.f32 {d}, {s};",
    "shfl.sync.bfly, add.s32": "shfl.sync.bfly.b32 {d}, {s}, 1, 31, -1;|add.s32 {d}, {d}, {y};",
    "shfl.sync.idx": "shfl.sync.idx.b32 {d}, {s}, {s}, 31, -1;",
    "redux.sync.add": "redux.sync.add.s32 {d}, {s}, -1;",
    "match.any.sync": "match.any.sync.b32 {d}, {s}, -1;",
    "vote.sync.ballot": "setp.lt.u32 {p}, {s}, {y};|vote.sync.ballot.b32 {d}, {p}, -1;",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 {d}, {s};",
}


CHAINS_A_KERNEL = 6
"""A kernel that runs once from top to bottom must stay inside the instruction cache."""


def arithmetic(number: int) -> Benchmark:
    """Dependent chains of some of the common instructions; a slope is a latency."""
    c = Clocked(f"arithmetic_{number}", [Param(name, ".u32") for name in ("x", "y", "z")])
    x, y, z = (c.load(name) for name in ("x", "y", "z"))
    wide = c.k.let(".b64", "w", "cvt.u64.u32", x)
    predicate = c.k.reg(".pred", "p")
    chosen = list(CHAINS.items())[number * CHAINS_A_KERNEL :][:CHAINS_A_KERNEL]
    for label, text in chosen:

        def step(value: Reg, text: str = text) -> Reg:
            result = c.k.reg(".b32", "d")
            for part in text.split("|"):
                line = part.format(d=result, s=value, y=y, z=z, w=wide, p=predicate)
                opcode, _, rest = line.removesuffix(";").partition(" ")
                c.k.emit(opcode, rest)
            return result

        c.chain(label, LENGTHS, x, step)

    def numbers(gpu: Any) -> list[Any]:
        del gpu
        return [np.uint32(0x3F800001), np.uint32(0x3F800003), np.uint32(0x00010203)]

    return c.benchmark("latency of dependent instructions, one warp", arguments=numbers)


def shared_memory() -> Benchmark:
    """Pointer chases through shared memory, and conflicts."""
    c = Clocked("shared_memory_latency")
    c.fill_shared(2048, c.shared)

    def load(value: Reg) -> Reg:
        return c.k.let(".b32", "d", "ld.shared.b32", address(value))

    def load4(value: Reg) -> Reg:
        four = c.k.regs(".b32", "v", 4)
        c.k.emit("ld.shared.v4.b32", vector(four), address(value))
        return four[0]

    def ldmatrix(count: int) -> Callable[[Reg], Reg]:
        def step(value: Reg) -> Reg:
            held = c.k.regs(".b32", "m", count)
            opcode = f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16"
            c.k.emit(opcode, vector(held), address(value))
            return held[0]

        return step

    c.chain("ld.shared.b32", LENGTHS, c.shared, load)
    c.chain("ld.shared.v4.b32", LENGTHS, c.shared, load4)
    for count in (1, 2, 4):
        c.chain(f"ldmatrix.x{count}", LENGTHS, c.shared, ldmatrix(count))
    place = c.k.let(".b32", "mine", "mad.lo.u32", c.thread, 4, c.shared)
    for ways in (1, 2, 4, 8, 16, 32):
        # Lane i reads word i * ways modulo 1024: `ways` lanes share a bank; words hold the base, zero after the mask.
        lane = c.k.let(".b32", "lane", "mul.lo.u32", c.thread, 4 * ways)
        spread = c.k.let(".b32", "spread", "and.b32", lane, 4095)

        def conflict(value: Reg, spread: Reg = spread) -> Reg:
            at = c.k.let(".b32", "at", "add.u32", value, spread)
            return c.k.let(".b32", "d", "ld.shared.b32", address(at))

        c.chain(f"add, ld.shared {ways} ways", LENGTHS, c.shared, conflict)
    c.repeat("st.shared.b32", LENGTHS, lambda: c.k.emit("st.shared.b32", address(place), c.shared))
    return c.benchmark("latency of shared memory, one warp", shared_bytes=16384)


def global_memory(kind: str) -> Benchmark:
    """A chase through global memory.

    Args:
        kind: `l1` (16 KiB, ld.ca), `l2` (4 MiB, ld.cg, second pass) or `dram` (512 MiB, first pass).
    """
    size, steps, cache, warm = {
        "l1": (1 << 14, 64, "ca", True), "l2": (1 << 22, 1024, "cg", True), "dram": (1 << 29, 1024, "cg", False),
    }[kind]  # fmt: skip
    c = Clocked(f"global_{kind}", [Param("chase", ".u64")])
    base = c.load("chase", ".b64", "ld.param.u64")
    at = c.k.reg(".b32", "at")
    left = c.k.reg(".b32", "left")
    more = c.k.reg(".pred", "more")

    def walk() -> Reg:
        c.k.emit("mov.u32", left, steps)
        c.k.emit("mov.u32", at, 0)
        with c.k.loop(left, more, "$walk", step=8):
            for _ in range(8):
                place = c.k.let(".b64", "place", "cvt.u64.u32", at)
                c.k.emit("add.u64", place, base, place)
                c.k.emit(f"ld.global.{cache}.b32", at, address(place))
        return at

    if warm:
        c.measure("first pass", walk)
    c.measure(f"{steps} loads", walk)

    def arguments(gpu: Any) -> list[Any]:
        rng = np.random.PCG64(3)
        lines = size // 128
        order = np.argsort(np.asarray(rng.random_raw(lines), np.uint64))[:steps]
        order = np.concatenate([[0], order[order != 0]])[:steps]
        table = np.zeros(size // 4, np.uint32)
        table[order * 32] = np.roll(order, -1) * 128
        return [gpu.array(table)]

    return c.benchmark(
        f"dependent loads from {kind}, one warp reads one line", arguments=arguments, block=32
    )


def mbarriers() -> Benchmark:
    """Arrive and wait on an mbarrier by one thread, fences, elect."""
    c = Clocked("mbarrier_latency")
    bar = address(c.shared)
    c.k.emit("mbarrier.init.shared::cta.b64", bar, 32)
    c.k.emit("bar.warp.sync", -1)
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def round_trip() -> None:
        c.k.emit("mbarrier.arrive.shared::cta.b64", "_", bar)
        done = c.k.reg(".pred", "done")
        again = c.k.label("$again")
        c.k.place(again)
        c.k.emit("mbarrier.try_wait.parity.shared::cta.b64", done, bar, parity)
        c.k.emit("bra", again, unless=done)
        c.k.emit("xor.b32", parity, parity, 1)

    def test(value: Reg) -> Reg:
        done = c.k.reg(".pred", "done")
        c.k.emit("mbarrier.test_wait.parity.shared::cta.b64", done, bar, value)
        return c.k.let(".b32", "d", "selp.b32", 1, value, done)

    c.repeat("arrive and try_wait", (8, 40), round_trip)
    other = c.k.let(".b32", "other", "xor.b32", parity, 1)
    c.chain("test_wait that succeeds", (8, 40), other, test)
    c.chain("test_wait that fails", (8, 40), parity, test)

    def suspended() -> Reg:
        done = c.k.reg(".pred", "done")
        c.k.emit("mbarrier.try_wait.parity.shared::cta.b64", done, bar, parity)
        return c.k.let(".b32", "d", "selp.b32", 1, 0, done)

    c.measure("try_wait that fails", suspended)
    for opcode in (
        "fence.proxy.async.shared::cta", "fence.proxy.async", "fence.acq_rel.cta", "fence.acq_rel.cluster",
        "fence.acq_rel.gpu", "fence.sc.cta", "fence.sc.gpu", "fence.mbarrier_init.release.cluster",
    ):  # fmt: skip
        c.repeat(opcode, (8, 40), lambda opcode=opcode: c.k.emit(opcode))
    c.repeat("bar.warp.sync", (8, 40), lambda: c.k.emit("bar.warp.sync", -1))
    return c.benchmark("mbarriers and fences, one warp", shared_bytes=1024)


def cta_barrier(threads: int) -> Benchmark:
    """bar.sync of a whole CTA."""
    c = Clocked(f"bar_sync_{threads}")
    c.k.emit("bar.sync", 0)
    c.repeat("bar.sync", (16, 80), lambda: c.k.emit("bar.sync", 0))
    return c.benchmark(f"bar.sync of {threads} threads", block=threads)


def cluster(ctas: int) -> Benchmark:
    """The barrier of a cluster, and loads from the shared memory of the next CTA."""
    c = Clocked(f"cluster_{ctas}")
    c.fill_shared(64, c.shared)

    def barrier() -> None:
        c.k.emit("barrier.cluster.arrive.aligned")
        c.k.emit("barrier.cluster.wait.aligned")

    barrier()
    c.repeat("barrier.cluster", (8, 40), barrier)
    rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    peer = c.k.let(".b32", "peer", "xor.b32", rank, 1)
    remote = c.k.let(".b32", "remote", "mapa.shared::cluster.u32", c.shared, peer)
    zero = c.k.let(".b32", "zero", "sub.u32", rank, rank)

    def load(value: Reg) -> Reg:
        # Every word holds the base of its CTA: masked to zero, it only makes the next load wait.
        at = c.k.let(".b32", "at", "add.u32", remote, value)
        word = c.k.let(".b32", "word", "ld.shared::cluster.b32", address(at))
        return c.k.let(".b32", "d", "and.b32", word, zero)

    c.chain("ld.shared::cluster and two more", (8, 40), zero, load)
    barrier()
    # The first CTA alone tells.
    return c.benchmark(f"cluster of {ctas}", grid=ctas, cluster=ctas, shared_bytes=1024)


def register_counts() -> Benchmark:
    """setmaxnreg, there and back again."""
    c = Clocked("setmaxnreg", directives=[".reqntid 128", ".maxnreg 128"])

    def both() -> None:
        c.k.emit("setmaxnreg.dec.sync.aligned.u32", 64)
        c.k.emit("setmaxnreg.inc.sync.aligned.u32", 128)

    c.measure("first dec and inc", both)
    c.repeat("setmaxnreg.dec and .inc", (4, 12), both)
    return c.benchmark("registers given back and taken again by one warpgroup", block=128)


def atomics() -> Benchmark:
    """Dependent atomic additions in shared and global memory, and stores that are waited for."""
    c = Clocked("atomics", [Param("data", ".u64")])
    data = c.load("data", ".b64", "ld.param.u64")
    c.fill_shared(64, 0)
    zero = c.k.let(".b32", "zero", "shr.u32", c.thread, 5)

    def add(space: str, place: Reg) -> Callable[[Reg], Reg]:
        return lambda value: c.k.let(".b32", "d", f"atom.{space}.add.u32", address(place), value)

    word = c.k.let(".b32", "word", "mad.lo.u32", c.thread, 4, c.shared)
    c.chain("atom.shared.add, one lane a word", (8, 40), zero, add("shared", word))
    c.chain("atom.shared.add, all lanes one word", (8, 40), zero, add("shared", c.shared))
    own = c.k.let(".b64", "own", "mad.wide.u32", c.thread, 4, data)
    c.chain("atom.global.add, one lane a word", (8, 40), zero, add("global", own))
    c.chain("atom.global.add, all lanes one word", (8, 40), zero, add("global", data))

    def stored() -> None:
        c.k.emit("st.global.b32", address(own), zero)
        c.k.emit("fence.acq_rel.gpu")

    c.repeat("st.global and fence.acq_rel.gpu", (4, 12), stored)
    return c.benchmark(
        "atomics and stores of one warp", shared_bytes=1024,
        arguments=zeros(256),
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all latency benchmarks."""
    return [
        *(arithmetic(number) for number in range(len(CHAINS) // CHAINS_A_KERNEL)),
        shared_memory(), atomics(), register_counts(),
        *(global_memory(kind) for kind in ("l1", "l2", "dram")), mbarriers(),
        *(cta_barrier(threads) for threads in (32, 64, 128, 256, 512, 1024)), *(cluster(ctas) for ctas in (2, 4, 8)),
    ]  # fmt: skip

"""The steps of an epilogue: sums are converted and staged, a fence and a barrier, and an elected thread stores by TMA.

Source of the sequence: hopsim's own GEMMs (`hopsim.kernels.gemm.epilogue`); CUTLASS and Triton write the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, address, vector
from hopsim.launch.arrays import TensorMap

WARPS: Final = (4, 8)
LENGTHS: Final = (2, 8)
BOX_ROWS: Final = 8
"""So few that the TMA unit is ready for the next store before the warps are."""
STAGED_BYTES: Final = 8192
MATRICES: Final = 4


def steps(warps: int) -> Benchmark:
    """A slope is cycles for what a label names, done once."""
    threads = 32 * warps
    c = Clocked(
        f"staging_w{warps}", [Param("map", ".b8", 128), *(Param(name, ".u32") for name in ("x", "one"))],
        [f".reqntid {threads}"],
    )  # fmt: skip
    place = c.address_of("map", "map")
    x, one = c.load("x"), c.load("one")
    lane, elected = c.k.reg(".b32", "lane"), c.k.reg(".pred", "elected")
    c.k.emit("elect.sync", f"{lane}|{elected}", -1)
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    in_first = c.k.let(".pred", "in_first", "setp.eq.s32", warp, 0)
    issuer = c.k.let(".pred", "issuer", "and.pred", elected, in_first)
    may = c.k.let(".pred", "may", "setp.eq.u32", one, 0)
    idle = c.k.let(".pred", "idle", "and.pred", issuer, may)
    own = c.k.let(".b32", "own", "mad.lo.u32", c.thread, 16, c.shared)
    sums = [
        c.k.let(".f32", "sum", "cvt.rn.f32.u32", c.k.let(".b32", "number", "add.u32", x, index))
        for index in range(8 * MATRICES)
    ]
    packed = c.k.regs(".b32", "packed", 4)
    for register in packed:
        c.k.emit("mov.b32", register, x)

    shift = 0

    def convert(quad: int) -> None:
        # No pair is converted twice: a compiler would remember it.
        for index, register in enumerate(packed):
            low = 8 * quad + 2 * index
            high = (low + shift) % len(sums)
            c.k.emit("cvt.rn.bf16x2.f32", register, sums[high], sums[low])

    def stage(converts: bool) -> None:
        nonlocal shift
        shift += converts
        for quad in range(MATRICES):
            if converts:
                convert(quad)
            to = address(own, quad * 16 * threads)
            c.k.emit("stmatrix.sync.aligned.m8n8.x4.shared.b16", to, vector(packed))

    def fence() -> None:
        c.k.emit("fence.proxy.async.shared::cta")

    def barrier() -> None:
        c.k.emit("bar.sync", 1, threads)

    def store(guard: Any = issuer) -> None:
        c.k.emit(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
            f"[{place}, {{{x}, {x}}}]", address(c.shared), guard=guard,
        )  # fmt: skip
        c.k.emit("cp.async.bulk.commit_group", guard=guard)

    def both(*parts: Callable[[], None]) -> Callable[[], None]:
        def body() -> None:
            for part in parts:
                part()

        return body

    for label, body in {
        "barrier": barrier,
        "fence, barrier": both(fence, barrier),
        "stmatrix, fence, barrier": both(lambda: stage(False), fence, barrier),
        "cvt, stmatrix, fence, barrier": both(lambda: stage(True), fence, barrier),
        "barrier, store": both(barrier, store),
        "barrier, store that none issues": both(barrier, lambda: store(idle)),
        "all": both(lambda: stage(True), fence, barrier, store),
    }.items():
        c.repeat_kept(label, LENGTHS, body, packed)
    c.k.emit("cp.async.bulk.wait_group", 0, guard=issuer)

    def arguments(gpu: Any) -> list[Any]:
        array = gpu.array(np.zeros((4 * BOX_ROWS, 128), np.float16))
        return [TensorMap(array, box=(64, BOX_ROWS), swizzle="128B"), np.uint32(8), np.uint32(1)]

    return c.benchmark(
        f"what {warps} warps do to store sums by TMA", block=threads,
        shared_bytes=MATRICES * 16 * threads + STAGED_BYTES, arguments=arguments,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of epilogues."""
    return [steps(warps) for warps in WARPS]

"""Waits for an mbarrier that acquire what other CTAs of a cluster released, beside those that do not.

ptxas lets each that acquires and passes invalidate the L1 (CCTL.IVALL).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hopsim.kernels.micro.clocked import Benchmark, Clocked, zeros
from hopsim.kernels.micro.pair_walks import PairWalk, walks
from hopsim.kernels.micro.tensor import A_BYTES, B_BYTES, multiply, operands
from hopsim.kernels.micro.tile_walks import TileWalk
from hopsim.kernels.micro.wakes import between_ctas
from hopsim.kernels.ptx.text import Param, address

SCOPES: Final = {"cta": "", "cluster": ".acquire.cluster"}
LENGTHS: Final = (8, 40)
WARPS: Final = (1, 4, 8)
GROUPS: Final = (1, 2)
"""Warpgroups that multiply."""
COUNT: Final = 8
"""wgmma n128 after each wait."""
BARRIER: Final = 100 * 1024
"""Where the mbarriers are."""
ARRIVALS: Final = 4095
"""Of the barrier that gets arrivals: more than there are in a phase."""


def among(scope: str, warps: int) -> Benchmark:
    """A slope is cycles for a wait that passes at once and what follows it."""
    c = Clocked(f"acquire_{scope}_w{warps}", [Param("memory", ".u64")])
    memory = c.load("memory", ".b64", "ld.param.u64")
    value = c.k.let(".b32", "value", "add.u32", c.thread, 1)
    own = c.k.let(".b32", "own", "mad.lo.u32", c.thread, 4, c.shared)
    barrier, other = address(c.shared, BARRIER), address(c.shared, BARRIER + 8)
    c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=c.first)
    c.k.emit("mbarrier.init.shared::cta.b64", other, ARRIVALS, guard=c.first)
    c.k.emit("bar.sync", 0)
    before = c.k.let(".b32", "parity", "mov.u32", 1)

    def wait() -> None:
        c.wait_parity(barrier, before, SCOPES[scope])

    def chain() -> None:
        for _ in range(16):
            c.k.emit("xor.b32", value, value, own)
            c.k.emit("add.u32", value, value, own)

    following: dict[str, Callable[[], Any]] = {
        "": lambda: None,
        ", 32 dependent": chain,
        ", st.shared": lambda: c.k.emit("st.shared.b32", address(own), value),
        ", ld.shared": lambda: c.k.emit("ld.shared.b32", value, address(own)),
        ", ld.global": lambda: c.k.emit("ld.volatile.global.b32", value, address(memory)),
        ", mbarrier.arrive of a thread": lambda: c.k.emit(
            "mbarrier.arrive.shared::cta.b64", "_", other, guard=c.first
        ),
    }
    for label, body in following.items():

        def both(body: Callable[[], Any] = body) -> None:
            wait()
            body()

        c.repeat_kept(f"try_wait{label}", LENGTHS, both, [value])
    return c.benchmark(
        f"mbarrier.try_wait{SCOPES[scope]} that passes and what follows it, {warps} warps",
        block=32 * warps, shared_bytes=BARRIER + 64, arguments=zeros(4096),
    )  # fmt: skip


def before_products(scope: str, groups: int) -> Benchmark:
    """A slope is cycles for a wait that passes at once and the products that follow it, each group waited for."""
    threads = 128 * groups
    c = Clocked(f"acquire_{scope}_wgmma_g{groups}", directives=[f".reqntid {threads}"])
    sums = c.k.regs(".b32", "acc", 64)
    for number, register in enumerate(sums):
        c.k.emit("add.u32", register, c.thread, number)
    a, b, yes = operands(c)
    barrier = address(c.shared, A_BYTES + B_BYTES)
    c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=c.first)
    before = c.k.let(".b32", "parity", "mov.u32", 1)

    def turn() -> None:
        c.wait_parity(barrier, before, SCOPES[scope])
        multiply(c, COUNT, sums, a, b, yes, 1, 1, 0, 0)

    c.repeat_kept("try_wait, wgmma", (2, 10), turn, sums[:1])
    return c.benchmark(
        f"mbarrier.try_wait{SCOPES[scope]} that passes and {COUNT} wgmma n128, waited for, {groups} warpgroups",
        block=threads, shared_bytes=A_BYTES + B_BYTES + 64,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [among(scope, warps) for scope in SCOPES for warps in WARPS]
    found += [before_products(scope, groups) for scope in SCOPES for groups in GROUPS]
    found.append(between_ctas(SCOPES["cluster"]))
    shape = TileWalk(12, 11, 128, 128, 4)
    plain = [
        PairWalk(shape, False), PairWalk(shape, True), PairWalk(shape, False, 512), PairWalk(shape, True, 512),
        PairWalk(TileWalk(2, 1, 128, 128, 4), True), PairWalk(TileWalk(2, 1, 128, 128, 4), True, 512),
        PairWalk(TileWalk(12, 11, 64, 128, 4), True, 256), PairWalk(TileWalk(12, 11, 128, 256, 4), True, 1024),
    ]  # fmt: skip
    return found + [walks(replace(one, scope=SCOPES["cluster"])) for one in plain]

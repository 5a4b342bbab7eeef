"""bar.sync between other instructions, and what copies cost the warps that do not issue them.

Triton lets an elected thread issue a copy by a predicate, so that all warps come to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.micro.tensor import multiply, operands
from hopsim.kernels.ptx.text import Param, Reg, address
from hopsim.launch.arrays import TensorMap

WARPS: Final = (4, 8, 12)
LENGTHS: Final = (8, 40)
CHAINS: Final = (4, 8, 16)
"""Dependent instructions after a barrier."""
COLUMNS: Final = (64, 128, 256)
BARRIER: Final = 100 * 1024
"""Where the mbarrier is."""


def _numbers(gpu: Any) -> list[Any]:
    del gpu
    return [np.uint32(0x9E3779B9), np.uint32(0x85EBCA6B)]


def among(warps: int) -> Benchmark:
    """A slope is cycles for a barrier and what follows it."""
    c = Clocked(f"bar_among_w{warps}", [Param(name, ".u32") for name in ("x", "y")])
    x, y = (c.load(name) for name in ("x", "y"))
    value = c.k.let(".b32", "value", "add.u32", x, c.thread)
    own = c.k.let(".b32", "own", "mad.lo.u32", c.thread, 4, c.shared)
    barrier = address(c.shared, BARRIER)
    c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=c.first)
    c.k.emit("bar.sync", 0)
    before = c.k.let(".b32", "parity", "mov.u32", 1)

    def chain(count: int) -> None:
        for index in range(count):
            c.k.emit("xor.b32" if index % 2 else "add.u32", value, value, y if index % 2 else x)

    following: dict[str, Callable[[], None]] = {
        **{f"{count} dependent": partial(chain, count) for count in CHAINS},
        "st.shared": lambda: c.k.emit("st.shared.b32", address(own), value),
        "mbarrier.arrive of a thread": lambda: c.k.emit(
            "mbarrier.arrive.shared::cta.b64", "_", barrier, guard=c.first
        ),
        "try_wait that succeeds": lambda: c.wait_parity(barrier, before),
    }
    c.repeat_kept("bar.sync", LENGTHS, lambda: c.k.emit("bar.sync", 0), [value])
    for label, body in following.items():

        def both(body: Callable[[], None] = body) -> None:
            c.k.emit("bar.sync", 0)
            body()

        c.repeat_kept(f"bar.sync, {label}", LENGTHS, both, [value])
    return c.benchmark(
        f"bar.sync of {warps} warps and what follows it", block=32 * warps,
        shared_bytes=BARRIER + 64, arguments=_numbers,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Copier:
    """Writes copies of which no thread issues one, though ptxas cannot know it, as Triton writes copies."""

    c: Clocked
    one: Reg
    place: Reg
    may: Reg
    coordinate: Reg

    @classmethod
    def begin(cls, c: Clocked) -> _Copier:
        place = c.address_of("map", "map")
        one = c.load("one")
        may = c.k.let(".pred", "may", "setp.eq.u32", one, 0)
        return cls(c, one, place, may, c.k.let(".b32", "coordinate", "add.u32", one, 64))

    def copy(self, number: int) -> None:
        k = self.c.k
        lane, issues = k.reg(".b32", "lane"), k.reg(".pred", "issues")
        k.emit("elect.sync", f"{lane}|{issues}", -1)
        k.emit("and.pred", issues, issues, self.may)
        target = k.let(".b32", "target", "add.u32", self.c.shared, 8192 * number)
        k.emit(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            address(target), f"[{self.place}, {{{self.coordinate}, {self.coordinate}}}]",
            address(self.c.shared, BARRIER), guard=issues,
        )  # fmt: skip

    def copies(self, barriers: bool) -> None:
        """Two of them, each after a barrier or not."""
        self.c.k.emit("add.u32", self.coordinate, self.coordinate, 64)
        for number in range(2):
            if barriers:
                self.c.k.emit("bar.sync", 0)
            self.copy(number)


def _loops(c: Clocked, copier: _Copier, label: str, body: Callable[[], None]) -> None:
    """Measure `body` in loops of two lengths, which ptxas does not know and so does not unroll."""
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    for turns in LENGTHS:

        def run(turns: int = turns) -> None:
            c.k.emit("mul.lo.u32", left, copier.one, turns)
            with c.k.loop(left, more, "$turn"):
                body()
            c.keep(copier.coordinate)

        c.measure(f"{label} x{turns}", run, whole_cta=True)


def copies(warps: int) -> Benchmark:
    """A slope is cycles for two copies that no thread issues, and for the loop."""
    c = Clocked(
        f"idle_copies_w{warps}", [Param("map", ".b8", 128), Param("one", ".u32")],
        [f".reqntid {32 * warps}"],
    )  # fmt: skip
    copier = _Copier.begin(c)
    for barriers in (False, True):
        label = "two copies, each after bar.sync" if barriers else "two copies"
        _loops(c, copier, label, partial(copier.copies, barriers))
    return c.benchmark(
        f"copies by an elected thread that does not issue them, {warps} warps", block=32 * warps,
        shared_bytes=BARRIER + 64, arguments=_map_and_number,
    )  # fmt: skip


def copies_under_products(n: int, warpgroups: int) -> Benchmark:
    """A slope is cycles for four wgmma of each warpgroup, which are waited for, and two copies that no thread issues."""
    c = Clocked(
        f"idle_copies_n{n}_w{4 * warpgroups}", [Param("map", ".b8", 128), Param("one", ".u32")],
        [f".reqntid {128 * warpgroups}"],
    )  # fmt: skip
    copier = _Copier.begin(c)
    sums = c.k.regs(".b32", "acc", n // 2)
    for register in sums:
        c.k.emit("mov.b32", register, 0)
    a, b, yes = operands(c)

    def step(beside: Callable[[], None]) -> None:
        multiply(c, 4, sums, a, b, yes, 1, 1, 0, 0)
        beside()

    def barriers() -> None:
        c.k.emit("bar.sync", 0)
        c.k.emit("bar.sync", 0)

    beside: dict[str, Callable[[], None]] = {
        "products": lambda: None,
        "products, two bar.sync": barriers,
        "products, two copies": partial(copier.copies, False),
        "products, two copies, each after bar.sync": partial(copier.copies, True),
    }
    for label, body in beside.items():
        _loops(c, copier, label, partial(step, body))
    for register in sums:
        c.keep(register)
    return c.benchmark(
        f"four wgmma of n {n} by {warpgroups} warpgroups, and copies that no thread issues",
        block=128 * warpgroups, shared_bytes=BARRIER + 64, arguments=_map_and_number,
    )  # fmt: skip


def _map_and_number(gpu: Any) -> list[Any]:
    array = gpu.array(np.zeros((1024, 64), np.float16))
    return [TensorMap(array, box=(64, 64), swizzle="128B"), np.uint32(1)]


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [
        *(among(warps) for warps in WARPS),
        *(copies(warps) for warps in (1, *WARPS)),
        *(copies_under_products(n, groups) for n in COLUMNS for groups in (1, 2)),
    ]

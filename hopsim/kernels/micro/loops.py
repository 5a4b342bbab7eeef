"""Loops that ptxas leaves as they are: what a turn takes, by what is computed in it and what it is left by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, Reg

WARPS: Final = (1, 8)
TURNS: Final = (64, 192)


def loops(warps: int) -> Benchmark:
    """Loops of a whole CTA; a slope is cycles for one turn of each warp."""
    params = [Param("one", ".f32"), *(Param(f"turns{turns}", ".u32") for turns in TURNS)]
    c = Clocked(f"loops_w{warps}", [*params, *(Param(f"limit{turns}", ".f32") for turns in TURNS)])
    one = c.load("one")
    turns_of = {turns: c.load(f"turns{turns}") for turns in TURNS}
    limit_of = {turns: c.load(f"limit{turns}") for turns in TURNS}
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    total, left = c.k.reg(".b32", "total"), c.k.reg(".b32", "left")
    more, below = c.k.reg(".pred", "more"), c.k.reg(".pred", "below")

    def add(times: int) -> None:
        for _ in range(times):
            c.k.emit("add.f32", total, total, one)

    def count() -> None:
        c.k.emit("sub.u32", left, left, 1)
        c.k.emit("setp.ne.u32", more, left, 0)

    def test(turns: int) -> None:
        add(1)
        c.k.emit("setp.lt.f32", more, total, limit_of[turns])

    def test_and_count(turns: int) -> None:
        add(1)
        c.k.emit("setp.lt.f32", below, total, limit_of[turns])
        c.k.emit("sub.u32", left, left, 1)
        c.k.emit("setp.ne.and.u32", more, left, 0, below)

    def chain(adds: int) -> Callable[[int], None]:
        def body(turns: int) -> None:
            del turns
            add(adds)
            count()

        return body

    bodies: dict[str, tuple[Callable[[int], None], bool]] = {
        "a counter": (chain(0), False),
        "a counter beside 2 additions": (chain(2), False),
        "a counter beside 4 additions": (chain(4), False),
        "a counter beside 8 additions": (chain(8), False),
        "a sum": (test, False),
        "a sum and a counter": (test_and_count, False),
        "a counter of each lane": (chain(4), True),
    }
    for label, (body, is_own) in bodies.items():
        for turns in TURNS:

            def run(
                turns: int = turns, body: Callable[[int], None] = body, is_own: bool = is_own
            ) -> Reg:
                c.k.emit("mov.b32", total, 0)
                if is_own:
                    c.k.emit("sub.u32", left, turns_of[turns], lane)
                else:
                    c.k.emit("mov.b32", left, turns_of[turns])
                again = c.k.label("$turn")
                c.k.place(again)
                c.k.pragma("nounroll")
                body(turns)
                c.k.emit("bra", again, guard=more)
                return total

            c.measure(f"left by {label} x{turns}", run, whole_cta=True)

    def arguments(gpu: Any) -> list[Any]:
        del gpu
        return [
            np.float32(1), *(np.uint32(turns) for turns in TURNS), *(np.float32(turns) for turns in TURNS),
        ]  # fmt: skip

    return c.benchmark(
        f"loops of {warps} warps, by what they are left by", block=32 * warps, arguments=arguments
    )


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of this group."""
    return [loops(warps) for warps in WARPS]

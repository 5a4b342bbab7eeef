"""How long after an arrival on an mbarrier whoever waits for it goes on: by how long it has waited, and by who is with it.

Two sides meet at a barrier.  One waits for a phase of an mbarrier, the other one lets some cycles pass and arrives; both
keep the SM clock of the moment.  Of two SMs, whose clocks differ by an unknown time, both wake each other, and the mean is
kept: in it that time is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked, Table, zero_word
from hopsim.kernels.ptx.text import Param, Reg, address

DELAYS: Final = (0, 50, 100, 150, 200, 250, 300, 400, 500, 600, 800, 1000, 1500, 2000, 4000)
"""Cycles that pass before the arrival, and up to 30 more of the loop in which they do."""
LAUNCHES: Final = 20
CHAINS: Final = (8, 40)
WARP: Final = 32


class Waits(StrEnum):
    """Which lanes of a warp wait.

    All; one, while the others wait at a `bar.warp.sync` to meet it; one, while they wait where the branch around it ends;
    one, and the others are gone.
    """

    WHOLE = "whole"
    APART = "apart"
    AROUND = "around"
    ALONE = "alone"


def _since_it_waits(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return when the other side arrives and when who waits goes on, since it began to wait; of three clocks each."""
    del labels
    clocks = table.astype(np.int64)[0].reshape(len(DELAYS), 3)
    found: dict[str, float] = {}
    for delay, (begin, arrival, on) in zip(DELAYS, clocks, strict=True):
        found[f"{delay}, arrival"] = float(arrival - begin)
        found[f"{delay}, goes on"] = float(on - begin)
    return found


def in_cta(waits: Waits) -> Benchmark:
    """A warp wakes another one of its CTA."""
    c = Clocked(f"wake_{waits}", directives=[f".reqntid {2 * WARP}"])
    k = c.k
    warp = k.let(".b32", "warp", "shr.u32", c.thread, 5)
    lane = k.let(".b32", "lane", "and.b32", c.thread, WARP - 1)
    is_lead = k.let(".pred", "lead", "setp.eq.u32", lane, 0)
    is_waiting = k.let(".pred", "waiting", "setp.eq.u32", warp, 1)
    barrier = address(c.shared)
    c.init_barriers([barrier])
    k.emit("bar.sync", 0)
    parity = k.let(".b32", "parity", "mov.u32", 0)
    end = k.label("$end")
    if waits is Waits.ALONE:
        k.emit("bra", end, unless=is_lead)
    for delay in DELAYS:
        k.emit("bar.sync", 0)
        waiting, met = k.label("$waiting"), k.label("$met")
        k.emit("bra", waiting, guard=is_waiting)
        k.emit("bra", met, unless=is_lead)
        c.wait_until(c.clock(), delay)
        arrival = c.clock()
        k.emit("mbarrier.arrive.shared::cta.b64", "_", barrier)
        _keep(c, 1, arrival, is_lead)
        k.emit("bra", met)
        k.place(waiting)
        around = k.label("$around") if waits is Waits.AROUND else met
        if waits in (Waits.APART, Waits.AROUND):
            k.emit("bra", around, unless=is_lead)
        begin = c.clock()
        c.wait_parity(barrier, parity)
        on = c.clock()
        _keep(c, 0, begin, is_lead)
        _keep(c, 2, on, is_lead)
        if waits is Waits.AROUND:
            k.place(around)
            k.emit("st.volatile.shared.u32", address(c.shared, 512), lane)
        k.place(met)
        if waits in (Waits.WHOLE, Waits.APART):
            k.emit("bar.warp.sync", -1)
        k.emit("xor.b32", parity, parity, 1)
        c.labels += [f"{delay} {what}" for what in ("begins to wait", "arrives", "goes on")]
    k.place(end)
    who = {
        Waits.WHOLE: "a warp waits",
        Waits.APART: "a lane waits, the others of its warp for it",
        Waits.AROUND: "a lane waits, the others of its warp where their branch around it ends",
        Waits.ALONE: "a lane waits, the others have exited",
    }[waits]
    return c.benchmark(
        f"from an arrival until whoever waits for it goes on, two warps, {who}; by the cycles before it",
        block=2 * WARP, rows=1, shared_bytes=1024, summary=_since_it_waits,
    )  # fmt: skip


def _both_ways(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean of both directions, of rows of clocks by side."""
    del labels
    clocks = table.astype(np.int64)
    found: dict[str, float] = {}
    for index, delay in enumerate(DELAYS):
        first, second = clocks[:, 2 * index], clocks[:, 2 * index + 1]
        # Side 1 waits first, then side 0.
        found[f"after {delay}"] = float(first[1] - first[0] + second[0] - second[1]) / 2
    return found


def between_ctas(scope: str = "") -> Benchmark:
    """A warp of one CTA of a cluster wakes one of the other CTA, and the other way round.

    Args:
        scope: `.acquire.cluster`, to acquire what the other CTA released.
    """
    c = Clocked("wake_ctas_acquire" if scope else "wake_ctas", directives=[f".reqntid {WARP}"])
    k = c.k
    rank = k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    c.own_row(2 * len(DELAYS))
    barrier = address(c.shared)
    c.init_barriers([barrier])
    other = k.let(".b32", "other", "xor.b32", rank, 1)
    target = k.let(".b32", "target", "mapa.shared::cluster.u32", c.shared, other)
    parity = k.let(".b32", "parity", "mov.u32", 0)
    is_waiting = [k.let(".pred", "waits", "setp.eq.u32", rank, 1 - turn) for turn in range(2)]
    for delay in DELAYS:
        for turn in range(2):
            _meet(c)
            waiting, met = k.label("$waiting"), k.label("$met")
            k.emit("bra", waiting, guard=is_waiting[turn])
            k.emit("bra", met, unless=c.first)
            c.wait_until(c.clock(), delay)
            arrival = c.clock()
            arrive = "mbarrier.arrive.release.cta.shared::cluster.b64"
            k.emit(arrive, "_", address(target))
            _keep(c, 0, arrival, c.first)
            k.emit("bra", met)
            k.place(waiting)
            c.wait_parity(barrier, parity, scope)
            _keep(c, 0, c.clock(), c.first)
            k.place(met)
            k.emit("bar.warp.sync", -1)
            c.labels.append(f"after {delay}, {1 - turn} waits")
        k.emit("xor.b32", parity, parity, 1)
    _meet(c)
    return c.benchmark(
        f"from an arrival until whoever waits for it{scope} goes on, two CTAs, a warp waits; by the cycles before it",
        grid=2, cluster=2, block=WARP, rows=2, shared_bytes=1024, summary=_both_ways, mean_of=LAUNCHES,
    )  # fmt: skip


def _keep(c: Clocked, column: int, clock: Reg, is_lead: Reg) -> None:
    """Store a clock, so many columns after those that have names."""
    c.k.emit(
        "st.global.u64", address(c.results, 8 * (len(c.labels) + column)), clock, guard=is_lead
    )


def _meet(c: Clocked) -> None:
    """Write a barrier of the cluster."""
    c.k.emit("barrier.cluster.arrive.relaxed.aligned")
    c.k.emit("barrier.cluster.wait.aligned")


def states() -> Benchmark:
    """A slope is an arrival whose state the address of the next one waits for, and two steps of arithmetic."""
    c = Clocked("mbarrier_state", [Param("zero", ".u32")])
    zero = c.load("zero")
    c.k.emit("mbarrier.init.shared::cta.b64", address(c.shared), WARP)
    c.k.emit("bar.warp.sync", -1)

    def step(at: Reg) -> Reg:
        state = c.k.reg(".b64", "state")
        c.k.emit("mbarrier.arrive.shared::cta.b64", state, address(at))
        low = c.k.let(".b32", "low", "cvt.u32.u64", state)
        nothing = c.k.let(".b32", "nothing", "and.b32", low, zero)
        return c.k.let(".b32", "at", "add.u32", at, nothing)

    c.chain("arrive, and, add", CHAINS, c.shared, step)
    return c.benchmark(
        "arrivals, each of which waits for the state of the one before, one warp",
        shared_bytes=1024, arguments=zero_word,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [*(in_cta(waits) for waits in Waits), between_ctas(), states()]

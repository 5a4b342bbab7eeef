"""How long after an arrival a thread goes on that has waited for it: by how long it has, and by who arrives.

Two sides meet at a barrier.  One waits for a phase of its mbarrier, the other one lets some cycles pass and arrives; each
keeps the SM clock of the moment.  Of two SMs, whose clocks differ by an unknown time, both wake each other, and the mean is
kept: in it that time is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked, Table
from hopsim.kernels.ptx.text import Reg, address

DELAYS: Final = (0, 50, 100, 150, 200, 250, 300, 400, 500, 600, 800, 1000, 1500, 2000, 4000)
"""Cycles that pass before the arrival, and some 30 more of the loop in which they do."""
LAUNCHES: Final = 20
WARP: Final = 32


@dataclass(frozen=True, slots=True)
class Wake:
    """Who wakes whom.

    Args:
        apart: whether they are on two CTAs of a cluster; else they are two warps of one.
        lanes: that wait: 1 or all of the warp.
        through_cluster: whether a warp of the same CTA arrives through a shared::cluster address.
    """

    apart: bool = False
    lanes: int = 1
    through_cluster: bool = False

    @property
    def name(self) -> str:
        """Of the microbenchmark."""
        way = "_cluster" if self.through_cluster and not self.apart else ""
        return f"wake_{'ctas' if self.apart else 'warps'}{way}_l{self.lanes}"


def _both_ways(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean of both directions, of rows of clocks by side: (2, 2 x delays)."""
    del labels
    clocks = table.astype(np.int64)
    found: dict[str, float] = {}
    for index, delay in enumerate(DELAYS):
        first, second = clocks[:, 2 * index], clocks[:, 2 * index + 1]
        # Side 1 waits first, then side 0.
        found[f"after {delay}"] = float(first[1] - first[0] + second[0] - second[1]) / 2
    return found


def wakes(one: Wake) -> Benchmark:
    """Write one of them."""
    c = Clocked(one.name, directives=[".reqntid 64"])
    k = c.k
    warp = k.let(".b32", "warp", "shr.u32", c.thread, 5)
    rank = k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    side = rank if one.apart else warp
    k.emit("mad.wide.u32", c.results, side, 16 * len(DELAYS), c.results)
    barriers = [address(c.shared, 8 * number) for number in range(2)]
    c.init_barriers(barriers)
    k.emit("bar.sync", 0)
    meet = _meet_as_cluster if one.apart else _meet_as_cta
    lane = k.let(".b32", "lane", "and.b32", c.thread, WARP - 1)
    is_lead = k.let(".pred", "lead", "setp.eq.u32", lane, 0)
    is_spare = k.let(".pred", "spare", "setp.ne.u32", warp, 0) if one.apart else None
    other = k.let(".b32", "other", "xor.b32", side, 1)
    own = c.shared if one.apart else k.let(".b32", "own", "mad.lo.u32", side, 8, c.shared)
    if one.apart:
        target = k.let(".b32", "target", "mapa.shared::cluster.u32", c.shared, other)
    else:
        target = k.let(".b32", "target", "mad.lo.u32", other, 8, c.shared)
        if one.through_cluster:
            k.emit("mapa.shared::cluster.u32", target, target, rank)
    space = "cluster" if one.apart or one.through_cluster else "cta"
    arrive = f"mbarrier.arrive.release.cta.shared::{space}.b64"
    parity = k.let(".b32", "parity", "mov.u32", 0)
    is_waiting = [k.let(".pred", "waits", "setp.eq.u32", side, 1 - turn) for turn in range(2)]
    for delay in DELAYS:
        for turn in range(2):
            meet(c)
            waits, met = k.label("$waits"), k.label("$met")
            if is_spare is not None:
                k.emit("bra", met, guard=is_spare)
            k.emit("bra", waits, guard=is_waiting[turn])
            k.emit("bra", met, unless=is_lead)
            c.wait_until(c.clock(), delay)
            now = c.clock()
            k.emit(arrive, "_", address(target))
            _keep(c, now, is_lead)
            k.emit("bra", met)
            k.place(waits)
            if one.lanes == 1:
                k.emit("bra", met, unless=is_lead)
            c.wait_parity(address(own), parity)
            _keep(c, c.clock(), is_lead)
            k.place(met)
            k.emit("bar.warp.sync", -1)
            c.labels.append(f"after {delay}, side {1 - turn} waits")
        k.emit("xor.b32", parity, parity, 1)
    meet(c)
    who = "two CTAs" if one.apart else "two warps"
    way = ", through shared::cluster" if one.through_cluster and not one.apart else ""
    return c.benchmark(
        f"from an arrival until whoever waits for it goes on, {who}{way}, lanes that wait: {one.lanes}; by the cycles "
        "before it",
        grid=2 if one.apart else 1, cluster=2 if one.apart else 1, block=64, rows=2, shared_bytes=1024,
        summary=_both_ways, mean_of=LAUNCHES,
    )  # fmt: skip


def _keep(c: Clocked, clock: Reg, is_lead: Reg) -> None:
    """Store a clock in the next column of the row."""
    c.k.emit("st.global.u64", address(c.results, 8 * len(c.labels)), clock, guard=is_lead)


def _meet_as_cta(c: Clocked) -> None:
    c.k.emit("bar.sync", 0)


def _meet_as_cluster(c: Clocked) -> None:
    c.k.emit("barrier.cluster.arrive.relaxed.aligned")
    c.k.emit("barrier.cluster.wait.aligned")


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    kinds = [
        Wake(), Wake(lanes=WARP), Wake(through_cluster=True), Wake(apart=True), Wake(apart=True, lanes=WARP),
    ]  # fmt: skip
    return [wakes(one) for one in kinds]

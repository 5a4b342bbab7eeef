"""The first TMA loads of an SM, through tensor maps that it has not used: with and without `prefetch.tensormap` before.

One thread of each CTA prefetches some of three maps, which are parameters, and loads boxes out of device memory through one
or two of them; then boxes beside these through the same maps, which are there now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, means_and_latest
from hopsim.kernels.micro.cold import SETTLE_NS
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

MAPS: Final = ("map_a", "map_b", "map_c")
ROWS: Final = 64
BOX_BYTES: Final = ROWS * ROW_BYTES
COLUMNS: Final = 1024
"""Of each tensor, sixteen boxes."""
CTAS: Final = (1, 8, SMS)
LAUNCHES: Final = 5
FENCE: Final = "fence.proxy.async"
PREFETCHED: Final = (0, 3)


@dataclass(frozen=True, slots=True)
class First:
    """What a CTA does.

    Args:
        ctas: of the grid.
        prefetched: maps that are prefetched, the first ones.
        loaded: maps that boxes are loaded through, the first ones.
    """

    ctas: int
    prefetched: int
    loaded: int

    @property
    def name(self) -> str:
        """A name for a benchmark."""
        return f"first_maps_{self.ctas}_p{self.prefetched}_l{self.loaded}"


def _arguments(ctas: int) -> Callable[[Any], list[Any]]:
    def arguments(gpu: Any) -> list[Any]:
        arrays = (gpu.array(np.zeros((ctas * ROWS, COLUMNS), np.float16)) for _ in MAPS)
        return [TensorMap(array, box=(BOX_K, ROWS), swizzle="128B") for array in arrays]

    return arguments


def first(one: First) -> Benchmark:
    """Return the benchmark: figures are from before the prefetches until the boxes are there."""
    c = Clocked(one.name, [Param(name, ".b8", 128) for name in MAPS], [".reqntid 32"])
    k = c.k
    labels = ["first boxes", "later boxes", "last boxes"]
    c.own_row(len(labels))
    done = c.label_and_leave_but_first()
    places = [c.address_of(name, name) for name in MAPS]
    cta = k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    row = k.let(".b32", "row", "mul.lo.u32", cta, ROWS)
    barrier = address(c.shared, 64 * 1024)
    k.emit("mbarrier.init.shared::cta.b64", barrier, 1)
    k.emit("fence.mbarrier_init.release.cluster")
    k.emit("nanosleep.u32", SETTLE_NS)
    parity = k.let(".b32", "parity", "mov.u32", 0)

    def load(number: int) -> None:
        k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, one.loaded * BOX_BYTES)
        for slot, place in enumerate(places[: one.loaded]):
            k.emit(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
                address(c.shared, slot * BOX_BYTES), f"[{place}, {vector((4 * BOX_K * number, row))}]", barrier,
            )  # fmt: skip
        c.wait_parity(barrier, parity)
        k.emit("xor.b32", parity, parity, 1)

    clocks: list[tuple[Reg, Reg]] = []
    for number in range(len(labels)):
        before = c.clock()
        if number == 0:
            for place in places[: one.prefetched]:
                k.emit("prefetch.tensormap", address(place))
        load(number)
        clocks.append((before, c.clock()))
    for label, (before, after) in zip(labels, clocks, strict=True):
        c.store_since(before, [label], [after])
    c.k.place(done)
    return c.benchmark(
        f"first TMA loads through {one.loaded} maps, {one.prefetched} prefetched, {one.ctas} SMs",
        grid=one.ctas, rows=one.ctas, summary=means_and_latest, shared_bytes=64 * 1024 + 64,
        arguments=_arguments(one.ctas), is_cold=True, mean_of=LAUNCHES,
    )  # fmt: skip


def fenced(ctas: int, prefetched: int) -> Benchmark:
    """A fence behind prefetches of maps that an SM has not used; figures are cycles of `fence.proxy.async`."""
    c = Clocked(
        f"first_maps_proxy_{ctas}_p{prefetched}",
        [Param(one, ".b8", 128) for one in MAPS],
        [".reqntid 32"],
    )
    k = c.k
    labels = ["first fence", "fence behind prefetches", "fence again", "fence behind known maps"]
    c.own_row(len(labels))
    done = c.label_and_leave_but_first()
    places = [c.address_of(one, one) for one in MAPS]
    k.emit("mbarrier.init.shared::cta.b64", address(c.shared), 1)
    k.emit("nanosleep.u32", SETTLE_NS)
    clocks: list[tuple[Reg, Reg]] = []
    for label in labels:
        if "behind" in label:
            for place in places[:prefetched]:
                k.emit("prefetch.tensormap", address(place))
        before = c.clock()
        k.emit(FENCE)
        clocks.append((before, c.clock()))
        k.emit("nanosleep.u32", SETTLE_NS)
    for label, (before, after) in zip(labels, clocks, strict=True):
        c.store_since(before, [label], [after])
    k.place(done)
    return c.benchmark(
        f"{FENCE} behind prefetches of {prefetched} tensor maps, {ctas} SMs",
        grid=ctas, rows=ctas, summary=means_and_latest, shared_bytes=64 * 1024 + 64,
        arguments=_arguments(ctas), is_cold=True, mean_of=LAUNCHES,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        first(First(ctas, prefetched, loaded))
        for ctas in CTAS
        for prefetched in PREFETCHED
        for loaded in (1, 2)
    ]
    return found + [fenced(ctas, prefetched) for ctas in CTAS for prefetched in PREFETCHED]

"""TMA loads of boxes out of device memory: four at once, or one after the other.

One thread of each CTA loads boxes of 64 elements of 16 bits, 128 bytes, by some rows, which nobody has read before.  Means
over CTAs and launches are kept: what delays single boxes is what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Table, means_and_latest
from hopsim.kernels.micro.streams import SLOTS_BYTES
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

AT_ONCE: Final = 4
SETTLE_NS: Final = 2000
"""Until the tensor map is there."""
LAUNCHES: Final = {1: 20, 16: 10}
"""By the number of CTAs; of more CTAs as many as for others."""
USUAL_LAUNCHES: Final = 5


@dataclass(frozen=True, slots=True)
class Cold:
    """Which boxes each CTA loads: along K, then of the next rows.

    Args:
        rows: of a box.
        pitch_bytes: from one row of the tensor to the next.
        count: boxes.
        step: from one box to the next, in boxes.
        promotion: L2 promotion of the tensor map.
    """

    rows: int
    pitch_bytes: int
    count: int
    step: int = 1
    promotion: str = "none"

    @property
    def along_k(self) -> int:
        """Boxes of the same rows."""
        return self.pitch_bytes // ROW_BYTES // self.step

    @property
    def blocks(self) -> int:
        """Boxes above each other."""
        return -(-self.count // self.along_k)

    @property
    def box_bytes(self) -> int:
        """Shared bytes of a box."""
        return self.rows * ROW_BYTES


def _map(cold: Cold, ctas: int) -> Callable[[Any], list[Any]]:
    shape = (ctas * cold.rows * cold.blocks, cold.pitch_bytes // 2)

    def arguments(gpu: Any) -> list[Any]:
        array = gpu.array(np.zeros(shape, np.float16))
        return [
            TensorMap(array, box=(BOX_K, cold.rows), swizzle="128B", l2_promotion=cold.promotion)
        ]  # fmt: skip

    return arguments


class _Loads:
    """The kernel up to its first load: one thread goes on, with barriers and a tensor map that is there."""

    def __init__(self, name: str, cold: Cold, barriers: int, columns: int) -> None:
        self.c = c = Clocked(name, [Param("map", ".b8", 128)], [".reqntid 32"])
        c.own_row(columns)
        self.done = c.label_and_leave_but_first()
        self.place = c.address_of("map", "map")
        c.k.emit("prefetch.tensormap", address(self.place))
        cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
        first = c.k.let(".b32", "first_row", "mul.lo.u32", cta, cold.rows * cold.blocks)
        self.rows = [first]
        for block in range(1, cold.blocks):
            self.rows.append(c.k.let(".b32", "row", "add.u32", first, cold.rows * block))
        self.cold = cold
        self.barriers = [address(c.shared, SLOTS_BYTES + 8 * slot) for slot in range(barriers)]
        for barrier in self.barriers:
            c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1)
        c.k.emit("fence.mbarrier_init.release.cluster")
        c.k.emit("nanosleep.u32", SETTLE_NS)

    def issue(self, number: int, slot: int) -> None:
        """Write the load of a box into a slot."""
        k, cold, barrier = self.c.k, self.cold, self.barriers[slot]
        row = self.rows[number // cold.along_k]
        at = vector((BOX_K * cold.step * (number % cold.along_k), row))
        k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, cold.box_bytes)
        k.emit(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            address(self.c.shared, slot * cold.box_bytes), f"[{self.place}, {at}]", barrier,
        )  # fmt: skip

    def finish(self, what: str, ctas: int, summary: Callable[..., dict[str, float]]) -> Benchmark:
        """Return the benchmark."""
        c = self.c
        c.k.place(self.done)
        return c.benchmark(
            what, grid=ctas, rows=ctas, summary=summary, shared_bytes=SLOTS_BYTES + 64,
            arguments=_map(self.cold, ctas), is_cold=True, mean_of=LAUNCHES.get(ctas, USUAL_LAUNCHES),
        )  # fmt: skip


def at_once(ctas: int, rows: int, pitch_bytes: int) -> Benchmark:
    """Four boxes side by side are asked for at once; each figure is from the first request until a box is there."""
    cold = Cold(rows, pitch_bytes, AT_ONCE)
    loads = _Loads(f"cold_boxes_{ctas}_{rows}r_p{pitch_bytes}", cold, AT_ONCE, AT_ONCE)
    c = loads.c
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    before = c.clock()
    for number in range(AT_ONCE):
        loads.issue(number, number)
    clocks: list[Reg] = []
    for barrier in loads.barriers:
        c.wait_parity(barrier, parity)
        clocks.append(c.clock())
    c.store_since(before, [f"box {number}" for number in range(AT_ONCE)], clocks)
    return loads.finish(
        f"{AT_ONCE} TMA loads at once out of device memory, {ctas} SMs, boxes of {rows} rows {pitch_bytes} bytes apart",
        ctas, means_and_latest,
    )  # fmt: skip


def _first_and_later(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean of the first box, and mean and median of the others."""
    del labels
    values = table.astype(np.float64)
    later = values[:, 1:]
    return {
        "first box": round(float(values[:, 0].mean()), 2), "later boxes": round(float(later.mean()), 2),
        "later boxes, median": float(np.median(later)),
    }  # fmt: skip


def _by_half(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return means of the boxes that begin 256 bytes of each row, but for the first, and of those that end them."""
    del labels
    values = table.astype(np.float64)
    return {
        "first halves": round(float(values[:, 2::2].mean()), 2),
        "second halves": round(float(values[:, 1::2].mean()), 2),
    }


def one_after_the_other(ctas: int, cold: Cold) -> Benchmark:
    """Each box is asked for when the one before is there."""
    name = f"cold_chain_{ctas}_{cold.rows}r_p{cold.pitch_bytes}_step{cold.step}"
    promoted = cold.promotion != "none"
    if promoted:
        name += f"_l2_{cold.promotion}"
    loads = _Loads(name, cold, 1, cold.count)
    c = loads.c
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    clocks = [c.clock()]
    for number in range(cold.count):
        loads.issue(number, 0)
        c.wait_parity(loads.barriers[0], parity)
        c.k.emit("xor.b32", parity, parity, 1)
        clocks.append(c.clock())
    c.store_laps([f"box {number}" for number in range(cold.count)], clocks)
    return loads.finish(
        f"TMA loads one after the other out of device memory, {ctas} SMs, {cold.count} boxes of {cold.rows} rows "
        f"{cold.pitch_bytes} bytes apart, each {cold.step} on" + (f", L2 promotion {cold.promotion}" if promoted else ""),
        ctas, _by_half if promoted else _first_and_later,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        at_once(ctas, rows, pitch)
        for pitch in (1024, 2048, 8192) for rows in (64, 128, 256) for ctas in (1, 16, 64, SMS)
    ]  # fmt: skip
    chains = (
        Cold(128, 128, 8), Cold(16, 1024, 8), Cold(16, 8192, 16), Cold(16, 8192, 16, 4), Cold(128, 1024, 8),
        Cold(128, 2048, 16), Cold(128, 8192, 16), Cold(128, 8192, 16, 4), Cold(256, 2048, 16),
    )  # fmt: skip
    found += [one_after_the_other(ctas, cold) for cold in chains for ctas in (1, 16, 64)]
    found += [
        one_after_the_other(ctas, Cold(rows, 8192, 16, promotion="256B"))
        for rows in (32, 64, 128) for ctas in (1, 16, 64, SMS)
    ]  # fmt: skip
    found += [one_after_the_other(ctas, Cold(64, 8192, 16, promotion="128B")) for ctas in (1, SMS)]
    found += [
        one_after_the_other(ctas, Cold(rows, 8192, 16)) for rows in (32, 64) for ctas in (1, SMS)
    ]
    return found

"""L2 read and written at the same time: CTAs that load by TMA beside CTAs that store.

Every other CTA, one an SM, loads its own part of a tensor again and again; those between store to parts of their own, by
TMA or by threads.  What either kind moves alone is measured in `streams`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Table
from hopsim.kernels.micro.streams import KIB, ROW_BYTES
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

THREADS: Final = 256
BOX_ROWS: Final = 128
BOX_BYTES: Final = BOX_ROWS * ROW_BYTES
STAGES: Final = 4
SHARED_BYTES: Final = STAGES * BOX_BYTES
PART_BYTES: Final = 256 * KIB
"""Of each CTA, whether it loads or stores."""
UNROLL: Final = 8
LABELS: Final = ("loads", "stores")


def _halves(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean time of the CTAs that load and of those that store."""
    del labels
    times = table[:, 0].astype(np.float64)
    return {
        label: round(float(times[kind::2].mean()), 2)
        for kind, label in enumerate(LABELS)
        if times[kind::2].any()
    }


def both_ways(stores: str, loads: int, stored: int, ctas: int = SMS) -> Benchmark:
    """Half of the CTAs load, half of them store.

    Args:
        stores: "tma", by one thread in boxes, or "threads", 16 bytes each.
        loads: how often a CTA loads its part; 0: it has left already.
        stored: how often a CTA stores its part; 0: it has left already.
    """
    name = f"both_ways_{stores}_{ctas}_l{loads}_s{stored}"
    c = Clocked(name, [Param("map", ".b8", 128), Param("data", ".u64")], [f".reqntid {THREADS}"])
    c.own_row(1)
    place = c.address_of("map", "map")
    cta = c.k.let(".b32", "number", "mov.u32", "%ctaid.x")
    kind = c.k.let(".b32", "kind", "and.b32", cta, 1)
    storing = c.k.let(".pred", "storing", "setp.eq.u32", kind, 1)
    first_row = c.k.let(".b32", "first_row", "mul.lo.u32", cta, PART_BYTES // ROW_BYTES)
    row, left = c.k.reg(".b32", "at"), c.k.reg(".b32", "left")
    more = c.k.reg(".pred", "more")
    store, done = c.k.label("$store"), c.k.label("$done")
    barriers = [address(c.shared, SHARED_BYTES + 8 * slot) for slot in range(STAGES)]
    c.init_barriers(barriers)
    c.k.emit("bar.sync", 0)
    c.k.emit("bra", store, guard=storing)

    c.k.emit("bra", done, unless=c.first)
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    _loads(c, place, first_row, row, left, more, barriers, parity, loads)
    c.k.emit("bra", done)

    c.k.place(store)
    if stores == "tma":
        c.k.emit("bra", done, unless=c.first)
        _box_stores(c, place, first_row, row, left, more, stored)
    else:
        _thread_stores(c, cta, left, more, stored)
    c.k.place(done)

    def arguments(gpu: Any) -> list[Any]:
        array = gpu.array(np.zeros((ctas * PART_BYTES // ROW_BYTES, ROW_BYTES // 2), np.float16))
        return [TensorMap(array, box=(ROW_BYTES // 2, BOX_ROWS), swizzle="128B"), array]

    half = float(ctas // 2 * PART_BYTES)
    return c.benchmark(
        f"{ctas // 2} CTAs load {loads} and {ctas // 2} store {stored} times 256 KiB in L2, by {stores}",
        grid=ctas, block=THREADS, rows=ctas, summary=_halves, shared_bytes=200 * KIB, arguments=arguments,
        amounts={label: half * times for label, times in zip(LABELS, (loads, stored), strict=True) if times},
    )  # fmt: skip


def _loads(
    c: Clocked,
    place: Reg,
    first_row: Reg,
    row: Reg,
    left: Reg,
    more: Reg,
    barriers: Sequence[str],
    parity: Reg,
    times: int,
) -> None:
    """Write a walk that brings the part into L2, and the one that is measured."""
    boxes = PART_BYTES // BOX_BYTES
    behind = c.k.let(".b32", "behind", "add.u32", first_row, PART_BYTES // ROW_BYTES)
    ends = c.k.reg(".pred", "ends")

    def issue(slot: int) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barriers[slot], BOX_BYTES)
        c.k.emit(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            address(c.shared, slot * BOX_BYTES), f"[{place}, {{0, {row}}}]", barriers[slot],
        )  # fmt: skip
        c.k.emit("add.u32", row, row, BOX_ROWS)
        c.k.emit("setp.eq.u32", ends, row, behind)
        c.k.emit("selp.b32", row, first_row, row, ends)

    def walk(walks: int) -> None:
        c.k.emit("mov.u32", row, first_row)
        c.walk_ring(barriers, parity, walks * boxes // STAGES, issue, left, more)

    if times:
        walk(1)
        _time(c, lambda: walk(times))


def _box_stores(
    c: Clocked, place: Reg, first_row: Reg, row: Reg, left: Reg, more: Reg, times: int
) -> None:
    """Write a walk of TMA stores, and the one that is measured."""
    boxes = PART_BYTES // BOX_BYTES
    again = c.k.reg(".b32", "again")
    others = c.k.reg(".pred", "others")

    def walk(walks: int) -> None:
        c.k.emit("mov.u32", again, walks)
        with c.k.loop(again, others, "$again"):
            c.k.emit("mov.u32", row, first_row)
            c.k.emit("mov.u32", left, boxes)
            with c.k.loop(left, more, "$walk"):
                c.k.emit(
                    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
                    f"[{place}, {{0, {row}}}]", address(c.shared),
                )  # fmt: skip
                c.k.emit("cp.async.bulk.commit_group")
                c.k.emit("cp.async.bulk.wait_group.read", STAGES - 1)
                c.k.emit("add.u32", row, row, BOX_ROWS)
        c.k.emit("cp.async.bulk.wait_group", 0)

    if times:
        walk(1)
        _time(c, lambda: walk(times))


def _thread_stores(c: Clocked, cta: Reg, left: Reg, more: Reg, times: int) -> None:
    """Write a walk of stores by all threads, and the one that is measured, with a fence behind it."""
    base = c.load("data", ".b64", "ld.param.u64")
    c.k.emit("mad.wide.u32", base, cta, PART_BYTES, base)
    c.k.emit("mad.wide.u32", base, c.thread, 16, base)
    at, step = c.k.reg(".b64", "to"), THREADS * 16 * UNROLL
    again, others = c.k.reg(".b32", "again"), c.k.reg(".pred", "others")

    def walk(walks: int) -> None:
        c.k.emit("mov.u32", again, walks)
        with c.k.loop(again, others, "$again"):
            c.k.emit("mov.u64", at, base)
            c.k.emit("mov.u32", left, PART_BYTES // step)
            with c.k.loop(left, more, "$walk"):
                for index in range(UNROLL):
                    c.k.emit(
                        "st.global.cg.v4.b32", address(at, index * THREADS * 16),
                        vector((c.thread, c.thread, c.thread, c.thread)),
                    )  # fmt: skip
                c.k.emit("add.u64", at, at, step)
        c.k.emit("fence.acq_rel.gpu")
        c.k.emit("bar.sync", 1, THREADS)

    if times:
        walk(1)
        _time(c, lambda: walk(times))


def _time(c: Clocked, body: Callable[[], None]) -> None:
    """Measure what a CTA does; whether it loads or stores, its time is the only figure of its row."""
    before = c.clock()
    body()
    after = c.clock()
    c.k.emit("sub.u64", after, after, before)
    c.labels.clear()
    c.store("time", after)


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of loads beside stores."""
    return [
        both_ways(stores, loads, stored)
        for stores in ("tma", "threads")
        for loads, stored in ((4, 0), (0, 2), (4, 2))
    ]

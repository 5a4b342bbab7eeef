"""Latency of TMA loads and stores against the size of the box, L2 cold and warm; requests in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, Reg, address
from hopsim.launch.arrays import TensorMap

WIDTH = 64
"""Elements of 16 bits in a row of a box: 128 bytes, with the 128-byte swizzle."""
ROWS = (8, 32, 64, 128, 256)
STORES, STORED_ROWS = 8, 64
"""Of each warp; 8 KiB each."""
UNALIGNED = (2832, 2848, 2880, 2944)
"""Bytes from row to row that are 16, 32, 64 and 0 more than lines of 128 bytes."""
TENSOR_ROWS = 1 << 18
"""Rows of the tensor: 32 MiB."""


def _maps(rows: int, pitch_bytes: int = 2 * WIDTH) -> Callable[[Any], list[Any]]:
    def arguments(gpu: Any) -> list[Any]:
        width = pitch_bytes // 2
        array = gpu.array(np.zeros((TENSOR_ROWS * WIDTH // width, width), np.float16))
        return [TensorMap(array, box=(WIDTH, rows), swizzle="128B")]

    return arguments


def _start(c: Clocked) -> tuple[Reg, str, Reg]:
    """Return the generic address of the map, the operand of the mbarrier, and the parity register."""
    place = c.address_of("map", "map")
    barrier = address(c.shared, 200 * 1024)
    c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1)
    c.k.emit("fence.mbarrier_init.release.cluster")
    return place, barrier, c.k.let(".b32", "parity", "mov.u32", 0)


def _wait(c: Clocked, barrier: str, parity: Reg) -> None:
    done = c.k.reg(".pred", "done")
    again = c.k.label("$again")
    c.k.place(again)
    c.k.emit("mbarrier.try_wait.parity.shared::cta.b64", done, barrier, parity)
    c.k.emit("bra", again, unless=done)
    c.k.emit("xor.b32", parity, parity, 1)


def load(rows: int) -> Benchmark:
    """TMA loads of one box by one thread, from issue to the mbarrier's phase."""
    c = Clocked(f"tma_load_{rows}", [Param("map", ".b8", 128)])
    place, barrier, parity = _start(c)
    size = rows * WIDTH * 2

    def fetch(row: int, count: int = 1) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, size * count)
        for index in range(count):
            c.k.emit(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
                address(c.shared, index * size), f"[{place}, {{0, {row + index * rows}}}]", f"[{barrier[1:-1]}]",
            )  # fmt: skip
        _wait(c, barrier, parity)

    c.measure("first load", lambda: fetch(0))
    for number in range(3):
        c.measure(f"again {number}", lambda: fetch(0))
    for number in range(4):
        c.measure(f"L2 miss {number}", lambda number=number: fetch((number + 1) * 16384))
    for number in range(4):
        c.measure(f"L2 hit {number}", lambda number=number: fetch((number + 1) * 16384))
    most = min(8, 192 * 1024 // size)
    for count in (count for count in (2, 4, 8) if count <= most):
        c.measure(
            f"L2 miss, {count} boxes", lambda count=count: fetch(131072 + 8192 * count, count)
        )
        c.measure(f"L2 hit, {count} boxes", lambda count=count: fetch(131072 + 8192 * count, count))
    return c.benchmark(
        f"TMA load of {size} bytes", block=1, shared_bytes=200 * 1024 + 64, arguments=_maps(rows)
    )


def store(rows: int) -> Benchmark:
    """TMA stores of one box by one thread: until its source may be reused, and until it is done."""
    c = Clocked(f"tma_store_{rows}", [Param("map", ".b8", 128)])
    place, _, _ = _start(c)
    size = rows * WIDTH * 2

    def put(row: int, wait: str) -> None:
        c.k.emit(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
            f"[{place}, {{0, {row}}}]", address(c.shared),
        )  # fmt: skip
        c.k.emit("cp.async.bulk.commit_group")
        c.k.emit(wait, 0)

    for name, wait in (
        ("read", "cp.async.bulk.wait_group.read"),
        ("done", "cp.async.bulk.wait_group"),
    ):
        for number in range(3):
            c.measure(
                f"{name} {number}", lambda number=number, wait=wait: put(number * 16384, wait)
            )
    return c.benchmark(
        f"TMA store of {size} bytes", block=1, shared_bytes=200 * 1024 + 64, arguments=_maps(rows)
    )


def stores_of_warps(warps: int, depth: int, pitch_bytes: int) -> Benchmark:
    """TMA stores by one thread of each of some warps, as consumer warpgroups write their parts of a tile.

    Args:
        depth: of a warp, stores whose source is not yet read.
        pitch_bytes: from a row of 128 bytes to the next.
    """
    c = Clocked(
        f"tma_store_64_w{warps}_d{depth}_p{pitch_bytes}", [Param("map", ".b8", 128)],
        [f".reqntid {32 * warps}"],
    )  # fmt: skip
    place = c.address_of("map", "map")
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    leads = c.k.let(".pred", "leads", "setp.eq.u32", lane, 0)
    source = c.k.let(".b32", "source", "mad.lo.u32", warp, STORED_ROWS * WIDTH * 2, c.shared)
    first_row = c.k.let(".b32", "first_row", "mul.lo.u32", warp, STORES * STORED_ROWS)

    def put() -> None:
        idle = c.k.label("$idle")
        c.k.emit("bra", idle, unless=leads)
        row = c.k.let(".b32", "row", "mov.u32", first_row)
        for _ in range(STORES):
            c.k.emit(
                "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
                f"[{place}, {{0, {row}}}]", address(source),
            )  # fmt: skip
            c.k.emit("cp.async.bulk.commit_group")
            c.k.emit("cp.async.bulk.wait_group.read", depth - 1)
            c.k.emit("add.u32", row, row, STORED_ROWS)
        c.k.emit("cp.async.bulk.wait_group.read", 0)
        c.k.place(idle)

    for number in range(3):
        c.measure(f"stores {number}", put, whole_cta=True)
    return c.benchmark(
        f"{STORES} TMA stores of {STORED_ROWS * WIDTH * 2} bytes by each of {warps} warps, {depth} unread, "
        f"rows {pitch_bytes} bytes apart",
        block=32 * warps, shared_bytes=200 * 1024 + 64, arguments=_maps(STORED_ROWS, pitch_bytes),
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all copy benchmarks."""
    return [
        *(load(rows) for rows in ROWS),
        *(store(rows) for rows in (8, 64, 256)),
        *(
            stores_of_warps(warps, depth, pitch)
            for pitch, warps in ((128, 1), (128, 2), (128, 4), (8192, 2))
            for depth in (1, 2)
        ),
        *(stores_of_warps(1, 2, pitch) for pitch in UNALIGNED),
    ]

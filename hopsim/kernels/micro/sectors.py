"""What device memory brings besides the sectors that are asked for: sectors of 256 bytes read one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked, zeros
from hopsim.kernels.micro.tiles import LOAD
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

SECTOR_BYTES: Final = 32
SECTORS: Final = 8
PLACES: Final = 64
"""Pieces of 256 bytes, each read sector by sector."""
PITCH: Final = 4096
LAUNCHES: Final = 5
SHARED_BYTES: Final = 512
ORDERS: Final = {
    "up": tuple(range(SECTORS)),
    "down": tuple(reversed(range(SECTORS))),
    "odd": (1, 0, 3, 2, 5, 4, 7, 6),
}
LOADS: Final = {
    "ca": "ld.global.ca.b32", "cg": "ld.global.cg.b32", "ca_l2_64": "ld.global.L2::64B.b32",
    "ca_l2_128": "ld.global.L2::128B.b32", "ca_l2_256": "ld.global.L2::256B.b32",
}  # fmt: skip
COPIES: Final = {
    "copy_ca": ("cp.async.ca.shared.global", 4), "copy_cg": ("cp.async.cg.shared.global", 16),
    "copy_cg_l2_128": ("cp.async.cg.shared.global.L2::128B", 16),
}  # fmt: skip
PROMOTIONS: Final = ("none", "64B", "128B", "256B")
ITEM_BYTES: Final = 2
BARRIER: Final = 256


def sectors(how: str, order: str) -> Benchmark:
    """Time each sector of 256 bytes that are cold, in some order; the mean of many pieces.

    Args:
        how: of `LOADS` and `COPIES`.
        order: of `ORDERS`.
    """
    c = Clocked(f"cold_sectors_{how}_{order}", [Param("data", ".u64")], [".reqntid 32"])
    at = c.load("data", ".b64", "ld.param.u64")
    # The page is known before what is timed.
    c.keep(c.k.let(".b32", "page", "ld.global.cg.b32", address(at, PITCH * PLACES)))
    _time_pieces(
        c, order,
        lambda sector: c.keep(_brought(c, how, address(at, sector * SECTOR_BYTES))),
        lambda: c.k.emit("add.u64", at, at, PITCH),
    )  # fmt: skip
    return c.benchmark(
        f"sectors out of device memory, one after the other: {how}, {order}",
        arguments=zeros(PITCH * (PLACES + 1)), shared_bytes=SHARED_BYTES, is_cold=True, mean_of=LAUNCHES,
    )  # fmt: skip


def boxes(promotion: str, order: str) -> Benchmark:
    """The same with TMA boxes of a sector.

    Args:
        promotion: to L2, of the tensor map.
        order: of `ORDERS`.
    """
    c = Clocked(
        f"cold_sectors_tma_l2_{promotion.lower()}_{order}", [Param("data", ".b8", 128)], [".reqntid 32"]
    )  # fmt: skip
    place = c.address_of("data", "place")
    barrier = address(c.shared, BARRIER)
    c.init_barriers([barrier])
    done = c.label_and_leave_but_first()
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    row = c.k.let(".b32", "row", "mov.u32", PLACES)
    columns = {
        sector: c.k.let(".b32", "column", "mov.u32", sector * SECTOR_BYTES // ITEM_BYTES)
        for sector in ORDERS[order]
    }

    def bring(sector: int) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, SECTOR_BYTES)
        c.k.emit(LOAD, address(c.shared), f"[{place}, {vector((columns[sector], row))}]", barrier)
        c.wait_parity(barrier, parity)
        c.k.emit("xor.b32", parity, parity, 1)

    # The map and the page are known before what is timed.
    bring(ORDERS[order][0])
    c.k.emit("mov.u32", row, 0)
    _time_pieces(c, order, bring, lambda: c.k.emit("add.u32", row, row, 1))
    c.k.place(done)

    def arguments(gpu: Any) -> list[Any]:
        data = gpu.array(np.zeros((PLACES + 1, PITCH // ITEM_BYTES), np.float16))
        return [TensorMap(data, box=(SECTOR_BYTES // ITEM_BYTES, 1), l2_promotion=promotion)]

    return c.benchmark(
        f"boxes of a sector out of device memory, one after the other: L2 promotion {promotion}, {order}",
        arguments=arguments, shared_bytes=SHARED_BYTES, is_cold=True, mean_of=LAUNCHES,
    )  # fmt: skip


def _time_pieces(
    c: Clocked, order: str, bring: Callable[[int], None], advance: Callable[[], None]
) -> None:
    """Write a walk over all pieces and store the mean time of each sector.

    Args:
        bring: writes what brings a sector of the piece and waits for it.
        advance: writes what goes on to the next piece.
    """
    sums = [c.k.let(".b64", "sum", "mov.u64", 0) for _ in range(SECTORS)]
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    c.k.emit("mov.u32", left, PLACES)
    with c.k.loop(left, more, "$piece"):
        for sector, total in zip(ORDERS[order], sums, strict=True):
            before = c.clock()
            bring(sector)
            after = c.clock()
            c.k.emit("sub.u64", after, after, before)
            c.k.emit("add.u64", total, total, after)
        advance()
    for sector, total in zip(ORDERS[order], sums, strict=True):
        c.k.emit("div.u64", total, total, PLACES)
        c.store(f"sector {sector}", total)


def _brought(c: Clocked, how: str, place: str) -> Reg:
    """Write a load; return a register that is there when it is."""
    if how in LOADS:
        return c.k.let(".b32", "value", LOADS[how], place)
    opcode, size = COPIES[how]
    to = c.k.let(".b32", "to", "mad.lo.u32", c.thread, size, c.shared)
    c.k.emit(opcode, address(to), place, size)
    c.k.emit("cp.async.commit_group")
    c.k.emit("cp.async.wait_group", 0)
    return c.k.let(".b32", "value", "ld.shared.b32", address(to))


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [sectors(how, order) for how in (*LOADS, *COPIES) for order in ORDERS]
    return found + [boxes(promotion, order) for promotion in PROMOTIONS for order in ORDERS]

"""Bulk copies that all lanes of a warp execute: one for each lane, or one for all that give the same operands."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, Reg, address
from hopsim.launch.arrays import TensorMap

WIDTH: Final = 64
"""Elements of 16 bits in a row."""
ROWS: Final = 8
BOX_BYTES: Final = 2 * WIDTH * ROWS
BARRIER: Final = 32 * BOX_BYTES
PLACES: Final = {
    "one lane": 1,
    "all lanes, one place": 1,
    "all lanes, 2 places": 2,
    "all lanes, 32 places": 32,
}
"""Of a case the boxes that its lanes name."""


def _arguments(gpu: Any) -> list[Any]:
    array = gpu.array(np.zeros((32 * ROWS, WIDTH), np.float16))
    return [TensorMap(array, box=(WIDTH, ROWS)), array]


def issued() -> Benchmark:
    """Copies of 1 KiB by a warp, until all of them are done."""
    c = Clocked("issued_by_a_warp", [Param("map", ".b8", 128), Param("array", ".u64")])
    k = c.k
    place = c.address_of("map", "map")
    array = k.let(".b64", "array", "ld.param.u64", "[array]")
    barrier = address(c.shared, BARRIER)
    c.init_barriers([barrier])
    k.emit("bar.warp.sync", -1)
    parity = k.let(".b32", "parity", "mov.u32", 0)

    def measure(what: str, copy: Any, load: bool = False) -> None:
        for case, places in PLACES.items():
            lanes = "one" if case == "one lane" else "all"
            number = k.let(".b32", "number", "and.b32", c.thread, places - 1)
            row = k.let(".b32", "row", "mul.lo.u32", number, ROWS)
            inner = k.let(".b32", "inner", "mad.lo.u32", number, BOX_BYTES, c.shared)
            outer = k.let(".b64", "outer", "mad.wide.u32", number, BOX_BYTES, array)

            def run(
                lanes: str = lanes, row: Reg = row, inner: Reg = inner, outer: Reg = outer
            ) -> None:
                guard = c.first if lanes == "one" else None
                if load:
                    arrived = BOX_BYTES * (1 if lanes == "one" else 32)
                    k.emit(
                        "mbarrier.arrive.expect_tx.shared::cta.b64",
                        "_",
                        barrier,
                        arrived,
                        guard=c.first,
                    )
                copy(row, inner, outer, guard)
                if load:
                    c.wait_parity(barrier, parity)
                    k.emit("xor.b32", parity, parity, 1)
                else:
                    k.emit("cp.async.bulk.commit_group")
                    k.emit("cp.async.bulk.wait_group", 0)

            c.measure(f"{what}, {case}", run, whole_cta=True)

    def box_out(row: Reg, inner: Reg, outer: Reg, guard: Reg | None) -> None:
        k.emit(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
            f"[{place}, {{0, {row}}}]",
            address(inner),
            guard=guard,
        )

    def box_added(row: Reg, inner: Reg, outer: Reg, guard: Reg | None) -> None:
        k.emit(
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group",
            f"[{place}, {{0, {row}}}]",
            address(inner),
            guard=guard,
        )

    def bytes_out(row: Reg, inner: Reg, outer: Reg, guard: Reg | None) -> None:
        k.emit(
            "cp.async.bulk.global.shared::cta.bulk_group",
            address(outer),
            address(inner),
            BOX_BYTES,
            guard=guard,
        )

    def box_in(row: Reg, inner: Reg, outer: Reg, guard: Reg | None) -> None:
        k.emit(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            address(inner),
            f"[{place}, {{0, {row}}}]",
            barrier,
            guard=guard,
        )

    measure("tensor store", box_out)
    measure("bulk store", bytes_out)
    measure("tensor reduction", box_added)
    measure("tensor load", box_in, load=True)
    return c.benchmark(
        "copies that a whole warp issues", block=32, shared_bytes=BARRIER + 64, arguments=_arguments
    )


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [issued()]

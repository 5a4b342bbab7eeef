"""Bulk copies that all lanes of a warp execute: one for each lane, or one for all that give the same operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, address
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

    def measure(what: str, words: str, given: Sequence[str], load: bool = False) -> None:
        for case, places in PLACES.items():
            lanes = "one" if case == "one lane" else "all"
            number = k.let(".b32", "number", "and.b32", c.thread, places - 1)
            row = k.let(".b32", "row", "mul.lo.u32", number, ROWS)
            inner = k.let(".b32", "inner", "mad.lo.u32", number, BOX_BYTES, c.shared)
            outer = k.let(".b64", "outer", "mad.wide.u32", number, BOX_BYTES, array)

            operands = {
                "box": f"[{place}, {{0, {row}}}]",
                "inner": address(inner),
                "outer": address(outer),
            }

            def run(lanes: str = lanes, operands: dict[str, str] = operands) -> None:
                guard = c.first if lanes == "one" else None
                if load:
                    arrived = BOX_BYTES * (1 if lanes == "one" else 32)
                    expect = "mbarrier.arrive.expect_tx.shared::cta.b64"
                    k.emit(expect, "_", barrier, arrived, guard=c.first)
                k.emit(words, *(operands.get(one, one) for one in given), guard=guard)
                if load:
                    c.wait_parity(barrier, parity)
                    k.emit("xor.b32", parity, parity, 1)
                else:
                    k.emit("cp.async.bulk.commit_group")
                    k.emit("cp.async.bulk.wait_group", 0)

            c.measure(f"{what}, {case}", run, whole_cta=True)

    to_global = "global.shared::cta"
    measure("tensor store", f"cp.async.bulk.tensor.2d.{to_global}.bulk_group", ("box", "inner"))
    measure(
        "bulk store", f"cp.async.bulk.{to_global}.bulk_group", ("outer", "inner", str(BOX_BYTES))
    )
    measure(
        "tensor reduction",
        f"cp.reduce.async.bulk.tensor.2d.{to_global}.add.bulk_group",
        ("box", "inner"),
    )
    measure(
        "tensor load", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
        ("inner", "box", barrier), load=True,
    )  # fmt: skip
    return c.benchmark(
        "copies that a whole warp issues", block=32, shared_bytes=BARRIER + 64, arguments=_arguments
    )


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [issued()]

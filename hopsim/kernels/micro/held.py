"""Hits in L2 by one SM while others load out of device memory: do misses of some hold what others find there?

Every SM has a CTA.  That of SM 0 loads what L2 has, over and over: a TMA box, or a word of eight lines in turn, 4 KiB apart,
whose homes lie in both halves of L2.  Those of the SMs up to a number load cold boxes one after the other, from before the
first hit until after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES, SPARE_BYTES, SPREAD_LAUNCHES
from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Table
from hopsim.kernels.micro.streams import KIB, SLOTS_BYTES
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

HITS: Final = 64
LINES: Final = 8
LINE_STEP_BYTES: Final = 4 * KIB
WARM_UPS: Final = 4
BOXES: Final = 60
"""Of an SM that misses: what the longest hits take is less."""
BEFORE_MISSES_NS: Final = 2000
BEFORE_HITS_NS: Final = 4000


@dataclass(frozen=True, slots=True)
class Misses:
    """What other SMs load.

    Args:
        sms: those with a number below this one, but for SM 0.
        rows: of a box.
        pitch_bytes: from one row to the next.
        promotion: L2 promotion of the tensor map.
    """

    sms: int
    rows: int
    pitch_bytes: int = 8 * KIB
    promotion: str = "none"

    @property
    def name(self) -> str:
        """What names of benchmarks call them."""
        promoted = "" if self.promotion == "none" else f"_l2_{self.promotion}"
        return f"{self.sms - 1}_{self.rows}r_p{self.pitch_bytes}{promoted}"

    @property
    def what(self) -> str:
        """The same in words."""
        promoted = "" if self.promotion == "none" else f", L2 promotion {self.promotion}"
        others = f"{self.sms - 1} SMs that load" if self.sms > 2 else "an SM that loads"
        boxes = f"cold boxes of {self.rows} rows {self.pitch_bytes} bytes apart{promoted}"
        return f"beside {others} {boxes}" if self.sms > 1 else "nothing beside"

    @property
    def along_k(self) -> int:
        """Boxes of the same rows."""
        return self.pitch_bytes // ROW_BYTES

    @property
    def blocks(self) -> int:
        """Boxes above each other, of one SM."""
        return -(-BOXES // self.along_k)


def _arguments(misses: Misses) -> Callable[[Any], list[Any]]:
    """Return what makes the tensor map, of rows for each SM, and the words."""

    def arguments(gpu: Any) -> list[Any]:
        rows, pitch = SMS * misses.rows * misses.blocks, misses.pitch_bytes
        words = gpu.array(np.zeros(LINES * LINE_STEP_BYTES // 4, np.uint32))
        array = gpu.array(np.zeros((rows * pitch + SPARE_BYTES) // 2, np.float16))
        shape: dict[str, Any] = {"dims": (pitch // 2, rows), "strides": (pitch,)}
        box = (BOX_K, misses.rows)
        return [
            TensorMap(array, box=box, swizzle="128B", l2_promotion=misses.promotion, **shape), words,
        ]  # fmt: skip

    return arguments


def _mean_and_long(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean of all hits, and what nine of ten do not take."""
    del labels
    return {
        "hits": round(float(table.mean()), 2),
        "hits, nine of ten": round(float(np.percentile(table, 90)), 2),
    }


def _by_line(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean of the hits of each line."""
    del labels
    means = table.astype(np.float64).reshape(-1, LINES).mean(axis=0)
    return {f"line {number}": round(float(mean), 2) for number, mean in enumerate(means)}


class _Beside:
    """The kernel: who misses, and who hits and is clocked."""

    def __init__(self, name: str, misses: Misses) -> None:
        self.misses = misses
        parameters = [Param("map", ".b8", 128), Param("words", ".u64")]
        self.c = c = Clocked(name, parameters, [".reqntid 32"])
        self.done = c.label_and_leave_but_first()
        self.map = c.address_of("map", "map")
        c.k.emit("prefetch.tensormap", address(self.map))
        self.barrier = address(c.shared, SLOTS_BYTES)
        c.init_barriers([self.barrier])
        self.parity = c.k.let(".b32", "parity", "mov.u32", 0)
        self.left, self.more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")

    def load(self, k: Reg | int, row: Reg | int) -> None:
        """Write the load of a box, and the wait for it."""
        c = self.c
        count = self.misses.rows * ROW_BYTES
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", self.barrier, count)
        c.k.emit(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            address(c.shared), f"[{self.map}, {vector((k, row))}]", self.barrier,
        )  # fmt: skip
        c.wait_parity(self.barrier, self.parity)
        c.k.emit("xor.b32", self.parity, self.parity, 1)

    def write(self, hit: Callable[[], None]) -> None:
        """Write both; `hit` writes one hit, and what comes before the next one."""
        c, misses = self.c, self.misses
        sm = c.k.let(".b32", "sm", "mov.u32", "%smid")
        others = c.k.let(".pred", "others", "setp.ne.u32", sm, 0)
        miss = c.k.label("$miss")
        c.k.emit("bra", miss, guard=others)
        for _ in range(WARM_UPS):
            hit()
        c.k.emit("nanosleep.u32", BEFORE_HITS_NS)
        c.k.emit("mov.u32", self.left, HITS)
        with c.k.loop(self.left, self.more, "$hits"):
            before = c.clock()
            hit()
            after = c.clock()
            c.k.emit("sub.u64", after, after, before)
            c.k.emit("st.global.u64", address(c.results), after)
            c.k.emit("add.u64", c.results, c.results, 8)
        c.labels += [f"hit {number}" for number in range(HITS)]
        c.k.emit("bra", self.done)
        c.k.place(miss)
        idle = c.k.let(".pred", "idle", "setp.ge.u32", sm, misses.sms)
        c.k.emit("bra", self.done, guard=idle)
        c.k.emit("nanosleep.u32", BEFORE_MISSES_NS)
        row = c.k.let(".b32", "row", "mul.lo.u32", sm, misses.rows * misses.blocks)
        k, ends = c.k.let(".b32", "at_k", "mov.u32", 0), c.k.reg(".pred", "ends")
        c.k.emit("mov.u32", self.left, BOXES)
        with c.k.loop(self.left, self.more, "$misses"):
            self.load(k, row)
            c.k.emit("add.u32", k, k, BOX_K)
            c.k.emit("setp.eq.u32", ends, k, BOX_K * misses.along_k)
            c.k.emit("selp.b32", k, 0, k, ends)
            c.k.emit("add.u32", row, row, misses.rows, guard=ends)

    def finish(
        self, what: str, summary: Callable[[Table, Sequence[str]], dict[str, float]]
    ) -> Benchmark:
        """Return the benchmark."""
        c = self.c
        c.k.place(self.done)
        return c.benchmark(
            f"{what}, {self.misses.what}", grid=SMS, block=32, rows=1, summary=summary, shared_bytes=SLOTS_BYTES + 64,
            arguments=_arguments(self.misses), is_cold=True, mean_of=SPREAD_LAUNCHES,
        )  # fmt: skip


def boxes(misses: Misses) -> Benchmark:
    """Hits of a box as large as those that are missed."""
    kernel = _Beside(f"held_box_{misses.name}", misses)
    kernel.write(lambda: kernel.load(0, 0))
    return kernel.finish(f"TMA loads out of L2 of a box of {misses.rows} rows", _mean_and_long)


def lines(misses: Misses) -> Benchmark:
    """Hits of single words; each begins when the one before is there."""
    kernel = _Beside(f"held_line_{misses.name}", misses)
    c = kernel.c
    words = c.k.let(".b64", "words", "ld.param.u64", "[words]")
    behind = c.k.let(".b64", "behind", "add.u64", words, LINES * LINE_STEP_BYTES)
    place = c.k.let(".b64", "place", "mov.b64", words)
    word, again = c.k.reg(".b32", "word"), c.k.reg(".pred", "again")

    def hit() -> None:
        c.k.emit("ld.global.cg.u32", word, address(place))
        c.keep(word)
        c.k.emit("add.u64", place, place, LINE_STEP_BYTES)
        c.k.emit("setp.ge.u64", again, place, behind)
        c.k.emit("selp.b64", place, words, place, again)

    kernel.write(hit)
    return kernel.finish("words that L2 has, one after the other", _by_line)


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    counts = (1, 2, 4, 16, 32, 66, SMS)
    found = [boxes(Misses(sms, rows)) for rows in (32, 128) for sms in counts]
    found += [
        boxes(Misses(sms, 32, pitch_bytes, promotion))
        for pitch_bytes, promotion in ((2 * KIB, "none"), (8 * KIB, "256B")) for sms in (2, 32, SMS)
    ]  # fmt: skip
    return found + [lines(Misses(sms, rows)) for rows in (32, 128) for sms in counts]

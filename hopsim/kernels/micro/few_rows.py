"""Operands of GEMMs with few rows: rows of A beyond its end, while rows of B come out of device memory.

As `pipelined` loads them, one thread asks for a box of A, the same for all CTAs and partly outside of the tensor, and for
a box of B of its own, a ring of stages ahead.  As `mma-multistage` does, four warps copy rows of A with `cp.async`, those
beyond the end being the last one once more, and rows of B of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES, SPARE_BYTES
from hopsim.kernels.micro.clocked import Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.streams import SLOTS_BYTES
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

PITCH_BYTES: Final = 8192
"""From one row to the next: 4096 values of 16 bits."""
SHORT_PITCH_BYTES: Final = 4096
"""The same of 8 bits."""
THREADS: Final = 128
COPY_BYTES: Final = 64
"""Bytes of a row in a stage of copies."""
COPY_STEPS: Final = 128
AGAIN: Final = 4
SKEW_STEP: Final = 37
"""Of the skew, by CTA, so that neighbours begin apart."""
STAGES: Final = 4


@dataclass(frozen=True, slots=True)
class Operands:
    """What each CTA loads along K.

    Args:
        ctas: one an SM.
        inside: rows that A has.
        a_rows, b_rows: of a box of A and of B; 0: none.
        depth: stages on their way.
        is_cold: whether L2 holds nothing of it.
        b_first: whether a stage asks for B before A.
        b_again: whether B begins anew after four boxes along K, so that L2 has it.
        skew: cycles by which CTAs begin apart, at most.
        pitch_bytes: of a row.
        boxes: along K that are loaded.
        first: row of A where its box begins; `inside`: the box lies wholly outside.
    """

    ctas: int
    inside: int
    a_rows: int
    b_rows: int
    depth: int
    is_cold: bool = True
    b_first: bool = False
    b_again: bool = False
    skew: int = 0
    pitch_bytes: int = PITCH_BYTES
    boxes: int = 0
    first: int = 0

    @property
    def step(self) -> int:
        """Values from a box along K to the next: as far apart as rows allow."""
        return self.pitch_bytes // 2 // (self.boxes or self.pitch_bytes // ROW_BYTES)

    @property
    def name(self) -> str:
        """Part of the benchmark's name."""
        which = f"{self.ctas}_{self.inside}of{self.a_rows}_{self.b_rows}own_d{self.depth}"
        which += f"_p{self.pitch_bytes}" if self.pitch_bytes != PITCH_BYTES else ""
        which += f"_{self.boxes}boxes" if self.boxes else ""
        which += "_beyond" if self.first else ""
        which += ("_b_first" if self.b_first else "") + ("_b_again" if self.b_again else "")
        return (
            which + (f"_skew{self.skew}" if self.skew else "") + ("_cold" if self.is_cold else "")
        )

    @property
    def what(self) -> str:
        """Part of the benchmark's description."""
        where = "device memory" if self.is_cold else "L2"
        order = ", B before A" if self.b_first else ""
        order += f", B again after {AGAIN} stages" if self.b_again else ""
        order += f", begun up to {self.skew} cycles apart" if self.skew else ""
        order += f", rows of {self.pitch_bytes} bytes" if self.pitch_bytes != PITCH_BYTES else ""
        order += f", {self.boxes} boxes along K" if self.boxes else ""
        has = 0 if self.first else self.inside
        return (
            f"{self.ctas} SMs, out of {where}, {self.a_rows} rows of A of which it has {has}, "
            f"{self.b_rows} rows of B of each SM, {self.depth} stages in flight{order}"
        )


def _arrays(one: Operands, gpu: Any) -> tuple[Any, Any]:
    spare = SPARE_BYTES if one.is_cold else 0
    a = gpu.array(np.zeros(((one.inside or 1) * one.pitch_bytes) // 2, np.float16))
    own_bytes = one.ctas * max(one.b_rows, 1) * one.pitch_bytes
    b = gpu.array(np.zeros((own_bytes + spare) // 2, np.float16))
    return a, b


def _pointers(one: Operands) -> Callable[[Any], list[Any]]:
    return lambda gpu: list(_arrays(one, gpu))


def _maps(one: Operands) -> Callable[[Any], list[Any]]:
    def arguments(gpu: Any) -> list[Any]:
        a, b = _arrays(one, gpu)
        shape: dict[str, Any] = {
            "strides": (one.pitch_bytes,), "swizzle": "128B", "l2_promotion": "256B",
        }  # fmt: skip
        columns = one.pitch_bytes // 2
        return [
            TensorMap(a, box=(BOX_K, one.a_rows or 1), dims=(columns, one.inside or 1), **shape),
            TensorMap(
                b, box=(BOX_K, one.b_rows or 1), dims=(columns, one.ctas * max(one.b_rows, 1)), **shape
            ),
        ]  # fmt: skip

    return arguments


def boxes(one: Operands) -> Benchmark:
    """TMA loads of a stage at a time."""
    stage_bytes = (one.a_rows + one.b_rows) * ROW_BYTES
    assert one.depth * stage_bytes <= SLOTS_BYTES, one
    blocks = one.boxes or one.pitch_bytes // ROW_BYTES
    assert blocks % one.depth == 0, one
    assert one.step == BOX_K or not one.b_rows, one
    c = Clocked(
        f"few_rows_tma_{one.name}",
        [Param("a", ".b8", 128), Param("b", ".b8", 128)],
        [".reqntid 32"],
    )
    c.own_row(1)
    maps: list[Reg] = []
    for operand in ("a", "b"):
        place = c.address_of(operand, f"{operand}_map")
        c.k.emit("prefetch.tensormap", address(place))
        maps.append(place)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    own = c.k.let(".b32", "own", "mul.lo.u32", cta, one.b_rows)
    barriers = [address(c.shared, SLOTS_BYTES + 8 * slot) for slot in range(one.depth)]
    c.init_barriers(barriers)
    done = c.label_and_leave_but_first()
    k, left, more = c.k.reg(".b32", "at_k"), c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    first = c.k.let(".b32", "first" if one.first else "zero", "mov.u32", one.first)

    def issue(slot: int) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barriers[slot], stage_bytes)
        both = [(one.a_rows, maps[0], first, 0), (one.b_rows, maps[1], own, one.a_rows * ROW_BYTES)]
        at = k
        for rows, place, row, offset in reversed(both) if one.b_first else both:
            if rows:
                if one.b_again and row is own:
                    at = c.k.let(".b32", "b_k", "and.b32", k, AGAIN * BOX_K - 1)
                c.k.emit(
                    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
                    address(c.shared, slot * stage_bytes + offset), f"[{place}, {vector((at, row))}]", barriers[slot],
                )  # fmt: skip
        c.k.emit("add.u32", k, k, one.step)

    def once() -> None:
        c.k.emit("mov.u32", k, 0)
        c.walk_ring(barriers, parity, blocks // one.depth, issue, left, more)

    if not one.is_cold:
        once()
    if one.skew:
        _wait_turn(c, cta, one.skew)
    c.measure_one("walk", once)
    c.k.place(done)
    return c.benchmark(
        f"TMA loads, {one.what}", grid=one.ctas, block=32, rows=one.ctas, summary=mean_of_rows,
        shared_bytes=SLOTS_BYTES + max(64, 8 * one.depth), arguments=_maps(one), is_cold=one.is_cold,
    )  # fmt: skip


def _wait_turn(c: Clocked, cta: Reg, skew: int) -> None:
    """Write a wait that CTAs end up to so many cycles apart."""
    turn = c.k.let(".b32", "turn", "mul.lo.u32", cta, SKEW_STEP)
    c.k.emit("rem.u32", turn, turn, skew)
    wait = c.k.let(".b64", "wait", "cvt.u64.u32", turn)
    now = c.clock()
    until = c.k.let(".b64", "until", "add.u64", now, wait)
    loop, early = c.k.label("$turn"), c.k.reg(".pred", "early")
    c.k.place(loop)
    c.k.emit("mov.u64", now, "%clock64")
    c.k.emit("setp.lt.u64", early, now, until)
    c.k.emit("bra", loop, guard=early)


def copies(one: Operands) -> Benchmark:
    """`cp.async` of a stage at a time, 64 bytes of each row."""
    c = Clocked(
        f"few_rows_copies_{one.name}", [Param("a", ".u64"), Param("b", ".u64")],
        [f".reqntid {THREADS}"],
    )  # fmt: skip
    c.own_row(1)
    a, b = (c.load(name, ".b64", "ld.param.u64") for name in ("a", "b"))
    lanes, half = COPY_BYTES // 16, THREADS * 16 // COPY_BYTES
    chunk = c.k.let(".b32", "chunk", "and.b32", c.thread, lanes - 1)
    own = c.k.let(".b32", "own_row", "shr.u32", c.thread, lanes.bit_length() - 1)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    first = c.k.let(".b32", "first_row", "mul.lo.u32", cta, one.b_rows)
    rows: list[tuple[Reg, Reg, Reg]] = []
    for operand, base, count in (("a", a, one.a_rows), ("b", b, one.b_rows)):
        c.k.emit("mad.wide.u32", base, chunk, 16, base)
        for offset in range(0, count, half):
            row = c.k.let(".b32", "row", "add.u32", own, offset)
            if operand == "a":
                c.k.emit("min.u32", row, row, one.inside - 1)
            else:
                c.k.emit("add.u32", row, row, first)
            rows.append((base, row, c.k.reg(".b64", "source")))
    stage_bytes = (one.a_rows + one.b_rows) * COPY_BYTES
    to = c.k.let(".b32", "to", "mad.lo.u32", c.thread, 16, c.shared)
    left, more, slot = c.k.reg(".b32", "left"), c.k.reg(".pred", "more"), c.k.reg(".b32", "slot")

    def stage() -> None:
        for index, (_, _, source) in enumerate(rows):
            c.k.emit(
                "cp.async.cg.shared.global", address(slot, index * half * COPY_BYTES), address(source), 16
            )  # fmt: skip
            c.k.emit("add.u64", source, source, COPY_BYTES)
        c.k.emit("cp.async.commit_group")
        c.k.emit("add.u32", slot, slot, stage_bytes)

    def walk() -> None:
        for base, row, source in rows:
            c.k.emit("mad.wide.u32", source, row, PITCH_BYTES, base)
        c.k.emit("mov.u32", slot, to)
        for _ in range(one.depth):
            stage()
        c.k.emit("mov.u32", left, COPY_STEPS - one.depth)
        with c.k.loop(left, more, "$walk"):
            c.k.emit("cp.async.wait_group", one.depth - 1)
            c.k.emit("bar.sync", 0)
            stage()
            end = c.k.let(".b32", "end", "add.u32", to, (one.depth + 1) * stage_bytes)
            around = c.k.let(".pred", "around", "setp.ge.u32", slot, end)
            c.k.emit("selp.b32", slot, to, slot, around)
        c.k.emit("cp.async.wait_all")

    if not one.is_cold:
        walk()
    c.measure("walk", walk, whole_cta=True)
    return c.benchmark(
        f"cp.async of {COPY_BYTES} bytes a row, {one.what}", grid=one.ctas, block=THREADS, rows=one.ctas,
        summary=mean_of_rows, shared_bytes=(one.depth + 1) * stage_bytes,
        arguments=_pointers(one), is_cold=one.is_cold,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [Operands(128, inside, 64, 32, depth) for depth in (1, 2, 4, 8) for inside in (64, 16)]
    found += [Operands(128, inside, 64, 32, 4) for inside in (32, 1)]
    found += [Operands(128, 16, 16, 32, depth) for depth in (2, 4)]
    found += [Operands(128, 0, 0, 32, depth) for depth in (2, 4)]
    found += [Operands(128, inside, 64, 0, depth) for depth in (1, 4) for inside in (64, 16)]
    found += [Operands(64, inside, 128, 64, 4) for inside in (128, 64, 16)]
    found += [Operands(64, inside, 64, 64, 4) for inside in (64, 16)]
    found += [Operands(ctas, inside, 64, 32, 4) for ctas in (1, 16) for inside in (64, 16)]
    found += [
        Operands(128, 16, 64, 32, 4, b_first=True),
        Operands(128, 16, 64, 32, 4, is_cold=False),
    ]
    found += [Operands(128, 16, 64, 0, depth, is_cold=False) for depth in (1, 2, 4, 8)]
    found += [Operands(128, 64, 64, 0, depth, is_cold=False) for depth in (1, 4)]
    found += [Operands(128, 1, 64, 0, 4, is_cold=False), Operands(128, 1, 64, 0, 1, is_cold=False)]
    found += [Operands(64, 16, 64, 0, depth, is_cold=False) for depth in (1, 4)]
    found += [Operands(64, 16, 128, 0, 4, is_cold=False), Operands(32, 16, 64, 0, 4, is_cold=False)]
    found += [
        Operands(128, 16, 64, 0, depth, is_cold=False, skew=skew)
        for depth in (1, 4) for skew in (200, 1000)
    ]  # fmt: skip
    found += [
        Operands(128, inside, 64, 32, depth, is_cold=False, b_again=True)
        for depth in (1, 2, 4, 8) for inside in (64, 16)
    ]  # fmt: skip
    found += [Operands(128, 0, 0, 32, 4, is_cold=False, b_again=True)]
    found += [Operands(64, 16, 128, 64, 4, is_cold=False, b_again=True)]
    found += [
        Operands(128, inside, rows, 32, depth, pitch_bytes=pitch)
        for depth, pitch in ((16, PITCH_BYTES), (4, SHORT_PITCH_BYTES), (16, SHORT_PITCH_BYTES))
        for inside, rows in ((64, 64), (16, 64), (0, 0))
    ]
    # Places along K that lie 2 and 8 KiB apart, and boxes that lie wholly outside.
    found += [
        Operands(128, 16, 64, 0, depth, is_cold=False, pitch_bytes=pitch, boxes=64)
        for pitch in (64 * 2048, 64 * PITCH_BYTES) for depth in (1, 4, 16)
    ]  # fmt: skip
    found += [
        Operands(128, 16, rows, 0, depth, is_cold=False, first=16)
        for rows, depth in ((8, 4), (16, 4), (32, 4), (64, 4), (64, 1), (64, 16))
    ]
    made = [boxes(one) for one in found]
    rows = [Operands(128, inside, 64, 32, 3) for inside in (64, 32, 16)]
    rows += [Operands(128, 0, 0, 32, 3), Operands(128, 16, 64, 0, 3), Operands(128, 64, 64, 0, 3)]
    rows += [Operands(128, inside, 64, 32, 3, is_cold=False) for inside in (64, 32, 16)]
    rows += [Operands(128, 16, 64, 0, 3, is_cold=False), Operands(32, 16, 64, 32, 3)]
    return made + [copies(one) for one in rows]

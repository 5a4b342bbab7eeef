"""Tiles of A and B out of L2 along K, as CTAs of a matrix product load them, without the product.

CTAs below each other share B, those beside each other A.  One thread loads boxes by TMA, or eight warps copy with
`cp.async`, 16 bytes a lane, a stage at a time, and some stages ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.boxes import BOX_K, ROW_BYTES
from hopsim.kernels.micro.clocked import Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.tiles import LOAD, first_rows
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

STEPS: Final = 32
"""Stages of a walk."""
THREADS: Final = 256
COPY_BYTES: Final = 16
LANES: Final = ROW_BYTES // COPY_BYTES
"""Lanes that copy a row."""
ROWS_AT_ONCE: Final = THREADS // LANES
FULL_BYTES: Final = 227 << 10
"""All shared memory that a CTA may have."""


@dataclass(frozen=True, slots=True)
class TileShape:
    """Tiles of CTAs, and the ring that they come into.

    Args:
        along_m, along_n: CTAs below and beside each other.
        rows_a, rows_b: of a stage, 128 bytes each.
        depth: stages on their way.
    """

    along_m: int
    along_n: int
    rows_a: int
    rows_b: int
    depth: int

    @property
    def ctas(self) -> int:
        """How many there are."""
        return self.along_m * self.along_n

    @property
    def stage_bytes(self) -> int:
        """Shared bytes of a stage."""
        return (self.rows_a + self.rows_b) * ROW_BYTES

    @property
    def shape(self) -> str:
        """Of CTAs, boxes and ring, as names have it."""
        return f"{self.along_m}x{self.along_n}_{self.rows_a}r_{self.rows_b}r_d{self.depth}"


@dataclass(frozen=True, slots=True)
class TileWalk(TileShape):
    """Which tiles there are.

    Args:
        pitch_bytes: from one row of A or B to the next.
        promotion: L2 promotion of the tensor maps; None: 256 bytes, which names do not tell.
    """

    pitch_bytes: int = STEPS * ROW_BYTES
    promotion: str | None = None

    @property
    def pitch(self) -> str:
        """As names have it, where rows do not follow each other."""
        return "" if self.pitch_bytes == STEPS * ROW_BYTES else f"_p{self.pitch_bytes}"

    def name(self, how: str) -> str:
        """Of the microbenchmark."""
        promotion = "" if self.promotion is None else f"_l2_{self.promotion}"
        return f"tile_walk_{how}_{self.shape}{self.pitch}{promotion}"

    def what(self, how: str) -> str:
        """Describe it."""
        promotion = "" if self.promotion is None else f", L2 promotion {self.promotion}"
        return (
            f"{how} of tiles out of L2, {self.along_m} x {self.along_n} CTAs, {self.rows_a} and {self.rows_b} rows "
            f"{self.pitch_bytes} bytes apart, {self.depth} stages in flight{promotion}"
        )

    def arrays(self, gpu: Any) -> tuple[Any, Any]:
        """Make A and B, padded to the pitch."""
        columns = self.pitch_bytes // 2
        a, b = self.rows_a * self.along_m, self.rows_b * self.along_n
        return (
            gpu.array(np.zeros((a, columns), np.float16)),
            gpu.array(np.zeros((b, columns), np.float16)),
        )

    def first_rows(self, c: Clocked) -> tuple[Reg, Reg]:
        """Write which rows of A and B are the CTA's first."""
        return first_rows(c, self.along_m, self.rows_a, self.rows_b)

    def maps(self, gpu: Any) -> list[Any]:
        """Make tensor maps of A and B."""
        return [
            TensorMap(
                array, box=(BOX_K, rows), swizzle="128B", l2_promotion=self.promotion or "256B"
            )
            for array, rows in zip(self.arrays(gpu), (self.rows_a, self.rows_b), strict=True)
        ]


def _benchmark(
    c: Clocked, one: TileWalk, how: str, block: int, shared_bytes: int, maps: bool
) -> Benchmark:
    def arguments(gpu: Any) -> list[Any]:
        return one.maps(gpu) if maps else list(one.arrays(gpu))

    return c.benchmark(
        one.what(how), grid=one.ctas, block=block, rows=one.ctas, summary=mean_of_rows,
        shared_bytes=shared_bytes, arguments=arguments,
        amounts={"walk": float(one.ctas * STEPS * one.stage_bytes)},
    )  # fmt: skip


class BoxRing:
    """Slots that the first thread of a CTA fills with boxes of A and B, a stage each; all other threads have left.

    Args:
        c: the kernel, whose parameters `a` and `b` are tensor maps.
        one: which boxes.
    """

    def __init__(self, c: Clocked, one: TileWalk) -> None:
        self._c = c
        self._one = one
        self._maps = [c.address_of(operand, f"{operand}_map") for operand in "ab"]
        self._rows = one.first_rows(c)
        slots = one.depth * one.stage_bytes
        self.shared_bytes = slots + 64
        self.barriers = [address(c.shared, slots + 8 * slot) for slot in range(one.depth)]
        c.init_barriers(self.barriers)
        self.done = c.label_and_leave_but_first()
        self._k, self._left, self._more = (
            c.k.reg(".b32", "at_k"), c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
        )  # fmt: skip
        self.parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def begin(self) -> None:
        """Go to the first stage along K."""
        self._c.k.emit("mov.u32", self._k, 0)

    def issue(self, slot: int) -> None:
        """Load the next stage into a slot."""
        c, one, barrier = self._c, self._one, self.barriers[slot]
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, one.stage_bytes)
        to = slot * one.stage_bytes
        for place, row, count in zip(self._maps, self._rows, (one.rows_a, one.rows_b), strict=True):
            c.k.emit(LOAD, address(c.shared, to), f"[{place}, {vector((self._k, row))}]", barrier)
            to += count * ROW_BYTES
        c.k.emit("add.u32", self._k, self._k, BOX_K)

    def walk(self) -> None:
        """Load all stages, one after the other."""
        self.begin()
        rounds = STEPS // self._one.depth
        self._c.walk_ring(self.barriers, self.parity, rounds, self.issue, self._left, self._more)


def boxes(one: TileWalk) -> Benchmark:
    """TMA loads by one thread: a box of A and one of B a stage."""
    assert STEPS % one.depth == 0, one
    c = Clocked(one.name("tma"), [Param("a", ".b8", 128), Param("b", ".b8", 128)], [".reqntid 32"])
    c.own_row(1)
    ring = BoxRing(c, one)
    ring.walk()
    c.measure_one("walk", ring.walk)
    c.k.place(ring.done)
    return _benchmark(c, one, "TMA loads", 32, ring.shared_bytes, maps=True)


def copies(one: TileWalk, how: str = ".cg", is_full: bool = False) -> Benchmark:
    """`cp.async` by eight warps: four rows an instruction.

    Args:
        how: modifiers that follow the opcode.
        is_full: whether the CTA has all shared memory of the SM, which leaves L1 the least.
    """
    slots = (one.depth + 1) * one.stage_bytes
    name = one.name("copies" + ("" if how == ".cg" else how.replace(".", "_")))
    c = Clocked(
        name + ("_full" if is_full else ""),
        [Param("a", ".u64"), Param("b", ".u64")], [f".reqntid {THREADS}"],
    )  # fmt: skip
    c.own_row(1)
    row_a, row_b = one.first_rows(c)
    chunk = c.k.let(".b32", "chunk", "and.b32", c.thread, LANES - 1)
    own = c.k.let(".b32", "own_row", "shr.u32", c.thread, LANES.bit_length() - 1)
    firsts: list[tuple[Reg, Reg]] = []
    for operand, row, count in (("a", row_a, one.rows_a), ("b", row_b, one.rows_b)):
        base = c.load(operand, ".b64", "ld.param.u64")
        c.k.emit("mad.wide.u32", base, chunk, COPY_BYTES, base)
        c.k.emit("add.u32", row, row, own)
        for offset in range(0, count, ROWS_AT_ONCE):
            at = c.k.let(".b32", "at", "add.u32", row, offset)
            place = c.k.let(".b64", "place", "mad.wide.u32", at, one.pitch_bytes, base)
            firsts.append((place, c.k.reg(".b64", "source")))
    to = c.k.let(".b32", "to", "mad.lo.u32", c.thread, COPY_BYTES, c.shared)
    left, more, slot = c.k.reg(".b32", "left"), c.k.reg(".pred", "more"), c.k.reg(".b32", "slot")

    def stage() -> None:
        for index, (_, source) in enumerate(firsts):
            target = address(slot, index * THREADS * COPY_BYTES)
            c.k.emit(f"cp.async{how}.shared.global", target, address(source), COPY_BYTES)
            c.k.emit("add.u64", source, source, ROW_BYTES)
        c.k.emit("cp.async.commit_group")
        c.k.emit("add.u32", slot, slot, one.stage_bytes)

    def walk() -> None:
        for place, source in firsts:
            c.k.emit("mov.b64", source, place)
        c.k.emit("mov.u32", slot, to)
        for _ in range(one.depth):
            stage()
        c.k.emit("mov.u32", left, STEPS - one.depth)
        with c.k.loop(left, more, "$walk"):
            c.k.emit("cp.async.wait_group", one.depth - 1)
            c.k.emit("bar.sync", 0)
            stage()
            end = c.k.let(".b32", "end", "add.u32", to, slots)
            around = c.k.let(".pred", "around", "setp.ge.u32", slot, end)
            c.k.emit("selp.b32", slot, to, slot, around)
        c.k.emit("cp.async.wait_all")

    walk()
    c.measure("walk", walk, whole_cta=True)
    what = f"cp.async{'' if how == '.cg' else how}" + (" with little L1" if is_full else "")
    shared_bytes = FULL_BYTES if is_full else slots
    return _benchmark(c, one, what, THREADS, shared_bytes, maps=False)


def _shapes() -> list[TileWalk]:
    found = [TileWalk(12, 11, 128, 128, depth) for depth in (1, 2, 4)]
    found += [TileWalk(16, 16, 128, 128, 2), TileWalk(4, 4, 128, 128, 2)]
    found += [TileWalk(12, 11, 64, 64, depth) for depth in (2, 4)]
    found += [
        TileWalk(22, 18, 64, 64, 2),
        TileWalk(12, 11, 64, 128, 4),
        TileWalk(16, 16, 64, 128, 2),
    ]
    found += [TileWalk(12, 11, rows, 128, 4, pitch) for rows in (64, 128) for pitch in (4128, 4112)]
    found += [TileWalk(12, 11, 64, 64, 4, 4128)]
    found += [TileWalk(12, 11, 128, 256, depth) for depth in (1, 2, 4)]
    found += [TileWalk(4, 33, *rows, 4) for rows in ((64, 64), (128, 128), (128, 256))]
    found += [TileWalk(33, 4, *rows, 4) for rows in ((64, 64), (128, 128), (128, 256))]
    found += [TileWalk(12, 11, *rows, 4, 4160) for rows in ((64, 64), (64, 128), (128, 128))]
    return found


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    shapes = _shapes()
    found: list[Callable[[TileWalk], Benchmark]] = [boxes, copies]
    return [make(one) for make in found for one in shapes if _fits(make is copies, one)]


def _fits(is_copies: bool, one: TileWalk) -> bool:
    """Whether the stages of all CTAs that an SM should have fit its shared memory."""
    each = -(-one.ctas // 132)
    return each * ((one.depth + is_copies) * one.stage_bytes + 2048) <= 227 << 10

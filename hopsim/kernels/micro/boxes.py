"""TMA loads of boxes at chosen places: cold strided rows, boxes that SMs share, unaligned rows, rows outside.

One thread of each CTA walks over boxes of 64 elements of 16 bits, 128 bytes, by some rows.  The boxes of a block of rows
follow one another along K, then comes the next block of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Summary, Table, mean_of_rows
from hopsim.kernels.micro.streams import KIB, SLOTS_BYTES
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

BOX_K = 64
ROW_BYTES = 2 * BOX_K
"""Bytes of a row of a box."""
SPREAD_LAUNCHES = 5
SPARE_BYTES = 64 << 20
"""What lies behind a cold tensor, so that making the array leaves none of the tensor in L2."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """What each CTA loads.

    Args:
        rows: of a box.
        along_k: boxes of a block of rows.
        blocks: of rows.
        pitch_bytes: from one row of the tensor to the next.
        depth: boxes in flight.
        is_cold: whether the first walk is measured; else a walk before it brings the boxes into L2.
        inside: rows of a box that the tensor has, the others lie outside; 0 for all.
    """

    rows: int
    along_k: int
    blocks: int
    pitch_bytes: int
    depth: int
    is_cold: bool = False
    inside: int = 0

    @property
    def box_bytes(self) -> int:
        """Shared bytes of a box."""
        return self.rows * ROW_BYTES

    @property
    def total_bytes(self) -> int:
        """Bytes that one CTA's walk brings."""
        return self.box_bytes * self.along_k * self.blocks


def _maps(boxes: Boxes, parts: int) -> Callable[[Any], list[Any]]:
    """Return what makes the tensor map: rows of `along_k` boxes, at the pitch, for so many walks."""
    rows = parts * (boxes.inside or boxes.rows * boxes.blocks)
    spare = SPARE_BYTES if boxes.is_cold else 0
    pitch = boxes.pitch_bytes
    shape: dict[str, Any] = {
        "box": (BOX_K, boxes.rows), "dims": (pitch // 2, rows), "strides": (pitch,)
    }  # fmt: skip
    if boxes.inside:  # a matrix of so few rows for each walk
        shape = {
            "box": (BOX_K, boxes.rows, 1), "dims": (pitch // 2, boxes.inside, parts),
            "strides": (pitch, pitch * boxes.inside),
        }  # fmt: skip

    def arguments(gpu: Any) -> list[Any]:
        array = gpu.array(np.zeros((rows * pitch + spare) // 2, np.float16))
        return [TensorMap(array, swizzle="128B", **shape)]

    return arguments


def walk(
    name: str,
    what: str,
    boxes: Boxes,
    ctas: int,
    cluster: int = 1,
    sharing: int = 1,
    skew_cycles: int = 0,
    apart: int = 1,
    times: int = 1,
    summary: Summary = mean_of_rows,
    mean_of: int = 0,
) -> Benchmark:
    """Every CTA, one an SM, walks over its boxes and clocks itself.

    Args:
        cluster: CTAs of a cluster.
        sharing: CTAs that load the same boxes.
        apart: from one of them to the next; 1 for neighbours.
        skew_cycles: by which each CTA of a cluster starts later than the one before.
        times: walks on end.
        summary, mean_of: as `Benchmark` takes them.
    """
    count = boxes.along_k * boxes.blocks
    assert count % boxes.depth == 0, boxes
    assert count >= 2 * boxes.depth, boxes
    assert boxes.blocks == 1 or not boxes.inside, boxes
    assert boxes.depth * boxes.box_bytes <= SLOTS_BYTES, boxes
    c = Clocked(name, [Param("map", ".b8", 128)], [".reqntid 32"])
    c.own_row(1)
    place = c.address_of("map", "map")
    c.k.emit("prefetch.tensormap", address(place))
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    part = _part(c, cta, sharing, apart)
    first_row = c.k.let(".b32", "first_row", "mul.lo.u32", part, boxes.rows * boxes.blocks)
    behind = first_row
    if times > 1:
        behind = c.k.let(".b32", "behind", "add.u32", first_row, boxes.rows * boxes.blocks)
    barriers = [address(c.shared, SLOTS_BYTES + 8 * slot) for slot in range(boxes.depth)]
    c.init_barriers(barriers)
    done = c.k.label("$done")
    k, row, left = (c.k.reg(".b32", one) for one in ("at_k", "at_row", "left"))
    ends = c.k.reg(".pred", "ends")
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    at, rank = (vector((k, 0, part)), 3) if boxes.inside else (vector((k, row)), 2)

    def issue(slot: int) -> None:
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barriers[slot], boxes.box_bytes)
        c.k.emit(
            f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes",
            address(c.shared, slot * boxes.box_bytes), f"[{place}, {at}]", barriers[slot],
        )  # fmt: skip
        c.k.emit("add.u32", k, k, BOX_K)
        c.k.emit("setp.eq.u32", ends, k, BOX_K * boxes.along_k)
        c.k.emit("selp.b32", k, 0, k, ends)
        c.k.emit("add.u32", row, row, boxes.rows, guard=ends)
        if times > 1:
            c.k.emit("setp.eq.u32", ends, row, behind)
            c.k.emit("selp.b32", row, first_row, row, ends)

    def once(walks: int = 1) -> None:
        c.k.emit("mov.u32", k, 0)
        c.k.emit("mov.u32", row, first_row)
        more = c.k.reg(".pred", "more")
        c.walk_ring(barriers, parity, walks * count // boxes.depth, issue, left, more)

    if not boxes.is_cold:
        warmed = c.k.label("$warmed")
        c.k.emit("bra", warmed, unless=c.first)
        once()
        c.k.place(warmed)
    if cluster > 1:
        _meet(c)
    c.k.emit("bra", done, unless=c.first)
    if skew_cycles:
        _wait_turn(c, skew_cycles)
    c.measure_one("walk", lambda: once(times))
    c.k.place(done)
    if cluster > 1:
        _meet(c)
    return c.benchmark(
        what, grid=ctas, cluster=cluster, block=32, rows=ctas, summary=summary,
        shared_bytes=SLOTS_BYTES + 64, arguments=_maps(boxes, -(-ctas // sharing)),
        amounts={"walk": float(times * boxes.total_bytes * ctas)}, is_cold=boxes.is_cold, mean_of=mean_of,
    )  # fmt: skip


def _part(c: Clocked, cta: Reg, sharing: int, apart: int) -> Reg:
    """Write which of all walks a CTA takes: those that are `apart`, `sharing` in number, take the same."""
    if apart == 1:
        return c.k.let(".b32", "part", "div.u32", cta, sharing)
    group = c.k.let(".b32", "group", "div.u32", cta, sharing * apart)
    place = c.k.let(".b32", "place", "rem.u32", cta, apart)
    return c.k.let(".b32", "part", "mad.lo.u32", group, apart, place)


def _meet(c: Clocked) -> None:
    c.k.emit("barrier.cluster.arrive")
    c.k.emit("barrier.cluster.wait")


def _wait_turn(c: Clocked, skew_cycles: int) -> None:
    """Write a wait of so many cycles for each CTA of the cluster that comes first."""
    rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    wait = c.k.let(".b64", "wait", "mul.wide.u32", rank, skew_cycles)
    now = c.clock()
    until = c.k.let(".b64", "until", "add.u64", now, wait)
    loop, early = c.k.label("$turn"), c.k.reg(".pred", "early")
    c.k.place(loop)
    c.k.emit("mov.u64", now, "%clock64")
    c.k.emit("setp.lt.u64", early, now, until)
    c.k.emit("bra", loop, guard=early)


# --- what is measured -----------------------------------------------------------------------------

LONG_ROW_BYTES = 8 * KIB
"""Pitch of a matrix with 4096 columns of 16 bits."""


def _long_rows(rows: int, depth: int, *, is_cold: bool) -> Boxes:
    return Boxes(rows, LONG_ROW_BYTES // ROW_BYTES, 1, LONG_ROW_BYTES, depth, is_cold=is_cold)


def strided(ctas: int, rows: int, depth: int) -> Benchmark:
    """Cold loads as a GEMM has them: each CTA its own rows, one box after the other along K."""
    return walk(
        f"tma_load_strided_{ctas}_{rows}r_d{depth}",
        f"TMA loads, {ctas} SMs, out of device memory, boxes of {rows} rows 8 KiB apart, {depth} in flight",
        _long_rows(rows, depth, is_cold=True), ctas,
    )  # fmt: skip


def with_spread(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean over the SMs, and how far they are spread: the standard deviation."""
    return {
        **mean_of_rows(table, labels),
        f"{labels[0]}, spread of the SMs": round(float(table.std()), 2),
    }


def spread(ctas: int, depth: int, *, is_cold: bool) -> Benchmark:
    """The same walks, told with how far apart SMs that began together end."""
    where = "device memory" if is_cold else "L2"
    return walk(
        f"tma_load_{'strided_' if is_cold else ''}spread_{ctas}_d{depth}",
        f"TMA loads, {ctas} SMs, out of {where}, boxes of 128 rows 8 KiB apart, {depth} in flight: how far SMs drift apart",
        _long_rows(128, depth, is_cold=is_cold), ctas, summary=with_spread, mean_of=SPREAD_LAUNCHES,
    )  # fmt: skip


def shared(
    ctas: int,
    cluster: int,
    *,
    same: bool,
    depth: int = 4,
    blocks: int = 2,
    skew_cycles: int = 0,
    pitch_bytes: int = KIB,
) -> Benchmark:
    """Loads out of L2 by neighbours, in clusters that make them neighbours: their own boxes, or the same ones.

    Args:
        blocks: of 128 KiB for each.
    """
    boxes = Boxes(128, 8, blocks, pitch_bytes, depth)
    which = "the same" if same else "own"
    more = (f"_{128 * blocks}K" if blocks != 2 else "") + (
        f"_skew{skew_cycles}" if skew_cycles else ""
    )
    apart = ""
    if pitch_bytes != KIB:
        more += f"_pitch{pitch_bytes}"
        apart = f", rows {pitch_bytes} bytes apart"
    late = f", each {skew_cycles} cycles after the one before" if skew_cycles else ""
    return walk(
        f"tma_load_neighbours_{ctas}_c{cluster}_{'same' if same else 'own'}_d{depth}{more}",
        f"TMA loads out of L2, {ctas} SMs in clusters of {cluster}, {which} boxes of 16 KiB, {depth} in flight, "
        f"{128 * blocks} KiB{late}{apart}",
        boxes, ctas, cluster, cluster if same else 1, skew_cycles,
    )  # fmt: skip


def pairs(ctas: int, apart: int, skew_cycles: int) -> Benchmark:
    """Loads out of L2 in clusters of 16; pairs of CTAs load the same: those of a TPC, or of two TPCs of a GPC."""
    boxes = Boxes(128, 8, 4, 1024, 4)
    where = "of a TPC" if apart == 1 else f"{apart} apart"
    late = f", each {skew_cycles} cycles after the one before" if skew_cycles else ""
    return walk(
        f"tma_load_pairs_{ctas}_apart{apart}" + (f"_skew{skew_cycles}" if skew_cycles else ""),
        f"TMA loads out of L2, {ctas} SMs in clusters of 16, pairs {where} load the same boxes of 16 KiB{late}",
        boxes, ctas, 16, 2, skew_cycles, apart,
    )  # fmt: skip


def outside(ctas: int, inside: int, depth: int, *, same: bool = False) -> Benchmark:
    """Loads out of L2 of boxes of 64 rows, of which some lie outside of the tensor."""
    boxes = Boxes(64, 16, 1, 2048, depth, inside=inside)
    which = "the same" if same else "own"
    return walk(
        f"tma_load_inside{inside}_{ctas}_{'same' if same else 'own'}_d{depth}",
        f"TMA loads out of L2, {ctas} SMs, {which} boxes of 64 rows, {inside} of them inside, {depth} in flight",
        boxes, ctas, 1, ctas if same else 1,
    )  # fmt: skip


def pitched(ctas: int, pitch_bytes: int, rows: int, *, is_cold: bool = False) -> Benchmark:
    """Loads of rows whose starts are, or are not, multiples of a line."""
    boxes = Boxes(rows, 8, 256 // rows, pitch_bytes, 4, is_cold)
    where = "device memory" if is_cold else "L2"
    return walk(
        f"tma_load_pitch{pitch_bytes}_{ctas}_{rows}r" + ("_cold" if is_cold else ""),
        f"TMA loads out of {where}, {ctas} SMs, boxes of {rows} rows {pitch_bytes} bytes apart, 4 in flight",
        boxes, ctas,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        strided(ctas, rows, depth)
        for rows in (64, 128) for depth in (1, 2, 4) for ctas in (1, 16, 32, 66, SMS)
    ]  # fmt: skip
    found += [spread(ctas, depth, is_cold=True) for depth in (1, 2) for ctas in (16, 32, 66, SMS)]
    found += [spread(16, depth, is_cold=False) for depth in (1, 2)]
    for ctas, cluster in ((1, 1), (2, 1)):
        found += [shared(ctas, cluster, same=False, depth=depth) for depth in (1, 4)]
    for ctas, cluster in ((2, 2), (4, 4), (8, 8), (16, 16), (SMS, 2), (120, 8)):
        found += [
            shared(ctas, cluster, same=same, depth=depth)
            for depth in (1, 4) for same in (False, True)
        ]  # fmt: skip
    found += [
        pitched(ctas, pitch, rows)
        for rows in (64, 128) for pitch in (1024, 1056, 1152) for ctas in (1, 16, 66, SMS)
    ]  # fmt: skip
    found += [pitched(ctas, 1040, 128) for ctas in (1, 16, 66)]
    found += [pitched(SMS, pitch, 128, is_cold=True) for pitch in (1024, 1040, 1056, 1152)]
    found += [
        shared(ctas, ctas, same=True, blocks=4, pitch_bytes=pitch)
        for pitch in (1040, 1056, 1152) for ctas in (2, 4, 8, 16)
    ]  # fmt: skip
    found += [
        shared(*shape, same=False, blocks=1) for shape in ((SMS, 1), (SMS, 2), (120, 8), (16, 16))
    ]
    found += [shared(16, 16, same=True, skew_cycles=skew) for skew in (100, 400, 2000)]
    found += [
        outside(ctas, inside, depth) for ctas in (1, SMS) for depth in (1, 4) for inside in (64, 32, 16, 1)
    ]  # fmt: skip
    found += [outside(SMS, inside, 4, same=True) for inside in (64, 16)]
    found += [
        pairs(ctas, apart, skew)
        for ctas in (16, 96) for apart in (1, 8) for skew in (0, 20, 50)
    ]  # fmt: skip
    return found

"""Rates of many SMs at once: plain loads and stores, TMA loads, stores and multicast, out of L2 and of device memory.

Every CTA walks over its own part of a tensor, or all over the same one, and clocks itself; a rate is what all of them
move in the mean time of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

ROW_BYTES = 128
"""A row of a TMA box: 64 elements of 16 bits, with the 128-byte swizzle."""
KIB, MIB = 1 << 10, 1 << 20
SLOTS_BYTES = 192 * KIB
"""Shared memory for boxes."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What each CTA reads or writes.

    Args:
        name: for labels.
        ctas: one an SM.
        part_bytes: of one CTA.
        is_shared: whether all CTAs walk over the same part.
        is_cold: whether the first walk is measured; else a walk before it brings the part into L2.
        is_fresh: whether L2 has forgotten the part of the launch before, which stores would find.
    """

    name: str
    ctas: int
    part_bytes: int
    is_shared: bool = False
    is_cold: bool = False
    is_fresh: bool = False

    @property
    def total_bytes(self) -> int:
        """Size of the tensor."""
        return self.part_bytes * (1 if self.is_shared else self.ctas)


def l2(ctas: int, part_bytes: int = 128 * KIB) -> Walk:
    """Return a walk over parts that L2 holds."""
    return Walk(f"l2_{ctas}x{part_bytes // KIB}K", ctas, part_bytes)


def same(ctas: int, part_bytes: int = 2 * MIB) -> Walk:
    """Return a walk of all CTAs over the same part, which L2 holds."""
    return Walk(f"same_{ctas}x{part_bytes // KIB}K", ctas, part_bytes, is_shared=True)


def fresh(ctas: int, part_bytes: int) -> Walk:
    """Return a walk over parts that L2 does not hold when the launch begins."""
    return Walk(f"fresh_{ctas}x{part_bytes // KIB}K", ctas, part_bytes, is_cold=True, is_fresh=True)


def dram(ctas: int, part_bytes: int = MIB) -> Walk:
    """Return a walk over parts that nobody has read before."""
    return Walk(f"dram_{ctas}x{part_bytes // KIB}K", ctas, part_bytes, is_cold=True)


# --- TMA ------------------------------------------------------------------------------------------


def _maps(
    walk: Walk, box_rows: int, dtype: type[np.floating[Any]] = np.float16
) -> Callable[[Any], list[Any]]:
    columns = ROW_BYTES // np.dtype(dtype).itemsize

    def arguments(gpu: Any) -> list[Any]:
        # A walk over cold memory lies in the middle of more than L2 holds: making the array leaves its end there.
        spare = 64 * MIB if walk.is_cold else 0
        rows = (walk.total_bytes + spare) // ROW_BYTES
        array = gpu.array(np.zeros((rows, columns), dtype))
        return [TensorMap(array, box=(columns, box_rows), swizzle="128B")]

    return arguments


def _first_row(c: Clocked, walk: Walk) -> Reg:
    if walk.is_shared:
        return c.k.let(".b32", "row", "mov.u32", 0)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    return c.k.let(".b32", "row", "mul.lo.u32", cta, walk.part_bytes // ROW_BYTES)


def tma_load(walk: Walk, box_rows: int, depth: int, multicast: int = 1) -> Benchmark:
    """TMA loads by one thread a CTA: `depth` boxes in flight, each slot filled again as soon as it is full.

    Args:
        multicast: CTAs of a cluster; each loads its share of the rows of a box for all of them.
    """
    size = box_rows * ROW_BYTES
    count = walk.part_bytes // size // depth * depth
    assert count >= 2 * depth, (walk, box_rows, depth)
    assert depth * size <= SLOTS_BYTES
    share = box_rows // multicast
    name = f"tma_load_{walk.name}_{size}B_d{depth}" + (f"_m{multicast}" if multicast > 1 else "")
    c = Clocked(name, [Param("map", ".b8", 128)], [".reqntid 32"])
    c.own_row(1)
    place, bars = c.address_of("map", "map"), SLOTS_BYTES
    first_row = _first_row(c, walk)
    done = c.label_and_leave_but_first()
    barriers = [address(c.shared, bars + 8 * slot) for slot in range(depth)]
    for barrier in barriers:
        c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1)
    free = [8 * (depth + slot) + bars for slot in range(depth)] if multicast > 1 else []
    for offset in free:
        c.k.emit("mbarrier.init.shared::cta.b64", address(c.shared, offset), multicast)
    c.k.emit("fence.mbarrier_init.release.cluster")
    peers = [
        c.k.let(".b32", "peer", "mapa.shared::cluster.u32", c.shared, rank)
        for rank in range(len(free) and multicast)
    ]
    masks: list[Reg] = []
    if multicast > 1:
        c.k.emit("barrier.cluster.arrive")
        c.k.emit("barrier.cluster.wait")
        rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
        masks.append(c.k.let(".b16", "mask", "mov.u16", (1 << multicast) - 1))
        own = c.k.let(".b32", "own", "mul.lo.u32", rank, share)
        part = c.k.let(".b32", "part", "mad.lo.u32", own, ROW_BYTES, c.shared)
        # The boxes of a cluster are those of its first CTA.
        lead = c.k.let(".b32", "lead", "mul.lo.u32", rank, walk.part_bytes // ROW_BYTES)
        c.k.emit("sub.u32", first_row, first_row, lead)
        c.k.emit("add.u32", first_row, first_row, own)
    else:
        part = c.shared
    row, left = c.k.reg(".b32", "at"), c.k.reg(".b32", "left")
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def issue(slot: int) -> None:
        barrier = barriers[slot]
        c.k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, size)
        opcode = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes" + (
            ".multicast::cluster" if multicast > 1 else ""
        )
        operands: list[Any] = [
            address(part, slot * size), f"[{place}, {{0, {row}}}]", f"[{barrier[1:-1]}]",
        ]  # fmt: skip
        operands += masks
        c.k.emit(opcode, *operands)
        c.k.emit("add.u32", row, row, box_rows)

    def wait(slot: int) -> None:
        c.wait_parity(barriers[slot], parity)
        # A slot that others fill too is free when all CTAs of the cluster have said so.  Nothing was read from it, so
        # that the arrival needs no release at cluster scope, which takes as long as a fence.
        for peer in peers:
            opcode = "mbarrier.arrive.release.cta.shared::cluster.b64"
            c.k.emit(opcode, "_", address(peer, free[slot]))
        if peers:
            c.wait_parity(address(c.shared, free[slot]), parity)

    def walk_once() -> None:
        c.k.emit("mov.u32", row, first_row)
        c.k.emit("mov.u32", left, count // depth - 1)
        for slot in range(depth):
            issue(slot)
        more = c.k.reg(".pred", "more")
        with c.k.loop(left, more, "$walk"):
            for slot in range(depth):
                wait(slot)
                issue(slot)
            c.k.emit("xor.b32", parity, parity, 1)
        for slot in range(depth):
            wait(slot)
        c.k.emit("xor.b32", parity, parity, 1)

    if not walk.is_cold:
        walk_once()
    c.measure_one("walk", walk_once)
    c.k.place(done)
    if multicast > 1:
        c.k.emit("barrier.cluster.arrive")
        c.k.emit("barrier.cluster.wait")
    return c.benchmark(
        f"TMA loads, {_words(walk)}, boxes of {size} bytes, {depth} in flight"
        + (f", multicast to {multicast}" if multicast > 1 else ""),
        grid=walk.ctas, cluster=multicast, block=32, rows=walk.ctas, summary=mean_of_rows,
        shared_bytes=SLOTS_BYTES + 64, arguments=_maps(walk, share),
        amounts={"walk": float(count * size * walk.ctas)}, is_cold=walk.is_cold,
    )  # fmt: skip


def tma_store(walk: Walk, box_rows: int, depth: int, adds: bool = False) -> Benchmark:
    """TMA stores by one thread a CTA, `depth` groups whose source is not yet read.

    Args:
        adds: whether they add f32 to what is there.
    """
    size = box_rows * ROW_BYTES
    count = walk.part_bytes // size
    kind = "reduce" if adds else "store"
    opcode = (
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
        if adds
        else "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
    )
    c = Clocked(
        f"tma_{kind}_{walk.name}_{size}B_d{depth}", [Param("map", ".b8", 128)], [".reqntid 32"]
    )
    c.own_row(1)
    place = c.address_of("map", "map")
    first_row = _first_row(c, walk)
    done = c.label_and_leave_but_first()
    row, left = c.k.reg(".b32", "at"), c.k.reg(".b32", "left")

    def walk_once() -> None:
        c.k.emit("mov.u32", row, first_row)
        c.k.emit("mov.u32", left, count)
        more = c.k.reg(".pred", "more")
        with c.k.loop(left, more, "$walk"):
            c.k.emit(opcode, f"[{place}, {{0, {row}}}]", address(c.shared))
            c.k.emit("cp.async.bulk.commit_group")
            c.k.emit("cp.async.bulk.wait_group.read", depth - 1)
            c.k.emit("add.u32", row, row, box_rows)
        c.k.emit("cp.async.bulk.wait_group", 0)

    if not walk.is_cold:
        walk_once()
    c.measure_one("walk", walk_once)
    c.k.place(done)
    return c.benchmark(
        f"TMA {kind}s, {_words(walk)}, boxes of {size} bytes, {depth} groups unread",
        grid=walk.ctas, block=32, rows=walk.ctas, summary=mean_of_rows, shared_bytes=SLOTS_BYTES + 64,
        arguments=_maps(walk, box_rows, np.float32 if adds else np.float16),
        amounts={"walk": float(count * size * walk.ctas)}, is_cold=walk.is_fresh,
    )  # fmt: skip


# --- loads and stores by threads ------------------------------------------------------------------

THREADS = 512
UNROLL = 8


def plain(walk: Walk, kind: str) -> Benchmark:
    """Loads (`load`), stores (`store`) or both, from one place to another (`copy`), 16 bytes a thread and time."""
    step = THREADS * 16 * UNROLL
    count = walk.part_bytes // step
    assert count, walk
    names = ["data", *(["other"] if kind == "copy" else [])]
    c = Clocked(
        f"plain_{kind}_{walk.name}", [Param(name, ".u64") for name in names], [".reqntid 512"]
    )
    c.own_row(1)
    cta = c.k.let(".b32", "part", "mov.u32", 0 if walk.is_shared else "%ctaid.x")
    places: list[Reg] = []
    for name in names:
        base = c.load(name, ".b64", "ld.param.u64")
        c.k.emit("mad.wide.u32", base, cta, walk.part_bytes, base)
        c.k.emit("mad.wide.u32", base, c.thread, 16, base)
        places.append(base)
    ats = [c.k.reg(".b64", "at") for _ in places]
    left = c.k.reg(".b32", "left")
    held = [c.k.regs(".b32", "v", 4) for _ in range(UNROLL)]
    total = c.k.let(".b32", "total", "mov.u32", 0)
    if kind == "store":
        for four in held:
            for one in four:
                c.k.emit("mov.u32", one, 1)

    def walk_once() -> Reg:
        for at, place in zip(ats, places, strict=True):
            c.k.emit("mov.u64", at, place)
        c.k.emit("mov.u32", left, count)
        more = c.k.reg(".pred", "more")
        with c.k.loop(left, more, "$walk"):
            for index, four in enumerate(held):
                if kind != "store":
                    c.k.emit(
                        "ld.global.cg.v4.b32", vector(four), address(ats[0], index * THREADS * 16)
                    )
            for index, four in enumerate(held):
                if kind == "load":
                    for one in four:
                        c.k.emit("xor.b32", total, total, one)
                else:
                    place = address(ats[-1], index * THREADS * 16)
                    c.k.emit("st.global.cg.v4.b32", place, vector(four))
            for at in ats:
                c.k.emit("add.u64", at, at, step)
        return total

    if not walk.is_cold:
        c.keep(walk_once())
    c.measure("walk", walk_once, whole_cta=True)

    def arguments(gpu: Any) -> list[Any]:
        spare = 64 * MIB if walk.is_cold else 0
        return [gpu.array(np.zeros((walk.total_bytes + spare) // 4, np.uint32)) for _ in names]

    return c.benchmark(
        f"16-byte {kind}s by {THREADS} threads a CTA, {_words(walk)}",
        grid=walk.ctas, block=THREADS, rows=walk.ctas, summary=mean_of_rows, arguments=arguments,
        amounts={"walk": float(count * step * walk.ctas)}, is_cold=walk.is_cold and kind == "load",
    )  # fmt: skip


def _words(walk: Walk) -> str:
    where = "out of device memory" if walk.is_cold else "out of L2"
    part = f"{walk.part_bytes // KIB} KiB"
    whose = f"the same {part}" if walk.is_shared else f"{part} each"
    return f"{walk.ctas} SMs, {whose}, {where}"


def benchmarks() -> list[Benchmark]:
    """Return all stream benchmarks."""
    found: list[Benchmark] = []
    for rows in (16, 64, 128, 256):
        for depth in (1, 2, 4):
            found += [tma_load(l2(ctas, 256 * KIB), rows, depth) for ctas in (1, SMS)]
    found += [tma_load(l2(1, 256 * KIB), rows, 8) for rows in (16, 64)]
    found += [tma_load(l2(ctas, 256 * KIB), 128, 4) for ctas in (2, 16, 33, 66)]
    found += [tma_load(same(ctas), rows, 4) for ctas in (16, 66, SMS) for rows in (64, 128)]
    found += [tma_load(dram(ctas), rows, 4) for ctas in (1, 16, 66, SMS) for rows in (64, 128, 256)]
    found += [tma_load(l2(120, 256 * KIB), 128, 4, multicast) for multicast in (1, 2, 4)]
    found += [tma_load(l2(multicast, 256 * KIB), 128, 4, multicast) for multicast in (2, 4)]
    found += [tma_store(l2(ctas), rows, depth) for ctas in (1, SMS) for rows in (64, 128) for depth in (1, 4)]  # fmt: skip
    found += [tma_store(dram(ctas), 128, 4) for ctas in (16, SMS)]
    # The tile that each CTA of a GEMM stores in the end, all at the same time.
    found += [
        tma_store(make(ctas, part * KIB), 64, part // 8)
        for make in (l2, fresh)
        for ctas, part in ((1, 64), (32, 64), (66, 64), (SMS, 16), (SMS, 32), (SMS, 64))
    ]
    found += [
        tma_store(make(ctas, part * KIB), 64, part // 8, adds=True)
        for make, ctas, part in ((l2, 1, 64), (l2, 66, 64), (l2, SMS, 16), (l2, SMS, 64), (fresh, SMS, 16))
    ]  # fmt: skip
    found += [plain(l2(ctas), kind) for kind in ("load", "store") for ctas in (1, 66, SMS)]
    found += [plain(same(SMS), "load")]
    found += [plain(dram(ctas), kind) for kind in ("load", "store", "copy") for ctas in (66, SMS)]
    found += [plain(l2(SMS, part), "load") for part in (192 * KIB, 256 * KIB, 320 * KIB, 512 * KIB)]
    return found

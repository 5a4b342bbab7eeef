"""Schedule `stream-k`: persistent CTAs share the k-blocks of all tiles evenly, whatever the tile count.

Tiles that fill whole waves are computed whole, one a CTA and wave, as `cooperative` does.  The others,
between one and two waves of them, are laid end to end, and each CTA takes an equal run of their k-blocks.

A tile then has several parts.  The CTA that computes its first k-block owns it: it waits for the sums of
the following CTAs, adds them in their order, and stores (the fix-up).  The others leave their sums in a
workspace and set a flag.  Each CTA does what others wait for first, so nobody waits in a circle as long as
all CTAs are resident.

Where the grid divides the number of tiles this is the data-parallel kernel, with the same bits.

Source: Osama et al., "Stream-K", PPoPP 2023 (arXiv 2301.03598), the two-tile hybrid.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import MAPS, SIZES, Frame, emit_frame, new_entry
from hopsim.kernels.gemm.loads import emit_shares
from hopsim.kernels.gemm.mainloop import emit_products
from hopsim.kernels.gemm.plan import WARPGROUP_THREADS, GemmPlan
from hopsim.kernels.gemm.ring import emit_barriers, emit_release_targets
from hopsim.kernels.gemm.roles import (
    emit_consumer_place,
    emit_roles,
    emit_tile_loads,
    emit_tile_products,
)
from hopsim.kernels.gemm.scheduler import TileWalk, emit_origin, emit_walk
from hopsim.kernels.gemm.split_k import split_blocks
from hopsim.kernels.ptx.pipeline import emit_cursor
from hopsim.kernels.ptx.text import Operand, Param, PtxEntry, Reg, address, vector

_CONSUMERS_BARRIER = 3
_QUAD_BYTES = 16 * WARPGROUP_THREADS
_FIRST_CONSUMER_WARP = 4
_LEAST_BLOCKS = 4
"""k-blocks that are worth a CTA: with fewer the fix-up, one CTA after the other, takes longer than they save."""


def grid_ctas(tiles: int, k_blocks: int, resident_ctas: int) -> int:
    """Return the CTAs to launch: all that are resident, unless they would have too little each."""
    return min(resident_ctas, max(tiles, tiles * k_blocks // _LEAST_BLOCKS))


def shared_tiles(tiles: int, ctas: int) -> int:
    """Return how many tiles, the first ones, are cut up: none where the grid divides them."""
    return min(tiles, tiles % ctas + ctas) if tiles % ctas else 0


def tile_parts(tiles: int, k_blocks: int, ctas: int) -> list[list[range]]:
    """Return the k-blocks of each part of each tile, in the order in which the parts are added."""
    shared = shared_tiles(tiles, ctas)
    parts: list[list[range]] = [[] for _ in range(shared)]
    for run in split_blocks(shared * k_blocks, ctas):
        at = run.start
        while at < run.stop:
            tile, first = divmod(at, k_blocks)
            stop = min(k_blocks, first + run.stop - at)
            parts[tile].append(range(first, stop))
            at += stop - first
    return parts + [[range(k_blocks)] for _ in range(tiles - shared)]


@dataclass(frozen=True, slots=True)
class _Runs:
    """The even shares of the k-blocks of all shared tiles.

    Args:
        ctas: of the grid.  shared: tiles that are cut up.
        each: k-blocks of a CTA; the first `longer` CTAs have one more.
    """

    ctas: Reg
    shared: Reg
    each: Reg
    longer: Reg


@dataclass(frozen=True, slots=True)
class _Segment:
    """A run of k-blocks of one tile.

    Args:
        row, col: of the tile.
        first: its first k-block in the tile.  blocks: how many.
        tile_end: number of the k-block, over all tiles, with which the tile ends.
    """

    row: Reg
    col: Reg
    first: Reg
    blocks: Reg
    tile_end: Reg


def emit_stream_k(name: str, plan: GemmPlan) -> PtxEntry:
    """Return the entry of the schedule."""
    assert plan.persistent, plan
    buffers = (Param("workspace", ".u64"), Param("flags", ".u64"))
    b = new_entry(name, plan, MAPS + buffers + SIZES)
    frame = emit_frame(b, plan)
    walk = emit_walk(b, plan, frame)
    runs = _emit_runs(b, frame, walk)
    emit_barriers(b, plan, frame)
    emit_roles(
        b, plan, frame,
        producer=lambda: _emit_producer(b, plan, frame, walk, runs),
        consumer=lambda: _emit_consumer(b, plan, frame, walk, runs),
    )  # fmt: skip
    return b


def _emit_runs(b: PtxEntry, frame: Frame, walk: TileWalk) -> _Runs:
    b.comment("shares of the k-blocks")
    ctas = b.let(".b32", "ctas", "mov.u32", "%nctaid.x")
    rest = b.let(".b32", "rest", "rem.u32", walk.total, ctas)
    two_waves = b.let(".b32", "two_waves", "add.s32", rest, ctas)
    most = b.let(".b32", "most", "min.u32", two_waves, walk.total)
    uneven = b.let(".pred", "uneven", "setp.ne.s32", rest, 0)
    shared = b.let(".b32", "shared_tiles", "selp.b32", most, 0, uneven)
    blocks = b.let(".b32", "shared_blocks", "mul.lo.s32", shared, frame.k_blocks)
    each = b.let(".b32", "each", "div.u32", blocks, ctas)
    longer = b.let(".b32", "longer", "rem.u32", blocks, ctas)
    return _Runs(ctas, shared, each, longer)


def _emit_run_start(b: PtxEntry, runs: _Runs, cta: Operand) -> Reg:
    """Write the first k-block, over all shared tiles, of a CTA."""
    before = b.let(".b32", "longer_before", "min.u32", cta, runs.longer)
    return b.let(".b32", "run_start", "mad.lo.s32", cta, runs.each, before)


@contextmanager
def _segments(
    b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk, runs: _Runs
) -> Generator[_Segment]:
    """Write what stands inside for each segment of this CTA: its run first, then whole tiles."""
    b.comment("segments of this CTA")
    at = b.let(".b32", "at", "mov.b32", _emit_run_start(b, runs, frame.index))
    following = b.let(".b32", "next_cta", "add.s32", frame.index, 1)
    stop = b.let(".b32", "stop", "mov.b32", _emit_run_start(b, runs, following))
    whole = b.let(".b32", "whole_tile", "add.s32", runs.shared, frame.index)
    loop, take, done = b.label("SEGMENT_LOOP"), b.label("WHOLE_TILE"), b.label("SEGMENTS_DONE")
    none = b.let(".pred", "no_run", "setp.ge.s32", at, stop)
    b.emit("bra", take, guard=none)

    b.place(loop)
    tile = b.let(".b32", "tile", "div.u32", at, frame.k_blocks)
    tile_start = b.let(".b32", "tile_start", "mul.lo.s32", tile, frame.k_blocks)
    tile_end = b.let(".b32", "tile_end", "add.s32", tile_start, frame.k_blocks)
    first = b.let(".b32", "first", "sub.s32", at, tile_start)
    until = b.let(".b32", "until", "min.s32", tile_end, stop)
    blocks = b.let(".b32", "blocks", "sub.s32", until, at)
    row, col = emit_origin(b, plan, frame, walk, tile)
    yield _Segment(row, col, first, blocks, tile_end)
    b.emit("add.s32", at, at, blocks)
    more = b.let(".pred", "more_of_run", "setp.lt.s32", at, stop)
    b.emit("bra", loop, guard=more)

    b.place(take)
    no_tile = b.let(".pred", "no_tile", "setp.ge.s32", whole, walk.total)
    b.emit("bra", done, guard=no_tile)
    b.emit("mul.lo.s32", at, whole, frame.k_blocks)
    b.emit("add.s32", stop, at, frame.k_blocks)
    b.emit("add.s32", whole, whole, runs.ctas)
    b.emit("bra", loop)
    b.place(done)


def _emit_producer(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk, runs: _Runs) -> None:
    loads = emit_shares(b, plan, frame)
    cursor = emit_cursor(b, first_parity=1)
    with _segments(b, plan, frame, walk, runs) as segment:
        end = b.let(".b32", "end", "add.s32", segment.first, segment.blocks)
        first_k = b.let(".b32", "first_k", "mul.lo.s32", segment.first, plan.tile.k)
        end_k = b.let(".b32", "end_k", "mul.lo.s32", end, plan.tile.k)
        emit_tile_loads(b, plan, frame, loads, cursor, segment.row, segment.col, first_k, end_k)


def _emit_consumer(b: PtxEntry, plan: GemmPlan, frame: Frame, walk: TileWalk, runs: _Runs) -> None:
    warpgroup, own_warp = emit_consumer_place(b, plan, frame)
    products = emit_products(b, plan, frame, warpgroup)
    staging = emit_staging(b, plan, frame, warpgroup, own_warp)
    release = emit_release_targets(b, plan, frame)
    fix_up = _emit_fix_up(b, plan, frame, warpgroup, products.accumulators, runs)
    cursor = emit_cursor(b, first_parity=0)
    with _segments(b, plan, frame, walk, runs) as segment:
        emit_tile_products(b, plan, frame, products, release, cursor, segment.blocks)
        left = b.label("SUMS_LEFT")
        owns = b.let(".pred", "owns", "setp.eq.s32", segment.first, 0)
        fix_up.leave_sums(owns, left)
        fix_up.add_sums(segment)
        emit_epilogue(b, plan, frame, staging, products.accumulators, segment.row, segment.col)
        b.place(left)
    emit_stores_done(b, staging)


@dataclass(frozen=True, slots=True)
class _FixUp:
    """The exchange of sums through global memory.

    Args:
        workspace: this thread's place in CTA 0's sums.  flags: CTA 0's flag.
        signals: predicate, true in the one consumer thread that sets and reads flags.
    """

    b: PtxEntry
    plan: GemmPlan
    frame: Frame
    runs: _Runs
    accumulators: list[list[Reg]]
    workspace: Reg
    flags: Reg
    signals: Reg

    def leave_sums(self, owns: Reg, left: str) -> None:
        """Write: who does not own the tile leaves its sums, and goes on at label `left`."""
        b, own = self.b, self.b.label("OWN_TILE")
        b.comment("a part of another CTA's tile")
        b.emit("bra", own, guard=owns)
        to = self._sums_of(self.frame.index)
        flat = [register for fragment in self.accumulators for register in fragment]
        for i in range(0, len(flat), 4):
            b.emit("st.global.v4.b32", address(to, i // 4 * _QUAD_BYTES), vector(flat[i : i + 4]))
        self._meet("all sums are written")
        flag = self._flag_of(self.frame.index)
        b.emit("st.release.gpu.global.b32", address(flag), 1, guard=self.signals)
        b.emit("bra", left)
        b.place(own)

    def add_sums(self, segment: _Segment) -> None:
        """Write: the owner adds the sums of the CTAs that follow, up to the end of its tile."""
        b = self.b
        b.comment("fix-up: add what the following CTAs have of this tile")
        peer = b.let(".b32", "peer", "add.s32", self.frame.index, 1)
        covered = b.let(".b32", "covered", "sub.s32", segment.tile_end, self.frame.k_blocks)
        b.emit("add.s32", covered, covered, segment.blocks)
        loop, done = b.label("FIX_UP"), b.label("TILE_WHOLE")
        is_whole = b.let(".pred", "is_whole", "setp.ge.s32", covered, segment.tile_end)
        b.emit("bra", done, guard=is_whole)
        b.place(loop)
        flag, source = self._flag_of(peer), self._sums_of(peer)
        self._wait_flag(flag)
        terms = b.regs(self.plan.sum_register, "term", 4)
        flat = [register for fragment in self.accumulators for register in fragment]
        for i in range(0, len(flat), 4):
            b.emit("ld.global.v4.b32", vector(terms), address(source, i // 4 * _QUAD_BYTES))
            for total, term in zip(flat[i : i + 4], terms, strict=True):
                b.emit(f"add.{self.plan.dtype.sum_ptx}", total, total, term)
        b.emit("add.s32", peer, peer, 1)
        b.emit("mov.b32", covered, _emit_run_start(b, self.runs, peer))
        more = b.let(".pred", "more_parts", "setp.lt.s32", covered, segment.tile_end)
        b.emit("bra", loop, guard=more)
        b.place(done)

    def _wait_flag(self, flag: Reg) -> None:
        """Write: one thread waits for the flag and clears it for the next launch, then all go on."""
        b = self.b
        seen, again, passed = b.reg(".b32", "seen"), b.label("WAIT_FLAG"), b.label("FLAG_SEEN")
        b.emit("bra", passed, unless=self.signals)
        b.place(again)
        b.emit("ld.acquire.gpu.global.b32", seen, address(flag))
        unset = b.let(".pred", "unset", "setp.eq.s32", seen, 0)
        b.emit("bra", again, guard=unset)
        b.emit("st.relaxed.gpu.global.b32", address(flag), 0)
        b.place(passed)
        self._meet("the flag is seen")

    def _meet(self, note: str) -> None:
        threads = self.plan.warpgroups * WARPGROUP_THREADS
        self.b.emit("bar.sync", _CONSUMERS_BARRIER, threads, note=note)

    def _sums_of(self, cta: Reg) -> Reg:
        b, tile_bytes = self.b, self.plan.tile.m * self.plan.tile.n * 4
        offset = b.let(".b64", "sums_offset", "mul.wide.u32", cta, tile_bytes)
        return b.let(".b64", "sums", "add.s64", self.workspace, offset)

    def _flag_of(self, cta: Reg) -> Reg:
        offset = self.b.let(".b64", "flag_offset", "mul.wide.u32", cta, 4)
        return self.b.let(".b64", "flag", "add.s64", self.flags, offset)


def _emit_fix_up(
    b: PtxEntry,
    plan: GemmPlan,
    frame: Frame,
    warpgroup: Reg | None,
    accumulators: list[list[Reg]],
    runs: _Runs,
) -> _FixUp:
    """Write the addresses of the fix-up."""
    b.comment("workspace")
    pointers: list[Reg] = []
    for name in ("workspace", "flags"):
        generic = b.let(".b64", f"{name}_param", "ld.param.u64", address(name))
        pointers.append(b.let(".b64", f"{name}_global", "cvta.to.global.u64", generic))
    workspace, flags = pointers
    in_group = b.let(".b32", "in_group", "and.b32", frame.thread, WARPGROUP_THREADS - 1)
    own = b.let(".b32", "own_bytes", "shl.b32", in_group, 4)
    if warpgroup is not None:
        group_bytes = plan.accumulators // 4 * _QUAD_BYTES
        own = b.let(".b32", "own_bytes", "mad.lo.s32", warpgroup, group_bytes, own)
    wide = b.let(".b64", "own_wide", "cvt.u64.u32", own)
    place = b.let(".b64", "own_sums", "add.s64", workspace, wide)
    in_first = b.let(".pred", "in_first", "setp.eq.s32", frame.warp, _FIRST_CONSUMER_WARP)
    signals = b.let(".pred", "signals", "and.pred", in_first, frame.elected)
    return _FixUp(b, plan, frame, runs, accumulators, place, flags, signals)

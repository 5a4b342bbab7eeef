"""A convolution as PTX: the warp-specialised GEMM whose rows of A are columns of pixels.

The producer brings, for each pixel of the filter and each slice of channels, the pixels of the tile moved by the place in
the filter (`.im2col` adds it, and fills what padding is), and the same slice of the filters. The ring, the products and
the way out are those of the GEMM schedules: the output is a matrix of pixels by filters.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.convolution.problem import ConvProblem
from hopsim.kernels.gemm.frame import MAPS, SIZES, Frame, emit_frame, new_entry
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import emit_advance, emit_barriers, emit_wait
from hopsim.kernels.gemm.roles import emit_roles, tile_loop
from hopsim.kernels.gemm.scheduler import TileWalk, emit_walk
from hopsim.kernels.gemm.warp_specialized import emit_consumer
from hopsim.kernels.ptx.pipeline import Cursor, emit_cursor, emit_slot_barrier
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, vector

EXTENTS = tuple(Param(name, ".u32") for name in ("p", "q", "channels"))
_TX = "shared::cluster.global"
_DONE = "mbarrier::complete_tx::bytes"


@dataclass(frozen=True, slots=True)
class _Pixel:
    """Coordinates of the first pixel of a tile, before the filter moves it."""

    w: Reg
    h: Reg
    image: Reg


def emit_forward(name: str, problem: ConvProblem, plan: GemmPlan) -> PtxEntry:
    """Return the entry; of the problem it knows extent, stride, padding and dilation, the rest are parameters."""
    b = new_entry(name, plan, MAPS + SIZES + EXTENTS)
    frame = emit_frame(b, plan)
    walk = emit_walk(b, plan, frame)
    emit_barriers(b, plan, frame)
    emit_roles(
        b, plan, frame,
        producer=lambda: _emit_producer(b, problem, plan, frame, walk),
        consumer=lambda: emit_consumer(b, plan, frame, walk),
    )  # fmt: skip
    return b


def _emit_producer(
    b: PtxEntry, problem: ConvProblem, plan: GemmPlan, frame: Frame, walk: TileWalk
) -> None:
    p, q, channels = (b.let(".b32", one.name, "ld.param.u32", address(one.name)) for one in EXTENTS)
    cursor = emit_cursor(b, first_parity=1)
    with tile_loop(b, plan, frame, walk) as (row, col):
        pixel = _emit_first_pixel(b, problem, row, p, q)
        _emit_tile_loads(b, problem, plan, frame, cursor, pixel, col, channels)


def _emit_first_pixel(b: PtxEntry, problem: ConvProblem, row: Reg, p: Reg, q: Reg) -> _Pixel:
    """Write where the filter begins for the output pixel `row`."""
    line = b.let(".b32", "line", "div.u32", row, q)
    before = b.let(".b32", "before_line", "mul.lo.s32", line, q)
    across = b.let(".b32", "across", "sub.s32", row, before)
    image = b.let(".b32", "image", "div.u32", line, p)
    before = b.let(".b32", "before_image", "mul.lo.s32", image, p)
    down = b.let(".b32", "down", "sub.s32", line, before)
    h, w = (
        b.let(".b32", name, "mad.lo.s32", place, stride, -padding)
        for name, place, stride, padding in zip(
            ("first_h", "first_w"), (down, across), problem.stride, problem.padding, strict=True
        )
    )
    return _Pixel(w, h, image)


def _emit_tile_loads(
    b: PtxEntry,
    problem: ConvProblem,
    plan: GemmPlan,
    frame: Frame,
    cursor: Cursor,
    pixel: _Pixel,
    col: Reg,
    channels: Reg,
) -> None:
    """Write the loads of a tile: slices of channels inside pixels of the filter, as the filters lie."""
    _, across = problem.extent
    dilation_h, dilation_w = problem.dilation
    channel = b.let(".b32", "channel", "mov.b32", 0)
    tap = b.let(".b32", "tap", "mov.b32", 0)
    s, off_w, off_h = (
        b.let(".b32", name, "mov.b32", 0) for name in ("place_w", "offset_w", "offset_h")
    )
    loop = b.label("LOAD_LOOP")
    b.place(loop)
    slot_barrier = emit_slot_barrier(b, frame.smem, cursor.stage)
    slot = b.let(".b32", "slot", "mad.lo.s32", cursor.stage, plan.stage_bytes, frame.smem)
    full = address(slot_barrier, plan.full_offset)
    emit_wait(b, plan, address(slot_barrier, plan.empty_offset), cursor.parity, "empty")
    guard = frame.leader
    b.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", full, plan.loaded_bytes, guard=guard)
    offsets = [
        b.let(".b16", name, "cvt.u16.u32", one) for name, one in (("ow", off_w), ("oh", off_h))
    ]
    b.emit(
        f"cp.async.bulk.tensor.4d.{_TX}.im2col.{_DONE}", address(slot),
        f"[{frame.map_a}, {vector((channel, pixel.w, pixel.h, pixel.image))}]", full, vector(offsets), guard=guard,
    )  # fmt: skip
    b.emit(
        f"cp.async.bulk.tensor.3d.{_TX}.{_DONE}", address(slot, plan.b_offset),
        f"[{frame.map_b}, {vector((channel, tap, col))}]", full, guard=guard,
    )  # fmt: skip
    emit_advance(b, plan, cursor)

    b.comment("the next slice of channels, or the next pixel of the filter")
    b.emit("add.s32", channel, channel, plan.tile.k)
    all_channels = b.let(".pred", "all_channels", "setp.ge.s32", channel, channels)
    b.emit("selp.b32", channel, 0, channel, all_channels)
    b.emit("add.s32", tap, tap, 1, guard=all_channels)
    b.emit("add.s32", s, s, 1, guard=all_channels)
    b.emit("add.s32", off_w, off_w, dilation_w, guard=all_channels)
    line_ends = b.let(".pred", "line_ends", "setp.eq.s32", s, across)
    b.emit("selp.b32", s, 0, s, line_ends)
    b.emit("selp.b32", off_w, 0, off_w, line_ends)
    b.emit("add.s32", off_h, off_h, dilation_h, guard=line_ends)
    more = b.let(".pred", "more_taps", "setp.lt.s32", tap, problem.taps)
    b.emit("bra", loop, guard=more)

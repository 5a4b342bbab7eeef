"""Three ways in which a kernel comes by its tensor maps, on the schedule `warp-specialized`.

| way | where the maps are | before the first copy |
|---|---|---|
| value | kernel parameters, made by the host | nothing |
| copied | global memory, put there by a launch for each map (as early Triton did) | acquire |
| edited | each CTA's own in global memory, made on the device from templates | replace, publish, acquire |

A tensor map is read through a proxy of its own, which not even a kernel boundary synchronises: a map
in global memory needs a release by whoever wrote it and an acquire by whoever uses it.  Editing on the
device is what grouped products need, whose shapes are only known there.

Source: PTX ISA 8.7 "tensormap.replace", "tensormap.cp_fenceproxy", "fence.proxy.tensormap";
triton-lang/triton#4498 (maps through global memory); CUTLASS 4.2, grouped GEMM with TMA.
"""

from __future__ import annotations

from dataclasses import replace

from hopsim.kernels.gemm.frame import MAPS, POINTERS, SIZES, Frame, emit_frame, new_entry
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import emit_barriers
from hopsim.kernels.gemm.roles import emit_roles
from hopsim.kernels.gemm.scheduler import emit_walk
from hopsim.kernels.gemm.warp_specialized import emit_consumer, emit_producer
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address
from hopsim.layout.tensormap import MAP_BYTES

WAYS = ("value", "copied", "edited")
OPERANDS = ("a", "b", "c")
WORKSPACE_BYTES = len(OPERANDS) * MAP_BYTES
"""Global memory of one CTA in the way `edited`."""

_WORD = 4
_MAP_POINTERS = tuple(Param(f"map_{operand}", ".u64") for operand in OPERANDS)


def emit_copy_map(name: str) -> PtxEntry:
    """Return a kernel of one warp that puts a by-value map into global memory and publishes it."""
    b = PtxEntry(name, (Param("map", ".b8", MAP_BYTES), Param("to", ".u64")), [".reqntid 32"])
    lane = b.let(".b32", "lane", "mov.u32", "%tid.x")
    word = _emit_map_word(b, "map", lane)
    generic = b.let(".b64", "to_param", "ld.param.u64", address("to"))
    to = b.let(".b64", "to", "cvta.to.global.u64", generic)
    place = b.let(".b64", "place", "mad.wide.u32", lane, _WORD, to)
    b.emit("st.global.b32", address(place), word)
    b.emit("fence.proxy.tensormap::generic.release.gpu")
    b.emit("ret")
    return b


def emit_gemm(name: str, plan: GemmPlan, way: str, *, prefetches: bool = True) -> PtxEntry:
    """Return the entry of the GEMM.

    Args:
        way: one of `WAYS`.  prefetches: whether maps are fetched ahead of their first use.
    """
    params = {
        "value": (*MAPS, *SIZES),
        "copied": (*_MAP_POINTERS, *SIZES),
        "edited": (*MAPS, *POINTERS, Param("workspace", ".u64"), *SIZES),
    }[way]
    b = new_entry(name, plan, params)
    if way == "value":
        frame = emit_frame(b, plan, prefetches=prefetches)
    elif way == "copied":
        frame = emit_frame(b, plan, _emit_pointer, prefetches=False)
        frame = _emit_acquired(b, frame, [frame.map_a, frame.map_b, frame.map_c], prefetches)
    else:
        frame = emit_frame(b, plan, prefetches=False)
        frame = _emit_acquired(b, frame, _emit_edited(b, plan, frame), prefetches)
    walk = emit_walk(b, plan, frame)
    emit_barriers(b, plan, frame)
    emit_roles(
        b, plan, frame,
        producer=lambda: emit_producer(b, plan, frame, walk),
        consumer=lambda: emit_consumer(b, plan, frame, walk),
    )  # fmt: skip
    return b


def staging_offset(plan: GemmPlan) -> int:
    """Return where maps are edited in shared memory: behind everything else."""
    return -(-plan.shared_bytes // MAP_BYTES) * MAP_BYTES


def _emit_pointer(b: PtxEntry, name: str) -> Reg:
    return b.let(".b64", name, "ld.param.u64", address(name))


def _emit_map_word(b: PtxEntry, name: str, lane: Reg) -> Reg:
    """Write this lane's 4 bytes of a by-value map."""
    start = b.let(".b64", f"{name}_bytes", "mov.b64", name)
    at = b.let(".b64", f"{name}_at", "mad.wide.u32", lane, _WORD, start)
    return b.let(".b32", f"{name}_word", "ld.param.b32", address(at))


def _emit_acquired(b: PtxEntry, frame: Frame, maps: list[Reg], prefetches: bool) -> Frame:
    """Write the acquire of maps in global memory by every lane that may use them."""
    b.comment("maps written in global memory are read through a proxy of their own")
    for tensor_map in maps:
        b.emit(
            "fence.proxy.tensormap::generic.acquire.gpu", address(tensor_map), MAP_BYTES,
            guard=frame.elected,
        )  # fmt: skip
    for tensor_map in maps if prefetches else ():
        b.emit("prefetch.tensormap", address(tensor_map), guard=frame.leader)
    map_a, map_b, map_c = maps
    return replace(frame, map_a=map_a, map_b=map_b, map_c=map_c)


def _emit_edited(b: PtxEntry, plan: GemmPlan, frame: Frame) -> list[Reg]:
    """Write maps for the problem at hand from templates; returns their generic addresses."""
    b.comment("edit the maps in shared memory, publish them in global memory")
    generic = b.let(".b64", "workspace", "ld.param.u64", address("workspace"))
    cta = b.let(".b32", "own_cta", "mov.u32", "%ctaid.x")
    own = b.let(".b64", "own_maps", "mad.wide.u32", cta, WORKSPACE_BYTES, generic)
    offsets = range(MAP_BYTES, WORKSPACE_BYTES, MAP_BYTES)
    maps = [own, *(b.let(".b64", "own_map", "add.s64", own, offset) for offset in offsets)]
    edited = b.label("MAPS_EDITED")
    others = b.let(".pred", "edits_nothing", "setp.ne.s32", frame.warp, 0)
    b.emit("bra", edited, guard=others)
    staging = staging_offset(plan)
    lane_addr = b.let(".b32", "lane_addr", "mad.lo.s32", frame.lane, _WORD, frame.smem)
    for index, operand in enumerate(OPERANDS):
        word = _emit_map_word(b, f"map_{operand}", frame.lane)
        b.emit("st.shared.b32", address(lane_addr, staging + index * MAP_BYTES), word)
    b.emit("bar.warp.sync", -1, note="one lane edits what all lanes wrote")
    extents = {"a": (frame.k, frame.m), "b": (frame.k, frame.n), "c": (frame.n, frame.m)}
    for index, operand in enumerate(OPERANDS):
        size = (plan.out_dtype if operand == "c" else plan.dtype).size
        at = address(frame.smem, staging + index * MAP_BYTES)
        _emit_replaced(b, at, operand, extents[operand], size, frame.elected)
    b.emit("bar.warp.sync", -1, note="all lanes publish what one lane edited")
    for index, tensor_map in enumerate(maps):
        to = b.let(".b64", "published", "cvta.to.global.u64", tensor_map)
        b.emit(
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned",
            address(to), address(frame.smem, staging + index * MAP_BYTES), MAP_BYTES,
        )  # fmt: skip
    b.place(edited)
    b.emit("bar.sync", 0, note="all warps of the CTA use them")
    return maps


def _emit_replaced(
    b: PtxEntry, at: str, operand: str, extents: tuple[Reg, Reg], size: int, guard: Reg
) -> None:
    """Write address, extents and pitch of one operand into the map at `at`."""
    pointer = b.let(".b64", f"{operand}_address", "ld.param.u64", address(operand))
    pitch = b.let(".b64", f"{operand}_pitch", "mul.wide.u32", extents[0], size)
    wide, narrow = ("tensormap.replace.tile.{}.shared::cta.b1024." + w for w in ("b64", "b32"))
    b.emit(wide.format("global_address"), at, pointer, guard=guard)
    for dimension, extent in enumerate(extents):
        b.emit(narrow.format("global_dim"), at, dimension, extent, guard=guard)
    b.emit(wide.format("global_stride"), at, 0, pitch, guard=guard)

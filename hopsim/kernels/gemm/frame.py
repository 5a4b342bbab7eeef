"""What every GEMM kernel starts with: parameters, who am I, and the entry's directives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.ptx.pipeline import emit_ceil_div, emit_map, emit_self
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address

SHARED_SYMBOL = "smem"
MAPS = tuple(Param(f"map_{operand}", ".b8", 128) for operand in "abc")
POINTERS = tuple(Param(operand, ".u64") for operand in "abc")
SIZES = tuple(Param(name, ".u32") for name in "mnk")


@dataclass(frozen=True, slots=True)
class Place:
    """Where this thread is, and what the problem is.

    Args:
        smem: shared address of the dynamic shared memory.
        thread: thread of the CTA.  warp: warp of the CTA.  lane: lane of the warp.
        m, n, k: sizes of the problem.  k_blocks: stages along K.
        rank_m, rank_n: place of this CTA in its cluster; None where the cluster is one CTA wide.
        index: the first unit of this cluster.
    """

    smem: Reg
    thread: Reg
    warp: Reg
    lane: Reg
    m: Reg
    n: Reg
    k: Reg
    k_blocks: Reg
    rank_m: Reg | None
    rank_n: Reg | None
    index: Reg


@dataclass(frozen=True, slots=True)
class Frame(Place):
    """What the roles of a TMA kernel share besides.

    Args:
        elected: predicate, true in one lane of each warp.
        leader: predicate, true in one thread of the CTA, the elected one of warp 0.
        map_a, map_b, map_c: generic addresses of the tensor maps.
    """

    elected: Reg
    leader: Reg
    map_a: Reg
    map_b: Reg
    map_c: Reg


def new_entry(name: str, plan: GemmPlan, params: Sequence[Param] = MAPS + SIZES) -> PtxEntry:
    """Return an entry with the GEMM's parameters and the directives its launch depends on."""
    directives = [f".reqntid {plan.threads}"]
    if plan.has_producer:
        directives.append(f".maxnreg {plan.entry_registers}")
    if plan.launch_cluster > 1:
        directives += [".explicitcluster", f".reqnctapercluster {plan.launch_cluster}, 1, 1"]
    return PtxEntry(name, params, directives)


def emit_frame(
    b: PtxEntry,
    plan: GemmPlan,
    map_of: Callable[[PtxEntry, str], Reg] | None = None,
    *,
    prefetches: bool = True,
) -> Frame:
    """Write the start of the kernel.

    Args:
        map_of: writes the generic address of a tensor map; by default that of a by-value parameter.
        prefetches: whether the maps are fetched ahead of their first use.
    """
    me = emit_self(b, SHARED_SYMBOL)

    b.comment("parameters")
    m, n, k = (b.let(".b32", name, "ld.param.u32", address(name)) for name in ("m", "n", "k"))
    map_a, map_b, map_c = ((map_of or emit_map)(b, name) for name in ("map_a", "map_b", "map_c"))
    for tensor_map in (map_a, map_b, map_c) if prefetches else ():
        b.emit("prefetch.tensormap", address(tensor_map), guard=me.leader)
    k_blocks = emit_ceil_div(b, "k_blocks", k, plan.tile.k)

    cta = b.let(".b32", "cta", "mov.u32", "%ctaid.x")
    rank_m, rank_n, index = None, None, cta
    if plan.cluster_size > 1:
        along_m, along_n = plan.cluster
        rank = b.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
        if along_m > 1:
            rank_m = b.let(".b32", "rank_m", "and.b32", rank, along_m - 1)
        if along_n > 1:
            rank_n = b.let(".b32", "rank_n", "shr.u32", rank, along_m.bit_length() - 1)
        shift = plan.cluster_size.bit_length() - 1
        index = b.let(".b32", "cluster", "shr.u32", cta, shift)
    return Frame(
        smem=me.smem, thread=me.thread, warp=me.warp, lane=me.lane, elected=me.elected, leader=me.leader,
        m=m, n=n, k=k, k_blocks=k_blocks, map_a=map_a, map_b=map_b, map_c=map_c,
        rank_m=rank_m, rank_n=rank_n, index=index,
    )  # fmt: skip

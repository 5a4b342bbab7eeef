"""Fences, and arrivals that make writes seen as fences do: which instructions they are, and how long each holds a warp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from hopsim.config.groups import Fence
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program.codegen import Segment


class Fences(IntEnum):
    """What a head lets a warp wait for, a bit each; an SM does each the first time once."""

    NOTHING = 0
    MEMORY = 1
    PROXY = 2


def fences_of(bound: BoundInstruction, cycles: float, config: Fence) -> Fences:
    """Return what an instruction lets its warp wait for, beyond the CTA.

    Args:
        cycles: for which it holds its warp as a fence; 0 if it is none.
    """
    if cycles < config.proxy_async_cycles:
        return Fences.NOTHING
    return Fences.PROXY if bound.form.name.startswith("fence.proxy") else Fences.MEMORY


def fence_cycles(config: Fence, name: str, slots: Mapping[str, str]) -> int:
    """Return how long a fence holds its warp.

    Args:
        name, slots: of its form.
    """
    if name.startswith("fence.mbarrier_init"):
        return config.mbarrier_init_cycles
    if name.startswith("fence.proxy"):
        if "tensormap" in name:
            return config.proxy_tensormap_cycles
        shared = _is_of_shared(slots)
        return config.proxy_async_shared_cycles if shared else config.proxy_async_cycles
    scope = slots.get("scope") or slots.get("level") or "gpu"
    return {"cta": config.cta_cycles, "cluster": config.cluster_cycles}.get(
        scope, config.gpu_cycles
    )


def publishes_shared(bound: BoundInstruction) -> bool:
    """Whether it is a fence.proxy.async of shared memory alone."""
    name = bound.form.name
    is_proxy = name.startswith("fence.proxy") and "tensormap" not in name
    return is_proxy and _is_of_shared(dict(bound.slots))


def _is_of_shared(slots: Mapping[str, str]) -> bool:
    return slots.get("space", "").startswith("shared")


def releases_to_cluster(bound: BoundInstruction, slots: Mapping[str, str]) -> bool:
    """Whether an arrival makes the thread's writes visible to other CTAs of the cluster first."""
    if bound.form.unit == "cluster_barrier":
        return "arrive" in bound.instruction.opcode and slots.get("sem") != "relaxed"
    return (
        bound.form.unit == "mbarrier"
        and "arrive" in bound.form.name
        and slots.get("scope") == "cluster"
        and slots.get("sem") != "relaxed"
    )


def arrives_after_initialisation(program: Sequence[Segment]) -> BoundInstruction | None:
    """Return the first arrival at the cluster barrier after the initialisation of an mbarrier, in the text's order.

    One thread initialises; its fence comes when that of the others is under way, and waits for it.
    """
    initialised = False
    for segment in program:
        for bound in segment.instructions:
            opcode = bound.instruction.opcode
            initialised = initialised or opcode[:2] == ("mbarrier", "init")
            if initialised and bound.form.unit == "cluster_barrier" and "arrive" in opcode:
                return bound
    return None


__all__ = [
    "Fences",
    "arrives_after_initialisation",
    "fence_cycles",
    "fences_of",
    "publishes_shared",
    "releases_to_cluster",
]

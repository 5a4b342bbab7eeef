"""The special registers, computed when a strand first reads one.

Source: PTX ISA 8.7 "Special Registers".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hopsim.isa.program.symbols import SHARED_RESERVED_BYTES
from hopsim.isa.values import collapse

if TYPE_CHECKING:
    from hopsim.hw.machine.strand import StrandCore

AXES = {"x": 0, "y": 1, "z": 2}


class Specials(dict[str, Any]):
    """Values of special registers for the lanes of one strand, by name (`%tid.x`)."""

    __slots__ = ("strand",)

    def __init__(self, strand: StrandCore) -> None:
        super().__init__()
        self.strand = strand

    def __missing__(self, name: str) -> Any:
        value = self._compute(name)
        self[name] = value
        return value

    def _compute(self, name: str) -> Any:
        strand = self.strand
        cta = strand.cta
        machine = strand.machine
        word, _, axis = name[1:].partition(".")
        if word in (
            "tid",
            "ntid",
            "ctaid",
            "nctaid",
            "clusterid",
            "nclusterid",
            "cluster_ctaid",
            "cluster_nctaid",
        ):
            if axis == "w":  # unused, always 0
                return 0
            k = AXES[axis]
            if word == "tid":
                block = machine.block
                per = (1, block[0], block[0] * block[1])[k]
                return collapse((strand.tids // per % block[k]).astype(np.uint32))
            return {
                "ntid": machine.block,
                "ctaid": cta.id,
                "nctaid": machine.grid,
                "clusterid": cta.cluster.id,
                "nclusterid": machine.cluster_grid,
                "cluster_ctaid": cta.id_in_cluster,
                "cluster_nctaid": machine.cluster_shape,
            }[word][k]
        lane = strand.tids % 32
        ones = (1 << 32) - 1
        masks: dict[str, Callable[[int], int]] = {
            "lanemask_eq": lambda n: 1 << n,
            "lanemask_le": lambda n: (2 << n) - 1,
            "lanemask_lt": lambda n: (1 << n) - 1,
            "lanemask_ge": lambda n: ones & ~((1 << n) - 1),
            "lanemask_gt": lambda n: ones & ~((2 << n) - 1),
        }
        if word == "laneid":
            return collapse(lane.astype(np.uint32))
        if word == "warpid":
            return collapse((strand.tids // 32).astype(np.uint32))
        if word in masks:
            return collapse(np.array([masks[word](n) for n in lane.tolist()], np.uint32))
        plain = {
            "nwarpid": 64,
            "cluster_ctarank": cta.rank,
            "cluster_nctarank": machine.cluster_size,
            "is_explicit_cluster": bool(machine.explicit_cluster),
            "smid": cta.sm,
            "nsmid": machine.sm_count,
            "gridid": 1,
            "dynamic_smem_size": machine.dynamic_shared_bytes,
            "total_smem_size": machine.shared_bytes,
            "aggr_smem_size": machine.shared_bytes + SHARED_RESERVED_BYTES,
            "reserved_smem_offset_begin": 0,
            # Recorded on an H100.
            "reserved_smem_offset_end": 0x120,
            "reserved_smem_offset_cap": SHARED_RESERVED_BYTES,
            # What cooperative groups keep there has just the 0x120 bytes up to the end (`multi_warp_scratch` of CUDA 13.0).
            "reserved_smem_offset_1": 0,
            # Source: what nvcc makes of `this_grid().sync()`.
            "envreg1": machine.setup.workspace >> 32,
            "envreg2": machine.setup.workspace & ones,
        }
        if word in plain:
            return plain[word]
        raise AssertionError(f"decoding refuses {name}")

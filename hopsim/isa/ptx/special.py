"""The special registers of PTX.

Source: PTX ISA 8.7 "Special Registers".
"""

from __future__ import annotations

import re
from typing import Final

_VECTORS: Final = (
    "%tid", "%ntid", "%ctaid", "%nctaid",
    "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
)  # fmt: skip
_SCALARS: Final = (
    "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%is_explicit_cluster",
    "%cluster_ctarank", "%cluster_nctarank",
    "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt",
    "%clock", "%clock_hi", "%clock64",
    "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
    "%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap",
)  # fmt: skip
# What the system or a profiler decides; no machine of hopsim has them.
_UNMODELLED: Final = (
    "%current_graph_exec", *(f"%pm{i}" for i in range(8)), *(f"%pm{i}_64" for i in range(8)),
)  # fmt: skip
_DOUBLE_WORDS: Final = ("%clock64", "%globaltimer")
GRID_WORKSPACE: Final = frozenset({"%envreg1", "%envreg2"})
"""The two that kernels read in practice: the address of what the CTAs of a cooperative launch meet at."""
GROUPS_SCRATCH: Final = "%reserved_smem_offset_1"
"""Of the numbered parts of reserved shared memory the one that CUDA's cooperative groups use."""
_NUMBERED: Final = re.compile(
    r"%envreg(?:[12]?[0-9]|3[01])|%reserved_smem_offset_(?:0|[1-9][0-9]*)"
)

SPECIAL_REGISTERS: Final = frozenset((*_VECTORS, *_SCALARS, *_UNMODELLED))
"""All but the numbered ones, without components."""


def is_special(name: str) -> bool:
    """Whether a name (without component) is a special register."""
    return name in SPECIAL_REGISTERS or _NUMBERED.fullmatch(name) is not None


def has_components(name: str) -> bool:
    """Whether a special register is a vector with `.x`, `.y`, `.z` (and `.w`, always 0)."""
    return name in _VECTORS


def widths_of(name: str) -> tuple[int, ...]:
    """Return how many bits a special register has, without component: where more than one, `mov` reads it so too."""
    if name == "%is_explicit_cluster":
        return (1,)
    if name == "%gridid":
        return (64, 32, 16)
    if name in _DOUBLE_WORDS:
        return (64,)
    return (32, 16) if name in _VECTORS[:4] else (32,)


def is_modelled(name: str) -> bool:
    """Whether a special register, without component, has a value on hopsim's machine."""
    return name in _VECTORS or name in _SCALARS or name in GRID_WORKSPACE or name == GROUPS_SCRATCH

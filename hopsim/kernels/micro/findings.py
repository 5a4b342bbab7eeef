"""What the hazard checker finds in microbenchmarks and is meant: they measure time, whatever becomes of the data.

Their texts are what was measured on silicon, so that none of them is changed to please the checker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Intended:
    """Findings that are meant.

    Args:
        names: pattern of the benchmarks' names.
        rule: of the checker.
        why: the reason.
    """

    names: str
    rule: str
    why: str


INTENDED: Final = (
    Intended(
        r"cluster_\d+", "HS500",
        "every CTA of the cluster stores its difference in the same word; any of them is the measurement",
    ),
    Intended(
        r"shared_rate_w\d+", "HS701",
        "loads and ldmatrix read shared memory that nobody wrote: only when it comes counts",
    ),
    Intended(
        r"shared_rate_w(4|8|16)", "HS500",
        "stmatrix of several warps writes the same rows, so that bank conflicts are all that differs; nobody reads them",
    ),
    Intended(
        r"tma_store_\d+", "HS303",
        "what a .read wait takes is measured first; the same box is then stored again with the full wait",
    ),
    Intended(
        r"tma_store_64_w\d+_d\d+_p\d+", "HS303",
        "each warp waits until its sources have been read, which is what is measured; nobody looks at what was stored",
    ),
    Intended(
        r"staging_w\d+", "HS300",
        "stores follow each other to the same small box, so that the unit is ready for each; nobody looks at what is stored",
    ),
    Intended(
        r"staging_w\d+", "HS301",
        "what warps do is measured, not how long the unit reads: they stage while it does",
    ),
    Intended(
        r"both_ways_tma_\w+", "HS303",
        "a part is stored again when its source has been read: rates are measured, nobody looks at what was stored",
    ),
    Intended(
        r"dsmem_bulk_\w+", "HS016",
        "copies follow each other into the same bytes of the peer, as fast as they go; all bring the same",
    ),
    Intended(
        r"(wgmma|(beside|slowed)_wgmma_n\d+|idle_copies_n\d+)_\w+", "HS701",
        "operands in shared memory are whatever is there: wgmma takes the same time for all values",
    ),
    Intended(
        r"tma_(store|reduce)_\w+|both_ways_tma_\d+_l\d+_s[1-9]|dsmem_bulk_\w+", "HS701",
        "what is stored or copied is whatever is in shared memory: only when it goes counts",
    ),
    Intended(
        r"tma_load_l2_\w+_m[24]", "HS217",
        "a slot is handed back to the CTAs of a cluster by an arrive of .cta scope, as in CUTLASS",
    ),
    Intended(
        r"mbarrier_latency|start_fence_proxy_\w+", "HS113", "what a proxy fence takes that orders nothing is measured"
    ),
    Intended(
        r"bar_among_w\d+", "HS215",
        "arrivals follow each other: what one takes after bar.sync is measured, and nobody waits for their phases",
    ),
    Intended(
        r"start_barrier_init_\w+", "HS212",
        "mbarriers that nobody uses are initialised again and again: what the barrier after it takes is measured",
    ),
)  # fmt: skip


def intended_rules(name: str) -> set[str]:
    """Return the rules whose findings in a benchmark are meant."""
    return {one.rule for one in INTENDED if re.fullmatch(one.names, name)}

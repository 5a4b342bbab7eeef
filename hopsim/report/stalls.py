"""Where the warps' time went: a bar for each state, in Nsight Compute's words."""

from __future__ import annotations

from collections.abc import Mapping

from hopsim.report.columns import Bar, Column, Columns, Kind
from hopsim.report.quantities import share

LEAST_SHARE = 0.0005

# What each state means to somebody who reads PTX; the words are Nsight Compute's where it has the state.
MEANINGS: Mapping[str, str] = {
    "selected": "issued an instruction",
    "not_selected": "ready, another warp was issued",
    "wait": "fixed latency of the instruction before",
    "short_scoreboard": "result of shared memory",
    "long_scoreboard": "result of global or local memory",
    "barrier": "bar.sync: other warps are missing",
    "membar": "fence",
    "gmma": "wgmma: group or accumulators not ready",
    "math_pipe_throttle": "the pipe is taken by another warp",
    "sleeping": "nanosleep",
    "branch_resolve": "branch target",
    "mbarrier": "mbarrier: phase not complete",
    "bulk_group": "cp.async.bulk.wait_group",
    "copy_group": "cp.async.wait_group",
    "cluster_barrier": "barrier.cluster: other CTAs are missing",
    "registers": "setmaxnreg: registers not free",
    "convergence": "other lanes of the warp",
    "no_instruction": "code that the SM fetches for the first time",
    "dispatch_stall": "the tensor cores take the ways to the registers",
}


def stall_chart(stalls: Mapping[str, float]) -> Columns:
    """Return a bar chart of shares of warp time, the largest first.

    Args:
        stalls: share by reason, as `LaunchResult.stalls` has them.
    """
    table = Columns(
        Column(width=20),
        Column(kind=Kind.NUMBER, width=7),
        Column(kind=Kind.BAR),
        Column(kind=Kind.NOTE, style="dim"),
    )
    kept = [(name, part) for name, part in stalls.items() if part >= LEAST_SHARE]
    for name, part in sorted(kept, key=lambda item: (-item[1], item[0])):
        table.add_row(name, share(part), Bar(part), MEANINGS.get(name, ""))
    return table

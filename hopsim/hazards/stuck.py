"""Why warps that never exited wait in vain: what the barrier or phase they wait for lacks.

mbarriers are judged by their phases, the rest by what each warp was last seen to wait for.
"""

from __future__ import annotations

from hopsim.findings import Deadlock
from hopsim.hazards.findings import Findings
from hopsim.hazards.polls import Polls
from hopsim.hazards.reasons import SURE
from hopsim.hazards.stuck_barriers import explain_named
from hopsim.hazards.stuck_collectives import explain_collectives, explain_lanes_apart
from hopsim.hazards.stuck_loops import explain_loops
from hopsim.hazards.stuck_mbarriers import explain_mbarriers
from hopsim.hazards.world import World


def explain_stuck(
    world: World, findings: Findings, polls: Polls, deadlock: Deadlock | None = None
) -> None:
    """Enter a finding for each barrier that a warp waits for in vain.

    Args:
        deadlock: where each warp waits at the end; without it only mbarriers are explained.
    """
    waits = () if deadlock is None else deadlock.waiting
    found = [
        *explain_mbarriers(world, findings, waits),
        *explain_named(world, findings, waits),
        *explain_collectives(world, findings, waits),
        *explain_lanes_apart(world, findings, waits),
        *explain_loops(world, findings, polls, deadlock),
    ]
    surest = min((weight for weight, _ in found), default=SURE)
    for weight, finding in found:
        if weight == surest:
            findings.add(finding)

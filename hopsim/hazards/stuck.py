"""Why warps that never exited wait in vain: what the phase they wait for lacks."""

from __future__ import annotations

from hopsim.hazards.clocks import Agent
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.objects import Barrier
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import World


def explain_stuck(world: World, findings: Findings) -> None:
    """Enter a finding for each mbarrier that a warp was last seen waiting for."""
    told: set[int] = set()
    found: list[Finding] = []
    for cta in world.ctas.values():
        if not cta.live:
            continue
        for agent in cta.agents:
            if agent.peeked is None or not agent.live:
                continue
            barrier, index, line, mask = agent.peeked
            if index != barrier.index or id(barrier) in told:
                continue
            told.add(id(barrier))
            rule, missing, hint = _why(barrier, agent)
            born = barrier.born
            span = {"start": barrier.address, "stop": barrier.address + 8}
            found.append(
                Finding(
                    rule, "hazard", RULES[rule].sentence,
                    findings.thread_side(born[0], born[2], born[3], "mbarrier init", **span),
                    findings.thread_side(agent, mask, line, "mbarrier wait", **span), missing, hint,
                )
            )  # fmt: skip
    # Where bytes or parities are wrong, arrivals are missing only in consequence.
    certain = [finding for finding in found if finding.rule not in ("HS205", "HS200")]
    for finding in certain or found:
        findings.add(finding)


def _why(barrier: Barrier, agent: Agent) -> tuple[str, str, str]:
    phase = barrier.phase(barrier.index)
    state = (
        f"phase {barrier.index}: {phase.arrivals} arrivals, {barrier.pending} missing; {phase.bytes_expected} bytes "
        f"expected, {phase.bytes_done} delivered"
    )
    if barrier.tx < 0:
        return "HS201", state, f"raise expect_tx by {-barrier.tx} bytes, or copy less"
    if barrier.tx > 0 and not barrier.outstanding:
        if barrier.pending and not phase.arrivals:
            return "HS203", state, "expect_tx alone does not arrive: use mbarrier.arrive.expect_tx"
        return "HS202", state, f"lower expect_tx by {barrier.tx} bytes, or copy the rest"
    last = barrier.phases.get(barrier.index - 1)
    seen = last is not None and any(other is agent for other, *_ in last.waits)
    if last is not None and last.arrivals and not seen and not phase.arrivals:
        return (
            "HS004",
            state,
            f"the phase before is complete and this warp never saw it: wait for parity {barrier.index - 1 & 1}",
        )
    untouched = barrier.index == 0 and not phase.arrivals and not barrier.tx
    if untouched and not agent.loads and _feeds(barrier, agent):
        hint = "start with parity 1: on a fresh mbarrier a wait for parity 1 passes at once"
        return "HS007", state, hint
    if barrier.pending:
        return "HS205", state, "lower the count of mbarrier.init, or let the missing threads arrive"
    return "HS200", state, "complete the phase"


def _feeds(barrier: Barrier, agent: Agent) -> bool:
    """Whether others of the CTA are stuck too, waiting for what this warp was to bring."""
    for other in barrier.owner.agents:
        if (
            other is not agent
            and other.live
            and other.peeked is not None
            and other.peeked[0] is not barrier
        ):
            waited: Barrier = other.peeked[0]
            if waited.index == 0 and not waited.phase(0).arrivals:
                return True
    return False

"""Cluster barriers, registers, and what lanes or warps execute together: who waits there in vain, and for whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hopsim.findings import Access, Wait
from hopsim.hazards.findings import Findings, cta_text
from hopsim.hazards.reasons import LIKELY, PERHAPS, Reason, Weighed, finding_of
from hopsim.hazards.world import CtaState, World

OWN_RULE: Final = re.compile(r"wgmma|elect")


def explain_collectives(world: World, findings: Findings, waits: Sequence[Wait]) -> list[Weighed]:
    """Return a finding for each cluster, CTA or warp that waits at a collective or for registers."""
    found: list[Weighed] = []
    told: set[tuple[str, int]] = set()
    for wait in waits:
        cta = world.cta(world.facts.index_of(wait.cta))
        why = _why_other(wait)
        if why is None:
            continue
        key = (why.rule, cta.cluster if why.rule == "HS404" else cta.index)
        if key not in told:
            told.add(key)
            finding = finding_of(findings, cta, wait, "wait", why)
            if why.rule == "HS404":
                late = finding.first = _elsewhere(world, findings, cta, waits)
                if late is not None:
                    finding.hint = (
                        f"let warp {late.warp} of {cta_text(late.cta)} come to barrier.cluster before it waits at"
                        f" :{late.line}: {why.hint}"
                    )
            found.append((why.weight, finding))
    return found


def _elsewhere(
    world: World, findings: Findings, cta: CtaState, waits: Sequence[Wait]
) -> Access | None:
    """Return where a warp of the cluster waits that should be at the cluster barrier."""
    for wait in waits:
        other = world.cta(world.facts.index_of(wait.cta))
        if other.cluster == cta.cluster and wait.kind != "barrier.cluster":
            agent = other.agents[wait.warp]
            return findings.thread_side(agent, wait.lanes or agent.live, wait.line, "wait")
    return None


def _why_other(wait: Wait) -> Reason | None:
    if wait.kind == "setmaxnreg":
        hint = (
            "let the other warpgroups setmaxnreg.dec first, and keep the sum of all within the registers that the CTA"
            " was launched with"
        )
        state = f"registers: :{wait.line} asks for more than the other warps gave back"
        return Reason("HS601", state, hint)
    if wait.kind == "barrier.cluster":
        missing, needed = wait.pending_arrivals or 0, wait.expected_arrivals or 0
        state = f"cluster barrier: {needed - missing} of {needed} threads have arrived"
        hint = "every thread of the cluster that has not exited arrives on each barrier.cluster"
        return Reason("HS404", state, hint, PERHAPS)
    if wait.kind == "collective" and wait.text.startswith("wgmma"):
        state = f"the other warps of the warpgroup at :{wait.line}"
        return Reason("HS015", state, "let all four warps of the warpgroup take the same path")
    if wait.kind == "collective" and wait.text.startswith("elect"):
        state = f"the other lanes of the mask at :{wait.line}"
        return Reason(
            "HS508", state, "let all lanes of the mask execute elect.sync, or name those that do"
        )
    return None


def explain_lanes_apart(world: World, findings: Findings, waits: Sequence[Wait]) -> list[Weighed]:
    """Explain warps all of whose lanes wait for the others, at different collectives."""
    warps: dict[tuple[int, int], list[Wait]] = {}
    for wait in waits:
        warps.setdefault((world.facts.index_of(wait.cta), wait.warp), []).append(wait)
    found: list[Weighed] = []
    told: set[tuple[int, ...]] = set()
    for (index, warp), parts in warps.items():
        lines = tuple(wait.line for wait in parts)
        # Lanes that wait for anything else are explained by that; wgmma and elect.sync have rules of their own.
        named = any(wait.kind != "collective" or OWN_RULE.match(wait.text) for wait in parts)
        if named or lines in told:
            continue
        told.add(lines)
        cta, (wait, *others) = world.cta(index), parts
        state = f"the other lanes of the mask at :{wait.line}"
        hint = f"let all lanes of the mask come to :{wait.line}, or name only those that do"
        finding = finding_of(findings, cta, wait, "wait", Reason("HS515", state, hint))
        if others:
            other = others[0]
            agent = cta.agents[warp]
            finding.first = findings.thread_side(agent, other.lanes, other.line, "wait")
        found.append((LIKELY, finding))
    return found

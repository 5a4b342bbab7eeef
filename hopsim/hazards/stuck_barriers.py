"""Named barriers at which warps wait in vain: who never came, or came in part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hopsim.findings import Wait
from hopsim.hazards.clocks import Agent
from hopsim.hazards.facts import LaunchFacts
from hopsim.hazards.findings import Findings
from hopsim.hazards.objects import Meeting
from hopsim.hazards.reasons import ELSE, LAST, SURE, Reason, Weighed, finding_of
from hopsim.hazards.world import CtaState, World

NAMED: Final = re.compile(r"\b(bar|barrier)(\.cta)?\.(sync|arrive|red)\b")
BAR_ARRIVE: Final = re.compile(r"\b(bar|barrier)(\.cta)?\.arrive\b")
# The first of either behind a wait tells who fills a buffer from who reads it.
FILL: Final = re.compile(
    r"^(st(\.\w+)*?\.shared|stmatrix|cp\.async\.(ca|cg)\.shared|cp\.async\.bulk(\.tensor\.\dd)?\.shared)"
)
READ: Final = re.compile(
    r"^(ld(\.\w+)*?\.shared|ldmatrix|wgmma\.mma_async|cp\.async\.bulk(\.tensor\.\dd)?\.global)"
)
COUNTED: Final = re.compile(r"\b(bar|barrier)(\.cta)?\.(sync|arrive)(\.aligned)?\s[^,;]+,")


def explain_named(world: World, findings: Findings, waits: Sequence[Wait]) -> list[Weighed]:
    """Return a finding for each named barrier at which warps wait."""
    stations: dict[tuple[int, int], Wait] = {}
    for wait in waits:
        if wait.kind == "bar" and wait.address is not None:
            cta = world.facts.index_of(wait.cta)
            stations.setdefault((cta, wait.address), wait)
    found: list[Weighed] = []
    for (index, number), wait in stations.items():
        cta = world.cta(index)
        meeting: Meeting | None = cta.named.get(number)
        if meeting is None or number in cta.overrun:
            continue
        apart = [
            one
            for one in waits
            if world.facts.index_of(one.cta) == index and (one.kind, one.address) != ("bar", number)
        ]
        why = _why_named(world, cta, number, meeting, wait, len(stations) > 1, apart)
        found.append((why.weight, finding_of(findings, cta, wait, "barrier", why)))
    first = [finding for _, finding in found if finding.rule == "HS505"]
    filling = [one for one in first if _fills(world.facts, one.lines[1])]
    if filling:
        # Those who fill what the others read come first: they wait for nothing then.
        found = [
            (weight, one)
            for weight, one in found
            if one.rule != "HS505" or any(one is other for other in filling)
        ]
    return found


def _fills(facts: LaunchFacts, line: int) -> bool:
    """Whether what stands behind a PTX line writes shared memory before it reads any."""
    for other in facts.kernel_lines:
        if other > line and FILL.match(facts.mnemonic(other)):
            return True
        if other > line and READ.match(facts.mnemonic(other)):
            return False
    return False


def _why_named(
    world: World,
    cta: CtaState,
    number: int,
    meeting: Meeting,
    wait: Wait,
    several: bool,
    apart: Sequence[Wait],
) -> Reason:
    """Return why a named barrier does not complete.

    Args:
        several: whether warps wait at other named barriers too.
        apart: who of the CTA waits for something else.
    """
    facts = world.facts
    came: dict[Agent, int] = {}
    for source in meeting.members:
        came[source.agent] = came.get(source.agent, 0) | source.mask
    needed, missing = wait.expected_arrivals or 0, wait.pending_arrivals or 0
    state = f"barrier {number}: {needed - missing} of {needed} threads have arrived"
    partial = [agent for agent, mask in came.items() if agent.live & ~mask]
    if partial:
        lanes = came[partial[0]].bit_count()
        state += f"; of warp {partial[0].warp} only {lanes} of {partial[0].live.bit_count()} lanes"
        rule = "HS507" if lanes == 1 else "HS506"
        return Reason(rule, state, f"move the barrier of :{wait.line} out of the branch")
    absent = [agent for agent in cta.agents if agent not in came]
    gone = [agent for agent in absent if not agent.live]
    if gone and 32 * len(gone) >= missing:
        names = ", ".join(str(agent.warp) for agent in gone[:8])
        hint = (
            f"let warp {names} pass the barrier before it exits, or count only those who come"
            f" at :{wait.line}"
        )
        return Reason("HS509", state, hint, gone=gone[0])
    arrives = [
        line
        for line in facts.kernel_lines
        if BAR_ARRIVE.search(facts.text(line)) and _number_of(facts.text(line)) in (number, None)
    ]
    if arrives and several and not meeting.uses:
        hint = (
            f"before the loop, let one of the others arrive once on barrier {number}, as at"
            f" :{arrives[0]}"
        )
        return Reason("HS505", state, hint)
    hint = f"give barrier {number} the number of threads that really come, at each of its uses"
    elsewhere = any(agent.live for agent in absent)
    if elsewhere and apart and meeting.uses:
        if any(_comes_by(facts, one.line, number) for one in apart):
            # They would come, and wait for something else before that.
            return Reason("HS503", state, hint, LAST)
        lines = " and ".join(dict.fromkeys(f":{one.line}" for one in apart))
        hint = (
            f"let those who wait at {lines} arrive on barrier {number} once for each of its uses, or give it the number of"
            " threads that really come"
        )
    # A barrier of the whole CTA lacks those who are stuck elsewhere.
    least = ELSE if COUNTED.search(facts.text(wait.line)) else LAST
    return Reason("HS503", state, hint, least if elsewhere else SURE)


def _comes_by(facts: LaunchFacts, line: int, number: int) -> bool:
    """Whether who stands at a PTX line may still come to a named barrier."""
    return any(
        NAMED.search(facts.text(after)) and _number_of(facts.text(after)) in (number, None)
        for after in facts.lines_after(line)
    )


def _number_of(text: str) -> int | None:
    """Return the barrier number of a bar instruction, when it is written as a number."""
    found = re.search(r"\b(?:bar|barrier)[\w.:]*\s+(\d+)\b", text)
    return None if found is None else int(found.group(1))

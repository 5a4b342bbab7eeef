"""Why warps that never exited wait in vain: what the barrier or phase they wait for lacks.

mbarriers are judged by their phases, the rest by what each warp was last seen to wait for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hopsim.hazards.clocks import Agent
from hopsim.hazards.findings import Finding, Findings, cta_text
from hopsim.hazards.objects import Barrier, Meeting
from hopsim.hazards.polls import Polls
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import CtaState, World
from hopsim.results import Access, Deadlock, Wait

BAR_ARRIVE: Final = re.compile(r"\b(bar|barrier)(\.cta)?\.arrive\b")
COUNTED: Final = re.compile(r"\b(bar|barrier)(\.cta)?\.(sync|arrive)(\.aligned)?\s[^,;]+,")
SIGNAL: Final = re.compile(r"\bmbarrier\.arrive|complete_tx|\bcp\.async\.mbarrier\.arrive")
STRONG_WRITE: Final = re.compile(
    r"\bst\.(release|relaxed|volatile|mmio)\b|\batom\b|\bred(\.async)?\b"
)
LOAD: Final = re.compile(r"\bcp\.async\.bulk\.(tensor\.)?\S*shared|\.expect_tx\b")
OWN_RULE: Final = re.compile(r"wgmma|elect")
# How sure a reason is: the surest ones are told, the others are taken for their consequences.
SURE, LIKELY, PERHAPS, ELSE, LAST = range(5)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a wait is in vain: the rule, the state of the barrier, what to do, and which warp left instead, if one did."""

    rule: str
    state: str
    hint: str
    weight: int = SURE
    gone: Agent | None = None


def explain_stuck(
    world: World, findings: Findings, polls: Polls, deadlock: Deadlock | None = None
) -> None:
    """Enter a finding for each barrier that a warp waits for in vain.

    Args:
        deadlock: where each warp waits at the end; without it only mbarriers are explained.
    """
    waits = () if deadlock is None else deadlock.waiting
    found = [
        *_mbarriers(world, findings, waits),
        *_named(world, findings, waits),
        *_others(world, findings, waits),
        *_apart(world, findings, waits),
        *_spinning(world, findings, polls, deadlock),
    ]
    surest = min((weight for weight, _ in found), default=SURE)
    for weight, finding in found:
        if weight == surest:
            findings.add(finding)


# --- mbarriers ------------------------------------------------------------------------------------


def _mbarriers(
    world: World, findings: Findings, waits: Sequence[Wait]
) -> list[tuple[int, Finding]]:
    told: set[int] = set()
    found: list[tuple[int, Finding]] = []
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
            why = _why(barrier, agent)
            weight = why.weight
            if _comes_later(world, barrier, why, waits):
                weight = ELSE
            elif why.rule == "HS205" and _suppliers_wait(barrier, waits, world):
                weight = PERHAPS
            born = barrier.born
            span = {"start": barrier.address, "stop": barrier.address + 8}
            found.append(
                (weight, Finding(
                    why.rule, "hazard", RULES[why.rule].sentence,
                    findings.thread_side(born[0], born[2], born[3], "mbarrier init", **span),
                    findings.thread_side(agent, mask, line, "mbarrier wait", **span), why.state, why.hint,
                ))
            )  # fmt: skip
    first = [one for one in found if one[1].rule == "HS007"]
    if len(first) > 1:
        # Of two that wait for each other the one that copies, or expects bytes, soon after its wait is the producer.
        producer = min(first, key=lambda one: _until_load(world, one[1].lines[1]))
        found = [one for one in found if one is producer or one[1].rule != "HS007"]
    return found


def _comes_later(world: World, barrier: Barrier, why: Reason, waits: Sequence[Wait]) -> bool:
    """Whether what an mbarrier lacks stands behind a cluster barrier at which others wait for the waiter itself."""
    if why.rule != "HS205" or barrier.phase(barrier.index).arrivals:
        return False
    return any(
        SIGNAL.search(world.facts.text(after))
        for wait in waits
        if wait.kind == "barrier.cluster"
        and world.cta(world.facts.index_of(wait.cta)).cluster == barrier.owner.cluster
        for after in world.facts.lines_after(wait.line)
    )


def _suppliers_wait(barrier: Barrier, waits: Sequence[Wait], world: World) -> bool:
    """Whether all who arrived in the phase before, and could do so again, wait for another barrier now."""
    last = barrier.phases.get(barrier.index - 1)
    if last is None or not last.members or barrier.phase(barrier.index).arrivals:
        return False
    elsewhere = {
        world.cta(world.facts.index_of(wait.cta)).agents[wait.warp]
        for wait in waits
        if wait.kind != "mbarrier" or wait.address != barrier.address
    }
    return all(source.agent in elsewhere for source in last.members)


def _until_load(world: World, line: int) -> int:
    """Return how many instructions stand between a line and the next that begins a load."""
    facts = world.facts
    after = [facts.text(other) for other in facts.kernel_lines if other > line]
    return next((count for count, text in enumerate(after) if LOAD.search(text)), len(after))


def _why(barrier: Barrier, agent: Agent) -> Reason:
    phase = barrier.phase(barrier.index)
    state = (
        f"phase {barrier.index}: {phase.arrivals} arrived, {barrier.pending} missing; {phase.bytes_expected} bytes "
        f"expected, {phase.bytes_done} delivered"
    )
    at = f"at :{phase.expected_at}, " if phase.expected_at else ""
    if barrier.tx < 0:
        hint = f"{at}raise expect_tx by {-barrier.tx} bytes, or copy less"
        if not phase.arrivals and not phase.bytes_expected:
            hint = (
                f"before the copies, one thread: mbarrier.arrive.expect_tx with {-barrier.tx} bytes"
            )
        return Reason("HS201", state, hint)
    if barrier.tx > 0 and not barrier.outstanding:
        if barrier.pending and not phase.arrivals:
            hint = "expect_tx alone does not arrive: use mbarrier.arrive.expect_tx"
            return Reason("HS203", state, hint)
        return Reason(
            "HS202", state, f"{at}lower expect_tx by {barrier.tx} bytes, or copy the rest"
        )
    if barrier.pending and phase.bytes_expected and not phase.arrivals:
        hint = "expect_tx alone does not arrive: use mbarrier.arrive.expect_tx"
        return Reason("HS203", state, hint)
    last = barrier.phases.get(barrier.index - 1)
    seen = last is not None and any(other is agent for other, *_ in last.waits)
    if last is not None and last.arrivals and not seen and not phase.arrivals:
        parity = barrier.index - 1 & 1
        hint = f"the phase before is complete and this warp never saw it: wait for parity {parity}"
        return Reason("HS004", state, hint)
    untouched = barrier.index == 0 and not phase.arrivals and not barrier.tx
    if untouched and not agent.loads and _feeds(barrier, agent):
        hint = "start with parity 1: on a fresh mbarrier a wait for parity 1 passes at once"
        return Reason("HS007", state, hint)
    if barrier.pending:
        line = barrier.born[3]
        hint = f"at :{line}, lower the count of mbarrier.init by {barrier.pending}, or let {barrier.pending} more arrive"
        if barrier.index == 0 and not phase.arrivals:
            hint = (
                f"nobody arrives on it: let {barrier.pending} do so (mbarrier.arrive, or cp.async.mbarrier.arrive), or lower"
                f" the count at :{line}"
            )
        return Reason("HS205", state, hint, LIKELY)
    return Reason("HS200", state, "complete the phase", LIKELY)


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


# --- named barriers -------------------------------------------------------------------------------


def _named(world: World, findings: Findings, waits: Sequence[Wait]) -> list[tuple[int, Finding]]:
    stations: dict[tuple[int, int], Wait] = {}
    for wait in waits:
        if wait.kind == "bar" and wait.address is not None:
            cta = world.facts.index_of(wait.cta)
            stations.setdefault((cta, wait.address), wait)
    found: list[tuple[int, Finding]] = []
    for (index, number), wait in stations.items():
        cta = world.cta(index)
        meeting: Meeting | None = cta.named.get(number)
        if meeting is None or number in cta.overrun:
            continue
        why = _why_named(world, cta, number, meeting, wait, len(stations) > 1)
        found.append((why.weight, _finding(findings, cta, wait, "barrier", why)))
    return found


def _finding(findings: Findings, cta: CtaState, wait: Wait, what: str, why: Reason) -> Finding:
    agent = cta.agents[wait.warp]
    space = "register" if wait.kind == "setmaxnreg" else "shared::cta"
    if wait.kind == "spin" and ".shared" not in wait.text:
        space = "global"
    side = findings.thread_side(agent, wait.lanes or agent.live, wait.line, what, space=space)
    gone = why.gone
    left = None if gone is None else findings.thread_side(gone, gone.exited, gone.exit_line, "exit")
    return Finding(why.rule, "hazard", RULES[why.rule].sentence, left, side, why.state, why.hint)


def _why_named(
    world: World, cta: CtaState, number: int, meeting: Meeting, wait: Wait, several: bool
) -> Reason:
    """Return why a named barrier does not complete.

    Args:
        several: whether warps wait at other named barriers too.
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
    # A barrier of the whole CTA lacks those who are stuck elsewhere.
    least = ELSE if COUNTED.search(facts.text(wait.line)) else LAST
    return Reason("HS503", state, hint, least if elsewhere else SURE)


def _number_of(text: str) -> int | None:
    """Return the barrier number of a bar instruction, when it is written as a number."""
    found = re.search(r"\b(?:bar|barrier)[\w.:]*\s+(\d+)\b", text)
    return None if found is None else int(found.group(1))


# --- cluster barriers, registers, collectives, loops ----------------------------------------


def _spinning(
    world: World, findings: Findings, polls: Polls, deadlock: Deadlock | None
) -> list[tuple[int, Finding]]:
    if deadlock is None:
        return []
    found: list[tuple[int, Finding]] = []
    told: set[int] = set()
    for wait in deadlock.waiting:
        if wait.kind != "spin":
            continue
        missed = polls.missed(wait)
        if missed is not None:
            found.append((SURE, missed))
        elif wait.line not in told and not wait.text.startswith("mbarrier"):
            told.add(wait.line)
            why = _why_spinning(world, wait, deadlock)
            cta = world.cta(world.facts.index_of(wait.cta))
            found.append((why.weight, _finding(findings, cta, wait, "spin", why)))
    return found


def _why_spinning(world: World, wait: Wait, deadlock: Deadlock) -> Reason:
    """Return why a loop has no end: nobody is left who writes what it reads, or who would is stuck or has no room."""
    later = any(
        STRONG_WRITE.search(world.facts.text(line))
        for other in deadlock.waiting
        if other.kind != "spin"
        for line in world.facts.lines_after(other.line)
    )
    state = f"the loop at :{wait.line} reads the same for ever: nobody changes it any more"
    hint = f"write what ends the loop at :{wait.line} before its writer exits or waits for these threads"
    if ".cas" in wait.text or ".exch" in wait.text:
        hint = f"release what :{wait.line} takes, on every path:  atom.exch or st.release of the value it waits for"
    elif "." not in wait.text.removesuffix(".uni"):
        state = f"the loop at :{wait.line} reads nothing that others could change"
        hint = "give the loop a way out"
    elif deadlock.not_started:
        state += f", while {deadlock.not_started} CTAs wait for room on the chip"
        hint = "launch no more CTAs than the chip holds at once, or let none wait for a later one"
    return Reason("HS514", state, hint, ELSE if later else LIKELY)


def _apart(world: World, findings: Findings, waits: Sequence[Wait]) -> list[tuple[int, Finding]]:
    """Explain warps all of whose lanes wait for the others, at different collectives."""
    warps: dict[tuple[int, int], list[Wait]] = {}
    for wait in waits:
        warps.setdefault((world.facts.index_of(wait.cta), wait.warp), []).append(wait)
    found: list[tuple[int, Finding]] = []
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
        finding = _finding(findings, cta, wait, "wait", Reason("HS515", state, hint))
        if others:
            other = others[0]
            agent = cta.agents[warp]
            finding.first = findings.thread_side(agent, other.lanes, other.line, "wait")
        found.append((LIKELY, finding))
    return found


def _others(world: World, findings: Findings, waits: Sequence[Wait]) -> list[tuple[int, Finding]]:
    found: list[tuple[int, Finding]] = []
    told: set[tuple[str, int]] = set()
    for wait in waits:
        cta = world.cta(world.facts.index_of(wait.cta))
        why = _why_other(wait)
        if why is None:
            continue
        key = (why.rule, cta.cluster if why.rule == "HS404" else cta.index)
        if key not in told:
            told.add(key)
            finding = _finding(findings, cta, wait, "wait", why)
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

"""mbarriers that warps wait for in vain: what the phase lacks, judged by what has come to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hopsim.findings import Wait
from hopsim.hazards.clocks import Agent
from hopsim.hazards.facts import LaunchFacts
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.misdirected import find_misdirected
from hopsim.hazards.objects import Barrier, Phase
from hopsim.hazards.out_of_step import is_told_by_race
from hopsim.hazards.reasons import ELSE, LIKELY, PERHAPS, SURE, Reason, Weighed
from hopsim.hazards.rules import RULES
from hopsim.hazards.suppliers import Suppliers
from hopsim.hazards.world import World

SIGNAL: Final = re.compile(r"\bmbarrier\.arrive|complete_tx|\bcp\.async\.mbarrier\.arrive")
ADDING: Final = re.compile(r"\bcp\.async\.mbarrier\.arrive\b(?!\.noinc)")
LOAD: Final = re.compile(r"\bcp\.async\.bulk\.(tensor\.)?\S*shared|\.expect_tx\b")


@dataclass(slots=True)
class _Lack:
    """An mbarrier that some lanes of a warp have tested in vain, why its phase is not complete, and how sure that is."""

    barrier: Barrier
    agent: Agent
    mask: int
    line: int
    why: Reason
    weight: int

    @property
    def may_be_cause(self) -> bool:
        """Whether arrivals are missing, for all that is known without the other mbarriers."""
        return self.why.rule == "HS205" and self.weight == LIKELY


def explain_mbarriers(world: World, findings: Findings, waits: Sequence[Wait]) -> list[Weighed]:
    """Return a finding for each mbarrier that a warp tests in vain."""
    suppliers = Suppliers(world, waits)
    lacks = list(_lacks(world, suppliers, waits))
    causes = [one.barrier for one in lacks if one.may_be_cause]
    for one in lacks:
        if one.why.rule == "HS202" and (stray := find_misdirected(world, one.barrier)) is not None:
            one.why = replace(one.why, hint=stray.hint(world))
            stray.told.is_astray |= one.weight == SURE
    found: list[Weighed] = []
    for one in lacks:
        follows = one.may_be_cause and any(
            suppliers.follows(one.barrier, other) for other in causes
        )
        is_surplus = one.why.rule == "HS201" and one.barrier.is_astray
        weight = PERHAPS if follows or is_surplus else one.weight
        found.append((weight, _finding(findings, one)))
    first = [one for one in found if one[1].rule == "HS007"]
    if len(first) > 1:
        # Of two that wait for each other the one that copies, or expects bytes, soon after its wait is the producer.
        producer = min(first, key=lambda one: _until_load(world, one[1].lines[1]))
        found = [one for one in found if one is producer or one[1].rule != "HS007"]
    return found


def _lacks(world: World, suppliers: Suppliers, waits: Sequence[Wait]) -> Iterator[_Lack]:
    """Yield each mbarrier whose open phase some lanes have tested in vain."""
    told: set[int] = set()
    for cta in world.ctas.values():
        for agent in cta.agents if cta.live else ():
            for mask, (barrier, index, line) in agent.peeks.items():
                if mask & agent.live and index == barrier.index and id(barrier) not in told:
                    told.add(id(barrier))
                    why = _why(barrier, agent, world)
                    weight = _weight(world, suppliers, barrier, why, waits)
                    yield _Lack(barrier, agent, mask, line, why, weight)


def _finding(findings: Findings, lack: _Lack) -> Finding:
    """Return what is told of an mbarrier."""
    barrier, why = lack.barrier, lack.why
    born = barrier.born
    span = {"start": barrier.address, "stop": barrier.address + 8}
    finding = Finding(
        why.rule, "hazard", RULES[why.rule].sentence,
        findings.thread_side(born[0], born[2], born[3], "mbarrier init", **span),
        findings.thread_side(lack.agent, lack.mask, lack.line, "mbarrier wait", **span), why.state, why.hint,
    )  # fmt: skip
    if why.rule == "HS201" and is_told_by_race(barrier):
        # It still says that what the others lack follows.
        finding.late = lambda: ""
    return finding


def _weight(
    world: World, suppliers: Suppliers, barrier: Barrier, why: Reason, waits: Sequence[Wait]
) -> int:
    """Return how sure it is that what an mbarrier lacks is the cause, and does not wait for another one."""
    if _comes_later(world, barrier, why, waits):
        return ELSE
    if why.rule == "HS205":
        return PERHAPS if suppliers.all_wait(barrier) else why.weight
    waits_for = {"HS201": suppliers.expecter_waits, "HS202": suppliers.copier_waits}.get(why.rule)
    return PERHAPS if waits_for is not None and waits_for(barrier) else why.weight


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


def _until_load(world: World, line: int) -> int:
    """Return how many instructions stand between a line and the next that begins a load."""
    facts = world.facts
    after = [facts.text(other) for other in facts.kernel_lines if other > line]
    return next((count for count, text in enumerate(after) if LOAD.search(text)), len(after))


def _why(barrier: Barrier, agent: Agent, world: World) -> Reason:
    phase = barrier.phase(barrier.index)
    state = (
        f"phase {barrier.index}: {phase.arrivals} arrived, {barrier.pending} missing; {phase.bytes_expected} bytes "
        f"expected, {phase.bytes_done} delivered"
    )
    at = f"at :{phase.expected_at}, " if phase.expected_at else ""
    if barrier.tx < 0:
        hint = f"{at}raise expect_tx by {-barrier.tx} bytes, or copy less"
        if not phase.bytes_expected:
            hint = _expect(-barrier.tx, phase)
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
        return Reason("HS205", state, _let_arrive(barrier, phase, world.facts), LIKELY)
    return Reason("HS200", state, "complete the phase", LIKELY)


def _expect(count_bytes: int, phase: Phase) -> str:
    """Return how a phase comes to expect bytes, of which it expects none."""
    if phase.members:
        line = phase.members[-1].line
        return f"at :{line}, in the place of a plain arrive:  mbarrier.arrive.expect_tx  with {count_bytes} bytes"
    return f"before the copies, one thread: mbarrier.arrive.expect_tx with {count_bytes} bytes"


def _let_arrive(barrier: Barrier, phase: Phase, facts: LaunchFacts) -> str:
    """Return how the arrivals come that a phase lacks, or how it does without them."""
    missing, born = barrier.pending, barrier.born[3]
    adding = [one.line for one in phase.members if ADDING.search(facts.text(one.line))]
    if adding and missing == phase.added:
        return (
            f"at :{adding[0]}:  cp.async.mbarrier.arrive.noinc  (without .noinc it adds its own arrival to those that the"
            " phase needs), or let each of its threads also mbarrier.arrive"
        )
    if not phase.arrivals:
        return (
            f"nobody has arrived on it: let {missing} do so (mbarrier.arrive, or cp.async.mbarrier.arrive.noinc), or as many"
            f" as the init at :{born} says then"
        )
    # A count of zero is not allowed.
    if missing >= barrier.expected:
        return f"let {missing} more arrive"
    return (
        f"at :{born}, lower the count of mbarrier.init by {missing}, or let {missing} more arrive"
    )


def _feeds(barrier: Barrier, agent: Agent) -> bool:
    """Whether others of the CTA are stuck too, waiting for what this warp was to bring."""
    return any(
        waited is not barrier and not waited.index and not waited.phase(0).arrivals
        for other in barrier.owner.agents
        if other is not agent and other.live
        for waited, _, _ in other.peeks.values()
    )

"""Places of the program that the texts of a finding name: where an edge begins, where a wait stands, where lanes meet."""

from __future__ import annotations

from typing import Final

from hopsim.hazards.advice_texts import EXPECT, RAISE
from hopsim.hazards.chains import TOO_NARROW, Chain, find_chain
from hopsim.hazards.clocks import Agent, sees
from hopsim.hazards.naming import barrier_of, epoch_of
from hopsim.hazards.ordering import Gap
from hopsim.hazards.records import Record
from hopsim.hazards.world import includes, scope_around

# Edges by which one thread learns of what others did, so that its CTA may.
LEARNED: Final = ("flag", "fence", "mbarrier")


def gather(first: Record, gap: Gap) -> str:
    """Return where lanes must meet the one that goes on for them, in words: those that leave publish nothing by that."""
    if gap.first is not None:
        agent, mask = gap.first
        for epoch, lanes, line in agent.exits:
            if lanes & mask and epoch == epoch_of(first, agent):
                return f"before they leave at :{line}"
    return "before the elected arrive"


def released_at(chain: Chain | None) -> str:
    """Return where the first of the edges that there are begins, in words."""
    if chain is None or chain.weak:
        return "the slot is released"
    return f":{chain.lines[0]} releases the slot"


def narrow_map_fences(first: Record, second: Record) -> str:
    """Return which fences of the tensormap proxy do not reach from one CTA to the other, in words."""
    lines = sorted(
        {
            line
            for cta in (first.cta, second.cta)
            for line, (_, scope) in cta.map_fences.items()
            if not includes(scope, first.cta, second.cta)
        }
    )
    if not lines:
        return ""
    scope = scope_around(first.cta, second.cta)
    return f", of .{scope} scope: too narrow at {' and '.join(f':{line}' for line in lines)}"


def lacking_map_fence(first: Record, second: Record, gap: Gap) -> str:
    """Return which fence of the tensormap proxy is missing, `release` or `acquire`, where the other one is there."""
    if not second.is_map or gap.first is None:
        return ""
    agent = gap.first[0]
    since = epoch_of(first, agent)
    is_released = any(
        ended >= since and kind == "fence.proxy.tensormap"
        for ended, (kind, _) in agent.epochs.items()
    )
    is_acquired = any(what == "acquire" for what, _ in second.cta.map_fences.values())
    if is_released == is_acquired:
        return ""
    return "acquire" if is_released else "release"


def expected_at(record: Record) -> str:
    """Return where the bytes of a copy's phase are expected, in words."""
    if record.flight is None:
        return ""
    barrier, index = barrier_of(record.flight, record)
    phase = None if barrier is None else barrier.phases.get(index)
    return f" (:{phase.expected_at})" if phase is not None and phase.expected_at else ""


def counted_at(record: Record) -> int:
    """Return the PTX line of the expect_tx for a copy's phase, or of the arrive that should have been one; 0: neither."""
    if record.flight is None:
        return 0
    barrier, index = barrier_of(record.flight, record)
    phase = None if barrier is None else barrier.phases.get(index)
    if barrier is None or phase is None:
        return 0
    if phase.expected_at:
        return phase.expected_at
    # Where it completed the phase before, it came before the copy.
    for one in (phase, barrier.phases.get(index - 1)):
        line = 0 if one is None else one.arrived_at(record.flight.agent)
        if line:
            return line
    return 0


def raised(record: Record) -> str:
    """Return how the phase of a copy comes to expect its bytes, in words."""
    at, expect = counted_at(record), expected_at(record)
    if expect or not at:
        return RAISE.format(a=record.line, expect=expect)
    return EXPECT.format(a=record.line, at=at)


def awaited(first: Record, second: Record, gap: Gap) -> str:
    """Return how a load is waited for, in words: other lanes of the warp may have done so."""
    agent, mask = gap.second
    barrier, index = (None, 0) if first.flight is None else barrier_of(first.flight, first)
    phase = None if barrier is None else barrier.phases.get(index)
    for other, _, lanes, line in () if phase is None else phase.waits:
        if other is agent and mask & ~lanes:
            return (
                f"between the wait at :{line}, which other lanes of the warp make, and :{second.line}:  "
                "bar.warp.sync 0xffffffff;"
            )
    return f"before :{second.line}, loop on mbarrier.try_wait.parity on the mbarrier named at :{first.line}"


def narrow_edge(first: Record, gap: Gap) -> Chain | None:
    """Return the edge of too narrow a scope that hands on an access, or the completion of an operation."""
    end = gap.second[0]
    starts = [(gap.first[0], epoch_of(first, gap.first[0]))] if gap.first is not None else []
    if first.done is not None:
        starts += [(agent, epoch) for agent, epoch, _ in first.done.observers]
    for agent, epoch in starts:
        chain = find_chain(agent, epoch, end, end.now, True)
        if chain is not None and not TOO_NARROW.isdisjoint(chain.weak):
            return chain
    return None


def flag_of(chain: Chain | None, first: Record, second: Record) -> dict[str, str]:
    """Return where an edge that carries too little begins and ends, why, and the fences that would let it carry more."""
    if chain is None:
        return {}
    # What lies in global memory may be handed on between other CTAs too.
    scope = "gpu" if first.space == "global" else scope_around(first.cta, second.cta)
    if first.space == "shared" and first.cta is second.cta:
        scope = "cta"
    return {
        "sent": f":{chain.lines[0]}",
        "is_weak": "yes" if chain.weak else "",
        "is_released": "yes" if chain.is_released else "",
        "seen": f":{chain.lines[-1]}",
        "scope": scope,
        "cuda": "__threadfence_block()" if scope == "cta" else "__threadfence()",
    }


def announced_by(first: Record, second: Record, gap: Gap) -> str:
    """Return how a write of threads could be announced by the mbarrier that its reader has waited for, in words."""
    if first.kind == "r" or gap.first is None or first.cta is not second.cta:
        return ""
    agent, lanes = gap.second
    for _, mask, line, what, node in reversed(agent.log):
        if not what.endswith("mbarrier") or not mask & lanes:
            continue
        born = next(
            (one.born[3] for one in first.cta.barriers.values() if node in one.phases.values()), 0
        )
        if not born or any(source.agent is gap.first[0] for source in node.members):
            return ""
        return (
            f"  or let each thread that executes :{first.line} arrive behind it on the mbarrier for which :{line} waits, and"
            f" count them at its init (:{born})"
        )
    return ""


def told_to(first: Record, second: Record, gap: Gap) -> dict[str, str]:
    """Return where another thread of the second one's CTA waited for an access, in words, and which barrier hands that on.

    Whoever comes by that place itself needs no other thread.
    """
    if gap.first is None or not second.is_thread or second.flight is not None:
        return {}
    start, mask = gap.first
    epoch = epoch_of(first, start)
    end, lanes = gap.second
    for agent in second.cta.agents:
        for others, view in agent.eyes(agent.live):
            if (agent is end and not others & ~lanes) or not sees(view.hb, start, epoch, mask):
                continue
            line = next(
                (
                    at
                    for _, some, at, what, _ in reversed(agent.log)
                    if some & others and what.endswith(LEARNED)
                ),
                0,
            )
            if line and not _comes_by(gap.second, line):
                return {
                    "learned": f":{line}",
                    "barrier": "bar.warp.sync -1;" if agent is end else "bar.sync 0;",
                }
    return {}


def _comes_by(who: tuple[Agent, int], line: int) -> bool:
    """Whether lanes of a warp have learned something at a PTX line themselves."""
    agent, lanes = who
    return any(at == line and mask & lanes for _, mask, at, _, _ in agent.log)


def released_by(second: Record, gap: Gap) -> str:
    """Return where another warp of the readers' CTA hands their slot to who fills it again, in words; empty: none does."""
    flight = second.flight
    if flight is None or gap.first is None:
        return ""
    reader = gap.first[0]
    for _, mask, _, what, phase in reversed(flight.agent.log):
        # Of phases that bring data it learns what to read, not what it may overwrite.
        if not what.endswith("mbarrier") or not mask & flight.parts[0][2] or phase.flights:
            continue
        for source in phase.members:
            if source.agent is reader:
                return ""
            if source.agent.cta is reader.cta and source.agent is not flight.agent:
                return f":{source.line}"
    return ""


def slots_overlap(first: Record, second: Record, gap: Gap) -> str:
    """Return that a slot is laid over another one, in words, its reader having waited for bytes of elsewhere; or nothing."""
    flight = second.flight
    if flight is None or gap.first is None:
        return ""
    agent, lanes = gap.first
    epoch = epoch_of(first, agent)
    aims = [barrier for barrier, _, _ in flight.aims]
    for at, mask, _, what, phase in reversed(agent.log):
        if at > epoch or not mask & lanes or not what.endswith("mbarrier") or not phase.flights:
            continue
        if any(phase is one for barrier in aims for one in barrier.phases.values()):
            return ""
        for record in (record for other in phase.flights for record in other.records):
            is_beside = record.owner == second.owner and record.start != second.start
            if (
                is_beside
                and record.space == second.space
                and record.start < second.stop
                and second.start < record.stop
            ):
                return (
                    f"  or keep the slots apart: what is read came to {record.start:#x}..{record.stop - 1:#x}, for another"
                    f" mbarrier than {second.start:#x}..{second.stop - 1:#x}"
                )
        return ""
    return ""


def learned_before(record: Record, who: tuple[Agent, int], other: Agent, epoch: int) -> int:
    """Return the PTX line above an access at which another warp or lane of its CTA learned what `other` did; 0: none did."""
    agent, lanes = who
    for mine in record.cta.agents:
        for at, mask, line, what, _ in mine.log:
            if (
                line >= record.line
                or not what.endswith(LEARNED)
                or (mine is agent and mask & lanes)
            ):
                continue
            if find_chain(other, epoch, mine, at, False) is not None:
                return line
    return 0

"""Named barriers, cluster barriers and warp barriers: all who come learn from all who came.

Source: PTX ISA 8.7 "bar, barrier", "barrier.cluster", "bar.warp.sync".
"""

from __future__ import annotations

import numpy as np

from hopsim.events import BarrierEvent, SyncEvent
from hopsim.hazards.clocks import ANY, INIT, Agent, View, bits
from hopsim.hazards.facts import LaunchFacts
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.flags import Flags
from hopsim.hazards.objects import Meeting, Phase, Source
from hopsim.hazards.records import Ints
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import WARP, World


def started(cta: int) -> int:
    """Return the clock key that says that a CTA has started."""
    return -1 - cta


class Meetings:
    """Handles named, cluster and warp barriers."""

    def __init__(self, world: World, findings: Findings, flags: Flags) -> None:
        self.world = world
        self.findings = findings
        self.flags = flags
        # Phases of cluster barriers, by (cluster, phase).
        self.phases: dict[tuple[int, int], Meeting] = {}
        # Fences of inits, by warp: the last epoch of each lane that executed one.
        self.inits: dict[int, dict[int, int]] = {}
        # The last completed use of each named barrier, by (CTA, number).
        self.last: dict[tuple[int, int], Meeting] = {}

    # -- named barriers ----------------------------------------------------------------------------

    def named(self, event: BarrierEvent) -> None:
        """bar, barrier."""
        cta = self.world.cta(event.agent[0])
        meeting: Meeting | None = cta.named.get(event.barrier)
        if event.what == "phase":
            if meeting is not None:
                del cta.named[event.barrier]
                self._gather(meeting)
                self.last[cta.index, event.barrier] = meeting
            return
        last = self.last.get((cta.index, event.barrier))
        if meeting is None:
            meeting = cta.named[event.barrier] = Meeting()
            cta.numbers.add(event.barrier)
            meeting.uses = 0 if last is None else last.uses + 1
        for agent, mask in self.world.parties(event.agent):
            if event.barrier not in cta.overrun:
                self._check_free(last, meeting, agent, mask, event)
            meeting.view.join(agent.release(mask))
            epoch = agent.end_epoch("bar", event.line)
            meeting.members.append(Source(agent, epoch, mask, event.line))
            if event.what != "arrive":
                meeting.waiting.append((agent, mask, event.line))
        if event.what != "arrive" and _is_aligned(self.world.facts, event.line):
            meeting.lines.add(event.line)

    def _check_free(
        self, last: Meeting | None, meeting: Meeting, agent: Agent, mask: int, event: BarrierEvent
    ) -> None:
        """Whoever comes must know that the use before is over: it waited then, or learned from somebody who did."""
        mine = [
            source for source in meeting.members if source.agent is agent and source.mask & mask
        ]
        if not mine:
            if last is None:
                return
            hb = agent.eyes(mask)[0][1].hb
            for other, _, _ in last.waiting:
                left = last.epochs[other.number]
                if other is agent or max(hb.get(other.key, 0), hb.get(other.key + ANY, 0)) > left:
                    return
            mine = [source for source in last.members if source.agent is agent]
        told_of = bool(mine)
        rule = "HS513" if told_of else "HS504"
        agent.cta.overrun.add(event.barrier)
        if mine:
            other, lanes, line = mine[0].agent, mine[0].mask, mine[0].line
        else:
            assert last is not None
            other, lanes, line = last.waiting[0] if last.waiting else _member(last)
            self.world.collided.add(frozenset((line, event.line)))
        self.findings.add(
            Finding(
                rule, "hazard", RULES[rule].sentence,
                self.findings.thread_side(other, lanes, line, "barrier"),
                self.findings.thread_side(agent, mask, event.line, "barrier"),
                f"an edge that says that the use of barrier {event.barrier} at :{line} is over before :{event.line}",
                "wait for somebody who passed the barrier before arriving on it again" if told_of
                else _apart(last, event.line, line),
            )
        )  # fmt: skip

    def _gather(self, meeting: Meeting) -> None:
        """Everybody who waits learns."""
        for agent, mask, line in meeting.waiting:
            meeting.epochs[agent.number] = agent.now - 1
            _learn_all(agent, mask, meeting.view)
            agent.log.append((agent.now, mask, line, "bar", meeting))
        if len(meeting.lines) > 1:
            first, second = (
                next(one for one in meeting.waiting if one[2] == line)
                for line in sorted(meeting.lines)[:2]
            )
            self.findings.add(
                Finding(
                    "HS506", self.world.options.aligned_barrier, RULES["HS506"].sentence,
                    self.findings.thread_side(first[0], first[1], first[2], "barrier"),
                    self.findings.thread_side(second[0], second[1], second[2], "barrier"),
                    "one static instruction for all who block on an aligned barrier",
                    f"use barrier.sync (not aligned) at :{first[2]} and :{second[2]}",
                )
            )  # fmt: skip

    # -- cluster barriers --------------------------------------------------------------------------

    def cluster(self, event: BarrierEvent) -> None:
        """barrier.cluster."""
        if event.what == "arrive":
            self._arrive(event)
        elif event.what == "wait":
            self._wait(event)

    def _arrive(self, event: BarrierEvent) -> None:
        cta = self.world.cta(event.agent[0])
        meeting = self.phases.setdefault((cta.cluster, event.phase), Meeting())
        self.phases.pop((cta.cluster, event.phase - 4), None)
        relaxed = event.semantics == "relaxed"
        across = self.world.options.proxy_fence == "path" or self.world.facts.cluster_size == 1
        for agent, mask in self.world.parties(event.agent):
            meeting.view.hb[started(cta.index)] = 1
            if relaxed:
                # Inits that were fenced for it are published, whatever else is, and that this CTA runs.
                for lane, epoch in self.inits.get(agent.number, {}).items():
                    meeting.view.hb[agent.key + INIT + lane] = epoch
            published = self.flags.published(agent, mask, not relaxed)
            for width, view in published.views.items():
                near = width == "cta"
                into = meeting.near.setdefault(cta.index, View.empty()) if near else meeting.view
                into.join(view, across)
            kind = "relaxed cluster arrive" if relaxed else "cluster arrive"
            epoch = agent.end_epoch(kind, event.line)
            weak = "" if published.is_whole else "relaxed cluster"
            meeting.members.append(Source(agent, epoch, mask, event.line, weak, published.fence))

    def _wait(self, event: BarrierEvent) -> None:
        cta = self.world.cta(event.agent[0])
        meeting = self.phases.get((cta.cluster, event.phase - 1))
        if meeting is None:
            return
        for agent, mask in self.world.parties(event.agent):
            _learn_all(agent, mask, meeting.view)
            for index, view in meeting.near.items():
                if index == cta.index:
                    agent.acquire(mask, view)
                else:
                    agent.acquire_loosely(mask, view)
            for member in meeting.members:
                if agent.passed.get(member.agent.number, 0) < member.epoch:
                    agent.passed[member.agent.number] = member.epoch
            agent.log.append((agent.now, mask, event.line, "barrier.cluster", meeting))

    def init_fence(self, event: SyncEvent) -> None:
        """fence.mbarrier_init.release.cluster."""
        for agent, mask in self.world.parties(event.agent):
            epoch = agent.end_epoch("fence.mbarrier_init", event.line)
            self.inits.setdefault(agent.number, {}).update(dict.fromkeys(bits(mask), epoch))

    # -- warps -------------------------------------------------------------------------------------

    def warp(self, event: SyncEvent) -> None:
        """bar.warp.sync: it orders lanes of one mask among each other, and no others that execute it with them."""
        for agent, mask in self.world.parties(event.agent):
            for lanes in _groups(event, agent, mask):
                agent.meet(lanes)
            agent.end_epoch("bar.warp.sync", event.line)

    def exchange(self, event: SyncEvent) -> None:
        """shfl.sync, vote.sync, match.sync, redux.sync: a value that a lane acquired goes to others, and they go on by it.

        What the lanes wrote themselves is not handed on: it may yet be on its way.
        """
        world = self.world
        if world.options.lane_values == "nothing":
            return
        for agent, mask in world.parties(event.agent):
            if not agent.parts and not agent.cta.barriers and not agent.log:
                continue
            for lanes in _groups(event, agent, mask):
                gathered = agent.gathered
                if gathered and gathered[-1][:2] == (agent.now, lanes):
                    gathered.pop()
                gathered.append((agent.now, lanes, world.seq))
                self.flags.share_looks(agent, lanes)
                _tell_wait(agent, lanes)
                eyes = agent.eyes(lanes)
                if len(eyes) < 2:
                    continue
                known = eyes[0][1].copy()
                for _, view in eyes[1:]:
                    known.join(view)
                _learn_all(agent, lanes, known)


def _groups(event: SyncEvent, agent: Agent, mask: int) -> list[int]:
    """Return the lanes of a warp that a collective joins, group by group: they may name different masks."""
    named = event.detail
    if not isinstance(named, np.ndarray):
        return [mask]
    warps: Ints = event.agent[1] // WARP
    own: list[int] = named[warps == agent.warp].tolist()
    return [mask & one for one in dict.fromkeys(own)]


def _tell_wait(agent: Agent, lanes: int) -> None:
    """Let lanes that hand each other values know of the phase for which one of them has just waited."""
    fresh = agent.fresh
    if fresh is None or fresh[1] < 0 or not fresh[3] & lanes or not lanes & ~fresh[3]:
        return
    barrier, index, line, mask = fresh
    phase: Phase | None = barrier.phases.get(index)
    if phase is None:
        return
    for done in (phase.done, *phase.copies):
        done.observe(agent, lanes)
    agent.fresh = (barrier, index, line, mask | lanes)


def _learn_all(agent: Agent, mask: int, view: View) -> None:
    agent.acquire(mask, view)
    if agent.parts and agent.is_whole(mask) and agent.view.hb.get(agent.key, 0) > 0:
        # All lanes came, so what single lanes knew is in the view now.
        known = agent.view.hb
        if all(
            known.get(key, 0) >= epoch for _, part in agent.parts for key, epoch in part.hb.items()
        ):
            agent.parts = []


def _apart(last: Meeting | None, line: int, other: int) -> str:
    """Return what to do where warps come at a line to a barrier that was complete without them."""
    members = () if last is None else last.members
    count = sum(source.mask.bit_count() for source in members)
    if any(source.line == line for source in members):
        return (
            f"a count of all threads that come at :{line}: the use before was complete with {count}; or, if they are"
            " groups of their own, a barrier number for each"
        )
    return (
        f"give the use at :{line} a barrier number of its own; or, if it is meant to be that of :{other}, the same count"
        f" of threads: that one was complete with {count}"
    )


def _member(meeting: Meeting) -> tuple[Agent, int, int]:
    source = meeting.members[0]
    return source.agent, source.mask, source.line


def _is_aligned(facts: LaunchFacts, line: int) -> bool:
    mnemonic = facts.mnemonic(line)
    return mnemonic.startswith("bar.") or ".aligned" in mnemonic

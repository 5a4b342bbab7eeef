"""The life of a CTA in a cluster: nobody reaches in before it started or after it may have exited; nothing is left behind.

Source: PTX ISA 8.7 "barrier.cluster", "mapa", "State Spaces: Shared"; contested rule `exit_drain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopsim.findings import Access
from hopsim.hazards.advice_texts import ADVICE
from hopsim.hazards.clocks import ANY, NEVER, Agent, sees
from hopsim.hazards.findings import Finding, Findings, cta_text
from hopsim.hazards.meetings import started
from hopsim.hazards.objects import Source
from hopsim.hazards.records import Eye, Flight, Record
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import CtaState, Parties, World

FLIGHTS_KEPT = 2048
READ: Final = "cp.async.bulk.wait_group.read 0"


@dataclass(slots=True)
class Visit:
    """The last time that lanes of another CTA's warp touched a CTA's shared memory at one place of the program."""

    agent: Agent
    epoch: int
    mask: int
    line: int
    what: str


class Lifetime:
    """Checks entry, exit, and what is in flight at exit."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world = world
        self.findings = findings
        self._entered: set[tuple[int, int]] = set()

    # -- from outside ------------------------------------------------------------------------------

    def visit(self, owner: CtaState, record: Record, eyes: list[Eye]) -> None:
        """An access, by threads or an operation, to another CTA's shared memory."""
        what = {"r": "read", "w": "write", "a": "atomic"}[record.kind]
        for agent, mask, _ in eyes:
            self._enter(owner, agent, mask, record.line, what)
        if record.done is None:
            for agent, epoch, mask in record.parts:
                self._note(owner, Visit(agent, epoch, mask, record.line, what))

    def reach(
        self, owner: CtaState, agent: Agent, mask: int, line: int, what: str, *, by_copy: bool
    ) -> None:
        """A thread uses an mbarrier of another CTA, itself or through a copy: that one is watched until it is over."""
        self._enter(owner, agent, mask, line, what)
        if by_copy:
            return
        self._note(owner, Visit(agent, agent.now, mask, line, what))

    def _note(self, owner: CtaState, visit: Visit) -> None:
        if owner.live:
            owner.visits[visit.line, visit.agent.number, visit.mask] = visit
        else:
            self._missed(owner, visit, owner.leaving[-1][0].exit_line)

    @staticmethod
    def counted(owner: CtaState, arrivals: list[Source]) -> None:
        """The owner saw a phase complete: its arrivals have happened, whatever they publish."""
        for source in arrivals:
            site = (source.line, source.agent.number, source.mask)
            visit = owner.visits.get(site)
            if visit is not None and visit.epoch <= source.epoch:
                del owner.visits[site]

    def _enter(self, owner: CtaState, agent: Agent, mask: int, line: int, what: str) -> None:
        key = (agent.number, owner.index)
        if key in self._entered:
            return
        self._entered.add(key)
        for _, view in agent.eyes(mask):
            hb = view.hb
            if hb.get(started(owner.index)) or any(
                hb.get(other.key, 0) or hb.get(other.key + ANY, 0) for other in owner.agents
            ):
                continue
            self.findings.add(
                Finding(
                    "HS401", "hazard", RULES["HS401"].sentence, None,
                    self.findings.thread_side(agent, mask, line, what, space="shared::cluster"),
                    f"an edge that says that {cta_text(owner.id)} has started",
                    f"before :{line}, in every thread of the cluster:  barrier.cluster.arrive;  barrier.cluster.wait;",
                    cause=(),
                )
            )  # fmt: skip
            return

    # -- operations --------------------------------------------------------------------------------

    def watch(self, owner: CtaState, flight: Flight, record: Record) -> None:
        """An operation will read or write a CTA's shared memory."""
        if not owner.live:
            self._left_behind(owner, flight, record, owner.leaving[-1][0].exit_line)
            return
        owner.flights.append((flight, record))
        if len(owner.flights) >= FLIGHTS_KEPT:
            owner.flights = [entry for entry in owner.flights if not self._is_over(*entry)]

    def _is_over(self, flight: Flight, record: Record) -> bool:
        done = record.done
        if done is not None and done.observers:
            return not self.world.options.exit_drain or bool(flight.landed.observers)
        return record.tids is not None and all(epoch != NEVER for _, epoch, _ in record.parts)

    # -- exit --------------------------------------------------------------------------------------

    def exited(self, cta: CtaState, parties: Parties, line: int) -> None:
        """Threads leave at a PTX line; with the last one the CTA's shared memory is gone."""
        for agent, mask in parties:
            agent.exit_line = line
            agent.exits.append((agent.now, mask, line))
            agent.exited |= mask
            agent.live &= ~mask
            cta.live -= mask.bit_count()
            cta.leaving.append((agent, mask))
        if cta.live:
            return
        for visit in cta.visits.values():
            if not any(self._knows(agent, mask, visit) for agent, mask in cta.leaving):
                self._missed(cta, visit, line)
        for flight, record in cta.flights:
            if not self._is_over(flight, record):
                self._left_behind(cta, flight, record, line)
        cta.flights = []
        cta.visits = {}

    def _missed(self, cta: CtaState, visit: Visit, line: int) -> None:
        """A CTA that leaves at a PTX line does not know of a visit."""
        self.findings.add(
            Finding(
                "HS402", "hazard", RULES["HS402"].sentence,
                self.findings.thread_side(visit.agent, visit.mask, visit.line, visit.what, space="shared::cluster"),
                None, f"an edge from :{visit.line} to the exit of {cta_text(cta.id)} at :{line}",
                "before ret, in every thread of the cluster:  barrier.cluster.arrive;  barrier.cluster.wait;",
            )
        )  # fmt: skip

    @staticmethod
    def _knows(agent: Agent, mask: int, visit: Visit) -> bool:
        if agent.passed.get(visit.agent.number, 0) >= visit.epoch:
            return True
        return any(
            sees(view.hb, visit.agent, visit.epoch, visit.mask) for _, view in agent.eyes(mask)
        )

    def _left_behind(self, cta: CtaState, flight: Flight, record: Record, line: int) -> None:
        if flight.raced or flight.told or (flight.aims and flight.site in self.world.told):
            return
        own = flight.agent.cta is cta
        rule = "HS019" if own else "HS402"
        side = self.findings.side(
            record, (record.parts[0][0], record.parts[0][2]), (record.start, record.stop), ""
        )
        if own and flight.tracked == "bulk" and flight.group is None:
            self._uncommitted(cta, flight, side, line)
            return
        how = {
            "mbarrier": "wait for the mbarrier phase that it completes", "wgmma": "wgmma.wait_group.sync.aligned 0",
            "bulk": f"{READ} in the issuing thread", "cp.async": "cp.async.wait_all",
        }.get(flight.tracked, "wait for it")  # fmt: skip
        self.findings.add(
            Finding(
                rule, "hazard", RULES[rule].sentence, side, None,
                f"a wait for :{flight.line} before {cta_text(cta.id)} exits at :{line}", f"before ret:  {how}",
                cause=(flight.kind, flight.burst),
            )
        )  # fmt: skip

    def _uncommitted(self, cta: CtaState, flight: Flight, side: Access, line: int) -> None:
        """A store that no group holds is in flight at exit: no wait counts it, be there one or not."""
        rule, second = "HS019", None
        missing = f"a wait for :{flight.line} before {cta_text(cta.id)} exits at :{line}"
        hint = f"in the issuing thread, before ret:  cp.async.bulk.commit_group;  {READ}"
        issuer, _, lanes = flight.parts[0]
        for seq, agent, mask, at in cta.store_waits:
            if seq > flight.seq and agent is issuer and mask & lanes:
                rule, second = "HS305", self.findings.thread_side(agent, mask, at, "wait")
                missing, hint = (text.format(a=flight.line) for text in ADVICE["HS305"])
                break
        finding = Finding(
            rule, "hazard", RULES[rule].sentence, side, second, missing, hint, cause=(flight.kind, flight.burst)
        )  # fmt: skip
        # Where a race with it says so, this is the same commit.
        finding.late = lambda: "" if flight.line in self.world.uncommitted else None
        self.findings.add(finding)

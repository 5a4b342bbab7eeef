"""The hazard checker: an observer of one run that judges it by the PTX memory model.

    checker = Checker(facts, CheckOptions())
    ... the machine runs, with the checker among its observers ...
    checker.finish(); checker.not_modelled

One run is enough for everything that happens-before decides; what depends on the values that a flag or an atomic had in
this run is judged for those values.
"""

from __future__ import annotations

from typing import Any

from hopsim.errors import MachineFault
from hopsim.events import (
    Access,
    BarrierEvent,
    FlightEvent,
    Observer,
    RegisterEvent,
    StrandEvent,
    SyncEvent,
)
from hopsim.findings import Deadlock, Hazard
from hopsim.hazards import faults
from hopsim.hazards.announcements import Announcements
from hopsim.hazards.clocks import CLUSTER_SHARED, CTA_SHARED, GLOBAL
from hopsim.hazards.facts import CheckOptions, LaunchFacts
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.flags import Flags
from hopsim.hazards.groups import Groups
from hopsim.hazards.judge import Judge
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.mbarriers import Mbarriers
from hopsim.hazards.meetings import Meetings
from hopsim.hazards.memory import Memory
from hopsim.hazards.object_bytes import ObjectBytes
from hopsim.hazards.observations import Observations
from hopsim.hazards.polls import Polls
from hopsim.hazards.races import STORES, Races
from hopsim.hazards.records import Flight, tile_words
from hopsim.hazards.registers import Registers
from hopsim.hazards.rules import RULES
from hopsim.hazards.stuck import explain_stuck
from hopsim.hazards.swizzle_bases import SwizzleBases
from hopsim.hazards.world import World
from hopsim.results import NotModelledNote

# State space of a proxy fence -> the spaces it covers.
FENCED = {
    "": (CTA_SHARED, CLUSTER_SHARED, GLOBAL),
    "global": (GLOBAL,),
    "shared::cta": (CTA_SHARED,),
    "shared": (CTA_SHARED,),
    "shared::cluster": (CTA_SHARED, CLUSTER_SHARED),
}


class Checker(Observer):
    """Listens to a run and tells what broke the rules.

    Args:
        facts: the program and the launch.
        options: how contested rules are read.
    """

    def __init__(self, facts: LaunchFacts, options: CheckOptions | None = None) -> None:
        self.world = world = World(facts, (options or CheckOptions()).resolved())
        self.findings = findings = Findings(facts)
        self.polls = Polls(world, findings)
        observations = Observations()
        self.announcements = Announcements(world, findings)
        self.flags = Flags(world, self.polls, self.announcements, observations)
        self.lifetime = Lifetime(world, findings)
        self.mbarriers = Mbarriers(world, findings, self.flags, self.lifetime)
        self.judge = Judge(world, findings, Races(world, findings))
        self.memory = Memory(
            world, findings, self.judge, self.mbarriers, self.lifetime, observations
        )
        self.object_bytes = ObjectBytes(world, self.judge, self.lifetime)
        self.registers = Registers(world, findings)
        self.groups = Groups(world, self.registers)
        self.meetings = Meetings(world, findings, self.flags)
        self.swizzle_bases = SwizzleBases(findings)
        # Proxy fences by PTX line: whether some was of use, and who executed it first.
        self._fences: dict[int, list[Any]] = {}
        self.not_modelled: list[NotModelledNote] = [
            NotModelledNote(why, line, text) for line, text, why in facts.unchecked
        ]
        self._sync = {
            "fence": self.flags.fence,
            "poll": self._polled,
            "choice": self.announcements.looked,
            "round": self.announcements.looked,
            "malloc": self.world.allocated,
            "fence.proxy": self._fence_proxy,
            "fence.proxy.one_way": self._fence_one_way,
            "fence.mbarrier_init": self.meetings.init_fence,
            "fence.proxy.tensormap": self.memory.maps.fence,
            "griddepcontrol.wait": self.memory.grids.wait,
            "bar.warp.sync": self.meetings.warp,
            **dict.fromkeys(
                ("shfl.sync", "vote.sync", "match.sync", "redux.sync"), self.meetings.exchange
            ),
            "wgmma.fence": self.registers.fence,
            "wgmma.commit_group": self.groups.commit_products,
            "wgmma.wait_group": self.groups.wait_products,
            "cp.async.bulk.commit_group": self.groups.commit_stores,
            "cp.async.bulk.wait_group": self.groups.wait_stores,
            "cp.async.commit_group": self.groups.commit_copies,
            "cp.async.wait_group": self.groups.wait_copies,
        }

    # -- events ------------------------------------------------------------------------------------

    def access(self, event: Access) -> None:
        """Bytes were read or written by threads."""
        self.world.seq += 1
        self.memory.access(event)
        self.swizzle_bases.access(event)
        if event.semantics != "weak":
            self.flags.access(event)

    def flight(self, event: FlightEvent) -> None:
        """An asynchronous operation was issued; of a store that several warps execute each has its own."""
        parties = self.world.parties(event.agent)
        if event.tracked != "bulk" or len(parties) == 1:
            self._issued(event)
            return
        cta, tids = event.agent
        for agent, _ in parties:
            self._issued(event._replace(agent=(cta, tids[tids >> 5 == agent.warp])))

    def _issued(self, event: FlightEvent) -> None:
        world = self.world
        world.seq += 1
        parts = world.parts(world.parties(event.agent))
        flight = Flight(event.kind, event.op, parts, event.line, event.tracked, world.seq)
        if event.kind in STORES:
            flight.read = type(flight.landed)()
        if event.kind == "cp.async arrive":
            numbers, target = event.detail
            flying = self.mbarriers.flying
            copies = [flying[number].landed for number in numbers if number in flying]
            self.mbarriers.follow(flight, copies, target)
            return
        self.mbarriers.fly(flight)
        if event.kind == "wgmma":
            self.registers.issued(event, flight)
        elif event.detail is not None and event.tracked in ("mbarrier", "bulk"):
            _, _, origin, box = event.detail
            flight.tile = tile_words(box, origin)
            self.swizzle_bases.issued(event, flight)
        self.groups.issued(flight)
        self.memory.flight(event, flight)

    def register(self, event: RegisterEvent) -> None:
        """Registers that wgmma uses were used by other instructions."""
        self.registers.used(event)

    def barrier(self, event: BarrierEvent) -> None:
        """A barrier object changed or a wait on it succeeded."""
        self.world.seq += 1
        if event.kind == "mbarrier":
            self.mbarriers.event(event)
            if event.what in ("init", "inval"):
                self.object_bytes.write(event)
        elif event.kind == "named":
            self.meetings.named(event)
        else:
            self.meetings.cluster(event)

    def sync(self, event: SyncEvent) -> None:
        """A fence or group operation was executed."""
        self.world.seq += 1
        handler = self._sync.get(event.what)
        if handler is not None:
            handler(event)

    def strand(self, event: StrandEvent) -> None:
        """Threads started or left."""
        if event.what == "exited":
            cta = self.world.cta(event.agent[0])
            self.lifetime.exited(cta, self.world.parties(event.agent), event.line)

    def _polled(self, event: SyncEvent) -> None:
        self.polls.looked(event)
        self.announcements.looked(event)

    # -- fences of proxies -------------------------------------------------------------------------

    def _fence_proxy(self, event: SyncEvent) -> None:
        kind, space = event.detail
        if kind == "async":
            self._bridge(event, FENCED[space])

    def _fence_one_way(self, event: SyncEvent) -> None:
        semantics, restrict, _ = event.detail
        if semantics == "release" and restrict.endswith("shared::cta"):
            self._bridge(event, (CTA_SHARED, CLUSTER_SHARED))
        elif semantics == "acquire":
            self._bridge(event, (CLUSTER_SHARED, CTA_SHARED))

    def _bridge(self, event: SyncEvent, spaces: tuple[int, ...]) -> None:
        for agent, mask in self.world.parties(event.agent):
            use = self._fences.setdefault(event.line, [False, agent, mask])
            use[0] = use[0] or agent.dirty
            agent.dirty = False
            self.world.fenced.add((agent.number, event.line))
            agent.fence_proxy(mask, spaces)
            agent.cta.fences.append((self.world.seq, agent, mask, event.line, spaces))
            agent.end_epoch("fence.proxy.async", event.line)

    # -- the end -----------------------------------------------------------------------------------

    def fault(self, fault: MachineFault) -> None:
        """The machine stopped at a fault: it is the last finding."""
        faults.enter(self.findings, fault)

    def _notes(self) -> None:
        """What costs time, or is ignored by the compiler."""
        facts, findings = self.world.facts, self.findings
        for line, (useful, agent, mask) in self._fences.items():
            if not useful:
                findings.add(
                    Finding(
                        "HS113", "note", RULES["HS113"].sentence, None,
                        findings.thread_side(agent, mask, line, "fence"), "nothing: all is bridged already",
                        "leave it out: since its last proxy fence no thread here accessed memory or learned of accesses",
                    )
                )  # fmt: skip
        first = self.world.cta(0).agents[0]
        if not facts.moves_registers:
            for line in facts.kernel_lines:
                if facts.mnemonic(line).startswith("setmaxnreg"):
                    findings.add(
                        Finding(
                            "HS602", "note", RULES["HS602"].sentence, None,
                            findings.thread_side(first, first.live | first.exited, line, "setmaxnreg", space="register"),
                            "a register bound: ptxas ignores setmaxnreg without one (C7508)",
                            "at the entry:  .maxnreg, or .maxntid or .reqntid with .minnctapersm", cause=(),
                        )
                    )  # fmt: skip
        if facts.serialised_lines:
            line = facts.serialised_lines[0]
            findings.add(
                Finding(
                    "HS014", "note", RULES["HS014"].sentence, None,
                    findings.thread_side(first, first.live | first.exited, line, "definition", space="register"),
                    f"a pipeline stage that no path joins with accumulators that :{line} defines (C7515 of ptxas)",
                    f"define the accumulators of :{line} before the branch, or let the loop end with wgmma.wait_group 0",
                    count=len(facts.serialised_lines),
                )
            )  # fmt: skip

    def finish(self, deadlock: Deadlock | None = None) -> list[Hazard]:
        """Return the findings, hazards before notes.

        Args:
            deadlock: where everybody waits, when the run ended so.
        """
        explain_stuck(self.world, self.findings, self.polls, deadlock)
        self.judge.unwritten.finish()
        self._notes()
        return self.findings.told()

"""Barriers: what they carry from whom to whom, phase by phase.

An mbarrier phase carries the clocks of its arrivals and the completion of the operations that counted bytes on it;
named and cluster barriers carry the clocks of all who arrived.

Source: PTX ISA 8.7 "mbarrier", "bar, barrier", "barrier.cluster"; 9.4 "mbarrier" for the operand's proxy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hopsim.hazards.clocks import ANY, Agent, Clock, Done, View
from hopsim.hazards.records import Flight
from hopsim.hazards.world import CtaState

PHASES_KEPT = 8


@dataclass(slots=True)
class Source:
    """Where an edge comes from: what lanes of a warp did up to an epoch, at a PTX line.

    Args:
        weak: why it does not count.
        fence: (scope, PTX line) of the fence by which a relaxed access publishes: it counts for that scope only.
    """

    agent: Agent
    epoch: int
    mask: int
    line: int
    weak: str = ""
    fence: tuple[str, int] | None = None


class Meeting:
    """One use of a named barrier, or one phase of a cluster barrier."""

    __slots__ = ("epochs", "lines", "members", "near", "uses", "view", "waiting")

    def __init__(self) -> None:
        self.view = View.empty()
        # What relaxed arrivals after a fence of .cta scope carry, by CTA.
        self.near: dict[int, View] = {}
        self.members: list[Source] = []
        # Who waits for it: (warp, lanes, PTX line).
        self.waiting: list[tuple[Agent, int, int]] = []
        self.lines: set[int] = set()
        # The epoch in which each warp that waited arrived, by warp number.
        self.epochs: dict[int, int] = {}
        # How often the barrier has completed before.
        self.uses = 0

    def sources(self) -> Iterator[Source]:
        """Yield the edges into those who waited."""
        yield from self.members


class Phase:
    """One phase of an mbarrier."""

    __slots__ = (
        "added", "aimed", "arrivals", "bursts", "bytes_done", "bytes_expected", "copies", "done", "expected_at", "expects",
        "far", "flights", "heeds", "landed", "local", "members", "narrow", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        # What arrivals of this CTA carry, of other CTAs with cluster scope, and with scope .cta.
        self.local = View.empty()
        self.far: View | None = None
        self.narrow: View | None = None
        self.done = Done()
        self.flights: list[Flight] = []
        # Completions of cp.async that an arrival follows.
        self.copies: list[Done] = []
        self.members: list[Source] = []
        self.waits: list[tuple[Agent, int, int, int]] = []
        # PTX line of the first operation of each kind that was aimed at this phase.
        self.bursts: dict[str, int] = {}
        self.arrivals = 0
        # Arrivals that the phase needs besides: each cp.async.mbarrier.arrive without .noinc adds the one that it makes.
        self.added = 0
        # Bytes of the copies issued in it, as they come.
        self.aimed = 0
        self.bytes_expected = 0
        self.bytes_done = 0
        # PTX line of the last expect_tx.
        self.expected_at = 0
        # Who expected how many bytes: (warps and their epochs, bytes).
        self.expects: list[tuple[list[tuple[Agent, int]], int]] = []
        # By operation issued in this phase: which waits for the phase before its issuer knew of, a bit each.
        self.heeds: dict[int, int] = {}
        # Bytes that came: (what was known so to whoever sent them, what came before, bytes).
        self.landed: list[tuple[int, Clock | None, int]] = []

    def sources(self) -> Iterator[Source]:
        """Yield the edges into those who waited, and those that a reader may have taken for one."""
        yield from self.members
        for flight in self.flights:
            for agent, epoch, mask in flight.parts:
                yield Source(agent, epoch, mask, flight.line, "complete_tx")

    def covers(self, agent: Agent, epoch: int) -> bool:
        """Whether some arrival knows what any lane of a warp did in an epoch, be it through edges of too narrow a scope."""
        for view in (self.local, self.far, self.narrow):
            if view is not None and knows(view, agent, epoch):
                return True
        return any(source.weak == "relaxed" for source in self.members)

    def arrived_at(self, agent: Agent) -> int:
        """Return the PTX line at which a warp arrived for it last; 0: it did not."""
        return next((one.line for one in reversed(self.members) if one.agent is agent), 0)

    def held_by_bytes(self, wait: int) -> bool:
        """Whether this phase could not complete without bytes sent by those who knew of a wait for the phase before.

        With fewer bytes than it needs the tx-count is not zero, in whatever order they come.
        """
        return self._needed() > sum(
            count for heeded, _, count in self.landed if not heeded >> wait & 1
        )

    def _needed(self) -> int:
        """Return the bytes without which it could not complete: an expect_tx counts if it is known to precede an arrival."""
        return sum(
            count for parts, count in self.expects if all(self.covers(*part) for part in parts)
        )

    def close(self) -> None:
        """It is complete: whoever sees that comes after all who sent bytes that it could not do without."""
        if any(past is not None for _, past, _ in self.landed):
            spare = self.bytes_done - self._needed()
            for _, past, count in self.landed:
                if past is not None and count > spare:
                    self.local.follow(past)


def knows(view: View, agent: Agent, epoch: int) -> bool:
    """Whether a view covers what any lane of a warp did in an epoch, be it through edges of too narrow a scope or none."""
    known = view.hb if view.loose is None else view.loose
    if max(known.get(agent.key, 0), known.get(agent.key + ANY, 0)) >= epoch:
        return True
    past = view.past
    return past is not None and max(past.get(agent.key, 0), past.get(agent.key + ANY, 0)) >= epoch


@dataclass(slots=True)
class Use:
    """The last operation of some lanes of a warp on an mbarrier, while a phase was open; `seq`: by count of events."""

    agent: Agent
    epoch: int
    mask: int
    line: int
    what: str
    index: int
    seq: int


@dataclass(slots=True)
class Barrier:
    """One mbarrier object.

    Args:
        owner: CTA in whose shared memory it lies.  address: offset there.
        expected: arrivals that a phase needs.
        born: (warp, epoch, lanes, PTX line) of its init.
        overlaid: the record of ordinary data laid over it, if any.
        senders: PTX lines of the copies whose bytes it has counted, the last one last, and the bytes of each.
        short: the first complete phase in which more bytes were sent for than expected.
        told_short: the phase of the first finding that says so.  doubted: that of the first that may come to say so.
        is_astray: its surplus is told at the mbarrier that lacks it.
        is_split: a finding says that two phases of it may be one, of which its init counts a part.
        uses: the last one of each set of lanes, by warp number, mask, and whether it comes later than what follows it.
    """

    owner: CtaState
    address: int
    expected: int
    born: tuple[Agent, int, int, int]
    pending: int = 0
    tx: int = 0
    index: int = 0
    used: bool = False
    phases: dict[int, Phase] = field(default_factory=dict[int, Phase])
    acquainted: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    overlaid: object = None
    uses: dict[tuple[int, int, bool], Use] = field(default_factory=dict[tuple[int, int, bool], Use])
    outstanding: int = 0
    senders: dict[int, int] = field(default_factory=dict[int, int])
    short: int | None = None
    told_short: int | None = None
    doubted: int | None = None
    is_astray: bool = False
    is_split: bool = False

    def phase(self, index: int) -> Phase:
        """Return a phase, made when first met."""
        found = self.phases.get(index)
        if found is None:
            found = self.phases[index] = Phase()
            self.phases.pop(index - PHASES_KEPT, None)
        return found

    def weigh(self, index: int) -> None:
        """Note a complete phase in which copies were issued that it did not expect: later ones are out of step."""
        phase = self.phases.get(index)
        if phase is not None and index < self.index and phase.aimed > phase.bytes_expected:
            self.short = index if self.short is None else min(self.short, index)

    def fell_short(self, index: int) -> bool:
        """Whether a phase, or one before it, expected too few bytes."""
        if self.index == index:
            return self.tx < 0
        return self.short is not None and self.short <= index

    @property
    def is_quiet(self) -> bool:
        """Whether no phase is under way and nothing is on its way to it."""
        return self.pending == self.expected and self.tx == 0 and not self.outstanding


def learn(agent: Agent, mask: int, phase: Phase, narrow: bool) -> None:
    """Let lanes learn what a completed phase carries, with `.cta` scope (`narrow`) or a wider one."""
    agent.acquire(mask, phase.local)
    if phase.far is not None:
        if narrow:
            agent.acquire_loosely(mask, phase.far)
        else:
            agent.acquire(mask, phase.far)
    if phase.narrow is not None:
        agent.acquire_loosely(mask, phase.narrow)
    phase.done.observe(agent, mask)
    for copy in phase.copies:
        copy.observe(agent, mask)

"""Schedules that know no time: `in-order`, `seeded`, `adversarial`.

- in-order: one cluster after the other; strands take turns from the oldest; operations land in the order they were issued,
  as soon as nobody can step.
- seeded: several clusters are resident; at every point a seeded generator picks which strand of them steps or which
  operation lands.
- adversarial: several clusters are resident, and their strands take turns; operations land as late as legal, the youngest
  first, so that what was not waited for is overtaken.

When nothing can happen any more - every strand waits, or goes round a loop that changes nothing - or nothing has changed
for long, the schedule tries, in this order: more clusters than are resident, as far as the chip has room (flags between
CTAs), "not yet" for every `try_wait` (a program may peek, or give up after so many tries), and letting lanes go on without
those of their warp that they should meet.  When nothing can happen after that either, it is a deadlock.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from hopsim.hw.machine.launch import Machine
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.schedule import Outcome, Schedule
from hopsim.hw.machine.spinning import Peeks, SpinWatch
from hopsim.hw.machine.waiting import Wait

# Steps of one strand in a row before others get their turn: spinning on memory must not starve the writer.
TURN = 64
# Steps without any change after which strands are suspected to spin, and operations and clusters get their turn.
PATIENCE = 512
# Steps without any change after which others get their turn though it is not known that strands spin: loops that count
# their turns, or look at a clock, never come back to the same state.
FAIRNESS = 8192
# Steps of one strand in a row while it is suspected: the loops of those who wait are short.
QUIET_TURN = 8
# So many segments of one step count as one step more: a loop that meets nobody comes to the limit too.
PLAIN_RUN_BITS = 4
# More operations in flight than this are taken for a loop that issues them for ever.
FLYING_MAX = 1 << 16


class Untimed(Schedule):
    """What the untimed schedules share: the run queue, the flights, residency, and the end of a run.

    `starts_early`: clusters start as soon as there is room, so that they interleave; else when nothing else can happen.
    """

    fuse = True
    starts_early = False

    def __init__(self, *, resident_clusters: int = 1, step_limit: int = 50_000_000) -> None:
        self.ready: deque[Any] = deque()
        self.flights: list[Operation] = []
        self.resident = 0
        self.places_taken = 0
        self.resident_clusters = resident_clusters
        self.step_limit = step_limit
        self.machine: Machine | None = None
        self.ticks: int = 0
        self._watch = SpinWatch()
        self._news = -1
        self._quiet_until = 0
        self._version = -1
        self._fair_until = 0
        self._turns = 0
        self._peeks = Peeks()

    # -- told by the machine -----------------------------------------------------------------------

    def spawned(self, strand: Any) -> None:
        """Queue a new strand."""
        self.ready.append(strand)

    def woken(self, strand: Any, wait: Wait) -> None:
        """Queue a strand that can try again."""
        self.ready.append(strand)

    def issued(self, operation: Operation) -> None:
        """Remember an operation in flight."""
        self.flights.append(operation)

    def cta_done(self, cta: Any) -> None:
        """Free the place of a CTA."""
        self.places_taken -= 1

    def cluster_done(self, cluster: Any) -> None:
        """Make room for another cluster."""
        self.resident -= 1

    def clock(self, strand: Any) -> int:
        """Return the number of steps taken so far."""
        return self.ticks

    # -- decisions ---------------------------------------------------------------------------------

    def next_strand(self) -> int:
        """Return the position in `ready` of the strand that steps next."""
        return 0

    def turn(self) -> int:
        """Return how many steps that strand may take in a row."""
        return TURN

    def wants_landing(self) -> bool:
        """Whether an operation lands before the next step."""
        return False

    def next_flight(self) -> int:
        """Return the position in `flights` of the operation that lands next."""
        return 0

    # -- the run -----------------------------------------------------------------------------------

    def run(self, machine: Machine) -> Outcome:
        """Drive the machine to its end."""
        self.machine = machine
        while True:
            while self.starts_early and self._start(machine, self.resident_clusters):
                pass
            quiet = bool(self.ready) and self._is_quiet(machine)
            if self.flights and (not self.ready or quiet or self.wants_landing()):
                self._land(machine)
            elif self.ready and not (quiet and self._all_spin(machine)):
                if self._starves_others(machine):
                    self._let_others(machine)
                self._step(quiet)
            elif self._start(machine, self.resident_clusters):
                pass
            elif machine.clusters_done == machine.cluster_count:
                return Outcome("finished")
            elif not self._let_others(machine):
                return self._stop(machine, "deadlock")
            if self.ticks > self.step_limit or len(machine.flying) > FLYING_MAX:
                return self._stop(machine, "cap")

    def _let_others(self, machine: Machine) -> bool:
        """Let somebody go on who waits for no event of the machine; return whether there was anybody."""
        return (
            self._start(machine, machine.cluster_count)
            or self._peeks.tell(machine)
            or machine.part_warps()
        )

    def _stop(self, machine: Machine, ended: str) -> Outcome:
        machine.spinning = [strand for strand in self.ready if not strand.done]
        return Outcome(ended)

    def _is_quiet(self, machine: Machine) -> bool:
        """Whether nothing has changed for a while although strands take steps."""
        if machine.news != self._news:
            self._news = machine.news
            self._quiet_until = self.ticks + max(PATIENCE, 2 * QUIET_TURN * len(self.ready))
            return False
        return self.ticks > self._quiet_until

    def _starves_others(self, machine: Machine) -> bool:
        """Whether nothing has changed for so long that it is time for others, who may be waited for."""
        if machine.version == self._version and self.ticks <= self._fair_until:
            return False
        is_time = machine.version == self._version
        self._version = machine.version
        self._fair_until = self.ticks + max(FAIRNESS, 2 * TURN * len(self.ready))
        return is_time

    def _all_spin(self, machine: Machine) -> bool:
        # A look at everybody, now and then: about once a round.
        self._turns += 1
        if self._turns < len(self.ready):
            return False
        self._turns = 0
        return self._watch.sample(machine.news, self.ready)

    def _start(self, machine: Machine, limit: int) -> bool:
        if self.resident >= limit or machine.clusters_started == machine.cluster_count:
            return False
        if self.places_taken and self.places_taken + machine.cluster_size > machine.places:
            return False
        self.resident += 1
        self.places_taken += machine.cluster_size
        # The SMs in turn, so that `%smid` tells CTAs apart that run at once.
        index = machine.clusters_started
        first = index * machine.cluster_size
        machine.start_cluster(
            index, [(first + rank) % machine.sm_count for rank in range(machine.cluster_size)]
        )
        return True

    def _step(self, quiet: bool) -> None:
        position = self.next_strand()
        if position == 0:
            strand = self.ready.popleft()
        else:
            strand = self.ready[position]
            del self.ready[position]
        if strand.done:
            return
        steps = self.turn()
        if quiet:
            self._watch.moved(strand)
            steps = min(steps, QUIET_TURN)
        for _ in range(steps):
            self.ticks += 1
            goes_on = strand.step()
            self.ticks += len(strand.trail) >> PLAIN_RUN_BITS
            if not goes_on:
                return
        self.ready.append(strand)

    def _land(self, machine: Machine) -> None:
        position = self.next_flight()
        operation = self.flights[position]
        if operation.queue is not None:
            # The oldest of its queue lands first.
            position = next(
                k for k, other in enumerate(self.flights) if other.queue == operation.queue
            )
            operation = self.flights[position]
        while not operation.may_land:
            operation = next(other for other in operation.after if not other.done)
            position = self.flights.index(operation)
        if machine.land(operation):
            del self.flights[position]


class InOrder(Untimed):
    """Strands in turn, operations in order of issue."""

    name = "in-order"


class Seeded(Untimed):
    """Random legal interleavings, the same for the same seed.

    In a third of the seeds all strands are equally quick; in a third some CTAs are much slower than others, and in a
    third some strands of a CTA: what is only wrong when somebody lags far behind is rare among equals.

    Source: random priorities of threads find such races: S. Burckhardt et al., "A Randomized Scheduler with
    Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.
    """

    name = "seeded"
    fuse = False
    starts_early = True

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(**options)
        self.random = random.Random(seed)
        # How eager operations are to land differs from seed to seed: some runs are nearly late, some nearly early.
        self.eagerness = self.random.choice((0.02, 0.2, 0.5, 0.9))
        # Of so many strands picked at random the one of the highest rank steps: the others lag, but never starve.
        self.candidates, self.ranked = ((1, ""), (3, "cta"), (3, "strand"))[seed % 3]
        self._ranks: dict[Any, float] = {}

    def next_strand(self) -> int:
        """Pick any strand, the quick ones more often."""
        count = len(self.ready)
        picked = self.random.randrange(count)
        for _ in range(self.candidates - 1 if count > 1 else 0):
            other = self.random.randrange(count)
            if self._rank(other) > self._rank(picked):
                picked = other
        return picked

    def _rank(self, position: int) -> float:
        key = self.ready[position].key
        if self.ranked == "cta":
            key = key[0]
        rank = self._ranks.get(key)
        if rank is None:
            rank = self._ranks[key] = self.random.random()
        return rank

    def turn(self) -> int:
        """Let it run for a random while."""
        return self.random.choice((1, 1, 2, 4, 16, TURN))

    def wants_landing(self) -> bool:
        """Land with the probability of this seed."""
        return self.random.random() < self.eagerness

    def next_flight(self) -> int:
        """Pick any operation."""
        return self.random.randrange(len(self.flights))


class Adversarial(Untimed):
    """Everything as late as legal, the youngest operation first."""

    name = "adversarial"
    fuse = False
    starts_early = True

    def next_flight(self) -> int:
        """The operation issued last lands first."""
        return len(self.flights) - 1

    def turn(self) -> int:
        """Run a strand until it blocks; with several clusters, let their strands go side by side."""
        return TURN if self.resident == 1 else 1

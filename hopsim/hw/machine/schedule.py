"""The seam between the machine and who decides what happens next.

A schedule may step any strand that is not blocked and land any operation in flight, in any order that PTX permits:
operations of one queue land in order; everything else is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopsim.hw.machine.cta import Cluster, Cta
    from hopsim.hw.machine.launch import Machine
    from hopsim.hw.machine.operations import Operation
    from hopsim.hw.machine.waiting import Wait


class Outcome:
    """How a run ended: `finished`, `deadlock`, or `cap` (steps or cycles), with cycles where the schedule knows them."""

    __slots__ = ("cycles", "ended", "facts")

    def __init__(
        self, ended: str, cycles: float | None = None, facts: dict[str, Any] | None = None
    ) -> None:
        self.ended = ended
        self.cycles = cycles
        self.facts = facts or {}


class Schedule:
    """Base of all schedules.

    `fuse`: whether convergent warps of a warpgroup step as one strand.  `timed`: whether the machine should leave the
    details of each access on the strand (`strand.access`) for timing models.
    """

    name = "abstract"
    fuse = True
    timed = False

    def run(self, machine: Machine) -> Outcome:
        """Drive the machine until all clusters are done or nothing can happen."""
        raise NotImplementedError(self.name)

    def spawned(self, strand: Any) -> None:
        """A strand can take a step."""

    def woken(self, strand: Any, wait: Wait) -> None:
        """A blocked strand can try again; `wait` is what it waited for."""

    def retired(self, strand: Any) -> None:
        """A strand exited or became part of another."""

    def issued(self, operation: Operation) -> None:
        """An operation is in flight."""

    def committed(self, group: Any) -> None:
        """A wgmma group was committed: its operations can be booked together."""

    def cta_done(self, cta: Cta) -> None:
        """All threads of a CTA have exited."""

    def cluster_done(self, cluster: Cluster) -> None:
        """All CTAs of a cluster are done."""

    def clock(self, strand: Any) -> int:
        """Return the SM clock as a strand reads it; untimed schedules count steps."""
        return 0

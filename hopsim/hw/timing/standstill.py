"""When strands step on and yet nothing will ever change: a timed run that would never end."""

from __future__ import annotations

from typing import Final

from hopsim.hw.machine.launch import Machine
from hopsim.hw.machine.spinning import SpinWatch
from hopsim.hw.timing.actor import Actor, Clock

# Looks without any change between them, after which strands are suspected to spin.
PATIENCE: Final = 8


class Standstill:
    """Looks now and then whether all that still happens is strands that spin.

    Args:
        clock: holds what is set to happen.
    """

    __slots__ = ("_clock", "_looked_at", "_quiet_looks", "_version", "_watch")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watch = SpinWatch()
        self._version = -1
        self._quiet_looks = 0
        # When each strand could issue next at the last look.
        self._looked_at: dict[Actor, float] = {}

    def is_reached(self, machine: Machine) -> bool:
        """Say whether strands step, but none of them, nor anything that is set to happen, will ever change anything."""
        if machine.news != self._version:
            self._version = machine.news
            self._quiet_looks = 0
            return False
        self._quiet_looks += 1
        if self._quiet_looks < PATIENCE:
            return False
        pending = self._clock.pending()
        actors = [event for event in pending if isinstance(event, Actor)]
        if len(actors) < len(pending):
            # A copy, product or CTA on its way is a change to come.
            return False
        for actor in actors:
            if self._looked_at.get(actor, actor.time) != actor.time:
                self._watch.moved(actor.strand)
        # A time that is yet to be settled grows without a step.
        self._looked_at = {actor: actor.time for actor in actors if actor.crowding is None}
        return self._watch.sample(machine.news, [actor.strand for actor in actors])


__all__ = ["Standstill"]

"""Arithmetic beside the tensor cores: each slows the other; how much is known once it is known how long both worked."""

from __future__ import annotations

from typing import Final

from hopsim.hw.timing.actor import Actor, Crowding
from hopsim.hw.timing.stalls import Stall

LEAST_CROWDED: Final = 8.0
"""Cycles that the tensor cores could cost arithmetic beside them; with less nobody waits to see."""


class Crowds:
    """Notes steps with arithmetic, and moves their strands' clocks on when their time has come.

    Args:
        stalls: warp cycles by reason, to count in.
    """

    def __init__(self, stalls: list[float]) -> None:
        self._stalls = stalls

    def note(self, actor: Actor, one: Crowding, lost: float) -> None:
        """Note arithmetic of which each warp costs the tensor cores `lost` cycles: all four work in step."""
        if lost:
            until = max(one.end, one.issued_by) + one.longer
            lost *= max(warps for _, warps in actor.ports)
            one = one._replace(slowing=actor.sm.tensor.slow(one.start, until, lost))
        actor.crowding = one

    def settle(self, actor: Actor, one: Crowding) -> None:
        """Move a strand's clock on, now that it is known how long the tensor cores worked beside its last step."""
        actor.crowding = None
        sm, time = actor.sm, actor.time
        share = sm.tensor.worked(one.start, one.end) / (one.end - one.start)
        # A warp that was not selected does not notice that it could not have issued; one that waited for its operands had
        # slots to spare.
        spare = one.end - one.issued_by
        longer = max(0.0, share * one.longer + min(0.0, spare))
        slots = max(0.0, share * one.slots - max(0.0, spare))
        later = max(longer, sm.issue.book(actor.ports, time, slots) - time)
        self._stalls[Stall.DISPATCH_STALL] += later * actor.warps
        actor.time = time + later
        if one.slowing is not None:
            one.slowing.end = actor.time


__all__ = ["LEAST_CROWDED", "Crowds"]

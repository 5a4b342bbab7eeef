"""A fence of threads as each lane of a warp executed it: what came before it in that lane.

Lanes that execute one instruction together are threads of their own: a flag that one of them sets behind the fence publishes
what that lane did and knew, and not what its neighbours wrote, unless a warp barrier stands in between.

Source: PTX ISA 8.7 "membar/fence"; "Memory Consistency Model": "Release and Acquire Patterns".
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.hazards.clocks import ANY, LANE, Agent, Clock, View, bits, sees
from hopsim.hazards.records import Eye


@dataclass(frozen=True, slots=True, eq=False)
class Fence:
    """A fence of lanes of a warp.

    Args:
        is_every: whether these are all lanes that the warp ever had.
        line: in the PTX text.
        eyes: what they knew at it, without what they did themselves.
    """

    agent: Agent
    epoch: int
    mask: int
    is_every: bool
    scope: str
    line: int
    eyes: list[Eye]

    @classmethod
    def at(cls, agent: Agent, mask: int, scope: str, line: int) -> Fence:
        """Return the fence that lanes of a warp execute now."""
        eyes = [(agent, lanes, view.copy()) for lanes, view in agent.eyes(mask)]
        return cls(agent, agent.now, mask, agent.is_every(mask), scope, line, eyes)

    def known(self, clock: Clock) -> int:
        """Return the lanes whose fence a clock covers."""
        if sees(clock, self.agent, self.epoch, self.mask):
            return self.mask
        if clock.get(self.agent.key + ANY, 0) < self.epoch:
            return 0
        return sum(
            1 << lane for lane in bits(self.mask) if sees(clock, self.agent, self.epoch, 1 << lane)
        )

    def before(self, lanes: int) -> View:
        """Return all that came before the fences of these lanes, as a view of its own."""
        own = [view for _, mask, view in self.eyes if mask & lanes]
        view = own[0].copy()
        for other in own[1:]:
            view.join(other)
        agent = self.agent
        for clock in (view.hb, view.loose):
            if clock is None:
                continue
            if self.is_every and lanes == self.mask:
                clock[agent.key] = self.epoch
                continue
            for lane in bits(lanes):
                clock[agent.key + LANE + lane] = self.epoch
            clock[agent.key + ANY] = self.epoch
        return view

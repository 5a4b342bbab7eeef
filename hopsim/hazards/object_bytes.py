"""The bytes of an mbarrier object: the threads that make it or end it write them, as far as other accesses go.

Source: PTX ISA 8.7 "mbarrier.init", "mbarrier.inval".
"""

from __future__ import annotations

from hopsim.events import BarrierEvent
from hopsim.hazards.judge import Judge
from hopsim.hazards.lifetime import Lifetime
from hopsim.hazards.object_life import MBARRIER_BYTES
from hopsim.hazards.records import Record
from hopsim.hazards.world import World


class ObjectBytes:
    """Writes of mbarrier objects, among the accesses of shared memory."""

    def __init__(self, world: World, judge: Judge, lifetime: Lifetime) -> None:
        self.world = world
        self.judge = judge
        self.lifetime = lifetime

    def write(self, event: BarrierEvent) -> None:
        """mbarrier.init and mbarrier.inval."""
        world = self.world
        index, address = event.barrier
        cta, owner = world.cta(event.agent[0]), world.cta(index)
        parties = world.parties(event.agent)
        record = Record(
            world.next_record(), "w", False, cta, world.parts(parties), event.line, "shared", index, address,
            address + MBARRIER_BYTES, address, MBARRIER_BYTES, event.agent[1], "", None, None, world.seq,
        )  # fmt: skip
        record.is_void = event.what == "inval"
        eyes = world.eyes(parties)
        for agent, _ in parties:
            agent.dirty = True
        if owner is not cta:
            self.lifetime.visit(owner, record, eyes)
        self.judge.apply(owner.shared, record, eyes, None)
        if len(parties) > 1:
            self.judge.collide(owner.shared, record, eyes)

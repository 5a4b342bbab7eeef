"""A copy that tells another mbarrier than the one that expects its bytes: one is short of what the other has too much of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hopsim.hazards.objects import Barrier
from hopsim.hazards.world import World


@dataclass(frozen=True, slots=True)
class Misdirected:
    """Copies of one PTX line, bytes each, that told an mbarrier which had not expected them."""

    line: int
    count_bytes: int
    told: Barrier

    def hint(self, world: World) -> str:
        """Return what to change."""
        name = world.facts.shared_name(self.told.address)
        where = f"{self.told.address:#x}" + (f" ({name})" if name else "")
        return (
            f"at :{self.line}, name this mbarrier: the {self.count_bytes} bytes of that copy came to the one at {where},"
            " which got more than it expected"
        )


def find_misdirected(world: World, barrier: Barrier) -> Misdirected | None:
    """Return the copies whose bytes an mbarrier lacks, if another one of its cluster has got them beyond what it expected.

    They are of a line that never told the one that lacks them, and copies of it make up what it lacks.
    """
    for other in _neighbours(world, barrier):
        if other.tx >= 0:
            continue
        # The last to come first: they were too many.
        for line, count_bytes in reversed(other.senders.items()):
            if (
                line not in barrier.senders
                and count_bytes <= -other.tx
                and barrier.tx % count_bytes == 0
            ):
                return Misdirected(line, count_bytes, other)
    return None


def _neighbours(world: World, barrier: Barrier) -> Iterator[Barrier]:
    """Yield the other mbarriers of a cluster, those of the same CTA first."""
    cluster = [cta for cta in world.ctas.values() if cta.cluster == barrier.owner.cluster]
    cluster.sort(key=lambda cta: cta is not barrier.owner)
    for cta in cluster:
        for other in cta.barriers.values():
            if other is not barrier:
                yield other

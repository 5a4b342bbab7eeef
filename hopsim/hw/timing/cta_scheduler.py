"""Where CTAs go: clusters in launch order, each into one GPC, its CTAs on different SMs where there is room.

SMs are filled breadth first: GPCs take turns, and within a GPC the SM with the most room is next.
How silicon chooses is not published; that clusters of 8 reach 120 of 132 SMs of one H100 follows
from the sizes of its GPCs.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from hopsim.config.groups import Device


class Placement:
    """Free places on each SM.

    Args:
        device: GPCs and their SMs; SMs are numbered GPC by GPC.
        ctas_per_sm: places of an SM.
    """

    def __init__(self, device: Device, ctas_per_sm: int) -> None:
        self.gpc_of: list[int] = [
            gpc for gpc, count in enumerate(device.gpc_sm_counts) for _ in range(count)
        ]
        self._ctas_per_sm = ctas_per_sm
        self._room = [ctas_per_sm] * len(self.gpc_of)
        # (CTAs there, rank in the GPC, GPC, SM): the emptiest SM first, GPCs taking turns.  Entries may be out of date.
        self._rank = [rank for count in device.gpc_sm_counts for rank in range(count)]
        self._order: list[tuple[int, int, int, int]] = [
            (0, self._rank[sm], gpc, sm) for sm, gpc in enumerate(self.gpc_of)
        ]
        heapq.heapify(self._order)
        self._sms_of = [
            [sm for sm, gpc in enumerate(self.gpc_of) if gpc == number]
            for number in range(len(device.gpc_sm_counts))
        ]

    @property
    def free_places(self) -> int:
        """Places for CTAs that are not taken."""
        return sum(self._room)

    def place(self, cluster_size: int) -> tuple[int, ...] | None:
        """Take places for one cluster; return the SM of each CTA in rank order, or None when there is no room."""
        if cluster_size == 1:
            sm = self._emptiest()
            if sm is None:
                return None
            self._take(sm)
            return (sm,)
        best: tuple[int, ...] | None = None
        best_room = 0
        for sms in self._sms_of:
            chosen = self._choose(sms, cluster_size)
            if chosen is not None:
                room = sum(self._room[sm] for sm in sms)
                if room > best_room:
                    best, best_room = chosen, room
        if best is not None:
            for sm in best:
                self._take(sm)
        return best

    def release(self, sm: int) -> None:
        """Give the place of one CTA back."""
        self._room[sm] += 1
        self._push(sm)

    def largest_cluster(self) -> int:
        """Return how many CTAs the roomiest GPC holds on different SMs, or together where it has fewer SMs."""
        return max(len(sms) for sms in self._sms_of) * self._ctas_per_sm

    def _emptiest(self) -> int | None:
        order = self._order
        while order:
            taken, _, _, sm = order[0]
            if self._room[sm] and taken == self._ctas_per_sm - self._room[sm]:
                return sm
            heapq.heappop(order)
        return None

    def _choose(self, sms: Sequence[int], size: int) -> tuple[int, ...] | None:
        """Return `size` places in one GPC, the emptiest SMs first, a second CTA on an SM only when all have one."""
        open_sms = [sm for sm in sms if self._room[sm]]
        if len(open_sms) < size:
            if len(sms) >= size or sum(self._room[sm] for sm in open_sms) < size:
                return None
            spread = [sm for sm in open_sms for _ in range(self._room[sm])]
            return tuple(sorted(spread[:size]))
        open_sms.sort(key=lambda sm: (-self._room[sm], self._rank[sm]))
        return tuple(sorted(open_sms[:size]))

    def _take(self, sm: int) -> None:
        self._room[sm] -= 1
        if self._room[sm]:
            self._push(sm)

    def _push(self, sm: int) -> None:
        heapq.heappush(
            self._order, (self._ctas_per_sm - self._room[sm], self._rank[sm], self.gpc_of[sm], sm)
        )

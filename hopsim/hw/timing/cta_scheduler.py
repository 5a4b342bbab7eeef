"""Where CTAs go: clusters in launch order, each into one GPC, its CTAs on different SMs.

Single CTAs spread over the chip: one to each TPC, GPC after GPC in turn, then the second SMs of the
TPCs; when every SM has one, they begin again.  But those that a GPC gets at the start of a launch are neighbours in the
grid: each GPC takes its share of consecutive CTAs.  Clusters go to GPCs in turn, where their SMs have fewest CTAs.

Source: hopsim's recording of %smid by CTA on an H100 SXM (grids of 8 to 396 single CTAs and of clusters of 2, 4, 8, 16; of
32 to 320 CTAs in clusters of 2, 4, 8 with room for several an SM, none of which gets a second one while a cluster finds
idle ones; the GPC that comes first varies from launch to launch and is the first one here), and
cudaOccupancyMaxActiveClusters.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from hopsim.config.groups import Device
from hopsim.hw.timing.floorplan import number_sms


class Placement:
    """Free places on each SM.

    Args:
        device: GPCs and their SMs.
        ctas_per_sm: places of an SM.
    """

    def __init__(self, device: Device, ctas_per_sm: int) -> None:
        self.sms_of = number_sms(device)
        pair = device.sms_per_tpc
        self.gpc_of: list[int] = [0] * sum(device.gpc_sm_counts)
        self.rank_of: list[tuple[bool, int, int, int]] = [(False, 0, 0, 0)] * len(self.gpc_of)
        for gpc, sms in enumerate(self.sms_of):
            for position, sm in enumerate(sms):
                self.gpc_of[sm] = gpc
                # The TPCs outside the GPCs come first, then all first SMs of TPCs row by row, then the second ones.
                self.rank_of[sm] = (len(sms) > pair, position % pair, position // pair, gpc)
        self._ctas_per_sm = ctas_per_sm
        self._room = [ctas_per_sm] * len(self.gpc_of)
        # (CTAs there, rank, SM): the emptiest SM first.  Entries may be out of date.
        self._order = [(0, rank, sm) for sm, rank in enumerate(self.rank_of)]
        heapq.heapify(self._order)
        # Clusters that a GPC has been given: they take turns, the TPCs outside first.
        self._given = [0] * len(self.sms_of)
        self._turns = sorted(
            range(len(self.sms_of)), key=lambda gpc: (len(self.sms_of[gpc]) > pair, gpc)
        )

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
        roomiest = 0
        for gpc in sorted(self._turns, key=self._given.__getitem__):
            chosen = self._choose(self.sms_of[gpc], cluster_size)
            if chosen is None:
                continue
            # Of the SM that has least.
            room = min(map(self._room.__getitem__, chosen))
            if room > roomiest:
                best, roomiest = chosen, room
            if room == self._ctas_per_sm:
                break
        if best is not None:
            self._given[self.gpc_of[best[0]]] += 1
            for sm in best:
                self._take(sm)
        return best

    def place_in(self, gpc: int, cluster_size: int) -> tuple[int, ...] | None:
        """Take places of one cluster in a GPC; return the SM of each CTA in rank order, or None when there is no room."""
        chosen = self._choose(self.sms_of[gpc], cluster_size)
        if chosen is not None:
            for sm in chosen:
                self._take(sm)
        return chosen

    def first_waves(self, count: int) -> list[list[int]]:
        """Take places for the first of `count` single CTAs, as far as there is room.

        Returns: their SMs in grid order, an SM at most once in each wave.
        """
        waves: list[list[int]] = []
        for _ in range(min(count, self.free_places)):
            sm = self._emptiest()
            assert sm is not None, "there is room"
            number = self._ctas_per_sm - self._room[sm]
            if number == len(waves):
                waves.append([])
            waves[number].append(sm)
            self._take(sm)
        return [sorted(wave, key=self._neighbourhood) for wave in waves]

    def _neighbourhood(self, sm: int) -> tuple[bool, int, int]:
        """Return what SMs are sorted by when each GPC takes consecutive CTAs."""
        in_gpc, *_ = self.rank_of[sm]
        return in_gpc, self.gpc_of[sm], sm

    def release(self, sm: int) -> None:
        """Give the place of one CTA back."""
        self._room[sm] += 1
        self._push(sm)

    def largest_cluster(self) -> int:
        """Return how many CTAs the largest GPC holds on different SMs."""
        return max(len(sms) for sms in self.sms_of)

    def _emptiest(self) -> int | None:
        order = self._order
        while order:
            taken, _, sm = order[0]
            if self._room[sm] and taken == self._ctas_per_sm - self._room[sm]:
                return sm
            heapq.heappop(order)
        return None

    def _choose(self, sms: Sequence[int], size: int) -> tuple[int, ...] | None:
        """Return `size` SMs of one GPC with room, the emptiest first and of those the lowest."""
        room = self._room
        open_sms = [sm for sm in sms if room[sm]]
        if len(open_sms) < size:
            return None
        open_sms.sort(key=lambda sm: (-room[sm], sm))
        return tuple(sorted(open_sms[:size]))

    def _take(self, sm: int) -> None:
        self._room[sm] -= 1
        if self._room[sm]:
            self._push(sm)

    def _push(self, sm: int) -> None:
        heapq.heappush(self._order, (self._ctas_per_sm - self._room[sm], self.rank_of[sm], sm))

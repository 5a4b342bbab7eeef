"""Which 128-byte lines are in L2: least recently used, in partitions, kept for whole boxes at once.

Each line has a home partition; an SM asks its own partition first, which keeps a copy of what it
had to fetch from the home. So data that SMs of both halves use takes room twice, as the latency of
working sets beyond half the capacity shows on silicon (HPMLL, RRZE).

L2 is taken as fully associative, save for one thing: what was written before a launch is older than all else and goes out
when the set that it lies in has been filled, in idle time of the memory.  Lines are hashed over sets, so how many a set has
got is Poisson's.

How much L2 holds is not the same for all lines: of a walk over a set that grows, more and more is missed.  Lines are hashed
over kinds, each with a capacity of its own.

Source of the kinds and of what written lines take: hopsim's recordings on an H100 SXM (tests/silicon/l2_walks.json).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.hw.timing.l2_partition import Kinds, Partition
from hopsim.hw.timing.line_sectors import BITS, WHOLE, Lines, Masks, in_pieces

# Which home a line has is a hash nobody has published; a multiplicative one spreads any stride over the partitions.
HASH_MULTIPLIER: Final = 0x9E3779B97F4A7C15
HASH_SHIFT: Final = 61
KIND_SHIFT: Final = 48
KIND_BITS: Final = 16
GROWTH: Final = 2


def full_share(ways: int, mean: float) -> float:
    """Return which share of the sets is full when so many lines have come to each in the mean, hashed over the sets.

    >>> [round(full_share(16, mean), 3) for mean in (8, 12, 16, 32)]
    [0.008, 0.156, 0.533, 0.999]
    """
    term = math.exp(-mean)
    below = term
    for count in range(1, ways):
        term *= mean / count
        below += term
    return max(0.0, 1.0 - below)


class Lookup(NamedTuple):
    """What a read of some lines found.

    Args:
        near: lines present in the partition of the SM.
        far: lines fetched from their home partition.
        missed: lines fetched from device memory.
        remote_missed: those of them whose home is another partition (it was asked too).
        fetched: the lines that came from elsewhere (far and missed), None when there are none.
    """

    near: int
    far: int
    missed: int
    remote_missed: int
    fetched: Lines | None


class L2Tags:
    """Presence and dirtiness of lines.

    Args:
        capacity_bytes: of all partitions together.
        partitions: how many there are.
        line_bytes, sector_bytes: their sizes.
        ways: lines of a set.
        dirty_bytes: written before the launch.
        spread: for each kind of lines, how much of its share of the capacity it has.
        sectors_per_fetch: of the aligned pieces that come together.
    """

    def __init__(
        self,
        capacity_bytes: int,
        partitions: int,
        line_bytes: int,
        sector_bytes: int,
        ways: int = 16,
        dirty_bytes: int = 0,
        spread: Sequence[float] = (1.0,),
        sectors_per_fetch: int = 1,
    ) -> None:
        self.partition_count = partitions
        self.line_shift = line_bytes.bit_length() - 1
        self.sectors_per_line = line_bytes // sector_bytes
        assert 1 << self.line_shift == line_bytes, line_bytes
        self._pieces = in_pieces(sectors_per_fetch)
        self._base = 0
        self._size = 0
        share = capacity_bytes / line_bytes / partitions / len(spread)
        capacities = [max(1, int(share * more)) for more in sorted(spread)]
        self._partitions = [Partition(capacities, 0) for _ in range(partitions)]
        self._home: NDArray[np.int8] = np.zeros(0, np.int8)
        self._kinds: Kinds = np.zeros(0, np.int8)
        self._dirty: NDArray[np.uint8] = np.zeros(0, np.uint8)
        # Sectors of each line that were fetched or written, a bit each.
        self._held: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._tick = 0
        # One line of each set at most.
        self._old_sectors = min(dirty_bytes, capacity_bytes // ways) // sector_bytes
        self._old_gone = 0
        self._ways = ways
        self._capacity = capacity_bytes // line_bytes

    @property
    def resident_lines(self) -> int:
        """Lines held, copies counted."""
        return sum(sum(partition.resident) for partition in self._partitions)

    @property
    def size(self) -> int:
        """How many line numbers `number` can have returned."""
        return self._size

    def cover(self, first_address: int, last_address: int) -> None:
        """Make room for the lines of an address range; numbers given out before stay valid only if it lies higher."""
        first, last = first_address >> self.line_shift, last_address >> self.line_shift
        if self._size == 0:
            self._base = first
        assert first >= self._base, ("the address range of L2 grew downwards", first, self._base)
        needed = last - self._base + 1
        if needed <= self._size:
            return
        size = max(needed, GROWTH * self._size)
        numbers = np.arange(self._size, size, dtype=np.uint64)
        mixed = numbers * np.uint64(HASH_MULTIPLIER)
        top = mixed >> np.uint64(HASH_SHIFT)
        home = (top % np.uint64(self.partition_count)).astype(np.int8)
        kind_count = np.uint64(len(self._partitions[0].capacities))
        kinds = (mixed >> np.uint64(KIND_SHIFT)) * kind_count >> np.uint64(KIND_BITS)
        extra = size - self._size
        self._home = np.concatenate((self._home, home))
        self._kinds = np.concatenate((self._kinds, kinds.astype(np.int8)))
        self._dirty = np.concatenate((self._dirty, np.zeros(extra, np.uint8)))
        self._held = np.concatenate((self._held, np.zeros(extra, np.uint8)))
        for partition in self._partitions:
            partition.stamp = np.concatenate((partition.stamp, np.zeros(extra, np.int32)))
        self._size = size

    def number(self, addresses: Lines) -> Lines:
        """Turn byte addresses of lines into line numbers."""
        numbers = (addresses >> self.line_shift) - self._base
        if len(numbers) and int(numbers.max()) >= self._size:
            self.cover(int(addresses.min()), int(addresses.max()))
        return numbers

    def prefetch(self, lines: Lines) -> tuple[Lines, int]:
        """Bring lines into their homes.

        Returns: those that were not there, and the dirty sectors written back to make room.
        """
        self._tick += 1
        found: list[Lines] = []
        home = self._home[lines]
        for number, partition in enumerate(self._partitions):
            theirs = lines[home == number]
            fresh = theirs[partition.stamp[theirs] == 0]
            if len(fresh):
                partition.use(self._tick, fresh, fresh, self._kinds)
                found.append(fresh)
        if not found:
            return lines[:0], 0
        fresh = np.concatenate(found)
        self._held[fresh] = WHOLE
        return fresh, self._make_room()

    def claim(self, lines: Lines, masks: Masks) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Take sectors that are not held as fetched, with all of the pieces that they lie in.

        Args:
            masks: of each line, a bit for each sector that is wanted.
        Returns: of each line, how many wanted sectors were not held, and how many come.
        """
        held = self._held[lines]
        missing = masks & ~held
        brought = self._pieces[missing] & ~held
        self._held[lines] = held | brought
        return BITS[missing], BITS[brought]

    def read(self, lines: Lines, side: int, whole: bool = True) -> tuple[Lookup, int]:
        """Read lines through partition `side`; unless they are read as a `whole`, `claim` says which sectors of them.

        Returns: what was found, and the dirty sectors written back to make room.
        """
        self._tick += 1
        tick = self._tick
        own = self._partitions[side]
        present = own.stamp[lines]
        count = len(lines)
        near = int(np.count_nonzero(present))
        kinds = self._kinds
        if near == count:
            own.use(tick, lines, None, kinds)
            return Lookup(near, 0, 0, 0, None), 0
        fetched = lines if near == 0 else lines[present == 0]
        home = self._home[fetched]
        far = missed = remote_missed = 0
        for number, partition in enumerate(self._partitions):
            if number == side:
                missed += int(np.count_nonzero(home == side))
                continue
            theirs = fetched[home == number]
            if len(theirs):
                absent = theirs[partition.stamp[theirs] == 0]
                far += len(theirs) - len(absent)
                remote_missed += len(absent)
                partition.use(tick, theirs, absent, kinds)
        missed += remote_missed
        if whole:
            self._held[fetched] = WHOLE
        own.use(tick, lines, fetched, kinds)
        return Lookup(near, far, missed, remote_missed, fetched), self._make_room()

    def write(self, lines: Lines, sectors: int, side: int, masks: Masks | None = None) -> int:
        """Write lines through partition `side`, which holds them then as their homes do; copies elsewhere are dropped.

        Args:
            lines: numbers.
            sectors: how many sectors of them are written.
            masks: of each line, a bit for each sector that is held from now on; None: all of them.
        Returns: the dirty sectors written back to make room.
        """
        self._tick += 1
        home = self._home[lines]
        each = min(self.sectors_per_line, -(-sectors // max(1, len(lines))))
        self._held[lines] = WHOLE if masks is None else self._held[lines] | masks
        self._dirty[lines] = np.minimum(self._dirty[lines] + each, self.sectors_per_line)
        for number, partition in enumerate(self._partitions):
            mine, others = lines, lines[:0]
            if number != side:
                here = home == number
                mine, others = lines[here], lines[~here]
            if len(mine):
                fresh = mine[partition.stamp[mine] == 0]
                partition.use(self._tick, mine, fresh, self._kinds)
            if len(others):
                partition.drop(others, self._kinds)
        return self._make_room()

    def is_clean(self, lines: Lines) -> bool:
        """Say whether the first of some lines has not been written since it came."""
        return not self._dirty[lines[0]]

    def remote_lines(self, lines: Lines, side: int) -> int:
        """Return how many lines have their home elsewhere than in `side`."""
        return int(np.count_nonzero(self._home[lines] != side))

    def dirty_sectors(self) -> int:
        """Return the sectors that have not been written back yet."""
        return int(self._dirty.sum(dtype=np.int64))

    def old_written(self) -> int:
        """Return how many sectors that were dirty before the launch have been written back in it."""
        filled = sum(partition.filled for partition in self._partitions)
        share = full_share(self._ways, self._ways * filled / self._capacity)
        return round(self._old_sectors * share) - self._old_gone

    def launch(self) -> None:
        """Count from here on what old sectors are written back."""
        self._old_gone += self.old_written()

    def _make_room(self) -> int:
        written = 0
        for number, partition in enumerate(self._partitions):
            while True:
                old = partition.evict(self._kinds)
                if old is None:
                    break
                # Only the home's copy may be dirty.
                at_home = old[self._home[old] == number]
                self._held[at_home] = 0
                dirty = int(self._dirty[at_home].sum(dtype=np.int64))
                if dirty:
                    written += dirty
                    self._dirty[at_home] = 0
        return written

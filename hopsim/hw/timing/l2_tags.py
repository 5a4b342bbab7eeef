"""Which 128-byte lines are in L2: least recently used, in partitions, kept for whole boxes at once.

Each line has a home partition; an SM asks its own partition first, which keeps a copy of what it
had to fetch from the home. So data that SMs of both halves use takes room twice, as the latency of
working sets beyond half the capacity shows on silicon (HPMLL, RRZE).

L2 is taken as fully associative, save for one thing: what was written before a launch is older than all else and goes out
when the set that it lies in has been filled, in idle time of the memory.  Lines are hashed over sets, so how many a set has
got is Poisson's.

A partition is an array with the time stamp of each line's last use (0: absent) and a queue of the
line sets in order of use: a set's lines that still carry its stamp when it is the oldest are the
least recently used ones.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.int64]
Masks = NDArray[np.uint8]

# Which home a line has is a hash nobody has published; a multiplicative one spreads any stride over the partitions.
HASH_MULTIPLIER: Final = 0x9E3779B97F4A7C15
HASH_SHIFT: Final = 61
GROWTH: Final = 2
# Of four sectors: all of them, and how many a mask has.
WHOLE: Final = 15
BITS: Final = np.array([number.bit_count() for number in range(WHOLE + 1)], np.uint8)


def by_line(sectors: NDArray[np.int64], each: int) -> tuple[Lines, Masks]:
    """Return the distinct lines of some sectors, and a bit for each sector of each line.

    Args:
        sectors: distinct numbers, ascending.
        each: sectors of a line.

    >>> lines, masks = by_line(np.array([1, 2, 3, 9]), 4)
    >>> lines.tolist(), masks.tolist()
    ([0, 2], [14, 2])
    """
    lines = sectors // each
    begins = np.flatnonzero(np.diff(lines, prepend=-1))
    bits = np.left_shift(1, sectors % each).astype(np.uint8)
    return lines[begins], np.bitwise_or.reduceat(bits, begins)


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


class _Partition:
    """Stamps and the queue of one partition."""

    __slots__ = ("capacity", "filled", "queue", "queued", "resident", "stamp")

    def __init__(self, capacity: int, size: int) -> None:
        self.capacity = capacity
        self.stamp: NDArray[np.int32] = np.zeros(size, np.int32)
        self.queue: deque[tuple[int, Lines]] = deque()
        self.queued = 0
        self.resident = 0
        # Lines that came, since the beginning.
        self.filled = 0

    def use(self, tick: int, lines: Lines, fresh: int) -> None:
        """Make lines the most recently used ones; `fresh` of them were absent."""
        self.stamp[lines] = tick
        self.resident += fresh
        self.filled += fresh
        self.queue.append((tick, lines))
        self.queued += len(lines)
        if self.queued > 8 * self.capacity:
            self._compact()

    def evict(self) -> Lines | None:
        """Drop the least recently used set of lines when there are too many; return what was dropped."""
        if self.resident <= self.capacity:
            return None
        while True:
            tick, lines = self.queue.popleft()
            self.queued -= len(lines)
            old = lines[self.stamp[lines] == tick]
            if len(old):
                break
        surplus = self.resident - self.capacity
        if len(old) > surplus:
            # The rest of the set stays the oldest.
            self.queue.appendleft((tick, old[surplus:]))
            self.queued += len(old) - surplus
            old = old[:surplus]
        self.stamp[old] = 0
        self.resident -= len(old)
        return old

    def drop(self, lines: Lines) -> None:
        """Forget lines."""
        gone = int(np.count_nonzero(self.stamp[lines]))
        if gone:
            self.stamp[lines] = 0
            self.resident -= gone

    def _compact(self) -> None:
        """Forget the parts of queued sets that were used again later."""
        kept: deque[tuple[int, Lines]] = deque()
        total = 0
        for tick, lines in self.queue:
            still = self.stamp[lines] == tick
            count = int(np.count_nonzero(still))
            if count:
                kept.append((tick, lines if count == len(lines) else lines[still]))
                total += count
        self.queue = kept
        self.queued = total


class L2Tags:
    """Presence and dirtiness of lines.

    Args:
        capacity_bytes: of all partitions together.
        partitions: how many there are.
        line_bytes, sector_bytes: their sizes.
        ways: lines of a set.
        dirty_bytes: written before the launch.
    """

    def __init__(
        self,
        capacity_bytes: int,
        partitions: int,
        line_bytes: int,
        sector_bytes: int,
        ways: int = 16,
        dirty_bytes: int = 0,
    ) -> None:
        self.partition_count = partitions
        self.line_shift = line_bytes.bit_length() - 1
        self.sectors_per_line = line_bytes // sector_bytes
        assert 1 << self.line_shift == line_bytes, line_bytes
        self._base = 0
        self._size = 0
        self._partitions = [
            _Partition(max(1, capacity_bytes // line_bytes // partitions), 0)
            for _ in range(partitions)
        ]
        self._home: NDArray[np.int8] = np.zeros(0, np.int8)
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
        return sum(partition.resident for partition in self._partitions)

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
        mixed = (numbers * np.uint64(HASH_MULTIPLIER)) >> np.uint64(HASH_SHIFT)
        home = (mixed % np.uint64(self.partition_count)).astype(np.int8)
        extra = size - self._size
        self._home = np.concatenate((self._home, home))
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

    def known(self, addresses: Lines) -> Lines:
        """Turn byte addresses of lines into line numbers; those outside of what is covered are left out."""
        numbers = (addresses >> self.line_shift) - self._base
        return numbers[(numbers >= 0) & (numbers < self._size)]

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
                partition.use(self._tick, fresh, len(fresh))
                found.append(fresh)
        if not found:
            return lines[:0], 0
        fresh = np.concatenate(found)
        self._held[fresh] = WHOLE
        return fresh, self._make_room()

    def claim(self, lines: Lines, masks: Masks) -> NDArray[np.uint8]:
        """Return how many of the wanted sectors of each line are not held; they are from now on.

        Args:
            masks: of each line, a bit for each sector that is wanted.
        """
        held = self._held[lines]
        self._held[lines] = held | masks
        return BITS[masks & ~held]

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
        if near == count:
            own.use(tick, lines, 0)
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
                found = int(np.count_nonzero(partition.stamp[theirs]))
                far += found
                remote_missed += len(theirs) - found
                partition.use(tick, theirs, len(theirs) - found)
        missed += remote_missed
        if whole:
            self._held[fetched] = WHOLE
        own.use(tick, lines, count - near)
        return Lookup(near, far, missed, remote_missed, fetched), self._make_room()

    def write(self, lines: Lines, sectors: int, masks: Masks | None = None) -> int:
        """Write lines at their homes; copies elsewhere are dropped.

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
            here = home == number
            mine = lines[here]
            if len(mine):
                fresh = len(mine) - int(np.count_nonzero(partition.stamp[mine]))
                partition.use(self._tick, mine, fresh)
            if len(mine) < len(lines):
                partition.drop(lines[~here])
        return self._make_room()

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
                old = partition.evict()
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

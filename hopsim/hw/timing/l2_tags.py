"""Which 128-byte lines are in L2: least recently used, in partitions, kept for whole boxes at once.

Each line has a home partition; an SM asks its own partition first, which keeps a copy of what it
had to fetch from the home. So data that SMs of both halves use takes room twice, as the latency of
working sets beyond half the capacity shows on silicon (HPMLL, RRZE).

L2 is taken as fully associative, save for one thing: what was written before a launch is older than all else and goes out
when the set that it lies in has been filled, in idle time of the memory.  Lines are hashed over sets, so how many a set has
got is Poisson's.

How much L2 holds is not the same for all lines: of a walk over a set that grows, more and more is missed.  Lines are hashed
over kinds, each with a capacity of its own.

A partition is an array with the time stamp of each line's last use (0: absent) and queues of the
line sets in order of use: a set's lines that still carry its stamp when it is the oldest are the
least recently used ones.

Source of the kinds and of what written lines take: hopsim's recordings on an H100 SXM (tests/silicon/l2_walks.json).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.int64]
Masks = NDArray[np.uint8]
Kinds = NDArray[np.int8]

# Which home a line has is a hash nobody has published; a multiplicative one spreads any stride over the partitions.
HASH_MULTIPLIER: Final = 0x9E3779B97F4A7C15
HASH_SHIFT: Final = 61
KIND_SHIFT: Final = 48
KIND_BITS: Final = 16
GROWTH: Final = 2
# Of four sectors: all of them, and how many a mask has.
WHOLE: Final = 15
BITS: Final = np.array([number.bit_count() for number in range(WHOLE + 1)], np.uint8)


def in_pieces(each: int) -> NDArray[np.uint8]:
    """Return for each mask of the sectors of a line that of the aligned pieces, so many sectors each, which they lie in.

    >>> in_pieces(2)[[0b0001, 0b0110, 0b1000]].tolist()
    [3, 15, 12]
    """
    assert BITS[WHOLE] % each == 0, each
    masks = np.arange(WHOLE + 1, dtype=np.uint8)
    found = np.zeros_like(masks)
    for first in range(0, int(BITS[WHOLE]), each):
        piece = ((1 << each) - 1) << first
        found |= np.where(masks & piece, piece, 0).astype(np.uint8)
    return found


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
    """Stamps and the queues of one partition.

    Args:
        capacities: lines of each kind that it holds.
        size: how many line numbers there are.

    Lines of every kind are used alike, so one queue has the recent ones of all.  What the first kind has no room for goes
    from its end, and the others with it to the queue of the next kind: sets of lines are split only where they grow old.
    """

    __slots__ = ("capacities", "filled", "queued", "queues", "resident", "stamp")

    def __init__(self, capacities: Sequence[int], size: int) -> None:
        self.capacities = tuple(capacities)
        self.stamp: NDArray[np.int32] = np.zeros(size, np.int32)
        self.queues: list[deque[tuple[int, Lines]]] = [deque() for _ in self.capacities]
        self.queued = 0
        self.resident = [0] * len(self.capacities)
        # Lines that came, since the beginning.
        self.filled = 0

    def use(self, tick: int, lines: Lines, fresh: Lines | None, kinds: Kinds) -> None:
        """Make lines the most recently used ones; `fresh`, those that were absent, None: none was."""
        self.stamp[lines] = tick
        if fresh is not None:
            self._count(fresh, kinds, 1)
            self.filled += len(fresh)
        self.queues[0].append((tick, lines))
        self.queued += len(lines)
        if self.queued > 8 * sum(self.capacities):
            self._compact()

    def evict(self, kinds: Kinds) -> Lines | None:
        """Drop lines of a kind that has too many, those least recently used; return what was dropped."""
        for kind, capacity in enumerate(self.capacities):
            surplus = self.resident[kind] - capacity
            while surplus > 0:
                oldest = kind
                while not self.queues[oldest]:
                    oldest -= 1
                old = self._pop(oldest)
                # Hashed lines of all kinds come alike: where one has too many, those before it are about full.
                most = surplus if oldest == kind else len(old[1])
                gone = self._hand_on(old, oldest, most, kinds)
                if len(gone):
                    return gone
        return None

    def drop(self, lines: Lines, kinds: Kinds) -> None:
        """Forget lines."""
        gone = lines[self.stamp[lines] > 0]
        if len(gone):
            self.stamp[gone] = 0
            self._count(gone, kinds, -1)

    def _count(self, lines: Lines, kinds: Kinds, sign: int) -> None:
        resident = self.resident
        for kind, count in enumerate(np.bincount(kinds[lines], minlength=len(resident)).tolist()):
            resident[kind] += sign * count

    def _pop(self, number: int) -> tuple[int, Lines]:
        """Take the oldest set of a queue, without the lines that were used again."""
        tick, lines = self.queues[number].popleft()
        self.queued -= len(lines)
        return tick, lines[self.stamp[lines] == tick]

    def _hand_on(self, old: tuple[int, Lines], kind: int, surplus: int, kinds: Kinds) -> Lines:
        """Drop so many lines of a kind from a set, and hand those of other kinds before the last of them on."""
        tick, lines = old
        places = np.flatnonzero(kinds[lines] == kind)
        end = int(places[surplus]) if len(places) > surplus else len(lines)
        before, behind = lines[:end], lines[end:]
        is_other = kinds[before] > kind
        gone, kept = before[~is_other], before[is_other]
        if len(kept):
            self.queues[kind + 1].append((tick, kept))
            self.queued += len(kept)
        if len(behind):
            self.queues[kind].appendleft((tick, behind))
            self.queued += len(behind)
        self.stamp[gone] = 0
        self._count(gone, kinds, -1)
        return gone

    def _compact(self) -> None:
        """Forget the parts of queued sets that were used again later."""
        self.queued = 0
        for number, queue in enumerate(self.queues):
            kept: deque[tuple[int, Lines]] = deque()
            for tick, lines in queue:
                still = lines[self.stamp[lines] == tick]
                if len(still):
                    kept.append((tick, still))
                    self.queued += len(still)
            self.queues[number] = kept


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
        self._partitions = [_Partition(capacities, 0) for _ in range(partitions)]
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

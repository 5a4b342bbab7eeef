"""Shadow memory: for every byte, who wrote it last and who has read it since.

A region keeps one number per granule: the index of an interned `State`.  All bytes of one TMA box have the same state, so
that an access of thousands of bytes is a few array operations and one decision per distinct state.  Granules are as large
as the smallest access so far (16 bytes at first), hence bytes are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopsim.hazards.records import Ints, Record

LARGEST_SHIFT = 4
Cells: TypeAlias = "slice | Ints"


class State:
    """Accesses that a byte has seen: the last writes that nothing orders among themselves, and reads since.

    `is_unwritten`: there is no data in it, be it that an mbarrier was there and is no more.
    """

    __slots__ = ("index", "is_unwritten", "readers", "writers")

    def __init__(
        self, index: int, writers: tuple[Record, ...], readers: tuple[Record, ...]
    ) -> None:
        self.index = index
        self.writers = writers
        self.readers = readers
        self.is_unwritten = all(writer.is_void for writer in writers)


class States:
    """All states in use, each once."""

    def __init__(self) -> None:
        self.all: list[State] = [State(0, (), ())]
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], State] = {((), ()): self.all[0]}

    def get(self, writers: tuple[Record, ...], readers: tuple[Record, ...]) -> State:
        """Return the state of these accesses."""
        key = (tuple([one.number for one in writers]), tuple([one.number for one in readers]))
        state = self._known.get(key)
        if state is None:
            state = State(len(self.all), writers, readers)
            self.all.append(state)
            self._known[key] = state
        return state

    def sweep(self, regions: list[Region]) -> None:
        """Forget states that no byte is in."""
        used = [np.unique(region.states) for region in regions]
        kept = np.unique(np.concatenate([np.zeros(1, np.int32), *used]))
        table = np.zeros(len(self.all), np.int32)
        table[kept] = np.arange(len(kept), dtype=np.int32)
        old = self.all
        self.all = []
        self._known = {}
        for position, index in enumerate(_as_ints(kept)):
            state = old[index]
            state.index = position
            self.all.append(state)
            key = (
                tuple(one.number for one in state.writers),
                tuple(one.number for one in state.readers),
            )
            self._known[key] = state
        for region in regions:
            region.states = table[region.states]


class Region:
    """The shadow of one CTA's shared memory, or of one global allocation.

    Args:
        base: address of the first byte.
        size: in bytes.
        deferred: reads wait in a list until somebody writes here at all.
    """

    def __init__(self, base: int, size: int, name: str, deferred: bool) -> None:
        self.base = base
        self.size = size
        self.name = name
        self.shift = LARGEST_SHIFT
        self.states: NDArray[np.int32] = np.zeros(0, np.int32)
        self.deferred: list[Record] | None = [] if deferred else None
        self._cells: dict[Any, Ints] = {}

    def refine(self, count_bytes: int) -> None:
        """Make granules no larger than `count_bytes`."""
        if not count_bytes & 15 and len(self.states):
            return
        shift = max(min(LARGEST_SHIFT, (count_bytes & -count_bytes).bit_length() - 1), 0)
        if not len(self.states):
            self.shift = min(self.shift, shift)
            self.states = np.zeros((self.size >> self.shift) + (16 >> self.shift), np.int32)
        elif shift < self.shift:
            self.states = np.repeat(self.states, 1 << (self.shift - shift))
            self.shift = shift
            self._cells = {}

    def span(self, granules: Ints) -> tuple[int, int]:
        """Return the first byte of granules, and the byte after the last."""
        low, high = int(granules.min()), int(granules.max())
        return self.base + (low << self.shift), self.base + ((high + 1) << self.shift)

    def cells(self, record: Record, key: Any) -> Cells:
        """Return the granules that a record touches: a slice, or an array of shape (parts,) or (parts, granules)."""
        shift = self.shift
        addresses = record.addresses
        if addresses is None:
            return slice(
                (record.start - self.base) >> shift,
                (record.stop - self.base + (1 << shift) - 1) >> shift,
            )
        if isinstance(addresses, int):
            first = (addresses - self.base) >> shift
            return slice(first, first + max(1, record.count_bytes >> shift))
        if key is not None:
            known = self._cells.get(key)
            if known is not None:
                return known
        starts: Ints = addresses() if callable(addresses) else addresses
        first = (starts - self.base) >> shift
        count = record.count_bytes >> shift
        if count > 1:
            first = (first[:, None] + np.arange(count, dtype=np.int64)).reshape(-1)
        if key is not None:
            if len(self._cells) > 4096:
                self._cells.clear()
            self._cells[key] = first
        return first


# What a write or read makes of a state: the new state, given the old one and its granules.
Step: TypeAlias = Callable[[State, Callable[[], Ints]], State]


def walk(region: Region, states: States, cells: Cells, step: Step) -> None:
    """Move the granules to their next states; `step` decides once per distinct state."""
    table = region.states
    now = table[cells]
    if not len(now):
        return
    first = int(now[0])
    if (now == first).all():

        def everything() -> Ints:
            return _as_array(cells)

        table[cells] = step(states.all[first], everything).index
        return
    distinct, inverse = np.unique(now, return_inverse=True)
    result = np.empty(len(distinct), np.int32)
    for position, index in enumerate(_as_ints(distinct)):

        def chosen(position: int = position) -> Ints:
            return _as_array(cells)[inverse == position]

        result[position] = step(states.all[index], chosen).index
    table[cells] = result[inverse]


def _as_ints(numbers: NDArray[np.int32]) -> list[int]:
    return numbers.tolist()


def _as_array(cells: Cells) -> Ints:
    if isinstance(cells, slice):
        return np.arange(cells.start, cells.stop, dtype=np.int64)
    return cells

"""State spaces as bytes: global allocations, the shared memory of a CTA, and the windows of generic addresses.

A `Region` is a run of bytes with word views; reads and writes take one address (int) or one per lane (uint64 array).
Bounds, alignment and, where asked, initialisation are checked here; the caller turns a `RegionFault` into a fault that
names the warp and line.

Source: PTX ISA 8.7 "State Spaces", "Generic Addressing"; window addresses are hopsim's own (DEVIATIONS D-ADDR).
"""

from __future__ import annotations

import bisect
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.hw.machine.heap import Heap
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Value

RANK_SHIFT: Final = 24
OFFSET_MASK: Final = (1 << RANK_SHIFT) - 1
RANK_MASK: Final = 0xFF

WINDOW_SHIFT: Final = 40
SHARED_WINDOW: Final = 0x71 << WINDOW_SHIFT
LOCAL_WINDOW: Final = 0x72 << WINDOW_SHIFT
PARAM_WINDOW: Final = 0x73 << WINDOW_SHIFT
WINDOWS: Final = {0x71: "shared::cluster", 0x72: "local", 0x73: "param"}

GLOBAL_BASE: Final = 0x7F_0000_0000
ALLOCATION_ALIGNMENT: Final = 512
ALLOCATION_GAP: Final = 4096


class RegionFault(Exception):
    """An access that leaves a region, is misaligned, or reads bytes nobody wrote.

    Args:
        kind: `outside`, `misaligned`, `unwritten` or `read-only`.
    """

    def __init__(self, what: str, address: int, kind: str) -> None:
        super().__init__(what)
        self.what = what
        self.kind = kind
        self.address = address


def joined(words: NDArray[np.uint64]) -> int:
    """Return the value of 16 bytes, given as two words.

    >>> hex(joined(np.array([5, 1], np.uint64)))
    '0x10000000000000005'
    """
    low, high = words.tolist()
    return low | high << 64


def halves(value: int) -> tuple[int, int]:
    """Return the low and the high word of 16 bytes.

    >>> halves((1 << 64) + 5)
    (5, 1)
    """
    return value & 0xFFFFFFFFFFFFFFFF, value >> 64


class Region:
    """Bytes `[base, base + size)` of one state space.

    Args:
        base: address of the first byte.
        data: the bytes; their length is rounded up to 16 by the maker so that every word view covers them.
        size: bytes that may be accessed.
        name: for messages.
        track: whether to remember which bytes were written.
    """

    __slots__ = (
        "base",
        "bytes",
        "data",
        "has_discarded",
        "name",
        "read_only",
        "size",
        "views",
        "written",
        "written_views",
    )

    def __init__(
        self, base: int, data: NDArray[np.uint8], size: int, name: str, track: bool = False
    ) -> None:
        assert len(data) % 16 == 0, (name, len(data))
        self.base = base
        self.data = data
        self.size = size
        self.name = name
        self.read_only = False
        self.has_discarded = False
        self.views: dict[int, NDArray[Any]] = {
            w // 8: data.view(dtype) for w, dtype in DTYPES.items()
        }
        self.written: NDArray[np.uint8] | None = None
        self.written_views: dict[int, NDArray[Any]] = {}
        if track:
            self.track()

    def track(self) -> None:
        """Start to remember which bytes were written (none so far)."""
        self.written = np.zeros(len(self.data), np.uint8)
        self.written_views = {w // 8: self.written.view(dtype) for w, dtype in DTYPES.items()}

    def mark(self, start: int, stop: int, known: bool = True) -> None:
        """Say that bytes `[start, stop)`, relative to the base, hold data; or that what they hold was not computed."""
        if self.written is not None:
            self.written[start:stop] = known

    def discard(self, start: int, stop: int) -> None:
        """Let bytes `[start, stop)`, relative to the base, hold nothing until they are written again."""
        if self.written is None:
            self.track()
            self.mark(0, len(self.data))
        self.mark(start, stop, False)
        self.has_discarded = True

    def check(self, address: Value, count_bytes: int, align: int) -> Value:
        """Return the offset of an access, or raise `RegionFault`."""
        if isinstance(address, np.ndarray):
            offset = address.astype(np.int64)
            offset -= self.base
            # As an unsigned number an offset below 0 lies past every end.
            if int(np.maximum.reduce(offset.view(np.uint64))) + count_bytes > self.size:
                bad = int(address[(offset < 0) | (offset + count_bytes > self.size)][0])
                raise RegionFault(self._outside(bad, count_bytes), bad, "outside")
            if align > 1 and int(np.bitwise_or.reduce(address)) & (align - 1):
                bad = int(address[(address % align) != 0][0])
                raise RegionFault(
                    f"address {bad:#x} is not aligned to {align} bytes", bad, "misaligned"
                )
            return offset
        start = address - self.base
        if start < 0 or start + count_bytes > self.size:
            raise RegionFault(self._outside(address, count_bytes), address, "outside")
        if align > 1 and address % align:
            raise RegionFault(
                f"address {address:#x} is not aligned to {align} bytes", address, "misaligned"
            )
        return start

    def check_written(self, start: int, stop: int) -> None:
        """Raise `RegionFault` where a byte of `[start, stop)`, relative to the base, holds no data and that is tracked."""
        if self.written is not None and not self.written[start:stop].all():
            first = self.base + start + int(np.argmin(self.written[start:stop]))
            raise RegionFault(self._unwritten(first), first, "unwritten")

    def _unwritten(self, first: int) -> str:
        since = " since a discard" if self.has_discarded else ""
        return f"bytes {first:#x}.. of {self.name} were never written{since}"

    def _outside(self, address: int, count_bytes: int) -> str:
        end = self.base + self.size
        return (
            f"bytes {address:#x}..{address + count_bytes - 1:#x} leave {self.name} "
            f"({self.base:#x}..{max(end - 1, self.base):#x}, {self.size} bytes)"
        )

    def load(self, address: Value, word: int, count: int) -> list[Value]:
        """Read `count` consecutive words of `word` bytes at each address.

        Raises: RegionFault: outside, misaligned, or never written where that is tracked.
        """
        offset = self.check(address, word * count, word * count)
        index = offset // word
        view = self.views[word]
        if self.written is not None:
            seen = self.written_views[word]
            full = int.from_bytes(b"\x01" * word, "little")
            for k in range(count):
                fresh = seen[index + k]
                if (fresh != full).any() if isinstance(fresh, np.ndarray) else int(fresh) != full:
                    where = (
                        address
                        if isinstance(address, int)
                        else int(address[np.argmax(fresh != full)])
                    )
                    raise RegionFault(self._unwritten(where + k * word), where, "unwritten")
        if isinstance(index, int):
            return [int(view[index + k]) for k in range(count)]
        return [view[index + k] for k in range(count)]

    def holds(self, address: Value, word: int, values: list[Value]) -> bool:
        """Whether consecutive words of `word` bytes at each address have these values.

        Raises: RegionFault: outside or misaligned.
        """
        index = self.check(address, word * len(values), word * len(values)) // word
        view = self.views[word]
        return all(bool(np.all(view[index + k] == value)) for k, value in enumerate(values))

    def store(self, address: Value, word: int, values: list[Value]) -> None:
        """Write consecutive words of `word` bytes at each address; of lanes that collide the last one wins (D-COLLIDE).

        Raises: RegionFault: outside, misaligned, or read-only.
        """
        count = len(values)
        offset = self.check(address, word * count, word * count)
        if self.read_only:
            first = address if isinstance(address, int) else int(address[0])
            raise RegionFault(f"{self.name}: read-only", first, "read-only")
        index = offset // word
        view = self.views[word]
        for k, value in enumerate(values):
            if isinstance(index, int) and isinstance(value, np.ndarray):
                view[index + k] = value[-1]
            else:
                view[index + k] = value
        if self.written is not None:
            full = int.from_bytes(b"\x01" * word, "little")
            seen = self.written_views[word]
            for k in range(count):
                seen[index + k] = full


def make_region(base: int, size: int, name: str, track: bool = False) -> Region:
    """Return a zero-filled region."""
    return Region(base, np.zeros((size + 15) // 16 * 16, np.uint8), size, name, track)


class GlobalMemory:
    """All allocations of a device, by address.  Addresses depend only on the order of allocation."""

    def __init__(self) -> None:
        self._next = GLOBAL_BASE
        self._bases: list[int] = []
        self._regions: list[Region] = []
        self.heap = Heap(self)

    @property
    def regions(self) -> tuple[Region, ...]:
        """All allocations, by address."""
        return tuple(self._regions)

    @property
    def allocated_bytes(self) -> int:
        """All of them together."""
        return sum(region.size for region in self._regions)

    def allocate(self, size: int, name: str, data: NDArray[np.uint8] | None = None) -> Region:
        """Reserve `size` bytes, aligned to 512, filled from `data` when given.

        Memory that was not filled from the host is tracked, so that reading it before writing is found.
        """
        base = self._next
        region = make_region(base, size, name, track=data is None)
        if data is not None:
            region.data[: len(data)] = data
        self._next = (base + size + ALLOCATION_GAP) // ALLOCATION_ALIGNMENT * ALLOCATION_ALIGNMENT
        self._bases.append(base)
        self._regions.append(region)
        return region

    def release(self, region: Region) -> None:
        """Take an allocation away: its addresses are in none from now on, and are not given out again."""
        position = self._bases.index(region.base)
        del self._bases[position]
        del self._regions[position]

    def holds(self, region: Region) -> bool:
        """Whether a region is one of these: memories of two devices give out the same addresses."""
        position = bisect.bisect_left(self._bases, region.base)
        return self._regions[position : position + 1] == [region]

    def find(self, address: int) -> Region:
        """Return the region that holds `address`.

        Raises:
            RegionFault: no allocation holds it.
        """
        position = bisect.bisect_right(self._bases, address) - 1
        if position >= 0:
            region = self._regions[position]
            # An address just past the end still belongs to the region: its bounds check says so better.
            if address < region.base + region.size + ALLOCATION_ALIGNMENT:
                return region
        raise RegionFault(f"address {address:#x} is in no allocation", address, "outside")

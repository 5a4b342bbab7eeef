"""Local memory in L1 and L2: a word of all lanes of a warp is a line, whose banks are those of the lanes.

So lanes at different words are never in each other's way for data; what a load of several lines takes are tags, four a
cycle.  A store passes L1 line by line and goes out to L2, as one to global memory does, with a sector more for a line that
it does not fill; L1 keeps what is stored.

Source: CUDA C++ Programming Guide 12, "Local Memory"; hopsim's recordings on an H100 SXM (tests/silicon/micro.json):
local_chases_*, local_rates_*.  1,024 threads that hold 256 bytes each on an SM have all of it in L1.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.hw.machine.access_notes import AccessNote
from hopsim.hw.machine.thread_groups import WARP

WORD: Final = 4
LINE: Final = WORD * WARP
"""Bytes that a word of all lanes takes."""
LANES_OF_SECTOR: Final = 8
PATTERNS_KEPT: Final = 4096


class Lines(NamedTuple):
    """What an access touches of the local memory of its CTA.

    Args:
        offsets: bytes at which the lines begin, without those that two warps share.
        passes: lines of each warp, summed.
        most: lines of the warp that has most.
        sectors: of all lines, and one more for each line that is not touched by all lanes.
    """

    offsets: NDArray[np.int64]
    passes: int
    most: int
    sectors: int


class LocalMemory:
    """Where the words of threads lie.

    Args:
        base: address behind all global memory, a multiple of a line.
        thread_bytes: of each thread.
        threads: of a CTA.
        places: for CTAs on the chip: what ends leaves its place to another one.
    """

    def __init__(self, base: int, thread_bytes: int, threads: int, places: int) -> None:
        self._base = base
        self._warp_bytes = -(-thread_bytes // WORD) * LINE
        self._cta_bytes = -(-threads // WARP) * self._warp_bytes
        self._places = places
        self._seen: dict[tuple[bytes | int, int, bytes], Lines] = {}

    def begin(self, cta: int) -> int:
        """Return the address at which the local memory of a CTA begins."""
        return self._base + cta % self._places * self._cta_bytes

    def touched(self, note: AccessNote, threads: NDArray[Any]) -> Lines:
        """Return what an access touches.

        Args:
            note: addresses as each thread counts its own bytes.
            threads: that do it, by number in their CTA.
        """
        at = note.addresses
        key = (
            at if isinstance(at, int) else at.tobytes(),
            note.count_bytes,
            threads.tobytes(),
        )
        known = self._seen.get(key)
        if known is None:
            if len(self._seen) >= PATTERNS_KEPT:
                self._seen.clear()
            known = self._seen[key] = self._work_out(at, note.count_bytes, threads)
        return known

    def _work_out(
        self, at: int | NDArray[np.unsignedinteger], count_bytes: int, threads: NDArray[Any]
    ) -> Lines:
        numbers = threads.astype(np.int64)
        first = np.broadcast_to(np.asarray(at).astype(np.int64) // WORD, numbers.shape)
        words = first[:, None] + np.arange(-(-count_bytes // WORD))
        warp = numbers // WARP
        begins = (warp[:, None] * self._warp_bytes + words * LINE).ravel()
        offsets, lanes = np.unique(begins, return_counts=True)
        sector = (numbers % WARP // LANES_OF_SECTOR).repeat(words.shape[1])
        sectors = len(np.unique(begins * (WARP // LANES_OF_SECTOR) + sector))
        per_warp = np.unique(offsets // self._warp_bytes, return_counts=True)[1]
        parts = int(np.count_nonzero(lanes < WARP))
        return Lines(offsets, len(offsets), int(per_warp.max()), sectors + parts)


__all__ = ["LocalMemory"]

"""Shared memory of one SM: bank conflicts of warp accesses, and the data pipe they go through.

A warp's access is served in phases of as many lanes as fill 32 banks of 4 bytes (a whole warp for
up to 4 bytes a lane, half a warp for 8, a quarter for 16); a phase takes as many wavefronts as the
fullest bank has different words.  Two phases become one where each lane reads what its neighbour reads (lane ^ 1), or
each what the one after its neighbour does (lane ^ 2).

Source: CUDA C++ Programming Guide 12, "Shared Memory" (compute capability 5.x and later); hopsim's recordings on an H100
SXM (tests/silicon/micro.json): shared_patterns_v*.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.config.groups import Smem
from hopsim.hw.machine.thread_groups import WARP

MERGED: Final = 2
"""Phases of a load of 8 or 16 bytes a lane that are served at once where lanes read the same in pairs."""


class Banks:
    """Counts wavefronts; patterns seen before are remembered, since a kernel repeats few of them.

    Args:
        config: banks and their width.
    """

    def __init__(self, config: Smem) -> None:
        self.banks = config.banks
        self.width_bytes = config.bank_width_bytes
        self.row_bytes = config.banks * config.bank_width_bytes
        self._seen: dict[tuple[bytes, int], tuple[int, int]] = {}

    def wavefronts(
        self, addresses: int | NDArray[np.unsignedinteger], count_bytes: int, lanes: int
    ) -> tuple[int, int]:
        """Return (wavefronts, wavefronts without conflicts) of an access by whole warps or part of one.

        Args:
            addresses: bytes in shared memory, one a lane, or one for all.
            count_bytes: bytes of a lane.
            lanes: threads of the strand; warps are 32 consecutive ones.
        """
        if isinstance(addresses, int):
            # One element for all lanes: a broadcast.
            phases = -(-lanes // WARP) * max(1, count_bytes // self.width_bytes // MERGED)
            return phases, phases
        relative = addresses.astype(np.int64)
        # Where a pattern starts does not matter as long as the banks are the same.
        relative -= int(relative[0]) // self.row_bytes * self.row_bytes
        key = (relative.tobytes(), count_bytes)
        known = self._seen.get(key)
        if known is None:
            known = self._seen[key] = self._count(relative, count_bytes)
        return known

    def _count(self, addresses: NDArray[np.int64], count_bytes: int) -> tuple[int, int]:
        words_each = max(1, count_bytes // self.width_bytes)
        phase_lanes = max(1, WARP // words_each)
        if words_each > 1 and _in_pairs(addresses):
            phase_lanes *= MERGED
        phase = np.arange(len(addresses)) // phase_lanes
        words = addresses[:, None] // self.width_bytes + np.arange(words_each)
        span = int(words.max() - words.min()) + 1
        keys = np.unique(phase[:, None] * span + (words - words.min()))
        phase_of, word_of = keys // span, keys % span + int(words.min())
        phases = int(phase[-1]) + 1
        slots = phase_of * self.banks + word_of % self.banks
        depth = (
            np.bincount(slots, minlength=phases * self.banks)
            .reshape(phases, self.banks)
            .max(axis=1)
        )
        return int(depth.sum()), phases


def _in_pairs(addresses: NDArray[np.int64]) -> bool:
    """Whether each lane of whole warps reads what lane ^ 1 reads, or each what lane ^ 2 does."""
    if len(addresses) % WARP:
        return False
    by_one, by_two = addresses.reshape(-1, 2), addresses.reshape(-1, 2, 2)
    return bool((by_one[:, 0] == by_one[:, 1]).all() or (by_two[:, 0] == by_two[:, 1]).all())


class SharedPipe:
    """The data pipe of one SM: one wavefront a cycle, in order; times in cycles of the SM clock.

    Args:
        config: bandwidth and latency.
    """

    __slots__ = (
        "_per_wavefront",
        "busy_cycles",
        "conflicts",
        "free",
        "wavefront_bytes",
        "wavefronts",
    )

    def __init__(self, config: Smem) -> None:
        self.wavefront_bytes = config.banks * config.bank_width_bytes
        self._per_wavefront = self.wavefront_bytes / config.bandwidth_bytes_per_clk
        self.free = 0.0
        self.busy_cycles = 0.0
        self.wavefronts = 0
        self.conflicts = 0

    def book(self, start: float, wavefronts: int, ideal: int, counted: bool = True) -> float:
        """Send wavefronts from `start` on; return when the last one has entered the pipe.

        Args:
            ideal: wavefronts without conflicts.
            counted: whether Nsight Compute sees them.
        """
        if counted:
            self.wavefronts += wavefronts
        self.conflicts += wavefronts - ideal
        cycles = wavefronts * self._per_wavefront
        self.busy_cycles += cycles
        begin = self.free if self.free > start else start
        self.free = begin + cycles
        return self.free

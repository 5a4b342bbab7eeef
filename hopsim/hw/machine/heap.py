"""The heap of a device, from which threads allocate: each allocation is memory of its own, and no address comes twice.

Freed memory is in no allocation any more, so that an access to it is found.  What a device's heap needs for itself is not
known here (DEVIATIONS D-HEAP).

Source: CUDA C++ Programming Guide 13.0 "Dynamic Global Memory Allocation and Operations": 8 MiB, allocations aligned to 16
bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hopsim.hw.machine.memory import GlobalMemory, Region

HEAP_BYTES: Final = 8 << 20
ALIGNMENT: Final = 16


class HeapFault(Exception):
    """An address that cannot be freed."""


class Heap:
    """What threads have allocated; it outlives a launch, as on a device.

    Args:
        memory: where allocations are made.
    """

    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        self._held: dict[int, Region] = {}
        self._freed: dict[int, str] = {}
        self.free_bytes = HEAP_BYTES

    def allocate(self, count: int, name: str) -> int:
        """Return the address of `count` bytes, 0 when the heap has no room for them.

        Args:
            name: of them, for messages.
        """
        taken = _room(count)
        if taken > self.free_bytes:
            return 0
        self.free_bytes -= taken
        region = self._memory.allocate(count, name)
        self._held[region.base] = region
        return region.base

    def free(self, address: int, who: str) -> None:
        """Take an allocation back; NULL is none.

        Raises: HeapFault.
        """
        if address == 0:
            return
        region = self._held.pop(address, None)
        if region is None:
            if address in self._freed:
                raise HeapFault(f"{address:#x} was freed already, by {self._freed[address]}")
            raise HeapFault(f"{address:#x} is no address that malloc returned")
        self._freed[address] = who
        self.free_bytes += _room(region.size)
        self._memory.release(region)


def _room(count: int) -> int:
    """Return how many bytes of the heap an allocation of so many takes."""
    return max(ALIGNMENT, -(-count // ALIGNMENT) * ALIGNMENT)

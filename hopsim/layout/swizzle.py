"""Shared-memory swizzles of the tensor copy and of wgmma, as functions on byte addresses.

A swizzle exchanges 16-byte chunks inside a row of 32, 64 or 128 bytes.  It acts on the absolute
shared address: bits 6:4 are xored with bits 9:7, as many of the low ones as the mode has.

>>> hex(swizzle_address(0x480, Swizzle.B128))
'0x490'
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Swizzle(IntEnum):
    """The four modes of sm_90, numbered as `CUtensorMapSwizzle` and `tensormap.replace` do.

    Source: CUDA driver API 13.0, `CUtensorMapSwizzle`; PTX ISA 8.7 "tensormap.replace".
    """

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3

    @property
    def width_bytes(self) -> int:
        """Bytes of one swizzled row: 16 (nothing moves), 32, 64 or 128."""
        return 16 << self.value

    @property
    def period_bytes(self) -> int:
        """Bytes after which the pattern repeats: 16 (nothing moves), 256, 512 or 1024."""
        return 128 << self.value if self.value else 16

    @property
    def chunk_mask(self) -> int:
        """The address bits that the xor changes: 0, 0x10, 0x30 or 0x70."""
        return self.width_bytes - 16


def swizzle_address(address: int, mode: Swizzle) -> int:
    """Return the shared byte address at which byte `address` of an unswizzled tile really lies.

    The function is its own inverse.

    Source: PTX ISA 8.7 "Swizzling Modes"; CuTe Swizzle<1,4,3>, <2,4,3>, <3,4,3>.
    """
    return address ^ ((address >> 3) & mode.chunk_mask)


def swizzle_addresses(addresses: NDArray[np.int64], mode: Swizzle) -> NDArray[np.int64]:
    """Return `swizzle_address` of every element, same shape."""
    return addresses ^ ((addresses >> 3) & mode.chunk_mask)

"""A box or a column in shared memory: its 16-byte chunks, where a swizzle puts them, and what fills it.

>>> bits = np.array([0x3F801000, 0x7F800001], np.uint32)
>>> [hex(word) for word in round_to_tf32(bits)]
['0x3f800000', '0x7fffe000']
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.layout.swizzle import Swizzle, swizzle_addresses
from hopsim.layout.tensormap import TensorMapSpec
from hopsim.layout.tensormap_types import OobFill, TensorDataType

Bytes = NDArray[np.uint8]
Items = NDArray[np.generic]

CHUNK_BYTES: Final = 16
# Every 16 bits of an out-of-bounds element, for each type that may be filled so.
# Source: recorded on an H100: tests/silicon/layout.
NAN_FILL: Final = 0x7FF7
TF32: Final = frozenset({TensorDataType.TFLOAT32, TensorDataType.TFLOAT32_FTZ})
CHUNK: Final[np.dtype[Any]] = np.dtype(np.complex128)
"""Any 16-byte item; its value is never looked at."""
UNITS: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: CHUNK,
}
_SOURCE = 'PTX ISA 8.7, "cp.async.bulk.tensor"'


class InShared(Protocol):
    """What of a plan says where its data lie in shared memory."""

    @property
    def spec(self) -> TensorMapSpec:
        """The tensor map."""
        ...

    @property
    def smem_addr(self) -> int:
        """Shared address of the first byte."""
        ...

    @property
    def tx_bytes(self) -> int:
        """Bytes of the data."""
        ...

    @property
    def shared_bytes(self) -> int:
        """Bytes from `smem_addr` to their end, gaps included."""
        ...


@lru_cache(maxsize=1024)
def _chunk_places(
    row_count: int, inner_bytes: int, pitch_bytes: int, swizzle: Swizzle, phase: int
) -> NDArray[np.intp]:
    """Return the shared chunk, past the box's address, of every chunk of a box.

    For rows that fill the pitch this is a permutation and its own inverse.

    Args:
        phase: shared address modulo 1024.
    """
    rows = np.arange(row_count, dtype=np.int64)[:, None] * pitch_bytes
    linear = phase + rows + np.arange(0, inner_bytes, CHUNK_BYTES, dtype=np.int64)
    places = ((swizzle_addresses(linear, swizzle) - phase) // CHUNK_BYTES).ravel()
    found = places.astype(np.intp)
    found.setflags(write=False)
    return found


def shared_chunks(plan: InShared) -> NDArray[np.int64]:
    """Return the shared address of every 16-byte chunk of a box, (rows, chunks), box order."""
    g = plan.spec.geometry
    places = _chunk_places(
        g.row_count, g.inner_bytes, g.pitch_bytes, plan.spec.swizzle, plan.smem_addr & 1023
    )
    return plan.smem_addr + CHUNK_BYTES * places.astype(np.int64).reshape(g.row_count, -1)


def shared_window(plan: InShared, shared: Bytes, window_base: int) -> Items:
    """Return the box's part of shared memory as 16-byte items, a view."""
    start = plan.smem_addr - window_base
    stop = start + plan.shared_bytes
    if start < 0 or stop > shared.size:
        raise MachineFault(
            f"tensor copy reaches shared bytes [{plan.smem_addr:#x}, "
            f"{plan.smem_addr + plan.shared_bytes:#x}), expected within [{window_base:#x}, "
            f"{window_base + shared.size:#x})",
            hint="check the shared address and the box size; rows are as wide as the swizzle",
            source=_SOURCE,
        )
    return shared[start:stop].view(CHUNK)


def put(plan: InShared, window: Items, tile: Items) -> None:
    """Write a dense tile of 16-byte items to where it lies in shared memory."""
    g, swizzle = plan.spec.geometry, plan.spec.swizzle
    if not swizzle:
        window[...] = tile
        return
    places = _chunk_places(
        g.row_count, g.inner_bytes, g.pitch_bytes, swizzle, plan.smem_addr & 1023
    )
    if g.inner_bytes == g.pitch_bytes:
        # The permutation is its own inverse, and taking is faster than scattering.  With mode
        # "raise" numpy would buffer the output.
        tile.take(places, out=window, mode="clip")
    else:
        window[places] = tile


def take(plan: InShared, window: Items) -> Items:
    """Return a dense tile of 16-byte items from where it lies in shared memory."""
    g, swizzle = plan.spec.geometry, plan.spec.swizzle
    if not swizzle:
        return window
    return window.take(
        _chunk_places(g.row_count, g.inner_bytes, g.pitch_bytes, swizzle, plan.smem_addr & 1023)
    )


def blank_tile(plan: InShared) -> Items:
    """Return a dense tile of 16-byte items, filled as what lies outside the tensor."""
    tile: Items = np.zeros(plan.tx_bytes // CHUNK_BYTES, CHUNK)
    if plan.spec.oob_fill is OobFill.NAN:
        tile.view(np.uint16)[...] = NAN_FILL
    return tile


def unit_bytes(row_bytes: int) -> int:
    """Return the largest power of two up to 16 that divides the bytes of a row."""
    return min(CHUNK_BYTES, row_bytes & -row_bytes)


def round_to_tf32(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return f32 bits as a load through a tf32 map leaves them.

    To nearest, ties to even, 13 low bits zero; denormals stay; every NaN becomes 0x7fffe000.
    Stores do not round, and the `_FTZ` types flush nothing in a copy.

    Source: recorded on an H100: tests/silicon/layout.
    """
    rounded = bits + np.uint32(0xFFF) + (bits >> 13 & 1) & np.uint32(0xFFFFE000)
    return np.where(bits & 0x7FFFFFFF > 0x7F800000, np.uint32(0x7FFFE000), rounded)

"""What a tiled copy asks of global memory: how wide its accesses can be, and what they touch.

found = access(copy, (1024, 1024), "row", element_bytes=2)
found.vector_bytes, found.sectors, found.needed_sectors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import ConfigError
from hopsim.layout.box import LINE_BYTES, SECTOR_BYTES
from hopsim.layout.tiled import TiledCopy, tiled_copy
from hopsim.layout.tiled_notation import CuteLayout

Order = Literal["row", "col"]

WIDEST_BYTES = 16
"""Widest access of a thread.  Source: PTX ISA 8.7 "ld" (.v4.b32, .v2.b64)."""

_WARP = 32


@dataclass(frozen=True, slots=True)
class CopyAccess:
    """The accesses of one tile.

    Args:
        vector_bytes: widest access that every thread's elements allow: contiguous and aligned.
        instructions: accesses of each thread.
        sectors, lines: 32-byte sectors and 128-byte lines touched, each access of a warp by itself.
        needed_sectors, needed_lines: the same if every access were dense and aligned.
    """

    vector_bytes: int
    instructions: int
    sectors: int
    lines: int
    needed_sectors: int
    needed_lines: int


def addresses(
    copy: TiledCopy, extents: tuple[int, int], order: Order, element_bytes: int
) -> NDArray[np.int64]:
    """Return the byte offset of each element in the tensor, (threads, values)."""
    rows, columns = copy.places()
    linear = rows * extents[1] + columns if order == "row" else rows + columns * extents[0]
    return linear * element_bytes


def access(
    copy: TiledCopy, extents: tuple[int, int], order: Order, element_bytes: int
) -> CopyAccess:
    """Return what the first tile of a tensor costs.

    Args:
        extents: rows and columns of the tensor; it starts at an aligned address.
        order: "row" (rows contiguous) or "col".
        element_bytes: 1, 2, 4 or 8.

    Raises: ConfigError: the tile does not fit into the tensor.
    """
    if copy.tiler_mn[0] > extents[0] or copy.tiler_mn[1] > extents[1]:
        raise ConfigError(
            f"the tile {copy.tiler_mn} is larger than the tensor {extents}",
            where="layout copy",
            hint="a larger tensor, or fewer threads or values",
        )
    held = np.sort(addresses(copy, extents, order, element_bytes), axis=1)
    vector_bytes = _vector_bytes(held, element_bytes)
    starts = held[:, :: vector_bytes // element_bytes]
    sectors = lines = needed_sectors = needed_lines = 0
    for first in range(0, len(starts), _WARP):
        warp = starts[first : first + _WARP]
        for column in warp.T:
            sectors += _touched(column, vector_bytes, SECTOR_BYTES)
            lines += _touched(column, vector_bytes, LINE_BYTES)
            needed_sectors += -(-len(column) * vector_bytes // SECTOR_BYTES)
            needed_lines += -(-len(column) * vector_bytes // LINE_BYTES)
    return CopyAccess(
        vector_bytes, starts.shape[1], sectors, lines, needed_sectors, needed_lines
    )  # fmt: skip


def _vector_bytes(held: NDArray[np.int64], element_bytes: int) -> int:
    width = WIDEST_BYTES
    while width > element_bytes:
        count = width // element_bytes
        if held.shape[1] % count == 0:
            groups = held.reshape(len(held), -1, count)
            steps = np.diff(groups, axis=2)
            if (steps == element_bytes).all() and (groups[:, :, 0] % width == 0).all():
                return width
        width //= 2
    return element_bytes


def _touched(starts: NDArray[np.int64], width: int, block: int) -> int:
    ends = starts + width - 1
    return len(np.unique(np.concatenate([starts // block, ends // block])))


def turned(
    copy: TiledCopy, order: Order, element_bytes: int
) -> tuple[CuteLayout, CuteLayout] | None:
    """Return thread and value layout that copy the same tile along its contiguous dimension.

    Each thread takes 16 bytes, neighbours take the next 16; None where the tile does not divide.
    """
    rows, columns = copy.tiler_mn
    contiguous, other = (columns, rows) if order == "row" else (rows, columns)
    vector = WIDEST_BYTES // element_bytes
    while vector > 1 and contiguous % vector:
        vector //= 2
    across = min(contiguous // vector, copy.threads)
    while copy.threads % across or contiguous // vector % across:
        across -= 1
    down = copy.threads // across
    if other % down:
        return None
    blocks, repeats = contiguous // (across * vector), other // down
    width = vector * blocks
    if order == "row":
        return (
            CuteLayout((down, across), (across, 1)),
            CuteLayout((repeats, width), (width, 1)),
        )
    return (
        CuteLayout((across, down), (1, across)),
        CuteLayout((width, repeats), (1, width)),
    )


def better(
    copy: TiledCopy, extents: tuple[int, int], order: Order, element_bytes: int
) -> tuple[CuteLayout, CuteLayout, CopyAccess] | None:
    """Return the turned copy and its accesses where it touches less or needs fewer instructions."""
    layouts = turned(copy, order, element_bytes)
    if layouts is None:
        return None
    now = access(copy, extents, order, element_bytes)
    then = access(tiled_copy(*layouts), extents, order, element_bytes)
    if (then.sectors, then.lines, then.instructions) < (now.sectors, now.lines, now.instructions):
        return (*layouts, then)
    return None

"""What L2 sees of rows of bytes: the blocks that they touch, and what rows cost that do not begin at lines.

>>> rows = np.array([0, 112])
>>> touched_blocks(rows, 32, SECTOR_BYTES).tolist(), splits(rows, 32)
([0, 96, 128], (1, 0, 2))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SECTOR_BYTES = 32
LINE_BYTES = 128

Addresses = NDArray[np.int64]


def touched_blocks(starts: Addresses, row_bytes: int, block: int) -> Addresses:
    """Return the sorted distinct addresses of the blocks of `block` bytes that rows from `starts` touch."""
    first = starts // block
    stop = (starts + row_bytes - 1) // block
    most = int((stop - first).max(initial=-1)) + 1
    every = first[:, None] + np.arange(most, dtype=np.int64)
    return np.unique(every[every <= stop[:, None]]) * block


def splits(starts: Addresses, row_bytes: int) -> tuple[int, int, int]:
    """Return what rows cost that do not begin at lines: lines more, parts of sectors, and lines that have such parts.

    A part of a sector is asked for alone, where the row has more of its line.

    Source: hopsim's recordings on an H100 (tests/silicon/micro.json, tma_load_pitch1040_*, and Nsight Compute's
        lts__t_requests_srcunit_tex_op_read of them: 2.62 for each row of 128 bytes, 1.75 where rows are 1,056 bytes apart).
    """
    stops = starts + row_bytes
    pieces = (stops - 1) // LINE_BYTES - starts // LINE_BYTES + 1
    head = -(-starts // SECTOR_BYTES) * SECTOR_BYTES
    tail = stops // SECTOR_BYTES * SECTOR_BYTES
    heads = (starts < head) & (head % LINE_BYTES != 0) & (head < stops)
    tails = (tail < stops) & (tail % LINE_BYTES != 0) & (starts < tail)
    uneven = (starts < head) | (tail < stops)
    more = int(pieces.sum()) - len(starts) * -(-row_bytes // LINE_BYTES)
    return more, int(heads.sum()) + int(tails.sum()), int(pieces[uneven].sum())

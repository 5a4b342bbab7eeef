"""Cold TMA loads by how far apart the rows of a box lie: do the channels of device memory take them equally well?

Every CTA, one an SM, walks along K over rows of its own, 512 KiB in boxes of 64 rows of 128 bytes.  Rows of a matrix of
bytes with K = 4096 lie 4 KiB apart, of 16 bits 8 KiB; 8,320 bytes put each row into another line of its channel's
interleave.  Kept are the mean over the SMs and how far they drift apart, since the last one ends a kernel.
"""

from __future__ import annotations

from typing import Final

from hopsim.kernels.micro.boxes import ROW_BYTES, SPREAD_LAUNCHES, Boxes, walk, with_spread
from hopsim.kernels.micro.clocked import SMS, Benchmark
from hopsim.kernels.micro.streams import KIB

ROWS: Final = 64
WALK_BYTES: Final = 512 * KIB
ALONG_K_BYTES: Final = 8 * KIB
"""Of a row, at most: of a wider matrix only so much is read."""
PITCHES: Final = (2 * KIB, 4 * KIB, 8 * KIB, 8 * KIB + ROW_BYTES, 16 * KIB)


def pitch(ctas: int, pitch_bytes: int, depth: int) -> Benchmark:
    """Walk over rows so far apart, with so many boxes in flight."""
    along_k = min(pitch_bytes, ALONG_K_BYTES) // ROW_BYTES
    blocks = WALK_BYTES // (ROWS * ROW_BYTES * along_k)
    return walk(
        f"pitch_{pitch_bytes}_{ctas}_d{depth}",
        f"TMA loads, {ctas} SMs, out of device memory, boxes of {ROWS} rows {pitch_bytes:,} bytes apart, {depth} in flight",
        Boxes(ROWS, along_k, blocks, pitch_bytes, depth, is_cold=True),
        ctas,
        summary=with_spread,
        mean_of=SPREAD_LAUNCHES,
    )


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [
        pitch(ctas, pitch_bytes, depth)
        for pitch_bytes in PITCHES
        for depth in (2, 4)
        for ctas in (32, 66, SMS)
    ]

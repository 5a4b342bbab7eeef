"""One column of an im2col copy: which pixels of the tensor, and so which global bytes.

A column is so many pixels in the order in which a convolution visits them: along W, then H, then D within the window of
the map, then on to the next image; each by some channels.  An offset moves all of them: that is the place in the filter.
What lies outside the tensor then is filled, like the outside of a box.

>>> from hopsim.layout.tensormap import PixelWindow
>>> from hopsim.layout.tensormap_types import TensorDataType
>>> spec = TensorMapSpec(TensorDataType.UINT16, 0, (8, 4, 4, 1), (16, 64, 256), (8, 6),
...                      window=PixelWindow((-1, -1), (-1, -1)))
>>> column_plan(spec, (0, -1, 0, 0), (1, 2), smem_addr=0).runs()[:, 0].tolist()
[128, 144, 160, 176, 192, 208]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.layout.box import check_place
from hopsim.layout.box_shared import CHUNK_BYTES
from hopsim.layout.rows import LINE_BYTES, SECTOR_BYTES, splits, touched_blocks
from hopsim.layout.tensormap import PixelWindow, TensorMapSpec

_SOURCE = 'PTX ISA 8.7, "cp.async.bulk.tensor"'
_OFFSET_BITS = {3: 16, 4: 8, 5: 5}
"""Of one offset in the 16 bits that the instruction has for all of them, by rank."""

Numbers = NDArray[np.int64]


@dataclass(slots=True)
class ColumnPlan:
    """The geometry of one column.

    Args:
        spec: the tensor map, an im2col one.
        coords: coordinates of the first pixel (channel, W, (H, (D)), N), then the offsets.
        smem_addr: shared address of the column.
        tx_bytes: bytes that `complete_tx` counts: always the whole column.
        shared_bytes: bytes from `smem_addr` to its end in shared memory.
        pixels: which pixels of the column lie inside the tensor, in order.
        starts: global address of the first channel of each that lies inside.
        low: first channel of the column inside the tensor.
        channels: how many are; 0 when nothing is.  In a plan of `column_store_plan` rounded up to 16 bytes.
        cut_bytes: bytes at the end of each pixel of a store that lie beyond the tensor.
    """

    spec: TensorMapSpec
    coords: tuple[int, ...]
    smem_addr: int
    tx_bytes: int
    shared_bytes: int
    pixels: Numbers
    starts: Numbers
    low: int
    channels: int
    cut_bytes: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a pixel that lie inside the tensor."""
        return self.channels * self.spec.data_type.itemsize

    @property
    def inside_bytes(self) -> int:
        """Bytes of the column that lie inside the tensor."""
        return len(self.starts) * self.row_bytes

    @property
    def first_addr(self) -> int:
        """Lowest global address; that of the tensor when nothing lies inside."""
        return int(self.starts.min()) if len(self.starts) else self.spec.global_address

    @property
    def stop_addr(self) -> int:
        """Address after the highest byte; `first_addr` when nothing lies inside."""
        return int(self.starts.max()) + self.row_bytes if len(self.starts) else self.first_addr

    def runs(self) -> Numbers:
        """Return the global byte runs [start, stop) of the pixels inside, (pixels, 2), in order."""
        return np.stack([self.starts, self.starts + self.row_bytes], axis=1)

    def outside(self, base_addr: int, size: int) -> Numbers:
        """Return the runs that leave an allocation of `size` bytes at `base_addr`."""
        runs = self.runs()
        return runs[(runs[:, 0] < base_addr) | (runs[:, 1] > base_addr + size)]

    def sector_addresses(self) -> Numbers:
        """Return the sorted distinct addresses of the 32-byte sectors touched in global memory."""
        return touched_blocks(self.starts, self.row_bytes, SECTOR_BYTES)

    def sectors(self) -> int:
        """Return how many 32-byte sectors are touched in global memory."""
        return self.sector_addresses().size

    def lines(self) -> Numbers:
        """Return the sorted distinct addresses of the 128-byte lines touched in global memory."""
        return touched_blocks(self.starts, self.row_bytes, LINE_BYTES)

    def splits(self) -> tuple[int, int, int]:
        """Return what its pixels cost that do not begin at lines (`hopsim.layout.rows.splits`)."""
        return splits(self.starts, self.row_bytes)


def column_plan(
    spec: TensorMapSpec, coords: Sequence[int], offsets: Sequence[int], smem_addr: int
) -> ColumnPlan:
    """Return the geometry of one load.

    Args:
        spec: a valid im2col map.
        coords: signed coordinates of the first pixel, innermost first, one per dimension.
        offsets: added to W, (H, (D)) of each pixel, unsigned; those that do not fit 16 bits together (8 bits each at rank
            4, 5 bits at rank 5) are cut as ptxas packs them.
        smem_addr: shared address of the column, a multiple of 128.

    Raises: MachineFault: what makes the hardware trap: a tiled map, a wrong number of coordinates or offsets, a
        misaligned shared address, a channel that is not a multiple of 16 bytes, or a start outside of the window.
        NotModelled: an interleaved layout.
    Source: PTX ISA 8.7 "Im2col mode"; bits recorded on an H200: tests/silicon/h200/probes/im2col.npz.
    """
    window = spec.window
    if window is None:
        raise MachineFault(
            "an im2col copy through a tiled tensor map",
            hint="copy with .tile, or encode the map as an im2col one",
            source=_SOURCE,
        )
    check_place(spec, coords, smem_addr)
    if len(offsets) != spec.rank - 2:
        raise MachineFault(
            f"an im2col map of rank {spec.rank} needs {spec.rank - 2} offsets, got {len(offsets)}",
            hint="match the .3d to .5d of the instruction to the map",
            source=_SOURCE,
        )
    _check_start(spec, window, coords)
    geometry = spec.geometry
    moved = _as_packed(spec.rank, offsets)
    channels, count = geometry.counts
    step: Numbers = np.arange(count, dtype=np.int64)
    inside = np.ones(count, np.bool_)
    address = np.full(count, spec.global_address, np.int64)
    for i in range(1, spec.rank - 1):
        size, stride = spec.dims[i], spec.strides[i - 1]
        upper = size - 1 + window.upper[i - 1]
        place, step = _walk(step, coords[i], window.lower[i - 1], upper, spec.element_strides[i])
        place = place + moved[i - 1]
        inside &= (place >= 0) & (place < size)
        address += place * stride
    image = coords[-1] + step * spec.element_strides[-1]
    inside &= (image >= 0) & (image < spec.dims[-1])
    address += image * spec.strides[-1]
    first = coords[0]
    low = max(0, -first)
    held = min(channels, spec.dims[0] - first) - low
    if held <= 0:
        inside[:] = False
        low = held = 0
    address += (first + low) * spec.data_type.itemsize
    pixels = np.flatnonzero(inside)
    return ColumnPlan(
        spec, (*coords, *offsets), smem_addr, geometry.tx_bytes, geometry.shared_bytes,
        pixels, address[pixels], low, held if len(pixels) else 0,
    )  # fmt: skip


def _check_start(spec: TensorMapSpec, window: PixelWindow, coords: Sequence[int]) -> None:
    for i, name in enumerate("WHD"[: spec.rank - 2]):
        low, high = window.lower[i], spec.dims[i + 1] - 1 + window.upper[i]
        if not low <= coords[i + 1] <= high:
            raise MachineFault(
                f"an im2col copy starts at {name} = {coords[i + 1]}, outside of the window of its map, {low} to {high}",
                hint="an H200 traps with an illegal instruction here; start at a pixel of the window and move it by "
                "the offsets",
                source=_SOURCE,
            )


def _as_packed(rank: int, offsets: Sequence[int]) -> tuple[int, ...]:
    """Return what the hardware sees of offsets.

    Source: machine code of ptxas 13.0, which puts a byte of each together at rank 4 and adds at rank 5, so that the
        first ones carry into the next; recorded on an H200: tests/silicon/h200/probes/im2col.npz.
    """
    bits = _OFFSET_BITS[rank]
    kept = (1 << bits) - 1
    if rank < 5:
        return tuple(offset & kept for offset in offsets)
    packed = sum(offset << bits * i for i, offset in enumerate(offsets))
    return tuple(packed >> bits * i & kept for i in range(len(offsets)))


def _walk(
    step: Numbers, start: int, lower: int, upper: int, stride: int
) -> tuple[Numbers, Numbers]:
    """Return where a walk is along one dimension after so many steps, and how often it has begun anew."""
    first = (upper - start) // stride + 1
    each = (upper - lower) // stride + 1
    later = step - first
    is_first = later < 0
    place = np.where(is_first, start + step * stride, lower + later % each * stride)
    return place, np.where(is_first, 0, 1 + later // each)


def column_store_plan(spec: TensorMapSpec, coords: Sequence[int], smem_addr: int) -> ColumnPlan:
    """Return the geometry of one store or reduction: no offsets, no negative coordinates, and whole 16 bytes.

    Raises: MachineFault: as `column_plan`, a negative coordinate, or a window that leaves the tensor.
    """
    if min(coords, default=0) < 0:
        raise MachineFault(
            f"coordinates of a tensor store must not be negative, got {tuple(coords)}",
            hint="an H200 traps with an illegal instruction here; only loads may start below 0",
            source=_SOURCE,
        )
    window = spec.window
    if window is not None and (min(window.lower) < 0 or max(window.upper) > 0):
        raise MachineFault(
            f"a store through an im2col map whose window leaves the tensor: corners {window.lower} and {window.upper}",
            hint="an H200 traps with an illegal instruction here; store through a map with lower corners of 0 or more and "
            "upper ones of 0 or less",
            source=_SOURCE,
        )
    plan = column_plan(spec, coords, (0,) * (spec.rank - 2), smem_addr)
    item = spec.data_type.itemsize
    plan.cut_bytes = -plan.channels * item % CHUNK_BYTES
    plan.channels += plan.cut_bytes // item
    return plan

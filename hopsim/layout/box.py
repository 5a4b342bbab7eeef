"""One box of a tensor copy: which global bytes and which shared bytes.

A box is rows of contiguous global bytes, clipped to the tensor, and the same rows in shared memory,
one after the other and swizzled by absolute address.  `load_plan` and `store_plan` do the geometry,
`hopsim.layout.box_copy` moves the bytes; `lines` and `sectors` say what a cache would see.

>>> from hopsim.layout.tensormap_types import TensorDataType
>>> spec = TensorMapSpec(TensorDataType.UINT16, 0, (64, 4), (128,), (8, 2))
>>> plan = load_plan(spec, (56, 3), smem_addr=0)
>>> plan.tx_bytes, plan.in_bounds, plan.runs().tolist()
(32, (8, 1), [[496, 512]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault, NotModelled
from hopsim.layout.box_shared import CHUNK_BYTES
from hopsim.layout.rows import LINE_BYTES, SECTOR_BYTES, splits, touched_blocks
from hopsim.layout.tensormap import TensorMapSpec
from hopsim.layout.tensormap_types import Interleave

_SOURCE = 'PTX ISA 8.7, "cp.async.bulk.tensor"'


@dataclass(slots=True)
class BoxPlan:
    """The geometry of one box; per-dimension tuples are innermost first.

    Args:
        spec: the tensor map.
        coords: start coordinates in elements.
        smem_addr: shared address of the box.
        tx_bytes: bytes that `complete_tx` counts: always the whole box.
        shared_bytes: bytes from `smem_addr` to the end of the box in shared memory; with a swizzle
            wider than a row, the rest of each row is left alone.
        low: first in-bounds index of the box in each dimension.
        in_bounds: in-bounds elements in each dimension; all zero when nothing is.  In a plan of
            `store_plan` the innermost one is rounded up to 16 bytes.
        first_addr: global address of the first in-bounds byte.
        stop_addr: global address after the last in-bounds byte; `first_addr` when nothing is.
        is_whole: nothing is out of bounds.
    """

    spec: TensorMapSpec
    coords: tuple[int, ...]
    smem_addr: int
    tx_bytes: int
    shared_bytes: int
    low: tuple[int, ...]
    in_bounds: tuple[int, ...]
    first_addr: int
    stop_addr: int
    is_whole: bool

    def runs(self) -> NDArray[np.int64]:
        """Return the global byte runs [start, stop) of the in-bounds rows, (rows, 2), box order."""
        starts = self.first_addr + _row_offsets(self.in_bounds, self.spec.geometry.steps)
        return np.stack([starts, starts + self.row_bytes], axis=1)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row that lie inside the tensor."""
        return self.in_bounds[0] * self.spec.data_type.itemsize

    @property
    def inside_bytes(self) -> int:
        """Bytes of the box that lie inside the tensor."""
        return prod(self.in_bounds) * self.spec.data_type.itemsize

    @property
    def cut_bytes(self) -> int:
        """Bytes at the end of each row of a store that lie beyond the tensor: it goes on to the end of 16 bytes."""
        beyond = self.low[0] + self.in_bounds[0] - (self.spec.dims[0] - self.coords[0])
        return max(0, beyond) * self.spec.data_type.itemsize

    def outside(self, base_addr: int, size: int) -> NDArray[np.int64]:
        """Return the runs that leave an allocation of `size` bytes at `base_addr`."""
        if self.stop_addr == self.first_addr or (
            self.first_addr >= base_addr and self.stop_addr <= base_addr + size
        ):
            return np.empty((0, 2), np.int64)
        runs = self.runs()
        return runs[(runs[:, 0] < base_addr) | (runs[:, 1] > base_addr + size)]

    def sector_addresses(self) -> NDArray[np.int64]:
        """Return the sorted distinct addresses of the 32-byte sectors touched in global memory."""
        return self._blocks(SECTOR_BYTES)

    def sectors(self) -> int:
        """Return how many 32-byte sectors are touched in global memory."""
        return self._relative_blocks(SECTOR_BYTES).size

    def lines(self) -> NDArray[np.int64]:
        """Return the sorted distinct addresses of the 128-byte lines touched in global memory."""
        return self._blocks(LINE_BYTES)

    def splits(self) -> tuple[int, int, int]:
        """Return what its rows cost that do not begin at lines (`hopsim.layout.rows.splits`)."""
        return _splits(self.in_bounds, self.spec.geometry.steps, self.first_addr % LINE_BYTES)

    def _relative_blocks(self, block: int) -> NDArray[np.int64]:
        phase = self.first_addr % block
        return _touched_blocks(self.in_bounds, self.spec.geometry.steps, phase, block)

    def _blocks(self, block: int) -> NDArray[np.int64]:
        return self._relative_blocks(block) + (self.first_addr - self.first_addr % block)


@lru_cache(maxsize=1024)
def _row_offsets(in_bounds: tuple[int, ...], steps: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the global offset of each in-bounds row from the first one, box order."""
    offsets = np.zeros(1 if in_bounds[0] else 0, np.int64)
    for count, step in zip(in_bounds[1:], steps[1:], strict=True):
        offsets = (np.arange(count, dtype=np.int64)[:, None] * step + offsets).ravel()
    offsets.setflags(write=False)
    return offsets


@lru_cache(maxsize=1024)
def _touched_blocks(
    in_bounds: tuple[int, ...], steps: tuple[int, ...], phase: int, block: int
) -> NDArray[np.int64]:
    """Return the sorted distinct block addresses of rows that start `phase` into a block."""
    starts = phase + _row_offsets(in_bounds, steps)
    found = touched_blocks(starts, in_bounds[0] * steps[0], block)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=1024)
def _splits(in_bounds: tuple[int, ...], steps: tuple[int, ...], phase: int) -> tuple[int, int, int]:
    return splits(phase + _row_offsets(in_bounds, steps), in_bounds[0] * steps[0])


def check_place(spec: TensorMapSpec, coords: Sequence[int], smem_addr: int) -> None:
    """Raise MachineFault where the hardware traps, NotModelled for an interleaved layout.

    Source: PTX ISA 8.7 "cp.async.bulk.tensor"; alignment recorded on an H100: tests/silicon/layout.
    """
    if spec.interleave is not Interleave.NONE:
        raise NotModelled(
            f"tensor map with interleave {spec.interleave.name} is not modelled",
            hint="use interleave none",
            source=_SOURCE,
        )
    rank, item = spec.rank, spec.data_type.itemsize
    if len(coords) != rank:
        raise MachineFault(
            f"a tensor map of rank {rank} needs {rank} coordinates, got {len(coords)}",
            hint="match the .1d to .5d of the instruction to the map",
            source=_SOURCE,
        )
    if smem_addr % 128:
        raise MachineFault(
            f"shared address of a tensor copy must be a multiple of 128, got {smem_addr:#x}",
            hint="align the shared buffer",
            source=_SOURCE,
        )
    if coords[0] * item % CHUNK_BYTES:
        raise MachineFault(
            f"innermost coordinate must be a multiple of {CHUNK_BYTES // item} elements = 16 "
            f"bytes, got {coords[0]}",
            hint="an H100 traps with an illegal instruction here; move the box by whole 16 bytes",
            source=_SOURCE,
        )


def load_plan(spec: TensorMapSpec, coords: Sequence[int], smem_addr: int) -> BoxPlan:
    """Return the geometry of one load; coordinates may lie anywhere, outside as well.

    Args:
        spec: a valid tensor map.
        coords: signed 32-bit start coordinates in elements, innermost first, one per dimension.
        smem_addr: shared address of the box, a multiple of 128.

    Raises: MachineFault: what makes the hardware trap: a wrong number of coordinates, a misaligned
        shared address, or an inner coordinate that is not a multiple of 16 bytes.
        NotModelled: an interleaved layout.
    Source: PTX ISA 8.7 "cp.async.bulk.tensor"; alignment recorded on an H100: tests/silicon/layout.
    """
    if spec.window is not None:
        raise MachineFault(
            "a tiled copy through an im2col tensor map",
            hint="copy with .im2col, or encode the map as a tiled one",
            source=_SOURCE,
        )
    check_place(spec, coords, smem_addr)
    geometry, rank = spec.geometry, spec.rank
    item = spec.data_type.itemsize
    low: list[int] = []
    inside: list[int] = []
    first = spec.global_address
    extent = 0
    is_whole = True
    for i in range(rank):
        start, size, count = coords[i], spec.dims[i], geometry.counts[i]
        every = spec.element_strides[i] if i else 1
        skip = -(start // every) if start < 0 else 0
        found = min(count, -((start - size) // every)) - skip
        if found <= 0:
            nothing = (0,) * rank
            return BoxPlan(
                spec, tuple(coords), smem_addr, geometry.tx_bytes, geometry.shared_bytes,
                nothing, nothing, first, first, False,
            )  # fmt: skip
        is_whole = is_whole and found == count
        low.append(skip)
        inside.append(found)
        stride = spec.strides[i - 1] if i else item
        first += start * stride + skip * geometry.steps[i]
        extent += (found - 1) * geometry.steps[i]
    return BoxPlan(
        spec, tuple(coords), smem_addr, geometry.tx_bytes, geometry.shared_bytes,
        tuple(low), tuple(inside), first, first + extent + item, is_whole,
    )  # fmt: skip


def store_plan(spec: TensorMapSpec, coords: Sequence[int], smem_addr: int) -> BoxPlan:
    """Return the geometry of one store or reduction.

    It differs from `load_plan` twice, as an H100 does: no coordinate may be below 0, and a row that
    the tensor's edge cuts inside 16 bytes is written up to the end of those 16 bytes.

    Raises: MachineFault: as `load_plan`, or a negative coordinate.
    Source: recorded on an H100: tests/silicon/layout.
    """
    if min(coords, default=0) < 0:
        raise MachineFault(
            f"coordinates of a tensor store must not be negative, got {tuple(coords)}",
            hint="an H100 traps with an illegal instruction here; only loads may start below 0",
            source=_SOURCE,
        )
    plan = load_plan(spec, coords, smem_addr)
    item = spec.data_type.itemsize
    cut_bytes = -plan.in_bounds[0] * item % CHUNK_BYTES
    if cut_bytes:
        plan.in_bounds = (plan.in_bounds[0] + cut_bytes // item, *plan.in_bounds[1:])
        plan.stop_addr += cut_bytes
        plan.is_whole = plan.in_bounds == spec.geometry.counts
    return plan

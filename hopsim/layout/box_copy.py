"""The copies of a tensor box, between numpy arrays of bytes.

Shared memory and global memory both go in chunks of 16 bytes: start address, strides and inner
coordinates are all held to that, only the end of a clipped row is not.

>>> from hopsim.layout.box import load_plan
>>> from hopsim.layout.tensormap import TensorMapSpec
>>> from hopsim.layout.tensormap_types import TensorDataType
>>> spec = TensorMapSpec(TensorDataType.UINT16, 0, (8, 2), (16,), (8, 2))
>>> memory, shared = np.arange(32, dtype=np.uint8), np.zeros(128, np.uint8)
>>> copy_in(load_plan(spec, (0, 1), smem_addr=0), memory, 0, shared)
>>> shared[[0, 15, 16]].tolist()
[16, 31, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.layout.box import BoxPlan
from hopsim.layout.box_shared import (
    CHUNK_BYTES,
    TF32,
    UNITS,
    Bytes,
    Items,
    blank_tile,
    put,
    round_to_tf32,
    shared_chunks,
    shared_window,
    take,
    unit_bytes,
)
from hopsim.layout.reduction import check_legal, combine

_SOURCE = 'PTX ISA 8.7, "cp.async.bulk.tensor"'


def inside_chunks(plan: BoxPlan) -> NDArray[np.int64]:
    """Return the shared address of every 16-byte chunk of which all elements are inside the tensor, (chunks,), box order."""
    item = plan.spec.data_type.itemsize
    every = shared_chunks(plan).reshape(*plan.spec.geometry.counts[:0:-1], -1)
    part = [slice(at, at + n) for at, n in zip(plan.low[:0:-1], plan.in_bounds[:0:-1], strict=True)]
    stop = (plan.low[0] + plan.in_bounds[0]) * item - plan.cut_bytes
    first = plan.low[0] * item // CHUNK_BYTES
    return every[(*part, slice(first, max(first, stop // CHUNK_BYTES)))].ravel()


def _global_view(plan: BoxPlan, buffer: Bytes, base_addr: int, unit: int) -> Items:
    """Return the in-bounds part of the tensor as items of `unit` bytes, outermost first, a view."""
    if plan.first_addr < base_addr or plan.stop_addr > base_addr + buffer.size:
        start, stop = plan.outside(base_addr, buffer.size)[0].tolist()
        raise MachineFault(
            f"tensor copy reaches global bytes [{start:#x}, {stop:#x}), expected within the "
            f"allocation [{base_addr:#x}, {base_addr + buffer.size:#x})",
            hint="check address, dims and strides of the tensor map",
            source=_SOURCE,
        )
    steps = plan.spec.geometry.steps
    return np.ndarray(
        (*plan.in_bounds[:0:-1], plan.in_bounds[0] * steps[0] // unit),
        UNITS[unit],
        buffer,
        plan.first_addr - base_addr,
        (*steps[:0:-1], unit),
    )


def _tile_view(plan: BoxPlan, tile: Items, unit: int) -> Items:
    """Return the in-bounds part of a dense box as items of `unit` bytes, outermost first."""
    counts, item = plan.spec.geometry.counts, plan.spec.data_type.itemsize
    whole = tile.view(UNITS[unit]).reshape(*counts[:0:-1], -1)
    if plan.is_whole:
        return whole
    part = [slice(at, at + n) for at, n in zip(plan.low[:0:-1], plan.in_bounds[:0:-1], strict=True)]
    first = plan.low[0] * item // unit
    return whole[(*part, slice(first, first + plan.in_bounds[0] * item // unit))]


def _unit_bytes(plan: BoxPlan) -> int:
    """Return the largest power of two up to 16 that divides the in-bounds bytes of a row."""
    return unit_bytes(plan.in_bounds[0] * plan.spec.data_type.itemsize)


def copy_in(
    plan: BoxPlan, buffer: Bytes, base_addr: int, shared: Bytes, window_base: int = 0
) -> None:
    """Load a box: global memory to shared memory, with fill and the rounding of tf32 maps.

    Args:
        plan: from `load_plan`.
        buffer: the bytes of the allocation that holds the tensor, contiguous.
        base_addr: global address of `buffer[0]`.
        shared: the bytes of the CTA's shared memory, contiguous.
        window_base: shared address of `shared[0]`.

    Raises: MachineFault: the box leaves the allocation or the shared memory.
    """
    window = shared_window(plan, shared, window_base)
    if plan.is_whole and plan.spec.data_type not in TF32:
        source = _global_view(plan, buffer, base_addr, CHUNK_BYTES)
        if plan.spec.swizzle:
            put(plan, window, source.reshape(-1))
        else:
            window.reshape(source.shape)[...] = source
    else:
        put(plan, window, _clipped_tile(plan, buffer, base_addr))


def _clipped_tile(plan: BoxPlan, buffer: Bytes, base_addr: int) -> Items:
    tile = blank_tile(plan)
    if plan.stop_addr == plan.first_addr:
        return tile
    if plan.spec.data_type in TF32:
        values = _global_view(plan, buffer, base_addr, 4)
        _tile_view(plan, tile, 4)[...] = round_to_tf32(values.astype(np.uint32))
    else:
        unit = _unit_bytes(plan)
        _tile_view(plan, tile, unit)[...] = _global_view(plan, buffer, base_addr, unit)
    return tile


def copy_out(
    plan: BoxPlan, shared: Bytes, buffer: Bytes, base_addr: int, window_base: int = 0
) -> None:
    """Store a box: shared memory to the in-bounds part of the tensor.

    Args: as `copy_in`, with a plan from `store_plan`.
    Raises: MachineFault: the box leaves the allocation or the shared memory.
    """
    tile = take(plan, shared_window(plan, shared, window_base))
    if plan.stop_addr > plan.first_addr:
        unit = _unit_bytes(plan)
        target = _global_view(plan, buffer, base_addr, unit)
        target[...] = _tile_view(plan, tile, unit)


def reduce_out(
    plan: BoxPlan, shared: Bytes, buffer: Bytes, base_addr: int, op: str, window_base: int = 0
) -> None:
    """Reduce a box into the in-bounds part of the tensor, by the element type of the map.

    Args: as `copy_out`; `op` is add, min, max, inc, dec, and, or or xor.
    Raises: MachineFault: no such reduction, or the box leaves its memory.
    """
    data_type = plan.spec.data_type
    check_legal(op, data_type)
    tile = take(plan, shared_window(plan, shared, window_base))
    if plan.stop_addr == plan.first_addr:
        return
    item = data_type.itemsize
    target: NDArray[Any] = _global_view(plan, buffer, base_addr, item)
    brought: NDArray[Any] = _tile_view(plan, tile, item)
    if _rows_may_overlap(plan):  # one global element may take part more than once: in turn
        for row in np.ndindex(*target.shape[:-1]):
            target[row] = combine(op, data_type, target[row], brought[row])
    else:
        target[...] = combine(op, data_type, target, brought)


def _rows_may_overlap(plan: BoxPlan) -> bool:
    steps = plan.spec.geometry.steps
    reach = plan.in_bounds[0] * steps[0]
    for step, count in sorted(zip(steps[1:], plan.in_bounds[1:], strict=True)):
        if count > 1:
            if step < reach:
                return True
            reach += step * (count - 1)
    return False

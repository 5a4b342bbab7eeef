"""The copies of an im2col column, between numpy arrays of bytes: those of `hopsim.layout.box_copy`, pixel by pixel.

>>> from hopsim.layout.column import column_plan
>>> from hopsim.layout.tensormap import PixelWindow, TensorMapSpec
>>> from hopsim.layout.tensormap_types import TensorDataType
>>> spec = TensorMapSpec(TensorDataType.UINT8, 0, (16, 2, 1), (16, 32), (16, 3), window=PixelWindow((-1,), (0,)))
>>> memory, shared = np.arange(1, 33, dtype=np.uint8), np.zeros(128, np.uint8)
>>> copy_in(column_plan(spec, (0, -1, 0), (0,), smem_addr=0), memory, 0, shared)
>>> shared[:48:16].tolist()
[0, 1, 17]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
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
from hopsim.layout.column import ColumnPlan
from hopsim.layout.reduction import check_legal, combine


def inside_chunks(plan: ColumnPlan) -> NDArray[np.int64]:
    """Return the shared address of every 16-byte chunk of which all elements are inside the tensor, (chunks,), in order."""
    item = plan.spec.data_type.itemsize
    first = plan.low * item // CHUNK_BYTES
    stop = (plan.low * item + plan.row_bytes - plan.cut_bytes) // CHUNK_BYTES
    return shared_chunks(plan)[plan.pixels, first : max(first, stop)].ravel()


def copy_in(
    plan: ColumnPlan, buffer: Bytes, base_addr: int, shared: Bytes, window_base: int = 0
) -> None:
    """Load a column: global memory to shared memory, with fill and the rounding of tf32 maps.

    Args: as `hopsim.layout.box_copy.copy_in` has them, with a plan from `column_plan`.
    Raises: MachineFault: the column leaves the allocation or the shared memory.
    """
    window = shared_window(plan, shared, window_base)
    tile = blank_tile(plan)
    if len(plan.pixels):
        if plan.spec.data_type in TF32:
            values = _global_items(plan, buffer, 4)[_places(plan, buffer, base_addr, 4)]
            _tile_view(plan, tile, 4)[plan.pixels] = round_to_tf32(values.astype(np.uint32))
        else:
            unit = unit_bytes(plan.row_bytes)
            values = _global_items(plan, buffer, unit)[_places(plan, buffer, base_addr, unit)]
            _tile_view(plan, tile, unit)[plan.pixels] = values
    put(plan, window, tile)


def copy_out(
    plan: ColumnPlan, shared: Bytes, buffer: Bytes, base_addr: int, window_base: int = 0
) -> None:
    """Store a column: shared memory to the pixels inside the tensor.

    Args: as `copy_in`, with a plan from `column_store_plan`.
    Raises: MachineFault: the column leaves the allocation or the shared memory.
    """
    tile = take(plan, shared_window(plan, shared, window_base))
    if len(plan.pixels):
        unit = unit_bytes(plan.row_bytes)
        places = _places(plan, buffer, base_addr, unit)
        _global_items(plan, buffer, unit)[places] = _tile_view(plan, tile, unit)[plan.pixels]


def reduce_out(
    plan: ColumnPlan, shared: Bytes, buffer: Bytes, base_addr: int, op: str, window_base: int = 0
) -> None:
    """Reduce a column into the pixels inside the tensor, by the element type of the map.

    Args: as `copy_out`; `op` is add, min, max, inc, dec, and, or or xor.
    Raises: MachineFault: no such reduction, or the column leaves its memory.
    """
    data_type = plan.spec.data_type
    check_legal(op, data_type)
    tile = take(plan, shared_window(plan, shared, window_base))
    if not len(plan.pixels):
        return
    item = data_type.itemsize
    target: NDArray[Any] = _global_items(plan, buffer, item)
    brought: NDArray[Any] = _tile_view(plan, tile, item)
    places = _places(plan, buffer, base_addr, item)
    for pixel, place in zip(plan.pixels.tolist(), places, strict=True):
        # One element may take part more than once: in turn.
        target[place] = combine(op, data_type, target[place], brought[pixel])


def _global_items(plan: ColumnPlan, buffer: Bytes, unit: int) -> Items:
    """Return the whole units of an allocation, a view."""
    return buffer[: buffer.size // unit * unit].view(UNITS[unit])


def _places(plan: ColumnPlan, buffer: Bytes, base_addr: int, unit: int) -> NDArray[np.int64]:
    """Return which unit of the allocation each unit of the pixels inside is, (pixels, units)."""
    if plan.first_addr < base_addr or plan.stop_addr > base_addr + buffer.size:
        start, stop = plan.outside(base_addr, buffer.size)[0].tolist()
        raise MachineFault(
            f"tensor copy reaches global bytes [{start:#x}, {stop:#x}), expected within the "
            f"allocation [{base_addr:#x}, {base_addr + buffer.size:#x})",
            hint="check address, dims and strides of the tensor map",
            source='PTX ISA 8.7, "cp.async.bulk.tensor"',
        )
    first = (plan.starts - base_addr) // unit
    return first[:, None] + np.arange(plan.row_bytes // unit, dtype=np.int64)


def _tile_view(plan: ColumnPlan, tile: Items, unit: int) -> Items:
    """Return the channels inside of all pixels as items of `unit` bytes, (pixels, items)."""
    whole = tile.view(UNITS[unit]).reshape(plan.spec.geometry.row_count, -1)
    first = plan.low * plan.spec.data_type.itemsize // unit
    return whole[:, first : first + plan.row_bytes // unit]

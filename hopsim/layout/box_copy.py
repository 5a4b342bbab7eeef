"""The copies of a tensor box, between numpy arrays of bytes.

Shared memory and global memory both go in chunks of 16 bytes: start address, strides and inner
coordinates are all held to that, only the end of a clipped row is not.

>>> from hopsim.layout.box import load_plan
>>> from hopsim.layout.tensormap import TensorMapSpec
>>> spec = TensorMapSpec(TensorDataType.UINT16, 0, (8, 2), (16,), (8, 2))
>>> memory, shared = np.arange(32, dtype=np.uint8), np.zeros(128, np.uint8)
>>> copy_in(load_plan(spec, (0, 1), smem_addr=0), memory, 0, shared)
>>> shared[[0, 15, 16]].tolist()
[16, 31, 0]
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.layout.box import CHUNK_BYTES, BoxPlan
from hopsim.layout.reduction import check_legal, combine
from hopsim.layout.swizzle import Swizzle, swizzle_addresses
from hopsim.layout.tensormap_types import OobFill, TensorDataType

Bytes = NDArray[np.uint8]
Items = NDArray[np.generic]

# Every 16 bits of an out-of-bounds element, for each type that may be filled so.
# Source: recorded on an H100: tests/silicon/layout.
NAN_FILL = 0x7FF7

_SOURCE = 'PTX ISA 8.7, "cp.async.bulk.tensor"'
_CHUNK: np.dtype[Any] = np.dtype(np.complex128)  # any 16-byte item; its value is never looked at
_UNITS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: _CHUNK,
}
_TF32 = frozenset({TensorDataType.TFLOAT32, TensorDataType.TFLOAT32_FTZ})


# --- Shared memory -----------------------------------------------------------------------------


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


def shared_chunks(plan: BoxPlan) -> NDArray[np.int64]:
    """Return the shared address of every 16-byte chunk of a box, (rows, chunks), box order."""
    g = plan.spec.geometry
    places = _chunk_places(
        g.row_count, g.inner_bytes, g.pitch_bytes, plan.spec.swizzle, plan.smem_addr & 1023
    )
    return plan.smem_addr + CHUNK_BYTES * places.astype(np.int64).reshape(g.row_count, -1)


def inside_chunks(plan: BoxPlan) -> NDArray[np.int64]:
    """Return the shared address of every 16-byte chunk of which all elements are inside the tensor, (chunks,), box order."""
    item = plan.spec.data_type.itemsize
    every = shared_chunks(plan).reshape(*plan.spec.geometry.counts[:0:-1], -1)
    part = [slice(at, at + n) for at, n in zip(plan.low[:0:-1], plan.in_bounds[:0:-1], strict=True)]
    stop = (plan.low[0] + plan.in_bounds[0]) * item - plan.cut_bytes
    first = plan.low[0] * item // CHUNK_BYTES
    return every[(*part, slice(first, max(first, stop // CHUNK_BYTES)))].ravel()


def _shared_window(plan: BoxPlan, shared: Bytes, window_base: int) -> Items:
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
    return shared[start:stop].view(_CHUNK)


def _put(plan: BoxPlan, window: Items, tile: Items) -> None:
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


def _get(plan: BoxPlan, window: Items) -> Items:
    g, swizzle = plan.spec.geometry, plan.spec.swizzle
    if not swizzle:
        return window
    return window.take(
        _chunk_places(g.row_count, g.inner_bytes, g.pitch_bytes, swizzle, plan.smem_addr & 1023)
    )


# --- Global memory -----------------------------------------------------------------------------


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
        _UNITS[unit],
        buffer,
        plan.first_addr - base_addr,
        (*steps[:0:-1], unit),
    )


def _tile_view(plan: BoxPlan, tile: Items, unit: int) -> Items:
    """Return the in-bounds part of a dense box as items of `unit` bytes, outermost first."""
    counts, item = plan.spec.geometry.counts, plan.spec.data_type.itemsize
    whole = tile.view(_UNITS[unit]).reshape(*counts[:0:-1], -1)
    if plan.is_whole:
        return whole
    part = [slice(at, at + n) for at, n in zip(plan.low[:0:-1], plan.in_bounds[:0:-1], strict=True)]
    first = plan.low[0] * item // unit
    return whole[(*part, slice(first, first + plan.in_bounds[0] * item // unit))]


def _unit_bytes(plan: BoxPlan) -> int:
    """Return the largest power of two up to 16 that divides the in-bounds bytes of a row."""
    row = plan.in_bounds[0] * plan.spec.data_type.itemsize
    return min(CHUNK_BYTES, row & -row)


# --- The copies --------------------------------------------------------------------------------


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
    window = _shared_window(plan, shared, window_base)
    if plan.is_whole and plan.spec.data_type not in _TF32:
        source = _global_view(plan, buffer, base_addr, CHUNK_BYTES)
        if plan.spec.swizzle:
            _put(plan, window, source.reshape(-1))
        else:
            window.reshape(source.shape)[...] = source
    else:
        _put(plan, window, _clipped_tile(plan, buffer, base_addr))


def _clipped_tile(plan: BoxPlan, buffer: Bytes, base_addr: int) -> Items:
    chunks = plan.tx_bytes // CHUNK_BYTES
    tile: Items = np.zeros(chunks, _CHUNK)
    if plan.spec.oob_fill is OobFill.NAN:
        tile.view(np.uint16)[...] = NAN_FILL
    if plan.stop_addr == plan.first_addr:
        return tile
    if plan.spec.data_type in _TF32:
        values = _global_view(plan, buffer, base_addr, 4)
        _tile_view(plan, tile, 4)[...] = round_to_tf32(values.astype(np.uint32))
    else:
        unit = _unit_bytes(plan)
        _tile_view(plan, tile, unit)[...] = _global_view(plan, buffer, base_addr, unit)
    return tile


def round_to_tf32(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return f32 bits as a load through a tf32 map leaves them.

    To nearest, ties to even, 13 low bits zero; denormals stay; every NaN becomes 0x7fffe000.
    Stores do not round, and the `_FTZ` types flush nothing in a copy.

    Source: recorded on an H100: tests/silicon/layout.
    """
    rounded = bits + np.uint32(0xFFF) + (bits >> 13 & 1) & np.uint32(0xFFFFE000)
    return np.where(bits & 0x7FFFFFFF > 0x7F800000, np.uint32(0x7FFFE000), rounded)


def copy_out(
    plan: BoxPlan, shared: Bytes, buffer: Bytes, base_addr: int, window_base: int = 0
) -> None:
    """Store a box: shared memory to the in-bounds part of the tensor.

    Args: as `copy_in`, with a plan from `store_plan`.
    Raises: MachineFault: the box leaves the allocation or the shared memory.
    """
    tile = _get(plan, _shared_window(plan, shared, window_base))
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
    tile = _get(plan, _shared_window(plan, shared, window_base))
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

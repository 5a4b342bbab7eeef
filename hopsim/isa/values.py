"""What a register holds: raw bits, one Python int for all lanes or one unsigned numpy array, a word a lane.

Predicates are `bool` or arrays of bool.  Numpy scalars never appear (their overflow warns, and they are slow).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.types import DTYPES

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = "int | Array"
Predicate: TypeAlias = "bool | NDArray[np.bool_]"


def lanes(value: Value, count: int, width_bits: int) -> Array:
    """Return `value` as an array of `count` words of `width_bits`."""
    if isinstance(value, np.ndarray):
        return value
    return np.full(count, value, DTYPES[width_bits])


def collapse(values: Array) -> Value:
    """Return one int when all lanes hold the same bits, else the array itself."""
    first = values[0]
    if (values == first).all():
        return bool(first) if values.dtype == np.bool_ else int(first)
    return values


def collapsed_rows(table: Array) -> list[Value]:
    """Return what `collapse` gives for each row of a table, looking at all of them at once."""
    first = table[:, 0]
    alike = (table == first[:, None]).all(axis=1).tolist()
    values = first.tolist()
    return [value if same else row for same, value, row in zip(alike, values, table, strict=True)]


def narrow(value: Value, width_bits: int) -> Value:
    """Drop the bits above `width_bits` and use the dtype of that width."""
    if isinstance(value, np.ndarray):
        return value.astype(DTYPES[width_bits])
    return value & ((1 << width_bits) - 1)


def widen(value: Value, from_bits: int, to_bits: int, signed: bool) -> Value:
    """Extend `value` from `from_bits` to `to_bits` by sign or by zeros."""
    if isinstance(value, np.ndarray):
        if signed:
            return value.view(f"i{from_bits // 8}").astype(f"i{to_bits // 8}").view(DTYPES[to_bits])
        return value.astype(DTYPES[to_bits])
    if signed and value >> (from_bits - 1):
        return value | ((1 << to_bits) - (1 << from_bits))
    return value


def resize(value: Value, width_bits: int) -> Value:
    """Give a special register's value the width it is read with (predicates pass through)."""
    if width_bits == 1 or isinstance(value, bool):
        return value
    return narrow(value, width_bits)


def select(predicate: Predicate, when_true: Value, when_false: Value, width_bits: int) -> Value:
    """Per lane, `when_true` where the predicate holds, else `when_false`."""
    if isinstance(predicate, np.ndarray):
        dtype = np.dtype(np.bool_) if width_bits == 1 else DTYPES[width_bits]
        left = when_true if isinstance(when_true, np.ndarray) else np.array(when_true, dtype)
        right = when_false if isinstance(when_false, np.ndarray) else np.array(when_false, dtype)
        return np.where(predicate, left, right)
    return when_true if predicate else when_false

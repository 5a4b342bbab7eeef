"""The arithmetic of bulk tensor reductions, on raw bits.

`cp.reduce.async.bulk.tensor` combines shared elements into global ones by the element type of the
tensor map.  NaN results, flushing and signed zeros are as an H100 gives them, not as numpy does.

>>> combine("max", TensorDataType.FLOAT16, np.array([0x8000], "u2"), np.array([0], "u2")).tolist()
[0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.layout.tensormap_types import TensorDataType

RawBits = NDArray[np.unsignedinteger[Any]]

_T = TensorDataType
_WORDS = frozenset({_T.UINT32, _T.INT32, _T.UINT64})
_FLOATS32 = frozenset({_T.FLOAT32, _T.FLOAT32_FTZ, _T.TFLOAT32, _T.TFLOAT32_FTZ})
_FLUSHED = frozenset({_T.FLOAT32_FTZ, _T.TFLOAT32_FTZ})
_HALVES = frozenset({_T.FLOAT16, _T.BFLOAT16})

# Source: every operation tried on every type on an H100: tests/silicon/layout.
LEGAL_TYPES: dict[str, frozenset[TensorDataType]] = {
    "add": _WORDS | _HALVES | _FLOATS32 | {_T.FLOAT64},
    "min": _WORDS | _HALVES | {_T.INT64},
    "max": _WORDS | _HALVES | {_T.INT64},
    "inc": frozenset({_T.UINT32}),
    "dec": frozenset({_T.UINT32}),
    "and": _WORDS,
    "or": _WORDS,
    "xor": _WORDS,
}

_BITWISE: dict[str, Callable[[RawBits, RawBits], RawBits]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def check_legal(op: str, data_type: TensorDataType) -> None:
    """Raise MachineFault when the hardware refuses this reduction (an illegal instruction)."""
    if data_type not in LEGAL_TYPES.get(op, frozenset()):
        legal = ", ".join(t.name.lower() for t in sorted(LEGAL_TYPES.get(op, frozenset())))
        raise MachineFault(
            f"cp.reduce.async.bulk.tensor.{op} is illegal for a tensor map of "
            f"{data_type.name.lower()}, expected one of: {legal or 'none, no such operation'}",
            hint="encode the tensor map with the type that the reduction works on",
            source='PTX ISA 8.7, "cp.reduce.async.bulk.tensor"',
        )


def combine(op: str, data_type: TensorDataType, old: RawBits, new: RawBits) -> RawBits:
    """Return `old op new` element by element.

    Args:
        op: add, min, max, inc, dec, and, or, xor.
        data_type: how to read the bits; arrays are unsigned of its size.
        old: what global memory holds.
        new: what shared memory brings.

    Raises: MachineFault: the hardware has no such reduction.
    Source: PTX ISA 8.7 "cp.reduce.async.bulk"; bits recorded on an H100: tests/silicon/layout.
    """
    check_legal(op, data_type)
    if op in _BITWISE:
        return _BITWISE[op](old, new)
    if op == "inc":
        return np.where(old >= new, np.zeros_like(old), old + old.dtype.type(1))
    if op == "dec":
        return np.where((old == 0) | (old > new), new, old - old.dtype.type(1))
    if data_type in _HALVES:
        return _add_halves(data_type, old, new) if op == "add" else _pick(op, data_type, old, new)
    if op == "add":
        if data_type in _FLOATS32:
            return _add_f32(old, new, flush=data_type in _FLUSHED)
        return _add_f64(old, new) if data_type is _T.FLOAT64 else old + new
    if data_type in (_T.INT32, _T.INT64):
        top = old.dtype.type(1 << (8 * old.itemsize - 1))  # flips signed order into unsigned order
        return (np.minimum if op == "min" else np.maximum)(old ^ top, new ^ top) ^ top
    return (np.minimum if op == "min" else np.maximum)(old, new)


def _is_nan(bits: RawBits, infinity: int) -> NDArray[np.bool_]:
    magnitude = bits & bits.dtype.type((1 << (8 * bits.itemsize - 1)) - 1)
    return magnitude > bits.dtype.type(infinity)


def _flush(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return np.where(bits & 0x7F800000 == 0, bits & 0x80000000, bits).astype(np.uint32)


def _f32_sum(old: NDArray[np.uint32], new: NDArray[np.uint32]) -> NDArray[np.uint32]:
    with np.errstate(all="ignore"):
        return (old.view(np.float32) + new.view(np.float32)).view(np.uint32)


def _add_f32(old: RawBits, new: RawBits, *, flush: bool) -> RawBits:
    a, b = (np.ascontiguousarray(v, np.uint32) for v in (old, new))
    if flush:
        a, b = _flush(a), _flush(b)
    total = _f32_sum(a, b)
    if flush:  # Guess for results (D-REDUCE): the recording has denormal operands only.
        total = _flush(total)
    return np.where(_is_nan(total, 0x7F800000), np.uint32(0x7FFFFFFF), total)


def _add_f64(old: RawBits, new: RawBits) -> RawBits:
    a, b = (np.ascontiguousarray(v, np.uint64) for v in (old, new))
    with np.errstate(all="ignore"):
        total = (a.view(np.float64) + b.view(np.float64)).view(np.uint64)
    infinity, quiet = 0x7FF0000000000000, np.uint64(1 << 51)
    # Guess (D-REDUCE): which of two different NaN operands wins; the recording has equal ones only.
    total = np.where(_is_nan(total, infinity), np.uint64(0xFFF8000000000000), total)
    total = np.where(_is_nan(b, infinity), b | quiet, total)
    return np.where(_is_nan(a, infinity), a | quiet, total)


def _add_halves(data_type: TensorDataType, old: RawBits, new: RawBits) -> RawBits:
    """Add in f32 and round once more: exact, since 24 bits are at least twice 11 plus 2."""
    a, b = (np.ascontiguousarray(v, np.uint16) for v in (old, new))
    with np.errstate(all="ignore"):
        if data_type is _T.FLOAT16:
            wide = a.view(np.float16).astype(np.float32) + b.view(np.float16).astype(np.float32)
            total = wide.astype(np.float16).view(np.uint16)
        else:
            sixteen = np.uint32(16)
            bits = _f32_sum(a.astype(np.uint32) << sixteen, b.astype(np.uint32) << sixteen)
            total = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
            total = np.where(_is_nan(bits, 0x7F800000), np.uint16(0x7FFF), total)
    return np.where(_is_nan(total, _half_infinity(data_type)), np.uint16(0x7FFF), total)


def _half_infinity(data_type: TensorDataType) -> int:
    return 0x7C00 if data_type is _T.FLOAT16 else 0x7F80


def _pick(op: str, data_type: TensorDataType, old: RawBits, new: RawBits) -> RawBits:
    """Return the smaller or larger half; a NaN loses against a number, and -0 is below +0."""
    infinity = _half_infinity(data_type)

    def order(bits: RawBits) -> NDArray[np.int32]:
        signed = bits.astype(np.int32)
        return np.where(signed & 0x8000, -1 - (signed & 0x7FFF), signed)

    keep_old = order(old) <= order(new) if op == "min" else order(old) >= order(new)
    old_nan, new_nan = _is_nan(old, infinity), _is_nan(new, infinity)
    result = np.where((keep_old & ~old_nan) | new_nan, old, new)
    return np.where(old_nan & new_nan, old.dtype.type(0x7FFF), result)

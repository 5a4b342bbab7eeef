"""Editing the 128 bytes of a tensor map, field by field, as `tensormap.replace` does.

>>> raw = replace_field(bytearray(128), "box_dim", 0, 64)
>>> replace_field(raw, "rank", 0, 1) is raw
True
"""

from __future__ import annotations

import struct
from collections.abc import MutableSequence
from typing import TypeVar

from hopsim.errors import NotModelled, TensorMapError
from hopsim.layout.tensormap import IM2COL_AT, MAGIC, MAP_BYTES, MAX_RANK

_SOURCE = 'PTX ISA 8.7, "tensormap.replace"'
# field -> (byte offset, format of one item, items, added to the PTX value)
_FIELDS = {
    "global_address": (8, "<Q", 1, 0),
    "global_dim": (16, "<I", MAX_RANK, -1),
    "box_dim": (36, "<I", MAX_RANK, -1),
    "global_stride": (56, "<Q", MAX_RANK - 1, 0),
    "element_stride": (88, "<I", MAX_RANK, -1),
    "rank": (108, "<B", 1, 0),
    "elemtype": (109, "<B", 1, 0),
    "interleave_layout": (110, "<B", 1, 0),
    "swizzle_mode": (111, "<B", 1, 0),
    "fill_mode": (112, "<B", 1, 0),
}
_CODE_LIMITS = {
    "rank": 5,
    "elemtype": 13,
    "interleave_layout": 3,
    "swizzle_mode": 4,
    "fill_mode": 2,
}

_Bytes = TypeVar("_Bytes", bound=MutableSequence[int])


def replace_field(raw: _Bytes, field: str, ordinal: int, value: int) -> _Bytes:
    """Edit one field of a map in place, as `tensormap.replace.tile` does.

    Values are PTX's: `rank` is the rank less one, sizes and steps are plain counts, strides are
    bytes, and the codes are those of the `elemtype`, `interleave_layout`, `swizzle_mode` and
    `fill_mode` tables.  Nothing else is checked until the map is used.

    Args:
        raw: the 128 bytes; all zero, or a map.
        field: the PTX field name, such as "global_dim".
        ordinal: the dimension for box_dim, global_dim, element_stride; the dimension less one for
            global_stride; 0 for the other fields.
        value: the new value; 32-bit fields take its low 32 bits.

    Returns: `raw`.
    Raises: TensorMapError: `raw` is not a map, or the field, ordinal or code does not exist.
        NotModelled: it is an im2col map.
    Source: PTX ISA 8.7 "tensormap.replace"; meanings recorded on an H100: tests/silicon/layout.
    """
    head = bytes(raw[:8])
    if len(raw) != MAP_BYTES or (head != MAGIC and any(raw)):
        raise TensorMapError(
            f"expected 128 bytes that are zero or a tensor map, got {head.hex()}...",
            where=f"tensormap.replace.{field}",
            hint="copy a map to this address first, or clear the 128 bytes",
            source=_SOURCE,
        )
    if raw[IM2COL_AT]:
        raise NotModelled(
            "tensormap.replace on an im2col map is not modelled: PTX has the fields of tiled maps",
            hint="encode the im2col map on the host",
            source=_SOURCE,
        )
    if field not in _FIELDS:
        raise TensorMapError(
            f"tensormap.replace has no field {field!r} on sm_90a",
            where=f"tensormap.replace.{field}",
            hint="one of " + ", ".join(_FIELDS),
            source=_SOURCE,
        )
    offset, layout, items, added = _FIELDS[field]
    limit = _CODE_LIMITS.get(field)
    if not 0 <= ordinal < items or (limit is not None and not 0 <= value < limit):
        raise TensorMapError(
            f"ordinal must be 0 to {items - 1}"
            + (f" and the value 0 to {limit - 1}" if limit is not None else "")
            + f", got ordinal {ordinal} and value {value}",
            where=f"tensormap.replace.{field}",
            hint="see the table of new values",
            source=_SOURCE,
        )
    width = struct.calcsize(layout)
    packed = struct.pack(layout, (value + added) & ((1 << 8 * width) - 1))
    at = offset + ordinal * width
    for i, byte in enumerate(MAGIC):
        raw[i] = byte
    for i, byte in enumerate(packed):
        raw[at + i] = byte
    return raw

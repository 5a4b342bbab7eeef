"""Tensor maps: what `cuTensorMapEncodeTiled` takes, checks and packs into 128 bytes.

The 128 bytes are hopsim's own: NVIDIA's are opaque.  Every field that `tensormap.replace` edits has
one fixed place, so that programs that build or change maps on the device work.  All counts are
stored less one and all codes as PTX has them, so that 128 zero bytes are a map that one edit after
another completes, as compilers do it.

>>> spec = TensorMapSpec(TensorDataType.BFLOAT16, 0x1000, (256, 64), (512,), (64, 64),
...                      swizzle=Swizzle.B128)
>>> TensorMapSpec.decode(spec.encode()) == spec
True
"""

from __future__ import annotations

import struct
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

from hopsim.errors import TensorMapError
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap_types import (
    FROM_PTX_CODE,
    NAN_FILL_TYPES,
    Interleave,
    L2Promotion,
    OobFill,
    TensorDataType,
)

MAP_BYTES = 128
MAX_RANK = 5

_SOURCE = "CUDA driver API 13.0, cuTensorMapEncodeTiled"
_REPLACE_SOURCE = 'PTX ISA 8.7, "tensormap.replace"'
# Source: the driver refuses larger boxes (580.159, H100): tests/silicon/layout.
_MAX_BOX_BYTES = 228 * 1024


class BoxGeometry(NamedTuple):
    """What of a box does not depend on coordinates; per-dimension tuples are innermost first.

    Args:
        counts: elements along each dimension: ceil(box / element stride), outer dimensions only.
        steps: global bytes from one element of the box to the next along each dimension.
        inner_bytes: bytes of one box row in global memory.
        pitch_bytes: bytes from one box row to the next in shared memory: the swizzle's width when
            there is one, else `inner_bytes`.
        row_count: number of box rows.
        tx_bytes: what `complete_tx` counts: rows times `inner_bytes`, out-of-bounds included.
        shared_bytes: extent in shared memory: rows times `pitch_bytes`.

    Source: CUDA driver API 13.0, elementStrides; pitch and tx recorded on an H100:
        tests/silicon/layout.
    """

    counts: tuple[int, ...]
    steps: tuple[int, ...]
    inner_bytes: int
    pitch_bytes: int
    row_count: int
    tx_bytes: int
    shared_bytes: int


_HEADER = struct.Struct("<8sQ5I5I4Q5I6B14x")
_MAGIC = b"HSTMAP\x00\x01"
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


@dataclass(frozen=True)
class TensorMapSpec:
    """A tiled tensor map; all tuples are innermost dimension first.

    Args:
        data_type: element type.
        global_address: device address of element (0, ..., 0).
        dims: tensor sizes in elements, one to five of them.
        strides: byte strides of dimensions 1 and up, so one fewer than `dims`; 0 is legal.
        box: box sizes in elements.
        element_strides: traversal steps; empty means all 1.
        interleave: layouts other than NONE are legal but not modelled.
        swizzle: pattern in shared memory.
        l2_promotion: a hint; it moves no data.
        oob_fill: fill of out-of-bounds elements.
    """

    data_type: TensorDataType
    global_address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: Interleave = Interleave.NONE
    swizzle: Swizzle = Swizzle.NONE
    l2_promotion: L2Promotion = L2Promotion.NONE
    oob_fill: OobFill = OobFill.ZEROS

    def __post_init__(self) -> None:
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * len(self.dims))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(
            (
                self.data_type,
                self.global_address,
                self.dims,
                self.strides,
                self.box,
                self.element_strides,
                self.interleave,
                self.swizzle,
                self.oob_fill,
            )
        )

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @cached_property
    def geometry(self) -> BoxGeometry:
        """The constants of this map's box; the element stride of dimension 0 is ignored."""
        item = self.data_type.itemsize
        outer = tuple(
            -(-b // e) for b, e in zip(self.box[1:], self.element_strides[1:], strict=True)
        )
        steps = tuple(s * e for s, e in zip(self.strides, self.element_strides[1:], strict=True))
        rows = 1
        for count in outer:
            rows *= count
        inner = self.box[0] * item
        pitch = self.swizzle.width_bytes if self.swizzle else inner
        return BoxGeometry(
            (self.box[0], *outer), (item, *steps), inner, pitch, rows, rows * inner, rows * pitch
        )

    def validate(self) -> None:
        """Check all that `cuTensorMapEncodeTiled` checks.

        Raises: TensorMapError: the first rule that is broken.
        Source: CUDA driver API 13.0, cuTensorMapEncodeTiled; what the documentation leaves open
            (no NaN fill for float64, boxes up to 228 KiB) as driver 580.159 answers.
        """
        self._check_shape()
        item = self.data_type.itemsize
        inner_bytes = self.box[0] * item
        align = 32 if self.interleave is Interleave.B32 else 16
        _require(
            self.global_address % align == 0 and 0 <= self.global_address < 1 << 64,
            f"global address must be a multiple of {align}, got {self.global_address:#x}",
            "give an array whose data starts on that boundary",
        )
        for i, stride in enumerate(self.strides, 1):
            _require(
                stride % align == 0 and 0 <= stride < 1 << 40,
                f"stride of dimension {i} must be a multiple of {align} bytes below 2^40, "
                f"got {stride}",
                "pad the rows of the tensor",
            )
        _require(
            inner_bytes % 16 == 0,
            f"box[0] must fill a multiple of 16 bytes, got {self.box[0]} x {item} = {inner_bytes}",
            f"make box[0] a multiple of {16 // item}",
        )
        if self.interleave is Interleave.NONE and self.swizzle is not Swizzle.NONE:
            width = self.swizzle.width_bytes
            _require(
                inner_bytes <= width,
                f"box[0] must fill at most {width} bytes with swizzle {width}B, got {inner_bytes}",
                f"make box[0] at most {width // item} and copy wider tiles as several boxes",
            )
        if self.interleave is not Interleave.NONE:
            _require(
                self.rank >= 3,
                f"an interleaved layout needs rank 3 or more, got {self.rank}",
                "use Interleave.NONE",
            )
        _require(
            self.oob_fill is OobFill.ZEROS or self.data_type in NAN_FILL_TYPES,
            f"NaN fill needs a 16-bit or 32-bit float type, got {self.data_type.name.lower()}",
            "use OobFill.ZEROS",
        )
        box_bytes = item
        for size, step in zip(self.box, self.element_strides, strict=True):
            box_bytes *= -(-size // step)
        _require(
            box_bytes <= _MAX_BOX_BYTES,
            f"a box must be at most {_MAX_BOX_BYTES} bytes, got {box_bytes}",
            "make the box smaller",
        )

    def _check_shape(self) -> None:
        rank = self.rank
        _require(1 <= rank <= MAX_RANK, f"rank must be 1 to 5, got {rank}", "merge dimensions")
        for name, values, wanted in (
            ("strides", self.strides, rank - 1),
            ("box", self.box, rank),
            ("element_strides", self.element_strides, rank),
        ):
            _require(
                len(values) == wanted,
                f"{name} must have {wanted} entries for rank {rank}, got {len(values)}",
                "all tuples are innermost first; the innermost stride is implied",
            )
        for name, values, top, shown, instead in (
            ("dims", self.dims, 1 << 32, "2^32", "a dimension has an element at least"),
            ("box", self.box, 256, "256", "copy wider tiles as several boxes"),
            ("element_strides", self.element_strides, 8, "8", "1 takes each element"),
        ):
            for i, value in enumerate(values):
                _require(
                    1 <= value <= top,
                    f"{name}[{i}] must be 1 to {shown}, got {value}",
                    instead,
                )

    def encode(self) -> bytes:
        """Return the map as 128 bytes, after `validate`."""
        self.validate()
        absent = MAX_RANK - self.rank
        return _HEADER.pack(
            _MAGIC,
            self.global_address,
            *(d - 1 for d in self.dims), *(0,) * absent,
            *(b - 1 for b in self.box), *(0,) * absent,
            *self.strides, *(0,) * absent,
            *(e - 1 for e in self.element_strides), *(0,) * absent,
            self.rank - 1,
            self.data_type.ptx_code,
            self.interleave,
            self.swizzle,
            self.oob_fill,
            self.l2_promotion,
        )  # fmt: skip

    @staticmethod
    def decode(raw: bytes) -> TensorMapSpec:
        """Return the map held in 128 bytes; equal bytes give the same object.

        Raises: TensorMapError: not a tensor map, or one that device edits left illegal.
        """
        return _decode(bytes(raw))


def _require(holds: bool, what: str, hint: str) -> None:
    if not holds:
        raise TensorMapError(what, where="tensor map", hint=hint, source=_SOURCE)


@lru_cache(maxsize=4096)
def _decode(raw: bytes) -> TensorMapSpec:
    if len(raw) != MAP_BYTES or raw[:8] != _MAGIC:
        raise TensorMapError(
            f"expected a 128-byte tensor map, got {len(raw)} bytes that start with {raw[:8].hex()}",
            where="tensor map",
            hint="pass the address of a TensorMap argument, or of a map completed by "
            "tensormap.replace",
        )
    fields = _HEADER.unpack(raw)
    ptx_rank, elemtype, interleave, swizzle, fill, promotion = fields[21:27]
    rank = ptx_rank + 1
    if (
        rank > MAX_RANK
        or elemtype not in FROM_PTX_CODE
        or interleave > 2
        or swizzle > 3
        or fill > 1
    ):
        raise TensorMapError(
            f"expected a tensor map, got codes rank {ptx_rank}, elemtype {elemtype}, interleave "
            f"{interleave}, swizzle {swizzle}, fill {fill}",
            where="tensor map",
            hint="something overwrote the map",
        )
    spec = TensorMapSpec(
        FROM_PTX_CODE[elemtype],
        fields[1],
        tuple(v + 1 for v in fields[2 : 2 + rank]),
        tuple(fields[12 : 12 + rank - 1]),
        tuple(v + 1 for v in fields[7 : 7 + rank]),
        tuple(v + 1 for v in fields[16 : 16 + rank]),
        Interleave(interleave),
        Swizzle(swizzle),
        L2Promotion(promotion),
        OobFill(fill),
    )
    spec.validate()
    return spec


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
    Source: PTX ISA 8.7 "tensormap.replace"; meanings recorded on an H100: tests/silicon/layout.
    """
    head = bytes(raw[:8])
    if len(raw) != MAP_BYTES or (head != _MAGIC and any(raw)):
        raise TensorMapError(
            f"expected 128 bytes that are zero or a tensor map, got {head.hex()}...",
            where=f"tensormap.replace.{field}",
            hint="copy a map to this address first, or clear the 128 bytes",
            source=_REPLACE_SOURCE,
        )
    if field not in _FIELDS:
        raise TensorMapError(
            f"tensormap.replace has no field {field!r} on sm_90a",
            where=f"tensormap.replace.{field}",
            hint="one of " + ", ".join(_FIELDS),
            source=_REPLACE_SOURCE,
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
            source=_REPLACE_SOURCE,
        )
    width = struct.calcsize(layout)
    packed = struct.pack(layout, (value + added) & ((1 << 8 * width) - 1))
    at = offset + ordinal * width
    for i, byte in enumerate(_MAGIC):
        raw[i] = byte
    for i, byte in enumerate(packed):
        raw[at + i] = byte
    return raw


def row_major_strides(dims: Sequence[int], element_bytes: int) -> tuple[int, ...]:
    """Return the byte strides of a dense tensor, `dims` innermost first, without that of the innermost."""
    strides: list[int] = []
    step = element_bytes
    for size in dims[:-1]:
        step *= size
        strides.append(step)
    return tuple(strides)

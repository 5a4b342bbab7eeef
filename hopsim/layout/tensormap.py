"""Tensor maps: what `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` take, check and pack into 128 bytes.

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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from hopsim.errors import TensorMapError
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap_rules import MAX_RANK, check
from hopsim.layout.tensormap_types import (
    FROM_PTX_CODE,
    Interleave,
    L2Promotion,
    OobFill,
    TensorDataType,
)

MAP_BYTES = 128


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


_HEADER = struct.Struct("<8sQ5I5I4Q5I6BB6hx")
MAGIC = b"HSTMAP\x00\x01"
IM2COL_AT = 114
"""Byte that is 1 in an im2col map."""


class PixelWindow(NamedTuple):
    """Where the pixels of an im2col map may be, before offsets: per spatial dimension, W first.

    Pixels are those from `lower` to the tensor's last one plus `upper`, both included.

    Args:
        lower: corner counted from the first pixel of the tensor: minus the padding, as a rule.
        upper: corner counted from the last one: the padding less the filter's extent but one, as a rule.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]


@dataclass(frozen=True)
class TensorMapSpec:
    """A tensor map; all tuples are innermost dimension first.

    Args:
        data_type: element type.
        global_address: device address of element (0, ..., 0).
        dims: tensor sizes in elements, one to five of them; of an im2col map channels, W, (H, (D)) and N.
        strides: byte strides of dimensions 1 and up, so one fewer than `dims`; 0 is legal.
        box: box sizes in elements; of an im2col map channels per pixel and pixels per column.
        element_strides: traversal steps; empty means all 1.
        interleave: layouts other than NONE are legal but not modelled.
        swizzle: pattern in shared memory.
        l2_promotion: a hint; it moves no data.
        oob_fill: fill of out-of-bounds elements.
        window: what makes it an im2col map; None for a tiled one.
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
    window: PixelWindow | None = None

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
                self.window,
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
        if self.window is None:
            outer = tuple(
                -(-b // e) for b, e in zip(self.box[1:], self.element_strides[1:], strict=True)
            )
            steps = tuple(
                s * e for s, e in zip(self.strides, self.element_strides[1:], strict=True)
            )
        else:  # pixels have no one step
            outer, steps = self.box[1:], ()
        rows = 1
        for count in outer:
            rows *= count
        inner = self.box[0] * item
        pitch = self.swizzle.width_bytes if self.swizzle else inner
        return BoxGeometry(
            (self.box[0], *outer), (item, *steps), inner, pitch, rows, rows * inner, rows * pitch
        )

    def validate(self) -> None:
        """Check all that the driver checks when it encodes the map.

        Raises: TensorMapError: the first rule that is broken.
        """
        check(self)

    def encode(self) -> bytes:
        """Return the map as 128 bytes, after `validate`."""
        self.validate()
        absent = MAX_RANK - self.rank
        return _HEADER.pack(
            MAGIC,
            self.global_address,
            *(d - 1 for d in self.dims), *(0,) * absent,
            *(b - 1 for b in self.box), *(0,) * (MAX_RANK - len(self.box)),
            *self.strides, *(0,) * absent,
            *(e - 1 for e in self.element_strides), *(0,) * absent,
            self.rank - 1,
            self.data_type.ptx_code,
            self.interleave,
            self.swizzle,
            self.oob_fill,
            self.l2_promotion,
            self.window is not None,
            *_packed(self.window),
        )  # fmt: skip

    @staticmethod
    def decode(raw: bytes) -> TensorMapSpec:
        """Return the map held in 128 bytes; equal bytes give the same object.

        Raises: TensorMapError: not a tensor map, or one that device edits left illegal.
        """
        return _decode(bytes(raw))


@lru_cache(maxsize=4096)
def _decode(raw: bytes) -> TensorMapSpec:
    if len(raw) != MAP_BYTES or raw[:8] != MAGIC:
        raise TensorMapError(
            f"expected a 128-byte tensor map, got {len(raw)} bytes that start with {raw[:8].hex()}",
            where="tensor map",
            hint="pass the address of a TensorMap argument, or of a map completed by "
            "tensormap.replace",
        )
    fields = _HEADER.unpack(raw)
    ptx_rank, elemtype, interleave, swizzle, fill, promotion, is_im2col = fields[21:28]
    rank = ptx_rank + 1
    if (
        rank > MAX_RANK
        or elemtype not in FROM_PTX_CODE
        or interleave > 2
        or swizzle > 3
        or fill > 1
        or is_im2col > 1
    ):
        raise TensorMapError(
            f"expected a tensor map, got codes rank {ptx_rank}, elemtype {elemtype}, interleave "
            f"{interleave}, swizzle {swizzle}, fill {fill}",
            where="tensor map",
            hint="something overwrote the map",
        )
    spatial = rank - 2
    window = (
        PixelWindow(fields[28 : 28 + spatial], fields[31 : 31 + spatial]) if is_im2col else None
    )
    spec = TensorMapSpec(
        FROM_PTX_CODE[elemtype],
        fields[1],
        tuple(v + 1 for v in fields[2 : 2 + rank]),
        tuple(fields[12 : 12 + rank - 1]),
        tuple(v + 1 for v in fields[7 : 7 + (2 if is_im2col else rank)]),
        tuple(v + 1 for v in fields[16 : 16 + rank]),
        Interleave(interleave),
        Swizzle(swizzle),
        L2Promotion(promotion),
        OobFill(fill),
        window,
    )
    spec.validate()
    return spec


def _packed(window: PixelWindow | None) -> tuple[int, ...]:
    """Return the corners of a map as six numbers."""
    corners = ((), ()) if window is None else window
    return tuple(v for corner in corners for v in (*corner, *(0,) * (3 - len(corner))))


def row_major_strides(dims: Sequence[int], element_bytes: int) -> tuple[int, ...]:
    """Return the byte strides of a dense tensor, `dims` innermost first, without that of the innermost."""
    strides: list[int] = []
    step = element_bytes
    for size in dims[:-1]:
        step *= size
        strides.append(step)
    return tuple(strides)

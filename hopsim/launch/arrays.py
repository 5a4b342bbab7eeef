"""Device arrays and tensor maps: what a launch is given besides scalars.

a = gpu.array(x)                                   # numpy in, ml_dtypes included
a_map = TensorMap(a, box=(64, 128), swizzle="128B")
a.numpy()                                          # numpy out
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError, TensorMapError
from hopsim.launch.given import whole_numbers
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap import PixelWindow, TensorMapSpec, row_major_strides
from hopsim.layout.tensormap_types import Interleave, L2Promotion, OobFill, TensorDataType

MAP_TYPES = {
    "uint8": "uint8", "int8": "uint8", "uint16": "uint16", "int16": "uint16", "uint32": "uint32", "int32": "int32",
    "uint64": "uint64", "int64": "int64", "float16": "float16", "float32": "float32", "float64": "float64",
    "bfloat16": "bfloat16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8",
}  # fmt: skip
SWIZZLES = {"none": Swizzle.NONE, "32B": Swizzle.B32, "64B": Swizzle.B64, "128B": Swizzle.B128}
INTERLEAVES = {one.text: one for one in Interleave}
PROMOTIONS = {one.text: one for one in L2Promotion}
FILLS = {one.text: one for one in OobFill}


E = TypeVar("E", bound=IntEnum)


def _choice(known: Mapping[str, E], name: object, what: str, usual: str) -> E:
    """Return what a word names, in capitals or not.

    Args:
        usual: the word to try where nothing tells which one is meant.
    """
    words = {word.lower(): word for word in known}
    if isinstance(name, str) and name.lower() in words:
        return known[words[name.lower()]]
    # A member of the enumeration (B128), a number or None for "128B" or "none".
    meant = str(name.name if isinstance(name, IntEnum) else name).lower()
    digits = meant.strip("b")
    meant = f"{digits}b" if digits.isdigit() else meant
    raise TensorMapError(
        f"{what} {name!r}: expected one of {', '.join(known)}",
        hint=f'{what}="{words.get(meant, usual)}"',
    )


def _whole(values: Sequence[int], what: str) -> tuple[int, ...]:
    numbers = whole_numbers(values)
    if numbers is None:
        raise TensorMapError(
            f"{what}: expected whole numbers, innermost dimension first, got {values!r}",
            hint=f"{what}=(64, 16), or (64,) where there is one",
        )
    return numbers


def _offset(value: object) -> int:
    """Return the bytes before the first element."""
    numbers = None if isinstance(value, Iterable) else whole_numbers(value)
    if numbers is None:
        raise TensorMapError(
            f"offset: expected a whole number of bytes, got {value!r}",
            hint="offset=0, or offset=256",
        )
    return numbers[0]


def _extents(array: DeviceArray, data_type: TensorDataType) -> tuple[int, ...]:
    """Return the extents of an array whose bytes are elements of another type, innermost first.

    Raises: TensorMapError: its rows are no whole number of these.
    """
    extents = tuple(reversed(array.shape))
    if not extents or array.dtype.itemsize == data_type.itemsize:
        return extents
    row_bytes = extents[0] * array.dtype.itemsize
    if row_bytes % data_type.itemsize:
        raise TensorMapError(
            f"dtype={data_type.text!r}: expected rows of whole elements of {data_type.itemsize} bytes, got {row_bytes} bytes"
            f" ({extents[0]} of {array.dtype.name})",
            hint="dims= and strides=, or another dtype",
        )
    return (row_bytes // data_type.itemsize, *extents[1:])


def _window(lower: Sequence[int] | None, upper: Sequence[int] | None) -> PixelWindow | None:
    if lower is None and upper is None:
        return None
    if lower is None or upper is None:
        raise TensorMapError(
            "an im2col map has a lower_corner and an upper_corner, got only one of them",
            hint="lower_corner=(-1, -1), upper_corner=(-1, -1) for a filter of 3 x 3 with a padding of 1",
        )
    return PixelWindow(_whole(lower, "lower_corner"), _whole(upper, "upper_corner"))


class DeviceArray(Protocol):
    """An array in device memory, of the simulator or of a real device."""

    @property
    def address(self) -> int:
        """Device address of the first byte."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, outermost first, as numpy has them."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        ...

    def numpy(self) -> NDArray[Any]:
        """Return a copy in host memory."""
        ...


class TensorMap:
    """A tensor map over an array, as `cuTensorMapEncodeTiled` makes it; with corners, as `cuTensorMapEncodeIm2col` does.

    Args:
        array: the tensor in device memory, row-major; for im2col images by (D by (H by)) W by channels.
        box: elements of a box, innermost dimension first; for im2col channels per pixel and pixels per column.
        swizzle: `none`, `32B`, `64B` or `128B`.
        dims: extents, innermost first, in elements of the map; default: those of the array, reversed; the innermost one
            is longer or shorter where `dtype` is narrower or wider than the array's, over the same bytes.
        strides: bytes between neighbours of each dimension but the innermost; default: dense.  0 is allowed.
        element_strides: 1 to 8 for each dimension; default 1.
        interleave: `none`; `16B` and `32B` can be encoded, and using them is not modelled (DEVIATIONS D-TMAKIND).
        l2_promotion: `none`, `64B`, `128B` or `256B`: how much of L2 a miss asks device memory for (D-PROMOTION).
        oob_fill: `zeros` or `nan`: what elements outside the tensor read as.
        dtype: type name of the map (`float16`, `bfloat16`, `uint8`, ...); default: that of the array.
        offset: bytes from the start of the array to the first element.
        lower_corner, upper_corner: where the pixels of an im2col map may be, counted from the first pixel of the tensor
            and from its last one, W first.  A convolution with padding p and a filter of extent f (dilation included) has
            -p and p - f + 1; `element_strides` are its strides, the offsets of the instruction the place in the filter.
    Raises: TensorMapError: a rule of the encode function is broken.
    """

    def __init__(
        self,
        array: DeviceArray,
        box: Sequence[int],
        swizzle: str = "none",
        *,
        dims: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        element_strides: Sequence[int] | None = None,
        interleave: str = "none",
        l2_promotion: str = "none",
        oob_fill: str = "zeros",
        dtype: str | None = None,
        offset: int = 0,
        lower_corner: Sequence[int] | None = None,
        upper_corner: Sequence[int] | None = None,
    ) -> None:
        pattern = _choice(SWIZZLES, swizzle, "swizzle", "128B")
        if not hasattr(cast("object", array), "address"):
            raise TensorMapError(
                f"a tensor map is over an array in device memory, got a {type(array).__name__}",
                hint="TensorMap(gpu.array(x), box=...)",
            )
        if dtype is not None and not isinstance(cast("object", dtype), str):
            raise TensorMapError(
                f"dtype: expected the name of a type, got {dtype!r}", hint='dtype="float16"'
            )
        name = MAP_TYPES.get(dtype or array.dtype.name, dtype)
        if name is None:
            raise TensorMapError(
                f"a tensor map has no type for {array.dtype.name}",
                hint=f"pass dtype=, one of {', '.join(MAP_TYPES)}",
            )
        data_type = TensorDataType.from_name(name)
        extents = _extents(array, data_type) if dims is None else _whole(dims, "dims")
        if strides is None:
            strides = row_major_strides(extents, data_type.itemsize)
        self.array = array
        self.swizzle = next(word for word, one in SWIZZLES.items() if one is pattern)
        self.spec = TensorMapSpec(
            data_type=data_type,
            global_address=array.address + _offset(offset),
            dims=extents,
            strides=_whole(strides, "strides"),
            box=_whole(box, "box"),
            element_strides=(1,) * len(extents)
            if element_strides is None
            else _whole(element_strides, "element_strides"),
            interleave=_choice(INTERLEAVES, interleave, "interleave", "none"),
            swizzle=pattern,
            l2_promotion=_choice(PROMOTIONS, l2_promotion, "l2_promotion", "none"),
            oob_fill=_choice(FILLS, oob_fill, "oob_fill", "zeros"),
            window=_window(lower_corner, upper_corner),
        )
        self.spec.validate()

    def __repr__(self) -> str:
        spec = self.spec
        return f"TensorMap({spec.data_type.text}, dims={spec.dims}, box={spec.box}, swizzle={self.swizzle!r})"


class ParamBytes:
    """A by-value structure: bytes with tensor maps and device addresses placed inside.

    Args:
        data: the bytes of the structure.
        tensor_maps: byte offset to map (128 bytes each).
        pointers: byte offset to array (8 bytes each).
    Raises: LaunchError: one of them is something else.
    """

    def __init__(
        self,
        data: bytes,
        tensor_maps: dict[int, TensorMap] | None = None,
        pointers: dict[int, DeviceArray] | None = None,
    ) -> None:
        try:
            memoryview(data)
        except TypeError:
            raise LaunchError(
                f"ParamBytes: expected the bytes of a structure, got a {type(data).__name__}",
                hint='hs.ParamBytes(bytes(24), pointers={0: x}); struct.pack("<if", n, x) makes bytes of numbers',
            ) from None
        self.data = data
        self.tensor_maps: dict[int, TensorMap] = _placed(
            tensor_maps, "tensor_maps", "TensorMap", "{0: a_map}"
        )
        self.pointers: dict[int, DeviceArray] = _placed(
            pointers, "pointers", "array in device memory", "{0: x}"
        )


def _placed(parts: object, what: str, kind: str, hint: str) -> dict[int, Any]:
    """Return what lies at which byte of a structure.

    Raises: LaunchError: it is no dictionary, an offset is no whole number, or a part is of another kind.
    """
    if parts is None:
        return {}
    wanted = f"ParamBytes: expected {what} to be a dictionary of byte offset to {kind}"
    if not isinstance(parts, Mapping):
        raise LaunchError(f"{wanted}, got a {type(parts).__name__}", hint=f"{what}={hint}")
    for offset, part in cast("Mapping[object, object]", parts).items():
        fits = isinstance(part, TensorMap) if what == "tensor_maps" else hasattr(part, "address")
        if not isinstance(offset, int | np.integer) or not fits:
            raise LaunchError(
                f"{wanted}, got {{{offset!r}: a {type(part).__name__}}}", hint=f"{what}={hint}"
            )
    return dict(cast("Mapping[int, Any]", parts))

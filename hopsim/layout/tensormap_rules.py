"""What the driver refuses when it encodes a tensor map, tiled or im2col."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hopsim.errors import TensorMapError
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap_types import NAN_FILL_TYPES, Interleave, OobFill, TensorDataType

if TYPE_CHECKING:
    from hopsim.layout.tensormap import PixelWindow, TensorMapSpec

MAX_RANK = 5
TILED_SOURCE = "CUDA driver API 13.0, cuTensorMapEncodeTiled"
IM2COL_SOURCE = "CUDA driver API 13.0, cuTensorMapEncodeIm2col"
# Source: the driver refuses larger boxes (580.159, H100): tests/silicon/layout.
_MAX_BOX_BYTES = 228 * 1024
_CORNER_LIMITS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
"""Of each corner of an im2col map, by rank."""
_NONE = "1 or more: what has no elements is not copied"


def check(spec: TensorMapSpec) -> None:
    """Raise TensorMapError at the first rule that a map breaks.

    Source: CUDA driver API 13.0, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col; what the documentation leaves open
        (no NaN fill for float64, boxes up to 228 KiB) as driver 580.159 answers.
    """
    if spec.window is None:
        _check_shape(spec)
    else:
        _check_pixels(spec, spec.window)
    _check_memory(spec)
    _check_box(spec)


def _check_shape(spec: TensorMapSpec) -> None:
    rank = spec.rank
    _require(
        spec, 1 <= rank <= MAX_RANK, f"rank must be 1 to {MAX_RANK}, got {rank}", "merge dimensions"
    )
    _check_lengths(spec, (("box", spec.box, rank),))
    _check_ranges(spec)
    _check_range(spec, "box", spec.box, 256, "256", _NONE, "copy wider tiles as several boxes")


def _check_pixels(spec: TensorMapSpec, window: PixelWindow) -> None:
    rank, spatial = spec.rank, spec.rank - 2
    _require(
        spec,
        rank in _CORNER_LIMITS,
        f"the rank of an im2col map must be 3 to 5, got {rank}",
        "dimensions are channels, W, H and D as far as there are such, and N",
    )
    _check_lengths(
        spec, (("lower_corner", window.lower, spatial), ("upper_corner", window.upper, spatial))
    )
    _require(
        spec,
        len(spec.box) == 2,
        f"box must have 2 entries for an im2col map, got {len(spec.box)}",
        "box=(channels of a pixel, pixels of a column)",
    )
    _check_ranges(spec)
    channels, pixels = spec.box
    _require(
        spec,
        1 <= channels <= 256,
        f"channels per pixel must be 1 to 256, got {channels}",
        "copy more channels as several columns" if channels > 256 else _NONE,
    )
    _require(
        spec,
        1 <= pixels <= 1024,
        f"pixels per column must be 1 to 1024, got {pixels}",
        "copy more pixels as several columns" if pixels > 1024 else _NONE,
    )
    lowest, highest = _CORNER_LIMITS[rank]
    for name, corner in (("lower_corner", window.lower), ("upper_corner", window.upper)):
        for i, value in enumerate(corner):
            _require(
                spec,
                lowest <= value <= highest,
                f"{name}[{i}] must be {lowest} to {highest} at rank {rank}, got {value}",
                "corners are counted from the first pixel and from the last one, W first",
            )
    for i, (lower, upper, size) in enumerate(
        zip(window.lower, window.upper, spec.dims[1:], strict=False)
    ):
        _require(
            spec,
            lower <= size - 1 + upper,
            f"no pixel lies between lower_corner[{i}] = {lower} and the last one, {size - 1}, plus "
            f"upper_corner[{i}] = {upper}",
            "lower is minus the padding, upper the padding less the filter's extent but one",
        )


def _check_lengths(spec: TensorMapSpec, more: Sequence[tuple[str, tuple[int, ...], int]]) -> None:
    rank = spec.rank
    for name, values, wanted in (
        ("strides", spec.strides, rank - 1),
        *more,
        ("element_strides", spec.element_strides, rank),
    ):
        _require(
            spec,
            len(values) == wanted,
            f"{name} must have {wanted} entries for rank {rank}, got {len(values)}",
            "all tuples are innermost first; the innermost stride is implied",
        )


def _check_ranges(spec: TensorMapSpec) -> None:
    _check_range(spec, "dims", spec.dims, 1 << 32, "2^32", _NONE, "split it into two dimensions")
    every = "1 takes each element"
    _check_range(spec, "element_strides", spec.element_strides, 8, "8", every, every)


def _check_range(
    spec: TensorMapSpec,
    name: str,
    values: tuple[int, ...],
    top: int,
    shown: str,
    for_less: str,
    for_more: str,
) -> None:
    """Check numbers against 1 and a limit; what to try is another thing below than above."""
    for i, value in enumerate(values):
        hint = for_less if value < 1 else for_more
        _require(spec, 1 <= value <= top, f"{name}[{i}] must be 1 to {shown}, got {value}", hint)


def _check_memory(spec: TensorMapSpec) -> None:
    align = 32 if spec.interleave is Interleave.B32 else 16
    _require(
        spec,
        spec.global_address % align == 0 and 0 <= spec.global_address < 1 << 64,
        f"global address must be a multiple of {align}, got {spec.global_address:#x}",
        "give an array whose data starts on that boundary",
    )
    for i, stride in enumerate(spec.strides, 1):
        _require(
            spec,
            stride % align == 0 and 0 <= stride < 1 << 40,
            f"stride of dimension {i} must be a multiple of {align} bytes below 2^40, got {stride}",
            "pad the rows of the tensor",
        )


def _check_box(spec: TensorMapSpec) -> None:
    item = spec.data_type.itemsize
    inner_bytes = spec.box[0] * item
    inner = "box[0]" if spec.window is None else "the channels of a pixel"
    _require(
        spec,
        inner_bytes % 16 == 0,
        f"{inner} must fill a multiple of 16 bytes, got {spec.box[0]} x {item} = {inner_bytes}",
        f"make {inner} a multiple of {16 // item}",
    )
    if spec.interleave is Interleave.NONE and spec.swizzle is not Swizzle.NONE:
        width = spec.swizzle.width_bytes
        _require(
            spec,
            inner_bytes <= width,
            f"{inner} must fill at most {width} bytes with swizzle {width}B, got {inner_bytes}",
            f"make {inner} at most {width // item} and copy wider tiles as several boxes",
        )
    if spec.interleave is not Interleave.NONE:
        _require(
            spec,
            spec.rank >= 3,
            f"an interleaved layout needs rank 3 or more, got {spec.rank}",
            'interleave="none"',
        )
    # (For float64 the driver refuses it of tiled maps only.)
    fillable = NAN_FILL_TYPES if spec.window is None else NAN_FILL_TYPES | {TensorDataType.FLOAT64}
    _require(
        spec,
        spec.oob_fill is OobFill.ZEROS or spec.data_type in fillable,
        f"NaN fill needs a 16-bit or 32-bit float type, got {spec.data_type.name.lower()}",
        'oob_fill="zeros"',
    )
    box_bytes = item
    steps = spec.element_strides if spec.window is None else (1, 1)
    for size, step in zip(spec.box, steps, strict=True):
        box_bytes *= -(-size // step)
    _require(
        spec,
        box_bytes <= _MAX_BOX_BYTES,
        f"a box must be at most {_MAX_BOX_BYTES} bytes, got {box_bytes}",
        "make the box smaller",
    )


def _require(spec: TensorMapSpec, holds: bool, what: str, hint: str) -> None:
    if not holds:
        source = TILED_SOURCE if spec.window is None else IM2COL_SOURCE
        raise TensorMapError(what, where="tensor map", hint=hint, source=source)

"""Columns of im2col maps against a walk pixel by pixel, their rules, and what the driver answered."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.errors import MachineFault, NotModelled, TensorMapError
from hopsim.layout.box import load_plan
from hopsim.layout.column import column_plan, column_store_plan
from hopsim.layout.column_copy import copy_in, copy_out
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap import PixelWindow, TensorMapSpec, row_major_strides
from hopsim.layout.tensormap_edit import replace_field
from hopsim.layout.tensormap_types import Interleave, OobFill, TensorDataType

PLANE = TensorMapSpec(
    TensorDataType.FLOAT16, 0x1000, (64, 8, 8, 4), (128, 1024, 8192), (64, 32),
    window=PixelWindow((-1, -1), (-1, -1)),
)  # fmt: skip
LINE = dataclasses.replace(
    PLANE,
    dims=(64, 8, 4),
    strides=(128, 1024),
    element_strides=(),
    window=PixelWindow((-1,), (-1,)),
)
VOLUME = dataclasses.replace(
    PLANE, dims=(64, 8, 8, 4, 2), strides=(128, 1024, 8192, 32768), element_strides=(),
    window=PixelWindow((-1,) * 3, (-1,) * 3),
)  # fmt: skip
U8 = TensorDataType.UINT8
BYTES = dataclasses.replace(PLANE, data_type=U8)


def corner(spec: TensorMapSpec, lower: tuple[int, ...], upper: tuple[int, ...]) -> TensorMapSpec:
    return dataclasses.replace(spec, window=PixelWindow(lower, upper))


# What driver 580.159.04 answered on an H200.
ACCEPTED = {
    "rank 3": LINE,
    "rank 4": PLANE,
    "rank 5": VOLUME,
    "lower -128": corner(PLANE, (-128, 0), (0, 0)),
    "upper 127": corner(PLANE, (0, 0), (127, 0)),
    "line lower -32768": corner(LINE, (-32768,), (0,)),
    "volume -16 to 15": corner(VOLUME, (-16,) * 3, (15,) * 3),
    "one pixel": corner(PLANE, (0, 0), (-7, -7)),
    "256 channels": dataclasses.replace(BYTES, box=(256, 32)),
    "1024 pixels": dataclasses.replace(PLANE, box=(8, 1024)),
    "224 KiB": dataclasses.replace(PLANE, box=(112, 1024)),
    "as wide as a swizzle": dataclasses.replace(PLANE, swizzle=Swizzle.B128),
    "less wide": dataclasses.replace(PLANE, box=(16, 32), swizzle=Swizzle.B32),
    "stride 0": dataclasses.replace(PLANE, strides=(0, 1024, 8192)),
    "strides that are no multiples": dataclasses.replace(PLANE, strides=(128, 1040, 8192)),
    "strides that shrink": dataclasses.replace(PLANE, strides=(128, 16, 8192)),
    "steps of 8": dataclasses.replace(PLANE, element_strides=(1, 8, 8, 8)),
    "a step over channels": dataclasses.replace(PLANE, element_strides=(2, 1, 1, 1)),
    "NaN": dataclasses.replace(PLANE, oob_fill=OobFill.NAN),
    "NaN of f64": dataclasses.replace(
        PLANE, data_type=TensorDataType.FLOAT64, box=(16, 32), oob_fill=OobFill.NAN
    ),
}
REFUSED = {
    "rank 2": (dataclasses.replace(PLANE, dims=(64, 8), strides=(128,), window=PixelWindow((), ())),
               "the rank of an im2col map must be 3 to 5, got 2"),
    "lower -129": (corner(PLANE, (-129, 0), (0, 0)), r"lower_corner\[0\] must be -128 to 127 at rank 4, got -129"),
    "upper 128": (corner(PLANE, (0, 0), (128, 0)), r"upper_corner\[0\] must be -128 to 127 at rank 4, got 128"),
    "line lower -32769": (corner(LINE, (-32769,), (0,)), "must be -32768 to 32767 at rank 3"),
    "volume lower -17": (corner(VOLUME, (-17, 0, 0), (0,) * 3), "must be -16 to 15 at rank 5"),
    "volume upper 16": (corner(VOLUME, (0,) * 3, (0, 0, 16)), r"upper_corner\[2\] must be -16 to 15"),
    "an empty window": (corner(PLANE, (0, 0), (-8, 0)), r"no pixel lies between lower_corner\[0\] = 0"),
    "an empty window along H": (corner(PLANE, (0, 4), (0, -4)), r"no pixel lies between lower_corner\[1\] = 4"),
    "no channels": (dataclasses.replace(PLANE, box=(0, 32)), "channels per pixel must be 1 to 256, got 0"),
    "257 channels": (dataclasses.replace(BYTES, box=(257, 32)), "channels per pixel must be 1 to 256, got 257"),
    "8 bytes": (dataclasses.replace(PLANE, box=(4, 32)), "must fill a multiple of 16 bytes, got 4 x 2 = 8"),
    "no pixels": (dataclasses.replace(PLANE, box=(64, 0)), "pixels per column must be 1 to 1024, got 0"),
    "1025 pixels": (dataclasses.replace(PLANE, box=(8, 1025)), "pixels per column must be 1 to 1024, got 1025"),
    "240 KiB": (dataclasses.replace(PLANE, box=(120, 1024)), "a box must be at most 233472 bytes, got 245760"),
    "wider than a swizzle": (dataclasses.replace(PLANE, swizzle=Swizzle.B64),
                             "the channels of a pixel must fill at most 64 bytes with swizzle 64B, got 128"),
    "a stride off 16 bytes": (dataclasses.replace(PLANE, strides=(136, 1024, 8192)), "multiple of 16 bytes"),
    "a step of 0": (dataclasses.replace(PLANE, element_strides=(1, 0, 1, 1)), r"element_strides\[1\] must be 1 to 8"),
    "a step of 9": (dataclasses.replace(PLANE, element_strides=(1, 1, 1, 9)), r"element_strides\[3\] must be 1 to 8"),
    "NaN of bytes": (dataclasses.replace(BYTES, oob_fill=OobFill.NAN), "NaN fill needs"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_driver_takes_can_be_encoded_and_read_back(name: str) -> None:
    spec = ACCEPTED[name]
    assert TensorMapSpec.decode(spec.encode()) == spec


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_driver_refuses_is_refused(name: str) -> None:
    spec, what = REFUSED[name]
    with pytest.raises(TensorMapError, match=what) as caught:
        spec.encode()
    assert caught.value.source == "CUDA driver API 13.0, cuTensorMapEncodeIm2col"


@st.composite
def maps(draw: st.DrawFn) -> TensorMapSpec:
    data_type = draw(st.sampled_from([U8, TensorDataType.UINT16, TensorDataType.UINT32]))
    item = data_type.itemsize
    spatial = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 5)) for _ in range(spatial)]
    lower = [draw(st.integers(-2, size - 1)) for size in sizes]
    upper = [draw(st.integers(low - size + 1, 2)) for low, size in zip(lower, sizes, strict=True)]
    swizzle = draw(st.sampled_from(list(Swizzle)))
    width = swizzle.width_bytes if swizzle else 64
    channels = 16 // item * draw(st.integers(1, width // 16))
    held = draw(st.integers(1, 2 * channels))
    dims = (held, *sizes, draw(st.integers(1, 3)))
    padded = (-(-held * item // 16) * 16 // item, *dims[1:])
    steps = (1, *(draw(st.integers(1, 3)) for _ in range(spatial + 1)))
    return TensorMapSpec(
        data_type, 0x1000, dims, row_major_strides(padded, item), (channels, draw(st.integers(1, 30))), steps,
        swizzle=swizzle, window=PixelWindow(tuple(lower), tuple(upper)),
    )  # fmt: skip


@st.composite
def columns(
    draw: st.DrawFn,
) -> tuple[TensorMapSpec, tuple[int, ...], tuple[int, ...], int]:
    spec = draw(maps())
    assert spec.window is not None
    unit = 16 // spec.data_type.itemsize
    start = [
        draw(st.integers(low, size - 1 + up))
        for low, up, size in zip(*spec.window, spec.dims[1:-1], strict=True)
    ]
    coords = (unit * draw(st.integers(-1, 2)), *start, draw(st.integers(-1, spec.dims[-1])))
    offsets = tuple(draw(st.integers(0, 4)) for _ in start)
    return spec, coords, offsets, 128 * draw(st.integers(0, 8))


def walked(spec: TensorMapSpec, coords: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the pixels of a column one after the other, before offsets, as (w, (h, (d)), image)."""
    window = spec.window
    assert window is not None
    place, image = list(coords[1:-1]), coords[-1]
    found: list[tuple[int, ...]] = []
    for _ in range(spec.box[1]):
        found.append((*place, image))
        for axis, low in enumerate(window.lower):
            place[axis] += spec.element_strides[axis + 1]
            if place[axis] <= spec.dims[axis + 1] - 1 + window.upper[axis]:
                break
            place[axis] = low
        else:
            image += spec.element_strides[-1]
    return found


@settings(deadline=None, max_examples=300)
@given(columns())
def test_a_column_has_the_elements_of_a_walk(
    given_column: tuple[TensorMapSpec, tuple[int, ...], tuple[int, ...], int],
) -> None:
    spec, coords, offsets, smem_addr = given_column
    item = spec.data_type.itemsize
    size = spec.strides[-1] * spec.dims[-1]
    memory = np.random.default_rng(1).integers(1, 256, size, np.uint8)
    shared = np.full(1024 + 128 * 9 + spec.geometry.shared_bytes, 0xA5, np.uint8)
    plan = column_plan(spec, coords, offsets, smem_addr)
    copy_in(plan, memory, spec.global_address, shared)

    expected = np.full_like(shared, 0xA5)
    touched: set[int] = set()
    for pixel, place in enumerate(walked(spec, coords)):
        moved = (*(p + o for p, o in zip(place[:-1], offsets, strict=True)), place[-1])
        for c, byte in product(range(spec.box[0]), range(item)):
            at = smem_addr + pixel * spec.geometry.pitch_bytes + c * item + byte
            at ^= (at >> 3) & spec.swizzle.chunk_mask if spec.swizzle else 0
            whole = (coords[0] + c, *moved)
            if all(0 <= x < dim for x, dim in zip(whole, spec.dims, strict=True)):
                source = whole[0] * item + byte
                source += sum(x * s for x, s in zip(moved, spec.strides, strict=True))
                expected[at] = memory[source]
                touched.add(spec.global_address + source)
            else:
                expected[at] = 0
    np.testing.assert_array_equal(shared, expected)
    assert plan.inside_bytes == len(touched) or spec.element_strides[-1] == 0
    assert {address for start, stop in plan.runs() for address in range(start, stop)} == touched
    assert plan.sector_addresses().tolist() == sorted({one // 32 * 32 for one in touched})
    assert plan.lines().tolist() == sorted({one // 128 * 128 for one in touched})


@settings(deadline=None, max_examples=100)
@given(columns())
def test_what_was_stored_can_be_loaded_again(
    given_column: tuple[TensorMapSpec, tuple[int, ...], tuple[int, ...], int],
) -> None:
    spec, coords, _, smem_addr = given_column
    assert spec.window is not None
    window = PixelWindow(
        tuple(max(0, low) for low in spec.window.lower), tuple(min(0, up) for up in spec.window.upper)
    )  # fmt: skip
    inside = dataclasses.replace(spec, window=window)
    try:
        inside.validate()
    except TensorMapError:
        return
    start = (max(0, coords[0]), *window.lower, max(0, coords[-1]))
    memory = np.zeros(spec.strides[-1] * spec.dims[-1] + 64, np.uint8)
    shared = np.random.default_rng(2).integers(1, 256, 8192 + spec.geometry.shared_bytes, np.uint8)
    stored = column_store_plan(inside, start, smem_addr)
    copy_out(stored, shared, memory, spec.global_address)
    again = np.zeros_like(shared)
    loaded = column_plan(inside, start, (0,) * (spec.rank - 2), smem_addr)
    copy_in(loaded, memory, spec.global_address, again)
    assert np.count_nonzero(again) == loaded.inside_bytes
    kept = again != 0
    np.testing.assert_array_equal(again[kept], shared[kept])


@pytest.mark.parametrize(
    ("spec", "coords", "offsets", "what"),
    [
        (PLANE, (0, -2, 0, 0), (0, 0), r"starts at W = -2, outside of the window of its map, -1 to 6"),
        (PLANE, (0, 7, 0, 0), (0, 0), r"starts at W = 7, outside of the window of its map, -1 to 6"),
        (PLANE, (0, 0, -2, 0), (0, 0), r"starts at H = -2"),
        (VOLUME, (0, 0, 0, 5, 0), (0, 0, 0), r"starts at D = 5, outside of the window of its map, -1 to 2"),
        (PLANE, (4, 0, 0, 0), (0, 0), "innermost coordinate must be a multiple of 8 elements"),
        (PLANE, (0, 0, 0), (0,), "a tensor map of rank 4 needs 4 coordinates, got 3"),
        (PLANE, (0, 0, 0, 0), (0,), "an im2col map of rank 4 needs 2 offsets, got 1"),
        (dataclasses.replace(PLANE, window=None, box=(64, 4, 4, 1)), (0, 0, 0, 0), (0, 0),
         "an im2col copy through a tiled tensor map"),
    ],
)  # fmt: skip
def test_where_an_h200_traps(
    spec: TensorMapSpec, coords: tuple[int, ...], offsets: tuple[int, ...], what: str
) -> None:
    with pytest.raises(MachineFault, match=what):
        column_plan(spec, coords, offsets, 0)


@pytest.mark.parametrize(
    "window", [((-1, 0), (0, 0)), ((0, -1), (0, 0)), ((0, 0), (1, 0)), ((0, 0), (0, 1))]
)
def test_stores_through_a_window_that_leaves_the_tensor_trap(
    window: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    spec = corner(PLANE, *window)
    with pytest.raises(MachineFault, match="whose window leaves the tensor"):
        column_store_plan(spec, (0, 2, 2, 0), 0)


def test_a_tiled_copy_through_an_im2col_map_traps() -> None:
    with pytest.raises(MachineFault, match="a tiled copy through an im2col tensor map"):
        load_plan(PLANE, (0, 0, 0, 0), 0)


def test_an_interleaved_map_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="interleave B16"):
        column_plan(dataclasses.replace(PLANE, interleave=Interleave.B16), (0,) * 4, (0, 0), 0)


def test_edits_of_an_im2col_map_are_not_modelled() -> None:
    with pytest.raises(NotModelled, match="tensormap.replace on an im2col map"):
        replace_field(bytearray(PLANE.encode()), "global_address", 0, 0x2000)

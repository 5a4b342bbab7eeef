"""Probes of im2col copies: columns of pixels of many windows, steps, offsets and starts."""

from __future__ import annotations

import dataclasses
from typing import Any

from hopsim.kernels.probes.bits import below
from hopsim.kernels.probes.column import STORED, Column, ColumnProbe


class _Choice:
    """Numbers that look random and are always the same."""

    def __init__(self, seed: int) -> None:
        self._numbers = below(seed, 64, 1 << 20).tolist()

    def below(self, count: int) -> int:
        return int(self._numbers.pop()) % count

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def of(self, *values: Any) -> Any:
        return values[self.below(len(values))]


def _random(seed: int, rank: int, op: str = "load") -> Column:
    """Return a convolution's column: a filter with dilation, padding and strides, from some pixel on."""
    r = _Choice(seed)
    dtype = r.of("uint16", "uint16", "uint8", "uint32") if op in ("load", "store") else "uint32"
    item = STORED[dtype].itemsize
    swizzle = r.of("none", "32B", "64B", "128B")
    width = 128 if swizzle == "none" else int(swizzle[:-1])
    channels = 16 * r.between(1, width // 16) // item
    spatial = rank - 2
    sizes = [r.between(2, 9 if rank < 5 else 5) for _ in range(spatial)]
    extents = [r.between(1, min(3, size)) for size in sizes]
    padding = [r.below(extent) for extent in extents]
    steps = [r.between(1, 3) for _ in range(spatial)]
    images = r.between(1, 3)
    held = max(1, channels + r.of(0, 0, 1, -1, 16) * r.of(1, 8))
    lower = tuple(-p for p in padding)
    upper = tuple(p - e + 1 for p, e in zip(padding, extents, strict=True))
    upper = tuple(max(u, low - size + 1) for u, low, size in zip(upper, lower, sizes, strict=True))
    if op != "load":
        lower = tuple(r.below(2) for _ in range(spatial))
        upper = (0,) * spatial
    start = [
        low + step * r.below((size - 1 + up - low) // step + 1)
        for low, up, size, step in zip(lower, upper, sizes, steps, strict=True)
    ]
    first = 16 // item * r.of(0, 0, 0, 1, 2) * (1 if op != "load" else r.of(1, -1))
    offsets = tuple(r.below(extent) for extent in extents) if op == "load" else ()
    pad = -held % (16 // item)
    return Column(
        (images, *reversed(sizes), held), channels, r.between(1, 40), lower, upper,
        (first, *start, r.below(images)), offsets, (1, *steps, 1), dtype, swizzle, "zeros", 128 * r.below(9), op, pad,
    )  # fmt: skip


_PLANE = Column((2, 5, 6, 8), 8, 24, (-1, -1), (-1, -1), (0, -1, -1, 0), (1, 2))
"""Two images of 5 x 6 pixels under a filter of 3 x 3 with a padding of 1."""


def _changed(**changes: Any) -> Column:
    return dataclasses.replace(_PLANE, **changes)


def _corners() -> dict[str, Column]:
    """Return columns that rules which agree elsewhere would copy differently."""
    far = 0xFFFF
    found = {"plane": _PLANE}
    for name, start in {
        "before_the_images": (0, 0, 0, -1),
        "far_before_the_images": (0, 0, 0, -2),
        "last_image": (0, 2, 2, 1),
        "after_the_images": (0, 0, 0, 2),
        "channel_8": (8, 0, 0, 0),
        "channel_minus_8": (-8, 0, 0, 0),
    }.items():
        found[f"start_{name}"] = _changed(start=start)
    for name, offsets in {
        "0": (0, 0), "5_0": (5, 0), "0_6": (0, 6), "127": (127, 0), "128": (128, 0), "255": (255, 255),
        "256": (256, 1), "32767": (32767, 0), "minus_1": (far, 0), "0_minus_1": (0, far), "minus_2": (far - 1, far - 1),
    }.items():  # fmt: skip
        found[f"offset_{name}"] = _changed(offsets=offsets)
    for name, steps in {
        "2_1": (1, 2, 1, 1), "1_2": (1, 1, 2, 1), "3_2": (1, 3, 2, 1), "8_8": (1, 8, 8, 1), "image_2": (1, 1, 1, 2),
        "channel_2": (2, 1, 1, 1), "all_2": (2, 2, 2, 2),
    }.items():  # fmt: skip
        found[f"steps_{name}"] = _changed(steps=steps)
        found[f"steps_{name}_from_1"] = _changed(steps=steps, start=(0, 0, 1, 0), pixels=17)
    for name, corners in {
        "no_padding": ((0, 0), (-2, -2)), "wide": ((-2, -3), (2, 3)), "inside": ((1, 2), (-2, -1)),
        "one_pixel": ((2, 2), (-3, -2)), "outside": ((-5, 0), (-8, 0)), "far": ((-128, -128), (127, 127)),
    }.items():  # fmt: skip
        found[f"corners_{name}"] = _changed(
            lower=corners[0], upper=corners[1], start=(0, *corners[0], 0)
        )
    found["line"] = Column((3, 9, 16), 16, 20, (-2,), (-1,), (0, -2, 0), (1,))
    found["line_far"] = Column((1, 40, 8), 8, 64, (-32768,), (32767,), (0, -10, 0), (3,))
    found["line_offset"] = Column((1, 40, 8), 8, 16, (0,), (0,), (0, 0, 0), (far,))
    found["line_offset_256"] = Column((1, 400, 8), 8, 16, (0,), (0,), (0, 0, 0), (300,))
    found["volume"] = Column(
        (2, 3, 4, 5, 8), 8, 70, (-1, -1, -1), (-1, -1, -1), (0, 1, -1, 0, 0), (1, 0, 2)
    )
    for name, offsets in {"31": (31, 0, 0), "32": (32, 0, 0), "minus_1": (far, far, far)}.items():
        found[f"volume_offset_{name}"] = Column(
            (2, 3, 4, 5, 8), 8, 30, (0, 0, 0), (0, 0, 0), (0, 1, 1, 0, 0), offsets
        )
    found["many_pixels"] = _changed(pixels=1024, shape=(9, 12, 12, 8))
    found["many_channels"] = Column(
        (1, 4, 4, 256), 256, 9, (0, 0), (0, 0), (0, 1, 1, 0), (0, 1), dtype="uint8"
    )
    found["nan"] = _changed(dtype="float16", oob_fill="nan")
    found["nan_f32"] = _changed(dtype="float32", oob_fill="nan", channels=8)
    found["nan_f64"] = _changed(dtype="float64", oob_fill="nan")
    found["tf32"] = _changed(dtype="tfloat32", channels=8, pixels=60)
    found["ragged_channels"] = _changed(shape=(2, 5, 6, 13), channels=16, pad=3)
    found["ragged_swizzled"] = _changed(shape=(2, 5, 6, 29), channels=32, pad=3, swizzle="64B")
    found["narrow_swizzled"] = _changed(swizzle="128B")
    return found


def _stores() -> dict[str, Column]:
    found: dict[str, Column] = {}
    plain = _changed(op="store", offsets=(), lower=(0, 0), upper=(0, 0), start=(0, 1, 1, 0))
    for name, changes in {
        "store": {},
        "store_window": {"lower": (1, 2), "upper": (-1, -1), "start": (0, 1, 2, 0)},
        "store_steps": {"steps": (1, 2, 3, 1), "start": (0, 0, 0, 0)},
        "store_last": {"start": (0, 3, 3, 1)},
        "store_ragged": {"shape": (2, 5, 6, 13), "channels": 16, "pad": 3},
        "store_ragged_swizzled": {
            "shape": (2, 5, 6, 29),
            "channels": 32,
            "pad": 3,
            "swizzle": "64B",
        },
        "store_channel_8": {"shape": (2, 5, 6, 16), "start": (8, 0, 0, 0)},
        "add": {"op": "add", "dtype": "uint32", "channels": 4},
        "add_f16": {"op": "add", "dtype": "float16"},
        "max": {"op": "max", "dtype": "uint32", "channels": 8},
        "xor": {"op": "xor", "dtype": "uint32", "channels": 8, "swizzle": "32B"},
    }.items():
        found[name] = dataclasses.replace(plain, **changes)
    return found


def probes() -> list[ColumnProbe]:
    """Return the probes of the group."""
    columns = {**_corners(), **_stores()}
    for rank in (3, 4, 5):
        for i in range(24):
            columns[f"rank{rank}_{i}"] = _random(1000 * rank + i, rank)
        for i in range(6):
            columns[f"rank{rank}_store_{i}"] = _random(1000 * rank + 500 + i, rank, "store")
        columns[f"rank{rank}_add"] = _random(1000 * rank + 700, rank, "add")
    return [ColumnProbe(f"im2col.{name}", column) for name, column in columns.items()]

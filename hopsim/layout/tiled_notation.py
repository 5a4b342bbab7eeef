"""Layouts as values, in CuTe's notation `shape:stride`.

Coordinates go left to right, the first mode fastest.  Only what a printed layout needs is here; the
algebra is `hopsim.layout.tiled`.

>>> layout = parse_layout("((4,8),2):((16,1),8)")
>>> layout.size, layout(5), str(layout)
(64, 17, '((4,8),2):((16,1),8)')
>>> str(parse_layout("(16,8)"))
'(16,8):(1,16)'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import ConfigError

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"

_SOURCE = "CUTLASS 4.2, media/docs/cpp/cute/01_layout.md"
_TOKEN = re.compile(r"\s*(_?\d+|[(),])")


@dataclass(frozen=True, slots=True)
class CuteLayout:
    """A function from coordinates to offsets.

    Args:
        shape, stride: integers, or tuples nested alike.
    """

    shape: IntTuple
    stride: IntTuple

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return product(self.shape)

    @property
    def rank(self) -> int:
        """Modes at the top."""
        return 1 if isinstance(self.shape, int) else len(self.shape)

    def mode(self, index: int) -> CuteLayout:
        """Return one top-level mode."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return self
        return CuteLayout(self.shape[index], self.stride[index])

    def __call__(self, index: int) -> int:
        """Return the offset of the coordinate with flat index `index`."""
        offset = 0
        for extent, step in zip(flat(self.shape), flat(self.stride), strict=True):
            index, at = divmod(index, extent)
            offset += at * step
        return offset

    def offsets(self) -> NDArray[np.int64]:
        """Return the offset of every coordinate, in the order of flat indices."""
        found = np.zeros(1, np.int64)
        for extent, step in zip(flat(self.shape), flat(self.stride), strict=True):
            found = (np.arange(extent, dtype=np.int64)[:, None] * step + found).ravel()
        return found

    def __str__(self) -> str:
        return f"{show(self.shape)}:{show(self.stride)}"


def flat(value: IntTuple) -> tuple[int, ...]:
    """Return the leaves from left to right."""
    if isinstance(value, int):
        return (value,)
    return tuple(leaf for part in value for leaf in flat(part))


def product(value: IntTuple) -> int:
    """Return the product of the leaves."""
    size = 1
    for leaf in flat(value):
        size *= leaf
    return size


def show(value: IntTuple) -> str:
    """Return a nested tuple as CuTe prints it."""
    if isinstance(value, int):
        return str(value)
    return "(" + ",".join(show(part) for part in value) + ")"


def compact(shape: IntTuple) -> CuteLayout:
    """Return the layout without gaps, first mode fastest (CuTe's LayoutLeft)."""
    stride, _ = _compact(shape, 1)
    return CuteLayout(shape, stride)


def _compact(shape: IntTuple, step: int) -> tuple[IntTuple, int]:
    if isinstance(shape, int):
        return step, step * shape
    strides: list[IntTuple] = []
    for part in shape:
        stride, step = _compact(part, step)
        strides.append(stride)
    return tuple(strides), step


def parse_layout(text: str) -> CuteLayout:
    """Return the layout that `text` writes; without strides the first mode is fastest.

    Raises: ConfigError: the text is no layout, or shape and stride are not nested alike.
    """
    shape_text, colon, stride_text = text.partition(":")
    shape = _parse(shape_text, text)
    if any(extent < 1 for extent in flat(shape)):
        raise _refuse(text, "extents of at least 1")
    if not colon:
        return compact(shape)
    stride = _parse(stride_text, text)
    if not _alike(shape, stride):
        raise _refuse(text, "shape and stride nested alike")
    return CuteLayout(shape, stride)


def _alike(shape: IntTuple, stride: IntTuple) -> bool:
    if isinstance(shape, int) or isinstance(stride, int):
        return isinstance(shape, int) and isinstance(stride, int)
    return len(shape) == len(stride) and all(map(_alike, shape, stride))


def _parse(text: str, whole: str) -> IntTuple:
    tokens: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _refuse(whole, "numbers, commas and parentheses")
        tokens.append(found[1])
        at = found.end()
    value, rest = _value(tokens, whole)
    if rest:
        raise _refuse(whole, "one shape, then : and one stride")
    return value


def _value(tokens: list[str], whole: str) -> tuple[IntTuple, list[str]]:
    if not tokens:
        raise _refuse(whole, "a number or (")
    head, rest = tokens[0], tokens[1:]
    if head not in "(),":
        return int(head.lstrip("_")), rest
    if head != "(":
        raise _refuse(whole, "a number or (")
    parts: list[IntTuple] = []
    while True:
        part, rest = _value(rest, whole)
        parts.append(part)
        if not rest:
            raise _refuse(whole, ") at the end")
        separator, rest = rest[0], rest[1:]
        if separator == ")":
            return tuple(parts), rest
        if separator != ",":
            raise _refuse(whole, "a comma between numbers")


def _refuse(text: str, expected: str) -> ConfigError:
    return ConfigError(
        f"expected {expected}, got {text!r}", where="layout", hint="(16,8):(8,1)", source=_SOURCE
    )


def nested(value: object) -> IntTuple:
    """Return what an algebra library holds (ints, tuples, lists) as an IntTuple."""
    if isinstance(value, tuple | list):
        return tuple(nested(part) for part in cast("tuple[object, ...]", value))
    assert isinstance(value, int), value
    return value

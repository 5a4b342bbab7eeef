"""Compare two arrays bit for bit, and say where they first differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from hopsim.errors import LaunchError
from hopsim.report.quantities import grouped, plural


@dataclass(frozen=True, slots=True)
class Difference:
    """The first element that differs: its index, and both values as numbers and as bits."""

    index: tuple[int, ...]
    expected: str
    expected_bits: str
    got: str
    got_bits: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many elements of `name` have the expected bits.

    Args:
        against: what it was compared with, in words.
        elements: all of them.  different: those with other bits.
    """

    name: str
    against: str
    elements: int
    different: int
    first: Difference | None

    @property
    def is_equal(self) -> bool:
        """Whether every bit is as expected."""
        return self.different == 0

    def __rich__(self) -> Text:
        if self.is_equal:
            text = Text(f"{self.name} has the bits of {self.against}: {_all(self.elements)} equal")
            text.stylize("green")
            return text
        first = self.first
        assert first is not None, self
        share = f"{grouped(self.different)} of {plural(self.elements, 'element')}"
        where = "[" + ", ".join(map(str, first.index)) + "]"
        text = Text(f"{self.name} differs from {self.against} in {share}", style="red")
        text.append(
            f"\nfirst at {self.name}{where}: expected {first.expected} ({first.expected_bits}),"
            f" got {first.got} ({first.got_bits})"
        )
        return text


def compare_bits(name: str, got: NDArray[Any], expected: NDArray[Any], against: str) -> Comparison:
    """Return the comparison of two arrays of one shape and type.

    NaNs are compared by their bits as everything else is; -0 differs from 0.

    Raises: LaunchError: shapes or types differ.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise LaunchError(
            f"{name} cannot be compared with {against}: it is {got.dtype} {list(got.shape)},"
            f" the other {expected.dtype} {list(expected.shape)}"
        )
    left, right = _words(got), _words(expected)
    wrong = np.flatnonzero((left != right).any(axis=1))
    first = None
    if len(wrong):
        flat = int(wrong[0])
        index = tuple(int(i) for i in np.unravel_index(flat, got.shape)) if got.shape else ()
        first = Difference(
            index,
            _number(expected, flat), _bits(right[flat]),
            _number(got, flat), _bits(left[flat]),
        )  # fmt: skip
    return Comparison(name, against, got.size, len(wrong), first)


def _all(elements: int) -> str:
    return "its one element" if elements == 1 else f"all {grouped(elements)} elements"


def _words(array: NDArray[Any]) -> NDArray[np.uint8]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(len(flat), array.dtype.itemsize)


def _bits(raw: NDArray[np.uint8]) -> str:
    return "0x" + raw[::-1].tobytes().hex()


def _number(array: NDArray[Any], flat: int) -> str:
    return str(array.reshape(-1)[flat])

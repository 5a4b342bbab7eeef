"""What a caller gives, as what a launch needs: whole numbers, element types, arrays of host memory, kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import Kernel, Module

NOT_NUMBERS: Final = "OSUMm"
"""numpy's kinds of objects, texts and dates: no kernel reads them."""


def whole_numbers(value: object) -> tuple[int, ...] | None:
    """Return a whole number, numpy's too, or several of them as a tuple; None for anything else.

    >>> whole_numbers(np.uint8(64)), whole_numbers([8, np.int64(4)]), whole_numbers("64"), whole_numbers(1.5)
    ((64,), (8, 4), None, None)
    """
    try:
        if isinstance(value, Iterable):
            return tuple(operator.index(one) for one in cast("Iterable[SupportsIndex]", value))
        return (operator.index(cast("SupportsIndex", value)),)
    except TypeError:
        return None


def whole_number(value: object, what: str, where: str, hint: str) -> int:
    """Return a whole number.

    Args:
        what: the name of the argument.  where, hint: of the error.
    Raises: LaunchError: it is something else.
    """
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise LaunchError(
            f"{what}: expected a whole number, got {value!r}", where=where, hint=hint
        ) from None


def extents_of(shape: object) -> tuple[int, ...]:
    """Return the extents of an array, outermost first.

    Raises: LaunchError: one is negative or no whole number.
    """
    extents = whole_numbers(shape)
    if extents is None or any(extent < 0 for extent in extents):
        raise LaunchError(
            f"shape: expected a whole number or several, none below 0, got {shape!r}",
            hint="gpu.empty((128, 64), np.float16)",
        )
    return extents


def element_type(dtype: Any) -> np.dtype[Any]:
    """Return the element type of an array.

    Raises: LaunchError: numpy knows none of that name, or it cannot lie in device memory.
    """
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise LaunchError(
            f"dtype: expected an element type of numpy or ml_dtypes, got {dtype!r}",
            hint="np.float16, ml_dtypes.bfloat16",
        ) from None
    if kind.hasobject or kind.kind in NOT_NUMBERS:
        raise LaunchError(
            f"dtype: expected numbers, got {kind}", hint="x.astype(np.float32), or another type"
        )
    if not kind.isnative:
        raise LaunchError(
            f"dtype: expected little-endian numbers, as a GPU reads them, got {kind}",
            hint='x.astype(x.dtype.newbyteorder("<"))',
        )
    return kind


def host_array(values: Any) -> NDArray[Any]:
    """Return what goes to the device as a numpy array.

    Raises: LaunchError: the rows differ in length, or see `element_type`.
    """
    try:
        host: NDArray[Any] = np.asarray(values)
    except ValueError as error:
        raise LaunchError(
            f"expected an array of numbers: {error}", hint="rows of one length, of one type"
        ) from None
    element_type(host.dtype)
    return host


def host_copy(read: Callable[[], NDArray[Any]], dtype: Any, copy: bool | None) -> NDArray[Any]:
    """Return what `__array__` of a device's array gives.

    Raises: ValueError: no copy is wanted, and there is no other way to the host.
    """
    if copy is False:
        raise ValueError("a device's memory is copied to the host, and copy=False is asked for")
    return read() if dtype is None else read().astype(dtype)


def check_contents(values: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Check that values can replace those of an array.

    Raises: LaunchError: another shape or type.
    """
    if values.shape != shape or values.dtype != dtype:
        raise LaunchError(
            f"the array holds {dtype} {shape}, got {values.dtype} {values.shape}",
            hint="make a new array with gpu.array(x)",
        )


def place_of(kernel: Kernel) -> str:
    """Return where the errors of a kernel's launch are."""
    return f"{kernel.module.path}: kernel {kernel.name}"


def check_kernel(kernel: object) -> None:
    """Check that a kernel is one, before it is asked for its parameters.

    Raises: LaunchError: it is its name or its module.
    """
    if isinstance(kernel, Kernel):
        return
    hint = 'hs.load("FILE.ptx")["NAME"]'
    if isinstance(kernel, Module):
        hint = " or ".join(f'module["{name}"]' for name in kernel) or "a module with an .entry"
    raise LaunchError(
        f"kernel: expected an entry of a module, got a {type(kernel).__name__}", hint=hint
    )

"""The arrays of a launch file: from .npy, seeded random, constant, or not initialised."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast
from zipfile import BadZipFile

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from hopsim.cli.encoding import file_name
from hopsim.cli.toml_table import TomlTable
from hopsim.errors import ConfigError
from hopsim.toml_text import TooLarge

_OWN: Final = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
DTYPES: Final = (
    "float16", "float32", "float64", *_OWN,
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
)  # fmt: skip
DISTRIBUTIONS: Final = ("normal", "uniform", "integers")
MOST_BYTES: Final = 1 << 37
"""A mistyped shape is refused before memory is asked for; more than any Hopper GPU holds is one."""

Fill = Callable[[np.random.Generator], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array of a launch.

    Args:
        fill: makes the contents; None leaves the array uninitialised.
        save: where to write it after the run.  compare: the .npy with the bits it must then have.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Fill | None
    save: Path | None
    compare: Path | None

    def values(self, seed: int, position: int) -> NDArray[Any] | None:
        """Return the contents; the same for the same seed and position in the file."""
        if self.fill is None:
            return None
        with np.errstate(all="ignore"):
            return self.fill(np.random.default_rng([seed, position]))


def read_array(table: TomlTable, folder: Path) -> ArraySpec:
    """Return the array that a table describes.

    Args:
        folder: what paths are relative to.
    Raises: ConfigError.
    """
    sources = [name for name in ("npy", "random", "fill", "uninitialised") if table.has(name)]
    if len(sources) != 1:
        got = f"got {' and '.join(sources)}" if sources else "got none"
        raise table.error(
            f"expected one of npy, random, fill, uninitialised; {got}", hint='random = "normal"'
        )
    dtype = dtype_named(table.choice("dtype", DTYPES)) if table.has("dtype") else None
    shape = table.numbers("shape")
    fill: Fill | None = None
    if sources[0] == "npy":
        host = read_npy(
            folder / file_name(table.required("npy", str, '"x.npy"')), dtype, table.where
        )
        if shape is not None and shape != host.shape:
            raise table.error(
                f"shape: expected {list(shape)}, got {list(host.shape)} from the file",
                hint=f"shape = {list(host.shape)}, or leave it out: the file knows it",
            )
        shape, dtype = host.shape, host.dtype
        fill = _constant(host)
    else:
        if dtype is None:
            raise table.missing("dtype", 'dtype = "float32"')
        if shape is None or any(extent < 1 for extent in shape):
            raise table.error(
                f"shape: expected positive extents, outermost first, got {table.entries['shape']!r}"
                if shape is not None
                else "shape is missing: expected positive extents, outermost first",
                hint="shape = [128, 64]",
            )
        if np.prod(shape, dtype=float) * dtype.itemsize > MOST_BYTES:
            raise table.error(f"shape {list(shape)} of {dtype} is more than a GPU holds")
        if sources[0] == "random":
            fill = _random(table, shape, dtype)
        elif sources[0] == "fill":
            fill = _constant(_full(table, shape, dtype))
        elif not table.required("uninitialised", bool, "true"):
            raise table.error("uninitialised = false says nothing", hint="fill = 0")
    save, compare = _file(table, "save", folder), _file(table, "compare", folder)
    table.done()
    return ArraySpec(shape, dtype, fill, save, compare)


def _file(table: TomlTable, name: str, folder: Path) -> Path | None:
    """Return the path that an entry names, or None where there is no such entry."""
    path = table.text(name, "a file", '"x.npy"', f'{name} = "x.npy", or leave it out')
    return None if path is None else folder / file_name(path)


def dtype_named(name: str) -> np.dtype[Any]:
    """Return a numpy type, ml_dtypes included."""
    return np.dtype(getattr(ml_dtypes, name) if name in _OWN else name)


def read_npy(path: Path, dtype: np.dtype[Any] | None, where: str) -> NDArray[Any]:
    """Return an array from a .npy file, its bits read as `dtype` if the file does not know the type's name.

    Raises: ConfigError.
    """
    try:
        host: NDArray[Any] = _loaded(path)
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror or error}",
            where=where,
            hint="np.save writes one; its path is relative to the launch file",
        ) from None
    except (ValueError, EOFError, BadZipFile):
        # numpy's own words advise options of its function.
        raise ConfigError(
            f"{path} is no .npy file of numbers, or ends too early",
            where=where,
            hint="np.save of an array of numbers writes one",
        ) from None
    if not host.dtype.isnative:
        raise ConfigError(
            f"{path} holds {host.dtype}, expected little-endian numbers, as a GPU reads them",
            where=where,
            hint='x.astype(x.dtype.newbyteorder("<"))',
        )
    if dtype is None or host.dtype == dtype:
        if host.dtype.kind not in "iufb" and host.dtype.name not in _OWN:
            raise ConfigError(
                f"{path} holds {host.dtype}: say what it is", where=where, hint='dtype = "bfloat16"'
            )
        return host
    # numpy writes bfloat16 and fp8 as raw bytes; unsigned integers of the same width are bits too.
    if host.dtype.kind in "Vu" and host.dtype.itemsize == dtype.itemsize:
        return host.view(dtype)
    raise ConfigError(
        f"{path} holds {host.dtype}, expected {dtype}",
        where=where,
        hint="leave dtype out, or convert",
    )


def _loaded(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file.

    Raises: OSError, ValueError, EOFError, BadZipFile: it is none; an .npz holds several.
    """
    with path.open("rb") as file:
        found: object = np.load(file, allow_pickle=False)
    if not isinstance(found, np.ndarray):
        raise ValueError(path)
    return cast("NDArray[Any]", found)


def _constant(host: NDArray[Any]) -> Fill:
    return lambda rng: host


def _full(table: TomlTable, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    value = table.entries["fill"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise table.error(f"fill: expected a number, got {value!r}")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not isinstance(value, int) or not limits.min <= value <= limits.max:
            raise table.error(
                f"fill: {value!r} does not fit {dtype} ({limits.min} to {limits.max})"
            )
    return np.full(shape, number_of(value, dtype, table, "fill"), dtype)


def number_of(value: float, dtype: np.dtype[Any], table: TomlTable, name: str) -> np.generic:
    """Return a number in a type that holds integers only of its range, and floats as large as it or infinite.

    Raises: ConfigError: a finite one becomes infinite or no number, or the type has no infinity.
    """
    if isinstance(value, TooLarge):
        raise table.error(
            f"{name}: {value!r} does not fit {dtype} (up to {_most(dtype):g})",
            hint=f"{name} = inf, where infinity is meant",
        )
    with np.errstate(all="ignore"):
        try:
            exact: NDArray[Any] = np.asarray([float(value)])
        except OverflowError:
            # A whole number that no double holds.
            exact = np.asarray([np.inf])
            found = np.asarray([np.nan]).astype(dtype)
        else:
            found = np.asarray([value]).astype(dtype)
    if dtype.kind not in "iu" and not _keeps(exact, found):
        raise table.error(f"{name}: {value!r} does not fit {dtype} (up to {_most(dtype):g})")
    return found[0]


def _keeps(exact: NDArray[Any], found: NDArray[Any]) -> bool:
    """Whether what is finite, infinite or no number is so still."""
    got = found.astype(np.float64)
    same_ends: Any = np.isfinite(exact) == np.isfinite(got)
    return bool(np.all(same_ends & (np.isnan(exact) == np.isnan(got))))


def _most(dtype: np.dtype[Any]) -> float:
    finfo: Any = ml_dtypes.finfo
    return float(finfo(dtype).max)


def _random(table: TomlTable, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Fill:
    name = table.choice("random", DISTRIBUTIONS)
    if name == "normal":
        mean, deviation = _bound(table, "mean", 0.0), _bound(table, "std", 1.0)
        if deviation < 0:
            raise table.error(f"std: expected 0 or more, got {deviation}")
        if dtype.kind in "iu" and not (table.has("std") and deviation >= 1):
            raise _fractions(
                table,
                f"normal numbers of std {deviation:g}",
                dtype,
                "a std of 1 or more: they are rounded",
            )
        return _drawn(
            table,
            f"normal numbers of mean {mean:g} and std {deviation:g}",
            dtype,
            lambda rng: rng.normal(mean, deviation, shape),
        )
    low = _bound(table, "low", 0.0 if name == "uniform" else -8.0)
    high = _bound(table, "high", 1.0 if name == "uniform" else 8.0)
    if low > high:
        raise table.error(f"low = {low:g} is above high = {high:g}")
    _check_range(table, name, dtype, low, high)
    if name == "uniform":
        if dtype.kind not in "iu":
            said = f"uniform numbers from {low:g} to {high:g}"
            return _drawn(table, said, dtype, lambda rng: rng.uniform(low, high, shape))
        if not (table.has("low") and table.has("high") and low == int(low) and high == int(high)):
            raise _fractions(
                table, f"uniform numbers from {low:g} to {high:g}", dtype, "whole low and high"
            )
    # Drawn as wide ones: a seed gives the same numbers in every type that holds them.
    drawn = np.uint64 if dtype.kind == "u" else np.int64
    return lambda rng: rng.integers(int(low), int(high), shape, drawn, endpoint=True).astype(dtype)


def _fractions(table: TomlTable, said: str, dtype: np.dtype[Any], enough: str) -> ConfigError:
    """Return the error of numbers of which an integer type keeps zeros, or little else.

    Args:
        enough: what to give for the type to hold them.
    """
    least = 0 if dtype.kind == "u" else -8
    return table.error(
        f"{said} are fractions, which {dtype} does not hold",
        hint=f'random = "integers", low = {least} and high = 8; or {enough}',
    )


def _bound(table: TomlTable, name: str, default: float) -> float:
    """Return a number that says how random ones are spread.

    Raises: ConfigError: it is no number, or not finite.
    """
    value = table.optional(name, float, default)
    # A whole number may be one that no double holds.
    if not (isinstance(value, int) or math.isfinite(value)) or abs(value) > sys.float_info.max:
        raise table.error(f"{name}: expected a finite number, got {value!r}")
    return value


def _check_range(
    table: TomlTable, name: str, dtype: np.dtype[Any], low: float, high: float
) -> None:
    """Check that all numbers from low to high are of a type, and can be drawn.

    Raises: ConfigError.
    """
    is_whole = name == "integers"
    if is_whole and (low != int(low) or high != int(high)):
        raise table.error(f"integers: expected whole low and high, got {low:g} and {high:g}")
    said = f"{name if is_whole else 'uniform numbers'} from {low:g} to {high:g}"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if low < limits.min or high > limits.max:
            raise table.error(
                f"{said} do not fit {dtype} ({limits.min} to {limits.max})",
                hint="low = 0" if dtype.kind == "u" and low < 0 else "",
            )
        return
    most = _most(dtype)
    if low < -most or high > most:
        raise table.error(f"{said} do not fit {dtype} ({-most:g} to {most:g})")
    wide = np.iinfo(np.int64)
    if is_whole and (low < wide.min or high > wide.max):
        raise table.error(
            f"{said} are not drawn: expected those of int64 ({wide.min} to {wide.max})"
        )
    if not math.isfinite(float(high) - float(low)):
        raise table.error(f"{said} are not drawn: high - low is more than a double holds")


def _drawn(
    table: TomlTable,
    said: str,
    dtype: np.dtype[Any],
    draw: Callable[[np.random.Generator], NDArray[Any]],
) -> Fill:
    """Return a fill that refuses numbers which the type does not hold; to integers they are rounded."""

    def fill(rng: np.random.Generator) -> NDArray[Any]:
        exact = draw(rng)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            exact = np.rint(exact)
            # Of the largest ones doubles have no neighbours to compare with.
            outside = (exact < limits.min) | (exact >= float(limits.max) + 1)
            bounds = f"{limits.min} to {limits.max}"
            found = np.where(outside, 0, exact).astype(dtype)
        else:
            found = exact.astype(dtype)
            outside = np.isfinite(exact) & ~np.isfinite(found.astype(np.float64))
            bounds = f"{-_most(dtype):g} to {_most(dtype):g}"
        if outside.any():
            one = exact[outside][0]
            raise table.error(
                f"{said} do not fit {dtype} ({bounds}): {one:g} is among them",
                hint='random = "integers", with low and high' if dtype.kind in "iu" else "",
            )
        return found

    return fill

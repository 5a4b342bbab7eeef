"""The TOML that tells `hopsim run` how to launch a kernel; `docs/cli.md` describes it.

It says grid, block, cluster and shared memory, has a table `[arrays.NAME]` for each array, and a table `[[args]]` of
kind array, tensor_map, scalar, null or struct for each parameter of the entry, in order.  A table without `kind` may be
short: `{ array = "x" }`, `{ tensor_map = "x", box = [64, 128] }`, `{ int32 = 5 }`, `{ null = true }`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import ml_dtypes
import numpy as np

from hopsim.cli.launch_arrays import ArraySpec, number_of, read_array
from hopsim.cli.toml_table import SHORT_TYPES, TomlTable, read_toml
from hopsim.errors import ConfigError, LaunchError
from hopsim.launch.arrays import DeviceArray, ParamBytes, TensorMap
from hopsim.layout.tensormap import MAP_BYTES

if TYPE_CHECKING:
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.runtime.gpu import Gpu

KINDS: Final = ("array", "tensor_map", "scalar", "null", "struct")
SCALARS: Final = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64",
)  # fmt: skip
POINTER_BYTES: Final = 8
_MAP_ENTRIES: Final = ("dims", "strides", "element_strides", "lower_corner", "upper_corner")
_MAP_WORDS: Final = ("swizzle", "interleave", "l2_promotion", "oob_fill", "dtype")


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """A checked launch description.

    Args:
        entry: name of the kernel; None if the file leaves it open.
        grid: CTAs.  block: threads.  cluster: CTAs of a cluster, None for the kernel's own.
        shared_bytes: dynamic shared memory.
        arrays: by name.  args: one table for each parameter.
    """

    path: Path
    entry: str | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...] | None
    shared_bytes: int
    arrays: dict[str, ArraySpec]
    args: tuple[TomlTable, ...]


def read_launch_file(path: Path) -> LaunchFile:
    """Return the launch that a file describes.

    Raises: ConfigError: something in it is missing, unknown or of the wrong type.
    """
    top = read_toml(path)
    grid, block, cluster = (_shape(top, name) for name in ("grid", "block", "cluster"))
    if grid is None or block is None:
        missing = "grid" if grid is None else "block"
        example = "grid = [8, 8]   (CTAs)" if grid is None else "block = 128   (threads)"
        raise top.missing(missing, example)
    arrays = top.table("arrays")
    specs: dict[str, ArraySpec] = {}
    for name, entries in arrays.entries.items():
        if not isinstance(entries, dict):
            raise top.error(
                f"arrays.{name}: expected a table, got {entries!r}", hint=f"[arrays.{name}]"
            )
        specs[name] = read_array(
            top.inner(f"arrays.{name}", cast("dict[str, Any]", entries)), path.parent
        )
    found = LaunchFile(
        path=path,
        entry=top.text(
            "entry", "the name of a kernel", '"kernel"', "leave it out, if the file has one kernel"
        ),
        grid=grid,
        block=block,
        cluster=cluster,
        shared_bytes=top.optional("shared_bytes", int, 0),
        arrays=specs,
        args=tuple(top.tables("args")),
    )
    top.done()
    return found


def _shape(top: TomlTable, name: str) -> tuple[int, ...] | None:
    """Return the extents of a grid, a block or a cluster, None if absent.

    Raises: ConfigError.
    """
    numbers = top.numbers(name)
    if numbers is not None and not (len(numbers) <= 3 and all(number > 0 for number in numbers)):
        raise top.error(
            f"{name}: expected one to three positive whole numbers, got {top.entries[name]!r}",
            hint=f"{name} = [8, 8], or {name} = 64",
        )
    return numbers


def make_arguments(
    launch: LaunchFile, gpu: Gpu | CudaGpu, seed: int, *, fills: bool = True
) -> tuple[list[Any], dict[str, DeviceArray]]:
    """Put the arrays on the device and return the arguments, and the arrays by name.

    Args:
        fills: False leaves all arrays uninitialised, for a run that moves no data.
    Raises: ConfigError, LaunchError: an array or an argument is wrong.
    """
    arrays: dict[str, DeviceArray] = {}
    for position, (name, spec) in enumerate(launch.arrays.items()):
        host = spec.values(seed, position) if fills else None
        arrays[name] = gpu.empty(spec.shape, spec.dtype) if host is None else gpu.array(host)
    return [_argument(table, arrays) for table in launch.args], arrays


def _argument(table: TomlTable, arrays: dict[str, DeviceArray]) -> Any:
    table = _spelt_out(table)
    kind = table.choice("kind", KINDS)
    table.optional("name", str, "")
    value: Any = None
    if kind == "array":
        value = _array(table, arrays)
    elif kind == "tensor_map":
        value = _tensor_map(table, arrays)
    elif kind == "scalar":
        value = _scalar(table)
    elif kind == "struct":
        value = _struct(table, arrays)
    table.done()
    return value


def _spelt_out(table: TomlTable) -> TomlTable:
    """Return an argument with its kind: a short one names it by its entries."""
    entries = dict(table.entries)
    if "kind" in entries:
        return table
    scalars = [name for name in SCALARS if name in entries]
    if "tensor_map" in entries:
        entries |= {"kind": "tensor_map", "array": entries.pop("tensor_map")}
    elif "array" in entries and "box" not in entries:
        entries["kind"] = "array"
    elif scalars:
        entries |= {"kind": "scalar", "dtype": scalars[0], "value": entries.pop(scalars[0])}
    elif entries.get("null") is True:
        entries.pop("null")
        entries["kind"] = "null"
    else:
        short = [name for name in entries if name in SHORT_TYPES]
        raise table.error(
            "kind is missing",
            hint=f"{{ {SHORT_TYPES[short[0]]} = {entries[short[0]]!r} }}"
            if short
            else 'kind = "array", or short: { array = "x" }, { tensor_map = "x", box = [64, 128] }, { int32 = 5 },'
            " { null = true }",
        )
    return TomlTable(entries, table.where)


def _array(table: TomlTable, arrays: dict[str, DeviceArray]) -> DeviceArray:
    return _named(table, table.required("array", str, '"x"'), arrays)


def _named(table: TomlTable, name: str, arrays: dict[str, DeviceArray]) -> DeviceArray:
    if name not in arrays:
        raise table.error(
            f"there is no array {name!r}; there are: {', '.join(arrays) or 'none'}",
            hint=f"a table [arrays.{name}]",
        )
    return arrays[name]


def _tensor_map(table: TomlTable, arrays: dict[str, DeviceArray]) -> TensorMap:
    array = _array(table, arrays)
    box = table.numbers("box")
    if box is None:
        raise table.missing("box", "box = [64, 128]   (elements, innermost first)")
    options: dict[str, Any] = {
        name: found for name in _MAP_ENTRIES if (found := table.numbers(name)) is not None
    }
    options |= {name: found for name in _MAP_WORDS if (found := table.optional(name, str, ""))}
    options["offset"] = table.optional("offset", int, 0)
    try:
        return TensorMap(array, box, **options)
    except LaunchError as error:
        raise _placed(error, table) from None


def _placed(error: LaunchError, table: TomlTable) -> LaunchError:
    """Return the error with the table as its place."""
    where = f"{table.where}, {error.where}" if error.where else table.where
    return type(error)(error.what, where=where, hint=error.hint, source=error.source)


def _scalar(table: TomlTable) -> np.generic:
    name = table.choice("dtype", SCALARS)
    if not table.has("value"):
        raise table.missing("value", "value = 1")
    value = table.entries["value"]
    is_whole = "int" in name
    if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
        expected = "a whole number" if is_whole else "a number"
        hint = f"value = {round(value)}" if isinstance(value, float) and value.is_integer() else ""
        raise table.error(
            f"value: expected {expected} for {name}, got {value!r}", hint=hint or "value = 1"
        )
    if is_whole:
        limits = np.iinfo(name)
        if not limits.min <= value <= limits.max:
            raise table.error(f"value: {value} does not fit {name} ({limits.min} to {limits.max})")
    kind = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    return number_of(value, kind, table, "value")


def _struct(table: TomlTable, arrays: dict[str, DeviceArray]) -> ParamBytes:
    """Return bytes by value, with scalars, pointers and tensor maps placed inside."""
    data = _bytes(table)
    maps: dict[int, TensorMap] = {}
    pointers: dict[int, DeviceArray] = {}
    taken: list[range] = []
    for part in table.tables("parts"):
        offset = part.required("offset", int, "0")
        kind = part.choice("kind", ("array", "tensor_map", "scalar"))
        if kind == "array":
            pointers[offset] = _array(part, arrays)
            size = POINTER_BYTES
        elif kind == "tensor_map":
            maps[offset] = _tensor_map(part, arrays)
            size = MAP_BYTES
        else:
            raw = _scalar(part).tobytes()
            if not 0 <= offset <= len(data) - len(raw):
                raise part.error(f"offset {offset}: {len(raw)} bytes do not fit in {len(data)}")
            data[offset : offset + len(raw)] = raw
            size = len(raw)
        bytes_here = range(offset, offset + size)
        for number, other in enumerate(taken):
            if bytes_here.start < other.stop and other.start < bytes_here.stop:
                raise part.error(
                    f"bytes {offset} to {offset + size - 1} are those of part {number} too"
                )
        taken.append(bytes_here)
        part.done()
    return ParamBytes(bytes(data), maps, pointers)


def _bytes(table: TomlTable) -> bytearray:
    if table.has("hex") == table.has("size_bytes"):
        raise table.error("a struct needs either size_bytes or hex", hint="size_bytes = 256")
    if table.has("size_bytes"):
        count = table.required("size_bytes", int, "256")
        if not 1 <= count <= 1 << 15:
            raise table.error(f"size_bytes: expected 1 to 32768, got {count}")
        return bytearray(count)
    text = table.required("hex", str, '"00 ff"')
    try:
        return bytearray.fromhex(text)
    except ValueError as error:
        raise ConfigError(
            f"hex: {error}", where=table.where, hint='pairs of digits: "00 ff"'
        ) from None

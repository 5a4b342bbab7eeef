"""Put launch arguments into parameter bytes, checked against the entry's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import Kernel
from hopsim.isa.program.symbols import Parameter
from hopsim.launch.arrays import DeviceArray, ParamBytes, TensorMap
from hopsim.launch.device import Device
from hopsim.layout.tensormap import MAP_BYTES


def pack(kernel: Kernel, args: Sequence[Any], device: Device) -> bytearray:
    """Return the parameter space of a launch.

    Args:
        kernel: whose parameters to fill.
        args: one per parameter: a TensorMap for 128 bytes by value, an array or None for a pointer, a numpy scalar or
            bytes of its own width; ParamBytes, a numpy record or an array of one for a structure.
        device: encodes tensor maps, and knows its arrays.
    Raises: LaunchError: an argument does not fit; the message names the parameter.
    """
    params = kernel.params
    # An array, a dictionary or one long text has a length of its own, or none.
    if not isinstance(cast("object", args), Sequence) or isinstance(args, str | bytes):
        raise LaunchError(
            f"args: expected a list of one argument for each parameter, got a {_type_name(args)}",
            where=kernel.module.path,
            hint="args=[x, np.int32(n)]",
        )
    if len(args) != len(params):
        names = ", ".join(f"{p.name} ({_describe(p)})" for p in params)
        raise LaunchError(
            f"kernel {kernel.name} takes {len(params)} arguments, got {len(args)}",
            where=kernel.module.path,
            hint=f"its parameters are: {names or 'none'}",
        )
    block = bytearray(kernel.param_bytes)
    for position, (param, value) in enumerate(zip(params, args, strict=True)):
        data = _bytes_of(kernel, position, param, value, device)
        block[param.offset : param.offset + param.size] = data
    return block


def _describe(param: Parameter) -> str:
    if param.is_array:
        return f"{param.size} bytes by value"
    return f".{param.type}"


def _type_name(value: Any) -> str:
    return type(value).__name__


def _mismatch(kernel: Kernel, position: int, param: Parameter, got: str, hint: str) -> LaunchError:
    return LaunchError(
        f"argument {position} of {kernel.name}, parameter {param.name}: expected {_describe(param)}, got {got}",
        where=kernel.module.path,
        hint=hint,
    )


def _numpy_structure(value: Any) -> bytes | None:
    """Return the bytes of one numpy record, or of an array of one; None of anything else."""
    if not isinstance(value, np.void | np.ndarray):
        return None
    record: NDArray[Any] = np.asarray(cast("Any", value))
    if record.dtype.names is None or record.dtype.hasobject or record.size != 1:
        return None
    return record.tobytes()


def _bytes_of(
    kernel: Kernel,
    position: int,
    param: Parameter,
    value: Any,
    device: Device,
) -> bytes:
    for array in _arrays_in(value):
        if not device.owns(array):
            raise _mismatch(
                kernel,
                position,
                param,
                f"an array of another GPU ({array.dtype}{list(array.shape)})",
                "make it on the GPU that is launched on: gpu.array(x)",
            )
    if isinstance(value, TensorMap):
        if param.size != MAP_BYTES or not param.is_array:
            raise _mismatch(
                kernel,
                position,
                param,
                "a TensorMap (128 bytes)",
                "check the order of the arguments",
            )
        return device.encode(value)
    if isinstance(value, ParamBytes):
        return _structure(kernel, position, param, value, device)
    if isinstance(value, bytes | bytearray):
        if len(value) != param.size:
            raise _mismatch(
                kernel,
                position,
                param,
                f"{len(value)} bytes",
                "give exactly the bytes of the parameter",
            )
        return bytes(value)
    if value is None or hasattr(value, "address"):
        if not param.is_pointer:
            what = "None" if value is None else f"an array of {value.dtype}"
            raise _mismatch(kernel, position, param, what, _by_value(param))
        address = 0 if value is None else value.address
        return int(address).to_bytes(8, "little")
    structure = _numpy_structure(value)
    if structure is not None and param.is_array:
        if len(structure) != param.size:
            raise _mismatch(
                kernel,
                position,
                param,
                f"a numpy structure of {len(structure)} bytes",
                "np.dtype(fields, align=True) lays fields out as C does",
            )
        return structure
    if isinstance(value, np.generic):
        raw: bytes = value.tobytes()
        if param.is_array or len(raw) != param.size:
            raise _mismatch(
                kernel,
                position,
                param,
                f"a {_type_name(value)} scalar ({len(raw)} bytes)",
                "match the width",
            )
        _check_meaning(kernel, position, param, value)
        return raw
    if isinstance(value, bool | int | float):
        raise _mismatch(
            kernel, position, param, f"a Python {type(value).__name__}",
            "say its width: np.int32(n), np.uint64(n), np.float32(x)",
        )  # fmt: skip
    if isinstance(value, np.ndarray):
        host = cast("NDArray[Any]", value)
        raise _mismatch(
            kernel, position, param, f"a numpy array of {host.dtype}",
            "gpu.array(x) puts it on the device",
        )  # fmt: skip
    raise _mismatch(
        kernel,
        position,
        param,
        f"a {type(value).__name__}",
        "pass TensorMap, array, numpy scalar or bytes",
    )


def _by_value(param: Parameter) -> str:
    """Return what to pass for a parameter that is no address."""
    if param.is_array and param.size == MAP_BYTES:
        return "hs.TensorMap(x, box=(64, 128)) for a tensor map"
    if param.is_array:
        return f"bytes, or hs.ParamBytes(bytes({param.size}), pointers={{0: x}})"
    kind = {"u": "uint", "f": "float", "s": "int"}.get(param.type[0], "uint")
    letter = "x" if kind == "float" else "n"
    return f"pass a numpy scalar such as np.{kind}{8 * param.size}({letter})"


def _arrays_in(value: Any) -> list[DeviceArray]:
    """Return the arrays that an argument reaches."""
    if isinstance(value, TensorMap):
        return [value.array]
    if isinstance(value, ParamBytes):
        return [*(one.array for one in value.tensor_maps.values()), *value.pointers.values()]
    return [value] if hasattr(value, "address") else []


def _check_meaning(kernel: Kernel, position: int, param: Parameter, value: Any) -> None:
    """Refuse a number whose bits the parameter reads as another; `.b32` and its like take any bits.

    Raises: LaunchError.
    """
    is_whole, wants_whole = value.dtype.kind in "biu", param.type[0] in "us"
    if param.type[0] != "b" and is_whole != wants_whole:
        name = f"np.{'int' if wants_whole else 'float'}{8 * param.size}"
        raise _mismatch(
            kernel,
            position,
            param,
            f"a {_type_name(value)} scalar, whose bits mean another number",
            f"{name}(x), or x.tobytes() for the bits as they are",
        )


def _structure(
    kernel: Kernel,
    position: int,
    param: Parameter,
    value: ParamBytes,
    device: Device,
) -> bytes:
    data = bytearray(value.data)
    if len(data) != param.size:
        raise _mismatch(
            kernel, position, param, f"ParamBytes of {len(data)} bytes", "give the whole structure"
        )
    inserts = [
        (offset, device.encode(one), "tensor map") for offset, one in value.tensor_maps.items()
    ]
    inserts += [
        (offset, int(one.address).to_bytes(8, "little"), "pointer")
        for offset, one in value.pointers.items()
    ]
    for offset, raw, what in inserts:
        if not 0 <= offset <= len(data) - len(raw):
            raise _mismatch(
                kernel,
                position,
                param,
                f"a {what} at offset {offset}",
                f"it holds {len(data)} bytes",
            )
        if what == "tensor map" and offset % 64:
            raise _mismatch(
                kernel,
                position,
                param,
                f"a tensor map at offset {offset}",
                "a map is aligned to 64 bytes",
            )
        data[offset : offset + len(raw)] = raw
    return bytes(data)

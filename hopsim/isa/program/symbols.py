"""Where parameters, shared, local and module variables lie.

Source: PTX ISA 8.7 "State Spaces", "Alignment"; CUDA lays parameters out by natural alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import NotModelled
from hopsim.isa.ptx.ast import (
    AddressByte,
    Function,
    GenericAddress,
    Immediate,
    Initialiser,
    PtxModule,
    Sum,
    Variable,
    symbol_of,
)
from hopsim.isa.ptx.flat import FlatAddress, FlatBody, FlatOperand, FlatPair, FlatVector, SymbolRef
from hopsim.isa.ptx.names import STATIC
from hopsim.isa.types import OPAQUE_BYTES, TYPES

FLOAT_BYTES: Final = 4
CODE_BASE: Final = 0x1000_0000
CODE_BYTES: Final = 0x100
"""Where functions seem to lie, and how far apart: hopsim's own choice (DEVIATIONS D-ADDR)."""
SHARED_RESERVED_BYTES: Final = 0x400
"""The first KiB of a CTA's shared window belongs to the system.  Source: recorded on an H100 (`mov.u32` of a symbol)."""


def size_of(variable: Variable) -> int:
    """Return the size of a variable in bytes (an open dimension counts as 0)."""
    size = _element_bytes(variable)
    for dim in variable.dims:
        size *= dim
    return size


def alignment_of(variable: Variable) -> int:
    """Return its alignment in bytes: declared, or that of its element."""
    return variable.align or _element_bytes(variable)


def _element_bytes(variable: Variable) -> int:
    opaque = OPAQUE_BYTES.get(variable.type)
    return opaque or TYPES[variable.type].bytes * max(1, variable.vector)


def _up(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter: offset and size in bytes in the parameter space."""

    name: str
    type: str
    offset: int
    size: int
    align: int
    is_array: bool
    is_pointer: bool


def parameters(function: Function) -> tuple[list[Parameter], int]:
    """Return the parameters of an entry and the size of its parameter space in bytes."""
    offset = 0
    found: list[Parameter] = []
    for variable in function.params:
        align, size = alignment_of(variable), size_of(variable)
        offset = _up(offset, align)
        pointer = variable.type in ("u64", "b64", "s64") and not variable.dims
        found.append(
            Parameter(
                variable.name, variable.type, offset, size, align, bool(variable.dims), pointer
            )
        )
        offset += size
    return found, offset


@dataclass(frozen=True, slots=True)
class Placement:
    """Offsets in bytes of the variables a function can name.

    `shared` counts from the first byte after the reserved KiB; `shared_static_bytes` ends where dynamic memory begins;
    the open (extern) shared variables all begin there.  `shared` are (offset, bytes, name), an open one with 0 bytes.
    """

    offsets: dict[str, int]
    shared_static_bytes: int
    shared_align: int
    local_bytes: int
    globals_used: tuple[Variable, ...]
    has_dynamic_shared: bool = False
    shared: tuple[tuple[int, int, str], ...] = ()

    def shared_name(self, address: int) -> str:
        """Return what lies at an address of shared memory, the reserved KiB included: `tile+0x40`, or nothing."""
        inside = address - SHARED_RESERVED_BYTES
        for offset, size, name in self.shared:
            if offset <= inside < offset + (size or 1 << 32):
                return f"{name}+{inside - offset:#x}" if inside > offset else name
        return ""


def place(function: Function, body: FlatBody, module: PtxModule) -> Placement:
    """Lay out what the function uses: only referenced module variables count, as ptxas does."""
    offsets: dict[str, int] = {p.name: p.offset for p in parameters(function)[0]}
    lasting = [
        *(item for item in module.items if isinstance(item, Variable)),
        *(variable for variable in body.variables if variable.space in STATIC),
    ]
    used = _with_initialisers(_symbols(body), lasting)
    module_variables = [item for item in lasting if item.name in used]
    shared = [v for v in (*body.variables, *module_variables) if v.space == "shared"]
    static = 0
    align = 16
    for variable in shared:
        align = max(align, alignment_of(variable))
        if 0 in variable.dims:
            continue
        static = _up(static, alignment_of(variable))
        offsets[variable.name] = static
        static += size_of(variable)
    # Dynamic memory begins at an aligned address, and addresses count from the reserved bytes (recorded on an H100:
    # 24 static bytes and `.align 1024` give 0x800).
    align_dynamic = max((alignment_of(v) for v in shared if 0 in v.dims), default=16)
    dynamic = _up(static + SHARED_RESERVED_BYTES, align_dynamic) - SHARED_RESERVED_BYTES
    for variable in shared:
        if 0 in variable.dims:
            offsets[variable.name] = dynamic
    local = 0
    for variable in body.variables:
        if variable.space in ("local", "param"):
            local = _up(local, alignment_of(variable))
            offsets[variable.name] = local
            local += size_of(variable)
    offsets |= {name: at for name, at in function_addresses(module).items() if name in used}
    others = tuple(v for v in module_variables if v.space in STATIC)
    is_open = any(0 in v.dims for v in shared)
    # What is open comes last: it holds all the rest.
    spans = [(offsets[v.name], 0 if 0 in v.dims else size_of(v), v.name) for v in shared]
    spans.sort(key=lambda span: not span[1])
    return Placement(
        offsets, dynamic if shared else 0, align, _up(local, 16), others, is_open, tuple(spans)
    )


def function_addresses(module: PtxModule) -> dict[str, int]:
    """Return an address for each function of a module, which nothing can be read from."""
    names = dict.fromkeys(item.name for item in module.items if isinstance(item, Function))
    found = {name: CODE_BASE + number * CODE_BYTES for number, name in enumerate(names)}
    return found | {alias: found[name] for alias, name in module.aliases.items() if name in found}


def _with_initialisers(used: set[str], lasting: Sequence[Variable]) -> set[str]:
    """Add the variables whose addresses the initialisers of used ones hold."""
    variables = {item.name: item for item in lasting}
    todo = sorted(used & variables.keys())
    while todo:
        for item in variables[todo.pop()].init or ():
            name = symbol_of(item)
            if name in variables and name not in used:
                used.add(name)
                todo.append(name)
    return used


def _symbols(body: FlatBody) -> set[str]:
    """Return the names of all symbols that instructions name, but of parameters: these may hide variables of the module."""
    found: set[str] = set()

    def walk(operand: FlatOperand) -> None:
        if isinstance(operand, SymbolRef) and operand.kind != "param":
            found.add(operand.name)
        elif isinstance(operand, FlatAddress):
            walk(operand.base)
            for one in operand.coordinates:
                walk(one)
        elif isinstance(operand, FlatVector):
            for one in operand.items:
                walk(one)
        elif isinstance(operand, FlatPair):
            walk(operand.first)
            walk(operand.second)

    for instruction in body.instructions:
        for operand in instruction.operands:
            walk(operand)
    return found


def initial_bytes(variable: Variable, addresses: dict[str, int]) -> NDArray[np.uint8]:
    """Return the initial contents of a module variable.

    Raises:
        NotModelled: an initialiser that hopsim cannot evaluate.
    """
    element = OPAQUE_BYTES.get(variable.type) or TYPES[variable.type].bytes
    data = np.zeros(max(size_of(variable), element), np.uint8)
    for index, item in enumerate(variable.init or ()):
        if isinstance(item, Immediate):
            value = _initial_word(variable, item)
        elif symbol_of(item) in addresses:
            value = _initial_address(item, addresses[symbol_of(item)])
        else:
            raise NotModelled(f"the initialiser of {variable.name} is not modelled")
        start = index * element
        raw = (value & ((1 << 8 * element) - 1)).to_bytes(element, "little")
        data[start : start + element] = np.frombuffer(raw, np.uint8)
    return data


def _initial_address(value: Initialiser, symbol: int) -> int:
    """Return what an initial value makes of the address of its symbol; generic and global addresses are the same."""
    if isinstance(value, AddressByte):
        shift = value.mask.bit_length() - 8
        return _initial_address(value.address, symbol) >> shift & 0xFF
    return symbol + (value.offset if isinstance(value, Sum | GenericAddress) else 0)


def _initial_word(variable: Variable, literal: Immediate) -> int:
    """Return the bits of an initial value, as an H100 gave them.

    Decimal floats are of double precision and are converted, `0d` ones too; the bits of a `0f` one are taken as they are,
    also for 64 bits.
    """
    if literal.kind != "f64" or TYPES[variable.type].bytes != FLOAT_BYTES:
        return literal.value
    with np.errstate(over="ignore"):
        double = np.array([literal.value], np.uint64).view(np.float64)
        return int(double.astype(np.float32).view(np.uint32)[0])

"""Parameters of calls, once the calls are expanded: registers where accesses agree, else local memory.

`st.param` and `ld.param` name bytes of a `.param` variable.  Where all accesses to a variable name the same elements, each
element becomes a register; where they overlap otherwise, or the variable's address is taken, it becomes a `.local` one.

Source: PTX ISA 8.7 "Parameter State Space", "Device Function Parameters".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from hopsim.isa.ops.accesses import LENGTH
from hopsim.isa.program.symbols import size_of
from hopsim.isa.ptx.ast import Span, Variable
from hopsim.isa.ptx.flat import (
    FlatAddress,
    FlatInstruction,
    FlatOperand,
    FlatParameter,
    Register,
    SymbolRef,
)
from hopsim.isa.types import DTYPES, TYPES

PARAM: Final = ("param", "param::func")


class _Access(NamedTuple):
    """An `ld.param` or `st.param`: which bytes, and which operand names them."""

    variable: str
    offset: int
    word: int
    elements: int
    operand: int


@dataclass(slots=True)
class _Place:
    """Where a variable goes: a register per element, by offset, or local memory."""

    variable: Variable
    words: dict[int, int] = field(default_factory=dict[int, int])
    registers: dict[int, Register] = field(default_factory=dict[int, Register])
    in_memory: bool = False


class Settled(NamedTuple):
    """A program whose calls' parameters have their places.

    Args:
        instructions: one for one.
        registers: those made for parameters, which follow the others.
        variables: without those that became registers.
        unsupported: (place, why) of accesses that are not modelled.
    """

    instructions: list[FlatInstruction]
    registers: list[Register]
    variables: list[Variable]
    unsupported: list[tuple[Span, str]]


def settle(
    instructions: Sequence[FlatInstruction], variables: Iterable[Variable], first_register: int
) -> Settled:
    """Give each `.param` variable of a body its place.

    Args:
        instructions: of the body, calls expanded.
        variables: declared in it.
        first_register: index of the first register that may be made.
    """
    variables = list(variables)
    places = {v.name: _Place(v) for v in variables if v.space == "param"}
    accesses: dict[int, _Access] = {}
    unsupported: list[tuple[Span, str]] = []
    for index, instruction in enumerate(instructions):
        named = [n for n in map(_named, instruction.operands) if n is not None and n in places]
        if not named:
            continue
        access = _access(instruction, places)
        if access is None:
            for name in named:
                places[name].in_memory = True
            continue
        accesses[index] = access
        wrong = _note(places[access.variable], access)
        if wrong:
            unsupported.append((instruction.span, wrong))
    registers: list[Register] = []
    for place in places.values():
        _place(place, registers, first_register)
    result = list(instructions)
    for index, instruction in enumerate(instructions):
        if index in accesses:
            result[index] = _moved(instruction, accesses[index], places)
        elif places:
            result[index] = _in_local(instruction, places)
    kept = [
        replace(v, space="local") if v.name in places else v
        for v in variables
        if v.name not in places or places[v.name].in_memory
    ]
    return Settled(result, registers, kept, unsupported)


def _named(operand: FlatOperand) -> str | None:
    if isinstance(operand, FlatAddress):
        operand = operand.base
    return operand.name if isinstance(operand, SymbolRef) and operand.kind == "param" else None


def _access(instruction: FlatInstruction, places: dict[str, _Place]) -> _Access | None:
    opcode = instruction.opcode
    if opcode[0] not in ("ld", "st") or len(opcode) < 3 or opcode[1] not in PARAM:
        return None
    kind = TYPES.get(opcode[-1])
    number = 0 if opcode[0] == "st" else 1
    if kind is None or number >= len(instruction.operands):
        return None
    address = instruction.operands[number]
    if not isinstance(address, FlatAddress) or not isinstance(address.base, SymbolRef):
        return None
    if address.base.name not in places:
        return None
    count = max((LENGTH[word] for word in opcode if word in LENGTH), default=1)
    offset = address.base.offset + address.offset
    return _Access(address.base.name, offset, kind.bytes, count, number)


def _note(place: _Place, access: _Access) -> str:
    """Add the elements of an access to those of its variable; return why it is not modelled, if it is not."""
    size = size_of(place.variable)
    stop = access.offset + access.word * access.elements
    if access.offset < 0 or stop > size:
        return (
            f"bytes {access.offset} to {stop - 1} are outside of parameter "
            f"'{place.variable.name.partition('@')[0]}', which has {size}"
        )
    if access.word * 8 not in DTYPES:
        place.in_memory = True
    for number in range(access.elements):
        start = access.offset + number * access.word
        if place.words.setdefault(start, access.word) != access.word:
            place.in_memory = True
    return ""


def _place(place: _Place, registers: list[Register], first: int) -> None:
    end = 0
    for offset, word in sorted(place.words.items()):
        if offset < end:
            place.in_memory = True
        end = offset + word
    if place.in_memory:
        return
    name = place.variable.name
    for offset, word in sorted(place.words.items()):
        register = Register(
            f"[{name}+{offset}]" if size_of(place.variable) > word else f"[{name}]",
            f"b{word * 8}",
            word * 8,
            first + len(registers),
        )
        place.registers[offset] = register
        registers.append(register)


def _moved(
    instruction: FlatInstruction, access: _Access, places: dict[str, _Place]
) -> FlatInstruction:
    place = places[access.variable]
    if place.in_memory:
        return _in_local(instruction, places)
    held = tuple(
        place.registers[start]
        for number in range(access.elements)
        if (start := access.offset + number * access.word) in place.registers
    )
    operands = list(instruction.operands)
    operands[access.operand] = FlatParameter(held)
    opcode = (instruction.opcode[0], "param", *instruction.opcode[2:])
    return replace(instruction, opcode=opcode, operands=tuple(operands))


def _in_local(instruction: FlatInstruction, places: dict[str, _Place]) -> FlatInstruction:
    """Return an instruction in which variables that are now local ones are called so."""

    def local(operand: FlatOperand) -> FlatOperand:
        if isinstance(operand, FlatAddress) and isinstance(operand.base, SymbolRef):
            return replace(operand, base=_local_symbol(operand.base, places))
        return _local_symbol(operand, places) if isinstance(operand, SymbolRef) else operand

    operands = tuple([local(operand) for operand in instruction.operands])
    if operands == instruction.operands:
        return instruction
    return replace(instruction, opcode=local_opcode(instruction.opcode), operands=operands)


def _local_symbol(symbol: SymbolRef, places: dict[str, _Place]) -> SymbolRef:
    if symbol.kind != "param" or symbol.name not in places:
        return symbol
    return replace(symbol, kind="local")


def local_opcode(opcode: tuple[str, ...]) -> tuple[str, ...]:
    """Return an opcode that names the parameter space with the local one in its place."""
    return tuple("local" if word in PARAM else word for word in opcode)

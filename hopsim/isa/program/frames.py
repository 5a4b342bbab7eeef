"""A program under construction from the bodies of functions, each with registers, labels and variables of its own.

Labels are marks (numbers) while instructions are put out, and become places in the program at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program.call_parameters import PARAM, local_opcode
from hopsim.isa.program.signatures import Signature
from hopsim.isa.ptx.ast import Immediate, Variable
from hopsim.isa.ptx.flat import (
    FlatAddress,
    FlatBody,
    FlatInstruction,
    FlatNegated,
    FlatOperand,
    FlatPair,
    FlatVector,
    LabelRef,
    Register,
    SymbolRef,
)
from hopsim.isa.ptx.names import STATIC
from hopsim.isa.types import TYPES

MOST_INSTRUCTIONS: Final = 50_000
"""A kernel that grows beyond this by its calls is not modelled."""


@dataclass(slots=True)
class Frame:
    """One expansion of a function.

    Args:
        chain: the functions that are being expanded, the entry (empty) first.
        registers: by their index in the function's body.
        names: of its variables and parameters, as they are called here.
        end: mark of where it returns to; None in the entry.
        signature: what it returns and takes.
        marks: of its labels, by index of instruction.
        params: the `.param` variables that it declared, for its calls.
    """

    body: FlatBody
    chain: tuple[str, ...]
    registers: Sequence[Register]
    names: dict[str, str]
    end: int | None
    signature: Signature
    marks: dict[int, int] = field(default_factory=dict[int, int])
    params: dict[str, Variable] = field(default_factory=dict[str, Variable])


class TooLong(Exception):
    """The program has become too long."""


class Builder:
    """Puts out instructions of several bodies.

    Attributes:
        out: instructions so far, whose labels are marks.
        registers: of all of them.
        variables: of all of them, by their names here.
        marks: where in `out` each mark is; -1 while that is not known.
    """

    def __init__(self) -> None:
        self.out: list[FlatInstruction] = []
        self.registers: list[Register] = []
        self.variables: dict[str, Variable] = {}
        self.marks: list[int] = []
        self.branches: list[int] = []
        self.copies: dict[str, int] = {}

    def mark(self) -> int:
        """Return a new place to branch to, not yet set."""
        self.marks.append(-1)
        return len(self.marks) - 1

    def set_mark(self, mark: int) -> None:
        """Let a mark be what is emitted next."""
        self.marks[mark] = len(self.out)

    def declare(self, frame: Frame, variables: Iterable[Variable]) -> None:
        """Declare the variables of a body, under names that nothing else has.

        What is `.shared` or `.local` exists once for a function: no two calls of it are active at a time.  What is `.global`
        or `.const` exists once for the module and has such a name already.
        """
        name = frame.chain[-1] if frame.chain else ""
        for variable in variables:
            unique = variable.name
            if name and variable.space not in STATIC:
                unique = self.unique(variable.name, name, variable.space == "param")
            self.variables[unique] = replace(variable, name=unique)
            frame.names[variable.name] = unique
            if variable.space == "param":
                frame.params[variable.name] = variable

    def unique(self, name: str, function: str, each_time: bool) -> str:
        """Return `name@function`, numbered from the second expansion on where each has its own."""
        count = self.copies[function] if each_time else 1
        return f"{name}@{function}" if count == 1 else f"{name}@{function}.{count}"

    def append(self, instruction: FlatInstruction) -> None:
        """Emit one instruction."""
        if names_labels(instruction):
            self.branches.append(len(self.out))
        self.out.append(instruction)
        if len(self.out) > MOST_INSTRUCTIONS:
            raise TooLong

    def register(self, name: str, kind: str) -> Register:
        """Make a register that no text names."""
        register = Register(name, kind, TYPES[kind].width_bits, len(self.registers))
        self.registers.append(register)
        return register

    def fresh_registers(self, body: FlatBody, function: str) -> list[Register]:
        """Make the registers of one expansion."""
        first = len(self.registers)
        fresh = [
            Register(self.unique(r.name, function, True), r.type, r.width_bits, first + i)
            for i, r in enumerate(body.registers)
        ]
        self.registers += fresh
        return fresh

    def parameter(self, formal: Variable, function: str) -> str:
        """Declare a parameter of one expansion and return its name here."""
        unique = self.unique(formal.name, function, True)
        self.variables[unique] = replace(formal, name=unique)
        return unique

    # -- names -------------------------------------------------------------------------------------

    def renamed(self, frame: Frame, instruction: FlatInstruction) -> FlatInstruction:
        """Return an instruction of a body with the registers, variables and marks of a frame."""
        is_entry = frame.end is None
        if is_entry and not names_labels(instruction):
            return instruction
        registers = frame.registers
        guard = instruction.guard
        if guard is not None:
            guard = (registers[guard[0].index], guard[1])
        operands = tuple([self.operand(frame, one) for one in instruction.operands])
        opcode = instruction.opcode
        if not is_entry and _addresses_parameters(opcode, operands):
            opcode = local_opcode(opcode)
        return FlatInstruction(instruction.span, instruction.loc, guard, opcode, operands)

    def operand(self, frame: Frame, operand: FlatOperand) -> FlatOperand:
        """Return an operand of a body as it is in a frame."""
        match operand:
            case Register():
                return frame.registers[operand.index]
            case SymbolRef():
                name = frame.names.get(operand.name)
                return operand if name is None else replace(operand, name=name)
            case LabelRef():
                return LabelRef(operand.name, frame.marks[operand.target])
            case FlatAddress():
                base = self.operand(frame, operand.base)
                assert isinstance(base, (Register, SymbolRef, Immediate)), base
                items = tuple([self.operand(frame, item) for item in operand.coordinates])
                return FlatAddress(base, operand.offset, items)
            case FlatVector():
                return FlatVector(tuple([self.operand(frame, item) for item in operand.items]))
            case FlatPair():
                return FlatPair(
                    self.operand(frame, operand.first), self.operand(frame, operand.second)
                )
            case FlatNegated():
                return FlatNegated(frame.registers[operand.register.index])
            case _:
                return operand


def retargeted(instruction: FlatInstruction, places: Sequence[int]) -> FlatInstruction:
    """Return an instruction whose labels have become the places that they number."""

    def place(operand: FlatOperand) -> FlatOperand:
        if isinstance(operand, LabelRef):
            return replace(operand, target=places[operand.target])
        if isinstance(operand, FlatVector):
            return FlatVector(tuple([place(item) for item in operand.items]))
        return operand

    if not names_labels(instruction):
        return instruction
    operands = tuple([place(operand) for operand in instruction.operands])
    return replace(instruction, operands=operands)


def moved(bound: BoundInstruction, places: Sequence[int]) -> BoundInstruction:
    """Return an instruction of a program whose labels are where their instructions have gone."""
    if not bound.targets:
        return bound
    targets = tuple([replace(label, target=places[label.target]) for label in bound.targets])
    return replace(bound, instruction=retargeted(bound.instruction, places), targets=targets)


def names_labels(instruction: FlatInstruction) -> bool:
    """Whether some operand is a label or a list of labels: of branches, and of calls that became branches."""
    return any(isinstance(one, LabelRef) or _is_list(one) for one in instruction.operands)


def label_to(mark: int) -> LabelRef:
    """Return the operand of a branch to a mark."""
    return LabelRef("", mark)


def _is_list(operand: FlatOperand) -> bool:
    return isinstance(operand, FlatVector) and any(
        isinstance(item, LabelRef) for item in operand.items
    )


def _addresses_parameters(opcode: tuple[str, ...], operands: Sequence[FlatOperand]) -> bool:
    """Whether an instruction of a function uses the address of a parameter, which is one of local memory here."""
    if not any(word in PARAM for word in opcode):
        return False
    return not any(
        isinstance(one, FlatAddress) and isinstance(one.base, SymbolRef) for one in operands
    )

"""What stands in the place of `wmma`: lines in plain PTX, registers that no text names, and what is wrong."""

from __future__ import annotations

from typing import NamedTuple

from hopsim.isa.ptx.flat import FlatBody, FlatInstruction, FlatOperand, FlatVector, Register
from hopsim.isa.types import TYPES
from hopsim.layout.wmma import Fragment


class Wrong(NamedTuple):
    """What is wrong with an instruction, and what to try."""

    instruction: FlatInstruction
    what: str
    hint: str


class Output:
    """The instructions of a body as they are written anew.

    Args:
        body: whose registers stand before new ones.
    """

    def __init__(self, body: FlatBody) -> None:
        self.instructions: list[FlatInstruction] = []
        self.registers = list(body.registers)
        self.wrong: list[Wrong] = []
        self._at: FlatInstruction = body.instructions[0]

    def begin(self, instruction: FlatInstruction) -> None:
        """Let what is emitted from here on stand in the place of an instruction."""
        self._at = instruction

    def emit(self, opcode: str, *operands: FlatOperand) -> None:
        """Write one instruction."""
        at = self._at
        self.instructions.append(
            FlatInstruction(at.span, at.loc, at.guard, tuple(opcode.split(".")), operands)
        )

    def register(self, kind: str) -> Register:
        """Return a new register."""
        number = len(self.registers)
        register = Register(f"wmma:{number}", kind, TYPES[kind].width_bits, number)
        self.registers.append(register)
        return register

    def let(self, kind: str, opcode: str, *operands: FlatOperand) -> Register:
        """Write one instruction whose result is a new register."""
        register = self.register(kind)
        self.emit(opcode, register, *operands)
        return register

    def fail(self, what: str, hint: str = "") -> bool:
        """Note what is wrong with the instruction; return that no more is to be done for it."""
        self.wrong.append(Wrong(self._at, what, hint))
        return True

    def registers_of(
        self, operand: FlatOperand | None, part: Fragment, what: str
    ) -> list[Register] | None:
        """Return the registers of a fragment; None: they are wrong, which is told."""
        count, bits = len(part.registers), part.register_bits
        items = operand.items if isinstance(operand, FlatVector) else ()
        registers = [item for item in items if isinstance(item, Register)]
        if len(registers) == len(items) == count and all(r.width_bits == bits for r in registers):
            return registers
        got = f"{len(items)} operands" if items else "no list of registers"
        if len(registers) == len(items) == count:
            got = f"one of {next(r.width_bits for r in registers if r.width_bits != bits)} bits"
        many = f"{count} register{'s' * (count > 1)}"
        self.fail(f"{what} is a list of {many} of {bits} bits, got {got}")
        return None

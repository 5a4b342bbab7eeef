"""What a call hands over to a function, and takes from it: moves between registers and `.param` variables.

Source: PTX ISA 8.7 "call", "Device Function Parameters".
"""

from __future__ import annotations

from hopsim.isa.program.frames import Builder, Frame
from hopsim.isa.program.symbols import alignment_of, size_of
from hopsim.isa.ptx.ast import Immediate, Variable
from hopsim.isa.ptx.flat import FlatAddress, FlatInstruction, FlatOperand, Register, SymbolRef
from hopsim.isa.types import TYPES


class Handover(Builder):
    """Puts out the moves of calls."""

    def hand_over(
        self, inner: Frame, call: FlatInstruction, formal: Variable, actual: FlatOperand, own: bool
    ) -> None:
        """Make a parameter an argument: the caller's variable itself, or (`own`) a copy of it."""
        if formal.space == "reg":
            register = _register_of(inner, formal)
            if register is None:
                return
            if isinstance(actual, SymbolRef):
                self.load(call, register, actual.name, 0, size_of(formal))
            else:
                kind = formal.type if isinstance(actual, Immediate) else f"b{register.width_bits}"
                self.emit_at(call, ("mov", kind), register, actual)
            return
        if not own:
            assert isinstance(actual, SymbolRef)
            inner.names[formal.name] = actual.name
            return
        unique = inner.names[formal.name] = self.parameter(formal, inner.chain[-1])
        if not isinstance(actual, SymbolRef):
            kind = (
                formal.type
                if isinstance(actual, Immediate)
                else f"b{TYPES[formal.type].width_bits}"
            )
            self.emit_at(call, ("st", "param", kind), address_of(unique, 0), actual)
            return
        word = min(alignment_of(formal), 8)
        for offset in range(0, size_of(formal), word):
            between = self.register(f"{unique}+{offset}", f"b{word * 8}")
            self.load(call, between, actual.name, offset, word)
            self.emit_at(call, ("st", "param", f"b{word * 8}"), address_of(unique, offset), between)

    def take(
        self, inner: Frame, call: FlatInstruction, formal: Variable, actual: FlatOperand
    ) -> None:
        """Give a result to what the caller named for it."""
        if formal.space == "param":
            if isinstance(actual, Register):
                self.load(call, actual, inner.names[formal.name], 0, size_of(formal))
            return
        register = _register_of(inner, formal)
        if register is None:
            return
        kind = f"b{register.width_bits}"
        if isinstance(actual, Register):
            self.emit_at(call, ("mov", kind), actual, register)
        elif isinstance(actual, SymbolRef):
            self.emit_at(call, ("st", "param", kind), address_of(actual.name, 0), register)

    def load(
        self, call: FlatInstruction, register: Register, variable: str, offset: int, word: int
    ) -> None:
        """Emit a load from a `.param` variable, at the place of a call."""
        opcode = ("ld", "param", f"b{word * 8}")
        self.emit_at(call, opcode, register, address_of(variable, offset))

    def emit_at(
        self, call: FlatInstruction, opcode: tuple[str, ...], *operands: FlatOperand
    ) -> None:
        """Emit an instruction that stands for a part of a call."""
        self.append(FlatInstruction(call.span, call.loc, None, opcode, operands))


def address_of(name: str, offset: int) -> FlatAddress:
    """Return the operand that names a byte of a `.param` variable."""
    return FlatAddress(SymbolRef("param", name), offset)


def _register_of(frame: Frame, formal: Variable) -> Register | None:
    """Return the register of a `.reg` parameter, None where the body never names it."""
    for register in frame.body.registers:
        if register.name == formal.name:
            return frame.registers[register.index]
    return None

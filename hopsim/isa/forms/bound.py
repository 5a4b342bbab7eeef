"""What a decoded instruction is: its form, the arguments of its closure, the registers that it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hopsim.isa.forms.form import Form
from hopsim.isa.ptx.flat import FlatInstruction, LabelRef, Register, SymbolRef


@dataclass(frozen=True, slots=True)
class RegisterArg:
    """A register's value, narrowed to `width_bits` when the register is wider."""

    register: Register
    width_bits: int
    negated: bool = False


@dataclass(frozen=True, slots=True)
class ConstantArg:
    """A literal, as raw bits."""

    value: int | bool


@dataclass(frozen=True, slots=True)
class SymbolArg:
    """The address of a variable, or the value of a special register."""

    symbol: SymbolRef
    width_bits: int


@dataclass(frozen=True, slots=True)
class AddressArg:
    """Base plus offset, modulo the width of the base."""

    base: RegisterArg | SymbolArg | ConstantArg
    offset: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class TupleArg:
    """A vector of values, or (`by_index`) of register numbers."""

    items: tuple[Arg, ...]
    by_index: bool = False


@dataclass(frozen=True, slots=True)
class MissingArg:
    """An optional operand that was not written: None."""


Arg: TypeAlias = RegisterArg | ConstantArg | SymbolArg | AddressArg | TupleArg | MissingArg


@dataclass(frozen=True, slots=True)
class Destination:
    """A register to write; None is the sink.  `from_bits` and `signed` say how a narrow result is widened."""

    register: Register | None
    from_bits: int
    signed: bool


@dataclass(frozen=True, slots=True)
class BoundInstruction:
    """An instruction with its form chosen and its operands checked."""

    instruction: FlatInstruction
    form: Form
    slots: tuple[tuple[str, str], ...]
    args: tuple[Arg, ...]
    arg_names: tuple[str, ...]
    destinations: tuple[Destination, ...]
    single: bool
    targets: tuple[LabelRef, ...]
    reads: frozenset[int]
    writes: frozenset[int]

    @property
    def line(self) -> int:
        """1-based line in the PTX text."""
        return self.instruction.span.line

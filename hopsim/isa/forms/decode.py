"""From a resolved instruction to a bound one: choose the form, check operands, list register reads and writes.

Imports the text layer's tree and the declared forms; knows no machine.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from hopsim.errors import NotModelled, PtxError
from hopsim.isa.forms.form import FORMS, Form, OperandSpec, Unmodelled
from hopsim.isa.ptx.ast import (
    FlatAddress,
    FlatInstruction,
    FlatNegated,
    FlatOperand,
    FlatPair,
    FlatVector,
    Immediate,
    LabelRef,
    Register,
    Sink,
    SymbolRef,
)
from hopsim.isa.ptx.special import has_components, is_modelled
from hopsim.isa.types import TYPES, ScalarType

CLOCKS = frozenset(
    {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
)


UNTYPED = frozenset({"float", "bits"})
"""Kinds that stand for floats; integers of any sign stand for each other."""
SPACES = frozenset({"shared", "global", "const", "local", "param"})
PAIRS_OF_FLOATS = frozenset({"f16x2", "bf16x2", "e4m3x2", "e5m2x2"})


# --- what the closure is called with --------------------------------------------------------------


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
    target: LabelRef | None
    reads: frozenset[int]
    writes: frozenset[int]

    @property
    def line(self) -> int:
        """1-based line in the PTX text."""
        return self.instruction.span.line


def _in_words(allowed: Sequence[int]) -> str:
    """Describe the values that an immediate may have.

    >>> _in_words(range(16)), _in_words(range(32, 1025, 32)), _in_words((4, 8, 16))
    ('0 to 15', 'a multiple of 32 from 32 to 1024', '4, 8 or 16')
    """
    if isinstance(allowed, range):
        step = f"a multiple of {allowed.step} from " if allowed.step > 1 else ""
        return f"{step}{allowed[0]} to {allowed[-1]}"
    *others, last = (str(value) for value in allowed)
    return f"{', '.join(others)} or {last}" if others else last


def _clash(kind: ScalarType, declared: ScalarType) -> bool:
    """Whether a register of a declared type cannot be an operand of some type, whatever their widths.

    Source: PTX ISA 8.7 "Operand Type Checking"; ptxas 13.0 refuses these.
    """
    kinds = {kind.kind, declared.kind}
    if "float" in kinds:
        return not kinds <= UNTYPED
    return kind.name in PAIRS_OF_FLOATS and declared.kind in ("signed", "unsigned")


def _type_of(spec: OperandSpec, slots: dict[str, str]) -> ScalarType | None:
    word = slots.get(spec.type, spec.type)
    return TYPES.get(word)


class _Mismatch(Exception):
    """Operands do not fit this form; another form may."""


class _Binder:
    def __init__(
        self, instruction: FlatInstruction, form: Form, slots: dict[str, str], carry: Register
    ) -> None:
        self.instruction = instruction
        self.form = form
        self.slots = slots
        self.carry = carry
        self.args: list[Arg] = []
        self.names: list[str] = []
        self.destinations: list[Destination] = []
        self.single = True
        self.target: LabelRef | None = None
        self.reads: set[int] = set()
        self.writes: set[int] = set()
        self.counts = form.counts(slots) if form.counts is not None else {}

    def bind(self) -> BoundInstruction:
        given = list(self.instruction.operands)
        specs = self.form.operands
        minimum = sum(not spec.optional for spec in specs)
        if not minimum <= len(given) <= len(specs):
            wanted = str(minimum) if minimum == len(specs) else f"{minimum} to {len(specs)}"
            raise _Mismatch(f"expected {wanted} operands, got {len(given)}")
        spare = len(given) - minimum
        position = 0
        for spec in specs:
            if spec.optional:
                if spare == 0 or not self._fits(spec, given[position]):
                    if spec.role == "write":
                        self.destinations.append(Destination(None, 32, False))
                    else:
                        self.args.append(MissingArg())
                        self.names.append(spec.name)
                    continue
                spare -= 1
            self._operand(spec, given[position])
            position += 1
        if position < len(given):
            raise _Mismatch(f"operand {position + 1} does not fit")
        self._carry()
        guard = self.instruction.guard
        if guard is not None:
            self.reads.add(guard[0].index)
        return BoundInstruction(
            self.instruction, self.form, tuple(sorted(self.slots.items())), tuple(self.args), tuple(self.names),
            tuple(self.destinations), self.single, self.target, frozenset(self.reads), frozenset(self.writes),
        )  # fmt: skip

    def _carry(self) -> None:
        """Add CC.CF to what is read and written."""
        if self.form.takes_carry:
            self.reads.add(self.carry.index)
            self.args.append(RegisterArg(self.carry, 1))
            self.names.append("carry")
        if "cc" in self.instruction.opcode:
            self.single = False
            self.writes.add(self.carry.index)
            self.destinations.append(Destination(self.carry, 1, False))

    def _fits(self, spec: OperandSpec, operand: FlatOperand) -> bool:
        if spec.shape in ("address", "tensor"):
            return isinstance(operand, FlatAddress)
        return not isinstance(operand, FlatAddress)

    def _operand(self, spec: OperandSpec, operand: FlatOperand) -> None:
        if spec.shape == "label":
            if not isinstance(operand, LabelRef):
                raise _Mismatch(f"operand {spec.name} must be a label")
            self.target = operand
            return
        if spec.role == "write":
            self._destination(spec, operand)
            return
        self.names.append(spec.name)
        if spec.shape == "clock":
            if not (isinstance(operand, SymbolRef) and operand.name in CLOCKS):
                raise _Mismatch("not a clock register")
            self.args.append(ConstantArg(sorted(CLOCKS).index(operand.name)))
        elif spec.shape in ("address", "tensor"):
            self._address(spec, operand)
        elif spec.shape == "vector":
            if not isinstance(operand, FlatVector):
                raise _Mismatch(f"operand {spec.name} must be a vector in braces")
            self._vector(spec, operand)
        elif spec.shape == "maybe_vector":
            items = operand if isinstance(operand, FlatVector) else FlatVector((operand,))
            self._vector(spec, items)
        else:
            self.args.append(self._value(spec, operand))

    def _vector(self, spec: OperandSpec, operand: FlatVector) -> None:
        self._check_count(spec, len(operand.items))
        by_index = spec.role in ("update", "borrow")
        items = tuple(self._value(spec, item) for item in operand.items)
        if by_index and not all(isinstance(item, RegisterArg) for item in items):
            raise _Mismatch(f"operand {spec.name} must hold registers only")
        if spec.role == "update":
            self.writes |= {item.register.index for item in items if isinstance(item, RegisterArg)}
        self.args.append(TupleArg(items, by_index))

    def _check_count(self, spec: OperandSpec, got: int) -> None:
        wanted = self.counts.get(spec.name)
        if wanted is not None and got != wanted:
            raise _Mismatch(
                f"operand {spec.name} must have {wanted} item{'s' * (wanted != 1)}, got {got}"
            )

    def _address(self, spec: OperandSpec, operand: FlatOperand) -> None:
        if not isinstance(operand, FlatAddress):
            raise _Mismatch(f"operand {spec.name} must be an address in brackets")
        base: RegisterArg | SymbolArg | ConstantArg
        if isinstance(operand.base, Register):
            self.reads.add(operand.base.index)
            width = operand.base.width_bits
            if width not in (32, 64):
                raise _Mismatch(
                    f"address register {operand.base.name} is {width} bits wide, expected 32 or 64"
                )
            base = RegisterArg(operand.base, width)
        elif isinstance(operand.base, SymbolRef):
            self._check_space(spec, operand.base)
            width = 64
            base = SymbolArg(operand.base, 64)
        else:
            width = 64
            base = ConstantArg(operand.base.value)
        self.args.append(AddressArg(base, operand.offset, width))
        if spec.shape == "tensor":
            if not operand.coordinates:
                raise _Mismatch(f"operand {spec.name} needs tensor coordinates: [map, {{c0, ...}}]")
            coordinate = OperandSpec("c", "scalar", "read", "s32", False, False)
            self._check_count(coordinate, len(operand.coordinates))
            self.args.append(
                TupleArg(tuple(self._value(coordinate, item) for item in operand.coordinates))
            )
            self.names.append("coordinates")
        elif operand.coordinates:
            raise _Mismatch(f"operand {spec.name} takes no tensor coordinates")

    def _value(self, spec: OperandSpec, operand: FlatOperand) -> Arg:
        kind = _type_of(spec, self.slots)
        assert kind is not None, (
            f"{self.form.syntax}: operand {spec.name} has no type {spec.type!r}"
        )
        if spec.immediate and not isinstance(operand, Immediate):
            raise _Mismatch(f"operand {spec.name} must be an immediate")
        if isinstance(operand, Register):
            self.reads.add(operand.index)
            self._check_width(spec, kind, operand)
            return RegisterArg(operand, kind.width_bits)
        if isinstance(operand, FlatNegated):
            self.reads.add(operand.register.index)
            self._check_width(spec, kind, operand.register)
            return RegisterArg(operand.register, kind.width_bits, negated=True)
        if isinstance(operand, Immediate):
            self._check_limit(spec, operand)
            return ConstantArg(self._literal(kind, operand))
        if isinstance(operand, SymbolRef):
            if operand.kind == "special" and operand.name in CLOCKS:
                raise _Mismatch("a clock register is read by mov only")
            if operand.kind == "special":
                self._check_special(operand.name)
                self._check_reads_special(spec, operand.name)
            if operand.kind in ("function", "prototype"):
                raise NotModelled(f"the address of function {operand.name} is not modelled")
            return SymbolArg(operand, kind.width_bits)
        raise _Mismatch(f"operand {spec.name} must be a register or an immediate")

    def _check_special(self, name: str) -> None:
        stem, _, component = name.partition(".")
        if not is_modelled(stem):
            raise NotModelled(f"special register {name} is not modelled")
        if has_components(stem) and not component:
            raise _Mismatch(f"special register {name} needs a component: {name}.x, .y or .z")

    def _check_reads_special(self, spec: OperandSpec, name: str) -> None:
        first = self.form.base[0]
        kinds = (TYPES[word].kind for word in self.slots.values() if word in TYPES)
        if first != "mov" and (first != "cvt" or "float" in kinds):
            raise _Mismatch(
                f"operand {spec.name} is special register {name}, which only mov and cvt of integers read"
            )

    def _check_limit(self, spec: OperandSpec, literal: Immediate) -> None:
        allowed = self.form.limits.get(spec.name)
        if allowed is not None and literal.value not in allowed:
            raise _Mismatch(
                f"operand {spec.name} is {literal.value}, expected {_in_words(allowed)}"
            )

    def _check_space(self, spec: OperandSpec, symbol: SymbolRef) -> None:
        space = self.slots.get("space", "").partition("::")[0]
        if space and symbol.kind in SPACES and symbol.kind != space:
            raise _Mismatch(
                f"operand {spec.name} is in .{space}, but {symbol.name} is a .{symbol.kind} variable"
            )

    def _check_width(self, spec: OperandSpec, kind: ScalarType, register: Register) -> None:
        declared = TYPES[register.type]
        if _clash(kind, declared):
            raise _Mismatch(
                f"operand {spec.name} is .{kind.name}, but register {register.name} is .{register.type}"
            )
        if register.width_bits == kind.width_bits:
            return
        if spec.relaxed and register.width_bits > kind.width_bits and register.type != "pred":
            return
        raise _Mismatch(
            f"operand {spec.name} is .{kind.name} ({kind.width_bits} bits), "
            f"but register {register.name} is .{register.type} ({register.width_bits} bits)"
        )

    def _literal(self, kind: ScalarType, literal: Immediate) -> int | bool:
        if kind.kind == "pred":
            return literal.value != 0
        value = literal.value
        if literal.kind != "int" and kind.kind in ("signed", "unsigned"):
            raise _Mismatch(f"a float literal where .{kind.name} is expected")
        if literal.kind == "int":
            if kind.kind == "float" and value != 0:
                raise _Mismatch(
                    f"an integer literal where .{kind.name} is expected; write 0f3F800000 or 0d..."
                )
            if not -(1 << (kind.width_bits - 1)) <= value <= kind.mask:
                # PTX truncates wide literals silently (they are 64-bit constants).
                return value & kind.mask
            return value & kind.mask
        wanted = {"f32": 32, "f64": 64}[literal.kind]
        if wanted == kind.width_bits:
            return value
        if kind.name == "f32":
            # PTX reads decimal floats in double precision and converts to the type of the instruction.
            return int.from_bytes(
                struct.pack("<f", struct.unpack("<d", value.to_bytes(8, "little"))[0]), "little"
            )
        if kind.name == "f64":
            return int.from_bytes(
                struct.pack("<d", struct.unpack("<f", value.to_bytes(4, "little"))[0]), "little"
            )
        raise _Mismatch(f"a {wanted}-bit float literal where .{kind.name} is expected")

    def _destination(self, spec: OperandSpec, operand: FlatOperand) -> None:
        if spec.shape in ("pair", "maybe_pair"):
            assert spec.second is not None
            self.single = False
            if isinstance(operand, FlatPair):
                self._write(spec, operand.first)
                self._write(spec.second, operand.second)
            elif spec.shape == "maybe_pair":
                self._write(spec, operand)
                self.destinations.append(Destination(None, 1, False))
            else:
                raise _Mismatch(f"operand {spec.name} must be a pair a|b")
        elif spec.shape == "vector" or (
            spec.shape == "maybe_vector" and isinstance(operand, FlatVector)
        ):
            if not isinstance(operand, FlatVector):
                raise _Mismatch(f"operand {spec.name} must be a vector in braces")
            self.single = False
            self._check_count(spec, len(operand.items))
            for item in operand.items:
                self._write(spec, item)
        elif spec.shape == "maybe_vector":
            self.single = False
            self._check_count(spec, 1)
            self._write(spec, operand)
        else:
            self._write(spec, operand)

    def _write(self, spec: OperandSpec, operand: FlatOperand) -> None:
        kind = _type_of(spec, self.slots)
        assert kind is not None, (
            f"{self.form.syntax}: operand {spec.name} has no type {spec.type!r}"
        )
        if isinstance(operand, Sink):
            self.destinations.append(Destination(None, kind.width_bits, False))
            return
        if not isinstance(operand, Register):
            raise _Mismatch(f"destination {spec.name} must be a register")
        self._check_width(spec, kind, operand)
        self.writes.add(operand.index)
        self.destinations.append(Destination(operand, kind.width_bits, kind.is_signed))


def decode(
    instruction: FlatInstruction, carry: Register, path: str = "<ptx>", text: str = ""
) -> BoundInstruction:
    """Choose the form of one instruction and bind its operands.

    Args:
        instruction: one of a body.  carry: the body's CC.CF.
        path: of the file, for messages.  text: the line, for messages.

    Raises:
        NotModelled: no declared form has this opcode and these modifiers, or hopsim lacks what an operand names.
        PtxError: a form has the opcode, but the operands break its rules.
    """
    where = f"{path}:{instruction.span.line}:{instruction.span.column}"
    matches = FORMS.find(instruction.opcode)
    reasons: list[str] = []
    for form, slots in matches:
        if form.check is not None:
            wrong = form.check(slots)
            if isinstance(wrong, Unmodelled):
                raise NotModelled(f"{instruction.mnemonic} is not modelled: {wrong}", where=where)
            if wrong:
                reasons.append(wrong)
                continue
        try:
            return _Binder(instruction, form, slots, carry).bind()
        except _Mismatch as mismatch:
            reasons.append(str(mismatch))
        except NotModelled as problem:
            raise NotModelled(problem.what, where=where) from None
    if not matches:
        first = instruction.opcode[0]
        hint = f"modelled forms of {first}: hopsim isa {first}" if FORMS.by_word.get(first) else ""
        why = f"{instruction.mnemonic} is not modelled{_what_is_strange(instruction.opcode)}"
        raise NotModelled(why, where=where, hint=hint)
    forms = "; ".join(dict.fromkeys(form.syntax for form, _ in matches))
    raise PtxError(
        f"{instruction.mnemonic}: {reasons[0]}",
        where=path,
        line=instruction.span.line,
        column=instruction.span.column,
        text=text,
        hint=f"the form is  {forms}",
        source=matches[0][0].source,
    )


def _what_is_strange(opcode: tuple[str, ...]) -> str:
    """Say which word of an opcode no form has, and which known word is like it; empty if all words are known."""
    first, *rest = opcode
    forms = FORMS.by_word.get(first, ())
    if not forms:
        near = get_close_matches(first, FORMS.by_word, n=1, cutoff=0.8)
        return f" (did you mean {near[0]}?)" if near else ""
    words = dict.fromkeys(
        word
        for form in forms
        for word in (*form.base, *form.required, *(w for s in form.slots for w in s.alternatives))
    )
    for word in rest:
        if word not in words:
            near = get_close_matches(word, words, n=1)
            like = f"; did you mean .{near[0]}?" if near else ""
            return f": no form of {first} has .{word}{like}"
    return ""

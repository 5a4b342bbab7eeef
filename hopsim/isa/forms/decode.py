"""From a resolved instruction to a bound one: choose the form, check operands, list register reads and writes.

Imports the text layer's tree and the declared forms; knows no machine.
"""

from __future__ import annotations

from dataclasses import replace

from hopsim.errors import NotModelled, PtxError
from hopsim.isa.forms.bound import (
    AddressArg,
    Arg,
    BoundInstruction,
    ConstantArg,
    Destination,
    MissingArg,
    RegisterArg,
    SymbolArg,
    TupleArg,
)
from hopsim.isa.forms.form import FORMS, Form, OperandSpec, Unmodelled
from hopsim.isa.forms.operand_rules import (
    Disagreement,
    Mismatch,
    OtherCount,
    check_address,
    check_addressed,
    check_limit,
    check_part,
    check_place,
    check_policy,
    check_register,
    check_sink,
    check_sinks,
    check_special,
    check_variable,
    check_wide,
    check_width,
    literal_bits,
    names_shared_alone,
    part_bits,
    space_problem,
)
from hopsim.isa.forms.strange import impossible, strange
from hopsim.isa.ptx.ast import Immediate, Sink
from hopsim.isa.ptx.flat import (
    FlatAddress,
    FlatInstruction,
    FlatNegated,
    FlatOperand,
    FlatPair,
    FlatParameter,
    FlatVector,
    LabelRef,
    Register,
    SymbolRef,
)
from hopsim.isa.ptx.names import COMPONENTS
from hopsim.isa.ptx.special import has_components
from hopsim.isa.types import TYPES, WIDEST_BITS, ScalarType

CLOCKS = frozenset(
    {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
)


def _labels(operand: FlatOperand) -> tuple[LabelRef, ...]:
    if isinstance(operand, FlatVector):
        labels = tuple(item for item in operand.items if isinstance(item, LabelRef))
        if labels:
            return labels
    raise Mismatch("the targets must be the label of a .branchtargets list that stands before")


def _components(symbol: SymbolRef) -> FlatOperand:
    """Return a special register of several components as the vector of them."""
    if symbol.kind != "special" or not has_components(symbol.name):
        return symbol
    return FlatVector(tuple(SymbolRef("special", f"{symbol.name}.{one}") for one in COMPONENTS))


def _low_half(operand: FlatOperand) -> FlatOperand:
    """Return the low half of a register of .b128; what is none as it is."""
    halves = operand.halves if isinstance(operand, FlatVector) else ()
    return replace(halves[0], type="b64") if halves else operand


def _type_of(spec: OperandSpec, slots: dict[str, str]) -> ScalarType | None:
    word = slots.get(spec.type, spec.type)
    return TYPES.get(word)


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
        self.targets: tuple[LabelRef, ...] = ()
        self.reads: set[int] = set()
        self.writes: set[int] = set()
        self.counts = form.counts(slots) if form.counts is not None else {}

    def bind(self) -> BoundInstruction:
        given = list(self.instruction.operands)
        specs = self.form.operands
        minimum = sum(not spec.optional for spec in specs)
        if not minimum <= len(given) <= len(specs):
            wanted = str(minimum) if minimum == len(specs) else f"{minimum} to {len(specs)}"
            raise OtherCount(f"expected {wanted} operands, got {len(given)}")
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
            raise Mismatch(f"operand {position + 1} does not fit")
        self._carry()
        check_policy(self.slots, self.names, self.args)
        if self.form.agree is not None:
            wrong = self.form.agree(self.slots, given)
            if wrong:
                raise Disagreement(wrong)
        guard = self.instruction.guard
        if guard is not None:
            self.reads.add(guard[0].index)
        return BoundInstruction(
            self.instruction, self.form, tuple(sorted(self.slots.items())), tuple(self.args), tuple(self.names),
            tuple(self.destinations), self.single, self.targets, frozenset(self.reads), frozenset(self.writes),
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

    def _parameter(self, operand: FlatOperand) -> tuple[Register, ...]:
        if not isinstance(operand, FlatParameter):
            raise Mismatch("the address must be that of a .param variable that this body declares")
        return operand.registers

    def _fits(self, spec: OperandSpec, operand: FlatOperand) -> bool:
        if spec.shape in ("address", "tensor"):
            return isinstance(operand, FlatAddress)
        return not isinstance(operand, FlatAddress)

    def _operand(self, spec: OperandSpec, operand: FlatOperand) -> None:
        if spec.shape == "label":
            if not isinstance(operand, LabelRef):
                raise Mismatch(f"operand {spec.name} must be a label")
            self.targets = (operand,)
            return
        if spec.shape == "labels":
            self.targets = _labels(operand)
            return
        if spec.role == "write":
            self._destination(spec, operand)
            return
        self.names.append(spec.name)
        if spec.shape == "clock":
            if not (isinstance(operand, SymbolRef) and operand.name in CLOCKS):
                raise Mismatch("not a clock register")
            check_width(self.form, spec, TYPES[self.slots["t"]], operand.name)
            self.args.append(ConstantArg(sorted(CLOCKS).index(operand.name)))
        elif spec.shape in ("address", "tensor"):
            self._address(spec, operand)
        elif spec.shape == "vector":
            if isinstance(operand, SymbolRef) and self.form.base[0] == "mov":
                operand = _components(operand)
            if not isinstance(operand, FlatVector):
                raise Mismatch(f"operand {spec.name} must be a vector in braces")
            self._vector(spec, operand)
        elif spec.shape == "parameter":
            self._vector(spec, FlatVector(self._parameter(operand)))
        elif spec.shape == "maybe_vector":
            self._vector(spec, FlatVector(self._elements(spec, operand)))
        else:
            self.args.append(self._value(spec, operand))

    def _elements(self, spec: OperandSpec, operand: FlatOperand) -> tuple[FlatOperand, ...]:
        """Return what a store writes: of registers that are wider than its type the low bits."""
        kind = _type_of(spec, self.slots)
        items = operand.items if isinstance(operand, FlatVector) else (operand,)
        if kind is None or kind.width_bits > WIDEST_BITS:
            return items
        if isinstance(operand, FlatVector) and operand.halves:
            items = (operand,)
        return tuple([_low_half(item) for item in items])

    def _vector(self, spec: OperandSpec, operand: FlatVector) -> None:
        self._check_count(spec, len(operand.items))
        by_index = spec.role in ("update", "borrow")
        items = tuple(self._value(spec, item) for item in operand.items)
        if by_index and not all(isinstance(item, RegisterArg) for item in items):
            raise Mismatch(f"operand {spec.name} must hold registers only")
        if spec.role == "update":
            self.writes |= {item.register.index for item in items if isinstance(item, RegisterArg)}
        self.args.append(TupleArg(items, by_index))

    def _check_count(self, spec: OperandSpec, got: int) -> None:
        wanted = self.counts.get(spec.name)
        if wanted is not None and got != wanted:
            raise Mismatch(
                f"operand {spec.name} must have {wanted} item{'s' * (wanted != 1)}, got {got}"
            )

    def _address(self, spec: OperandSpec, operand: FlatOperand) -> None:
        if not isinstance(operand, FlatAddress):
            raise Mismatch(f"operand {spec.name} must be an address in brackets")
        base: RegisterArg | SymbolArg | ConstantArg
        if isinstance(operand.base, Register):
            self.reads.add(operand.base.index)
            width = operand.base.width_bits
            if width not in (32, 64):
                raise Mismatch(
                    f"address register {operand.base.name} is {width} bits wide, expected 32 or 64"
                )
            check_address(self.instruction.opcode, spec, operand.base)
            if names_shared_alone(self.instruction.opcode):
                # What shared memory is too small for is cut off: compilers put generic addresses here.
                width = 32
            base = RegisterArg(operand.base, width)
        elif isinstance(operand.base, SymbolRef):
            check_addressed(spec, operand.base)
            number = sum(isinstance(arg, AddressArg) for arg in self.args)
            opcode = self.instruction.opcode
            if wrong := space_problem(opcode, spec.name, number, operand.base):
                raise Mismatch(wrong)
            width = 64
            base = SymbolArg(operand.base, 64)
        else:
            check_place(self.instruction.opcode, operand.base)
            width = 64
            base = ConstantArg(operand.base.value)
        self.args.append(AddressArg(base, operand.offset, width))
        if spec.shape == "tensor":
            if not operand.coordinates:
                raise Mismatch(f"operand {spec.name} needs tensor coordinates: [map, {{c0, ...}}]")
            coordinate = OperandSpec("c", "scalar", "read", "s32", False, False)
            self._check_count(coordinate, len(operand.coordinates))
            self.args.append(
                TupleArg(tuple(self._value(coordinate, item) for item in operand.coordinates))
            )
            self.names.append("coordinates")
        elif operand.coordinates:
            raise Mismatch(f"operand {spec.name} takes no tensor coordinates")

    def _value(self, spec: OperandSpec, operand: FlatOperand) -> Arg:
        kind = _type_of(spec, self.slots)
        assert kind is not None, (
            f"{self.form.syntax}: operand {spec.name} has no type {spec.type!r}"
        )
        if spec.immediate and not isinstance(operand, Immediate):
            raise Mismatch(f"operand {spec.name} must be an immediate")
        check_part(operand)
        if isinstance(operand, Register):
            self.reads.add(operand.index)
            check_register(spec, kind, operand)
            return RegisterArg(operand, part_bits(kind))
        if isinstance(operand, FlatNegated):
            self.reads.add(operand.register.index)
            check_register(spec, kind, operand.register)
            return RegisterArg(operand.register, kind.width_bits, negated=True)
        if isinstance(operand, Immediate):
            check_limit(self.form, spec, operand)
            return ConstantArg(literal_bits(kind, operand))
        if isinstance(operand, SymbolRef):
            if operand.kind == "special" and operand.name in CLOCKS:
                check_width(self.form, spec, kind, operand.name)
                raise Mismatch("a clock register is read by mov only")
            if operand.kind == "special":
                check_special(self.form, self.slots, spec, kind, operand.name)
            elif operand.kind == "prototype":
                raise Mismatch(f"operand {spec.name} is {operand.name}, the label of a prototype")
            else:
                check_variable(self.form, self.slots, spec, operand)
            return SymbolArg(operand, kind.width_bits)
        raise Mismatch(f"operand {spec.name} must be a register or an immediate")

    def _destination(self, spec: OperandSpec, operand: FlatOperand) -> None:
        if spec.shape in ("pair", "maybe_pair"):
            assert spec.second is not None
            self.single = False
            if isinstance(operand, FlatPair):
                check_sinks(self.form, spec, (operand.first, operand.second))
                self._write(spec, operand.first)
                self._write(spec.second, operand.second)
            elif spec.shape == "maybe_pair":
                self._whole(spec, operand)
                self.destinations.append(Destination(None, 1, False))
            else:
                raise Mismatch(f"operand {spec.name} must be a pair a|b")
        elif spec.shape == "vector" or (
            spec.shape == "maybe_vector" and isinstance(operand, FlatVector)
        ):
            if not isinstance(operand, FlatVector):
                raise Mismatch(f"operand {spec.name} must be a vector in braces")
            self.single = False
            if self.counts.get(spec.name) == 1:
                check_wide(self.slots, operand.halves)
            self._check_count(spec, len(operand.items))
            check_sinks(self.form, spec, operand.items)
            for item in operand.items:
                self._write(spec, item)
        elif spec.shape == "parameter":
            self.single = False
            for register in self._parameter(operand):
                self._write(spec, register)
        elif spec.shape == "maybe_vector":
            self.single = False
            count = self.counts.get(spec.name, 1) if isinstance(operand, Sink) else 1
            self._check_count(spec, count)
            for _ in range(count):
                self._whole(spec, operand)
        else:
            self._whole(spec, operand)

    def _whole(self, spec: OperandSpec, operand: FlatOperand) -> None:
        if isinstance(operand, Sink):
            check_sink(self.form, spec)
        self._write(spec, operand)

    def _write(self, spec: OperandSpec, operand: FlatOperand) -> None:
        kind = _type_of(spec, self.slots)
        assert kind is not None, (
            f"{self.form.syntax}: operand {spec.name} has no type {spec.type!r}"
        )
        if isinstance(operand, Sink):
            self.destinations.append(Destination(None, part_bits(kind), False))
            return
        check_part(operand)
        if not isinstance(operand, Register):
            raise Mismatch(f"destination {spec.name} must be a register")
        check_register(spec, kind, operand)
        self.writes.add(operand.index)
        self.destinations.append(Destination(operand, part_bits(kind), kind.is_signed))


def decode(
    instruction: FlatInstruction, carry: Register, path: str = "<ptx>", text: str = ""
) -> BoundInstruction:
    """Choose the form of one instruction and bind its operands.

    Args:
        instruction: one of a body.  carry: the body's CC.CF.
        path: of the file, for messages.  text: the line, for messages.

    Raises:
        NotModelled: no declared form has this opcode and these modifiers, or hopsim lacks what an operand names.
        PtxError: a form has the opcode, but the operands break its rules; or PTX cannot have a word of it.
    """
    line, column = instruction.span.line, instruction.span.column
    where = f"{path}:{line}:{column}"

    def error(what: str, hint: str, source: str = "") -> PtxError:
        what = f"{instruction.mnemonic}: {what}"
        return PtxError(
            what, where=path, line=line, column=column, text=text, hint=hint, source=source
        )

    matches = FORMS.find(instruction.opcode)
    reasons: list[Mismatch] = []
    for form, slots in matches:
        if form.check is not None:
            wrong = form.check(slots)
            if isinstance(wrong, Unmodelled):
                raise NotModelled(f"{instruction.mnemonic} is not modelled: {wrong}", where=where)
            if wrong:
                reasons.append(Mismatch(wrong))
                continue
        try:
            return _Binder(instruction, form, slots, carry).bind()
        except Mismatch as mismatch:
            reasons.append(mismatch)
        except NotModelled as problem:
            raise NotModelled(problem.what, where=where) from None
    if not matches:
        first = instruction.opcode[0]
        hint = f"modelled forms of {first}: hopsim isa {first}" if FORMS.by_word.get(first) else ""
        wrong, instead = impossible(instruction.opcode)
        if wrong:
            raise error(wrong, instead)
        why = f"{instruction.mnemonic} {strange(instruction.opcode)}"
        raise NotModelled(why, where=where, hint=hint)
    forms = "; ".join(dict.fromkeys(form.syntax for form, _ in matches))
    raise error(
        str(max(reasons, key=lambda one: one.nearness)),
        f"the form is  {forms}",
        matches[0][0].source,
    )

"""Calls: the body of a function is put where it is called, so that the machine needs no stack.

Each call gets registers, labels and parameters of its own.  `ret` goes to the end of the call, a guarded call is a branch
around it, a parameter becomes registers (`call_parameters`).  Instructions keep their place in the text, so that messages
name the line of the function.

Source: PTX ISA 8.7 "call", "ret", "Function Declarations and Definitions", "Device Function Parameters"; what is refused is
what ptxas 13.0 refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from hopsim.errors import PtxError
from hopsim.isa.program.call_parameters import PARAM, local_opcode, settle
from hopsim.isa.program.signatures import (
    CallOperands,
    Signature,
    declaration_problem,
    misuse,
    operands_of,
    problem,
    signature_of,
)
from hopsim.isa.program.symbols import alignment_of, size_of
from hopsim.isa.ptx.ast import (
    FlatAddress,
    FlatBody,
    FlatInstruction,
    FlatNegated,
    FlatOperand,
    FlatPair,
    FlatVector,
    Function,
    Immediate,
    LabelRef,
    PtxModule,
    Register,
    Span,
    SymbolRef,
    Variable,
)
from hopsim.isa.ptx.scope import Flattened, flatten
from hopsim.isa.types import TYPES

MOST_INSTRUCTIONS: Final = 50_000
"""A kernel that grows beyond this by its calls is not modelled."""
CALLS: Final = (("call",), ("call", "uni"))
SOURCE: Final = 'PTX ISA 8.7, "call", "Parameter State Space"'
NOTHING: Final = Signature((), ())
INLINE: Final = "hopsim puts the body of a function where it is called; write a loop instead"


class Expanded(NamedTuple):
    """A body without calls of functions.

    Args:
        body: as `flatten` gives it, functions that it calls included.
        errors: what is wrong in it, by line.
        unsupported: (place, why) of calls that are not modelled.
    """

    body: FlatBody
    errors: tuple[PtxError, ...]
    unsupported: tuple[tuple[Span, str], ...]


class Functions:
    """The functions of a module, flattened when they are first called."""

    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.declared: dict[str, list[Function]] = {}
        for item in module.items:
            if isinstance(item, Function):
                self.declared.setdefault(item.name, []).append(item)
        self._flat: dict[str, Flattened] = {}

    def definition(self, name: str) -> Function:
        """Return the declaration that has the body, or else the first."""
        declared = self.declared[name]
        return next((one for one in declared if one.body is not None), declared[0])

    def flat(self, name: str) -> Flattened:
        """Return the body of a function that has one."""
        if name not in self._flat:
            self._flat[name] = flatten(self.definition(name), self.module)
        return self._flat[name]


def expand(flat: Flattened, functions: Functions) -> Expanded:
    """Put functions in the place of their calls.

    Args:
        flat: an entry's names, resolved.
        functions: of its module.
    """
    body, errors = flat
    is_plain = not any(one.opcode[0] == "call" for one in body.instructions)
    if is_plain and not any(variable.space == "param" for variable in body.variables):
        return Expanded(body, errors, ())
    return _Expansion(functions).run(flat)


@dataclass(slots=True)
class _Frame:
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


class _TooLong(Exception):
    """The program has become too long."""


class _Expansion:
    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.out: list[FlatInstruction] = []
        self.registers: list[Register] = []
        self.variables: dict[str, Variable] = {}
        self.marks: list[int] = []
        self.branches: list[int] = []
        self.labels: dict[str, int] = {}
        self.copies: dict[str, int] = {}
        self.errors: dict[tuple[int, int, str], PtxError] = {}
        self.unsupported: dict[tuple[Span, str], None] = {}
        self.outermost: FlatInstruction | None = None
        self.expansions = 0

    def run(self, flat: Flattened) -> Expanded:
        body = flat.body
        self.registers += body.registers
        frame = _Frame(body, (), body.registers, {}, None, NOTHING)
        self.note(flat.errors)
        self.declare(frame, body.variables)
        try:
            self.emit(frame)
        except _TooLong:
            assert self.outermost is not None
            self.not_modelled(
                self.outermost,
                f"with the bodies of its functions in place of their calls the kernel has over"
                f" {MOST_INSTRUCTIONS:,} instructions",
            )
            self.out.clear()
            self.branches.clear()
        if not self.out:
            self.out.append(FlatInstruction(body.instructions[0].span, None, None, ("ret",), ()))
        for index in self.branches:
            self.out[index] = self.patched(self.out[index])
        settled = settle(self.out, self.variables.values(), len(self.registers))
        labels = {
            name: self.marks[frame.marks[target]]
            for name, target in body.labels.items()
            if target in frame.marks
        }
        errors = sorted(self.errors.values(), key=lambda one: (one.line, one.column))
        return Expanded(
            FlatBody(
                tuple(settled.instructions),
                (*self.registers, *settled.registers),
                {**labels, **{name: self.marks[mark] for name, mark in self.labels.items()}},
                tuple(settled.variables),
            ),
            tuple(errors),
            (*self.unsupported, *settled.unsupported),
        )

    # -- messages ----------------------------------------------------------------------------------

    def note(self, errors: Iterable[PtxError]) -> None:
        """Keep errors of a function, which may be called often."""
        for error in errors:
            self.errors.setdefault((error.line, error.column, error.what), error)

    def wrong(self, instruction: FlatInstruction, what: str, hint: str = "") -> None:
        """Keep what is wrong with an instruction."""
        module, span = self.functions.module, instruction.span
        lines = module.text.splitlines()
        text = lines[span.line - 1] if span.line <= len(lines) else ""
        error = PtxError(
            what, where=module.path, line=span.line, column=span.column, text=text, hint=hint,
            source=SOURCE,
        )  # fmt: skip
        self.note([error])

    def not_modelled(self, call: FlatInstruction, why: str) -> None:
        """Keep why a call is not modelled."""
        self.unsupported[call.span, why] = None

    # -- bodies ------------------------------------------------------------------------------------

    def mark(self) -> int:
        """Return a new place to branch to, not yet set."""
        self.marks.append(-1)
        return len(self.marks) - 1

    def set_mark(self, mark: int) -> None:
        """Let a mark be what is emitted next."""
        self.marks[mark] = len(self.out)

    def patched(self, instruction: FlatInstruction) -> FlatInstruction:
        """Return a branch whose marks have become the places they stand for."""

        def place(operand: FlatOperand) -> FlatOperand:
            if isinstance(operand, LabelRef):
                return replace(operand, target=self.marks[operand.target])
            if isinstance(operand, FlatVector):
                return FlatVector(tuple([place(item) for item in operand.items]))
            return operand

        operands = tuple([place(operand) for operand in instruction.operands])
        return replace(instruction, operands=operands)

    def declare(self, frame: _Frame, variables: Iterable[Variable]) -> None:
        """Declare the variables of a body, under names that nothing else has.

        What is `.shared` or `.local` exists once for a function: no two calls of it are active at a time.
        """
        name = frame.chain[-1] if frame.chain else ""
        for variable in variables:
            unique = variable.name
            if name:
                unique = self.unique(variable.name, name, variable.space == "param")
            self.variables[unique] = replace(variable, name=unique)
            frame.names[variable.name] = unique
            if variable.space == "param":
                frame.params[variable.name] = variable

    def unique(self, name: str, function: str, each_time: bool) -> str:
        """Return `name@function`, numbered from the second expansion on where each has its own."""
        count = self.copies[function] if each_time else 1
        return f"{name}@{function}" if count == 1 else f"{name}@{function}.{count}"

    def emit(self, frame: _Frame) -> None:
        """Emit the body of a frame."""
        body = frame.body
        for target in sorted(set(body.labels.values())):
            frame.marks[target] = self.mark()
        last = len(body.instructions) - 1
        for index, instruction in enumerate(body.instructions):
            if index in frame.marks:
                self.set_mark(frame.marks[index])
            word = instruction.opcode[0]
            if word == "call":
                self.call(frame, instruction)
            elif word == "ret" and frame.end is not None:
                if index < last or instruction.guard is not None:
                    self.jump(frame, instruction)
            else:
                wrong = misuse(instruction, frame.params, frame.signature)
                if wrong:
                    self.wrong(instruction, wrong)
                self.append(self.renamed(frame, instruction))
        if last + 1 in frame.marks:
            self.set_mark(frame.marks[last + 1])

    def jump(self, frame: _Frame, ret: FlatInstruction) -> None:
        """Emit a branch to where a function returns to."""
        assert frame.end is not None
        guard = None
        if ret.guard is not None:
            guard = (frame.registers[ret.guard[0].index], ret.guard[1])
        opcode = ("bra", *ret.opcode[1:])
        self.append(replace(ret, guard=guard, opcode=opcode, operands=(_label(frame.end),)))

    def append(self, instruction: FlatInstruction) -> None:
        """Emit one instruction."""
        if any(
            isinstance(operand, LabelRef) or _is_list(operand) for operand in instruction.operands
        ):
            self.branches.append(len(self.out))
        self.out.append(instruction)
        if len(self.out) > MOST_INSTRUCTIONS:
            raise _TooLong

    # -- names -------------------------------------------------------------------------------------

    def renamed(self, frame: _Frame, instruction: FlatInstruction) -> FlatInstruction:
        """Return an instruction of a body with the registers, variables and marks of a frame."""
        is_entry = frame.end is None
        has_label = any(
            isinstance(operand, LabelRef) or _is_list(operand) for operand in instruction.operands
        )
        if is_entry and not has_label:
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

    def operand(self, frame: _Frame, operand: FlatOperand) -> FlatOperand:
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

    # -- calls -------------------------------------------------------------------------------------

    def call(self, frame: _Frame, call: FlatInstruction) -> None:
        """Emit what a call does."""
        if frame.end is None:
            self.outermost = call
        given = operands_of(call)
        call = self.renamed(frame, call)
        target = given.target
        if call.opcode not in CALLS:
            self.wrong(call, f"call has no modifier but .uni, got {call.mnemonic}")
        elif isinstance(target, Register):
            self.not_modelled(call, "a call through a register is not modelled")
        elif not isinstance(target, SymbolRef) or target.kind != "function":
            what = "nothing" if target is None else getattr(target, "name", "no name")
            self.wrong(call, f"call needs a function, got {what}", "call (r), f, (a, b)")
        else:
            self.direct(frame, call, target.name, given)

    def direct(self, frame: _Frame, call: FlatInstruction, name: str, given: CallOperands) -> None:
        """Emit a call of a function by its name."""
        declared = self.functions.declared[name]
        function = self.functions.definition(name)
        wanted = signature_of(function)
        wrong = declaration_problem(declared)
        if function.kind == "entry":
            wrong = f"'{name}' is an entry: only a .func can be called"
        wrong = wrong or problem(name, wanted, given, frame.params)
        if wrong:
            self.wrong(call, wrong)
        elif function.body is None:
            why = f"function '{name}' has no body in this file; hopsim does not link files"
            self.not_modelled(call, why)
        elif name in frame.chain:
            path = " -> ".join([*frame.chain[frame.chain.index(name) :], name])
            self.not_modelled(call, f"recursion is not modelled: {path}; {INLINE}")
        else:
            here = operands_of(call)
            self.guarded(call, lambda: self.body_of(frame, call, function, wanted, here))

    def guarded(self, call: FlatInstruction, emit: Callable[[], None]) -> None:
        """Emit a call; a guarded one with a branch around it."""
        if call.guard is None:
            emit()
            return
        after = self.mark()
        register, negated = call.guard
        self.append(replace(call, guard=(register, not negated), operands=(_label(after),)))
        emit()
        self.set_mark(after)

    def body_of(
        self,
        frame: _Frame,
        call: FlatInstruction,
        function: Function,
        wanted: Signature,
        given: CallOperands,
    ) -> None:
        """Emit the body of a function, between what hands over its arguments and what takes its results."""
        name = function.name
        self.copies[name] = self.copies.get(name, 0) + 1
        # Functions without instructions of their own grow nothing, but take time.
        self.expansions += 1
        if self.expansions > MOST_INSTRUCTIONS:
            raise _TooLong
        flat = self.functions.flat(name)
        self.note(flat.errors)
        registers = self.fresh_registers(flat.body, name)
        inner = _Frame(flat.body, (*frame.chain, name), registers, {}, self.mark(), wanted)
        self.declare(inner, flat.body.variables)
        taken = _taken(flat.body)
        for formal, actual in zip(wanted.params, given.args, strict=True):
            own = (
                actual in given.returns or formal.name in taken or not isinstance(actual, SymbolRef)
            )
            self.hand_over(inner, call, formal, actual, own)
        for formal, actual in zip(wanted.returns, given.returns, strict=True):
            if formal.space == "param":
                inner.names[formal.name] = (
                    actual.name if isinstance(actual, SymbolRef) else self.parameter(formal, name)
                )
        self.emit(inner)
        assert inner.end is not None
        self.set_mark(inner.end)
        for formal, actual in zip(wanted.returns, given.returns, strict=True):
            self.take(inner, call, formal, actual)

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

    def hand_over(
        self, inner: _Frame, call: FlatInstruction, formal: Variable, actual: FlatOperand, own: bool
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
            self.emit_at(call, ("st", "param", kind), _address(unique, 0), actual)
            return
        word = min(alignment_of(formal), 8)
        for offset in range(0, size_of(formal), word):
            between = self.register(f"{unique}+{offset}", word)
            self.load(call, between, actual.name, offset, word)
            self.emit_at(call, ("st", "param", f"b{word * 8}"), _address(unique, offset), between)

    def take(
        self, inner: _Frame, call: FlatInstruction, formal: Variable, actual: FlatOperand
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
            self.emit_at(call, ("st", "param", kind), _address(actual.name, 0), register)

    def register(self, name: str, word: int) -> Register:
        """Make a register for a word of some bytes on its way."""
        register = Register(name, f"b{word * 8}", word * 8, len(self.registers))
        self.registers.append(register)
        return register

    def load(
        self, call: FlatInstruction, register: Register, variable: str, offset: int, word: int
    ) -> None:
        """Emit a load from a `.param` variable, at the place of a call."""
        opcode = ("ld", "param", f"b{word * 8}")
        self.emit_at(call, opcode, register, _address(variable, offset))

    def emit_at(
        self, call: FlatInstruction, opcode: tuple[str, ...], *operands: FlatOperand
    ) -> None:
        """Emit an instruction that stands for a part of a call."""
        self.append(FlatInstruction(call.span, call.loc, None, opcode, operands))


def _label(mark: int) -> LabelRef:
    return LabelRef("", mark)


def _address(name: str, offset: int) -> FlatAddress:
    return FlatAddress(SymbolRef("param", name), offset)


def _is_list(operand: FlatOperand) -> bool:
    return isinstance(operand, FlatVector) and any(
        isinstance(item, LabelRef) for item in operand.items
    )


def _register_of(frame: _Frame, formal: Variable) -> Register | None:
    """Return the register of a `.reg` parameter, None where the body never names it."""
    for register in frame.body.registers:
        if register.name == formal.name:
            return frame.registers[register.index]
    return None


def _addresses_parameters(opcode: tuple[str, ...], operands: Sequence[FlatOperand]) -> bool:
    """Whether an instruction of a function uses the address of a parameter, which is one of local memory here."""
    if not any(word in PARAM for word in opcode):
        return False
    return not any(
        isinstance(one, FlatAddress) and isinstance(one.base, SymbolRef) for one in operands
    )


def _taken(body: FlatBody) -> set[str]:
    """Return the parameters whose address a body takes."""
    return {
        operand.name
        for instruction in body.instructions
        if instruction.opcode[0] != "call"
        for operand in instruction.operands
        if isinstance(operand, SymbolRef) and operand.kind == "param"
    }

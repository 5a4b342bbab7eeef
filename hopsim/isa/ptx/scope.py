"""Scopes: every name of a function body resolved to one register, label or symbol.

A `{ }` block opens a scope; names are looked up innermost first, then among the parameters, the
module and the special registers.  A label is known in its whole block, also before it stands;
everything else from its declaration on.

Source: PTX ISA 8.7 "Identifiers", "Parameterized Variable Names", "Vectors as Operands", "Labels
and Function Names as Operands", "Control Flow Directives"; order of look-up and duplicates as
ptxas 13.0 does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from hopsim.errors import PtxError
from hopsim.isa.ptx.ast import (
    Address,
    Block,
    Directive,
    Element,
    Function,
    Immediate,
    Instruction,
    Label,
    LocDirective,
    Name,
    Negated,
    Operand,
    Pair,
    PtxModule,
    RegisterDeclaration,
    Sink,
    SourceLoc,
    Sum,
    Variable,
    Vector,
)
from hopsim.isa.ptx.constants import WARP_SIZE
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
from hopsim.isa.ptx.names import COMPONENTS, Declared, Meaning, Names, Scope, Targets
from hopsim.isa.ptx.special import has_components
from hopsim.isa.types import TYPES

_COLOURS: Final = {"r": "x", "g": "y", "b": "z", "a": "w"}
_ACCESSES: Final = ("ld", "ldu", "st")
"""Instructions whose address may be an element of an array, in no brackets of its own."""
_TARGET_LISTS: Final = ("branchtargets", "callprototype", "calltargets")


class Flattened(NamedTuple):
    """A function whose names were resolved.

    Args:
        body: in one list, without the statements that are wrong; see `FlatBody`.
        errors: what is wrong with those, by line; the same thing is said once, where it first stands.
    """

    body: FlatBody
    errors: tuple[PtxError, ...]

    def right(self) -> FlatBody:
        """Return the whole body.

        Raises: PtxError: the first, where names are wrong.
        """
        if self.errors:
            # A traceback grows with each raise of the same error.
            raise self.errors[0].with_traceback(None)
        return self.body


def flatten(function: Function, module: PtxModule) -> Flattened:
    """Resolve all names of a function with a body: each is declared once in its scope, and stands where it can.

    Args:
        function: one of `module.items`.
        module: gives the module's variables and functions, and the text for messages.

    Raises:
        PtxError: the function has no body, or a name of the module is defined twice.
    """
    return _Flattening(function, module).run()


class _Flattening:
    def __init__(self, function: Function, module: PtxModule) -> None:
        self.function = function
        self.names = Names(module, function.name)
        self.instructions: list[FlatInstruction] = []
        self.errors: dict[str, PtxError] = {}
        self.labels: dict[str, int] = {}
        self.prototypes: dict[str, Directive] = {}
        self.loc: SourceLoc | None = None
        self.block_labels: list[list[tuple[Label, LabelRef]]] = []
        self.next_block = 0
        self.accesses = False

    def run(self) -> Flattened:
        body = self.function.body
        self.names.span = self.function.span
        if body is None:
            self.names.fail(
                f"function '{self.function.name}' is only declared here: it has no body", ""
            )
        self.number_labels(body, 0)
        scope = Scope(None)
        for parameter in (*self.function.returns, *self.function.params):
            try:
                self.names.declare_parameter(scope, parameter)
            except PtxError as error:
                self.note(error)
        self.block(body, scope)
        if not self.instructions:
            # ptxas takes an empty body; leaving is all it does.
            self.instructions.append(FlatInstruction(self.function.span, None, None, ("ret",), ()))
        flat = FlatBody(
            tuple(self.instructions),
            tuple(self.names.registers),
            self.labels,
            tuple(self.names.variables),
            self.prototypes,
        )
        errors = sorted(self.errors.values(), key=lambda one: (one.line, one.column))
        return Flattened(flat, tuple(errors))

    def note(self, error: PtxError) -> None:
        """Keep what is wrong with a statement, to go on with the next."""
        self.errors.setdefault(error.what, error)

    # --- blocks ----------------------------------------------------------------------------------

    def number_labels(self, block: Block, position: int) -> int:
        """Give every label its instruction index, block by block in text order."""
        own = [label for label in block.statements if isinstance(label, Label)]
        names = iter([self.names.unique_name(label.name) for label in own])
        labels: list[tuple[Label, LabelRef]] = []
        self.block_labels.append(labels)
        for statement in block.statements:
            if isinstance(statement, Instruction):
                position += 1
            elif isinstance(statement, Label):
                name = next(names)
                labels.append((statement, LabelRef(name, position)))
                self.labels[name] = position
            elif isinstance(statement, Block):
                position = self.number_labels(statement, position)
        return position

    def block(self, block: Block, scope: Scope) -> None:
        for label, reference in self.block_labels[self.next_block]:
            try:
                self.names.declare(scope, label.name, reference, label.span)
            except PtxError as error:
                self.note(error)
        self.next_block += 1
        last_label: Label | None = None
        for statement in block.statements:
            match statement:
                case Label():
                    last_label = statement
                    continue
                case LocDirective():
                    self.loc = statement.loc
                    continue
                case Block():
                    self.block(statement, Scope(scope))
                case _:
                    try:
                        self.statement(statement, last_label, scope)
                    except PtxError as error:
                        self.note(error)
            last_label = None

    def statement(
        self,
        statement: Instruction | RegisterDeclaration | Variable | Directive,
        label: Label | None,
        scope: Scope,
    ) -> None:
        match statement:
            case Instruction():
                self.instruction(statement, scope)
            case RegisterDeclaration():
                self.names.declare_registers(scope, statement)
            case Variable():
                self.names.declare_variable(scope, statement)
            case Directive():
                self.directive(statement, label, scope)

    def directive(self, directive: Directive, label: Label | None, scope: Scope) -> None:
        """Bind the label before `.branchtargets` or `.callprototype` to what it stands for."""
        if label is None or directive.name not in _TARGET_LISTS:
            return
        name = label.name
        if name in self.prototypes:
            name = f"{name}@{label.span.line}"
        meaning: Meaning = SymbolRef("prototype", name)
        if directive.name != "branchtargets":
            self.prototypes[name] = directive
        else:
            self.names.span = directive.span
            names = [name.strip() for name in directive.text.split(",")]
            meaning = Targets(tuple(self.label(name, scope) for name in names))
        scope.names[label.name] = meaning
        scope.found.clear()

    def label(self, name: str, scope: Scope) -> LabelRef:
        meaning = self.names.meaning(name, scope)
        if not isinstance(meaning, LabelRef):
            self.names.fail(f"'{name}' is no label", name)
        return meaning

    # --- operands --------------------------------------------------------------------------------

    def instruction(self, instruction: Instruction, scope: Scope) -> None:
        self.names.span = instruction.span
        guard = None
        if instruction.guard is not None:
            guard = (self.guard(instruction.guard.name, scope), instruction.guard.negated)
        self.accesses = instruction.opcode[0] in _ACCESSES
        operands = tuple([self.operand(operand, scope) for operand in instruction.operands])
        self.instructions.append(
            FlatInstruction(instruction.span, self.loc, guard, instruction.opcode, operands)
        )

    def operand(self, operand: Operand, scope: Scope) -> FlatOperand:
        match operand:
            case Name():
                return self.name(operand, scope)
            case Immediate() | Sink():
                return operand
            case Address():
                return self.address(operand, scope)
            case Vector(items):
                return FlatVector(tuple([self.operand(item, scope) for item in items]))
            case Pair(first, second):
                return FlatPair(self.operand(first, scope), self.operand(second, scope))
            case Negated(name):
                return FlatNegated(self.register(name, scope))
            case Sum():
                return self.sum(operand, scope)
            case Element():
                return self.element(operand, scope)

    def name(self, name: Name, scope: Scope) -> FlatOperand:
        if name.name == "WARP_SZ":
            return Immediate("int", WARP_SIZE, "WARP_SZ")
        meaning = self.names.meaning(name.name, scope)
        if name.component:
            return self.component(name, meaning)
        if isinstance(meaning, Declared):
            registers = self.names.use(meaning)
            return registers[0] if len(registers) == 1 else FlatVector(registers)
        return FlatVector(meaning.labels) if isinstance(meaning, Targets) else meaning

    def component(self, name: Name, meaning: Meaning) -> Register | SymbolRef:
        if isinstance(meaning, Declared) and len(name.component) > 1:
            return SymbolRef("part", f"{name.name}.{name.component}")
        letter = _COLOURS.get(name.component, name.component)
        if isinstance(meaning, Declared) and COMPONENTS.index(letter) < meaning.vector:
            return self.names.use(meaning)[COMPONENTS.index(letter)]
        if not isinstance(meaning, SymbolRef) or not has_components(meaning.name):
            self.names.fail(f"'{name.name}' has no component '.{name.component}'", name.name)
        return SymbolRef("special", f"{meaning.name}.{letter}")

    def register(self, name: Name, scope: Scope) -> Register:
        resolved = self.name(name, scope)
        if not isinstance(resolved, Register):
            self.names.fail(f"expected a register, got '{name.name}'", name.name)
        return resolved

    def guard(self, name: Name, scope: Scope) -> Register:
        register = self.register(name, scope)
        if register.type != "pred":
            self.names.fail(
                f"the guard '{name.name}' is .{register.type}, expected .pred",
                name.name,
                "make a predicate of it with a setp instruction",
            )
        return register

    def address(self, address: Address, scope: Scope) -> FlatAddress:
        base = address.base
        if isinstance(base, Name):
            resolved = self.name(base, scope)
            if isinstance(resolved, (LabelRef, FlatVector)):
                what = "a label" if isinstance(resolved, LabelRef) else "a vector"
                self.names.fail(f"{what} is no address: '{base.name}'", base.name)
            assert isinstance(resolved, (Register, SymbolRef, Immediate)), resolved
            base = resolved
        coordinates = tuple([self.operand(item, scope) for item in address.coordinates])
        return FlatAddress(base, address.offset, coordinates)

    def element(self, operand: Element, scope: Scope) -> FlatOperand:
        """Return an element of an array: of a load or a store what lies there, elsewhere its address.

        Source: PTX ISA 8.7 "Arrays as Operands"; an index counts scalars of the array's type, as ptxas 13.0 has it.
        """
        name = operand.base.name
        base = self.name(operand.base, scope)
        declared = self.names.declaration(base.name) if isinstance(base, SymbolRef) else None
        if not isinstance(base, SymbolRef) or declared is None or not declared.dims:
            self.names.fail(f"'{name}' is no array: it has no elements", name)
        if operand.index is not None:
            self.register(operand.index, scope)
            base = SymbolRef("element", f"{name}[{operand.index.name}]")
        elif declared.type in TYPES:
            base = replace(base, offset=operand.offset * TYPES[declared.type].bytes)
        return FlatAddress(replace(base, offset=0), base.offset) if self.accesses else base

    def sum(self, operand: Sum, scope: Scope) -> SymbolRef:
        base = self.name(operand.base, scope)
        if not isinstance(base, SymbolRef):
            name = operand.base.name
            self.names.fail(
                f"'{name}' is no symbol: only a symbol can have an offset outside '[ ]'",
                name,
                "compute the sum with an add instruction",
            )
        return replace(base, offset=operand.offset)

"""The names of one function: declarations, look-up, and messages about both.

`Names` knows the module's symbols and makes `Register`s on first use; a `Scope` is one `{ }`
block.

Source: PTX ISA 8.7 "Identifiers", "Parameterized Variable Names"; order of look-up and duplicates
as ptxas 13.0 does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, TypeAlias

from hopsim.errors import PtxError
from hopsim.isa.ptx.ast import (
    ADDRESS_HINT,
    Initialiser,
    PtxModule,
    RegisterDeclaration,
    Span,
    Variable,
    no_address,
    symbol_of,
    with_symbol,
)
from hopsim.isa.ptx.flat import LabelRef, Register, SymbolRef
from hopsim.isa.ptx.special import SPECIAL_REGISTERS, is_special
from hopsim.isa.ptx.suggest import closest
from hopsim.isa.types import TYPES, WIDEST_BITS

COMPONENTS: Final = "xyzw"
"""Letters of a vector register's components, in order."""


STATIC: Final = ("global", "const")
"""The state spaces whose variables a module holds, also those that a body declares."""


@dataclass(slots=True)
class Declared:
    """A register as declared; it becomes a `Register` when it is first used."""

    name: str
    type: str
    vector: int
    registers: tuple[Register, ...] = ()


@dataclass(slots=True)
class _Family:
    """`%r<5>`: the registers `%r0` to `%r4`."""

    prefix: str
    count: int
    type: str
    vector: int
    suffix: str
    span: Span


@dataclass(slots=True)
class Targets:
    """The label of a `.branchtargets` list."""

    labels: tuple[LabelRef, ...]


Meaning: TypeAlias = Declared | SymbolRef | LabelRef | Targets


@dataclass(slots=True)
class Scope:
    """One block: its names, where they stand, and what look-ups found so far."""

    parent: Scope | None
    names: dict[str, Meaning] = field(default_factory=dict[str, Meaning])
    spans: dict[str, Span] = field(default_factory=dict[str, Span])
    families: list[_Family] = field(default_factory=list[_Family])
    found: dict[str, Meaning] = field(default_factory=dict[str, Meaning])


class Names:
    """Declares and finds the names of one function.

    Args:
        module: gives the symbols, and the text for messages.
        function: whose names they are.

    Attributes:
        registers: those used so far, in order of first use.
        variables, parameters: those declared so far, with unique names.
        span: the statement that messages point at.

    Raises:
        PtxError: the declarations of the module are wrong.
    """

    def __init__(self, module: PtxModule, function: str = "") -> None:
        self.module = module
        self.function = function
        self.span = Span(1, 1)
        self.registers: list[Register] = []
        self.variables: list[Variable] = []
        self.parameters: list[Variable] = []
        self.kinds = module.kinds
        self.register_names: set[str] = set()
        self.serials: dict[str, int] = {}
        self.families: list[_Family] = []
        self.check_module()

    def check_module(self) -> None:
        """Raise where the module's own declarations are wrong."""
        problem = self.module.problem
        if problem is not None:
            self.fail(problem.what, problem.name, problem.hint, problem.span)

    # --- declarations ----------------------------------------------------------------------------

    def unique_name(self, name: str) -> str:
        """Return the name, with `@2`, `@3`, ... from the second scope that declares it on."""
        self.serials[name] = self.serials.get(name, 0) + 1
        serial = self.serials[name] + self.covering(name)
        return name if serial == 1 else f"{name}@{serial}"

    def covering(self, name: str) -> int:
        """Count the families declared so far that have a member of this name."""
        return sum(_is_member(name, family) for family in self.families)

    def declare(self, scope: Scope, name: str, meaning: Meaning, span: Span) -> None:
        """Give a name its meaning in one scope, or raise if it has one there."""
        before = scope.spans.get(name)
        for family in scope.families if before is None else ():
            if _is_member(name, family):
                before = family.span
        if before is not None:
            self.fail_duplicate(name, span, before)
        scope.names[name] = meaning
        scope.spans[name] = span
        scope.found.pop(name, None)

    def declare_registers(self, scope: Scope, declaration: RegisterDeclaration) -> None:
        """Declare the registers and register families of one `.reg`."""
        span = declaration.span
        for name, count in declaration.names:
            if count is None:
                declared = Declared(self.unique_name(name), declaration.type, declaration.vector)
                self.declare(scope, name, declared, span)
                continue
            same = sum(family.prefix == name for family in self.families)
            suffix = f"@{same + 1}" if same else ""
            family = _Family(name, count, declaration.type, declaration.vector, suffix, span)
            for other in scope.families:
                if other.prefix == name:
                    self.fail_duplicate(f"{name}<{count}>", span, other.span, name)
            for declared_name, before in scope.spans.items():
                if _is_member(declared_name, family):
                    self.fail_duplicate(declared_name, span, before, name)
            scope.families.append(family)
            self.families.append(family)
            scope.found.clear()

    def declare_variable(self, scope: Scope, variable: Variable) -> None:
        """Declare a variable of the body and note it under its unique name.

        What is `.global` or `.const` exists once for the module, so that its name has that of the function in it.
        """
        if variable.name in self.kinds:
            # Not to be taken for the one of the module that it hides.
            self.serials.setdefault(variable.name, 1)
        init = tuple(self.initial(variable, value, scope) for value in variable.init or ())
        unique = self.unique_name(variable.name)
        if variable.space in STATIC:
            unique = f"{unique}@{self.function}"
        self.declare(scope, variable.name, SymbolRef(variable.space, unique), variable.span)
        if unique != variable.name:
            variable = replace(variable, name=unique, init=init if variable.init else variable.init)
        self.variables.append(variable)

    def declaration(self, unique: str) -> Variable | None:
        """Return the declaration of a symbol by its unique name; None of what is no variable."""
        for variable in (*self.variables, *self.parameters):
            if variable.name == unique:
                return variable
        last = self.module.named.get(unique, [None])[-1]
        return last if isinstance(last, Variable) else None

    def initial(self, variable: Variable, value: Initialiser, scope: Scope) -> Initialiser:
        """Return an initial value of a variable of the body, with the unique name of the symbol that it holds."""
        name = symbol_of(value)
        if not name:
            return value
        meaning = self.search(name, scope)
        kind = meaning.kind if isinstance(meaning, SymbolRef) else ""
        if kind not in (*STATIC, "function"):
            known = kind if kind in ("shared", "local", "param") else ""
            self.fail(no_address(variable.name, name, known), name, ADDRESS_HINT, variable.span)
        assert isinstance(meaning, SymbolRef), meaning
        return with_symbol(value, meaning.name)

    def declare_parameter(self, scope: Scope, parameter: Variable) -> None:
        """Declare a parameter or a return value; those in `.reg` are registers."""
        unique = self.unique_name(parameter.name)
        self.parameters.append(replace(parameter, name=unique))
        meaning: Meaning = SymbolRef("param", unique)
        if parameter.space == "reg":
            meaning = Declared(unique, parameter.type, parameter.vector)
        self.declare(scope, parameter.name, meaning, parameter.span)

    # --- look-up ---------------------------------------------------------------------------------

    def meaning(self, name: str, scope: Scope) -> Meaning:
        """Return what a name means in a scope, or raise."""
        meaning = scope.found.get(name)
        if meaning is None:
            meaning = self.search(name, scope)
            if meaning is None:
                self.fail_unknown(name, scope)
            scope.found[name] = meaning
        return meaning

    def search(self, name: str, scope: Scope) -> Meaning | None:
        """Look through the scopes outwards, then the module, then the special registers."""
        level: Scope | None = scope
        while level is not None:
            if (meaning := level.names.get(name)) is not None:
                return meaning
            for family in level.families:
                if _is_member(name, family):
                    member = Declared(name + family.suffix, family.type, family.vector)
                    level.names[name] = member
                    return member
            level = level.parent
        if (kind := self.kinds.get(name)) is not None:
            return SymbolRef(kind, name)
        return SymbolRef("special", name) if is_special(name) else None

    def use(self, declared: Declared) -> tuple[Register, ...]:
        """Return the registers behind a declaration, made on first use."""
        if not declared.registers:
            width = min(TYPES[declared.type].width_bits, WIDEST_BITS)
            name = declared.name
            serial = 1
            while name in self.register_names:
                serial += 1
                name = f"{declared.name.partition('@')[0]}@{serial}"
            self.register_names.add(name)
            names = (
                [f"{name}.{letter}" for letter in COMPONENTS[: declared.vector]]
                if declared.vector
                else [f"{name}.lo", f"{name}.hi"]
                if TYPES[declared.type].width_bits > WIDEST_BITS
                else [name]
            )
            first = len(self.registers)
            declared.registers = tuple(
                Register(part, declared.type, width, first + i) for i, part in enumerate(names)
            )
            self.registers += declared.registers
        return declared.registers

    # --- messages --------------------------------------------------------------------------------

    def fail(self, what: str, name: str, hint: str = "", span: Span | None = None) -> NoReturn:
        """Raise at the first place of a name behind the current statement's start."""
        place = span or self.span
        module = self.module
        if not module.text:
            raise PtxError(what, where=module.path, line=place.line, column=place.column, hint=hint)
        source = module.source
        start = source.offset_of(place)
        pattern = rf"(?<![\w$%.]){re.escape(name)}(?![\w$])"
        found = re.compile(pattern).search(source.code, start) if name else None
        source.fail(what, found.start() if found else start, hint)

    def fail_duplicate(self, name: str, span: Span, before: Span, shown: str = "") -> NoReturn:
        """Raise for a second declaration in one scope; `shown` is how the text spells it."""
        self.fail(
            f"'{name}' is already declared in this scope, on line {before.line}",
            shown or name,
            "rename one, or put it into a block of its own",
            span,
        )

    def fail_unknown(self, name: str, scope: Scope) -> NoReturn:
        """Raise for a name that means nothing, with the nearest one that does."""
        known: list[str] = []
        level: Scope | None = scope
        while level is not None:
            for family in level.families:
                if re.fullmatch(re.escape(family.prefix) + r"\d+", name):
                    last = f"{family.prefix}{family.count - 1}"
                    self.fail(
                        f"'{name}' is not declared",
                        name,
                        f"'{family.prefix}<{family.count}>' of line {family.span.line}"
                        f" ends at '{last}'",
                    )
                known.append(f"{family.prefix}0")
            known += level.names
            level = level.parent
        near = closest(name, [*known, *self.kinds, *sorted(SPECIAL_REGISTERS)])
        hint = f"did you mean '{near}'?"
        if not near and name.startswith("%"):
            hint = f"declare it: .reg .b32 {name};"
        elif not near:
            hint = f"a label needs '{name}:' in this body, a variable a declaration before its use"
        self.fail(f"'{name}' is not declared", name, hint)


def _is_member(name: str, family: _Family) -> bool:
    prefix = family.prefix
    if not name.startswith(prefix):
        return False
    number = name[len(prefix) :]
    return number.isdecimal() and (number[0] != "0" or number == "0") and int(number) < family.count

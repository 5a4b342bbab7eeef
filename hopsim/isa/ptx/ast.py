"""The syntax tree of a PTX module, as written: what the parser builds and the printer prints.

Names are kept as in the text; `hopsim.isa.ptx.scope` resolves block-scoped registers and labels
into a `FlatBody`, which is what everything after the front end reads.  Frozen, comparable, no
behaviour but views of a module that are made once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from hopsim.isa.ptx.lexer import Source, Span
from hopsim.isa.types import TYPES


@dataclass(frozen=True, slots=True)
class SourceLoc:
    """What `.loc` says of the instructions after it: file index, line, column of the source."""

    file: int
    line: int
    column: int


# --- operands as written -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A register, special register, symbol or label.

    `component` is the letter after the dot of a vector register (`x y z w` or `r g b a`) or of
    `%tid.x`.
    """

    name: str
    component: str = ""


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal; `kind` is `int` (value, possibly negative), `f32` or `f64` (value = the raw bits).

    A decimal float is an `f64`, as PTX says, also where an f32 is wanted.  `text` is what was
    written and what is printed; empty prints a canonical form.
    """

    kind: str
    value: int
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Sum:
    """`symbol+4` outside an address, as in `mov.b64 %rd1, table+8`."""

    base: Name
    offset: int


@dataclass(frozen=True, slots=True)
class GenericAddress:
    """`generic(symbol)+4` in an initialiser: the symbol's generic address."""

    base: Name
    offset: int = 0


@dataclass(frozen=True, slots=True)
class AddressByte:
    """`0xFF00(symbol)` in an initialiser: one byte of an address, which the mask picks."""

    mask: int
    address: Name | Sum | GenericAddress


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`, or `[base, {c0, c1}]` with tensor coordinates; `base` may be a number."""

    base: Name | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, c}`; of a `call` a list in parentheses, as in `call (ret), f, (a, b)`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`p|q`: two destinations (setp, shfl, elect, match)."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p` as a source operand."""

    operand: Name


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a destination that is thrown away."""


@dataclass(frozen=True, slots=True)
class Element:
    """`a[2]`, `a[%r1]`, `a[%r1+2]`: an element of an array; `offset` counts elements."""

    base: Name
    index: Name | None
    offset: int


Operand: TypeAlias = Name | Immediate | Sum | Element | Address | Vector | Pair | Negated | Sink
Initialiser: TypeAlias = Immediate | Name | Sum | GenericAddress | AddressByte


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    name: Name
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `opcode` is split at dots: `("mbarrier", "init", "shared::cta", "b64")`."""

    span: Span = field(compare=False)
    guard: Guard | None
    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]

    @property
    def mnemonic(self) -> str:
        """The full dotted opcode, as written."""
        return ".".join(self.opcode)


@dataclass(frozen=True, slots=True)
class Label:
    """`NAME:`."""

    span: Span = field(compare=False)
    name: str


@dataclass(frozen=True, slots=True)
class RegisterDeclaration:
    """`.reg .b32 %r<5>, q;`: `names` has (name, count or None); `vector` is 0, 2 or 4."""

    span: Span = field(compare=False)
    type: str
    names: tuple[tuple[str, int | None], ...]
    vector: int = 0


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in a state space, of the module or a body, or a parameter.

    `.shared .align 16 .b8 smem[1024];` for example.  `dims` is empty for a scalar; a dimension of 0
    is `[]`.  `init` is flat in row-major order (rows that the text leaves short are filled with
    zeros; missing elements at the end are zeros too).  `attributes` holds `attribute(.managed)`
    and, of a pointer parameter, what stands from `.ptr` on: `("ptr", "global", "align 1")`.
    """

    span: Span = field(compare=False)
    space: str
    type: str
    name: str
    align: int | None = None
    dims: tuple[int, ...] = ()
    vector: int = 0
    init: tuple[Initialiser, ...] | None = None
    linkage: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LocDirective:
    """`.loc file line column ...`; `rest` keeps what follows."""

    span: Span = field(compare=False)
    loc: SourceLoc
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Directive:
    """Any other directive, kept as text: `.pragma "nounroll"`, `.branchtargets`, `.section {...}`.

    `name` has no dot, `text` is what follows, without comments and without the `;`.
    """

    span: Span = field(compare=False)
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """`{ ... }`: a scope of registers, variables and labels."""

    span: Span = field(compare=False)
    statements: tuple[Statement, ...]


Statement: TypeAlias = (
    Instruction | Label | RegisterDeclaration | Variable | LocDirective | Directive | Block
)


# --- module --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """An `.entry` or `.func`.  `body` is None for a declaration.

    `directives` are the performance directives between parameters and body:
    `(("reqntid", (128,)), ("minnctapersm", (1,)))`; `pragmas` stand there too.
    """

    span: Span = field(compare=False)
    kind: str
    name: str
    linkage: tuple[str, ...]
    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]
    directives: tuple[tuple[str, tuple[int, ...]], ...]
    body: Block | None
    pragmas: tuple[Directive, ...] = ()


class ModuleProblem(NamedTuple):
    """What is wrong with a declaration of a module.

    Args:
        span: of the declaration.  name: what in it is wrong.
    """

    what: str
    name: str
    hint: str
    span: Span


@dataclass(frozen=True)
class PtxModule:
    """A whole PTX text.  `items` keeps the order of the file."""

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    items: tuple[Function | Variable | Directive, ...]
    path: str = field(default="<ptx>", compare=False)
    text: str = field(default="", compare=False, repr=False)

    @cached_property
    def source(self) -> Source:
        """The text, for messages and for what is kept as text."""
        return Source(self.text, self.path)

    @cached_property
    def named(self) -> dict[str, list[Function | Variable]]:
        """The functions and variables by name, each as often as it is declared, in the order of the file."""
        found: dict[str, list[Function | Variable]] = {}
        for item in self.items:
            if not isinstance(item, Directive):
                found.setdefault(item.name, []).append(item)
        return found

    @cached_property
    def problem(self) -> ModuleProblem | None:
        """What is wrong with the declarations of the module, none of which a function can go without."""
        return _problem_of(self)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What each name of the module is: `function`, or its state space; of several declarations the last counts."""
        return {
            name: last.space if isinstance(last := items[-1], Variable) else "function"
            for name, items in self.named.items()
        }

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The functions that `.alias` gives further names, by these names."""
        pairs = [
            [name.strip() for name in item.text.split(",")]
            for item in self.items
            if isinstance(item, Directive) and item.name == "alias"
        ]
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


ADDRESSED: Final = ("global", "const", "func")
"""What a variable can begin as the address of."""


def _problem_of(module: PtxModule) -> ModuleProblem | None:
    """Check that each name is defined once, and that variables begin as addresses of what stands before (ptxas 13.0)."""
    seen: dict[str, Function | Variable] = {}
    for item in module.items:
        if isinstance(item, Directive):
            if item.name == "alias" and (what := _alias_problem(item, seen)):
                return ModuleProblem(what, "", "", item.span)
            continue
        before = seen.get(item.name)
        if before is not None and not _can_follow(before, item):
            what = f"'{item.name}' is already defined, on line {before.span.line}"
            return ModuleProblem(what, item.name, "rename or delete one", item.span)
        if isinstance(before, Function) and isinstance(item, Function):
            differs = _difference(before, item)
            if differs:
                what = f"'{item.name}' is declared otherwise on line {before.span.line}: {differs}"
                return ModuleProblem(what, item.name, "", item.span)
        for name in _addresses(item):
            base = seen.get(name)
            kind = base.space if isinstance(base, Variable) else base.kind if base else ""
            if kind not in ADDRESSED:
                return ModuleProblem(
                    no_address(item.name, name, kind), name, ADDRESS_HINT, item.span
                )
        seen[item.name] = item
    return None


ADDRESS_HINT: Final = (
    "a variable can begin as the address of a '.global' or '.const' one, or of a '.func' function"
)


def no_address(variable: str, symbol: str, kind: str) -> str:
    """Say why a variable cannot begin as the address of a symbol, which is of a kind (empty: of none)."""
    if kind:
        return f"'{variable}' cannot begin as the address of '{symbol}', which is '.{kind}'"
    return f"'{symbol}' is not declared before '{variable}', which begins as its address"


def _addresses(item: Function | Variable) -> list[str]:
    names = item.init if isinstance(item, Variable) else None
    return [name for value in names or () if (name := symbol_of(value))]


def _can_follow(before: Variable | Function, item: Variable | Function) -> bool:
    if isinstance(before, Function) and isinstance(item, Function):
        return before.body is None or item.body is None
    if isinstance(before, Variable) and isinstance(item, Variable):
        return before.space == item.space and "extern" in (*before.linkage, *item.linkage)
    return False


def _alias_problem(directive: Directive, seen: dict[str, Function | Variable]) -> str:
    """Say what is wrong with an `.alias`: a declared function, and one with a body, both before it (ptxas 13.0)."""
    names = [name.strip() for name in directive.text.split(",")]
    if len(names) != 2:
        return f"'.alias' takes two names, got {len(names)}"
    alias, base = (seen.get(name) for name in names)
    for name, item in zip(names, (alias, base), strict=True):
        if not isinstance(item, Function):
            return f"'{name}' of '.alias' is no function that is declared before"
    assert isinstance(alias, Function)
    assert isinstance(base, Function)
    if alias.body is not None:
        return f"'{alias.name}' has a body: it cannot become an alias of '{base.name}'"
    differs = _difference(alias, base)
    return f"'{alias.name}' cannot be an alias of '{base.name}': {differs}" if differs else ""


def _difference(before: Function, item: Function) -> str:
    """Say how two prototypes of a function differ; names of parameters may (ptxas 13.0)."""
    if before.kind != item.kind:
        return f".{before.kind} there, .{item.kind} here"
    sides = (
        ("return values", before.returns, item.returns),
        ("parameters", before.params, item.params),
    )
    for what, ones, others in sides:
        if len(ones) != len(others):
            return f"{len(ones)} {what} there, {len(others)} here"
        for one, other in zip(ones, others, strict=True):
            if _prototype(one) != _prototype(other):
                return f"'{_written(one)}' there, '{_written(other)}' here"
    return ""


def _prototype(variable: Variable) -> tuple[object, ...]:
    align = variable.align or TYPES[variable.type].bytes
    return variable.space, variable.type, variable.dims, variable.vector, align


def _written(variable: Variable) -> str:
    align = f".align {variable.align} " if variable.align else ""
    dims = "".join([f"[{size or ''}]" for size in variable.dims])
    return f".{variable.space} {align}.{variable.type} {variable.name}{dims}"


def symbol_of(value: Initialiser) -> str:
    """Return the name of the symbol whose address an initial value holds; empty for a number."""
    if isinstance(value, AddressByte):
        value = value.address
    if isinstance(value, Immediate):
        return ""
    return value.name if isinstance(value, Name) else value.base.name


def with_symbol(value: Initialiser, name: str) -> Initialiser:
    """Return an initial value that holds the address of another symbol; a number stays as it is."""
    match value:
        case AddressByte():
            address = with_symbol(value.address, name)
            assert isinstance(address, (Name, Sum, GenericAddress)), address
            return replace(value, address=address)
        case Name():
            return Name(name)
        case Sum() | GenericAddress():
            return replace(value, base=Name(name))
        case Immediate():
            return value

"""The functions of a module: which there are, and which a call through a register may be of.

Source: PTX ISA 8.7 ".func", ".callprototype", ".calltargets".
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from hopsim.errors import PtxError
from hopsim.isa.program.signatures import Signature, is_like, prototype_signature, signature_of
from hopsim.isa.ptx.ast import (
    Block,
    Directive,
    Function,
    Instruction,
    Name,
    PtxModule,
    Variable,
    symbol_of,
)
from hopsim.isa.ptx.flat import FlatBody, SymbolRef
from hopsim.isa.ptx.scope import Flattened, flatten

SOURCE: Final = 'PTX ISA 8.7, "call", "Parameter State Space"'


class Functions:
    """The functions of a module, flattened when they are first called."""

    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.declared = {
            name: functions
            for name, items in module.named.items()
            if (functions := [item for item in items if isinstance(item, Function)])
        }
        self.aliases = module.aliases
        self._flat: dict[str, Flattened] = {}

    def definition(self, name: str) -> Function:
        """Return the declaration that has the body, or else the first."""
        declared = self.declared[name]
        return next((one for one in declared if one.body is not None), declared[0])

    @cached_property
    def taken(self) -> tuple[str, ...]:
        """The functions with bodies whose address some instruction or initialiser takes, in order of the text."""
        found: set[str] = set()
        for item in self.module.items:
            if isinstance(item, Variable):
                found |= {symbol_of(one) for one in item.init or ()}
            elif isinstance(item, Function) and item.body is not None and self._mentions(item.body):
                # Only then is it worth telling a function's name from a local one that is spelt alike.
                flat = self.flat(item.name) if item.kind == "func" else flatten(item, self.module)
                found |= addressed(flat.body, "function")
        found = {self.aliases.get(name, name) for name in found}
        return tuple(name for name in self.declared if name in found and self._can_be_called(name))

    def _mentions(self, block: Block) -> bool:
        """Whether something in a block, other than a call, has an operand or an initial value spelt like a function."""
        for one in block.statements:
            if isinstance(one, Instruction):
                if one.opcode[0] != "call" and any(
                    isinstance(operand, Name)
                    and (operand.name in self.declared or operand.name in self.aliases)
                    for operand in one.operands
                ):
                    return True
            elif isinstance(one, Variable):
                names = {symbol_of(value) for value in one.init or ()}
                if not names.isdisjoint((*self.declared, *self.aliases)):
                    return True
            elif isinstance(one, Block) and self._mentions(one):
                return True
        return False

    def _can_be_called(self, name: str) -> bool:
        function = self.definition(name)
        return function.kind == "func" and function.body is not None

    def candidates(self, directive: Directive) -> tuple[tuple[str, ...], dict[str, Signature]]:
        """Return the functions that a call through a register may be of, and the signatures that its operands must fit.

        Args:
            directive: its `.callprototype` or `.calltargets`.
        Raises: PtxError: it is malformed, or names what is no function.
        """
        if directive.name == "callprototype":
            wanted = prototype_signature(directive, self.module)
            like = [
                name for name in self.taken if is_like(signature_of(self.definition(name)), wanted)
            ]
            return tuple(like), {"_": wanted}
        listed = [name.strip() for name in directive.text.split(",")]
        names = tuple(dict.fromkeys(self.aliases.get(name, name) for name in listed))
        for name in names:
            if name not in self.declared or not self._can_be_called(name):
                raise PtxError(
                    f"'{name}' in .calltargets is no function with a body",
                    where=self.module.path, line=directive.span.line, column=directive.span.column,
                    source=SOURCE,
                )  # fmt: skip
        return names, {name: signature_of(self.definition(name)) for name in names}

    def flat(self, name: str) -> Flattened:
        """Return the body of a function that has one."""
        if name not in self._flat:
            self._flat[name] = flatten(self.definition(name), self.module)
        return self._flat[name]


def addressed(body: FlatBody, kind: str) -> set[str]:
    """Return the symbols of a kind (`function`, `param`) whose address a body takes."""
    found = {
        operand.name
        for instruction in body.instructions
        if instruction.opcode[0] != "call"
        for operand in instruction.operands
        if isinstance(operand, SymbolRef) and operand.kind == kind
    }
    if kind == "function":
        found |= {symbol_of(value) for one in body.variables for value in one.init or ()}
    return found

"""What a call gives and takes, judged against the parameters of the function.

Source: PTX ISA 8.7 "call", ".callprototype", ".calltargets"; what fits is what ptxas 13.0 takes: operands count by their
bytes, whether scalar or array, and alignment; of the types an integer for a float is refused, and a float for an integer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hopsim.isa.forms.operand_rules import INTEGERS, space_problem
from hopsim.isa.program.symbols import alignment_of, size_of
from hopsim.isa.ptx.ast import Directive, Function, Immediate, PtxModule, Sink, Variable
from hopsim.isa.ptx.declarations import parse_parameters
from hopsim.isa.ptx.flat import (
    FlatAddress,
    FlatInstruction,
    FlatOperand,
    FlatVector,
    Register,
    SymbolRef,
)
from hopsim.isa.ptx.lexer import Cursor
from hopsim.isa.types import TYPES


class Signature(NamedTuple):
    """What a function returns and takes."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]


class CallOperands(NamedTuple):
    """The operands of a `call`: what it fills, the function (a symbol, or a register), what it gives, the prototype."""

    returns: tuple[FlatOperand, ...]
    target: FlatOperand | None
    args: tuple[FlatOperand, ...]
    prototype: FlatOperand | None


def operands_of(call: FlatInstruction) -> CallOperands:
    """Sort the operands of a `call` by what they are for; `target` is None where they stand in no such order."""
    rest = list(call.operands)
    returns = rest.pop(0) if len(rest) > 1 and isinstance(rest[0], FlatVector) else FlatVector(())
    target = rest.pop(0) if rest else None
    args = rest.pop(0) if rest and isinstance(rest[0], FlatVector) else FlatVector(())
    prototype = rest.pop(0) if rest else None
    assert isinstance(returns, FlatVector)
    assert isinstance(args, FlatVector)
    if rest or isinstance(target, FlatVector):
        target = None
    return CallOperands(returns.items, target, args.items, prototype)


def signature_of(function: Function) -> Signature:
    """Return what a function returns and takes."""
    return Signature(function.returns, function.params)


def prototype_signature(directive: Directive, module: PtxModule) -> Signature:
    """Read a `.callprototype`.

    Raises: PtxError: it is malformed.
    """
    source = module.source
    cursor = Cursor(source, source.offset_of(directive.span))
    cursor.advance()
    returns = parse_parameters(cursor) if cursor.text == "(" else ()
    if not cursor.accept("_"):
        cursor.fail(f"expected '_' in the place of a name, got {cursor.shown()}")
    signature = Signature(returns, parse_parameters(cursor) if cursor.text == "(" else ())
    if not cursor.at("dotted"):
        cursor.expect(";", "after a prototype")
    return signature


def is_like(one: Signature, other: Signature) -> bool:
    """Whether functions of two signatures are called alike."""
    return _shape(one) == _shape(other)


def _shape(signature: Signature) -> tuple[list[tuple[int, bool]], ...]:
    return tuple([(size_of(v), bool(v.dims)) for v in part] for part in signature)


def problem(
    name: str, wanted: Signature, given: CallOperands, variables: Mapping[str, Variable]
) -> str:
    """Return what is wrong with the operands of a call, or the empty string.

    Args:
        name: of the function, for messages.
        wanted: what it returns and takes.
        given: what stands there.
        variables: the `.param` variables that the caller declared.
    """
    sides = (
        ("return value", "return values", wanted.returns, given.returns),
        ("argument", "arguments", wanted.params, given.args),
    )
    for one, many, formals, actuals in sides:
        if len(formals) != len(actuals):
            word = one if len(formals) == 1 else many
            return f"call of '{name}': expected {len(formals)} {word}, got {len(actuals)}"
        for number, (formal, actual) in enumerate(zip(formals, actuals, strict=True), 1):
            what = f"{one} {number}" if len(formals) > 1 else f"the {one}"
            wrong = _misfit(formal, actual, variables, one == "argument")
            if wrong:
                return f"call of '{name}': {what} {wrong}"
    for formal in (*wanted.returns, *wanted.params):
        if formal.type == "pred":
            return f"'{name}' has the predicate '{formal.name}' as a parameter, which no function can: pass an integer"
        if TYPES[formal.type].kind in INTEGERS and size_of(formal) in (1, 2) and not formal.dims:
            return (
                f"'{name}' has the .{formal.type} '{formal.name}' as a parameter, which no function can:"
                f" declare it .b{8 * size_of(formal)} or 32 bits wide"
            )
    if len(wanted.returns) > 1 and any(v.space == "param" for v in wanted.returns):
        return f"'{name}' returns {len(wanted.returns)} values: only one can be a .param"
    return ""


def _misfit(
    formal: Variable, actual: FlatOperand, variables: Mapping[str, Variable], is_argument: bool
) -> str:
    size, align = size_of(formal), alignment_of(formal)
    wanted = f"parameter '{formal.name}'" if formal.name != "_" else "the parameter"
    if isinstance(actual, Sink):
        return "is '_', which stands for what is thrown away" if is_argument else ""
    if isinstance(actual, Immediate):
        if not is_argument:
            return "is a number, expected a register or a .param variable"
        if formal.dims:
            return f"is a number, but {wanted} is an array"
        if actual.kind == "int" and TYPES[formal.type].kind == "float":
            return f"is an integer, but {wanted} is .{formal.type}; write 0f3F800000 or 0d..."
        is_other = actual.kind != "int" and TYPES[formal.type].kind in INTEGERS
        return f"is {actual.text}, but {wanted} is .{formal.type}" if is_other else ""
    if isinstance(actual, Register):
        got, got_align, is_array = actual.width_bits // 8, actual.width_bits // 8, False
        kind = actual.type
    elif isinstance(actual, SymbolRef) and actual.name in variables:
        variable = variables[actual.name]
        got, got_align, is_array = size_of(variable), alignment_of(variable), bool(variable.dims)
        kind = variable.type
    elif isinstance(actual, SymbolRef) and actual.kind == "param":
        return f"is parameter '{actual.name}' of the caller: load it, and give the register"
    else:
        return "must be a register, a number or a .param variable"
    if got != size:
        return f"has {got} bytes, but {wanted} has {size}"
    if is_array != bool(formal.dims):
        return f"is {'an array' if is_array else 'a scalar'}, but {wanted} is {'an array' if formal.dims else 'a scalar'}"
    if got_align < align or (got_align > align and isinstance(actual, SymbolRef)):
        return f"is aligned to {got_align} bytes, but {wanted} to {align}"
    kinds = {TYPES[kind].kind, TYPES[formal.type].kind}
    if "float" in kinds and not kinds.isdisjoint(INTEGERS):
        return f"is .{kind}, but {wanted} is .{formal.type}"
    return ""


def misuse(instruction: FlatInstruction, variables: Mapping[str, Variable], own: Signature) -> str:
    """Return which parameter an instruction of a function cannot use as it does, or the empty string.

    Args:
        variables: the `.param` variables that the function declared for its calls.
        own: what the function itself returns and takes.
    """
    opcode = instruction.opcode
    places = [operand for operand in instruction.operands if isinstance(operand, FlatAddress)]
    for operand in instruction.operands:
        if isinstance(operand, SymbolRef) and operand.name in variables:
            return f"the address of '{operand.name}' cannot be taken: it is a parameter of a call"
    for number, operand in enumerate(places):
        if not isinstance(operand.base, SymbolRef):
            continue
        name, word = operand.base.name, opcode[0]
        formals = (*own.params, *own.returns)
        is_parameter = name in variables or any(formal.name == name for formal in formals)
        if is_parameter and (wrong := space_problem(opcode, "a", number, operand.base)):
            return f"{instruction.mnemonic}: {wrong}"
        if name in variables and instruction.guard is not None:
            return f"'{name}' is a parameter of a call: {instruction.mnemonic} of it cannot have a guard"
        if word == "st" and any(formal.name == name for formal in own.params):
            return f"'{name}' is an argument of this function: it can be read only"
        if word == "ld" and any(formal.name == name for formal in own.returns):
            return f"'{name}' is what this function returns: it can be written only"
    return ""

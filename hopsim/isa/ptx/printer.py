"""Syntax tree to PTX text; `parse(print_module(module)) == module`.

Comments and the layout of the original are lost, literals keep their spelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hopsim.isa.ptx.ast import (
    Address,
    AddressByte,
    Block,
    Directive,
    Element,
    Function,
    GenericAddress,
    Immediate,
    Initialiser,
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
    Statement,
    Sum,
    Variable,
    Vector,
)


def print_module(module: PtxModule) -> str:
    """Return the PTX text of a module."""
    lines = [
        f".version {module.version[0]}.{module.version[1]}",
        f".target {', '.join(module.target)}",
        f".address_size {module.address_size}",
        "",
    ]
    for item in module.items:
        match item:
            case Function():
                lines += _function(item)
            case Variable():
                lines.append(f"{_variable(item)};")
            case Directive():
                lines.append(_directive(item))
    return "\n".join(lines) + "\n"


def print_instruction(instruction: Instruction) -> str:
    """Return one instruction with its `;`."""
    guard = ""
    if instruction.guard is not None:
        bang = "!" if instruction.guard.negated else ""
        guard = f"@{bang}{_name(instruction.guard.name)} "
    is_call = instruction.opcode[0] == "call"
    operands = ", ".join(print_operand(operand, is_call) for operand in instruction.operands)
    return f"{guard}{instruction.mnemonic}{' ' if operands else ''}{operands};"


def print_operand(operand: Operand, is_call: bool = False) -> str:
    """Return the text of one operand; the lists of a `call` stand in parentheses."""
    match operand:
        case Name():
            return _name(operand)
        case Immediate():
            return _immediate(operand)
        case Sum(base, offset):
            return f"{_name(base)}+{offset}"
        case Element(base, index, offset):
            parts = [_name(index)] if index is not None else []
            parts += [str(offset)] if offset or index is None else []
            return f"{_name(base)}[{'+'.join(parts)}]"
        case Address(base, offset, coordinates):
            start = _name(base) if isinstance(base, Name) else _immediate(base)
            sum_text = f"{start}+{offset}" if offset else start
            items = ", ".join(print_operand(item) for item in coordinates)
            return f"[{sum_text}, {{{items}}}]" if coordinates else f"[{sum_text}]"
        case Vector(items):
            text = ", ".join(print_operand(item) for item in items)
            return f"({text})" if is_call else f"{{{text}}}"
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Negated(name):
            return f"!{_name(name)}"
        case Sink():
            return "_"


def _name(name: Name) -> str:
    return f"{name.name}.{name.component}" if name.component else name.name


def _immediate(immediate: Immediate) -> str:
    if immediate.text:
        return immediate.text
    if immediate.kind == "int":
        # The digits of the least integer are those of an unsigned one.
        return str(immediate.value) if immediate.value > -1 << 63 else "1<<63"
    return f"0f{immediate.value:08X}" if immediate.kind == "f32" else f"0d{immediate.value:016X}"


def _directive(directive: Directive) -> str:
    end = "" if directive.name in ("file", "section") else ";"
    return f".{directive.name} {directive.text}{end}"


def _function(function: Function) -> list[str]:
    head = [f".{word}" for word in (*function.linkage, function.kind)]
    if function.returns:
        head.append(f"({', '.join(_variable(item) for item in function.returns)})")
    head.append(function.name)
    lines = [" ".join(head) + "("]
    lines += [f"\t{_variable(item)}," for item in function.params]
    lines[-1] = lines[-1].removesuffix(",")
    lines.append(")")
    for name, numbers in function.directives:
        lines.append(f".{name} {', '.join(map(str, numbers))}".rstrip())
    lines += map(_directive, function.pragmas)
    if function.body is None:
        lines.append(";")
    else:
        lines.append("{")
        _statements(function.body.statements, "\t", lines)
        lines.append("}")
    lines.append("")
    return lines


def _statements(statements: Sequence[Statement], indent: str, lines: list[str]) -> None:
    for statement in statements:
        match statement:
            case Instruction():
                lines.append(f"{indent}{print_instruction(statement)}")
            case Label():
                lines.append(f"{statement.name}:")
            case RegisterDeclaration():
                lines.append(f"{indent}{_registers(statement)}")
            case Variable():
                lines.append(f"{indent}{_variable(statement)};")
            case LocDirective(_, loc, rest):
                lines.append(f"{indent}.loc {loc.file} {loc.line} {loc.column} {rest}".rstrip())
            case Directive():
                lines.append(f"{indent}{_directive(statement)}")
            case Block():
                lines.append(f"{indent}{{")
                _statements(statement.statements, indent + "\t", lines)
                lines.append(f"{indent}}}")


def _registers(declaration: RegisterDeclaration) -> str:
    vector = f" .v{declaration.vector}" if declaration.vector else ""
    names = ", ".join(
        name if count is None else f"{name}<{count}>" for name, count in declaration.names
    )
    return f".reg{vector} .{declaration.type} {names};"


def _variable(variable: Variable) -> str:
    words = [f".{word}" for word in (*variable.linkage, variable.space)]
    if variable.align is not None:
        words.append(f".align {variable.align}")
    pointer = variable.attributes.index("ptr") if "ptr" in variable.attributes else None
    words += [f".{word}" for word in variable.attributes[:pointer]]
    if variable.vector:
        words.append(f".v{variable.vector}")
    words.append(f".{variable.type}")
    if pointer is not None:
        words += [f".{word}" for word in variable.attributes[pointer:]]
    dims = "".join(f"[{size}]" if size else "[]" for size in variable.dims)
    text = f"{' '.join(words)} {variable.name}{dims}"
    if variable.init is None:
        return text
    sizes = (*variable.dims, variable.vector) if variable.vector else variable.dims
    values = [_initialiser(value) for value in variable.init]
    return f"{text} = {_rows(values, sizes) if sizes else values[0]}"


def _rows(values: Sequence[str], sizes: Sequence[int]) -> str:
    """Put the braces of a nested initialiser around flat values."""
    inner = sizes[1:]
    if not inner:
        return "{" + ", ".join(values) + "}"
    step = prod(inner)
    rows = (_rows(values[i : i + step], inner) for i in range(0, len(values), step))
    return "{" + ", ".join(rows) + "}"


def _initialiser(value: Initialiser) -> str:
    if isinstance(value, AddressByte):
        return f"{value.mask:#x}({_initialiser(value.address)})"
    if isinstance(value, GenericAddress):
        offset = f"+{value.offset}" if value.offset else ""
        return f"generic({_name(value.base)}){offset}"
    return print_operand(value)

"""Declarations of registers and variables, with their initialisers.

Source: PTX ISA 8.7 "State Spaces", "Variables", "Initializers", "Kernel Function Parameter
Attributes".
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import Final

from hopsim.errors import NotModelled
from hopsim.isa.ptx.ast import (
    AddressByte,
    GenericAddress,
    Immediate,
    Initialiser,
    Name,
    RegisterDeclaration,
    Sum,
    Variable,
)
from hopsim.isa.ptx.constants import WARP_SIZE, parse_constant, parse_number, parse_offset
from hopsim.isa.ptx.lexer import IDENTIFIER, Cursor, Source
from hopsim.isa.ptx.suggest import closest
from hopsim.isa.types import OPAQUE_BYTES, OPERANDS_ONLY, TYPES

SPACES: Final = ("global", "const", "shared", "local", "param")
"""State spaces in which a variable can be declared."""

MOST_OF_A_NAME: Final = 10_000
"""So many variables may `g<N>` stand for."""
_INITIALISED: Final = ("global", "const")
_POINTER_SPACES: Final = ("global", "const", "shared", "local")
_VECTORS: Final = {".v2": 2, ".v4": 4}
_WHOLE: Final = ("signed", "unsigned", "bits")
_FLOATS: Final = ("f32", "f64")
"""Types that begin as floats, and those of bits that may."""
_BITS_OF_FLOATS: Final = ("b32", "b64")
_BYTES: Final = tuple(0xFF << shift for shift in range(0, 64, 8))
_LEAST_ADDRESS: Final = 4
"""Bytes of what can hold an address, if only its low half."""
_ATTRIBUTES: Final = ("(.managed)", "(.unified)", "(.unified(", "(.managed,", "(.unified,")
_SIMPLE: Final = re.compile(
    rf"""\s*+\.(?P<space>reg|param|local)\s++(?:\.align\s++(?P<align>[1-9]\d{{0,3}}+)\s++)?
    \.(?P<type>\w++)\s++(?P<name>{IDENTIFIER})\s*+
    (?:<(?P<count>[1-9]\d{{0,8}}+)>|\[(?P<size>[1-9]\d{{0,8}}+)\])?\s*+;""",
    re.VERBOSE | re.ASCII,
)
_DECIMAL_LIST: Final = re.compile(
    r"\{(\s*+-?(?:0|[1-9]\d{0,17}+)\s*+(?:,\s*+-?(?:0|[1-9]\d{0,17}+)\s*+)*+)\}", re.ASCII
)


def declared_name(cursor: Cursor, after: str) -> str:
    """Take an identifier, or raise; `after` says where it should stand."""
    if not cursor.at("name"):
        cursor.fail(f"expected a name after {after}, got {cursor.shown()}")
    if "." in cursor.text:
        cursor.fail(f"a declared name has no component, got '{cursor.text}'")
    return cursor.take()


def simple_declaration(
    source: Source, offset: int
) -> tuple[RegisterDeclaration | Variable, int] | None:
    """Read a declaration of the kinds that debug builds have by the thousand, and where it ends; None: it is another one.

    The token walk of `parse_registers` and `parse_variables` gives the same.
    """
    match = _SIMPLE.match(source.code, offset)
    if match is None or (kind := match["type"]) not in TYPES:
        return None
    if match["space"] == "reg" and kind in OPERANDS_ONLY:
        return None
    span = source.locate(match.start("space") - 1)
    space, size = match["space"], match["size"]
    if space == "reg":
        count = match["count"]
        if size or match["align"]:
            return None
        names = ((match["name"], int(count) if count else None),)
        return RegisterDeclaration(span, kind, names), match.end()
    align = int(match["align"]) if match["align"] else None
    if kind == "pred" or match["count"] or (align is not None and align & align - 1):
        return None
    dims = (int(size),) if size else ()
    return Variable(span, space, kind, match["name"], align, dims), match.end()


def parse_registers(cursor: Cursor) -> RegisterDeclaration:
    """Read from `.reg` to behind the `;`: `.reg .b32 %r<5>, q;`, `.reg .v4 .s32 abcd;`.

    Raises:
        PtxError: the declaration is malformed.
    """
    span = cursor.source.locate(cursor.start)
    cursor.advance()
    vector = 0
    if cursor.text in _VECTORS:
        vector = _VECTORS[cursor.take()]
    if cursor.text[1:] in OPERANDS_ONLY:
        cursor.fail(
            f"a register cannot be '{cursor.text}', which is a type of instructions",
            f"declare it .b{TYPES[cursor.text[1:]].width_bits}",
        )
    kind = _type(cursor, "'.reg'")
    names: list[tuple[str, int | None]] = []
    while True:
        name = declared_name(cursor, f"'.{kind}'" if not names else "','")
        count = None
        if cursor.accept("<"):
            count = integer(cursor, f"the number of registers '{name}<...>'")
            cursor.expect(">", f"after '{name}<{count}'")
        names.append((name, count))
        if not cursor.accept(","):
            break
    cursor.expect(";", f"after '{name}'")
    return RegisterDeclaration(span, kind, tuple(names), vector)


def integer(cursor: Cursor, what: str) -> int:
    """Take an integer literal, or raise; `what` names it for the message."""
    if cursor.accept("WARP_SZ"):
        return WARP_SIZE
    if not cursor.at("number"):
        cursor.fail(f"expected {what}, got {cursor.shown()}")
    start = cursor.start
    number = parse_number(cursor)
    if number.kind != "int":
        cursor.source.fail(f"expected an integer as {what}, got '{number.text}'", start)
    return number.value


def parse_variables(cursor: Cursor, linkage: tuple[str, ...] = ()) -> list[Variable]:
    """Read from the state space to behind the `;`: `.global .align 4 .u32 a, b[2] = {1, 2};`.

    Raises:
        PtxError: the declaration is malformed, or its initialiser does not fit.
        NotModelled: a name stands for too many variables.
    """
    kind = _Modifiers(cursor, linkage)
    variables = kind.variables(cursor, f"'.{kind.type}'")
    while cursor.accept(","):
        variables += kind.variables(cursor, "','")
    cursor.expect(";", f"after '{variables[-1].name}'" if variables else "after '>'")
    return variables


def parse_parameters(cursor: Cursor, kind: str = "func") -> tuple[Variable, ...]:
    """Read a parameter list of an `entry` or a `func` from `(` to behind `)`.

    Raises:
        PtxError: the list is malformed.
    """
    cursor.expect("(", "before a parameter list")
    parameters: list[Variable] = []
    if cursor.accept(")"):
        return ()
    while True:
        if cursor.text not in ((".param", ".reg") if kind == "func" else (".param",)):
            cursor.fail(f"expected '.param' in a parameter list, got {cursor.shown()}")
        start = cursor.start
        written = _Modifiers(cursor, ())
        if written.vector and written.space == "param":
            cursor.source.fail(
                "a parameter cannot be a vector", start, "declare an array, as in .param .align 16 .b8 p[16]"
            )  # fmt: skip
        parameters.append(written.variable(cursor, f"'.{written.type}'"))
        if cursor.accept(")"):
            return tuple(parameters)
        if not cursor.accept(","):
            cursor.fail(
                f"expected ',' or ')' after parameter '{parameters[-1].name}', got {cursor.shown()}"
            )


def _type(cursor: Cursor, after: str) -> str:
    if not cursor.at("dotted"):
        cursor.fail(f"expected a type like .b32 after {after}, got {cursor.shown()}")
    word = cursor.text[1:]
    if word not in TYPES:
        near = closest(word, TYPES)
        cursor.fail(f"unknown type '.{word}'", f"did you mean '.{near}'?" if near else "")
    cursor.advance()
    return word


class _Modifiers:
    """What stands between the state space and the name; `variable` reads one name with it."""

    def __init__(self, cursor: Cursor, linkage: tuple[str, ...]) -> None:
        self.start: int | None = cursor.start
        self.linkage = linkage
        last = cursor.text
        self.space = cursor.take()[1:]
        self.align: int | None = None
        self.vector = 0
        attributes: list[str] = []
        while cursor.text in (".align", ".attribute") or cursor.text in _VECTORS:
            last = cursor.take()
            if last == ".align":
                self.align = _alignment(cursor)
            elif last == ".attribute":
                attributes.append(_attribute(cursor))
            else:
                self.vector = _VECTORS[last]
        type_start = cursor.start
        is_opaque = self.space == "global" and cursor.text[1:] in OPAQUE_BYTES
        self.type = cursor.take()[1:] if is_opaque else _type(cursor, f"'{last}'")
        if self.type == "pred" and self.space != "reg":
            cursor.source.fail(
                f"a predicate cannot be in '.{self.space}', only in '.reg'",
                type_start,
                "keep it in memory as an integer: selp.u32 makes one, setp reads it",
            )
        if self.space == "param" and cursor.text == ".ptr":
            attributes += _pointer(cursor)
        self.attributes = tuple(attributes)

    def variables(self, cursor: Cursor, after: str) -> list[Variable]:
        """Read one name with what belongs to it: `g`, `g[4] = {1}`, or `g<3>`, which is `g0`, `g1`, `g2`."""
        place = cursor.start
        one = self.variable(cursor, after)
        if not cursor.accept("<"):
            return [one]
        if one.dims or one.init is not None:
            cursor.source.fail(
                f"'{one.name}<...>' can be neither an array nor begin with values", place
            )
        count = integer(cursor, f"the number of variables '{one.name}<...>'")
        cursor.expect(">", f"after '{one.name}<{count}'")
        if cursor.text in ("[", "="):
            cursor.fail(f"'{one.name}<{count}>' can be neither an array nor begin with values")
        if count > MOST_OF_A_NAME:
            span = cursor.source.locate(place)
            raise NotModelled(
                f"'{one.name}<{count}>' is {count:,} variables: over {MOST_OF_A_NAME:,} of one name are not modelled",
                where=f"{cursor.source.path}:{span.line}:{span.column}", hint=f"declare an array, '{one.name}[{count}]'",
            )  # fmt: skip
        return [replace(one, name=f"{one.name}{number}") for number in range(count)]

    def variable(self, cursor: Cursor, after: str) -> Variable:
        start = cursor.start if self.start is None else self.start
        self.start = None
        name_start = cursor.start
        name = declared_name(cursor, after)
        dims: list[int] = []
        while cursor.accept("["):
            dims.append(0 if cursor.text == "]" else integer(cursor, f"a size of '{name}'"))
            cursor.expect("]", f"after the size of '{name}'")
        if any(size == 0 for size in dims[1:]):
            cursor.source.fail(f"only the first dimension of '{name}' can be left open", name_start)
        init = None
        if cursor.text == "=":
            if self.space not in _INITIALISED:
                cursor.fail(
                    f"'.{self.space}' variable '{name}' cannot have an initial value",
                    "only '.global' and '.const' variables can",
                )
            cursor.advance()
            init = _initialiser(cursor, self.type, tuple(dims), self.vector)
        elif dims[:1] == [0] and self.space != "param" and "extern" not in self.linkage:
            cursor.source.fail(
                f"'{name}' has no size: only an '.extern' variable, or one with initial values, can do without",
                name_start,
                "write '.extern .shared' for the dynamic shared memory of a launch"
                if self.space == "shared"
                else "",
            )
        return Variable(
            cursor.source.locate(start),
            self.space,
            self.type,
            name,
            self.align,
            tuple(dims),
            self.vector,
            init,
            self.linkage,
            self.attributes,
        )


def _attribute(cursor: Cursor) -> str:
    start = cursor.start
    cursor.expect("(", "after '.attribute'")
    while cursor.text != ")":
        if cursor.at("end") or cursor.text == ";":
            cursor.fail(f"expected ')' after '.attribute(', got {cursor.shown()}")
        cursor.advance()
    cursor.advance()
    text = "".join(cursor.source.code[start : cursor.previous_end].split())
    if not text.startswith(_ATTRIBUTES):
        cursor.source.fail(f"expected .managed or .unified in '.attribute', got '{text}'", start)
    return f"attribute{text}"


def _alignment(cursor: Cursor) -> int:
    start = cursor.start
    value = integer(cursor, "an alignment in bytes")
    if value < 1 or value & value - 1:
        cursor.source.fail(f"an alignment must be a power of two, got {value}", start)
    return value


def _pointer(cursor: Cursor) -> list[str]:
    attributes = [cursor.take()[1:]]
    if cursor.text[1:] in _POINTER_SPACES:
        attributes.append(cursor.take()[1:])
    if cursor.accept(".align"):
        attributes.append(f"align {_alignment(cursor)}")
    return attributes


# --- initialisers --------------------------------------------------------------------------------


def _initialiser(
    cursor: Cursor, kind: str, dims: tuple[int, ...], vector: int
) -> tuple[Initialiser, ...]:
    sizes = (*dims, vector) if vector else dims
    if sizes:
        return tuple(_row(cursor, sizes, kind, vector))
    if cursor.text == "{":
        cursor.fail("the initial value of a scalar stands without braces", "delete '{' and '}'")
    return (_element(cursor, kind),)


def _row(cursor: Cursor, sizes: tuple[int, ...], kind: str, vector: int) -> list[Initialiser]:
    """Read a row of an array, which may be too short, or a vector (of so many elements), which has all."""
    start = cursor.start
    inner = sizes[1:]
    is_plain = not inner and TYPES[kind].kind in _WHOLE
    if is_plain and (match := _DECIMAL_LIST.match(cursor.source.code, start)) is not None:
        texts = [text.strip() for text in match[1].split(",")]
        elements: list[Initialiser] = [Immediate("int", int(text), text) for text in texts]
        cursor.seek(match.end())
        cursor.previous_end = match.end()
        count = len(elements)
    else:
        cursor.expect("{", "before initial values")
        elements, count = [], 0
        while not cursor.accept("}"):
            if count and not cursor.accept(","):
                cursor.fail(f"expected ',' or '}}' after an initial value, got {cursor.shown()}")
            if inner:
                row = _row(cursor, inner, kind, vector)
                zero = Immediate("f64", 0, "0.0") if kind in _FLOATS else Immediate("int", 0, "0")
                elements += row + [zero] * (prod(inner) - len(row))
            else:
                elements.append(_element(cursor, kind))
            count += 1
    if sizes[0] and count > sizes[0]:
        cursor.source.fail(
            f"too many initial values: expected at most {sizes[0]}, got {count}", start
        )
    if vector and not inner and count < vector:
        cursor.source.fail(
            f"too few initial values of a vector: expected {vector}, got {count}", start
        )
    return elements


def _element(cursor: Cursor, kind: str) -> Initialiser:
    if not cursor.at("name") or cursor.text == "WARP_SZ":
        start = cursor.start
        constant = parse_constant(cursor)
        if constant.kind == "int" and cursor.accept("("):
            if constant.value not in _BYTES:
                cursor.source.fail(
                    f"a mask picks one byte of an address, got '{constant.text}'", start,
                    "write 0xFF, 0xFF00, ... up to 0xFF00000000000000",
                )  # fmt: skip
            address = _symbol(cursor)
            cursor.expect(")", "after the address behind a mask")
            return AddressByte(constant.value, address)
        _check_kind(cursor, constant, kind, start)
        return constant
    start = cursor.start
    if TYPES[kind].bytes < _LEAST_ADDRESS:
        cursor.source.fail(
            f"a .{kind} holds no address, got '{cursor.text}'",
            start,
            f"a mask picks one byte of it: 0xFF({cursor.text})",
        )
    return _symbol(cursor)


def _symbol(cursor: Cursor) -> Name | Sum | GenericAddress:
    """Read the address of a symbol in an initialiser."""
    if cursor.text == "generic":
        cursor.advance()
        if cursor.accept("("):
            base = Name(declared_name(cursor, "'generic('"))
            cursor.expect(")", "after the symbol of 'generic('")
            return GenericAddress(base, _added(cursor))
        return Name("generic")
    base = Name(declared_name(cursor, "'{'"))
    return Sum(base, offset) if (offset := _added(cursor)) else base


def _check_kind(cursor: Cursor, constant: Immediate, kind: str, start: int) -> None:
    """Raise where a variable of a type cannot begin as a constant."""
    fail = cursor.source.fail
    shown = cursor.source.code[start : cursor.previous_end]
    is_integer = constant.kind == "int"
    if kind in _FLOATS:
        if is_integer:
            fail(f"a .{kind} begins as a float, got '{shown}'", start, "write 1.0 for 1")
    elif TYPES[kind].kind not in _WHOLE:
        fail(f"a .{kind} cannot have an initial value", start, "declare it as bits: .b16 or .b32")
    elif not is_integer and kind not in _BITS_OF_FLOATS:
        # ptxas 13.0 takes floats for .b8 and .b16 too, and stores 0.
        fail(f"a .{kind} begins as an integer, got '{shown}'", start, "give its bits: 0x...")


def _added(cursor: Cursor) -> int:
    return parse_offset(cursor) if cursor.accept("+") else 0

"""Operands of PTX instructions.

Compilers write the same few operands over and over, so `OperandReader` keeps what it has read by
its text; simple new ones are taken by one regular expression, all others, and everything wrong, by
the token walk, which alone defines the grammar.

Source: PTX ISA 8.7 "Instruction Operands".
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from hopsim.isa.ptx.ast import (
    Address,
    Element,
    Immediate,
    Name,
    Negated,
    Operand,
    Pair,
    Sink,
    Sum,
    Vector,
)
from hopsim.isa.ptx.constants import parse_constant, parse_offset
from hopsim.isa.ptx.lexer import IDENTIFIER, Cursor, Source

_SINK: Final = Sink()
_ITEM: Final = re.compile(r"(?:\[[^\[\]]*+\]|\{[^{}]*+\}|[^,\[\]{}()]++)++")
_NAME: Final = re.compile(rf"({IDENTIFIER})(?:\.([xyzwrgba]))?", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_ADDRESS: Final = re.compile(
    rf"\[\s*+({IDENTIFIER})\s*+(?:\+\s*+(-?(?:0|[1-9]\d{{0,17}}))\s*+)?\]", re.ASCII
)
_PARTS: Final = re.compile(r"\.(?:b[0-7]{1,4}|h[0-3]{1,2})", re.ASCII)
"""Parts of a register that an operand of a video instruction selects: `%r1.b0`, `%r1.h10`."""
_VIDEO: Final = re.compile(r"v(?:add|sub|absdiff|min|max|shl|shr|mad|set|avrg)[24]?(?:\.|$)")
_OPCODE: Final = re.compile(r"[\w$%]+(?:\.[\w:]+)*")


def make_name(text: str) -> Name:
    """Split `%tid.x` into name and component."""
    name, _, component = text.partition(".")
    return Name(name, component)


class OperandReader:
    """Reads the operand lists of one source."""

    __slots__ = ("_known", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: dict[str, Operand] = {}

    def read(self, text: str, offset: int, opcode: str) -> tuple[Operand, ...]:
        """Return the operands between an opcode and its `;`.

        Args:
            text: that stretch of the source, comments blanked.
            offset: where it starts in the source.
            opcode: the opcode before it; lists in parentheses are allowed for `call` only.

        Raises:
            PtxError: an operand is malformed, or the `;` is missing.
        """
        if not text or text.isspace():
            return ()
        if "[" in text or "{" in text:
            items: list[str] = _ITEM.findall(text)
            if ",".join(items) != text:
                return self.walk(offset, opcode)
        else:
            items = text.split(",")
        known = self._known
        operands: list[Operand] = []
        for item in items:
            operand = known.get(item) or self._read_simple(item)
            if operand is None:
                walked = self.walk(offset, opcode)
                if len(walked) == len(items) and "(" not in text and not _VIDEO.match(opcode):
                    known.update(zip(items, walked, strict=True))
                return walked
            operands.append(operand)
        return tuple(operands)

    def _read_simple(self, item: str) -> Operand | None:
        text = item.strip()
        operand: Operand | None = None
        if (match := _NAME.fullmatch(text)) is not None:
            if text != "WARP_SZ":
                operand = _SINK if text == "_" else Name(match[1], match[2] or "")
        elif _DECIMAL.fullmatch(text):
            operand = Immediate("int", int(text), text)
        elif (match := _ADDRESS.fullmatch(text)) is not None:
            operand = Address(Name(match[1]), int(match[2] or 0)) if match[1] != "_" else None
        elif text[:1] == "{" and text[-1:] == "}":
            operand = self._read_simple_vector(text[1:-1])
        if operand is not None:
            self._known[item] = operand
        return operand

    def _read_simple_vector(self, inner: str) -> Vector | None:
        elements: list[Operand] = []
        for item in inner.split(","):
            element = self._known.get(item) or self._read_simple(item)
            if not isinstance(element, (Name, Immediate, Sink)):
                return None
            elements.append(element)
        return Vector(tuple(elements))

    def walk(self, offset: int, opcode: str) -> tuple[Operand, ...]:
        """Return the operands from `offset` on token by token: what `read` does, slowly."""
        cursor = Cursor(self._source, offset)
        before, operands = f"'{opcode}'", list[Operand]()
        while True:
            start = cursor.start
            operands.append(_operand(cursor, before, opcode))
            if cursor.text != ",":
                break
            cursor.advance()
            before = "','"
        if cursor.text != ";":
            written = " ".join(self._source.code[start : cursor.previous_end].split())
            cursor.fail_missing_semicolon(f"after operand '{written}'", or_else=",")
        return tuple(operands)


# --- the token walk ------------------------------------------------------------------------------


def _operand(cursor: Cursor, before: str, opcode: str) -> Operand:
    text = cursor.text
    if _VIDEO.match(opcode) and (part := _part(cursor)) is not None:
        return part
    if cursor.at("name") and text != "WARP_SZ":
        return _name_operand(cursor, before)
    if text == "[":
        return _address(cursor)
    if text == "{":
        return _vector(cursor, "}")
    if text == "(" and opcode.partition(".")[0] == "call":
        return _vector(cursor, ")")
    if text == "!":
        place = cursor.start
        cursor.advance()
        if cursor.at("name"):
            return Negated(make_name(cursor.take()))
        cursor.seek(place)
    if not cursor.at("number") and text not in ("-", "+", "~", "!", "(", "WARP_SZ"):
        _fail_operand(cursor, before)
    return parse_constant(cursor)


def _part(cursor: Cursor) -> Name | None:
    """Take a register with the parts that are selected of it; None where it is another operand."""
    start = cursor.start
    if cursor.at("name") and "." not in cursor.text:
        name = cursor.take()
        if _PARTS.fullmatch(cursor.text):
            return Name(name, cursor.take()[1:])
        cursor.seek(start)
    return None


def _name_operand(cursor: Cursor, before: str) -> Operand:
    name = _name(cursor, before)
    if cursor.text == "|":
        cursor.advance()
        if not cursor.at("name"):
            cursor.fail(f"expected a register or '_' after '|', got {cursor.shown()}")
        return Pair(name, _name(cursor, "'|'"))
    if isinstance(name, Name):
        if cursor.text == "+":
            cursor.advance()
            return Sum(name, parse_offset(cursor))
        if cursor.text == "-":
            _fail_difference(cursor)
        if cursor.text == "[":
            return _element(cursor, name)
    return name


def _element(cursor: Cursor, base: Name) -> Element:
    opening = cursor.start
    cursor.advance()
    index, offset = None, 0
    if cursor.at("name") and cursor.text != "WARP_SZ":
        place = cursor.start
        name = _name(cursor, "'['")
        if isinstance(name, Sink):
            cursor.source.fail("'_' is no index", place)
        index = name
        if cursor.accept("+"):
            offset = parse_offset(cursor)
        elif cursor.text == "-":
            _fail_difference(cursor)
    else:
        offset = parse_offset(cursor)
    if not cursor.accept("]"):
        _fail_unclosed(cursor, opening, "[", "]")
    return Element(base, index, offset)


def _name(cursor: Cursor, before: str) -> Name | Sink:
    start = cursor.start
    text = cursor.take()
    if cursor.at("dotted") and cursor.start == start + len(text):
        code = cursor.source.code
        gap = len(code[:start].rstrip())
        opcode = _OPCODE.match(code, start)
        if opcode is not None and "\n" in code[gap:start]:
            # An opcode on a new line: the statement before it was never ended.
            cursor.seek(start)
            cursor.previous_end = gap
            cursor.text = opcode[0]
            _fail_operand(cursor, before)
        cursor.fail(f"unknown component '{cursor.text}' of '{text}': expected .x, .y, .z or .w")
    return _SINK if text == "_" else make_name(text)


def _fail_operand(cursor: Cursor, before: str) -> NoReturn:
    if before != "','" and cursor.text not in (",", ";"):
        cursor.fail_missing_semicolon(f"after {before}")
    cursor.fail(f"expected an operand after {before}, got {cursor.shown()}")


def _fail_difference(cursor: Cursor) -> NoReturn:
    cursor.fail("expected '+' before an offset, got '-'", "PTX writes a negative offset as +-4")


def _address(cursor: Cursor) -> Address:
    opening = cursor.start
    cursor.advance()
    base: Name | Immediate
    if cursor.at("name"):
        name = _name(cursor, "'['")
        if isinstance(name, Sink):
            cursor.source.fail("'_' is no address", opening + 1)
        base, offset = name, 0
        if cursor.accept("+"):
            offset = parse_offset(cursor)
        elif cursor.text == "-":
            _fail_difference(cursor)
    elif cursor.at("number") or cursor.text in ("-", "("):
        base, offset = parse_constant(cursor), 0
    else:
        cursor.fail(f"expected a register, a symbol or a number after '[', got {cursor.shown()}")
    coordinates: tuple[Operand, ...] = ()
    if cursor.accept(","):
        if cursor.text != "{":
            cursor.fail(f"expected '{{' with tensor coordinates after ',', got {cursor.shown()}")
        coordinates = _vector(cursor, "}").items
    if not cursor.accept("]"):
        _fail_unclosed(cursor, opening, "[", "]")
    return Address(base, offset, coordinates)


def _vector(cursor: Cursor, closing: str) -> Vector:
    opening, opener = cursor.start, cursor.text
    cursor.advance()
    items: list[Operand] = []
    if closing == ")" and cursor.accept(")"):
        return Vector(())
    while True:
        if cursor.at("name"):
            items.append(_name(cursor, f"'{opener}'"))
        elif cursor.at("number") or cursor.text in ("-", "(", "~"):
            items.append(parse_constant(cursor))
        else:
            cursor.fail(
                f"expected a register or a constant inside '{opener}', got {cursor.shown()}"
            )
        if cursor.accept(","):
            continue
        if cursor.accept(closing):
            return Vector(tuple(items))
        _fail_unclosed(cursor, opening, opener, closing)


def _fail_unclosed(cursor: Cursor, opening: int, opener: str, closing: str) -> NoReturn:
    if cursor.text == ";" or cursor.at("end"):
        cursor.source.fail(
            f"unclosed '{opener}': expected '{closing}' before {cursor.shown()}",
            opening,
            f"close it with '{closing}'",
        )
    wanted = f"',' or '{closing}'" if opener != "[" else f"'{closing}'"
    cursor.fail(f"expected {wanted} inside '{opener}', got {cursor.shown()}")

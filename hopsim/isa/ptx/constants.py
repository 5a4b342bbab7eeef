"""Literals and constant expressions of PTX.

Integers are 64 bits wide; a result is kept as a Python int from -2**63 to 2**64-1.  Decimal floats
become the bits of a double, `0f` and `0d` literals are their own bits.

Source: PTX ISA 8.7 "Constants", "Constant Expressions", "Integer Constant Expression Evaluation".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final, NoReturn

from hopsim.isa.ptx.ast import Immediate
from hopsim.isa.ptx.lexer import Cursor

WARP_SIZE: Final = 32
"""Value of `WARP_SZ`.  Source: PTX ISA 8.7 "Predefined Constants"."""

_INTEGER: Final = re.compile(
    r"0[xX](?P<x>[0-9a-fA-F]+)U?|0[bB](?P<b>[01]+)U?|(?P<d>[1-9]\d*)U?|0(?P<o>[0-7]*)U?", re.ASCII
)
_BASES: Final = {"x": 16, "b": 2, "d": 10, "o": 8}
_DECIMAL_FLOAT: Final = re.compile(r"(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?", re.ASCII)
_RAW_FLOATS: Final = {"f": ("f32", 8), "d": ("f64", 16)}


def parse_number(cursor: Cursor) -> Immediate:
    """Read the number token at the cursor.

    Raises:
        PtxError: the token is no PTX literal, or does not fit 64 bits.
    """
    text = cursor.text
    raw = _RAW_FLOATS.get(text[1:2].lower()) if text[0] == "0" else None
    if raw is not None:
        kind, digits = raw
        if not re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", text[2:]):
            cursor.fail(
                f"bad {kind} literal '{text}': expected {digits} hexadecimal digits after"
                f" '{text[:2]}', got {len(text) - 2} characters"
            )
        value = int(text[2:], 16)
    elif (match := _INTEGER.fullmatch(text)) is not None:
        base = match.lastgroup
        assert base is not None
        kind, value = "int", int(match[base] or "0", _BASES[base])
        if value >> 64:
            cursor.fail(f"integer literal '{text}' does not fit 64 bits")
    elif _DECIMAL_FLOAT.fullmatch(text):
        kind, value = "f64", double_bits(float(text))
    else:
        _fail_number(cursor)
    cursor.advance()
    return Immediate(kind, value, text)


def double_bits(value: float) -> int:
    """Return the bits of an IEEE double."""
    return int.from_bytes(struct.pack(">d", value), "big")


def _fail_number(cursor: Cursor) -> NoReturn:
    text = cursor.text
    lowered = text.lower()
    if lowered.startswith("0x"):
        cursor.fail(f"bad hexadecimal literal '{text}': expected digits 0-9, a-f after '0x'")
    if lowered.startswith("0b"):
        cursor.fail(f"bad binary literal '{text}': expected digits 0 and 1 after '0b'")
    if text.isdigit():
        cursor.fail(
            f"bad octal literal '{text}': digits after a leading 0 are 0 to 7",
            f"write {text.lstrip('0')} for the decimal number",
        )
    hint = ""
    if re.fullmatch(r"\d+u", text):
        hint = f"the unsigned suffix is a capital U: {text[:-1]}U"
    elif re.fullmatch(r"[\d.]+(?:e[+-]?\d+)?f", lowered):
        hint = f"a PTX float has no suffix: {text[:-1]}"
    cursor.fail(f"bad literal '{text}': expected a number", hint)


def _truncating_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_BINARY: Final[dict[str, tuple[int, Callable[[int, int], int]]]] = {
    "||": (1, lambda a, b: int(bool(a) or bool(b))),
    "&&": (2, lambda a, b: int(bool(a) and bool(b))),
    "|": (3, lambda a, b: a | b),
    "^": (4, lambda a, b: a ^ b),
    "&": (5, lambda a, b: a & b),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">": (7, lambda a, b: int(a > b)),
    ">=": (7, lambda a, b: int(a >= b)),
    "<<": (8, lambda a, b: a << (b & 63)),
    ">>": (8, lambda a, b: a >> (b & 63)),
    "+": (9, lambda a, b: a + b),
    "-": (9, lambda a, b: a - b),
    "*": (10, lambda a, b: a * b),
    "/": (10, _truncating_quotient),
    "%": (10, lambda a, b: a - b * _truncating_quotient(a, b)),
}
_UNARY: Final[dict[str, Callable[[int], int]]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "~": lambda a: ~a,
    "!": lambda a: int(not a),
}
_CASTS: Final = (".s64", ".u64")


def parse_constant(cursor: Cursor) -> Immediate:
    """Read a literal or a constant expression, for example `-4`, `(3+4)*2`, `WARP_SZ*4`, `-1.5`.

    Raises:
        PtxError: no constant stands at the cursor, it does not fit 64 bits, or a float is computed
            with.
    """
    start = cursor.start
    result = _conditional(cursor)
    text = cursor.source.code[start : cursor.previous_end]
    if result.kind == "int" and not -(1 << 63) <= result.value < 1 << 64:
        cursor.source.fail(f"constant '{text}' does not fit 64 bits", start)
    return Immediate(result.kind, result.value, text)


def _conditional(cursor: Cursor) -> Immediate:
    start = cursor.start
    condition = _binary(cursor, 1)
    if cursor.text != "?":
        return condition
    chosen = _integer(cursor, condition, start)
    cursor.advance()
    first = _conditional(cursor)
    cursor.expect(":", "in a constant expression with '?'")
    second = _conditional(cursor)
    return first if chosen else second


def _binary(cursor: Cursor, lowest: int) -> Immediate:
    start = cursor.start
    left = _unary(cursor)
    while (entry := _BINARY.get(cursor.text)) is not None and entry[0] >= lowest:
        symbol, place = cursor.text, cursor.start
        a = _integer(cursor, left, start)
        cursor.advance()
        operand_start = cursor.start
        b = _integer(cursor, _binary(cursor, entry[0] + 1), operand_start)
        if b == 0 and symbol in "/%":
            cursor.source.fail("division by zero in a constant expression", place)
        left = Immediate("int", entry[1](a, b), "")
    return left


def _unary(cursor: Cursor) -> Immediate:
    if cursor.at("number"):
        return parse_number(cursor)
    if cursor.text == "WARP_SZ":
        cursor.advance()
        return Immediate("int", WARP_SIZE, "WARP_SZ")
    symbol, place = cursor.text, cursor.start
    if cursor.accept("("):
        if cursor.text in _CASTS:
            return _cast(cursor)
        inner = _conditional(cursor)
        cursor.expect(")", "to close '(' of a constant expression")
        return inner
    if symbol not in _UNARY:
        cursor.fail(f"expected a constant, got {cursor.shown()}")
    cursor.advance()
    start = cursor.start
    literal = cursor.text
    operand = _unary(cursor)
    if operand.kind == "f64" and symbol in "+-" and _DECIMAL_FLOAT.fullmatch(literal):
        flipped = operand.value ^ (1 << 63) if symbol == "-" else operand.value
        return Immediate("f64", flipped, "")
    if operand.kind != "int":
        cursor.source.fail(
            f"a sign cannot stand before the literal '{literal}'",
            place,
            "put the sign into the bits",
        )
    return Immediate("int", _UNARY[symbol](_integer(cursor, operand, start)), "")


def _cast(cursor: Cursor) -> Immediate:
    cast = cursor.take()
    cursor.expect(")", f"after the cast '{cast}'")
    start = cursor.start
    value = _integer(cursor, _unary(cursor), start) & ((1 << 64) - 1)
    if cast == ".s64" and value >> 63:
        value -= 1 << 64
    return Immediate("int", value, "")


def _integer(cursor: Cursor, constant: Immediate, start: int) -> int:
    if constant.kind != "int":
        cursor.source.fail(
            "floats cannot be computed with in a constant expression: expected an integer",
            start,
            "write the result itself",
        )
    return constant.value

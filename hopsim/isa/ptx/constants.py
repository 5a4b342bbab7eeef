"""Literals and constant expressions of PTX.

Integers are 64 bits wide and wrap; a result is kept as a Python int from -2**63 to 2**64-1.  As in C, one that is unsigned
makes what it is computed with unsigned.  Decimal floats become the bits of a double, `0f` and `0d` literals are their own
bits.

Source: PTX ISA 8.7 "Constants", "Constant Expressions", "Integer Constant Expression Evaluation", "Floating-Point Constant
Expression Evaluation"; but as ptxas 13.0 does, `&`, `|` and `^` of signed integers are signed, and `?` keeps the sign of
what it chooses.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from hopsim.isa.ptx.ast import Immediate
from hopsim.isa.ptx.lexer import Cursor
from hopsim.isa.ptx.nesting import check_depth

WARP_SIZE: Final = 32
"""Value of `WARP_SZ`.  Source: PTX ISA 8.7 "Predefined Constants"."""

_INTEGER: Final = re.compile(
    r"0[xX](?P<x>[0-9a-fA-F]+)U?|0[bB](?P<b>[01]+)U?|(?P<d>[1-9]\d*)U?|0(?P<o>[0-7]*)U?", re.ASCII
)
_BASES: Final = {"x": 16, "b": 2, "d": 10, "o": 8}
_DECIMAL_FLOAT: Final = re.compile(r"(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?", re.ASCII)
_RAW_FLOATS: Final = {"f": ("f32", 8), "d": ("f64", 16)}
_ALL: Final = (1 << 64) - 1
_INFINITE: Final = 0x7FF << 52


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
        if value << 1 & _ALL == _INFINITE << 1 & _ALL:
            cursor.fail(f"float literal '{text}' is larger than any double")
    else:
        _fail_number(cursor)
    cursor.advance()
    return Immediate(kind, value, text)


def double_bits(value: float) -> int:
    """Return the bits of an IEEE double."""
    return int.from_bytes(struct.pack(">d", value), "big")


def double_of(bits: int) -> float:
    """Return the number that the bits of an IEEE double mean."""
    return float(struct.unpack(">d", bits.to_bytes(8, "big"))[0])


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


class _Constant(NamedTuple):
    """What a part of a constant expression is: an integer from -2**63 to 2**64-1, or the bits of a float."""

    kind: str
    value: int
    is_unsigned: bool = False


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
_TRUTHS: Final = frozenset({"||", "&&", "==", "!=", "<", "<=", ">", ">="})
_SHIFTS: Final = frozenset({"<<", ">>"})
_OF_FLOATS: Final[dict[str, Callable[[float, float], float]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
_SIGNS: Final = ("-", "+")
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
        PtxError: no constant stands at the cursor, a literal does not fit 64 bits, or integers and floats are mixed.
        NotModelled: its parts are nested deeper than hopsim reads.
    """
    start = cursor.start
    result = _conditional(cursor, 1)
    text = cursor.source.code[start : cursor.previous_end]
    return Immediate(result.kind, result.value, text)


def parse_offset(cursor: Cursor) -> int:
    """Read what is added to an address, as a signed number.

    Raises:
        PtxError: no integer constant stands at the cursor.
    """
    start = cursor.start
    constant = parse_constant(cursor)
    if constant.kind != "int":
        cursor.source.fail(f"an offset is an integer, got '{constant.text}'", start)
    return _integer_of(constant.value, is_unsigned=False).value


def _integer_of(value: int, is_unsigned: bool) -> _Constant:
    """Return an integer as 64 bits hold it."""
    value &= _ALL
    if not is_unsigned and value >> 63:
        value -= _ALL + 1
    return _Constant("int", value, is_unsigned)


def _conditional(cursor: Cursor, depth: int) -> _Constant:
    start = cursor.start
    condition = _binary(cursor, depth)
    if cursor.text != "?":
        return condition
    _check_depth(cursor, depth)
    chosen = _integer(cursor, condition, start).value
    cursor.advance()
    start = cursor.start
    first = _integer(cursor, _conditional(cursor, depth + 1), start)
    cursor.expect(":", "in a constant expression with '?'")
    start = cursor.start
    second = _integer(cursor, _conditional(cursor, depth + 1), start)
    return first if chosen else second


def _binary(cursor: Cursor, depth: int) -> _Constant:
    """Read operands and what stands between them; what binds closer is computed first."""
    operands = [(cursor.start, _unary(cursor, depth))]
    symbols: list[tuple[str, int]] = []
    while True:
        entry = _BINARY.get(cursor.text)
        while symbols and (entry is None or _BINARY[symbols[-1][0]][0] >= entry[0]):
            right = operands.pop()
            start, left = operands.pop()
            operands.append((start, _computed(cursor, *symbols.pop(), (start, left), right)))
        if entry is None:
            return operands[0][1]
        symbols.append((cursor.text, cursor.start))
        cursor.advance()
        operands.append((cursor.start, _unary(cursor, depth)))


def _computed(
    cursor: Cursor,
    symbol: str,
    place: int,
    left: tuple[int, _Constant],
    right: tuple[int, _Constant],
) -> _Constant:
    """Return what stands on both sides of a symbol, each with where it starts, makes."""
    a, b = left[1], right[1]
    if symbol in "/%" and b.value << (b.kind == "f64") & _ALL == 0:
        cursor.source.fail("division by zero in a constant expression", place)
    if a.kind == b.kind == "f64" and symbol in _OF_FLOATS:
        return _of_floats(symbol, a, b)
    a = _integer(cursor, a, left[0])
    return _of_integers(symbol, a, _integer(cursor, b, right[0]))


def _of_integers(symbol: str, a: _Constant, b: _Constant) -> _Constant:
    operation = _BINARY[symbol][1]
    if symbol in _SHIFTS:
        return _integer_of(operation(a.value, b.value), a.is_unsigned)
    is_unsigned = a.is_unsigned or b.is_unsigned
    operands = (_integer_of(one.value, is_unsigned).value for one in (a, b))
    return _integer_of(operation(*operands), is_unsigned and symbol not in _TRUTHS)


def _of_floats(symbol: str, a: _Constant, b: _Constant) -> _Constant:
    result = _OF_FLOATS[symbol](double_of(a.value), double_of(b.value))
    if isinstance(result, bool):
        return _Constant("int", int(result))
    return _Constant("f64", double_bits(result))


def _unary(cursor: Cursor, depth: int) -> _Constant:
    if cursor.at("number"):
        text = cursor.text
        number = parse_number(cursor)
        return _Constant(number.kind, number.value, text[-1] == "U" or number.value >> 63 > 0)
    if cursor.accept("WARP_SZ"):
        return _Constant("int", WARP_SIZE)
    symbol, place = cursor.text, cursor.start
    _check_depth(cursor, depth)
    if cursor.accept("("):
        if cursor.text in _CASTS:
            return _cast(cursor, depth)
        inner = _conditional(cursor, depth + 1)
        cursor.expect(")", "to close '(' of a constant expression")
        return inner
    if symbol not in _UNARY:
        cursor.fail(f"expected a constant, got {cursor.shown()}")
    cursor.advance()
    start = cursor.start
    literal = cursor.text
    operand = _unary(cursor, depth + 1)
    if symbol in _SIGNS:
        if operand.kind == "f64":
            return _Constant("f64", operand.value ^ (1 << 63 if symbol == "-" else 0))
        if operand.kind == "f32":
            cursor.source.fail(
                f"a sign cannot stand before the literal '{literal}'",
                place,
                "put the sign into the bits",
            )
    found = _integer(cursor, operand, start)
    # Of the bits turned round ptxas takes none as a sign.
    is_unsigned = symbol == "~" or (symbol in _SIGNS and found.is_unsigned)
    return _integer_of(_UNARY[symbol](found.value), is_unsigned)


def _cast(cursor: Cursor, depth: int) -> _Constant:
    cast = cursor.take()
    cursor.expect(")", f"after the cast '{cast}'")
    start = cursor.start
    return _integer_of(_integer(cursor, _unary(cursor, depth + 1), start).value, cast == ".u64")


def _check_depth(cursor: Cursor, depth: int) -> None:
    check_depth(
        depth, cursor.source, cursor.start, "parts of a constant", "write the result itself"
    )


def _integer(cursor: Cursor, constant: _Constant, start: int) -> _Constant:
    if constant.kind != "int":
        cursor.source.fail(
            "floats and integers cannot be computed with together: expected an integer",
            start,
            "write the result itself",
        )
    return constant

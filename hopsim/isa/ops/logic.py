"""Logic and shifts: and, or, xor, not, cnot, lop3, shl, shr, shf, prmt."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from hopsim.isa.forms.form import form
from hopsim.isa.numerics import bitfield
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Predicate, Value

BITS: Final = ("b16", "b32", "b64")

_lop3 = lru_cache(256)(bitfield.make_lop3)


@form("and.{t} d, a, b", t=BITS, unit="alu", source='PTX ISA 8.7, "and"')
def bitwise_and(t: ScalarType) -> str:
    """Bitwise and."""
    del t
    return "({0} & {1})"


@form("or.{t} d, a, b", t=BITS, unit="alu", source='PTX ISA 8.7, "or"')
def bitwise_or(t: ScalarType) -> str:
    """Bitwise or."""
    del t
    return "({0} | {1})"


@form("xor.{t} d, a, b", t=BITS, unit="alu", source='PTX ISA 8.7, "xor"')
def bitwise_xor(t: ScalarType) -> str:
    """Bitwise exclusive or."""
    del t
    return "({0} ^ {1})"


@form("not.{t} d, a", t=BITS, unit="alu", source='PTX ISA 8.7, "not"')
def bitwise_not(t: ScalarType) -> str:
    """One's complement."""
    return f"({{0}} ^ {t.mask})"


@form("and.pred d:pred, a:pred, b:pred", unit="predicate", source='PTX ISA 8.7, "and"')
def predicate_and() -> str:
    """Both predicates hold."""
    return "({0} & {1})"


@form("or.pred d:pred, a:pred, b:pred", unit="predicate", source='PTX ISA 8.7, "or"')
def predicate_or() -> str:
    """One of the predicates holds, or both."""
    return "({0} | {1})"


@form("xor.pred d:pred, a:pred, b:pred", unit="predicate", source='PTX ISA 8.7, "xor"')
def predicate_xor() -> str:
    """One of the predicates holds, and only one."""
    return "({0} ^ {1})"


@form("not.pred d:pred, a:pred", unit="predicate", source='PTX ISA 8.7, "not"')
def predicate_not() -> str:
    """The predicate does not hold."""
    return "({0} ^ True)"


@form("cnot.{t} d, a", t=BITS, unit="alu", source='PTX ISA 8.7, "cnot"')
def cnot(t: ScalarType) -> Callable[..., Value]:
    """1 where a is 0, else 0."""
    return bitfield.make_cnot(t.width_bits)


@form("lop3.b32 d, a, b, c, #lut", unit="alu", source='PTX ISA 8.7, "lop3"')
def lop3() -> Callable[..., Value]:
    """Any function of three bits, by an 8-bit truth table."""

    def run(a: Value, b: Value, c: Value, lut: int) -> Value:
        return _lop3(lut & 0xFF)(a, b, c)

    return run


@form(
    "lop3.{op}.b32 d|p:pred, a, b, c, #lut, q:pred",
    op=("and", "or"),
    unit="alu",
    source='PTX ISA 8.7, "lop3"',
)
def lop3_predicate(op: str) -> Callable[..., Any]:
    """`lop3`, and a predicate: whether the result is not 0, joined with q."""

    def run(a: Value, b: Value, c: Value, lut: int, q: Predicate) -> tuple[Value, Predicate]:
        result = _lop3(lut & 0xFF)(a, b, c)
        found: Any = result != 0
        return result, found & q if op == "and" else found | q

    return run


@form("shl.{t} d, a, b:u32", t=BITS, unit="alu", source='PTX ISA 8.7, "shl"')
def shl(t: ScalarType) -> Callable[..., Value]:
    """Shift left; amounts of the width or more give 0."""
    return bitfield.make_shl(t.width_bits)


@form(
    "shr.{t} d, a, b:u32",
    t=(*BITS, "u16", "u32", "u64", "s16", "s32", "s64"), unit="alu", source='PTX ISA 8.7, "shr"',
)  # fmt: skip
def shr(t: ScalarType) -> Callable[..., Value]:
    """Shift right, filling with the sign of a signed type; larger amounts clamp to the width."""
    return bitfield.make_shr(t.width_bits, t.is_signed)


@form(
    "shf.{direction}.{mode}.b32 d:b32, a:b32, b:b32, c:u32",
    direction=("l", "r"), mode=("clamp", "wrap"), joined=1, unit="alu", source='PTX ISA 8.7, "shf"',
)  # fmt: skip
def shf(direction: Any, mode: Any) -> Callable[..., Value]:
    """Funnel shift of the pair (b, a)."""
    return bitfield.make_shf(direction, mode)


@form(
    "prmt.b32{.mode} d, a, b, c",
    mode=("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"), unit="alu", source='PTX ISA 8.7, "prmt"',
)  # fmt: skip
def prmt(mode: Any) -> Callable[..., Value]:
    """Four bytes out of the eight of (b, a)."""
    return bitfield.make_prmt(mode)

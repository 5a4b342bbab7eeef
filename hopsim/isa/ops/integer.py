"""Integer arithmetic: add to dp4a, bit fields, and the extended-precision forms with a carry.

The carry flag CC.CF is state of the thread: a register like any other, though no text names it.

Guess (D-SEQUENCE): the unit of `div` and `rem` is `mufu` (ptxas expands them to a software sequence around MUFU.RCP).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopsim.isa.forms.form import form
from hopsim.isa.forms.templates import wide_product, wrapping
from hopsim.isa.numerics import bitfield, carry, integer, integer_division, integer_products
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Value

ALL: Final = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED: Final = ("s16", "s32", "s64")
NARROW: Final = ("u16", "s16")
MIDDLE: Final = ("u32", "s32")
WIDE: Final = ("u32", "u64", "s32", "s64")
BYTE: Final = range(256)
"""Positions and lengths of fields as immediates."""
PACKED: Final = ("u16x2", "s16x2")
HALF: Final = ("lo", "hi")


def _source(title: str) -> str:
    return f'PTX ISA 8.7, "{title}"'


# --- add, sub, mul, mad ---------------------------------------------------------------------------


@form("add.{t} d, a, b", t=ALL, unit="alu", source=_source("add"))
def add(t: ScalarType) -> str:
    """d = a + b, wrapping."""
    return wrapping("{0} + {1}", t.width_bits)


@form("add.sat.s32 d:s32, a:s32, b:s32", unit="alu", source=_source("add"))
def add_sat() -> Callable[..., Value]:
    """d = a + b, clamped to the signed range."""
    return integer.make_add_sat(32)


@form("add.{t} d, a, b", t=PACKED, unit="alu", source=_source("add"))
def add_packed(t: ScalarType) -> Callable[..., Value]:
    """Two 16-bit sums, each wrapping."""
    del t
    return integer.make_packed16(integer.make_add(16))


@form("sub.{t} d, a, b", t=ALL, unit="alu", source=_source("sub"))
def sub(t: ScalarType) -> str:
    """d = a - b, wrapping."""
    return wrapping("{0} - {1}", t.width_bits)


@form("sub.sat.s32 d:s32, a:s32, b:s32", unit="alu", source=_source("sub"))
def sub_sat() -> Callable[..., Value]:
    """d = a - b, clamped to the signed range."""
    return integer.make_sub_sat(32)


@form("mul.lo.{t} d, a, b", t=ALL, unit="imad", source=_source("mul"))
def mul_lo(t: ScalarType) -> str:
    """The low half of a * b."""
    return wrapping("{0} * {1}", t.width_bits)


@form("mul.hi.{t} d, a, b", t=ALL, unit="imad", source=_source("mul"))
def mul_hi(t: ScalarType) -> Callable[..., Value]:
    """The high half of a * b."""
    return integer_products.make_mul_hi(t.width_bits, t.is_signed)


@form("mul.wide.{t} d:u32, a, b", t=NARROW, unit="imad", source=_source("mul"))
def mul_wide16(t: ScalarType) -> str:
    """The whole product of 16-bit operands."""
    return wide_product(16, t.is_signed)


@form("mul.wide.{t} d:u64, a, b", t=MIDDLE, unit="imad", source=_source("mul"))
def mul_wide32(t: ScalarType) -> str:
    """The whole product of 32-bit operands."""
    return wide_product(32, t.is_signed)


@form("mad.lo.{t} d, a, b, c", t=ALL, unit="imad", source=_source("mad"))
def mad_lo(t: ScalarType) -> str:
    """The low half of a * b, plus c, wrapping."""
    # The product wraps first: a uniform product may not fit the dtype of an addend array.
    return wrapping(wrapping("{0} * {1}", t.width_bits) + " + {2}", t.width_bits)


@form("mad.hi.{t} d, a, b, c", t=ALL, unit="imad", source=_source("mad"))
def mad_hi(t: ScalarType) -> Callable[..., Value]:
    """The high half of a * b, plus c, wrapping."""
    return integer_products.make_mad_hi(t.width_bits, t.is_signed)


@form("mad.hi.sat.s32 d:s32, a:s32, b:s32, c:s32", unit="imad", source=_source("mad"))
def mad_hi_sat() -> Callable[..., Value]:
    """The high half of a * b, plus c, clamped to the signed range."""
    return integer_products.make_mad_hi_sat()


@form("mad.wide.{t} d:u32, a, b, c:u32", t=NARROW, unit="imad", source=_source("mad"))
def mad_wide16(t: ScalarType) -> str:
    """The whole product of 16-bit operands plus a 32-bit addend, wrapping."""
    return wrapping(wide_product(16, t.is_signed) + " + {2}", 32)


@form("mad.wide.{t} d:u64, a, b, c:u64", t=MIDDLE, unit="imad", source=_source("mad"))
def mad_wide32(t: ScalarType) -> str:
    """The whole product of 32-bit operands plus a 64-bit addend, wrapping."""
    return wrapping(wide_product(32, t.is_signed) + " + {2}", 64)


@form("mul24.{half}.{t} d, a, b", half=HALF, t=MIDDLE, unit="imad", source=_source("mul24"))
def mul24(half: Any, t: ScalarType) -> Callable[..., Value]:
    """Bits 31 to 0 (`.lo`) or 47 to 16 (`.hi`) of the product of the low 24 bits of a and b."""
    return integer_products.make_mul24(half, t.is_signed)


@form("mad24.{half}.{t} d, a, b, c", half=HALF, t=MIDDLE, unit="imad", source=_source("mad24"))
def mad24(half: Any, t: ScalarType) -> Callable[..., Value]:
    """mul24 of a and b, plus c, wrapping."""
    return integer_products.make_mad24(half, t.is_signed)


@form("mad24.hi.sat.s32 d, a, b, c", unit="imad", source=_source("mad24"))
def mad24_hi_sat() -> Callable[..., Value]:
    """mul24.hi of a and b, plus c, clamped to the signed range."""
    return integer_products.make_mad24_hi_sat()


@form("sad.{t} d, a, b, c", t=ALL, unit="alu", source=_source("sad"))
def sad(t: ScalarType) -> Callable[..., Value]:
    """c plus the absolute difference of a and b, wrapping."""
    return integer.make_sad(t.width_bits, t.is_signed)


@form("div.{t} d, a, b", t=ALL, unit="mufu", source=_source("div"))
def div(t: ScalarType) -> Callable[..., Value]:
    """a / b, truncated toward zero."""
    return integer_division.make_div(t.width_bits, t.is_signed)


@form("rem.{t} d, a, b", t=ALL, unit="mufu", source=_source("rem"))
def rem(t: ScalarType) -> Callable[..., Value]:
    """The remainder of a / b, with the sign of a."""
    return integer_division.make_rem(t.width_bits, t.is_signed)


@form(
    "dp4a.{at}.{bt} d:u32, a:u32, b:u32, c:u32",
    at=MIDDLE,
    bt=MIDDLE,
    unit="imad",
    source=_source("dp4a"),
)
def dp4a(at: ScalarType, bt: ScalarType) -> Callable[..., Value]:
    """c plus the dot product of four bytes."""
    return integer_products.make_dp4a(at.is_signed, bt.is_signed)


@form(
    "dp2a.{half}.{at}.{bt} d:u32, a:u32, b:u32, c:u32",
    half=HALF, at=MIDDLE, bt=MIDDLE, joined=1, unit="imad", source=_source("dp2a"),
)  # fmt: skip
def dp2a(half: Any, at: ScalarType, bt: ScalarType) -> Callable[..., Value]:
    """c plus two 16-bit parts of a times two bytes of b."""
    return integer_products.make_dp2a(at.is_signed, bt.is_signed, half)


# --- one operand, min and max ---------------------------------------------------------------------


@form("abs.{t} d, a", t=SIGNED, unit="alu", source=_source("abs"))
def absolute(t: ScalarType) -> Callable[..., Value]:
    """The absolute value; the smallest number stays itself."""
    return integer.make_abs(t.width_bits)


@form("neg.{t} d, a", t=SIGNED, unit="alu", source=_source("neg"))
def neg(t: ScalarType) -> str:
    """Two's complement."""
    return wrapping("-{0}", t.width_bits)


@form("min.{t} d, a, b", t=ALL, unit="alu", source=_source("min"))
def minimum(t: ScalarType) -> Callable[..., Value]:
    """The smaller operand."""
    return integer.make_min(t.width_bits, t.is_signed)


@form("max.{t} d, a, b", t=ALL, unit="alu", source=_source("max"))
def maximum(t: ScalarType) -> Callable[..., Value]:
    """The larger operand."""
    return integer.make_max(t.width_bits, t.is_signed)


@form("min.{t} d, a, b", t=PACKED, unit="alu", source=_source("min"))
def minimum_packed(t: ScalarType) -> Callable[..., Value]:
    """The smaller operand in each 16-bit half."""
    return integer.make_packed16(integer.make_min(16, t.name == "s16x2"))


@form("max.{t} d, a, b", t=PACKED, unit="alu", source=_source("max"))
def maximum_packed(t: ScalarType) -> Callable[..., Value]:
    """The larger operand in each 16-bit half."""
    return integer.make_packed16(integer.make_max(16, t.name == "s16x2"))


@form("min.relu.{t} d, a, b", t=("s16x2", "s32"), unit="alu", source=_source("min"))
def minimum_relu(t: ScalarType) -> Callable[..., Value]:
    """The smaller operand, or 0 when that is negative."""
    if t.width_bits == 32 and t.kind == "packed":
        return integer.make_packed16(integer.make_relu(integer.make_min(16, True), 16))
    return integer.make_relu(integer.make_min(32, True), 32)


@form("max.relu.{t} d, a, b", t=("s16x2", "s32"), unit="alu", source=_source("max"))
def maximum_relu(t: ScalarType) -> Callable[..., Value]:
    """The larger operand, or 0 when that is negative."""
    if t.kind == "packed":
        return integer.make_packed16(integer.make_relu(integer.make_max(16, True), 16))
    return integer.make_relu(integer.make_max(32, True), 32)


# --- bits and bit fields --------------------------------------------------------------------------


@form("popc.{t} d:u32, a", t=("b32", "b64"), unit="mufu", source=_source("popc"))
def popc(t: ScalarType) -> Callable[..., Value]:
    """The number of set bits."""
    return bitfield.make_popc(t.width_bits)


@form("clz.{t} d:u32, a", t=("b32", "b64"), unit="mufu", source=_source("clz"))
def clz(t: ScalarType) -> Callable[..., Value]:
    """The number of leading zeros."""
    return bitfield.make_clz(t.width_bits)


@form(
    "bfind{.shiftamt}.{t} d:u32, a",
    shiftamt=("shiftamt",), t=WIDE, unit="mufu", source=_source("bfind"),
)  # fmt: skip
def bfind(shiftamt: str, t: ScalarType) -> Callable[..., Value]:
    """The position of the top bit that is no sign bit, or the shift that brings it to the top."""
    return bitfield.make_bfind(t.width_bits, t.is_signed, bool(shiftamt))


@form("brev.{t} d, a", t=("b32", "b64"), unit="mufu", source=_source("brev"))
def brev(t: ScalarType) -> Callable[..., Value]:
    """Bit reversal."""
    return bitfield.make_brev(t.width_bits)


@form(
    "bfe.{t} d, a, b:u32, c:u32",
    limits={"b": BYTE, "c": BYTE},
    t=WIDE,
    unit="alu",
    source=_source("bfe"),
)
def bfe(t: ScalarType) -> Callable[..., Value]:
    """The field of c bits at position b."""
    return bitfield.make_bfe(t.width_bits, t.is_signed)


@form(
    "bfi.{t} d, a, b, c:u32, e:u32", limits={"c": BYTE, "e": BYTE}, t=("b32", "b64"), unit="alu", source=_source("bfi"),
)  # fmt: skip
def bfi(t: ScalarType) -> Callable[..., Value]:
    """b with e bits of a at position c."""
    return bitfield.make_bfi(t.width_bits)


@form(
    "szext.{mode}.{t} d, a, b:u32",
    mode=("clamp", "wrap"),
    t=MIDDLE,
    unit="alu",
    source=_source("szext"),
)
def szext(mode: Any, t: ScalarType) -> Callable[..., Value]:
    """The low b bits of a, extended by sign or zeros."""
    return bitfield.make_szext(mode, t.is_signed)


@form(
    "bmsk.{mode}.b32 d:u32, a:u32, b:u32",
    mode=("clamp", "wrap"),
    unit="alu",
    source=_source("bmsk"),
)
def bmsk(mode: Any) -> Callable[..., Value]:
    """b ones starting at bit a."""
    return bitfield.make_bmsk(mode)


@form("fns.b32 d:b32, a:b32, b:b32, c:s32", unit="mufu", source=_source("fns"))
def fns() -> Callable[..., Value]:
    """The place of the c-th set bit of a, counted from bit b; downwards if c is negative."""
    return bitfield.make_fns()


# --- extended precision ---------------------------------------------------------------------------


def _begins(operation: Callable[..., Any], carry: bool) -> Callable[..., Any]:
    """Take this carry instead of the last one, leave one."""
    return lambda *operands: operation(*operands, carry)


def _with_carry(operation: Callable[..., Any], leave: bool) -> Callable[..., Any]:
    """Take the carry; leave one when the instruction says `.cc`."""
    return operation if leave else lambda *operands: operation(*operands)[0]


@form("add.cc.{t} d, a, b", t=WIDE, unit="alu", source=_source("add.cc"))
def add_cc(t: ScalarType) -> Callable[..., Any]:
    """a + b; leaves the carry."""
    return _begins(carry.make_add_carry(t.width_bits), False)


@form(
    "addc{.cc}.{t} d, a, b",
    cc=("cc",),
    t=WIDE,
    takes_carry=True,
    unit="alu",
    source=_source("addc"),
)
def addc(cc: str, t: ScalarType) -> Callable[..., Any]:
    """a + b + carry."""
    return _with_carry(carry.make_add_carry(t.width_bits), bool(cc))


@form("sub.cc.{t} d, a, b", t=WIDE, unit="alu", source=_source("sub.cc"))
def sub_cc(t: ScalarType) -> Callable[..., Any]:
    """a - b; leaves a carry where nothing is borrowed."""
    return _begins(carry.make_sub_carry(t.width_bits), True)


@form(
    "subc{.cc}.{t} d, a, b",
    cc=("cc",),
    t=WIDE,
    takes_carry=True,
    unit="alu",
    source=_source("subc"),
)
def subc(cc: str, t: ScalarType) -> Callable[..., Any]:
    """a - (b + 1), or a - b where the last instruction left a carry."""
    return _with_carry(carry.make_sub_carry(t.width_bits), bool(cc))


@form(
    "mad.{half}.cc.{t} d, a, b, c",
    half=HALF,
    t=WIDE,
    joined=1,
    unit="imad",
    source=_source("mad.cc"),
)
def mad_cc(half: Any, t: ScalarType) -> Callable[..., Any]:
    """One half of a * b, plus c; leaves the carry."""
    return _begins(carry.make_mad_carry(t.width_bits, half, t.is_signed), False)


@form(
    "madc.{half}{.cc}.{t} d, a, b, c",
    half=HALF,
    cc=("cc",),
    t=WIDE,
    takes_carry=True,
    joined=1,
    unit="imad",
    source=_source("madc"),
)
def madc(half: Any, cc: str, t: ScalarType) -> Callable[..., Any]:
    """One half of a * b, plus c, plus carry."""
    return _with_carry(carry.make_mad_carry(t.width_bits, half, t.is_signed), bool(cc))

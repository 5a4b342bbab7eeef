"""Comparison and selection: setp, set, selp, slct.

An integer `setp` of one predicate is a Python expression in the generated code; comparisons of floats, pairs `p|q` and
`set` are calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hopsim.isa.forms.form import form
from hopsim.isa.forms.templates import choose, signed_number
from hopsim.isa.numerics import integer, ordering
from hopsim.isa.numerics.formats import FORMATS
from hopsim.isa.types import DTYPES, TYPES, ScalarType
from hopsim.isa.values import Predicate, Value, select

BITS: Final = ("b16", "b32", "b64")
UNSIGNED: Final = ("u16", "u32", "u64")
SIGNED: Final = ("s16", "s32", "s64")
INTEGERS: Final = (*BITS, *UNSIGNED, *SIGNED)
FLOATS: Final = ("f32", "f64")
HALVES: Final = ("f16", "bf16")
PACKED: Final = ("f16x2", "bf16x2")
EQUAL: Final = ("eq", "ne")
ORDER: Final = (*EQUAL, "lt", "le", "gt", "ge")
ORDER_UNSIGNED: Final = (*ORDER, "lo", "ls", "hi", "hs")
ORDER_FLOAT: Final = (*ORDER, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
JOIN: Final = ("and", "or", "xor")
SETP: Final = 'PTX ISA 8.7, "setp"'
SET: Final = 'PTX ISA 8.7, "set"'
SIGN: Final = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip
JOIN_SIGN: Final = {"and": "&", "or": "|", "xor": "^"}

Compare = Callable[[Value, Value], Predicate]
JoinedCompare = Callable[[Value, Value, Predicate], Predicate]


# --- what is compared -----------------------------------------------------------------------------


def _integer_template(cmp: str, t: ScalarType) -> str:
    if t.is_signed and cmp not in EQUAL:
        return f"({signed_number('{0}', t.width_bits)} {SIGN[cmp]} {signed_number('{1}', t.width_bits)})"
    return f"({{0}} {SIGN[cmp]} {{1}})"


def _compare(cmp: Any, t: ScalarType, ftz: bool) -> Compare:
    if t.kind == "float":
        return ordering.make_compare(cmp, t.name, ftz=ftz)
    return integer.make_compare(cmp, t.width_bits, t.is_signed)


def _invert(predicate: Predicate) -> Predicate:
    return ~predicate if isinstance(predicate, np.ndarray) else not predicate


def _join(join: str, predicate: Predicate, other: Predicate) -> Any:
    if join == "and":
        return predicate & other
    return predicate | other if join == "or" else predicate ^ other


def _comparison_problem(slots: dict[str, str]) -> str:
    """Check comparison, type and `.ftz` against each other."""
    cmp, t = slots["cmp"], slots["t"]
    kind = TYPES[t].kind
    if kind in ("float", "packed"):
        allowed = ORDER_FLOAT
    else:
        allowed = {"bits": EQUAL, "unsigned": ORDER_UNSIGNED}.get(kind, ORDER)
    if cmp not in allowed:
        return f"comparison .{cmp} does not apply to .{t}, expected one of {' '.join(allowed)}"
    if slots.get("ftz") and t not in ("f32", "f16", "f16x2"):
        return f".ftz does not apply to .{t}, expected .f32, .f16 or .f16x2"
    return ""


# --- setp -----------------------------------------------------------------------------------------


@form(
    "setp.{cmp}.{t} d:pred, a, b",
    cmp=ORDER_UNSIGNED, t=INTEGERS, check=_comparison_problem, unit="alu", source=SETP,
)  # fmt: skip
def setp_integer(cmp: str, t: ScalarType) -> str:
    """Whether a comparison of integers holds."""
    return _integer_template(cmp, t)


@form(
    "setp.{cmp}.{join}.{t} d:pred, a, b, c:pred",
    cmp=ORDER_UNSIGNED, join=JOIN, t=INTEGERS, check=_comparison_problem, unit="alu", source=SETP,
)  # fmt: skip
def setp_integer_join(cmp: str, join: str, t: ScalarType) -> str:
    """A comparison of integers, joined with a predicate."""
    return f"({_integer_template(cmp, t)} {JOIN_SIGN[join]} {{2}})"


@form(
    "setp.{cmp}{.ftz}.{t} d:pred, a, b",
    cmp=ORDER_FLOAT, ftz=("ftz",), t=(*FLOATS, *HALVES), check=_comparison_problem, unit="alu", source=SETP,
)  # fmt: skip
def setp_float(cmp: str, ftz: str, t: ScalarType) -> Compare:
    """Whether a comparison of floats holds; the forms with `u` hold when an operand is NaN."""
    return _compare(cmp, t, bool(ftz))


@form(
    "setp.{cmp}.{join}{.ftz}.{t} d:pred, a, b, c:pred",
    cmp=ORDER_FLOAT, join=JOIN, ftz=("ftz",), t=(*FLOATS, *HALVES), check=_comparison_problem, unit="alu", source=SETP,
)  # fmt: skip
def setp_float_join(cmp: str, join: str, ftz: str, t: ScalarType) -> JoinedCompare:
    """A comparison of floats, joined with a predicate."""
    compare = _compare(cmp, t, bool(ftz))
    return lambda a, b, c: _join(join, compare(a, b), c)


@form(
    "setp.{cmp}{.ftz}.{t} d:pred|dq:pred, a, b",
    cmp=(*ORDER_UNSIGNED, *ORDER_FLOAT[6:]), ftz=("ftz",), t=(*INTEGERS, *FLOATS),
    check=_comparison_problem, unit="alu", source=SETP,
)  # fmt: skip
def setp_pair(cmp: str, ftz: str, t: ScalarType) -> Callable[..., tuple[Predicate, Predicate]]:
    """A comparison and its opposite."""
    compare = _compare(cmp, t, bool(ftz))

    def run(a: Value, b: Value) -> tuple[Predicate, Predicate]:
        holds = compare(a, b)
        return holds, _invert(holds)

    return run


@form(
    "setp.{cmp}.{join}{.ftz}.{t} d:pred|dq:pred, a, b, c:pred",
    cmp=(*ORDER_UNSIGNED, *ORDER_FLOAT[6:]), join=JOIN, ftz=("ftz",), t=(*INTEGERS, *FLOATS),
    check=_comparison_problem, unit="alu", source=SETP,
)  # fmt: skip
def setp_pair_join(
    cmp: str, join: str, ftz: str, t: ScalarType
) -> Callable[..., tuple[Predicate, Predicate]]:
    """A comparison and its opposite, each joined with a predicate."""
    compare = _compare(cmp, t, bool(ftz))

    def run(a: Value, b: Value, c: Predicate) -> tuple[Predicate, Predicate]:
        holds = compare(a, b)
        return _join(join, holds, c), _join(join, _invert(holds), c)

    return run


def _halves_compare(
    cmp: str, t: ScalarType, ftz: bool
) -> Callable[[Value, Value], tuple[Predicate, Predicate]]:
    compare = _compare(cmp, TYPES[t.name.removesuffix("x2")], ftz)

    def half(value: Value, shift: int) -> Value:
        if isinstance(value, np.ndarray):
            return (value >> shift).astype(DTYPES[16])
        return value >> shift & 0xFFFF

    def run(a: Value, b: Value) -> tuple[Predicate, Predicate]:
        return compare(half(a, 0), half(b, 0)), compare(half(a, 16), half(b, 16))

    return run


@form(
    "setp.{cmp}{.ftz}.{t} d:pred|dq:pred?, a, b",
    cmp=ORDER_FLOAT, ftz=("ftz",), t=PACKED, check=_comparison_problem, unit="fp16", source=SETP,
)  # fmt: skip
def setp_packed(cmp: str, ftz: str, t: ScalarType) -> Callable[..., tuple[Predicate, Predicate]]:
    """The comparison of the low halves, and of the high halves."""
    return _halves_compare(cmp, t, bool(ftz))


@form(
    "setp.{cmp}.{join}{.ftz}.{t} d:pred|dq:pred?, a, b, c:pred",
    cmp=ORDER_FLOAT, join=JOIN, ftz=("ftz",), t=PACKED, check=_comparison_problem, unit="fp16", source=SETP,
)  # fmt: skip
def setp_packed_join(
    cmp: str, join: str, ftz: str, t: ScalarType
) -> Callable[..., tuple[Predicate, Predicate]]:
    """The comparison of the low and of the high halves, each joined with a predicate."""
    compare = _halves_compare(cmp, t, bool(ftz))

    def run(a: Value, b: Value, c: Predicate) -> tuple[Predicate, Predicate]:
        low, high = compare(a, b)
        return _join(join, low, c), _join(join, high, c)

    return run


# --- set ------------------------------------------------------------------------------------------

RESULTS: Final = ("u32", "s32", "f32", "u16", "s16", "f16", "bf16")
PACKED_RESULTS: Final = ("u32", "s32")
# Both type slots list all types, so that the first type in the text is the result's; the check refuses the rest.
ANY: Final = (*INTEGERS, *FLOATS, *HALVES, *PACKED)


def _set_problem(slots: dict[str, str]) -> str:
    result, t = slots["dt"], slots["t"]
    if t in PACKED or result in PACKED:
        return _set_packed_problem(result, t) or _comparison_problem(slots)
    if result not in RESULTS:
        return f"a .{result} result is not legal, expected one of {' '.join(RESULTS)}"
    if result == "bf16" and slots["ftz"]:
        return "set with a .bf16 result takes no .ftz"
    if t in HALVES and result in ("f32", "f16") and result != t:
        return f"set of .{t} operands does not give a .{result}"
    if result in ("u16", "s16") and t not in HALVES:
        return f"a .{result} result needs .f16 or .bf16 operands, got .{t}"
    return _comparison_problem(slots)


def _set_packed_problem(result: str, t: str) -> str:
    """Check the types of a comparison of two halves each."""
    if t not in PACKED:
        return f"a .{result} result needs .{result} operands, got .{t}"
    if result not in (t, *PACKED_RESULTS):
        return f"set of .{t} operands gives .{t}, .u32 or .s32, got .{result}"
    return ""


def _true_bits(t: ScalarType) -> int:
    """What `set` writes where the comparison holds: 1.0 or all ones."""
    return FORMATS[t.name].one if t.kind == "float" else t.mask


def _set(cmp: str, ftz: str, dt: ScalarType, t: ScalarType, join: str = "") -> Callable[..., Value]:
    """Return what `set` does, for both halves where they are packed."""
    if t.kind != "packed":
        compare, ones = _compare(cmp, t, bool(ftz)), _true_bits(dt)

        def run(a: Value, b: Value, *c: Predicate) -> Value:
            holds = compare(a, b)
            return select(_join(join, holds, *c) if join else holds, ones, 0, dt.width_bits)

        return run
    both = _halves_compare(cmp, t, bool(ftz))
    one = _true_bits(TYPES[dt.name.removesuffix("x2")]) if dt.kind == "packed" else 0xFFFF

    def run_packed(a: Value, b: Value, *c: Predicate) -> Value:
        low, high = (_join(join, holds, *c) if join else holds for holds in both(a, b))
        return select(high, one << 16, 0, 32) | select(low, one, 0, 32)

    return run_packed


@form(
    "set.{cmp}{.ftz}.{dt}.{t} d:dt, a, b",
    cmp=(*ORDER_UNSIGNED, *ORDER_FLOAT[6:]), ftz=("ftz",), dt=ANY, t=ANY,
    check=_set_problem, unit="alu", source=SET,
)  # fmt: skip
def set_value(cmp: str, ftz: str, dt: ScalarType, t: ScalarType) -> Callable[..., Value]:
    """All ones (1.0 for a float) where a comparison holds, else 0; of halves each."""
    return _set(cmp, ftz, dt, t)


@form(
    "set.{cmp}.{join}{.ftz}.{dt}.{t} d:dt, a, b, c:pred",
    cmp=(*ORDER_UNSIGNED, *ORDER_FLOAT[6:]), join=JOIN, ftz=("ftz",), dt=ANY, t=ANY,
    check=_set_problem, unit="alu", source=SET,
)  # fmt: skip
def set_value_join(
    cmp: str, join: str, ftz: str, dt: ScalarType, t: ScalarType
) -> Callable[..., Value]:
    """All ones (1.0 for a float) where a comparison, joined with a predicate, holds, else 0; of halves each."""
    return _set(cmp, ftz, dt, t, join)


# --- selp, slct -----------------------------------------------------------------------------------


@form("selp.{t} d, a, b, c:pred", t=(*INTEGERS, *FLOATS), unit="alu", source='PTX ISA 8.7, "selp"')
def selp(t: ScalarType) -> str:
    """The first operand where the predicate holds, else the second."""
    return choose(2, 0, 1, t.width_bits)


def _slct_problem(slots: dict[str, str]) -> str:
    if slots["ftz"] and slots["ct"] != "f32":
        return "slct takes .ftz only where c is .f32"
    return ""


@form(
    "slct{.ftz}.{t}.{ct} d, a, b, c:ct",
    ftz=("ftz",), t=(*INTEGERS, *FLOATS), ct=("s32", "f32"), check=_slct_problem, unit="alu",
    source='PTX ISA 8.7, "slct"',
)  # fmt: skip
def slct(ftz: str, t: ScalarType, ct: ScalarType) -> Callable[[Value, Value, Value], Value]:
    """The first operand where c is 0 or more (-0 too), else the second (also for NaN)."""
    at_least = _compare("ge", ct, bool(ftz))
    return lambda a, b, c: select(at_least(c, 0), a, b, t.width_bits)

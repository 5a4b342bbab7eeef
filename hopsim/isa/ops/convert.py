"""cvt: between integers, floats and pairs, and cvt.pack.

Which conversion takes which rounding and which modifiers is a table, checked against what ptxas 13.0 accepts.
A missing rounding modifier between f16 and bf16 means `.rn`, which PTX ISA 8.7 does not say (recorded on an H100).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from hopsim.isa.forms.form import form
from hopsim.isa.forms.templates import resize
from hopsim.isa.numerics import convert, integer
from hopsim.isa.types import TYPES, ScalarType
from hopsim.isa.values import Value

INTEGERS: Final = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
FLOATS: Final = ("f16", "bf16", "f32", "f64", "tf32")
SCALARS: Final = (*INTEGERS, *FLOATS)
PAIRS: Final = ("f16x2", "bf16x2", "e4m3x2", "e5m2x2")
# Both type slots list all types, so that the first type in the text is the result's; the table refuses the rest.
PAIR_TYPES: Final = (*PAIRS, "f32")
MODIFIERS: Final = ("ftz", "sat", "satfinite", "relu")
SOURCE: Final = 'PTX ISA 8.7, "cvt"'

_TO_FLOAT = ("rn", "rz", "rm", "rp")
_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")
_NOT_BYTES = tuple(name for name in INTEGERS if TYPES[name].width_bits > 8)
_PLAIN = ("",)
_SAT = ("", "sat")
_FTZ_SAT = ("", "ftz", "sat", "ftz sat")
_RELU_FINITE = ("relu", "satfinite", "relu satfinite")

# (results, operands, roundings, sets of modifiers)
_RULES: Final[tuple[tuple[tuple[str, ...], ...], ...]] = (
    (INTEGERS, ("f16", "f64"), _TO_INTEGER, _SAT),
    (INTEGERS, ("f32",), _TO_INTEGER, _FTZ_SAT),
    (_NOT_BYTES, ("bf16",), _TO_INTEGER, _PLAIN),
    (("f16", "f64"), INTEGERS, _TO_FLOAT, _SAT),
    (("f32",), INTEGERS, _TO_FLOAT, _FTZ_SAT),
    (("bf16",), _NOT_BYTES, _TO_FLOAT, _PLAIN),
    (("f16",), ("f16",), ("", *_TO_INTEGER), _SAT),
    (("bf16",), ("bf16",), ("", *_TO_INTEGER), _PLAIN),
    (("f32",), ("f32",), ("", *_TO_INTEGER), _FTZ_SAT),
    (("f64",), ("f64",), ("", *_TO_INTEGER), _SAT),
    (("f16",), ("f32",), ("rn", "rz"), (*_FTZ_SAT, *_RELU_FINITE)),
    (("f16",), ("f32",), ("rm", "rp"), _FTZ_SAT),
    (("bf16",), ("f32",), ("rn", "rz"), ("", "ftz", *_RELU_FINITE)),
    (("bf16",), ("f32",), ("rm", "rp"), ("", "ftz")),
    (("tf32",), ("f32",), ("rn", "rz"), ("", "relu")),
    (("tf32",), ("f32",), ("rna",), ("", "satfinite")),
    (("f16",), ("f64",), _TO_FLOAT, _SAT),
    (("bf16",), ("f64",), _TO_FLOAT, _PLAIN),
    (("f32",), ("f64",), _TO_FLOAT, _FTZ_SAT),
    (("f16",), ("bf16",), ("", *_TO_FLOAT), _PLAIN),
    (("bf16",), ("f16",), ("", *_TO_FLOAT), _PLAIN),
    (("f64",), ("bf16",), ("", *_TO_FLOAT), _PLAIN),
    (("f32",), ("bf16",), ("", *_TO_FLOAT), ("", "ftz")),
    (("f32",), ("f16",), ("",), _FTZ_SAT),
    (("f64",), ("f32",), ("",), _FTZ_SAT),
    (("f64",), ("f16",), ("",), _SAT),
)
_ONE_TO_PAIR: Final[tuple[tuple[tuple[str, ...], ...], ...]] = (
    (("e4m3x2", "e5m2x2"), ("f16x2",), ("rn",), ("satfinite", "relu satfinite")),
    (("f16x2",), ("e4m3x2", "e5m2x2"), ("rn",), ("", "relu")),
)
_TWO_TO_PAIR: Final[tuple[tuple[tuple[str, ...], ...], ...]] = (
    (("f16x2", "bf16x2"), ("f32",), ("rn", "rz"), ("", *_RELU_FINITE)),
    (("e4m3x2", "e5m2x2"), ("f32",), ("rn",), ("satfinite", "relu satfinite")),
)

Table = dict[tuple[str, str], dict[str, set[frozenset[str]]]]


def _table(rules: Iterable[tuple[tuple[str, ...], ...]]) -> Table:
    table: Table = {}
    for results, operands, roundings, modifiers in rules:
        for result in results:
            for operand in operands:
                row = table.setdefault((result, operand), {})
                for rounding in roundings:
                    row.setdefault(rounding, set()).update(
                        frozenset(words.split()) for words in modifiers
                    )
    return table


def _dotted(words: Iterable[str]) -> str:
    return " ".join(f".{word}" for word in words)


def _checker(rules: Iterable[tuple[tuple[str, ...], ...]]) -> Callable[[dict[str, str]], str]:
    table = _table(rules)

    def problem(slots: dict[str, str]) -> str:
        result, operand, rounding = slots["dt"], slots["at"], slots["rnd"]
        row = table.get((result, operand))
        if row is None:
            return f"there is no conversion from .{operand} to .{result} with these modifiers or operands"
        if rounding not in row:
            given = f".{rounding}" if rounding else "none"
            allowed = _dotted(word for word in row if word)
            if "" in row:
                allowed = f"none or one of {allowed}" if allowed else "none"
            else:
                allowed = f"one of {allowed}"
            return f"rounding of .{operand} to .{result}: expected {allowed}, got {given}"
        words = frozenset(word for word in MODIFIERS if slots.get(word))
        if words not in row[rounding]:
            allowed = " or ".join(sorted(_dotted(sorted(each)) or "none" for each in row[rounding]))
            given = _dotted(sorted(words)) or "none"
            return f"modifiers of .{operand} to .{result}: expected {allowed}, got {given}"
        return ""

    return problem


def _integer_problem(slots: dict[str, str]) -> str:
    result, operand = TYPES[slots["dt"]], TYPES[slots["at"]]
    if not slots["sat"]:
        return ""
    if operand.is_signed:
        fits = result.is_signed and result.width_bits >= operand.width_bits
    else:
        fits = result.width_bits >= operand.width_bits + result.is_signed
    return f"every .{operand.name} fits .{result.name}, so .sat does not apply" if fits else ""


@form(
    "cvt{.sat}.{dt}.{at} d:dt~, a:at~",
    sat=("sat",), dt=INTEGERS, at=INTEGERS, check=_integer_problem, unit="alu", source=SOURCE,
)  # fmt: skip
def cvt_integer(sat: str, dt: ScalarType, at: ScalarType) -> str | Callable[..., Value]:
    """Between integers: cut, or extended as the operand's type says; `.sat` clamps."""
    if sat:
        return convert.make_cvt(dt.name, at.name, "", ("sat",))
    return resize(at.width_bits, dt.width_bits, at.is_signed)


@form(
    "cvt{.rnd}{.ftz}{.sat}{.satfinite}{.relu}.{dt}.{at} d:dt~, a:at~",
    rnd=(*_TO_FLOAT, "rna", *_TO_INTEGER), ftz=("ftz",), sat=("sat",), satfinite=("satfinite",), relu=("relu",),
    dt=SCALARS, at=SCALARS, check=_checker(_RULES), unit="convert", source=SOURCE,
)  # fmt: skip
def cvt_float(rnd: str, dt: ScalarType, at: ScalarType, **modifiers: str) -> Callable[..., Value]:
    """To, from and between floats."""
    if not rnd and {dt.name, at.name} == {"f16", "bf16"}:
        rnd = "rn"
    return convert.make_cvt(dt.name, at.name, rnd, [word for word in modifiers.values() if word])


@form(
    "cvt.{rnd}{.satfinite}{.relu}.{dt}.{at} d:dt, a:at, b:at",
    rnd=("rn", "rz"), satfinite=("satfinite",), relu=("relu",), dt=PAIR_TYPES, at=PAIR_TYPES,
    check=_checker(_TWO_TO_PAIR), unit="convert", source=SOURCE,
)  # fmt: skip
def cvt_two(rnd: str, dt: ScalarType, at: ScalarType, **modifiers: str) -> Callable[..., Value]:
    """Two floats to a pair: a to the upper half, b to the lower."""
    return convert.make_cvt(dt.name, at.name, rnd, [word for word in modifiers.values() if word])


@form(
    "cvt.{rnd}{.satfinite}{.relu}.{dt}.{at} d:dt, a:at",
    rnd=("rn", "rz"), satfinite=("satfinite",), relu=("relu",), dt=PAIR_TYPES, at=PAIR_TYPES,
    check=_checker(_ONE_TO_PAIR), unit="convert", source=SOURCE,
)  # fmt: skip
def cvt_pair(rnd: str, dt: ScalarType, at: ScalarType, **modifiers: str) -> Callable[..., Value]:
    """A pair to a pair of another format."""
    return convert.make_cvt(dt.name, at.name, rnd, [word for word in modifiers.values() if word])


# --- cvt.pack -------------------------------------------------------------------------------------


def _clamp(name: str) -> tuple[Callable[[Value], Any], int]:
    """Return the saturating cut of an s32 to an integer type such as `u4`, and the width of that type in bits."""
    bits = int(name[1:])
    high = (1 << (bits - 1 if name[0] == "s" else bits)) - 1
    low = -(1 << (bits - 1)) & 0xFFFFFFFF if name[0] == "s" else 0
    at_least, at_most = integer.make_max(32, True), integer.make_min(32, True)
    return lambda a: at_most(at_least(a, low), high) & ((1 << bits) - 1), bits


@form(
    "cvt.pack.sat.{to}.s32 d:u32, a:s32, b:s32",
    to=("u16", "s16"),
    unit="convert",
    source='PTX ISA 8.7, "cvt.pack"',
)
def cvt_pack(to: ScalarType) -> Callable[[Value, Value], Value]:
    """Two integers, clamped, side by side: a on top."""
    cut, bits = _clamp(to.name)
    return lambda a, b: cut(a) << bits | cut(b)


@form(
    "cvt.pack.sat.{to}.s32.b32 d:u32, a:s32, b:s32, c:b32",
    to=("u2", "s2", "u4", "s4", "u8", "s8"), unit="convert", source='PTX ISA 8.7, "cvt.pack"',
)  # fmt: skip
def cvt_pack_onto(to: str) -> Callable[..., Any]:
    """Two integers, clamped, side by side below the low bits of c."""
    cut, bits = _clamp(to)
    kept = (1 << (32 - 2 * bits)) - 1

    def run(a: Value, b: Value, c: Any) -> Any:
        return (c & kept) << 2 * bits | cut(a) << bits | cut(b)

    return run

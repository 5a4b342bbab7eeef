"""mov in all its shapes, and address conversion: cvta, isspacep.

Registers, immediates, special registers and addresses of variables all arrive as values, so that a plain `mov` is the
operand itself.  Clock registers change while the program runs; they are read by `mov ... clock` forms of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hopsim.isa import types
from hopsim.isa.context import Context
from hopsim.isa.forms.form import form, local_form
from hopsim.isa.ops.accesses import LENGTH
from hopsim.isa.ptx.flat import FlatOperand, FlatVector, SymbolRef
from hopsim.isa.types import DTYPES, ScalarType
from hopsim.isa.values import Value

TYPES: Final = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")
SPACES: Final = (
    "global", "const", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry",
)  # fmt: skip
MOV: Final = 'PTX ISA 8.7, "mov"'


@form("mov.{t} d, a", t=TYPES, unit="move", source=MOV)
def mov(t: ScalarType) -> str:
    """The value of a register, an immediate, a special register, or the address of a variable."""
    del t
    return "{0}"


@form("mov.pred d:pred, a:pred", unit="predicate", source=MOV)
def mov_pred() -> str:
    """A predicate."""
    return "{0}"


# --- vectors --------------------------------------------------------------------------------------


def _pack(part_bits: int, width_bits: int) -> Callable[[tuple[Value, ...]], Value]:
    dtype = DTYPES[width_bits]

    def pack(parts: tuple[Value, ...]) -> Value:
        result: Any = 0
        for position, part in enumerate(parts):
            wide: Any = part.astype(dtype) if isinstance(part, np.ndarray) else part
            result = result | wide << position * part_bits
        return result

    return pack


def _pack_two(part_bits: int, width_bits: int) -> Callable[[tuple[Value, ...]], Value]:
    dtype = DTYPES[width_bits]

    def pack(parts: tuple[Value, ...]) -> Value:
        low, high = parts
        if isinstance(high, np.ndarray):
            return high.astype(dtype) << part_bits | low
        top = high << part_bits
        return low.astype(dtype) | top if isinstance(low, np.ndarray) else low | top

    return pack


def _unpack(part_bits: int, width_bits: int) -> Callable[[Value], tuple[Value, ...]]:
    dtype, mask = DTYPES[part_bits], (1 << part_bits) - 1
    shifts = range(part_bits, width_bits, part_bits)

    def unpack(a: Value) -> tuple[Value, ...]:
        if isinstance(a, np.ndarray):
            return (a.astype(dtype), *[(a >> shift).astype(dtype) for shift in shifts])
        return (a & mask, *[a >> shift & mask for shift in shifts])

    return unpack


def _declare_vectors(part: str, part_bits: int, words: tuple[str, ...]) -> None:
    def counts(slots: dict[str, str]) -> dict[str, int]:
        length = types.TYPES[slots["t"]].width_bits // part_bits
        return {"a": length, "d": length}

    @form(f"mov.{{t}} d, {{a}}:{part}", t=words, unit="move", counts=counts, source=MOV)
    def pack(t: ScalarType) -> Callable[[tuple[Value, ...]], Value]:
        """Join the elements of a vector, the first one lowest."""
        return (_pack_two if t.width_bits == 2 * part_bits else _pack)(part_bits, t.width_bits)

    @form(f"mov.{{t}} {{d}}:{part}, a", t=words, unit="move", counts=counts, source=MOV)
    def unpack(t: ScalarType) -> Callable[[Value], tuple[Value, ...]]:
        """Cut a word into the elements of a vector, the lowest one first."""
        return _unpack(part_bits, t.width_bits)


def _vector_counts(slots: dict[str, str]) -> dict[str, int]:
    length = LENGTH[slots["v"]]
    return {"d": length, "a": length}


def _vector_problem(slots: dict[str, str]) -> str:
    total = LENGTH[slots["v"]] * types.TYPES[slots["t"]].width_bits
    return f"a vector of {total} bits; the widest is 128 bits" if total > 128 else ""


def _elements_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    """Say which element of a vector is the address of a variable, which has none (ptxas 13.0)."""
    del slots
    source = operands[1] if len(operands) > 1 else None
    for item in source.items if isinstance(source, FlatVector) else ():
        if isinstance(item, SymbolRef) and item.kind != "special":
            return f"operand a holds the address of {item.name}: mov puts it into a register of its own"
    return ""


@form(
    "mov.{v}.{t} {d}:t, {a}:t", v=("v2", "v4"), t=TYPES, check=_vector_problem, agree=_elements_problem, counts=_vector_counts,
    unit="move", source=MOV,
)  # fmt: skip
def mov_vector(v: str, t: ScalarType) -> str:
    """Each element; a special register has those of a vector too."""
    del v, t
    return "{0}"


_declare_vectors("b8", 8, ("b16", "b32"))
_declare_vectors("b16", 16, ("b32", "b64"))
_declare_vectors("b32", 32, ("b64",))


# --- 128 bits -------------------------------------------------------------------------------------


def _halves(slots: dict[str, str]) -> dict[str, int]:
    del slots
    return {"d": 2, "a": 2}


def _pack_counts(slots: dict[str, str]) -> dict[str, int]:
    del slots
    return {"d": 2, "a": 4}


def _unpack_counts(slots: dict[str, str]) -> dict[str, int]:
    del slots
    return {"d": 4, "a": 2}


@form("mov.b128 {d}:b128, {a}:b128", unit="move", counts=_halves, source=MOV)
def mov128() -> str:
    """A register of 128 bits, which is two of 64 bits."""
    return "{0}"


@form("mov.b128 {d}:b128, {a}:b64", unit="move", counts=_halves, source=MOV)
def pack128() -> str:
    """Join two words, the first one lowest."""
    return "{0}"


@form("mov.b128 {d}:b64, {a}:b128", unit="move", counts=_halves, source=MOV)
def unpack128() -> str:
    """Cut 128 bits into two words, the lowest one first."""
    return "{0}"


@form("mov.b128 {d}:b128, {a}:b32", unit="move", counts=_pack_counts, source=MOV)
def pack128_of_four() -> Callable[[tuple[Value, ...]], tuple[Value, ...]]:
    """Join four words, the first one lowest."""
    pair = _pack_two(32, 64)
    return lambda parts: (pair(parts[:2]), pair(parts[2:]))


@form("mov.b128 {d}:b32, {a}:b128", unit="move", counts=_unpack_counts, source=MOV)
def unpack128_to_four() -> Callable[[tuple[Value, ...]], tuple[Value, ...]]:
    """Cut 128 bits into four words, the lowest one first."""
    halves = _unpack(32, 64)
    return lambda parts: (*halves(parts[0]), *halves(parts[1]))


# --- addresses ------------------------------------------------------------------------------------


def _plain_space(space: str) -> str:
    return "param" if space == "param::entry" else space


@local_form("cvta.{space}.u64 d:u64, a:u64", space=SPACES, unit="alu", source='PTX ISA 8.7, "cvta"')
def cvta(space: str) -> Callable[[Context, Value], Value]:
    """The generic address of an address in a state space."""
    plain = _plain_space(space)
    return lambda ctx, a: ctx.to_generic(plain, a)


@local_form(
    "cvta.to.{space}.u64 d:u64, a:u64", space=SPACES, unit="alu", source='PTX ISA 8.7, "cvta"'
)
def cvta_to(space: str) -> Callable[[Context, Value], Value]:
    """The address in a state space of a generic address."""
    plain = _plain_space(space)
    return lambda ctx, a: ctx.from_generic(plain, a)


@local_form(
    "isspacep.{space} d:pred, a:u32", space=SPACES, unit="alu", source='PTX ISA 8.7, "isspacep"'
)
@local_form(
    "isspacep.{space} d:pred, a:u64", space=SPACES, unit="alu", source='PTX ISA 8.7, "isspacep"'
)
def isspacep(space: str) -> Callable[[Context, Value], Any]:
    """Whether a generic address points into a state space."""
    plain = _plain_space(space)
    return lambda ctx, a: ctx.is_space(plain, a)

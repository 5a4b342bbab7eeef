"""ldmatrix, stmatrix, movmatrix and mma.sync.

Source: PTX ISA 8.7 "Warp-level Matrix Load Instruction: ldmatrix", "stmatrix", "movmatrix", "mma".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.numerics.mma_kinds import MMA_SYNC
from hopsim.isa.numerics.mma_plain import mma_integer as integer_product
from hopsim.isa.numerics.tensor_core import mma
from hopsim.isa.types import TYPES, ScalarType
from hopsim.isa.values import Array, Value
from hopsim.layout.fragments import (
    mma_c_to_registers,
    registers_to_mma_a,
    registers_to_mma_b,
    registers_to_mma_c,
)

COUNT = ("x1", "x2", "x4")
SPACE = ("shared", "shared::cta")
LDMATRIX = 'PTX ISA 8.7, "ldmatrix"'
STMATRIX = 'PTX ISA 8.7, "stmatrix"'
MMA = 'PTX ISA 8.7, "mma"'


def _matrices(slots: dict[str, str]) -> dict[str, int]:
    number = int(slots["count"][1])
    return {"d": number, "b": number}


def _fragments(slots: dict[str, str]) -> dict[str, int]:
    """Registers of each operand of a 16x8xK product, for a thread."""
    bits = TYPES[slots.get("at") or "tf32"].width_bits
    depth = int(slots["shape"].partition("k")[2])
    result = 2 if slots.get("dt") == "f16" else 4
    return {"d": result, "a": 16 * depth * bits // 1024, "b": 8 * depth * bits // 1024, "c": result}


@shared_form("ldmatrix.sync.aligned.{count}.m8n8{.trans}{.space}.b16 {d}:b32, [a]", count=COUNT, trans=("trans",),
             space=SPACE, data=True, collective=True, counts=_matrices, unit="matrix_copy", effects=("reads [a]",),
             source=LDMATRIX)  # fmt: skip
def ldmatrix(count: str, trans: str, space: str) -> Any:
    """Loads 8x8 matrices of 16-bit elements, rows addressed by lanes."""
    number = int(count[1])

    def run(ctx: Context, a: Value) -> Any:
        result = ctx.ldmatrix(space, a, number, bool(trans))
        return (None,) * number if result is None else result

    return run


@shared_form("stmatrix.sync.aligned.{count}.m8n8{.trans}{.space}.b16 [a], {b}:b32", count=COUNT, trans=("trans",),
             space=SPACE, data_operands=("b",), collective=True, counts=_matrices, unit="matrix_copy", effects=("writes [a]",),
             source=STMATRIX)  # fmt: skip
def stmatrix(count: str, trans: str, space: str) -> Any:
    """Stores 8x8 matrices of 16-bit elements, rows addressed by lanes."""
    number = int(count[1])

    def run(ctx: Context, a: Value, b: Any) -> None:
        ctx.stmatrix(space, a, number, bool(trans), b)

    return run


@shared_form("movmatrix.sync.aligned.m8n8.trans.b16 d:b32, a:b32", quiet=True, data_operands=("a",), collective=True,
             unit="shuffle", source='PTX ISA 8.7, "movmatrix"')  # fmt: skip
def movmatrix() -> Any:
    """Transposes an 8x8 matrix held by a warp."""

    def run(ctx: Context, a: Value | None) -> Any:
        return ctx.move_matrix(a)

    return run


HALF_SHAPES = ("m16n8k8", "m16n8k16")
WIDE_SHAPES = ("m16n8k4", "m16n8k8")
BYTE_SHAPES = ("m16n8k16", "m16n8k32")
FP8 = ("e4m3", "e5m2")


def _same_results(slots: dict[str, str]) -> str:
    if slots["dt"] != slots["ct"]:
        return f"D is .{slots['dt']} and C is .{slots['ct']}: they must be the same"
    return ""


def _half_problem(slots: dict[str, str]) -> str:
    if slots["at"] != slots["bt"]:
        return f"A is .{slots['at']} and B is .{slots['bt']}: they must be the same"
    wrong = _same_results(slots)
    if wrong:
        return wrong
    if slots["at"] == "bf16" and slots["dt"] != "f32":
        return ".bf16 accumulates in .f32"
    return ""


def _float_product(kind: tuple[str, str], bits: int, d: str) -> Any:
    parameters = MMA_SYNC[kind]
    c_bits = 16 if d == "f16" else 32

    def product(a: Array, b: Array, c: Array) -> Array:
        matrix = registers_to_mma_a(a, 16, bits)
        other = registers_to_mma_b(b, bits)
        start = registers_to_mma_c(c, 16, c_bits)
        result = mma(
            matrix, other, np.ascontiguousarray(start), parameters, "f16" if d == "f16" else "f32"
        )
        return mma_c_to_registers(result)

    return product


def _run(what: str, product: Any) -> Any:
    def run(ctx: Context, a: Any, b: Any, c: Any) -> Any:
        return ctx.mma_sync(what, product, a, b, c)

    return run


@shared_form("mma.sync.aligned.{shape}.row.col.{dt}.{at}.{bt}.{ct} {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=HALF_SHAPES, dt=("f32", "f16"), at=("f16", "bf16"), bt=("f16", "bf16"), ct=("f32", "f16"),
             check=_half_problem, quiet=True, data_operands=("a", "b", "c"), collective=True, counts=_fragments, unit="mma",
             source=MMA)  # fmt: skip
def mma_half(shape: str, dt: ScalarType, at: ScalarType, bt: ScalarType, ct: ScalarType) -> Any:
    """16-bit operands."""
    return _run(f"mma.{shape}", _float_product((at.name, bt.name), 16, dt.name))


@shared_form("mma.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32 {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=WIDE_SHAPES, quiet=True, data_operands=("a", "b", "c"), collective=True, counts=_fragments, unit="mma",
             source=MMA)  # fmt: skip
def mma_tf32(shape: str) -> Any:
    """tf32 operands."""
    return _run(f"mma.{shape}", _float_product(("tf32", "tf32"), 32, "f32"))


@shared_form("mma.sync.aligned.{shape}.row.col.{dt}.{at}.{bt}.{ct} {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=BYTE_SHAPES, dt=("f32", "f16"), at=FP8, bt=FP8, ct=("f32", "f16"), check=_same_results, quiet=True,
             data_operands=("a", "b", "c"), collective=True, counts=_fragments, unit="mma", source=MMA)  # fmt: skip
def mma_fp8(shape: str, dt: ScalarType, at: ScalarType, bt: ScalarType, ct: ScalarType) -> Any:
    """8-bit floating-point operands."""
    return _run(f"mma.{shape}", _float_product((at.name, bt.name), 8, dt.name))


@shared_form("mma.sync.aligned.{shape}.row.col{.satfinite}.s32.{at}.{bt}.s32 {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=BYTE_SHAPES, satfinite=("satfinite",), at=("s8", "u8"), bt=("s8", "u8"), quiet=True,
             data_operands=("a", "b", "c"), collective=True, counts=_fragments, unit="mma", source=MMA)  # fmt: skip
def mma_integer(shape: str, satfinite: str, at: ScalarType, bt: ScalarType) -> Any:
    """8-bit integer operands."""

    def product(a: Array, b: Array, c: Array) -> Array:
        start = np.ascontiguousarray(registers_to_mma_c(c, 16, 32))
        result = integer_product(
            registers_to_mma_a(a, 16, 8), registers_to_mma_b(b, 8), start,
            a_signed=at.name == "s8", b_signed=bt.name == "s8", satfinite=bool(satfinite),
        )  # fmt: skip
        return mma_c_to_registers(result)

    return _run(f"mma.{shape}", product)

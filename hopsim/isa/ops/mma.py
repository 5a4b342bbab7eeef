"""mma.sync with dense operands.

Source: PTX ISA 8.7 "mma".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.mma import (
    BIT_SHAPES,
    DOUBLE_SHAPES,
    FP8,
    FP8_SHAPES,
    HALF_SHAPES,
    INT4,
    INT4_SHAPES,
    INT8,
    INT8_SHAPES,
    TF32_SHAPES,
    WIDTHS,
    dimensions,
)
from hopsim.isa.numerics.mma_kinds import MMA_SYNC, DFormat
from hopsim.isa.numerics.mma_plain import mma_bits, mma_double, mma_integer
from hopsim.isa.numerics.rounding import Rounding
from hopsim.isa.numerics.tensor_core import mma
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Array
from hopsim.layout.fragments import (
    mma_c_to_registers,
    registers_to_mma_a,
    registers_to_mma_b,
    registers_to_mma_c,
)

SOURCE: Final = 'PTX ISA 8.7, "mma"'
WARP: Final = 32
Multiply = Callable[[Array, Array, Array], Array]
"""Raw bits of A (..., M, K), of B (..., N, K) and of C (..., M, N) to those of D."""


def same_results(slots: dict[str, str]) -> str:
    """Return what is wrong with the types of D and C, or the empty string."""
    if slots["dt"] != slots["ct"]:
        return f"D is .{slots['dt']} and C is .{slots['ct']}: they must be the same"
    return ""


def half_problem(slots: dict[str, str]) -> str:
    """Return what is wrong with a combination of 16-bit types, or the empty string."""
    if slots["at"] != slots["bt"]:
        return f"A is .{slots['at']} and B is .{slots['bt']}: they must be the same"
    wrong = same_results(slots)
    if wrong:
        return wrong
    if slots["at"] == "bf16" and slots["dt"] != "f32":
        return ".bf16 accumulates in .f32"
    return ""


def fragments(slots: dict[str, str], stored_part: int = 1) -> dict[str, int]:
    """Return the registers of each operand, for a thread.

    Args:
        stored_part: of so many elements of A one is stored.
    """
    m, n, k = dimensions(slots["shape"])
    bits = WIDTHS[slots.get("at") or "tf32"]
    result = m * n // (2 * WARP if slots.get("dt") == "f16" else WARP)
    each = 32 * WARP
    a = m * k // stored_part * bits // each
    return {"d": result, "a": a, "b": n * k * bits // each, "c": result}


def _double_fragments(slots: dict[str, str]) -> dict[str, int]:
    m, n, k = dimensions(slots["shape"])
    return {"d": m * n // WARP, "a": m * k // WARP, "b": n * k // WARP, "c": m * n // WARP}


def multiply_floats(at: str, bt: str, dt: str) -> Multiply:
    """Return the product of the tensor core for types of A, B and D."""
    form: DFormat = "f16" if dt == "f16" else "f32"
    return partial(mma, kind=MMA_SYNC[at, bt], d_format=form)


def multiply_integers(
    shape: str, at: str, bt: str, satfinite: str, stored_part: int = 1
) -> Multiply:
    """Return the product of integers for types of A and B, with `stored_part` as for `fragments`."""
    return partial(
        mma_integer,
        a_signed=at[0] == "s",
        b_signed=bt[0] == "s",
        satfinite=bool(satfinite),
        bits=WIDTHS[at],
        instruction_k=dimensions(shape)[2] // stored_part,
    )


def _product(shape: str, kind: str, d_bits: int, multiply: Multiply) -> Any:
    """Return what executes a form: the warps of a strand multiply together."""
    m, bits = dimensions(shape)[0], WIDTHS[kind]

    def product(a: Array, b: Array, c: Array) -> Array:
        warps = range(a.shape[1])
        left = np.stack([registers_to_mma_a(a[:, warp], m, bits) for warp in warps])
        right = np.stack([registers_to_mma_b(b[:, warp], bits) for warp in warps])
        start = np.stack([registers_to_mma_c(c[:, warp], m, d_bits) for warp in warps])
        result = multiply(left, right, start)
        return np.stack([mma_c_to_registers(one) for one in result], axis=1)

    def run(ctx: Context, a: Any, b: Any, c: Any) -> Any:
        return ctx.mma_sync(f"mma.{shape}", product, a, b, c, register_bits=max(bits, 32))

    return run


@shared_form("mma.sync.aligned.{shape}.row.col.{dt}.{at}.{bt}.{ct} {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=HALF_SHAPES, dt=("f32", "f16"), at=("f16", "bf16"), bt=("f16", "bf16"), ct=("f32", "f16"),
             check=half_problem, quiet=True, data_operands=("a", "b", "c"), collective=True, counts=fragments, unit="mma",
             source=SOURCE)  # fmt: skip
def mma_half(shape: str, dt: ScalarType, at: ScalarType, bt: ScalarType, ct: ScalarType) -> Any:
    """16-bit operands."""
    multiply = multiply_floats(at.name, bt.name, dt.name)
    return _product(shape, at.name, dt.width_bits, multiply)


@shared_form("mma.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32 {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=TF32_SHAPES, quiet=True, data_operands=("a", "b", "c"), collective=True, counts=fragments, unit="mma",
             source=SOURCE)  # fmt: skip
def mma_tf32(shape: str) -> Any:
    """tf32 operands."""
    return _product(shape, "tf32", 32, multiply_floats("tf32", "tf32", "f32"))


@shared_form("mma.sync.aligned.{shape}.row.col.{dt}.{at}.{bt}.{ct} {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=FP8_SHAPES, dt=("f32", "f16"), at=FP8, bt=FP8, ct=("f32", "f16"), check=same_results, quiet=True,
             data_operands=("a", "b", "c"), collective=True, counts=fragments, unit="mma", source=SOURCE)  # fmt: skip
def mma_fp8(shape: str, dt: ScalarType, at: ScalarType, bt: ScalarType, ct: ScalarType) -> Any:
    """8-bit floating-point operands."""
    multiply = multiply_floats(at.name, bt.name, dt.name)
    return _product(shape, at.name, dt.width_bits, multiply)


@shared_form("mma.sync.aligned.{shape}.row.col{.satfinite}.s32.{at}.{bt}.s32 {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=INT8_SHAPES, satfinite=("satfinite",), at=INT8, bt=INT8, quiet=True,
             data_operands=("a", "b", "c"), collective=True, counts=fragments, unit="mma", source=SOURCE)  # fmt: skip
def mma_byte(shape: str, satfinite: str, at: ScalarType, bt: ScalarType) -> Any:
    """8-bit integer operands."""
    multiply = multiply_integers(shape, at.name, bt.name, satfinite)
    return _product(shape, at.name, 32, multiply)


@shared_form("mma.sync.aligned.{shape}.row.col{.satfinite}.s32.{at}.{bt}.s32 {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=INT4_SHAPES, satfinite=("satfinite",), at=INT4, bt=INT4, quiet=True,
             data_operands=("a", "b", "c"), collective=True, counts=fragments, unit="mma", source=SOURCE)  # fmt: skip
def mma_nibble(shape: str, satfinite: str, at: str, bt: str) -> Any:
    """4-bit integer operands."""
    return _product(shape, at, 32, multiply_integers(shape, at, bt, satfinite))


@shared_form("mma.sync.aligned.{shape}.row.col.s32.{at}.b1.s32.{op}.popc {d}:b32, {a}:b32, {b}:b32, {c}:b32",
             shape=BIT_SHAPES, at=("b1",), op=("and", "xor"), quiet=True,
             data_operands=("a", "b", "c"), collective=True, counts=fragments, unit="mma", source=SOURCE)  # fmt: skip
def mma_bit(shape: str, at: str, op: str) -> Any:
    """Single bits: how many are set in the conjunction, or the difference, of a row and a column."""
    return _product(shape, at, 32, partial(mma_bits, is_xor=op == "xor"))


@shared_form("mma.sync.aligned.{shape}.row.col{.rnd}.f64.f64.f64.f64 {d}:f64, {a}:f64, {b}:f64, {c}:f64",
             shape=DOUBLE_SHAPES, rnd=("rn", "rz", "rm", "rp"), quiet=True, data_operands=("a", "b", "c"), collective=True,
             counts=_double_fragments, unit="mma", source=SOURCE)  # fmt: skip
def mma_f64(shape: str, rnd: Any) -> Any:
    """f64 operands."""
    rounding: Rounding = rnd or "rn"
    return _product(shape, "f64", 64, partial(mma_double, rounding=rounding))

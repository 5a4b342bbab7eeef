"""mma.sync with a sparse A: `mma.sp` and `mma.sp::ordered_metadata`, which differ in what the metadata may be.

Source: PTX ISA 8.7 "mma.sp".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.mma import (
    FP8,
    INT4,
    INT8,
    SPARSE_FP8_SHAPES,
    SPARSE_HALF_SHAPES,
    SPARSE_INT4_SHAPES,
    SPARSE_INT8_SHAPES,
    SPARSE_TF32_SHAPES,
    WIDTHS,
    dimensions,
)
from hopsim.isa.ops.mma import (
    Multiply,
    fragments,
    half_problem,
    multiply_floats,
    multiply_integers,
)
from hopsim.isa.ops.sparsity_selector import selector_problem
from hopsim.isa.ptx.flat import FlatOperand
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Array, Value
from hopsim.layout.fragments import (
    mma_c_to_registers,
    registers_to_mma_a,
    registers_to_mma_b,
    registers_to_mma_c,
)
from hopsim.layout.sparse import gathered, metadata_of_rows, stored_places

SOURCE: Final = 'PTX ISA 8.7, "mma.sp"'
SP: Final = ("sp", "sp::ordered_metadata")
ROWS: Final = 16
STORED_PART: Final = 2
"""Of so many elements of A one is stored."""


def _fragments(slots: dict[str, str]) -> dict[str, int]:
    return fragments(slots, STORED_PART)


def _selector_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    return selector_problem(slots.get("at") or "tf32", dimensions(slots["shape"])[2], operands[-1])


OPTIONS: Final[dict[str, Any]] = {
    "sp": SP, "agree": _selector_problem, "quiet": True, "data_operands": ("a", "b", "c", "e"), "collective": True,
    "counts": _fragments, "unit": "mma", "source": SOURCE,
}  # fmt: skip


def _product(shape: str, kind: str, d_bits: int, multiply: Multiply) -> Any:
    """Return what executes a form: each row of A meets other rows of B, so that it is a product of its own.

    `multiply` takes A of (rows, 1, k / 2), B of (rows, 8, k / 2) and C of (rows, 1, 8).
    """
    k, bits = dimensions(shape)[2], WIDTHS[kind]

    def run(ctx: Context, a: Any, b: Any, c: Any, e: Value | None, f: int) -> Any:
        def product(a: Array, b: Array, c: Array, e: Array) -> Array:
            results: list[Array] = []
            for warp in range(a.shape[1]):
                metadata = metadata_of_rows(e[0, warp].astype(np.uint32), kind, k, f)
                met = gathered(registers_to_mma_b(b[:, warp], bits), stored_places(metadata, kind))
                left = registers_to_mma_a(a[:, warp], ROWS, bits)[:, None]
                start = registers_to_mma_c(c[:, warp], ROWS, d_bits)[:, None]
                result = multiply(left, met, np.ascontiguousarray(start))
                results.append(mma_c_to_registers(result[:, 0]))
            return np.stack(results, axis=1)

        return ctx.mma_sync(f"mma.sp.{shape}", product, a, b, c, None if e is None else (e,))

    return run


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col.{dt}.{at}.{bt}.{ct} {d}:b32, {a}:b32, {b}:b32, {c}:b32, e:b32, #f:s32",
             shape=SPARSE_HALF_SHAPES, dt=("f32", "f16"), at=("f16", "bf16"), bt=("f16", "bf16"), ct=("f32", "f16"),
             check=half_problem, **OPTIONS)  # fmt: skip
def mma_sp_half(
    sp: str, shape: str, dt: ScalarType, at: ScalarType, bt: ScalarType, ct: ScalarType
) -> Any:
    """16-bit operands, A sparse: two of four elements."""
    multiply = multiply_floats(at.name, bt.name, dt.name)
    return _product(shape, at.name, dt.width_bits, multiply)


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, e:b32, #f:s32",
             shape=SPARSE_TF32_SHAPES, **OPTIONS)  # fmt: skip
def mma_sp_tf32(sp: str, shape: str) -> Any:
    """tf32 operands, A sparse: one of two elements."""
    return _product(shape, "tf32", 32, multiply_floats("tf32", "tf32", "f32"))


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col.f32.{at}.{bt}.f32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, e:b32, #f:s32",
             shape=SPARSE_FP8_SHAPES, at=FP8, bt=FP8, **OPTIONS)  # fmt: skip
def mma_sp_fp8(sp: str, shape: str, at: ScalarType, bt: ScalarType) -> Any:
    """8-bit floating-point operands, A sparse: two of four elements."""
    return _product(shape, at.name, 32, multiply_floats(at.name, bt.name, "f32"))


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col{.satfinite}.s32.{at}.{bt}.s32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, "
             "e:b32, #f:s32",
             shape=SPARSE_INT8_SHAPES, satfinite=("satfinite",), at=INT8, bt=INT8, **OPTIONS)  # fmt: skip
def mma_sp_byte(sp: str, shape: str, satfinite: str, at: ScalarType, bt: ScalarType) -> Any:
    """8-bit integer operands, A sparse: two of four elements."""
    multiply = multiply_integers(shape, at.name, bt.name, satfinite, STORED_PART)
    return _product(shape, at.name, 32, multiply)


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col{.satfinite}.s32.{at}.{bt}.s32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, "
             "e:b32, #f:s32",
             shape=SPARSE_INT4_SHAPES, satfinite=("satfinite",), at=INT4, bt=INT4, **OPTIONS)  # fmt: skip
def mma_sp_nibble(sp: str, shape: str, satfinite: str, at: str, bt: str) -> Any:
    """4-bit integer operands, A sparse: two pairs of four."""
    return _product(shape, at, 32, multiply_integers(shape, at, bt, satfinite, STORED_PART))

"""mma.sync with a sparse A: `mma.sp` and `mma.sp::ordered_metadata`, which differ in what the metadata may be.

Source: PTX ISA 8.7 "mma.sp".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
from hopsim.isa.numerics.mma_kinds import MMA_SYNC, DFormat
from hopsim.isa.numerics.mma_plain import mma_integer
from hopsim.isa.numerics.tensor_core import mma
from hopsim.isa.ops.mma import WARP, half_problem
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

Multiply = Callable[[Array, Array, Array], Array]
"""Raw bits of A (rows, 1, k / 2), of B (rows, 8, k / 2) and of C (rows, 1, 8) to those of D."""


def _kind(slots: dict[str, str]) -> str:
    return slots.get("at") or "tf32"


def _fragments(slots: dict[str, str]) -> dict[str, int]:
    """Registers of each operand, for a thread."""
    _, n, k = dimensions(slots["shape"])
    bits = WIDTHS[_kind(slots)]
    result = ROWS * n // (2 * WARP if slots.get("dt") == "f16" else WARP)
    each = 32 * WARP
    return {"d": result, "a": ROWS * k // 2 * bits // each, "b": n * k * bits // each, "c": result}


def _selector_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    return selector_problem(_kind(slots), dimensions(slots["shape"])[2], operands[-1])


OPTIONS: Final[dict[str, Any]] = {
    "sp": SP, "agree": _selector_problem, "quiet": True, "data_operands": ("a", "b", "c", "e"), "collective": True,
    "counts": _fragments, "unit": "mma", "source": SOURCE,
}  # fmt: skip


def _product(shape: str, kind: str, d_bits: int, multiply: Multiply) -> Any:
    """Return what executes a form: each row of A meets other rows of B, so that it is a product of its own."""
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


def _float_product(shape: str, kind: tuple[str, str], d: str) -> Any:
    form: DFormat = "f16" if d == "f16" else "f32"
    multiply = partial(mma, kind=MMA_SYNC[kind], d_format=form)
    return _product(shape, kind[0], 16 if d == "f16" else 32, multiply)


def _integer_product(shape: str, at: str, bt: str, satfinite: str) -> Any:
    multiply = partial(
        mma_integer,
        a_signed=at[0] == "s",
        b_signed=bt[0] == "s",
        satfinite=bool(satfinite),
        bits=WIDTHS[at],
        instruction_k=dimensions(shape)[2] // 2,
    )
    return _product(shape, at, 32, multiply)


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col.{dt}.{at}.{bt}.{ct} {d}:b32, {a}:b32, {b}:b32, {c}:b32, e:b32, #f:s32",
             shape=SPARSE_HALF_SHAPES, dt=("f32", "f16"), at=("f16", "bf16"), bt=("f16", "bf16"), ct=("f32", "f16"),
             check=half_problem, **OPTIONS)  # fmt: skip
def mma_sp_half(
    sp: str, shape: str, dt: ScalarType, at: ScalarType, bt: ScalarType, ct: ScalarType
) -> Any:
    """16-bit operands, A sparse: two of four elements."""
    return _float_product(shape, (at.name, bt.name), dt.name)


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, e:b32, #f:s32",
             shape=SPARSE_TF32_SHAPES, **OPTIONS)  # fmt: skip
def mma_sp_tf32(sp: str, shape: str) -> Any:
    """tf32 operands, A sparse: one of two elements."""
    return _float_product(shape, ("tf32", "tf32"), "f32")


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col.f32.{at}.{bt}.f32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, e:b32, #f:s32",
             shape=SPARSE_FP8_SHAPES, at=FP8, bt=FP8, **OPTIONS)  # fmt: skip
def mma_sp_fp8(sp: str, shape: str, at: ScalarType, bt: ScalarType) -> Any:
    """8-bit floating-point operands, A sparse: two of four elements."""
    return _float_product(shape, (at.name, bt.name), "f32")


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col{.satfinite}.s32.{at}.{bt}.s32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, "
             "e:b32, #f:s32",
             shape=SPARSE_INT8_SHAPES, satfinite=("satfinite",), at=INT8, bt=INT8, **OPTIONS)  # fmt: skip
def mma_sp_byte(sp: str, shape: str, satfinite: str, at: ScalarType, bt: ScalarType) -> Any:
    """8-bit integer operands, A sparse: two of four elements."""
    return _integer_product(shape, at.name, bt.name, satfinite)


@shared_form("mma.{sp}.sync.aligned.{shape}.row.col{.satfinite}.s32.{at}.{bt}.s32 {d}:b32, {a}:b32, {b}:b32, {c}:b32, "
             "e:b32, #f:s32",
             shape=SPARSE_INT4_SHAPES, satfinite=("satfinite",), at=INT4, bt=INT4, **OPTIONS)  # fmt: skip
def mma_sp_nibble(sp: str, shape: str, satfinite: str, at: str, bt: str) -> Any:
    """4-bit integer operands, A sparse: two pairs of four."""
    return _integer_product(shape, at, bt, satfinite)

"""wgmma.mma_async.sp: A sparse, its stored half from shared memory or registers, and a register of metadata.

Source: PTX ISA 8.7 "wgmma.mma_async.sp".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.ops.sparsity_selector import selector_problem
from hopsim.isa.ops.wgmma import (
    HALF,
    IMMEDIATES,
    INTEGER,
    NARROW,
    Registers,
    ShapesByMajor,
    counts,
    negates,
    problem,
    shapes_by_major,
)
from hopsim.isa.ptx.flat import FlatOperand
from hopsim.isa.values import Value
from hopsim.isa.wgmma import SPARSE_SHAPES, parse_shape

SOURCE: Final = 'PTX ISA 8.7, "wgmma.mma_async.sp"'
SHARED_A: Final = "+{d}:b32, a:u64, b:u64, &{e}:b32?, #f:s32, s:pred"
REGISTER_A: Final = "+{d}:b32, &{a}:b32, b:u64, &{e}:b32?, #f:s32, s:pred"
FLOAT: Final = "wgmma.mma_async.sp.sync.aligned.{shape}.{dt}.{at}.{bt}"
INTEGER_SUMS: Final = "wgmma.mma_async.sp.sync.aligned.{shape}.s32.{at}.{bt}{.satfinite}"


def _problem(slots: dict[str, str]) -> str:
    return problem(slots, sparse=True)


def _selector_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    return selector_problem(slots["at"], parse_shape(slots["shape"])[1], operands[4])


def _counts(slots: dict[str, str]) -> dict[str, int]:
    """Registers of the accumulator, of A and of the metadata."""
    return {**counts(slots), "e": 1}


def _from_shared(shapes: ShapesByMajor) -> Any:
    """Return what executes a form whose A is in shared memory; immediates that it lacks change nothing."""

    def run(
        ctx: Context, d: Registers, a: Value, b: Value, e: Registers, f: int, s: Any,
        ia: int = 1, ib: int = 1, ta: int = 0, tb: int = 0,
    ) -> Any:  # fmt: skip
        return ctx.wgmma(shapes[ta, tb], d, None, a, b, s, negates(ia), negates(ib), (e[0], f))

    return run


def _from_registers(shapes: ShapesByMajor) -> Any:
    """Return what executes a form whose A is in registers, and so K-major."""

    def run(
        ctx: Context, d: Registers, a: Registers, b: Value, e: Registers, f: int, s: Any,
        ia: int = 1, ib: int = 1, tb: int = 0,
    ) -> Any:  # fmt: skip
        return ctx.wgmma(shapes[0, tb], d, a, None, b, s, negates(ia), negates(ib), (e[0], f))

    return run


OPTIONS: Final[dict[str, Any]] = {
    "shape": SPARSE_SHAPES, "check": _problem, "agree": _selector_problem, "counts": _counts, "data": True,
    "collective": True, "may_block": True, "quiet": True, "unit": "tensor", "source": SOURCE,
}  # fmt: skip
FROM_SHARED: Final = ("reads [a], [b] async", "reads e", "updates d")
FROM_REGISTERS: Final = ("reads a, e", "reads [b] async", "updates d")


@shared_form(f"{FLOAT} {SHARED_A}, #ia:s32, #ib:s32, #ta:s32, #tb:s32", dt=("f32", "f16"), at=HALF, bt=HALF,
             limits=IMMEDIATES, effects=FROM_SHARED, **OPTIONS)  # fmt: skip
def wgmma_sp_half(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """16-bit operands, both from shared memory; each may be MN-major."""
    return _from_shared(shapes_by_major(shape, dt.name, at.name, bt.name, sparse=True))


@shared_form(f"{FLOAT} {REGISTER_A}, #ia:s32, #ib:s32, #tb:s32", dt=("f32", "f16"), at=HALF, bt=HALF,
             limits=IMMEDIATES, effects=FROM_REGISTERS, **OPTIONS)  # fmt: skip
def wgmma_sp_half_registers(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """16-bit operands, A from registers."""
    return _from_registers(shapes_by_major(shape, dt.name, at.name, bt.name, sparse=True))


@shared_form(f"{FLOAT} {SHARED_A}, #ia:s32, #ib:s32", dt=("f32", "f16"), at=NARROW, bt=NARROW,
             limits=IMMEDIATES, effects=FROM_SHARED, **OPTIONS)  # fmt: skip
def wgmma_sp_narrow(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """tf32 and fp8 operands from shared memory, K-major only."""
    return _from_shared(shapes_by_major(shape, dt.name, at.name, bt.name, sparse=True))


@shared_form(f"{FLOAT} {REGISTER_A}, #ia:s32, #ib:s32", dt=("f32", "f16"), at=NARROW, bt=NARROW,
             limits=IMMEDIATES, effects=FROM_REGISTERS, **OPTIONS)  # fmt: skip
def wgmma_sp_narrow_registers(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """tf32 and fp8 operands, A from registers."""
    return _from_registers(shapes_by_major(shape, dt.name, at.name, bt.name, sparse=True))


@shared_form(f"{INTEGER_SUMS} {SHARED_A}", at=INTEGER, bt=INTEGER, satfinite=("satfinite",), effects=FROM_SHARED,
             **OPTIONS)  # fmt: skip
def wgmma_sp_integer(shape: str, at: Any, bt: Any, satfinite: str) -> Any:
    """8-bit integer operands from shared memory, s32 accumulator."""
    return _from_shared(shapes_by_major(shape, "s32", at.name, bt.name, satfinite, sparse=True))


@shared_form(f"{INTEGER_SUMS} {REGISTER_A}", at=INTEGER, bt=INTEGER, satfinite=("satfinite",),
             effects=FROM_REGISTERS, **OPTIONS)  # fmt: skip
def wgmma_sp_integer_registers(shape: str, at: Any, bt: Any, satfinite: str) -> Any:
    """8-bit integer operands, A from registers."""
    return _from_registers(shapes_by_major(shape, "s32", at.name, bt.name, satfinite, sparse=True))

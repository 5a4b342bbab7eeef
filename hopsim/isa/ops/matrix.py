"""ldmatrix, stmatrix and movmatrix.

Source: PTX ISA 8.7 "Warp-level Matrix Load Instruction: ldmatrix", "stmatrix", "movmatrix".
"""

from __future__ import annotations

from typing import Any

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.values import Value

COUNT = ("x1", "x2", "x4")
SPACE = ("shared", "shared::cta")
LDMATRIX = 'PTX ISA 8.7, "ldmatrix"'
STMATRIX = 'PTX ISA 8.7, "stmatrix"'


def _matrices(slots: dict[str, str]) -> dict[str, int]:
    number = int(slots["count"][1])
    return {"d": number, "b": number}


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

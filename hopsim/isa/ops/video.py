"""SIMD video instructions: those that nvcc makes of `__vabsdiffu4`, `__vsadu4` and `__vsadu2`.

CUDA's other intrinsics on bytes and halves of a word are sequences of ordinary instructions since sm_50.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopsim.isa.forms.form import form
from hopsim.isa.numerics.video import make_absolute_differences
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Value

KINDS: Final = ("u32", "s32")


def _problem(slots: dict[str, str]) -> str:
    return ".sat and .add exclude each other" if slots["sat"] and slots["add"] else ""


def _differences(
    part_bits: int, dt: ScalarType, at: ScalarType, bt: ScalarType, sat: str, add: str
) -> Callable[..., Value]:
    signs = (dt.is_signed, at.is_signed, bt.is_signed)
    return make_absolute_differences(part_bits, *signs, sat=bool(sat), add=bool(add))


@form(
    "vabsdiff2.{dt}.{at}.{bt}{.sat}{.add} d:dt, a:at, b:bt, c:dt", dt=KINDS, at=KINDS, bt=KINDS, sat=("sat",), add=("add",),
    check=_problem, unit="alu", source='PTX ISA 8.7, "vabsdiff2"',
)  # fmt: skip
def vabsdiff2(
    dt: ScalarType, at: ScalarType, bt: ScalarType, sat: str, add: str
) -> Callable[..., Value]:
    """The absolute differences of two halves, or c plus their sum."""
    return _differences(16, dt, at, bt, sat, add)


@form(
    "vabsdiff4.{dt}.{at}.{bt}{.sat}{.add} d:dt, a:at, b:bt, c:dt", dt=KINDS, at=KINDS, bt=KINDS, sat=("sat",), add=("add",),
    check=_problem, unit="alu", source='PTX ISA 8.7, "vabsdiff4"',
)  # fmt: skip
def vabsdiff4(
    dt: ScalarType, at: ScalarType, bt: ScalarType, sat: str, add: str
) -> Callable[..., Value]:
    """The absolute differences of four bytes, or c plus their sum."""
    return _differences(8, dt, at, bt, sat, add)

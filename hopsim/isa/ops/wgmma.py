"""wgmma: fence, mma_async in every legal shape and type, commit_group, wait_group."""

from __future__ import annotations

from typing import Any, Final

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.values import Value
from hopsim.isa.wgmma import SHAPES, Major, WgmmaShape, parse_shape, shape_problem

SOURCE = 'PTX ISA 8.7, "wgmma.mma_async"'
HALF = ("f16", "bf16")
NARROW = ("tf32", "e4m3", "e5m2")
INTEGER = ("s8", "u8")
IMMEDIATES = {"ia": (-1, 1), "ib": (-1, 1), "ta": (0, 1), "tb": (0, 1)}
"""imm-scale and imm-trans."""
MAJORS: Final[tuple[Major, Major]] = ("K", "MN")
"""By imm-trans."""
Registers = tuple[int, ...]
"""Numbers of registers, which the operation reads or writes later."""
ShapesByMajor = dict[tuple[int, int], WgmmaShape]
"""What is multiplied, by imm-trans-a and imm-trans-b."""


def problem(slots: dict[str, str], sparse: bool = False) -> str:
    """Return what is wrong with a combination of shape and types, or the empty string."""
    return shape_problem(slots["shape"], slots.get("dt", "s32"), slots["at"], slots["bt"], sparse)


def counts(slots: dict[str, str]) -> dict[str, int]:
    """Return the registers of the accumulator and of A."""
    shapes = shapes_by_major(slots["shape"], slots.get("dt", "s32"), slots["at"], slots["bt"])
    return {"d": shapes[0, 0].d_registers, "a": 4}


def shapes_by_major(
    shape: str, dt: str, at: str, bt: str, satfinite: str = "", sparse: bool = False
) -> ShapesByMajor:
    """Return what a form multiplies, for each of the majors that A and B may have."""
    n, k = parse_shape(shape)
    return {
        (ta, tb): WgmmaShape(n, k, dt, at, bt, MAJORS[ta], MAJORS[tb], bool(satfinite), sparse)
        for ta in (0, 1)
        for tb in (0, 1)
    }


def negates(scale: int) -> bool:
    """Whether an imm-scale is -1."""
    return scale != 1


def _from_shared(shapes: ShapesByMajor) -> Any:
    """Return what executes a form whose A is in shared memory; immediates that it lacks change nothing."""

    def run(
        ctx: Context, d: Registers, a: Value, b: Value, s: Any,
        ia: int = 1, ib: int = 1, ta: int = 0, tb: int = 0,
    ) -> Any:  # fmt: skip
        return ctx.wgmma(shapes[ta, tb], d, None, a, b, s, negates(ia), negates(ib))

    return run


def _from_registers(shapes: ShapesByMajor) -> Any:
    """Return what executes a form whose A is in registers, and so K-major."""

    def run(
        ctx: Context, d: Registers, a: Registers, b: Value, s: Any,
        ia: int = 1, ib: int = 1, tb: int = 0,
    ) -> Any:  # fmt: skip
        return ctx.wgmma(shapes[0, tb], d, a, None, b, s, negates(ia), negates(ib))

    return run


OPTIONS: Final[dict[str, Any]] = {
    "shape": SHAPES, "check": problem, "counts": counts, "data": True, "collective": True, "may_block": True,
    "quiet": True, "unit": "tensor", "source": SOURCE,
}  # fmt: skip
FROM_SHARED: Final = ("reads [a], [b] async", "updates d")
FROM_REGISTERS: Final = ("reads a", "reads [b] async", "updates d")


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, a:u64, b:u64, s:pred, #ia:s32, #ib:s32, #ta:s32, "
    "#tb:s32",
    dt=("f32", "f16"), at=HALF, bt=HALF, limits=IMMEDIATES, effects=FROM_SHARED, **OPTIONS,
)  # fmt: skip
def wgmma_half(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """16-bit operands, both from shared memory; each may be MN-major."""
    return _from_shared(shapes_by_major(shape, dt.name, at.name, bt.name))


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, &{a}:b32, b:u64, s:pred, #ia:s32, #ib:s32, #tb:s32",
    dt=("f32", "f16"), at=HALF, bt=HALF, limits=IMMEDIATES, effects=FROM_REGISTERS, **OPTIONS,
)  # fmt: skip
def wgmma_half_registers(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """16-bit operands, A from registers."""
    return _from_registers(shapes_by_major(shape, dt.name, at.name, bt.name))


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, a:u64, b:u64, s:pred, #ia:s32, #ib:s32",
    dt=("f32", "f16"), at=NARROW, bt=NARROW, limits=IMMEDIATES, effects=FROM_SHARED, **OPTIONS,
)  # fmt: skip
def wgmma_narrow(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """tf32 and fp8 operands from shared memory, K-major only."""
    return _from_shared(shapes_by_major(shape, dt.name, at.name, bt.name))


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, &{a}:b32, b:u64, s:pred, #ia:s32, #ib:s32",
    dt=("f32", "f16"), at=NARROW, bt=NARROW, limits=IMMEDIATES, effects=FROM_REGISTERS, **OPTIONS,
)  # fmt: skip
def wgmma_narrow_registers(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """tf32 and fp8 operands, A from registers."""
    return _from_registers(shapes_by_major(shape, dt.name, at.name, bt.name))


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.s32.{at}.{bt}{.satfinite} +{d}:b32, a:u64, b:u64, s:pred",
    at=INTEGER, bt=INTEGER, satfinite=("satfinite",), effects=FROM_SHARED, **OPTIONS,
)  # fmt: skip
def wgmma_integer(shape: str, at: Any, bt: Any, satfinite: str) -> Any:
    """8-bit integer operands from shared memory, s32 accumulator."""
    return _from_shared(shapes_by_major(shape, "s32", at.name, bt.name, satfinite))


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.s32.{at}.{bt}{.satfinite} +{d}:b32, &{a}:b32, b:u64, s:pred",
    at=INTEGER, bt=INTEGER, satfinite=("satfinite",), effects=FROM_REGISTERS, **OPTIONS,
)  # fmt: skip
def wgmma_integer_registers(shape: str, at: Any, bt: Any, satfinite: str) -> Any:
    """8-bit integer operands, A from registers."""
    return _from_registers(shapes_by_major(shape, "s32", at.name, bt.name, satfinite))


@shared_form("wgmma.fence.sync.aligned", quiet=True, unit="tensor_sync", effects=("wgmma fence",),
             source='PTX ISA 8.7, "wgmma.fence"')  # fmt: skip
def wgmma_fence() -> Any:
    """Orders register accesses with wgmma."""

    def run(ctx: Context) -> None:
        ctx.wgmma_fence()

    return run


@shared_form("wgmma.commit_group.sync.aligned", collective=True, may_block=True, quiet=True, unit="tensor_sync",
             effects=("wgmma commit",), source='PTX ISA 8.7, "wgmma.commit_group"')  # fmt: skip
def wgmma_commit() -> Any:
    """Makes a group of the operations issued since the last commit."""

    def run(ctx: Context) -> Any:
        return ctx.wgmma_commit()

    return run


@shared_form("wgmma.wait_group.sync.aligned #n:u32", limits={"n": range(1 << 31)}, may_block=True, unit="tensor_sync", effects=("wgmma wait",),
             source='PTX ISA 8.7, "wgmma.wait_group"')  # fmt: skip
def wgmma_wait() -> Any:
    """Waits until at most n of the newest groups are pending."""

    def run(ctx: Context, n: int) -> Any:
        return ctx.wgmma_wait(n)

    return run

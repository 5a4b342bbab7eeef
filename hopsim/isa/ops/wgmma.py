"""wgmma: fence, mma_async in every legal shape and type, commit_group, wait_group."""

from __future__ import annotations

from typing import Any

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.values import Value
from hopsim.isa.wgmma import SHAPES, WgmmaShape, parse_shape, shape_problem

SOURCE = 'PTX ISA 8.7, "wgmma.mma_async"'
HALF = ("f16", "bf16")
NARROW = ("tf32", "e4m3", "e5m2")
INTEGER = ("s8", "u8")
IMMEDIATES = {"ia": (-1, 1), "ib": (-1, 1), "ta": (0, 1), "tb": (0, 1)}
"""imm-scale and imm-trans."""


def _problem(slots: dict[str, str]) -> str:
    return shape_problem(slots["shape"], slots.get("dt", "s32"), slots["at"], slots["bt"])


def negates(scale: int) -> bool:
    """Whether an imm-scale is -1."""
    return scale != 1


def _shape(
    shape: str, dt: str, at: str, bt: str, trans_a: bool, trans_b: bool, saturate: bool = False
) -> WgmmaShape:
    n, k = parse_shape(shape)
    return WgmmaShape(
        n, k, dt, at, bt, "MN" if trans_a else "K", "MN" if trans_b else "K", saturate
    )


def _counts(slots: dict[str, str]) -> dict[str, int]:
    """Registers of the accumulator and of A."""
    dt = slots.get("dt", "s32")
    what = _shape(slots["shape"], dt, slots["at"], slots["bt"], False, False)
    return {"d": what.d_registers, "a": 4}


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, a:b64, b:b64, s:pred, #ia:s32, #ib:s32, #ta:s32, "
    "#tb:s32",
    shape=SHAPES, dt=("f32", "f16"), at=HALF, bt=HALF, check=_problem, counts=_counts, limits=IMMEDIATES, data=True, collective=True, may_block=True, quiet=True,
    unit="tensor", effects=("reads [a], [b] async", "updates d"), source=SOURCE,
)  # fmt: skip
def wgmma_half(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """16-bit operands, both from shared memory; each may be MN-major."""
    shapes = {
        (ta, tb): _shape(shape, dt.name, at.name, bt.name, bool(ta), bool(tb))
        for ta in (0, 1)
        for tb in (0, 1)
    }

    def run(
        ctx: Context, d: tuple[int, ...], a: Value, b: Value, s: Any,
        ia: int, ib: int, ta: int, tb: int,
    ) -> Any:  # fmt: skip
        return ctx.wgmma(shapes[ta, tb], d, None, a, b, s, negates(ia), negates(ib))

    return run


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, &{a}:b32, b:b64, s:pred, #ia:s32, #ib:s32, #tb:s32",
    shape=SHAPES, dt=("f32", "f16"), at=HALF, bt=HALF, check=_problem, counts=_counts, limits=IMMEDIATES, data=True, collective=True, may_block=True, quiet=True,
    unit="tensor", effects=("reads a", "reads [b] async", "updates d"), source=SOURCE,
)  # fmt: skip
def wgmma_half_registers(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """16-bit operands, A from registers."""
    shapes = [_shape(shape, dt.name, at.name, bt.name, False, trans_b) for trans_b in (False, True)]

    def run(
        ctx: Context, d: tuple[int, ...], a: tuple[int, ...], b: Value, s: Any,
        ia: int, ib: int, tb: int,
    ) -> Any:  # fmt: skip
        return ctx.wgmma(shapes[tb], d, a, None, b, s, negates(ia), negates(ib))

    return run


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, a:b64, b:b64, s:pred, #ia:s32, #ib:s32",
    shape=SHAPES, dt=("f32", "f16"), at=NARROW, bt=NARROW, check=_problem, counts=_counts, limits=IMMEDIATES, data=True, collective=True, may_block=True, quiet=True,
    unit="tensor", effects=("reads [a], [b] async", "updates d"), source=SOURCE,
)  # fmt: skip
def wgmma_narrow(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """tf32 and fp8 operands from shared memory, K-major only."""
    what = _shape(shape, dt.name, at.name, bt.name, False, False)

    def run(ctx: Context, d: tuple[int, ...], a: Value, b: Value, s: Any, ia: int, ib: int) -> Any:
        return ctx.wgmma(what, d, None, a, b, s, negates(ia), negates(ib))

    return run


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.{dt}.{at}.{bt} +{d}:b32, &{a}:b32, b:b64, s:pred, #ia:s32, #ib:s32",
    shape=SHAPES, dt=("f32", "f16"), at=NARROW, bt=NARROW, check=_problem, counts=_counts, limits=IMMEDIATES, data=True, collective=True, may_block=True, quiet=True,
    unit="tensor", effects=("reads a", "reads [b] async", "updates d"), source=SOURCE,
)  # fmt: skip
def wgmma_narrow_registers(shape: str, dt: Any, at: Any, bt: Any) -> Any:
    """tf32 and fp8 operands, A from registers."""
    what = _shape(shape, dt.name, at.name, bt.name, False, False)

    def run(
        ctx: Context,
        d: tuple[int, ...],
        a: tuple[int, ...],
        b: Value,
        s: Any,
        ia: int,
        ib: int,
    ) -> Any:
        return ctx.wgmma(what, d, a, None, b, s, negates(ia), negates(ib))

    return run


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.s32.{at}.{bt}{.satfinite} +{d}:b32, a:b64, b:b64, s:pred",
    shape=SHAPES, at=INTEGER, bt=INTEGER, satfinite=("satfinite",), data=True, collective=True, may_block=True, quiet=True,
    check=_problem, counts=_counts,
    unit="tensor", effects=("reads [a], [b] async", "updates d"), source=SOURCE,
)  # fmt: skip
def wgmma_integer(shape: str, at: Any, bt: Any, satfinite: str) -> Any:
    """8-bit integer operands from shared memory, s32 accumulator."""
    what = _shape(shape, "s32", at.name, bt.name, False, False, bool(satfinite))

    def run(ctx: Context, d: tuple[int, ...], a: Value, b: Value, s: Any) -> Any:
        return ctx.wgmma(what, d, None, a, b, s, False, False)

    return run


@shared_form(
    "wgmma.mma_async.sync.aligned.{shape}.s32.{at}.{bt}{.satfinite} +{d}:b32, &{a}:b32, b:b64, s:pred",
    shape=SHAPES, at=INTEGER, bt=INTEGER, satfinite=("satfinite",), data=True, collective=True, may_block=True, quiet=True,
    check=_problem, counts=_counts,
    unit="tensor", effects=("reads a", "reads [b] async", "updates d"), source=SOURCE,
)  # fmt: skip
def wgmma_integer_registers(shape: str, at: Any, bt: Any, satfinite: str) -> Any:
    """8-bit integer operands, A from registers."""
    what = _shape(shape, "s32", at.name, bt.name, False, False, bool(satfinite))

    def run(ctx: Context, d: tuple[int, ...], a: tuple[int, ...], b: Value, s: Any) -> Any:
        return ctx.wgmma(what, d, a, None, b, s, False, False)

    return run


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

"""atom and red: read-modify-write on global and shared memory.

The arithmetic of floating-point atomics is that of `add.rn`; in global memory f32 flushes subnormals and f64 keeps a
signalling NaN as it is (recorded on an H100, tests/silicon/probes).  Lanes of one instruction go in thread order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from hopsim.isa.context import Context
from hopsim.isa.forms.form import Unmodelled, shared_form
from hopsim.isa.numerics.floating import make_add as make_float_add
from hopsim.isa.ops.accesses import HINT, LENGTH, SCOPE, VECTOR, vector_counts, words_of
from hopsim.isa.types import TYPES, ScalarType
from hopsim.isa.values import Value

SPACE = ("global", "shared", "shared::cta", "shared::cluster")
SEM = ("relaxed", "acquire", "release", "acq_rel")
OPS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch")
KINDS = (
    "u32",
    "s32",
    "u64",
    "s64",
    "b32",
    "b64",
    "b128",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f16x2",
    "bf16x2",
)
FTZ = ("noftz", "ftz")
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
ALLOWED: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64", "f16x2", "bf16x2"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16", "f16x2", "bf16x2"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16", "f16x2", "bf16x2"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64", "b128"),
}
ATOM = 'PTX ISA 8.7, "atom"'
RED = 'PTX ISA 8.7, "red"'


def noftz_problem(op: str, t: str, ftz: str) -> str:
    """Return what is wrong with a sum of 16-bit floats that does not say that subnormals stay."""
    return f".add.{t} needs .noftz" if op == "add" and t in HALVES and ftz != "noftz" else ""


def _problem(slots: dict[str, str]) -> str:
    op, t, v = slots["op"], slots["t"], slots.get("v", "")
    if t not in ALLOWED[op]:
        return f".{op} does not take .{t}; expected .{', .'.join(ALLOWED[op])}"
    if op in ("min", "max") and TYPES[t].kind in ("float", "packed"):
        return (
            Unmodelled("vectors of minima and maxima") if v else f".{op}.{t} needs .v2, .v4 or .v8"
        )
    ftz = slots.get("ftz", "")
    wrong = noftz_problem(op, t, ftz)
    if wrong:
        return wrong
    if ftz and t not in HALVES:
        return f".{op}.{t} takes no .{ftz}"
    if slots.get("hint") and slots["space"] not in ("global", ""):
        return f".{slots['hint']} cannot be applied to .{slots['space']}"
    if v and t not in (*HALVES, "f32"):
        return f".{v} is of .f32 and of 16-bit floats, not of .{t}"
    if v and slots.get("space") not in ("global", ""):
        return "vector atomics work on global memory only"
    if v and TYPES[t].width_bits * LENGTH[v] > 128:
        return f".{v}.{t} is wider than 128 bits"
    return ""


def _signed(value: int, width_bits: int) -> int:
    return value - (1 << width_bits) if value >> (width_bits - 1) else value


def operation_of(op: str, t: ScalarType) -> Callable[[int, int], int]:
    """Return (old, b) -> new on raw bits."""
    mask, width = t.mask, t.width_bits
    if op == "add" and t.kind in ("float", "packed"):
        return cast("Callable[[int, int], int]", make_float_add(t.name, "rn"))
    table: dict[str, Callable[[int, int], int]] = {
        "add": lambda old, b: (old + b) & mask,
        "inc": lambda old, b: 0 if old >= b else old + 1,
        "dec": lambda old, b: b if old == 0 or old > b else old - 1,
        "and": lambda old, b: old & b,
        "or": lambda old, b: old | b,
        "xor": lambda old, b: old ^ b,
        "exch": lambda old, b: b,
        "min": min,
        "max": max,
    }
    if t.is_signed and op == "min":
        return lambda old, b: old if _signed(old, width) <= _signed(b, width) else b
    if t.is_signed and op == "max":
        return lambda old, b: old if _signed(old, width) >= _signed(b, width) else b
    return table[op]


Operation = Callable[[int, int], int]
_add_f64 = cast("Operation", make_float_add("f64", "rn"))


def _add_f64_in_global(old: int, b: int) -> int:
    if (old & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000:
        return old
    return _add_f64(old, b)


_IN_GLOBAL: dict[tuple[str, str], Operation] = {
    ("add", "f32"): cast("Operation", make_float_add("f32", "rn", ftz=True)),
    ("add", "f64"): _add_f64_in_global,
}


def _operation_in(op: str, t: ScalarType) -> Callable[[str], Operation]:
    """Return what gives the operation in a state space: some differ between global and shared memory."""
    plain = operation_of(op, t)
    in_global = _IN_GLOBAL.get((op, t.name), plain)
    return lambda space: in_global if space == "global" else plain


@shared_form(
    "atom{.space}{.sem}{.scope}.{op}{.ftz}{.hint}{.v}.{t} {d}:t?, [a], {b}:t?, policy:u64?", space=SPACE, sem=SEM,
    scope=SCOPE, op=OPS, ftz=FTZ, hint=HINT, v=VECTOR, t=KINDS, check=_problem, counts=vector_counts, data=True, data_operands=("b",),
    unit="atomic", effects=("reads and writes [a]",), source=ATOM,
)  # fmt: skip
def atom(
    space: str, sem: str, scope: str, op: str, ftz: str, hint: str, v: str, t: ScalarType
) -> Any:
    """Returns the old value."""
    operation_in = _operation_in(op, t)
    word, count = words_of(v, t)

    def run(ctx: Context, a: Value, b: Any, policy: Value | None = None) -> Any:
        operands = [[None]] * count if b is None else [[value] for value in b]
        old = ctx.atomic(
            space,
            a,
            word,
            operation_in,
            operands,
            sem or "relaxed",
            scope or "gpu",
            op != "exch",
        )
        return (None,) * count if old is None else old

    return run


def _async_problem(slots: dict[str, str]) -> str:
    op, t = slots["op"], slots["t"]
    if not (slots["sem"] and slots["scope"]):
        return "red.async needs .relaxed.cluster"
    if t == "u64" and op in ("min", "max"):
        return f".{op} of red.async does not take .u64; expected .u32, .s32"
    return _problem(slots)


def _cas_problem(slots: dict[str, str]) -> str:
    return f".cas takes no .{slots['hint']}" if slots["hint"] else ""


@shared_form(
    "atom{.space}{.sem}{.scope}.cas{.hint}.{t} d:t, [a], b:t, c:t, policy:u64?", space=SPACE, sem=SEM, scope=SCOPE,
    hint=HINT, t=("b16", "b32", "b64"), check=_cas_problem, data=True, data_operands=("b", "c"), unit="atomic",
    effects=("reads and writes [a]",), source=ATOM,
)  # fmt: skip
def atom_cas(space: str, sem: str, scope: str, hint: str, t: ScalarType) -> Any:
    """Writes c where memory holds b."""

    def swap(old: int, b: int, c: int) -> int:
        return c if old == b else old

    def swap_in(space: str) -> Callable[..., int]:
        return swap

    def run(ctx: Context, a: Value, b: Value, c: Value, policy: Value | None = None) -> Any:
        old = ctx.atomic(space, a, t.bytes, swap_in, [[b, c]], sem or "relaxed", scope or "gpu")
        return None if old is None else old[0]

    return run


def _pair_counts(slots: dict[str, str]) -> dict[str, int]:
    del slots
    return {"d": 2, "b": 2, "c": 2}


@shared_form(
    "atom{.space}{.sem}{.scope}.cas{.hint}.b128 {d}:b128?, [a], {b}:b128, {c}:b128, policy:u64?", space=SPACE, sem=SEM,
    scope=SCOPE, hint=HINT, check=_cas_problem, data=True, data_operands=("b", "c"), counts=_pair_counts, unit="atomic",
    effects=("reads and writes [a]",), source=ATOM,
)  # fmt: skip
def atom_cas128(space: str, sem: str, scope: str, hint: str) -> Any:
    """Writes c where 16 bytes of memory hold b."""

    def swap(old: int, low: int, high: int, new_low: int, new_high: int) -> int:
        return new_low | new_high << 64 if old == low | high << 64 else old

    def swap_in(space: str) -> Callable[..., int]:
        return swap

    def run(ctx: Context, a: Value, b: Any, c: Any, policy: Value | None = None) -> Any:
        words = [None] if b is None or c is None else [*b, *c]
        old = ctx.atomic(space, a, 16, swap_in, [words], sem or "relaxed", scope or "gpu")
        return (None, None) if old is None else old

    return run


@shared_form(
    "red{.space}{.sem}{.scope}.{op}{.ftz}{.hint}{.v}.{t} [a], {b}:t?, policy:u64?", space=SPACE,
    sem=("relaxed", "release"), scope=SCOPE, op=tuple(o for o in OPS if o != "exch"), ftz=FTZ, hint=HINT, v=VECTOR,
    t=KINDS, check=_problem, counts=vector_counts, data_operands=("b",), unit="atomic", effects=("reads and writes [a]",), source=RED,
)  # fmt: skip
def red(
    space: str, sem: str, scope: str, op: str, ftz: str, hint: str, v: str, t: ScalarType
) -> Any:
    """Returns nothing, and never acquires."""
    operation_in = _operation_in(op, t)
    count = LENGTH[v]

    def run(ctx: Context, a: Value, b: Any, policy: Value | None = None) -> None:
        operands = [[None]] * count if b is None else [[value] for value in b]
        ctx.atomic(space, a, t.bytes, operation_in, operands, sem or "relaxed", scope or "gpu")

    return run


@shared_form(
    "red.async{.sem}{.scope}{.space}.mbarrier::complete_tx::bytes.{op}.{t} [a], b:t, [m]", sem=("relaxed",),
    scope=("cluster",), space=("shared::cluster",), op=("add", "min", "max", "inc", "dec", "and", "or", "xor"),
    t=("u32", "s32", "u64", "b32"), check=_async_problem, data_operands=("b",), unit="cp_async",
    effects=("reads and writes [a]", "completes_tx [m]"), source='PTX ISA 8.7, "red.async"',
)  # fmt: skip
def red_async(sem: str, scope: str, space: str, op: str, t: ScalarType) -> Any:
    """Reduction into a peer's shared memory, tracked by the peer's mbarrier."""
    operation = operation_of(op, t)

    def run(ctx: Context, a: Value, b: Value, m: Value) -> None:
        ctx.async_store(a, m, t.bytes, [b], operation)

    return run


def _st_problem(slots: dict[str, str]) -> str:
    if slots["sem"] == "relaxed":
        return ".relaxed is of red.async; st.async is .weak by itself"
    return ".weak and .cluster exclude each other" if slots["sem"] and slots["scope"] else ""


@shared_form(
    "st.async{.sem}{.scope}{.space}.mbarrier::complete_tx::bytes{.v}.{t} [a], {b}:t?, [m]", sem=("weak", "relaxed"), check=_st_problem,
    scope=("cluster",), space=("shared::cluster",), v=("v2", "v4"),
    t=("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"), counts=vector_counts, data_operands=("b",), unit="cp_async",
    effects=("writes [a]", "completes_tx [m]"), source='PTX ISA 8.7, "st.async"',
)  # fmt: skip
def st_async(sem: str, scope: str, space: str, v: str, t: ScalarType) -> Any:
    """Store into a peer's shared memory, tracked by the peer's mbarrier."""
    count = LENGTH[v]

    def run(ctx: Context, a: Value, b: Any, m: Value) -> None:
        ctx.async_store(a, m, t.bytes, [None] * count if b is None else list(b), None)

    return run

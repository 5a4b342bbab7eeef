"""ld, st and their cache, ordering and width variants; prefetch.

Cache hints and eviction priorities are accepted and have no effect on values; timing ignores them (DEVIATIONS D-CACHE).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopsim.isa.context import Context
from hopsim.isa.forms.form import form, local_form, shared_form
from hopsim.isa.numerics.convert import make_cvt
from hopsim.isa.numerics.floating import make_mul
from hopsim.isa.ops.accesses import HINT, LENGTH, SCOPE, VECTOR, vector_counts, words_of
from hopsim.isa.ptx.ast import Immediate
from hopsim.isa.ptx.flat import FlatOperand
from hopsim.isa.types import MEMORY_TYPES, TYPES, ScalarType
from hopsim.isa.values import Value

CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt")
LEVEL = (
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
)
L2 = ("L2::64B", "L2::128B", "L2::256B", "L2::evict_first", "L2::evict_last", "L2::evict_normal")
LOAD_ORDER = ("weak", "relaxed", "acquire", "volatile")
STORE_ORDER = ("weak", "relaxed", "release", "volatile")
SHARED = ("shared", "shared::cta", "shared::cluster")
ORDERED = {
    "mmio": ("mmio",),
    "sem": LOAD_ORDER,
    "scope": SCOPE,
    "nc": ("nc",),
    "cache": CACHE,
    "level": LEVEL,
    "l2": L2,
    "hint": HINT,
}


SCOPED = ("relaxed", "acquire", "release")
PRIORITIES = ("L2::evict_first", "L2::evict_last", "L2::evict_normal")
LOADS_ONLY, STORES_ONLY = ("ca", "lu", "cv"), ("wb", "wt")


def _order_problem(slots: dict[str, str]) -> str:
    """Return what ordering, space and cache modifiers say that exclude each other."""
    sem, scope, space, cache = (slots.get(name, "") for name in ("sem", "scope", "space", "cache"))
    if slots.get("mmio"):
        wrong = _mmio_problem(slots)
        if wrong:
            return wrong
    if sem in SCOPED and not scope:
        return f".{sem} needs a scope: .{', .'.join(SCOPE)}"
    if scope and sem not in SCOPED:
        return f".{scope} needs .{' or .'.join(SCOPED[:2])} (or .release, of a store)"
    if space in ("const", "local") and sem not in ("", "weak"):
        return f".{sem} cannot be applied to .{space}"
    if cache and sem not in ("", "weak"):
        return f".{sem} and the cache operator .{cache} exclude each other"
    if slots.get("nc") and (space != "global" or sem or cache == "cv"):
        return f".nc is of weak loads from .global, not .{sem or (cache if space == 'global' else space or 'generic')}"
    return ""


def _mmio_problem(slots: dict[str, str]) -> str:
    """Return what an access to a device's registers has that it cannot have."""
    if slots["sem"] != "relaxed" or slots["scope"] != "sys":
        return ".mmio needs .relaxed.sys"
    if slots["space"] not in ("", "global"):
        return f".mmio cannot be applied to .{slots['space']}"
    for name in ("v", "level", "l2", "hint"):
        if slots.get(name):
            return f".mmio and .{slots[name]} exclude each other"
    return ""


def _cache_problem(slots: dict[str, str]) -> str:
    """Return which cache hints do not fit the space, or each other."""
    space, level, l2 = slots.get("space", ""), slots.get("level", ""), slots.get("l2", "")
    if level and (slots.get("cache") or slots.get("sem") == "volatile"):
        return f".{level} and .{slots.get('cache') or 'volatile'} exclude each other"
    if l2 in PRIORITIES:
        return f".{l2} needs .v8.b32 or .v4.b64, which sm_90a lacks"
    if space not in ("", "global") and (level or l2 or slots.get("hint")):
        return f".{level or l2 or slots['hint']} cannot be applied to .{space}"
    return ""


def _problem(slots: dict[str, str]) -> str:
    return _order_problem(slots) or _cache_problem(slots) or _width_problem(slots)


def _load_problem(slots: dict[str, str]) -> str:
    if slots["cache"] in STORES_ONLY:
        return f".{slots['cache']} is of stores; loads have .ca, .cg, .cs, .lu, .cv"
    return _problem(slots)


def _store_problem(slots: dict[str, str]) -> str:
    if slots["cache"] in LOADS_ONLY:
        return f".{slots['cache']} is of loads; stores have .wb, .cg, .cs, .wt"
    if slots["l2"]:
        return f".{slots['l2']} is of loads"
    return _problem(slots)


SMALL_FLOATS = frozenset({"f16", "bf16", "f16x2", "bf16x2"})


def _width_problem(slots: dict[str, str]) -> str:
    if slots["t"] in SMALL_FLOATS:
        return f".{slots['t']} cannot be loaded or stored as such; .b{TYPES[slots['t']].width_bits} can"
    total = TYPES[slots["t"]].width_bits * LENGTH[slots["v"]]
    return (
        f"a vector of {total} bits; the widest access of sm_90 is 128 bits" if total > 128 else ""
    )


def fetch_bytes_of(l2: str) -> int:
    """Return what a miss brings into L2 at least, as a prefetch size of an instruction says; 0: it has none.

    >>> fetch_bytes_of("L2::128B"), fetch_bytes_of("L2::evict_last"), fetch_bytes_of("")
    (128, 0, 0)
    """
    size = l2.removeprefix("L2::").removesuffix("B")
    return int(size) if size.isdigit() else 0


def _load(space: str, sem: str, scope: str, v: str, t: ScalarType, l2: str = "") -> Any:
    word, count = words_of(v, t)
    order = sem or "weak"
    fetch_bytes = fetch_bytes_of(l2)

    def load(ctx: Context, a: Value, policy: Value | None = None) -> Any:
        result = ctx.load(space, a, word, count, order, scope, fetch_bytes)
        return (None,) * count if result is None else result

    return load


@local_form(
    "ld.{space}{.v}.{t} {d}:t~?, [a]", space=("param", "param::entry", "param::func"), v=VECTOR, t=MEMORY_TYPES, check=_width_problem,
    counts=vector_counts, unit="lsu_const", source='PTX ISA 8.7, "ld"',
)  # fmt: skip
def load_param(space: str, v: str, t: ScalarType) -> Any:
    """Kernel parameters are constant, so reading one touches nothing shared."""
    return _load("param", "", "", v, t)


@form(
    "ld.param{.v}.{t} {d}:t~?, [param]", v=VECTOR, t=MEMORY_TYPES, check=_width_problem, counts=vector_counts, unit="move",
    source='PTX ISA 8.7, "ld", "call"',
)  # fmt: skip
def take_param(v: str, t: ScalarType) -> str:
    """An argument that a function was called with, or what a call returned."""
    del v, t
    return "{0}"


@form(
    "st.param{.v}.{t} [dparam], {b}:t~?", v=VECTOR, t=MEMORY_TYPES, check=_width_problem, counts=vector_counts, unit="move",
    source='PTX ISA 8.7, "st", "call"',
)  # fmt: skip
def give_param(v: str, t: ScalarType) -> str:
    """An argument of a call, or what a function returns."""
    del v, t
    return "{0}"


@shared_form(
    "ld{.space}{.mmio}{.sem}{.scope}{.nc}{.cache}{.level}{.l2}{.hint}{.v}.{t} {d}:t~?, [a], policy:u64?",
    space=(*SHARED, "local"), v=VECTOR, t=MEMORY_TYPES, check=_load_problem, counts=vector_counts, data=True, unit="lsu_shared",
    effects=("reads [a]",), source='PTX ISA 8.7, "ld"', **ORDERED,
)  # fmt: skip
def load_shared(space: str, sem: str, scope: str, v: str, t: ScalarType, l2: str, **_: Any) -> Any:
    """Loads from shared, cluster or local memory, and through generic addresses."""
    return _load(space, sem, scope, v, t, l2)


@shared_form(
    "ld.{space}{.mmio}{.sem}{.scope}{.nc}{.cache}{.level}{.l2}{.hint}{.v}.{t} {d}:t~?, [a], policy:u64?",
    space=("global", "const"), v=VECTOR, t=MEMORY_TYPES, check=_load_problem, counts=vector_counts, data=True, unit="lsu_global",
    effects=("reads [a]",), source='PTX ISA 8.7, "ld", "ld.global.nc"', **ORDERED,
)  # fmt: skip
def load_global(space: str, sem: str, scope: str, v: str, t: ScalarType, l2: str, **_: Any) -> Any:
    """Loads from global or constant memory."""
    return _load(space, sem, scope, v, t, l2)


@shared_form(
    "ldu{.space}{.v}.{t} {d}:t~?, [a]", space=("global",), v=VECTOR, t=MEMORY_TYPES, check=_width_problem, counts=vector_counts,
    data=True, unit="lsu_global", effects=("reads [a]",), source='PTX ISA 8.7, "ldu"',
)  # fmt: skip
def load_uniform(space: str, v: str, t: ScalarType) -> Any:
    """A load whose address is the same in all lanes of a warp, which nothing checks: it is one like others."""
    return _load(space, "", "", v, t)


def _store(space: str, sem: str, scope: str, v: str, t: ScalarType) -> Any:
    word, count = words_of(v, t)
    order = sem or "weak"

    def store(ctx: Context, a: Value, b: Any, policy: Value | None = None) -> None:
        ctx.store(space, a, word, (None,) * count if b is None else b, order, scope)

    return store


STORE_ORDERED = {
    "mmio": ("mmio",),
    "sem": STORE_ORDER,
    "scope": SCOPE,
    "cache": CACHE,
    "level": LEVEL,
    "l2": L2,
    "hint": HINT,
}


@shared_form(
    "st{.space}{.mmio}{.sem}{.scope}{.cache}{.level}{.l2}{.hint}{.v}.{t} [a], {b}:t~?, policy:u64?",
    space=(*SHARED, "local"), v=VECTOR, t=MEMORY_TYPES, check=_store_problem, counts=vector_counts, data_operands=("b",), unit="lsu_shared",
    effects=("writes [a]",), source='PTX ISA 8.7, "st"', **STORE_ORDERED,
)  # fmt: skip
def store_shared(space: str, sem: str, scope: str, v: str, t: ScalarType, **_: Any) -> Any:
    """Stores to shared, cluster or local memory, and through generic addresses."""
    return _store(space, sem, scope, v, t)


@shared_form(
    "st.{space}{.mmio}{.sem}{.scope}{.cache}{.level}{.l2}{.hint}{.v}.{t} [a], {b}:t~?, policy:u64?",
    space=("global",), v=VECTOR, t=MEMORY_TYPES, check=_store_problem, counts=vector_counts, data_operands=("b",), unit="lsu_global",
    effects=("writes [a]",), source='PTX ISA 8.7, "st"', **STORE_ORDERED,
)  # fmt: skip
def store_global(space: str, sem: str, scope: str, v: str, t: ScalarType, **_: Any) -> Any:
    """Stores to global memory."""
    return _store(space, sem, scope, v, t)


def _prefetch_problem(slots: dict[str, str]) -> str:
    if not slots["level"]:
        return "a prefetch needs a cache level: .L1 or .L2"
    if slots["space"] == "local" and "::" in slots["level"]:
        return f".{slots['level']} cannot be applied to .local"
    return ""


@shared_form(
    "prefetch{.space}{.level} [a]", space=("global", "local"), level=("L1", "L2", "L2::evict_last", "L2::evict_normal"),
    check=_prefetch_problem, quiet=True, unit="lsu_global", source='PTX ISA 8.7, "prefetch"',
)  # fmt: skip
def prefetch(space: str, level: str) -> Any:
    """A hint: no effect on values."""

    def hint(ctx: Context, a: Value) -> None:
        return None

    return hint


@shared_form("prefetchu.L1 [a]", quiet=True, unit="lsu_global", source='PTX ISA 8.7, "prefetch, prefetchu"')  # fmt: skip
def prefetch_uniform() -> Any:
    """A hint: no effect on values."""
    return prefetch("", "L1")


@shared_form(
    "applypriority{.space}.L2::evict_normal [a], n:u32", space=("global",), quiet=True, limits={"n": (128,)}, unit="lsu_global",
    source='PTX ISA 8.7, "applypriority"',
)  # fmt: skip
def apply_priority(space: str) -> Any:
    """A hint: no effect on values."""

    def hint(ctx: Context, a: Value, n: Value) -> None:
        return None

    return hint


LINE_BYTES = 128


@shared_form(
    "discard{.space}.L2 [a], #n:u32", space=("global",), limits={"n": (LINE_BYTES,)}, unit="lsu_global", effects=("writes [a]",),
    source='PTX ISA 8.7, "discard"',
)  # fmt: skip
def discard(space: str) -> Any:
    """Throws a line away: its bytes are not known until they are written again."""

    def run(ctx: Context, a: Value, n: int) -> None:
        ctx.discard(space, a, n)

    return run


POLICIES = {
    "L2::evict_unchanged": 0x100,
    "L2::evict_first": 0x120,
    "L2::evict_last": 0x140,
    "L2::evict_normal": 0x160,
}
"""The upper bits of a cache policy, as ptxas 13.0 writes them for constant fractions; sixteenths of the fraction stand below."""
OTHERS_FIRST = 0x10
POLICY_SHIFT = 52
SIXTEEN = 0x41800000


def _fraction_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    """Say what is wrong with the fraction of a `createpolicy`."""
    del slots
    fraction = operands[1] if len(operands) > 1 else None
    if isinstance(fraction, Immediate) and fraction.kind != "int":
        # Bits of floats are ordered as the numbers are, from 0 on.
        one = 0x3F800000 if fraction.kind == "f32" else 0x3FF0000000000000
        if not 0 < fraction.value <= one:
            return f"operand a is {fraction.text}, expected more than 0 and at most 1.0"
    return ""


@form(
    "createpolicy.fractional.{first}{.others}.b64 d:u64, a:f32?", first=tuple(POLICIES),
    others=("L2::evict_first", "L2::evict_unchanged"), agree=_fraction_problem, unit="alu", source='PTX ISA 8.7, "createpolicy"',
)  # fmt: skip
def create_policy(first: str, others: str) -> Any:
    """Makes a cache policy, which has no effect on values, of a priority and the fraction of accesses that get it."""
    base = POLICIES[first] | (OTHERS_FIRST if others == "L2::evict_first" else 0)
    scaled, up = make_mul("f32"), make_cvt("u32", "f32", "rpi")

    def policy(a: Value | None = None) -> Value:
        if a is None:
            return (base | 15) << POLICY_SHIFT
        sixteenths = up(scaled(a, SIXTEEN))
        if isinstance(sixteenths, int):
            return (base | min(max(sixteenths, 1), 16) - 1) << POLICY_SHIFT
        bounded = np.clip(sixteenths, 1, 16).astype(np.uint64) - np.uint64(1)
        return (bounded | np.uint64(base)) << np.uint64(POLICY_SHIFT)

    return policy

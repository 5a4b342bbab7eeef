"""cp.async, cp.async.bulk, cp.reduce.async.bulk, prefetches of bytes.

None of these copies anything when it executes: the operation lands later, when the schedule says.
"""

from __future__ import annotations

from typing import Any

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.forms.operand_rules import copied_problem
from hopsim.isa.ops.atomics import HALVES, noftz_problem
from hopsim.isa.ops.memory import fetch_bytes_of
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Value, select

CLUSTER = ("shared::cluster", "shared::cta")
TX = ("mbarrier::complete_tx::bytes",)
HINT = ("L2::cache_hint",)
REDUCE = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
BULK = 'PTX ISA 8.7, "cp.async.bulk"'
LEGACY = 'PTX ISA 8.7, "cp.async"'
WHOLE = {"n": range(0, 1 << 32, 16)}
"""Bytes of bulk copies."""
COPIED = {"n": (4, 8, 16)}
"""Bytes of a thread's copy."""
PAST_L1 = {"n": (16,)}


REDUCED = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64", "f16", "bf16")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
}
"""Types of each operation of a bulk reduction, as ptxas 13.0 has them."""


def _reduce_problem(slots: dict[str, str]) -> str:
    op, t, ftz = slots["op"], slots["t"], slots["ftz"]
    if t not in REDUCED[op]:
        return f".{op} does not take .{t}; expected .{', .'.join(REDUCED[op])}"
    if ftz and (op != "add" or t not in HALVES):
        return f".{op}.{t} takes no .{ftz}"
    return noftz_problem(op, t, ftz)


# --- plain bulk copies ----------------------------------------------------------------------------


@shared_form("cp.async.bulk.{dst}.global.{tx}{.hint} [b], [a], n:u32, [m], policy:u64?", limits=WHOLE, dst=CLUSTER, tx=TX, hint=HINT,
             unit="tma", effects=("reads [a] async", "writes [b] async", "completes_tx [m]"), source=BULK)  # fmt: skip
def bulk_load(dst: str, tx: str, hint: str) -> Any:
    """Copies n bytes from global into shared memory."""

    def run(
        ctx: Context, b: Value, a: Value, n: Value, m: Value, policy: Value | None = None
    ) -> None:
        ctx.bulk_load(b, a, n, m, None, dst)

    return run


@shared_form("cp.async.bulk.{dst}.global.{tx}.multicast::cluster{.hint} [b], [a], n:u32, [m], k:u16, policy:u64?", limits=WHOLE,
             dst=("shared::cluster",), tx=TX, hint=HINT, unit="tma",
             effects=("reads [a] async", "writes [b] of each CTA async", "completes_tx [m]"), source=BULK)  # fmt: skip
def bulk_load_multicast(dst: str, tx: str, hint: str) -> Any:
    """The same bytes into every CTA of a mask."""

    def run(
        ctx: Context, b: Value, a: Value, n: Value, m: Value, k: Value, policy: Value | None = None
    ) -> None:
        ctx.bulk_load(b, a, n, m, k, dst)

    return run


@shared_form("cp.async.bulk.shared::cluster.shared::cta.{tx} [b], [a], n:u32, [m]", limits=WHOLE, tx=TX, unit="tma",
             effects=("reads [a] async", "writes [b] async", "completes_tx [m]"), source=BULK)  # fmt: skip
def bulk_peer(tx: str) -> Any:
    """Copies n bytes from this CTA's shared memory into a peer's."""

    def run(ctx: Context, b: Value, a: Value, n: Value, m: Value) -> None:
        ctx.bulk_peer(b, a, n, m)

    return run


@shared_form("cp.async.bulk.global.shared::cta.bulk_group{.hint} [a], [b], n:u32, policy:u64?", limits=WHOLE, hint=HINT, unit="tma",
             effects=("reads [b] async", "writes [a] async", "bulk group"), source=BULK)  # fmt: skip
def bulk_store(hint: str) -> Any:
    """Copies n bytes from shared into global memory."""

    def run(ctx: Context, a: Value, b: Value, n: Value, policy: Value | None = None) -> None:
        ctx.bulk_store(a, b, n, "", None)

    return run


@shared_form("cp.reduce.async.bulk.global.shared::cta.bulk_group{.hint}.{op}{.ftz}.{t} [a], [b], n:u32, policy:u64?", limits=WHOLE,
             hint=HINT, op=REDUCE, ftz=("noftz",),
             t=("u32", "s32", "u64", "s64", "f16", "bf16", "b32", "b64", "f32", "f64"), check=_reduce_problem, unit="tma",
             effects=("reads [b] async", "reads and writes [a] async", "bulk group"),
             source='PTX ISA 8.7, "cp.reduce.async.bulk"')  # fmt: skip
def bulk_reduce(hint: str, op: str, ftz: str, t: ScalarType) -> Any:
    """Reduces n bytes from shared into global memory."""

    def run(ctx: Context, a: Value, b: Value, n: Value, policy: Value | None = None) -> None:
        ctx.bulk_store(a, b, n, op, t)

    return run


REDUCED_IN_A_CLUSTER = {
    "add": ("u32", "s32", "u64"),
    **dict.fromkeys(("min", "max"), ("u32", "s32")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), ("b32",)),
}
"""The same of a reduction into shared memory."""


def _cluster_reduce_problem(slots: dict[str, str]) -> str:
    op, t = slots["op"], slots["t"]
    if t not in REDUCED_IN_A_CLUSTER[op]:
        return f".{op} into shared memory does not take .{t}; expected .{', .'.join(REDUCED_IN_A_CLUSTER[op])}"
    return ""


@shared_form("cp.reduce.async.bulk.shared::cluster.shared::cta.{tx}.{op}.{t} [b], [a], n:u32, [m]", limits=WHOLE, tx=TX, op=REDUCE,
             t=("u32", "s32", "u64", "s64", "b32", "b64"), check=_cluster_reduce_problem, unit="tma",
             effects=("reads [a] async", "reads and writes [b] async", "completes_tx [m]"),
             source='PTX ISA 8.7, "cp.reduce.async.bulk"')  # fmt: skip
def bulk_peer_reduce(tx: str, op: str, t: ScalarType) -> Any:
    """Reduces n bytes from this CTA's shared memory into a peer's."""

    def run(ctx: Context, b: Value, a: Value, n: Value, m: Value) -> None:
        ctx.bulk_peer(b, a, n, m, op, t)

    return run


@shared_form("cp.async.bulk.prefetch.L2.global{.hint} [a], n:u32, policy:u64?", limits=WHOLE, hint=HINT, unit="tma",
             source='PTX ISA 8.7, "cp.async.bulk.prefetch"')  # fmt: skip
def bulk_prefetch(hint: str) -> Any:
    """Brings n bytes into L2."""

    def run(ctx: Context, a: Value, n: Value, policy: Value | None = None) -> None:
        ctx.bulk_prefetch(a, n)

    return run


@shared_form("cp.async.bulk.commit_group", quiet=True, unit="tma_sync", effects=("bulk commit",),
             source='PTX ISA 8.7, "cp.async.bulk.commit_group"')  # fmt: skip
def bulk_commit() -> Any:
    """Makes a bulk group of this thread's stores since its last commit."""

    def run(ctx: Context) -> None:
        ctx.bulk_commit()

    return run


@shared_form("cp.async.bulk.wait_group{.read} #n:u32", read=("read",), may_block=True, unit="tma_sync",
             effects=("bulk wait",), source='PTX ISA 8.7, "cp.async.bulk.wait_group"')  # fmt: skip
def bulk_wait(read: str) -> Any:
    """Waits until at most n of this thread's newest bulk groups are pending (.read: still reading)."""

    def run(ctx: Context, n: int) -> Any:
        return ctx.bulk_wait(n, bool(read))

    return run


# --- cp.async -------------------------------------------------------------------------------------


@shared_form("cp.async.ca.{dst}.global{.l2} [b], [a], #n:u32, s:u32?", limits=COPIED, agree=copied_problem,
             dst=("shared", "shared::cta"), l2=("L2::64B", "L2::128B", "L2::256B"), unit="cp_async",
             effects=("reads [a]", "writes [b]", "cp.async group"), source=LEGACY)  # fmt: skip
@shared_form("cp.async.ca.{dst}.global{.l2}.{hint} [b], [a], #n:u32, s:u32?, policy:u64", limits=COPIED, agree=copied_problem,
             dst=("shared", "shared::cta"), l2=("L2::64B", "L2::128B", "L2::256B"), hint=HINT, unit="cp_async",
             effects=("reads [a]", "writes [b]", "cp.async group"), source=LEGACY)  # fmt: skip
def cp_async_through_l1(dst: str, l2: str, hint: str = "") -> Any:
    """Each thread copies 4, 8 or 16 bytes by way of L1; bytes past the source size are zero."""
    return _copy(l2, through_l1=True)


@shared_form("cp.async.cg.{dst}.global{.l2} [b], [a], #n:u32, s:u32?", limits=PAST_L1, agree=copied_problem,
             dst=("shared", "shared::cta"), l2=("L2::64B", "L2::128B", "L2::256B"), unit="cp_async",
             effects=("reads [a]", "writes [b]", "cp.async group"), source=LEGACY)  # fmt: skip
@shared_form("cp.async.cg.{dst}.global{.l2}.{hint} [b], [a], #n:u32, s:u32?, policy:u64", limits=PAST_L1, agree=copied_problem,
             dst=("shared", "shared::cta"), l2=("L2::64B", "L2::128B", "L2::256B"), hint=HINT, unit="cp_async",
             effects=("reads [a]", "writes [b]", "cp.async group"), source=LEGACY)  # fmt: skip
def cp_async_past_l1(dst: str, l2: str, hint: str = "") -> Any:
    """Each thread copies 16 bytes past L1; bytes past the source size are zero."""
    return _copy(l2, through_l1=False)


def _copy(l2: str, through_l1: bool) -> Any:
    fetch_bytes = fetch_bytes_of(l2)

    def run(
        ctx: Context,
        b: Value,
        a: Value,
        n: int,
        s: Value | None = None,
        policy: Value | None = None,
    ) -> None:
        ctx.cp_async(b, a, n, s, fetch_bytes, through_l1)

    return run


@shared_form("cp.async.ca.{dst}.global{.l2}{.hint} [b], [a], #n:u32, p:pred, policy:u64?", limits=COPIED, agree=copied_problem,
             dst=("shared", "shared::cta"), l2=("L2::64B", "L2::128B", "L2::256B"), hint=HINT, unit="cp_async",
             effects=("reads [a]", "writes [b]", "cp.async group"), source=LEGACY)  # fmt: skip
def cp_async_ignore_through_l1(dst: str, l2: str, hint: str) -> Any:
    """The form with ignore-src: where the predicate holds, zeros are written."""
    return _copy_or_ignore(l2, through_l1=True)


@shared_form("cp.async.cg.{dst}.global{.l2}{.hint} [b], [a], #n:u32, p:pred, policy:u64?", limits=PAST_L1, agree=copied_problem,
             dst=("shared", "shared::cta"), l2=("L2::64B", "L2::128B", "L2::256B"), hint=HINT, unit="cp_async",
             effects=("reads [a]", "writes [b]", "cp.async group"), source=LEGACY)  # fmt: skip
def cp_async_ignore_past_l1(dst: str, l2: str, hint: str) -> Any:
    """The same past L1."""
    return _copy_or_ignore(l2, through_l1=False)


def _copy_or_ignore(l2: str, through_l1: bool) -> Any:
    fetch_bytes = fetch_bytes_of(l2)

    def run(ctx: Context, b: Value, a: Value, n: int, p: Any, policy: Value | None = None) -> None:
        ctx.cp_async(b, a, n, select(p, 0, n, 32), fetch_bytes, through_l1)

    return run


@shared_form(
    "cp.async.commit_group",
    quiet=True,
    unit="cp_async",
    effects=("cp.async commit",),
    source=LEGACY,
)
def cp_async_commit() -> Any:
    """Makes a group of this thread's copies since its last commit."""

    def run(ctx: Context) -> None:
        ctx.cp_async_commit()

    return run


@shared_form(
    "cp.async.wait_group #n:u32",
    may_block=True,
    unit="cp_async",
    effects=("cp.async wait",),
    source=LEGACY,
)
def cp_async_wait() -> Any:
    """Waits until at most n of this thread's newest groups are pending."""

    def run(ctx: Context, n: int) -> Any:
        return ctx.cp_async_wait(n)

    return run


@shared_form(
    "cp.async.wait_all", may_block=True, unit="cp_async", effects=("cp.async wait",), source=LEGACY
)
def cp_async_wait_all() -> Any:
    """Waits for all copies of this thread, committed or not."""

    def run(ctx: Context) -> Any:
        return ctx.cp_async_wait(None)

    return run


@shared_form("cp.async.mbarrier.arrive{.noinc}{.space}.b64 [a]", noinc=("noinc",), space=("shared", "shared::cta"),
             unit="cp_async", effects=("mbarrier arrive later",), source='PTX ISA 8.7, "cp.async.mbarrier.arrive"')  # fmt: skip
def cp_async_mbarrier(noinc: str, space: str) -> Any:
    """Arrives on an mbarrier when this thread's earlier copies are complete."""

    def run(ctx: Context, a: Value) -> None:
        ctx.cp_async_mbarrier(space, a, bool(noinc))

    return run

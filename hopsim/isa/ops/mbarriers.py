"""mbarrier: init, inval, arrive and its variants, expect_tx, complete_tx, test_wait, try_wait, pending_count.

Source: PTX ISA 8.7 "Parallel Synchronization and Communication Instructions: mbarrier".
"""

from __future__ import annotations

from typing import Any

from hopsim.isa.context import Context
from hopsim.isa.forms.form import form, shared_form
from hopsim.isa.forms.operand_rules import arrival_problem
from hopsim.isa.values import Value

SPACE = ("shared", "shared::cta", "shared::cluster")
LOCAL = ("shared", "shared::cta")
SEM = ("release", "relaxed")
WAIT_SEM = ("acquire", "relaxed")
PARITY = {"p": (0, 1)}
SCOPE = ("cta", "cluster")
TX = ("expect_tx",)
NO_COMPLETE = ("noComplete",)


def _source(name: str) -> str:
    return f'PTX ISA 8.7, "mbarrier.{name}"'


@shared_form("mbarrier.init{.space}.b64 [a], n:u32", space=LOCAL, unit="mbarrier", effects=("mbarrier init",),
             source=_source("init"))  # fmt: skip
def mbarrier_init(space: str) -> Any:
    """Makes an mbarrier that expects n arrivals a phase."""

    def run(ctx: Context, a: Value, n: Value) -> None:
        ctx.mbarrier_init(space, a, n)

    return run


@shared_form("mbarrier.inval{.space}.b64 [a]", space=LOCAL, unit="mbarrier", effects=("mbarrier inval",),
             source=_source("inval"))  # fmt: skip
def mbarrier_inval(space: str) -> Any:
    """Ends the life of an mbarrier, so that its bytes can be used for something else."""

    def run(ctx: Context, a: Value) -> None:
        ctx.mbarrier_inval(space, a)

    return run


def _order_problem(slots: dict[str, str]) -> str:
    """Return what is wrong with an order without a scope, or a scope without an order."""
    sem, scope = slots["sem"], slots["scope"]
    if sem and not scope:
        return f".{sem} needs a scope: .{' or .'.join(SCOPE)}"
    return f".{scope} needs an order before it, as in .relaxed.{scope}" if scope and not sem else ""


def _arrive_problem(slots: dict[str, str]) -> str:
    if slots.get("nocomplete") and slots.get("tx"):
        return ".noComplete and .expect_tx exclude each other"
    if slots.get("nocomplete") and slots.get("space") == "shared::cluster":
        return ".noComplete cannot be applied to .shared::cluster"
    if slots.get("nocomplete") and slots["sem"] == "relaxed":
        return ".noComplete and .relaxed exclude each other"
    return _order_problem(slots)


def _arrive(drop: bool, tx: str, sem: str, scope: str, space: str, nocomplete: str) -> Any:
    def plain(ctx: Context, a: Value, n: Value | None = None) -> Any:
        return ctx.mbarrier_arrive(space, a, n, None, drop, sem, scope, bool(nocomplete))

    def expecting(ctx: Context, a: Value, n: Value | None = None) -> Any:
        return ctx.mbarrier_arrive(space, a, None, n, drop, sem, scope)

    return expecting if tx else plain


@shared_form(
    "mbarrier.arrive{.tx}{.nocomplete}{.sem}{.scope}{.space}.b64 d:u64, [a], n:u32?", tx=TX, nocomplete=NO_COMPLETE,
    sem=SEM, scope=SCOPE, space=SPACE, check=_arrive_problem, agree=arrival_problem, joined=1, unit="mbarrier",
    effects=("mbarrier arrive",), source=_source("arrive"),
)  # fmt: skip
def mbarrier_arrive(tx: str, nocomplete: str, sem: str, scope: str, space: str) -> Any:
    """Counts arrivals; with expect_tx raises the tx-count first, by n bytes."""
    return _arrive(False, tx, sem, scope, space, nocomplete)


@shared_form(
    "mbarrier.arrive_drop{.tx}{.nocomplete}{.sem}{.scope}{.space}.b64 d:u64, [a], n:u32?", tx=TX,
    nocomplete=NO_COMPLETE, sem=SEM, scope=SCOPE, space=SPACE, check=_arrive_problem, agree=arrival_problem, joined=1, unit="mbarrier",
    effects=("mbarrier arrive",), source=_source("arrive_drop"),
)  # fmt: skip
def mbarrier_arrive_drop(tx: str, nocomplete: str, sem: str, scope: str, space: str) -> Any:
    """Arrives, and lowers the count that later phases expect."""
    return _arrive(True, tx, sem, scope, space, nocomplete)


@shared_form("mbarrier.expect_tx{.sem}{.scope}{.space}.b64 [a], n:u32", sem=("relaxed",), scope=SCOPE, space=SPACE,
             check=_order_problem, unit="mbarrier", effects=("mbarrier expect_tx",), source=_source("expect_tx"))  # fmt: skip
def mbarrier_expect_tx(sem: str, scope: str, space: str) -> Any:
    """Raises the tx-count of the current phase."""

    def run(ctx: Context, a: Value, n: Value) -> None:
        ctx.mbarrier_expect_tx(space, a, n, sem, scope)

    return run


@shared_form("mbarrier.complete_tx{.sem}{.scope}{.space}.b64 [a], n:u32", sem=("relaxed",), scope=SCOPE, space=SPACE,
             check=_order_problem, unit="mbarrier", effects=("mbarrier complete_tx",), source=_source("complete_tx"))  # fmt: skip
def mbarrier_complete_tx(sem: str, scope: str, space: str) -> Any:
    """Lowers the tx-count as a copy would."""

    def run(ctx: Context, a: Value, n: Value) -> None:
        ctx.mbarrier_complete_tx(space, a, n)

    return run


@shared_form("mbarrier.test_wait{.sem}{.scope}{.space}.b64 d:pred, [a], s:u64", sem=WAIT_SEM, scope=SCOPE, space=LOCAL,
             check=_order_problem, unit="mbarrier", effects=("mbarrier wait",), source=_source("test_wait"))  # fmt: skip
def mbarrier_test_wait(sem: str, scope: str, space: str) -> Any:
    """Whether the phase of a state word has completed; never waits."""

    def run(ctx: Context, a: Value, s: Value) -> Any:
        return ctx.mbarrier_test(space, a, None, s, sem, scope, False)

    return run


@shared_form("mbarrier.test_wait.parity{.sem}{.scope}{.space}.b64 d:pred, [a], p:u32", limits=PARITY, sem=WAIT_SEM, scope=SCOPE,
             space=LOCAL, check=_order_problem, unit="mbarrier", effects=("mbarrier wait",), source=_source("test_wait"))  # fmt: skip
def mbarrier_test_wait_parity(sem: str, scope: str, space: str) -> Any:
    """Whether the phase with this parity has completed; never waits."""

    def run(ctx: Context, a: Value, p: Value) -> Any:
        return ctx.mbarrier_test(space, a, p, None, sem, scope, False)

    return run


@shared_form("mbarrier.try_wait{.sem}{.scope}{.space}.b64 d:pred, [a], s:u64, t:u32?", sem=WAIT_SEM, scope=SCOPE,
             space=LOCAL, may_block=True, check=_order_problem, unit="mbarrier", effects=("mbarrier wait",),
             source=_source("try_wait"))  # fmt: skip
def mbarrier_try_wait(sem: str, scope: str, space: str) -> Any:
    """Waits for the phase of a state word, up to a time limit."""

    def run(ctx: Context, a: Value, s: Value, t: Value | None = None) -> Any:
        return ctx.mbarrier_test(space, a, None, s, sem, scope, True)

    return run


@shared_form("mbarrier.try_wait.parity{.sem}{.scope}{.space}.b64 d:pred, [a], p:u32, t:u32?", limits=PARITY, sem=WAIT_SEM,
             scope=SCOPE, space=LOCAL, may_block=True, check=_order_problem, unit="mbarrier", effects=("mbarrier wait",),
             source=_source("try_wait"))  # fmt: skip
def mbarrier_try_wait_parity(sem: str, scope: str, space: str) -> Any:
    """Waits for the phase with this parity, up to a time limit."""

    def run(ctx: Context, a: Value, p: Value, t: Value | None = None) -> Any:
        return ctx.mbarrier_test(space, a, p, None, sem, scope, True)

    return run


@form("mbarrier.pending_count.b64 d:u32, s:u64", unit="alu", source=_source("pending_count"))
def mbarrier_pending_count() -> Any:
    """The pending count in a state word (hopsim keeps it in the low 20 bits)."""
    return "({0} & 1048575)"


@shared_form("mapa{.space}.{t} d:t, a:t, r:u32", space=("shared::cluster",), t=("u32", "u64"), quiet=True, unit="alu",
             source='PTX ISA 8.7, "mapa"')  # fmt: skip
def mapa(space: str, t: Any) -> Any:
    """The address of the same place in the shared memory of CTA r of the cluster."""

    def run(ctx: Context, a: Value, r: Value) -> Any:
        return ctx.map_address(space, a, r)

    return run


@shared_form("getctarank{.space}.{t} d:u32, a:t", space=("shared::cluster",), t=("u32", "u64"), quiet=True, unit="alu",
             source='PTX ISA 8.7, "getctarank"')  # fmt: skip
def getctarank(space: str, t: Any) -> Any:
    """The rank of the CTA that owns a shared address."""

    def run(ctx: Context, a: Value) -> Any:
        return ctx.cta_rank(a)

    return run

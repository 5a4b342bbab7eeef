"""bar, barrier, barrier.cluster, bar.warp.sync, fences, setmaxnreg, griddepcontrol and other control of threads."""

from __future__ import annotations

from typing import Any

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.values import Value
from hopsim.layout.tensormap import MAP_BYTES

BAR = 'PTX ISA 8.7, "bar, barrier"'
FENCE = 'PTX ISA 8.7, "membar, fence"'
NAMED = {"a": range(16), "n": range(0, 1 << 31, 32)}
"""Barriers of a CTA; threads come in whole warps."""


def _barrier(action: str, aligned: bool) -> Any:
    def run(ctx: Context, a: Value, n: Value | None = None) -> Any:
        return ctx.named_barrier(action, a, n, aligned)

    return run


@shared_form("bar{.cta}.sync a:u32, n:u32?", cta=("cta",), joined=1, limits=NAMED, may_block=True, unit="barrier",
             effects=("barrier arrive, wait",), source=BAR)  # fmt: skip
def bar_sync(cta: str) -> Any:
    """Aligned: the warp executes it together."""
    return _barrier("sync", True)


@shared_form("bar{.cta}.arrive a:u32, n:u32", cta=("cta",), joined=2, limits=NAMED, may_block=True, unit="barrier",
             effects=("barrier arrive",), source=BAR)  # fmt: skip
def bar_arrive(cta: str) -> Any:
    """Arrive without waiting; the thread count is required."""
    return _barrier("arrive", True)


@shared_form("barrier{.cta}.sync{.aligned} a:u32, n:u32?", cta=("cta",), joined=1, limits=NAMED, aligned=("aligned",), may_block=True,
             unit="barrier", effects=("barrier arrive, wait",), source=BAR)  # fmt: skip
def barrier_sync(cta: str, aligned: str) -> Any:
    """Not aligned unless it says so."""
    return _barrier("sync", bool(aligned))


@shared_form("barrier{.cta}.arrive{.aligned} a:u32, n:u32", cta=("cta",), joined=2, limits=NAMED, aligned=("aligned",), may_block=True,
             unit="barrier", effects=("barrier arrive",), source=BAR)  # fmt: skip
def barrier_arrive(cta: str, aligned: str) -> Any:
    """Arrive without waiting."""
    return _barrier("arrive", bool(aligned))


def _reduction(op: str, aligned: bool) -> Any:
    def run(ctx: Context, a: Value, *rest: Any) -> Any:
        *count, predicate = rest
        return ctx.named_barrier("red", a, count[0] if count else None, aligned, (op, predicate))

    return run


@shared_form("bar{.cta}.red.popc.u32 d:u32, a:u32, n:u32?, p:pred", cta=("cta",), joined=2, limits=NAMED, may_block=True, unit="barrier",
             effects=("barrier arrive, wait",), source=BAR)  # fmt: skip
def bar_red_popc(cta: str) -> Any:
    """Count the threads whose predicate holds."""
    return _reduction("popc", True)


@shared_form("bar{.cta}.red.{op}.pred d:pred, a:u32, n:u32?, p:pred", cta=("cta",), joined=2, limits=NAMED, op=("and", "or"), may_block=True,
             unit="barrier", effects=("barrier arrive, wait",), source=BAR)  # fmt: skip
def bar_red(cta: str, op: str) -> Any:
    """Combine predicates over the barrier."""
    return _reduction(op, True)


@shared_form("barrier{.cta}.red.popc{.aligned}.u32 d:u32, a:u32, n:u32?, p:pred", cta=("cta",), joined=2, limits=NAMED,
             aligned=("aligned",), may_block=True, unit="barrier", effects=("barrier arrive, wait",), source=BAR)  # fmt: skip
def barrier_red_popc(cta: str, aligned: str) -> Any:
    """Count the threads whose predicate holds."""
    return _reduction("popc", bool(aligned))


@shared_form("barrier{.cta}.red.{op}{.aligned}.pred d:pred, a:u32, n:u32?, p:pred", cta=("cta",), joined=2, limits=NAMED,
             op=("and", "or"), aligned=("aligned",), may_block=True, unit="barrier", effects=("barrier arrive, wait",), source=BAR)  # fmt: skip
def barrier_red(cta: str, op: str, aligned: str) -> Any:
    """Combine predicates over the barrier."""
    return _reduction(op, bool(aligned))


@shared_form("bar.warp.sync m:u32", may_block=True, unit="special", effects=("warp barrier",),
             source='PTX ISA 8.7, "bar.warp.sync"')  # fmt: skip
def bar_warp_sync() -> Any:
    """Lanes of the mask meet; their memory accesses are ordered."""

    def run(ctx: Context, m: Value) -> Any:
        return ctx.warp_sync(m)

    return run


CLUSTER = 'PTX ISA 8.7, "barrier.cluster"'


@shared_form("barrier.cluster.arrive{.sem}{.aligned}", sem=("release", "relaxed"), aligned=("aligned",),
             unit="cluster_barrier", effects=("cluster barrier arrive",), source=CLUSTER)  # fmt: skip
def cluster_arrive(sem: str, aligned: str) -> Any:
    """Each thread of the cluster arrives once a phase."""

    def run(ctx: Context) -> None:
        ctx.cluster_arrive(bool(aligned), sem)

    return run


@shared_form("barrier.cluster.wait{.acquire}{.aligned}", acquire=("acquire",), aligned=("aligned",), may_block=True,
             unit="cluster_barrier", effects=("cluster barrier wait",), source=CLUSTER)  # fmt: skip
def cluster_wait(acquire: str, aligned: str) -> Any:
    """Wait until every live thread of the cluster has arrived."""

    def run(ctx: Context) -> Any:
        return ctx.cluster_wait(bool(aligned), acquire)

    return run


# --- fences ---------------------------------------------------------------------------------------


def _fence(what: str, *detail: str) -> Any:
    def run(ctx: Context) -> None:
        ctx.fence(what, *detail)

    return run


@shared_form("fence{.sem}.{scope}", sem=("sc", "acq_rel", "acquire", "release"), scope=("cta", "cluster", "gpu", "sys"),
             quiet=True, unit="fence", effects=("fence",), source=FENCE)  # fmt: skip
def fence(sem: str, scope: str) -> Any:
    """Thread fence; acq_rel unless it says otherwise."""
    return _fence("fence", sem or "acq_rel", scope)


@shared_form(
    "membar.{level}",
    level=("cta", "gl", "sys"),
    quiet=True,
    unit="fence",
    effects=("fence",),
    source=FENCE,
)
def membar(level: str) -> Any:
    """Old spelling of fence.sc."""
    return _fence("fence", "sc", {"cta": "cta", "gl": "gpu", "sys": "sys"}[level])


@shared_form("membar.proxy.alias", quiet=True, unit="fence", effects=("proxy fence",), source=FENCE)
@shared_form("fence.proxy.alias", quiet=True, unit="fence", effects=("proxy fence",), source=FENCE)
def fence_proxy_alias() -> Any:
    """Bridges virtual aliases of one address."""
    return _fence("fence.proxy", "alias", "")


@shared_form("fence.proxy.async{.space}", space=("global", "shared::cta", "shared::cluster"), quiet=True, unit="fence",
             effects=("proxy fence",), source=FENCE)  # fmt: skip
def fence_proxy(space: str) -> Any:
    """Bridges the generic and the async proxy, in both directions."""
    return _fence("fence.proxy", "async", space)


def _one_way_problem(slots: dict[str, str]) -> str:
    wanted = "shared::cluster" if slots["sem"] == "acquire" else "shared::cta"
    if slots["restrict"] != f"sync_restrict::{wanted}":
        return f".{slots['sem']} needs .sync_restrict::{wanted}"
    return ""


@shared_form("fence.proxy.async::generic.{sem}.{restrict}.{scope}", sem=("acquire", "release"),
             restrict=("sync_restrict::shared::cta", "sync_restrict::shared::cluster"), scope=("cluster",), check=_one_way_problem, quiet=True,
             unit="fence", effects=("proxy fence",), source=FENCE)  # fmt: skip
def fence_proxy_one_way(sem: str, restrict: str, scope: str) -> Any:
    """One-way proxy fences of mbarrier initialisation."""
    return _fence("fence.proxy.one_way", sem, restrict, scope)


@shared_form("fence.proxy.tensormap::generic.release.{scope}", scope=("cta", "cluster", "gpu", "sys"), quiet=True,
             unit="fence", effects=("proxy fence",), source=FENCE)  # fmt: skip
def fence_tensormap_release(scope: str) -> Any:
    """Publishes changes of a tensor map."""
    return _fence("fence.proxy.tensormap", "release", scope)


@shared_form("fence.proxy.tensormap::generic.acquire.{scope} [a], #n:b32", scope=("cta", "cluster", "gpu", "sys"), limits={"n": (MAP_BYTES,)},
             quiet=True, unit="fence", effects=("proxy fence",), source=FENCE)  # fmt: skip
def fence_tensormap_acquire(scope: str) -> Any:
    """Makes changes of the tensor map at an address visible to later TMA operations of this thread."""

    def run(ctx: Context, a: Value, n: Value) -> None:
        ctx.fence("fence.proxy.tensormap", "acquire", scope, a)

    return run


@shared_form(
    "fence.mbarrier_init.release.cluster",
    quiet=True,
    unit="fence",
    effects=("fence",),
    source=FENCE,
)
def fence_mbarrier_init() -> Any:
    """Publishes this thread's mbarrier.init to the cluster."""
    return _fence("fence.mbarrier_init", "release", "cluster")


# --- registers, grids -----------------------------------------------------------------------------


@shared_form("setmaxnreg.{action}.sync.aligned.u32 #n:u32", action=("inc", "dec"), joined=1, limits={"n": range(24, 257, 8)}, may_block=True, unit="special",
             effects=("registers",), source='PTX ISA 8.7, "setmaxnreg"')  # fmt: skip
def setmaxnreg(action: str) -> Any:
    """Moves registers between warps of the CTA."""

    def run(ctx: Context, n: int) -> Any:
        return ctx.setmaxnreg(action, n)

    return run


@shared_form("griddepcontrol.{action}", action=("wait", "launch_dependents"), quiet=True, unit="control",
             effects=("grid dependency",), source='PTX ISA 8.7, "griddepcontrol"')  # fmt: skip
def griddepcontrol(action: str) -> Any:
    """Launches run one after another here, so a wait is over at once."""
    return _fence(f"griddepcontrol.{action}")


@shared_form("nanosleep.u32 t:u32", quiet=True, unit="control", source='PTX ISA 8.7, "nanosleep"')
def nanosleep() -> Any:
    """No effect on values; other strands get their turn as always."""

    def run(ctx: Context, t: Value) -> None:
        ctx.sleep(t)

    return run


EVENTS = {"n": range(16)}
MASKS = {"n": range(1 << 16)}
_PMEVENT = 'PTX ISA 8.7, "pmevent"'


@shared_form("pmevent #n:u32", limits=EVENTS, quiet=True, unit="control", source=_PMEVENT)
@shared_form("pmevent.mask #n:u32", limits=MASKS, quiet=True, unit="control", source=_PMEVENT)
def pmevent() -> Any:
    """Triggers events that a profiler counts: no effect on values."""

    def run(ctx: Context, n: int) -> None:
        return None

    return run


@shared_form("trap", unit="control", source='PTX ISA 8.7, "trap"')
def trap() -> Any:
    """Ends the launch with a fault."""

    def run(ctx: Context) -> None:
        raise ctx.fault("the program executed trap", "find out which check of the kernel failed")

    return run


@shared_form("brkpt", unit="control", source='PTX ISA 8.7, "brkpt"')
def brkpt() -> Any:
    """Suspends execution on a device under a debugger; a fault here."""

    def run(ctx: Context) -> None:
        raise ctx.fault("the program executed brkpt")

    return run

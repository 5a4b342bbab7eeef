"""Many legal orders of one case: in how many the bits of its arrays, or its end, differ from the run in order.

found = sweep(case, orders(64), baseline, processes=2)
[one.order for one in found if one.differs(baseline)]
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopsim.errors import MachineFault
from hopsim.explore.case import Arguments, Case, digests
from hopsim.explore.decisions import (
    Held,
    Recorded,
    RecordedAdversarial,
    RecordedSeeded,
    Turn,
)
from hopsim.hw.machine.schedule import Schedule
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.options import Options
from hopsim.results import LaunchResult
from hopsim.runtime.gpu import Gpu

STEPS_MAX = 5_000_000
# An order may take so many times the steps of the run in order, and so many more.
LONGER = 50
LONGER_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Hardware:
    """Which configuration cases run on, and how tensor cores sum."""

    name: str | Path = "h100-sxm"
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    numerics: str = "hopper"


@dataclass(frozen=True, slots=True, order=True)
class Order:
    """A schedule by name: `in-order`, `seeded` with its seed, or `adversarial`."""

    name: str
    seed: int = 0

    def __str__(self) -> str:
        return f"seed {self.seed}" if self.name == "seeded" else f"{self.name} order"


IN_ORDER = Order("in-order")
ADVERSARIAL = Order("adversarial")


def orders(seeds: int, first: int = 0) -> list[Order]:
    """Return that many seeded orders, and the adversarial one."""
    return [*(Order("seeded", first + k) for k in range(seeds)), ADVERSARIAL]


@dataclass(frozen=True, slots=True)
class Ending:
    """How one order ended.

    Args:
        ended: `finished`, `deadlock`, `cap` or `fault`.
        bits: a fingerprint of each array.
        what: the fault.
        reached: (CTA, PTX line) of every step.
    """

    order: Order
    ended: str
    bits: Mapping[str, str]
    what: str = ""
    reached: frozenset[tuple[int, int]] = field(default=frozenset(), compare=False, repr=False)

    def differs(self, other: Ending) -> bool:
        """Whether this order has other bits, or another end."""
        return self.ended != other.ended or (self.ended == "finished" and self.bits != other.bits)


class PlannedGpu(Gpu):
    """A GPU whose next launch follows a given schedule."""

    def __init__(self, plan: Schedule, hardware: Hardware) -> None:
        super().__init__(hardware.name, hardware.overrides)
        self.plan = plan

    def make_schedule(
        self, chosen: Options, recorder: Any, progress: Callable[[float], None] | None
    ) -> Schedule:
        """Return the given schedule."""
        return self.plan


@dataclass(frozen=True, slots=True)
class Run:
    """One run with its turns and the steps it took; `result` is None when it faulted."""

    ending: Ending
    turns: list[Turn]
    result: LaunchResult | None
    made: Arguments
    steps: int

    @property
    def limit(self) -> int:
        """How many steps another order of the same program may take."""
        return min(STEPS_MAX, LONGER * self.steps + LONGER_STEPS)


def plan_of(order: Order, limit: int = STEPS_MAX) -> Recorded:
    """Return the schedule that an order names, for at most so many steps."""
    if order.name == "seeded":
        return RecordedSeeded(order.seed, step_limit=limit)
    if order.name == "adversarial":
        return RecordedAdversarial(step_limit=limit)
    return Held({}, step_limit=limit)


def run(
    case: Case, kernel: Kernel, plan: Recorded, order: Order, hardware: Hardware, **options: Any
) -> Run:
    """Run a case under a schedule; hazards are not looked for unless `options` ask."""
    gpu = PlannedGpu(plan, hardware)
    made = case.arguments(gpu)
    settings: dict[str, Any] = {"check": False, "numerics": hardware.numerics, **options}
    what, result = "", None
    try:
        result = gpu.launch(
            kernel, case.grid, case.block, case.cluster, made.args, case.shared_bytes,
            schedule=order.name, seed=order.seed, **settings,
        )  # fmt: skip
    except MachineFault as fault:
        ended, what = "fault", str(fault)
    else:
        ended = "finished" if result.is_finished else "deadlock"
        if result.is_cut_off:
            ended = "cap"
        elif result.faulted:
            ended = "fault"
    reached = frozenset(
        (point.cta, point.line)
        for turn in plan.turns
        for point in turn.points
        if point.kind == "step"
    )
    ending = Ending(order, ended, digests(made.arrays), what, reached)
    return Run(ending, plan.turns, result, made, plan.ticks)


class _Worker:
    """What a process keeps between the orders it tries."""

    case: Case
    kernel: Kernel
    hardware: Hardware
    limit: int


def _begin(case: Case, hardware: Hardware, limit: int) -> None:
    _Worker.case, _Worker.kernel, _Worker.hardware = case, case.kernel(), hardware
    _Worker.limit = limit


def _try(order: Order) -> Ending:
    plan = plan_of(order, _Worker.limit)
    return run(_Worker.case, _Worker.kernel, plan, order, _Worker.hardware).ending


def sweep(
    case: Case,
    wanted: Sequence[Order],
    hardware: Hardware | None = None,
    *,
    kernel: Kernel | None = None,
    processes: int = 1,
    limit: int = STEPS_MAX,
) -> list[Ending]:
    """Run a case under each order, and return how each ended.

    Args:
        kernel: the kernel, where the caller has made it.
        processes: how many to use; 1 stays in this one.
        limit: of steps.
    """
    machine = hardware or Hardware()
    if processes <= 1 or len(wanted) <= 1:
        made = kernel or case.kernel()
        return [run(case, made, plan_of(order, limit), order, machine).ending for order in wanted]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(processes, len(wanted)), context, initializer=_begin, initargs=(case, machine, limit)
    ) as pool:
        return list(pool.map(_try, wanted, chunksize=max(1, len(wanted) // (4 * processes))))
